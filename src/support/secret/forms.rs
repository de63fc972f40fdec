//! Forms of a key in the errors of servers: with its middle masked, as in OpenAI's
//! status 401, and in base64, as in HTTP's basic authentication.

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD};

/// Characters of a key that must surround a mask for it to be recognized.
const SHOWN_CHARS_MIN: usize = 3;

/// Shorter masks, in characters, may be ordinary text.
const MASK_CHARS_MIN: usize = 3;

/// Characters of base64 that must match the key for it to be recognized.
const BASE64_CHARS_MIN: usize = 8;

/// The places of `text` that hold `key` with its middle masked: some of its beginning, a mask, some
/// of its end, and the rest of the word.
pub(super) fn masked(key: &str, text: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut from = 0;
    while let Some((start, end)) = next_mask(text, from) {
        from = end;
        let head = shared_end(&text[..start], key);
        let tail = shared_beginning(&text[end..], key);
        if head + tail < SHOWN_CHARS_MIN.min(key.len()) {
            continue;
        }
        let word = text[end..].find(|c| !super::is_in_word(c)).unwrap_or(text.len() - end);
        let place = (start - head, end + word.max(tail));
        match found.last_mut() {
            // One mask may end where another begins: `sk-...***`.
            Some(last) if last.1 >= place.0 => last.1 = place.1.max(last.1),
            Some(_) | None => found.push(place),
        }
    }
    found
}

/// The next run of one mask character, or of an ellipsis.
fn next_mask(text: &str, from: usize) -> Option<(usize, usize)> {
    let mut chars = text[from..].char_indices().map(|(at, c)| (from + at, c)).peekable();
    while let Some((start, mask)) = chars.next() {
        let chars_min = match mask {
            '\u{2026}' | '\u{2022}' | '\u{25CF}' => 1,
            '*' | '.' | '#' | '_' | 'x' | 'X' => MASK_CHARS_MIN,
            _ => continue,
        };
        let mut count = 1;
        while chars.next_if(|(_, c)| *c == mask).is_some() {
            count += 1;
        }
        if count >= chars_min {
            return Some((start, start + count * mask.len_utf8()));
        }
    }
    None
}

/// Length of the longest beginning of `key` at the end of `text`.
fn shared_end(text: &str, key: &str) -> usize {
    let text = text.as_bytes();
    let lengths = (1..=key.len().min(text.len())).rev();
    let is_end = |bytes: &usize| key.as_bytes()[..*bytes] == text[text.len() - bytes..];
    lengths.filter(|bytes| key.is_char_boundary(*bytes)).find(is_end).unwrap_or_default()
}

/// Length of the longest end of `key` at the beginning of `text`.
fn shared_beginning(text: &str, key: &str) -> usize {
    let text = text.as_bytes();
    let lengths = (1..=key.len().min(text.len())).rev();
    let is_beginning = |bytes: &usize| key.as_bytes()[key.len() - bytes..] == text[..*bytes];
    let is_boundary = |bytes: &usize| key.is_char_boundary(key.len() - bytes);
    lengths.filter(is_boundary).find(is_beginning).unwrap_or_default()
}

/// The places of `text` that hold `key` in base64, alone or within something longer.
pub(super) fn encoded(key: &str, text: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for core in cores(key) {
        for (at, core) in text.match_indices(core.as_str()) {
            let start = text[..at].trim_end_matches(|c| is_base64(c) && c != '=').len();
            let after = at + core.len();
            let end = text.len() - text[after..].trim_start_matches(is_base64).len();
            found.push((start, end));
        }
    }
    found.sort_unstable();
    found.dedup_by(|next, kept| {
        let overlaps = next.0 < kept.1;
        kept.1 = if overlaps { kept.1.max(next.1) } else { kept.1 };
        overlaps
    });
    found
}

/// Bytes at the end of `text` that may begin `key` in base64.
pub(super) fn begun(key: &str, text: &str) -> usize {
    let begun = cores(key).into_iter().filter_map(|core| {
        let lengths = (BASE64_CHARS_MIN / 2..=core.len().min(text.len())).rev();
        lengths.into_iter().find(|bytes| text.ends_with(&core[..*bytes]))
    });
    begun.max().unwrap_or_default()
}

/// The base64 of a key at any position, without the characters that depend on the neighbouring
/// bytes: one text for each alignment of the key to groups of three bytes, and for
/// each alphabet.
fn cores(key: &str) -> Vec<String> {
    let mut cores = Vec::new();
    for before in 0..3 {
        let bytes = [&[0; 3][..before], key.as_bytes()].concat();
        // Drop characters that contain bits of the preceding byte, and incomplete ones at the end.
        let (first, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        if end < first + BASE64_CHARS_MIN {
            continue;
        }
        for text in [BASE64_NOPAD.encode(&bytes), BASE64URL_NOPAD.encode(&bytes)] {
            cores.push(text[first..end].to_owned());
        }
    }
    cores.dedup();
    cores
}

fn is_base64(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_' | '=')
}
