//! A line of the screen: runs of text, each with a style and perhaps the target of a link.

use super::width;
use ratatui_core::style::Style;
use std::fmt::Write;
use std::sync::Arc;

/// Schemes of the links that a terminal may open.
const SCHEMES: [&str; 4] = ["http", "https", "mailto", "file"];

/// Bytes of a target: terminals ignore longer ones.
const TARGET_BYTES_MAX: usize = 2083;

/// A line of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) spans: Vec<Span>,
}

/// A run of text in a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) content: String,
    pub(crate) style: Style,
    pub(crate) target: Option<LinkTarget>,
}

/// The address that a link leads to: printable ASCII alone, so nothing in it can end the sequence that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkTarget(Arc<str>);

impl Line {
    /// A line of unstyled text.
    #[cfg(test)]
    pub(crate) fn raw(text: impl Into<String>) -> Self {
        Self::from(Span::raw(text))
    }

    /// The columns that it takes.
    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(|span| width(&span.content)).sum()
    }
}

#[cfg(test)]
impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.spans.iter().try_for_each(|span| f.write_str(&span.content))
    }
}

impl From<Span> for Line {
    fn from(span: Span) -> Self {
        Self { spans: vec![span] }
    }
}

impl From<Vec<Span>> for Line {
    fn from(spans: Vec<Span>) -> Self {
        Self { spans }
    }
}

impl Span {
    /// Text without a style of its own.
    pub(crate) fn raw(text: impl Into<String>) -> Self {
        Self::styled(text, Style::new())
    }

    /// Text in this style.
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { content: text.into(), style, target: None }
    }

    /// Makes the span a link to `target`.
    pub(crate) fn leading_to(self, target: Option<LinkTarget>) -> Self {
        Self { target, ..self }
    }
}

impl LinkTarget {
    /// The target of an address as a model writes it; `None` if it is none that a terminal is to open.
    pub(crate) fn of(address: &str) -> Option<Self> {
        let address = address.trim();
        let (scheme, rest) = address.split_once(':')?;
        let is_known = SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme));
        if !is_known || rest.is_empty() || address.contains(char::is_control) {
            return None;
        }
        let mut target = String::with_capacity(address.len());
        for byte in address.bytes() {
            match byte {
                b'!'..=b'~' => target.push(char::from(byte)),
                // A String takes all.
                _ => write!(target, "%{byte:02X}").unwrap_or(()),
            }
        }
        (target.len() <= TARGET_BYTES_MAX).then(|| Self(target.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_an_address_of_printable_ascii() {
        let check = |address: &str, expected: Option<&str>| {
            let target = LinkTarget::of(address);
            assert_eq!(target.as_ref().map(LinkTarget::as_str), expected, "{address:?}");
        };
        for address in
            ["https://a.example/b?c=d;e#f", "HTTP://a", "mailto:a@b.example", "file:///a"]
        {
            check(address, Some(address));
        }
        check(" https://a.example/caf\u{e9} x ", Some("https://a.example/caf%C3%A9%20x"));
        check("https://a/\u{202e}b\u{9c}", None);
        check("https://a/\u{202e}b", Some("https://a/%E2%80%AEb"));
        for address in [
            "",
            "a",
            "https:",
            "javascript:alert(1)",
            "data:,x",
            "vbscript:x",
            "x-man-page://a",
            "../a",
        ] {
            check(address, None);
        }
        for control in ["\u{1b}", "\u{7}", "\n", "\u{9c}", "\0"] {
            check(&format!("https://a/{control}]8;;x"), None);
        }
        check(&format!("https://a/{}", "x".repeat(TARGET_BYTES_MAX)), None);
    }
}
