//! The text of an error for a person. The client libraries and the plugins of editors make it by this rule, too:
//! `clients/error_texts.json` has the cases of their tests.

/// Characters by whose presence in a message a text counts as said: a message has a long text cut.
const SAID_CHARS: usize = 100;

/// The message of an error, and in parentheses what its detail says besides.
pub(crate) fn with_detail(message: &str, detail: &str) -> String {
    let more = additions(message, detail).map(|text| format!(" ({text})")).unwrap_or_default();
    format!("{message}{more}")
}

/// What `message` does not hold of `detail`. After the class of a failure these are parts, up to a rest that is said; a
/// class alone adds nothing. A detail without a class is one reason, which is shown whole.
fn additions(message: &str, detail: &str) -> Option<String> {
    let message = message.to_lowercase();
    let is_said = |text: &str| message.contains(&beginning(text).to_lowercase());
    let Some((class, rest)) = split_class(detail) else {
        return Some(detail.trim()).filter(|reason| !is_said(reason)).map(str::to_owned);
    };
    let (mut rest, mut parts) = (rest.trim(), Vec::new());
    while !is_said(rest) {
        let (part, more) = rest.split_once(": ").unwrap_or((rest, ""));
        parts.extend(Some(part.trim()).filter(|part| !is_said(part)));
        rest = more.trim();
    }
    (!parts.is_empty()).then(|| format!("{class}: {}", parts.join(": ")))
}

fn beginning(text: &str) -> &str {
    text.char_indices().nth(SAID_CHARS).map_or(text, |(end, _)| &text[..end])
}

/// The class that `detail` begins with, and the rest.
fn split_class(detail: &str) -> Option<(&str, &str)> {
    let is_of_class = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let is_class = |word: &str| !word.is_empty() && word.bytes().all(is_of_class);
    let alone = || detail.strip_suffix(':').map(|class| (class, ""));
    detail.split_once(": ").or_else(alone).filter(|(class, _)| is_class(class))
}
