//! `duologue check`: reports the contract violations in a stream as they are found.

use super::args::{CheckArgs, CheckOutput};
use super::envelope::{Counts, Envelope, Error};
use super::lines::{self, Input, Piece, StreamLines, Unread};
use super::output::{Failure, Out, message, status};
use super::{FOUND, LINE_BYTES_MAX};
use crate::conformance::check::{Checker, Summary, Violation};
use crate::protocol::constants::command_code;
use serde::Serialize;
use std::io::Read;

/// The output format.
enum Sink {
    /// One line for each violation, after the name of the stream.
    Text(String),
    /// One object at the end.
    Json(Envelope),
}

/// A violation as it is written in the envelope.
#[derive(Serialize)]
struct Entry<'a> {
    line: u64,
    rule: &'static str,
    message: &'a str,
}

/// Checks the stream that `args` name; returns the exit status.
pub fn check(args: &CheckArgs) -> u8 {
    status(run(args))
}

fn run(args: &CheckArgs) -> Result<u8, Failure> {
    let label = lines::label(args.file.as_deref());
    let mut out = Out::new()?;
    let mut sink = match args.output {
        CheckOutput::Text if !args.no_stream => Sink::Text(label.clone()),
        CheckOutput::Text | CheckOutput::Json => Sink::Json(Envelope::new()),
    };
    let mut checker = if args.joined { Checker::joined() } else { Checker::new() };
    let mut first = None;
    let input = Input::open(args.file.as_deref());
    let read = input.map_err(|error| error.to_string()).map(|input| {
        if input.is_terminal() {
            message("a stream of the protocol is read from this terminal; Ctrl-D ends it");
        }
        StreamLines::new(input, LINE_BYTES_MAX)
    });
    let client_error = match read {
        Ok(mut lines) => {
            let mut report = |violations: &[Violation], out: &mut Out| {
                if first.is_none() {
                    first = violations.first().cloned();
                }
                sink.report(violations, out)
            };
            read_all(&mut lines, &mut checker, &mut report, &mut out)?
        }
        Err(client_error) => Some(client_error),
    };
    let unread = client_error.map(|why| Unread { label, why });
    finish(sink, &checker.summary(), first.as_ref(), unread, &mut out)
}

/// Reads to the end of the stream; returns the error if it can't be read.
fn read_all(
    lines: &mut StreamLines<impl Read>,
    checker: &mut Checker,
    report: &mut impl FnMut(&[Violation], &mut Out) -> Result<(), Failure>,
    out: &mut Out,
) -> Result<Option<String>, Failure> {
    loop {
        if lines.will_wait() {
            out.flush()?;
        }
        let violations = match lines.next() {
            Err(error) => return Ok(Some(error.to_string())),
            Ok(Some(Piece::Line(line))) => checker.line(line),
            Ok(Some(Piece::Long)) => checker.long_line(LINE_BYTES_MAX),
            Ok(Some(Piece::Tail(tail))) => {
                report(&checker.finish(Some(tail)), out)?;
                return Ok(None);
            }
            Ok(None) => {
                report(&checker.finish(None), out)?;
                return Ok(None);
            }
        };
        report(&violations, out)?;
    }
}

impl Sink {
    fn report(&mut self, violations: &[Violation], out: &mut Out) -> Result<(), Failure> {
        for Violation { line, rule, message } in violations {
            match self {
                // Ids and texts of the stream must not end the line or control a terminal.
                Self::Text(label) => {
                    let message = message.replace(char::is_control, "\u{fffd}");
                    out.line(&format!("{label}:{line}: {rule}: {message}"))?;
                }
                Self::Json(envelope) => {
                    envelope.push(&Entry { line: *line, rule: rule.as_str(), message }, out)?;
                }
            }
        }
        Ok(())
    }
}

fn finish(
    sink: Sink,
    summary: &Summary,
    first: Option<&Violation>,
    unread: Option<Unread>,
    out: &mut Out,
) -> Result<u8, Failure> {
    match sink {
        Sink::Text(label) => {
            for note in &summary.notes {
                out.line(&format!("{label}: note: {note}"))?;
            }
            if unread.is_none() {
                out.line(&format!("{label}: {}", counted(summary)))?;
            }
            out.flush()?;
        }
        Sink::Json(mut envelope) => {
            summary.notes.iter().for_each(|note| envelope.warn("note", note.clone()));
            let error = match (&unread, first) {
                (Some(unread), _) => Some(unread.as_error()),
                (None, Some(Violation { line, rule, message })) => Some(Error {
                    code: command_code::CONTRACT_BROKEN,
                    class: None,
                    message: counted(summary),
                    detail: format!("line {line}: {rule}: {message}"),
                }),
                (None, None) => None,
            };
            let counts = Counts {
                lines: summary.lines,
                frames: summary.frames,
                events: summary.events,
                requests: summary.requests,
            };
            envelope.finish(error.as_ref(), Some(&counts), out)?;
        }
    }
    match unread {
        Some(unread) => Err(unread.into()),
        None => Ok(if summary.violations > 0 { FOUND } else { 0 }),
    }
}

fn counted(summary: &Summary) -> String {
    let Summary { lines, frames, events, requests, violations, .. } = summary;
    format!(
        "violations: {violations}; lines: {lines}, frames: {frames}, events: {events}, requests: \
         {requests}"
    )
}
