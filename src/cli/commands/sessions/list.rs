//! `duologue sessions list`.

use super::args::ListArgs;
use super::{Failure, Out, degraded, library, nothing};
use crate::cli::commands::FOUND;
use crate::cli::commands::envelope::Envelope;
use crate::store::{Listing, Summary};
use crate::support::terminal::escape_control;
use jiff::Timestamp;
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use unicode_width::UnicodeWidthStr;

/// Characters of a title in the table.
const TITLE_CHARS_MAX: usize = 40;

/// The names of the columns.
const HEAD: [&str; 6] = ["ID", "LAST ACTIVITY", "TURNS", "SIZE", "TITLE", "FOLDER"];

/// Columns that can be shortened.
const TITLE: usize = 4;
const FOLDER: usize = 5;

/// Columns that a shortened cell has at least.
const CELL_COLUMNS_MIN: usize = 12;

/// Bytes of an id that are shown at least: of a generated one the first eight digits.
const ID_BYTES_MIN: usize = 16;

/// Bytes of a time up to the minute.
const MINUTE_BYTES: usize = 16;

/// A session as it is written in the envelope.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    id: &'a str,
    title: &'a str,
    folder: &'a str,
    turns: u32,
    bytes: u64,
    created: String,
    last_activity: String,
}

/// Lists the sessions of a store.
pub(super) fn list(args: &ListArgs) -> Result<u8, Failure> {
    let Listing { sessions, losses } = library(&args.places)?.sessions().map_err(Failure::Store)?;
    let (mut envelope, mut out) = (Envelope::new(), Out::new()?);
    let mut error = None;
    for loss in losses {
        degraded(&mut envelope, loss, &mut error);
    }
    let status = if error.is_some() { FOUND } else { 0 };
    if args.output.is_json() {
        for session in &sessions {
            envelope.push(&Listed::of(session), &mut out)?;
        }
        envelope.finish(error.as_ref(), None, &mut out)?;
        return Ok(status);
    }
    for line in table(&sessions, columns()) {
        out.line(&line)?;
    }
    out.flush()?;
    if sessions.is_empty() && error.is_none() {
        nothing(|| args.places.nothing());
    }
    Ok(status)
}

impl<'a> Listed<'a> {
    fn of(session: &'a Summary) -> Self {
        Self {
            id: &session.id,
            title: &session.title,
            folder: &session.folder,
            turns: session.turns,
            bytes: session.bytes,
            created: time(session.created_ms),
            last_activity: time(session.updated_ms),
        }
    }
}

/// The second that a time is in, in UTC.
fn time(ms: i64) -> String {
    Timestamp::from_second(ms.div_euclid(1000)).unwrap_or_default().to_string()
}

/// The columns of the terminal that shows standard output.
fn columns() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The lines of the table, on a terminal of so many columns; none if there is no session. What does not fit there
/// is shortened: ids to a beginning that no other has, by which a session can be named as well.
fn table(sessions: &[Summary], columns: Option<usize>) -> Vec<String> {
    let whole = lines(sessions.iter().map(|session| row(session, session.id.len())).collect());
    let Some(columns) = columns else { return whole };
    if whole.iter().all(|line| line.width() <= columns) {
        return whole;
    }
    let ids = distinct_beginnings(sessions);
    let mut rows: Vec<_> =
        sessions.iter().zip(ids).map(|(session, id)| short_row(row(session, id))).collect();
    for column in [FOLDER, TITLE] {
        let width = lines(rows.clone()).iter().map(|line| line.width()).max().unwrap_or(0);
        let widest = rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
        let room = widest.saturating_sub(width.saturating_sub(columns)).max(CELL_COLUMNS_MIN);
        for row in &mut rows {
            row[column] = fitted(&row[column], room, column == FOLDER);
        }
    }
    lines(rows)
}

fn row(session: &Summary, id_bytes: usize) -> [String; 6] {
    let title: String = session.title.chars().take(TITLE_CHARS_MAX).collect();
    let is_cut = session.title.chars().count() > TITLE_CHARS_MAX;
    [
        one_word(&session.id[..session.id.floor_char_boundary(id_bytes)]),
        time(session.updated_ms),
        session.turns.to_string(),
        size(session.bytes),
        escape_control(&title) + if is_cut { "…" } else { "" },
        one_word(&session.folder),
    ]
}

/// The time to the minute, still in UTC, and the folder from that of the user.
fn short_row(mut row: [String; 6]) -> [String; 6] {
    row[1].truncate(MINUTE_BYTES);
    row[1] = row[1].replace('T', " ") + "Z";
    let home = std::env::var("HOME").ok().filter(|home| home.len() > 1);
    let inside = home.and_then(|home| row[FOLDER].strip_prefix(&*home).map(str::to_owned));
    if let Some(inside) = inside.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        row[FOLDER] = format!("~{inside}");
    }
    row
}

/// For each session how many bytes of its id no other id begins with; at least some.
fn distinct_beginnings(sessions: &[Summary]) -> Vec<usize> {
    let shared = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let ids: BTreeSet<&str> = sessions.iter().map(|session| session.id.as_str()).collect();
    let mut longest: BTreeMap<&str, usize> = ids.iter().map(|id| (*id, 0)).collect();
    // What an id shares with any other it also shares with one of its neighbours in their order.
    for (a, b) in ids.iter().zip(ids.iter().skip(1)) {
        let bytes = shared(a, b);
        for id in [a, b] {
            longest.entry(id).and_modify(|it| *it = bytes.max(*it));
        }
    }
    let longest = |session: &Summary| longest.get(&*session.id).copied().unwrap_or_default();
    sessions.iter().map(|session| (longest(session) + 1).max(ID_BYTES_MIN)).collect()
}

/// `text` in so many columns; `keeps_end`: its beginning is left out.
fn fitted(text: &str, columns: usize, keeps_end: bool) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut left: Vec<char> = text.chars().collect();
    while left.iter().collect::<String>().width() + 1 > columns && !left.is_empty() {
        left.remove(if keeps_end { 0 } else { left.len() - 1 });
    }
    let left: String = left.into_iter().collect();
    if keeps_end { format!("…{left}") } else { format!("{}…", left.trim_end()) }
}

fn lines(rows: Vec<[String; 6]>) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let rows: Vec<_> = [HEAD.map(str::to_owned)].into_iter().chain(rows).collect();
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let line = |row: &[String; 6]| {
        let padded = |(cell, width): (&String, usize)| {
            cell.clone() + &" ".repeat(width.saturating_sub(cell.width()))
        };
        let cells = row.iter().zip(widths).map(padded);
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// An id or a path in one line, so that it can be known from another one and typed again.
fn one_word(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            '\u{85}' | '\u{2028}' | '\u{2029}' => shown.extend(char.escape_unicode()),
            char => shown.push(char),
        }
    }
    escape_control(&shown)
}

/// A number of bytes for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn named(id: String) -> Summary {
        Summary { id, ..Summary::default() }
    }

    #[test]
    fn an_id_is_shortened_to_what_no_other_begins_with() {
        let ids = ["session-00000001-a", "session-00000001-b", "session-00000002", "session-0000"];
        let sessions: Vec<_> = ids.iter().map(|id| named((*id).to_owned())).collect();
        assert_eq!(distinct_beginnings(&sessions), [18, 18, 16, 16]);
        assert_eq!(distinct_beginnings(&[]), [0; 0]);
        // The same session in two stores.
        let twice =
            [named("session-00000001-a".to_owned()), named("session-00000001-a".to_owned())];
        assert_eq!(distinct_beginnings(&twice), [ID_BYTES_MIN; 2]);
    }

    /// Comparing each with every other takes minutes.
    #[test]
    fn ids_of_many_sessions_are_shortened_at_once() {
        let begun = Instant::now();
        let sessions: Vec<_> = (0..200_000).map(|it| named(format!("session-{it:064}"))).collect();
        let bytes = distinct_beginnings(&sessions);
        assert!(bytes.iter().all(|bytes| *bytes == "session-".len() + 64));
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_table_has_one_line_for_each_session() {
        let title = "word ".repeat(20);
        let one = Summary {
            id: "a\u{1b}".to_owned(),
            title,
            turns: 3,
            bytes: 2048,
            ..Summary::default()
        };
        let two = Summary { id: "longer".to_owned(), title: "t".to_owned(), ..Summary::default() };
        let lines = table(&[one, two], None);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("ID      LAST ACTIVITY"), "{lines:?}");
        assert!(lines[1].starts_with("a\\x1b   1970-01-01T00:00:00Z  3      2 KiB"), "{lines:?}");
        assert!(lines[1].ends_with('…'), "{lines:?}");
        assert!(table(&[], Some(80)).is_empty());
        let long = |number: u32| Summary {
            id: format!("session-{number:08x}-86c0-431b-a2c8-d2d1de09ec9b"),
            title: "How do I list all the ports of a machine?".to_owned(),
            folder: "/srv/data/projects/of-many/years/duologue".to_owned(),
            bytes: 900 << 20,
            turns: 120,
            ..Summary::default()
        };
        let lines = table(&[long(1), long(2), long(0x8000_0000)], Some(80));
        assert!(lines.iter().all(|line| line.width() <= 80), "{lines:?}");
        assert!(lines[1].starts_with("session-00000001  1970-01-01 00:00Z  120 "), "{lines:?}");
        assert!(lines[1].ends_with("/duologue") && lines[1].contains("How do I l"), "{lines:?}");
        assert_eq!(one_word("a\nb\u{2028}\u{1b}c"), "a\\nb\\u{2028}\\x1bc");
        assert_eq!([size(1023), size(3 << 20)], ["1023 B", "3 MiB"]);
    }
}
