//! Estimates the memory that the values of a JSON text will take, before they are parsed: small values take up
//! to a hundred times the bytes of their text.

use super::{DEPTH_MAX, Error};
use serde_json::Value;

/// Most memory for the values of a text, for each of its bytes; a reader holds the text itself up to four times.
const MEMORY_PER_BYTE_MAX: usize = 16;

/// Memory that the values of any text may take, however short it is.
const MEMORY_BYTES_MIN: usize = 32 * 1024 * 1024;

/// No values take more for each byte of their text: a list of one number has four bytes with its comma.
const MEMORY_PER_BYTE_WORST: usize = 128;

/// Memory of a value in its list or map, and of the key of a member without its text.
const VALUE_BYTES: usize = size_of::<Value>();
const KEY_BYTES: usize = size_of::<String>();

/// Memory of a place in serde_json's maps besides the member in it: a hash, an index, a control byte.
const PLACE_BYTES: usize = 17;

/// Memory of a map besides its members, as a map or as a message.
const MAP_BYTES: usize = 192;

/// Fewest places of a list or a map that is not empty.
const PLACES_MIN: usize = 4;

/// A longer list, or map, is grown in place, so that its free places take no memory.
const DOUBLED_MAX: usize = 1_024;

/// Checks that the values of `text` take at most sixteen times its memory, or 32 MiB. In what is no JSON it
/// finds some number, but never fails.
///
/// # Errors
/// If they would take more.
pub(crate) fn fits(text: &[u8]) -> Result<(), Error> {
    let is_short = text.len() <= MEMORY_BYTES_MIN / MEMORY_PER_BYTE_WORST;
    let bytes_max = text.len().saturating_mul(MEMORY_PER_BYTE_MAX).max(MEMORY_BYTES_MIN);
    if is_short || estimate(text) <= bytes_max {
        return Ok(());
    }
    Err(Error::TooManyValues { memory_mib_max: bytes_max / (1024 * 1024) })
}

/// A list or a map that is open, and its items so far.
struct Open {
    is_map: bool,
    items: usize,
}

fn estimate(text: &[u8]) -> usize {
    let (mut bytes, mut open) = (VALUE_BYTES, Vec::<Open>::new());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if let (b',', Some(last)) = (byte, open.last_mut()) {
            last.items += 1;
        }
        if matches!(byte, b'}' | b']') {
            bytes = bytes.saturating_add(open.pop().map_or(0, Open::bytes));
        }
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b'}' | b']') {
            continue;
        }
        if let Some(last) = open.last_mut() {
            last.items = last.items.max(1);
        }
        if *byte == b'"' {
            let length = string_bytes(rest);
            bytes = bytes.saturating_add(allocated(length));
            rest = rest.get(length + 1..).unwrap_or_default();
        } else if matches!(byte, b'{' | b'[') {
            open.push(Open { is_map: *byte == b'{', items: 0 });
            if open.len() > DEPTH_MAX {
                // No reader goes on.
                break;
            }
        }
    }
    open.into_iter().map(Open::bytes).fold(bytes, usize::saturating_add)
}

impl Open {
    fn bytes(self) -> usize {
        let Self { is_map, items } = self;
        if is_map {
            let places = places(items);
            let free_too = if items > DOUBLED_MAX { items } else { places };
            let members = free_too.saturating_mul(KEY_BYTES + VALUE_BYTES);
            let places = places.saturating_mul(PLACE_BYTES);
            return members.saturating_add(places).saturating_add(MAP_BYTES);
        }
        let places = match items {
            0 => 0,
            1..=DOUBLED_MAX => items.next_power_of_two().max(PLACES_MIN),
            _ => items,
        };
        places.saturating_mul(VALUE_BYTES)
    }
}

/// The bytes of the string that `text` begins with, up to its quote.
fn string_bytes(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        at += found;
        if text[at] == b'"' {
            return at;
        }
        at = text.len().min(at + 2);
    }
    text.len()
}

/// The places of serde_json's maps for this many members: a power of two, of which one in eight stays
/// free.
pub(crate) fn places(members: usize) -> usize {
    match members {
        0 => 0,
        _ => members.saturating_mul(8).div_ceil(7).next_power_of_two().max(PLACES_MIN),
    }
}

/// The memory taken by an allocation of this many bytes.
pub(crate) fn allocated(bytes: usize) -> usize {
    const HEADER_BYTES: usize = 8;
    const ALIGNED_BYTES: usize = 16;
    const BYTES_MIN: usize = 32;
    match bytes {
        0 => 0,
        _ => bytes.saturating_add(HEADER_BYTES).next_multiple_of(ALIGNED_BYTES).max(BYTES_MIN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_and_short_ones_fit_whatever_they_hold() {
        let bytes = 4 * 1024 * 1024;
        let text = format!("{{\"a\":[\"{}\", 1.5e300], \"b\":{{}}}}", "x\\\"".repeat(bytes / 3));
        assert_eq!(fits(text.as_bytes()), Ok(()));
        let dense = |bytes: usize| format!("[{}0]", "[0],".repeat(bytes / 4 - 1));
        assert_eq!(fits(dense(MEMORY_BYTES_MIN / MEMORY_PER_BYTE_WORST).as_bytes()), Ok(()));
        for piece in ["0,", "[0],", "{\"\":0},", "{\"id\":1,\"tags\":[\"x\",\"y\"]},"] {
            let text = format!("[{}0]", piece.repeat(bytes / piece.len()));
            assert!(fits(text.as_bytes()).is_err(), "{piece}");
        }
    }

    #[test]
    fn what_is_no_json_is_looked_at_to_its_end() {
        for text in ["", "\"", "\"\\", "]}]", ",:", "{\"a", "[[\"x\\\"]", "\u{feff}é"] {
            assert!(estimate(text.as_bytes()) < 1_000, "{text}");
        }
        assert!(estimate(&b"[".repeat(1_000_000)) < 1_000_000);
    }

    #[test]
    fn no_value_takes_more_than_the_worst() {
        for piece in
            ["[0],", "{\"\":0},", "{},", "[],", "0,", "\"\",", "\"a\",", "[\"\"],", "[[0]],"]
        {
            let text = piece.repeat(1_000);
            let worst = text.len() * MEMORY_PER_BYTE_WORST;
            assert!(estimate(format!("[{text}]").as_bytes()) <= worst, "{piece}");
        }
    }
}
