//! Escapes of JSON, URLs and HTML.

/// Longest escape that is recognized, in bytes: `&#x00002f;`, with more leading zeros than usual.
pub(super) const ENTITY_BYTES_MAX: usize = 12;

/// `text` with the escapes of JSON, URLs and HTML for ASCII decoded, repeatedly:
/// all spellings of a text give the same result, and so does the result itself.
pub(crate) fn unescaped(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        plain.push(byte);
        // The decoded character may end another escape.
        while let Some((escape_bytes, byte)) = last_escape(&plain) {
            plain.truncate(plain.len() - escape_bytes);
            plain.push(byte);
        }
    }
    // Only ASCII was removed and inserted.
    String::from_utf8_lossy(&plain).into_owned()
}

/// The escape at the end of `text`: its length and its character.
fn last_escape(text: &[u8]) -> Option<(usize, u8)> {
    match text {
        [.., b'\\', b'u'] => None,
        [.., b'\\', b'b' | b'f' | b'n' | b'r' | b't'] => Some((2, b' ')),
        [.., b'\\', c] if c.is_ascii() => Some((2, *c)),
        [.., b';'] => last_entity(text),
        _ => last_hex(text, b"%", 2).or_else(|| last_hex(text, b"\\u", 4)),
    }
}

fn last_hex(text: &[u8], mark: &[u8], digits: usize) -> Option<(usize, u8)> {
    let (before, hex) = text.split_at_checked(text.len().checked_sub(digits)?)?;
    let byte = if before.ends_with(mark) { ascii(hex, 16)? } else { return None };
    Some((mark.len() + digits, byte))
}

fn last_entity(text: &[u8]) -> Option<(usize, u8)> {
    let near = &text[text.len().saturating_sub(ENTITY_BYTES_MAX)..];
    let entity = &near[near.iter().rposition(|byte| *byte == b'&')?..];
    let byte = match entity {
        [b'&', b'#', b'x' | b'X', hex @ .., b';'] => ascii(hex, 16)?,
        [b'&', b'#', decimal @ .., b';'] => ascii(decimal, 10)?,
        b"&amp;" => b'&',
        b"&lt;" => b'<',
        b"&gt;" => b'>',
        b"&quot;" => b'"',
        b"&apos;" => b'\'',
        _ => return None,
    };
    Some((entity.len(), byte))
}

fn ascii(digits: &[u8], radix: u32) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u8::from_str_radix(digits, radix).ok().filter(u8::is_ascii)
}
