//! Comma-separated values as Go's `encoding/csv` reads them.

use std::borrow::Cow;

/// Treatment of white space before a value.
#[derive(Clone, Copy)]
pub(super) enum Blanks {
    /// It is part of the value.
    Preserved,
    /// It is dropped, as with Go's `TrimLeadingSpace`.
    Dropped,
}

/// The rows of a table whose values are separated by `sign`. All have as many values as the first.
/// An error is a fragment of a message.
pub(super) fn rows(text: &str, sign: u8, blanks: Blanks) -> Result<Vec<Vec<String>>, String> {
    let mut rows = Vec::new();
    each_row(text, sign, blanks, |row| {
        rows.push(row.iter().map(str::to_owned).collect());
        true
    })?;
    Ok(rows)
}

/// Calls `take` with each row, until that returns false.
pub(super) fn each_row(
    text: &str,
    sign: u8,
    blanks: Blanks,
    mut take: impl FnMut(&csv::StringRecord) -> bool,
) -> Result<(), String> {
    // A quote inside quotes is written twice, so there is an even number of them.
    if text.bytes().filter(|byte| *byte == b'"').count() % 2 == 1 {
        return Err("a quote is not closed".to_owned());
    }
    let text = match blanks {
        Blanks::Preserved => Cow::Borrowed(text),
        Blanks::Dropped => Cow::Owned(without_leading_blanks(text, sign)),
    };
    let mut reader =
        csv::ReaderBuilder::new().delimiter(sign).has_headers(false).from_reader(text.as_bytes());
    let mut row = csv::StringRecord::new();
    while reader.read_record(&mut row).map_err(|error| error.to_string())? {
        if !take(&row) {
            break;
        }
    }
    Ok(())
}

/// The text without white space before its values, so that a quote after it opens a quoted value.
fn without_leading_blanks(text: &str, sign: u8) -> String {
    let (mut is_quoted, mut is_start) = (false, true);
    let keep = |char: &char| {
        if is_start && !is_quoted && *char == ' ' {
            return false;
        }
        is_quoted ^= *char == '"';
        is_start = *char == char::from(sign) || *char == '\n';
        true
    };
    text.chars().filter(keep).collect()
}
