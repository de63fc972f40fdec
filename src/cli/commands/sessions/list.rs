//! `duologue sessions list`.

use super::args::ListArgs;
use super::{Failure, Out, degraded, library};
use crate::cli::commands::FOUND;
use crate::cli::commands::envelope::Envelope;
use crate::store::{Listing, Summary};
use crate::support::terminal::escape_control;
use jiff::{Timestamp, Unit};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

/// Characters of a title in the table.
const TITLE_CHARS_MAX: usize = 40;

/// The names of the columns.
const HEAD: [&str; 6] = ["ID", "LAST ACTIVITY", "TURNS", "SIZE", "TITLE", "FOLDER"];

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
    let Listing { sessions, losses } = library(&args.places)?.sessions().map_err(Failure::Usage)?;
    let (mut envelope, mut out) = (Envelope::new(), Out::new()?);
    let status = if losses.is_empty() { 0 } else { FOUND };
    for loss in losses {
        degraded(&mut envelope, loss);
    }
    if args.output.is_json() {
        for session in &sessions {
            envelope.push(&Listed::of(session), &mut out)?;
        }
        envelope.finish(None, None, &mut out)?;
        return Ok(status);
    }
    for line in table(&sessions) {
        out.line(&line)?;
    }
    out.flush()?;
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

/// A time in UTC, to the second.
fn time(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    time.round(Unit::Second).unwrap_or(time).to_string()
}

/// The lines of the table; none if there is no session.
fn table(sessions: &[Summary]) -> Vec<String> {
    let rows = sessions.iter().map(|session| {
        let title: String = session.title.chars().take(TITLE_CHARS_MAX).collect();
        let is_cut = session.title.chars().count() > TITLE_CHARS_MAX;
        [
            one_word(&session.id),
            time(session.updated_ms),
            session.turns.to_string(),
            size(session.bytes),
            escape_control(&title) + if is_cut { "…" } else { "" },
            one_word(&session.folder),
        ]
    });
    let rows: Vec<[String; 6]> = rows.collect();
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
        let lines = table(&[one, two]);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("ID      LAST ACTIVITY"), "{lines:?}");
        assert!(lines[1].starts_with("a\\x1b   1970-01-01T00:00:00Z  3      2 KiB"), "{lines:?}");
        assert!(lines[1].ends_with('…'), "{lines:?}");
        assert!(table(&[]).is_empty());
        assert_eq!(one_word("a\nb\u{2028}\u{1b}c"), "a\\nb\\u{2028}\\x1bc");
        assert_eq!([size(1023), size(3 << 20)], ["1023 B", "3 MiB"]);
    }
}
