//! `duologue sessions import`: a session of recorded protocol lines.

use super::args::ImportArgs;
use super::new::{Maker, typed_id};
use super::{Failure, library, message};
use crate::cli::commands::LINE_BYTES_MAX;
use crate::cli::commands::envelope::Error;
use crate::cli::commands::lines::{self, Input, Piece, StreamLines, Unread};
use crate::conformance::events::BadLine;
use crate::conformance::recording::{Recorded, Recording, Repeats};
use crate::conversation::copy::CopiedTurns;
use crate::protocol::constants::command_code;
use crate::protocol::id::SessionId;
use crate::support::terminal::escape_control;
use std::io::Read;
use std::path::Path;

/// Makes a session of the lines in a file.
pub(super) fn import(args: &ImportArgs) -> Result<u8, Failure> {
    // Before anything is read: without a store there is nowhere to put it.
    library(&args.places)?;
    let mut maker = Maker::new(&args.places, args.output.is_json());
    let typed = args.new_id.as_deref().map(typed_id).transpose()?;
    let label = lines::label(Some(&args.file));
    let Recorded { shown, sessions, damage, repeats } = read(&args.file, &label, &mut maker)?;
    if let Some(damage) = damage {
        let damage = escape_control(&damage);
        let why = format!("it is damaged: {damage}; nothing was made; export or record it again");
        return Err(Failure::Usage(format!("{label}: {why}")));
    }
    let uncalled = shown.results_without_calls();
    let copy = CopiedTurns::of_shown(shown);
    if copy.turns.is_empty() && copy.history.is_empty() {
        let why =
            "it has no conversation: no events and no snapshot with messages; nothing was made";
        return Err(Failure::Usage(format!("{label}: {why}")));
    }
    let session = match typed {
        Some(typed) => typed,
        None => session_of(&label, &sessions)?,
    };
    if let Some(Repeats { first_line, events }) = repeats {
        let why = format!(
            "{label}: {events} events are in it again, the first on line {first_line}; each was \
             imported once"
        );
        maker.warn("events_repeated", why);
    }
    if uncalled > 0 {
        let why = format!(
            "{label}: {uncalled} tool results are shown, and not sent to the model: the calls they \
             belong to are not in it"
        );
        maker.partial.get_or_insert_with(|| unusable(&why));
        maker.warn("results_without_calls", why);
    }
    let lost = copy.lost_attachments;
    if lost > 0 {
        let why = format!(
            "{lost} attachments are shown, and not sent to the model: only an export has their bytes"
        );
        maker.warn("attachments_lost", why);
    }
    maker.make(&session, copy)
}

/// The session that was recorded.
fn session_of(label: &str, sessions: &[String]) -> Result<SessionId, Failure> {
    let why = match sessions {
        [one] => match SessionId::new(one) {
            Some(session) => return Ok(session),
            None => "the id of its session can't be used".to_owned(),
        },
        [] => "its lines name no session".to_owned(),
        [one, two, ..] => {
            let [one, two] = [one, two].map(|id| escape_control(id));
            let why = format!("it has lines of more than one session, {one} and {two}");
            return Err(Failure::Usage(format!(
                "{label}: {why}; import each from a file of its own"
            )));
        }
    };
    Err(Failure::Usage(format!("{label}: {why}; name the new one with --as ID")))
}

fn read(file: &Path, label: &str, maker: &mut Maker<'_>) -> Result<Recorded, Failure> {
    let unread = |why: std::io::Error| Unread { label: label.to_owned(), why: why.to_string() };
    let input = Input::open(Some(file)).map_err(unread)?;
    if input.is_terminal() {
        message("lines of the protocol are read from this terminal; Ctrl-D ends them");
    }
    let mut lines = StreamLines::new(input, LINE_BYTES_MAX);
    let mut recording = Recording::default();
    while let Some(taken) = take(&mut lines, &mut recording).map_err(unread)? {
        if let Err(skipped) = taken {
            let why = format!("{label}: {skipped}; the line was skipped");
            if !skipped.is_cut_off {
                maker.partial.get_or_insert_with(|| unusable(&why));
            }
            maker.warn("line_skipped", why);
        }
    }
    Ok(recording.finish())
}

/// The error of a document about a session that is imported only in part.
fn unusable(why: &str) -> Error {
    let message = "what was recorded could be imported only in part".to_owned();
    Error { code: command_code::BAD_LINES, class: None, message, detail: why.to_owned() }
}

/// Reads the next line; `None` at the end.
fn take(
    lines: &mut StreamLines<impl Read>,
    recording: &mut Recording,
) -> std::io::Result<Option<Result<(), BadLine>>> {
    Ok(lines.next()?.map(|piece| match piece {
        Piece::Line(line) => recording.line(line),
        Piece::Long => Err(recording.long_line(LINE_BYTES_MAX)),
        Piece::Tail(tail) => recording.tail(tail),
    }))
}
