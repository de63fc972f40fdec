//! `duologue list-events`: the events of a stream, as JSON Lines or in one object.

use super::args::{ListEventsArgs, ListOutput};
use super::envelope::{Envelope, Error};
use super::lines::{self, Input, Lines, Piece};
use super::output::{Failure, Out, status, tell};
use super::{FOUND, LINE_BYTES_MAX};
use crate::events::{Entry, Lister, PREAMBLE};
use crate::json;
use std::io::Read;

/// Bad lines that are told one by one on standard error.
const TOLD_MAX: u64 = 100;

/// Where events go.
enum Sink {
    /// A line for each.
    Lines(Vec<u8>),
    /// One object at the end.
    Json(Envelope),
}

/// Lists the events of the stream that `args` name; gives the exit status.
pub fn list_events(args: &ListEventsArgs) -> u8 {
    status(run(args))
}

fn run(args: &ListEventsArgs) -> Result<u8, Failure> {
    let label = lines::label(args.file.as_deref());
    let mut out = Out::new()?;
    let mut sink = match args.output {
        ListOutput::Jsonl if !args.no_stream => Sink::Lines(Vec::new()),
        ListOutput::Jsonl | ListOutput::Json => Sink::Json(Envelope::new()),
    };
    let mut bad = 0;
    let trouble = match Input::open(args.file.as_deref()) {
        Err(error) => Some(error.to_string()),
        Ok(input) => {
            if input.is_terminal() {
                tell("a stream of the protocol is read from this terminal; Ctrl-D ends it");
            }
            if let Sink::Lines(_) = sink {
                out.line(PREAMBLE)?;
            }
            let mut lines = Lines::new(input, LINE_BYTES_MAX);
            read_all(&mut lines, &mut sink, &mut bad, &mut out)?
        }
    };
    let trouble = trouble.map(|why| format!("{label} can't be read: {why}"));
    finish(sink, bad, trouble, &mut out)
}

/// Reads to the end, and counts what is no frame; gives why it can't be read, if so.
fn read_all(
    lines: &mut Lines<impl Read>,
    sink: &mut Sink,
    bad: &mut u64,
    out: &mut Out,
) -> Result<Option<String>, Failure> {
    let mut lister = Lister::new();
    loop {
        if lines.will_wait() {
            out.flush()?;
        }
        let (entry, is_tail) = match lines.next() {
            Err(error) => return Ok(Some(error.to_string())),
            Ok(None) => return Ok(None),
            Ok(Some(Piece::Line(line))) => (lister.line(line), false),
            Ok(Some(Piece::Long)) => (Err(lister.long_line(LINE_BYTES_MAX)), false),
            Ok(Some(Piece::Tail(tail))) => (lister.tail(tail), true),
        };
        match entry {
            Ok(Some(entry)) => sink.tell(&entry, out)?,
            Ok(None) => {}
            Err(line) => {
                // What is left of a line whose writer ended is nobody's mistake.
                *bad += u64::from(!is_tail);
                sink.warn(line.to_string(), *bad);
            }
        }
    }
}

impl Sink {
    fn tell(&mut self, entry: &Entry, out: &mut Out) -> Result<(), Failure> {
        match self {
            Self::Lines(line) => {
                line.clear();
                json::write_line(entry, line)
                    .map_err(|error| Failure::Usage(format!("an event has no JSON: {error}")))?;
                out.write(line)
            }
            Self::Json(envelope) => envelope.push(entry, out),
        }
    }

    fn warn(&mut self, warning: String, nth: u64) {
        match self {
            Self::Lines(_) if nth <= TOLD_MAX => tell(&warning),
            Self::Lines(_) => {}
            Self::Json(envelope) => envelope.warn("bad_line", warning),
        }
    }
}

fn finish(sink: Sink, bad: u64, trouble: Option<String>, out: &mut Out) -> Result<u8, Failure> {
    let lines = format!("{bad} lines are no frames of the protocol and are not listed");
    match sink {
        Sink::Lines(_) => {
            out.flush()?;
            if bad > 0 {
                tell(&lines);
            }
        }
        Sink::Json(envelope) => {
            let error = match &trouble {
                Some(why) => Some(Error { code: "read_failed", message: why.clone() }),
                None if bad > 0 => Some(Error { code: "bad_lines", message: lines }),
                None => None,
            };
            envelope.finish(error.as_ref(), None, out)?;
        }
    }
    match trouble {
        Some(why) => Err(Failure::Usage(why)),
        None => Ok(if bad > 0 { FOUND } else { 0 }),
    }
}
