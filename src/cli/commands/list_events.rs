//! `duologue list-events`: the events of a stream, as JSON Lines or in one object.

use super::args::{ListEventsArgs, ListOutput};
use super::envelope::{Envelope, Error};
use super::lines::{self, Input, Piece, StreamLines, Unread, WriteTime};
use super::output::{Failure, Out, message, status};
use super::{FOUND, LINE_BYTES_MAX};
use crate::conformance::events::{Entry, EventTime, Lister, PREAMBLE};
use crate::protocol::constants::command_code;
use crate::protocol::json;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::Read;

/// Rejected lines that are reported one by one on standard error; the others are counted.
const REPORTED_MAX: u64 = 100;

/// The output format.
enum EventList {
    /// One line for each event.
    Lines(Vec<u8>),
    /// One object at the end.
    Json(Envelope),
}

/// Lists the events of the stream that `args` name; returns the exit status.
pub fn list_events(args: &ListEventsArgs) -> u8 {
    status(run(args))
}

fn run(args: &ListEventsArgs) -> Result<u8, Failure> {
    let label = lines::label(args.file.as_deref());
    let mut out = Out::new()?;
    let mut list = match args.output {
        ListOutput::Jsonl if !args.no_stream => EventList::Lines(Vec::new()),
        ListOutput::Jsonl | ListOutput::Json => EventList::Json(Envelope::new()),
    };
    // The first line names the format, even if the stream can't be read.
    if let EventList::Lines(_) = list {
        out.line(PREAMBLE)?;
    }
    let mut bad = RejectedLines::default();
    let client_error = match Input::open(args.file.as_deref()) {
        Err(error) => Some(error.to_string()),
        Ok(input) => {
            if input.is_terminal() {
                message("a stream of the protocol is read from this terminal; Ctrl-D ends it");
            }
            match input.write_time() {
                Err(error) => Some(error.to_string()),
                Ok(time) => {
                    let mut lines = StreamLines::new(input, LINE_BYTES_MAX);
                    read_all(&mut lines, &time, &mut list, &mut bad, &mut out)?
                }
            }
        }
    };
    finish(list, &bad, client_error.map(|why| Unread { label, why }), &mut out)
}

/// Lines that are not frames.
#[derive(Debug, Default)]
struct RejectedLines {
    count: u64,
    first: Option<String>,
}

impl RejectedLines {
    fn add(&mut self, line: &str) {
        self.count += 1;
        self.first.get_or_insert_with(|| line.to_owned());
    }
}

/// Reads to the end and counts the lines that are not frames; returns the error if it can't be
/// read.
fn read_all(
    lines: &mut StreamLines<impl Read>,
    time: &WriteTime,
    list: &mut EventList,
    bad: &mut RejectedLines,
    out: &mut Out,
) -> Result<Option<String>, Failure> {
    let mut lister = Lister::new();
    let mut read_at = EventTime::default();
    loop {
        let will_wait = lines.will_wait();
        if will_wait {
            out.flush()?;
        }
        let piece = lines.next();
        if will_wait {
            read_at = time.latest();
        }
        let entry = match piece {
            Err(error) => return Ok(Some(error.to_string())),
            Ok(None) => return Ok(None),
            Ok(Some(Piece::Line(line))) => lister.line(read_at, line),
            Ok(Some(Piece::Long)) => Err(lister.long_line(LINE_BYTES_MAX)),
            Ok(Some(Piece::Tail(tail))) => lister.tail(read_at, tail),
        };
        match entry {
            Ok(Some(entry)) => list.report(&entry, out)?,
            Ok(None) => {}
            Err(line) => {
                let text = line.to_string();
                if !line.is_cut_off {
                    bad.add(&text);
                }
                list.warn(text, bad.count);
            }
        }
    }
}

impl EventList {
    fn report(&mut self, entry: &Entry, out: &mut Out) -> Result<(), Failure> {
        match self {
            Self::Lines(line) => write(entry, line, out),
            Self::Json(envelope) => envelope.push(entry, out),
        }
    }

    fn warn(&mut self, warning: String, nth: u64) {
        match self {
            Self::Lines(_) if nth <= REPORTED_MAX => message(&warning),
            Self::Lines(_) => {}
            Self::Json(envelope) => envelope.warn("bad_line", warning),
        }
    }
}

fn finish(
    list: EventList,
    bad: &RejectedLines,
    unread: Option<Unread>,
    out: &mut Out,
) -> Result<u8, Failure> {
    let count = bad.count;
    let lines = format!("{count} lines are no frames of the protocol and are not listed");
    let error = match (&unread, &bad.first) {
        (Some(unread), _) => Some(unread.as_error()),
        (None, Some(first)) => Some(Error {
            code: command_code::BAD_LINES,
            class: None,
            message: lines.clone(),
            detail: first.clone(),
        }),
        (None, None) => None,
    };
    match list {
        EventList::Lines(mut line) => {
            if let Some(error) = &error {
                write(&error_line(error), &mut line, out)?;
            }
            out.flush()?;
            if count > 0 {
                message(&lines);
            }
        }
        EventList::Json(envelope) => envelope.finish(error.as_ref(), None, out)?,
    }
    match unread {
        Some(unread) => Err(unread.into()),
        None => Ok(if count > 0 { FOUND } else { 0 }),
    }
}

/// The last line of a list that is not whole. Has a `_format`, so that a reader that skips the first line skips this
/// one too.
fn error_line(Error { code, class, message, detail }: &Error) -> Value {
    let error = json!({ "class": class, "code": code, "detail": detail, "message": message });
    json!({ "_error": error, "_format": "jsonl" })
}

/// Writes a line of the list. `line` is the buffer for it.
fn write(value: &impl Serialize, line: &mut Vec<u8>, out: &mut Out) -> Result<(), Failure> {
    line.clear();
    json::write_line(value, line)
        .map_err(|error| Failure::Usage(format!("an event has no JSON: {error}")))?;
    out.write(line)
}
