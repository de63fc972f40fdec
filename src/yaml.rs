//! YAML as Go's yaml.v3, for which existing files were written, reads it, with the line of each
//! node.

pub(crate) mod data;
mod document;
mod expand;
mod message;
mod raw;

use raw::Raw;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::{NonFiniteFloatPolicy, Options, Spanned};
use std::fmt;

/// Most values that aliases add to a document, and most that it holds for them.
const NODES_MAX: usize = 1_000_000;

/// Values of that kind that any document may have, however short it is, and bytes of a longer one for each: a value
/// takes up to 200 bytes of memory.
const NODES_MIN: usize = 150_000;
const NODE_BYTES_MIN: usize = 10;

/// Most bytes of text in a document after its aliases are expanded.
const EXPANDED_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Bytes of text that any document may have after its aliases are expanded, and for each of its own bytes.
const EXPANDED_BYTES_MIN: usize = 32 * 1024 * 1024;
const EXPANDED_PER_BYTE_MAX: usize = 16;

/// Deepest nesting of lists and maps. The library takes up to 40 KiB of stack for each level, and a
/// thread may have no more than 2 MiB.
const DEPTH_MAX: usize = 32;

/// An error in a document.
#[derive(Debug)]
pub(crate) struct YamlError {
    /// The line, from 1, if it is known.
    pub(crate) line: Option<u32>,
    /// A fragment of a message.
    pub(crate) message: String,
    /// Whether the document exceeds a limit; it may be valid then.
    is_limit: bool,
}

/// A value and its place.
#[derive(Debug)]
pub(crate) struct Node {
    /// The line in which it begins, from 1. Of an alias: the line of its anchor.
    pub(crate) line: u32,
    /// The source text of a plain number, boolean or null; yaml.v3 reads that text when a string is
    /// expected.
    written: Option<String>,
    /// Where the lines of a string are in the file.
    pub(crate) layout: Layout,
    /// The value.
    pub(crate) kind: Kind,
}

/// Where the lines of a string are in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Each in its own line, the first one in this.
    Lines(u32),
    /// All in this one.
    One(u32),
    /// Folded: only known to begin after this line.
    Folded(u32),
}

/// A value.
#[derive(Debug)]
pub(crate) enum Kind {
    Nothing,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// In the order of the file, merge keys expanded.
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// Parses the first document of `text`. No document counts as null.
    pub(crate) fn parse(text: &str) -> Result<Self, YamlError> {
        let text = document::first(without_mark(text));
        let raw = read::<Spanned<Raw>>(&text)?;
        Ok(Self::of(&text, raw))
    }

    fn of(source: &str, raw: Spanned<Raw>) -> Self {
        let line = u32::try_from(raw.defined.line()).unwrap_or(u32::MAX).max(1);
        let span = raw.defined.span();
        let at = span.byte_offset().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
        let length = span.byte_len().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        let piece = source.get(at..at.saturating_add(length)).unwrap_or_default();
        let layout = layout(source, at, piece, line);
        let (kind, is_scalar) = match raw.value {
            Raw::Nothing => (Kind::Nothing, true),
            Raw::Bool(value) => (Kind::Bool(value), true),
            Raw::Int(value) => (Kind::Int(value), true),
            Raw::Float(value) => (Kind::Float(value), true),
            Raw::Text(text) => (Kind::Text(text), false),
            Raw::List(items) => {
                (Kind::List(items.into_iter().map(|item| Self::of(source, item)).collect()), false)
            }
            Raw::Map(entries) => {
                let node = |raw| Self::of(source, raw);
                let entries = entries.into_iter().map(|(key, value)| (node(key), node(value)));
                (Kind::Map(entries.collect()), false)
            }
        };
        Self { line, written: is_scalar.then(|| piece.trim().to_owned()), layout, kind }
    }

    /// A scalar as a string, like yaml.v3 reads it: `1.50` stays `1.50`.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Nothing => Some(""),
            Kind::Text(text) => Some(text),
            Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => self.written.as_deref(),
            Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// A boolean, as yaml.v3 reads one into a `bool`: there YAML 1.1's words are accepted.
    pub(crate) fn truth(&self) -> Option<bool> {
        match &self.kind {
            Kind::Bool(value) => Some(*value),
            Kind::Nothing => Some(false),
            Kind::Text(text) => match text.as_str() {
                "y" | "Y" | "yes" | "on" => Some(true),
                "n" | "N" | "no" | "off" => Some(false),
                _ => None,
            },
            Kind::Int(_) | Kind::Float(_) | Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// The items of a list; null counts as an empty one.
    pub(crate) fn list(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            Kind::Nothing => Some(&[]),
            Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) | Kind::Map(_) => None,
        }
    }

    /// The entries of a map; null counts as an empty one.
    pub(crate) fn map(&self) -> Option<&[(Self, Self)]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            Kind::Nothing => Some(&[]),
            Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) | Kind::List(_) => None,
        }
    }

    /// The value of this key in a map.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let entry = self.map()?.iter().find(|(name, _)| name.text() == Some(key));
        entry.map(|(_, value)| value)
    }

    /// Whether the value is null.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self.kind, Kind::Nothing)
    }

    /// The kind of the value, for messages.
    pub(crate) fn what(&self) -> &'static str {
        match &self.kind {
            Kind::Nothing => "nothing",
            Kind::Bool(_) => "a boolean",
            Kind::Int(_) => "an integer",
            Kind::Float(_) => "a number",
            Kind::Text(_) => "a string",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
        }
    }

    /// The value as JSON. Keys that are not strings become strings.
    pub(crate) fn json(&self) -> Value {
        match &self.kind {
            Kind::Nothing => Value::Null,
            Kind::Bool(value) => Value::from(*value),
            Kind::Int(value) => Value::from(*value),
            Kind::Float(value) => Value::from(*value),
            Kind::Text(text) => Value::from(text.as_str()),
            Kind::List(items) => items.iter().map(Self::json).collect(),
            Kind::Map(entries) => {
                let text =
                    |key: &Self| key.text().map_or_else(|| key.json().to_string(), str::to_owned);
                entries.iter().map(|(key, value)| (text(key), value.json())).collect()
            }
        }
    }
}

/// Parses the first document of `text` as JSON.
#[cfg(test)]
pub(crate) fn to_json(text: &str) -> Result<Value, YamlError> {
    read(&document::first(without_mark(text)))
}

/// Parses the first document of `text`, in which numbers may be NaN or infinite. The number of its values is not
/// limited, but for those that aliases add: `T` bounds its memory.
pub(crate) fn deserialize<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, YamlError> {
    // A value takes at least one byte, so only aliases add more than these.
    let mut options = options(text, text.len().saturating_add(alias_nodes_max(text)));
    options.non_finite_float_policy = NonFiniteFloatPolicy::PassThrough;
    read_with(&document::first(without_mark(text)), options)
}

/// The text without a byte order mark.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, YamlError> {
    read_with(text, options(text, alias_nodes_max(text)))
}

fn read_with<T: for<'de> Deserialize<'de>>(text: &str, options: Options) -> Result<T, YamlError> {
    let bytes_max = text.len().saturating_mul(EXPANDED_PER_BYTE_MAX);
    let bytes_max = bytes_max.clamp(EXPANDED_BYTES_MIN, EXPANDED_BYTES_MAX);
    if !expand::fits(text, bytes_max, alias_nodes_max(text)) {
        return Err(YamlError { line: None, message: message::ALIASES.to_owned(), is_limit: true });
    }
    serde_saphyr::from_str_with_options(text, options).map_err(|error| YamlError::of(&error))
}

impl YamlError {
    /// What the library reports, for people.
    pub(crate) fn of(error: &serde_saphyr::Error) -> Self {
        let line = error.location().and_then(|place| u32::try_from(place.line()).ok());
        let (message, is_limit) = (message::of(error), message::is_limit(error));
        Self { line: line.filter(|line| *line > 0), message, is_limit }
    }

    /// The error as the rest of a sentence that begins with the document.
    pub(crate) fn predicate(&self) -> String {
        let fault = if self.is_limit { "exceeds a limit" } else { "is not valid YAML" };
        format!("{fault}: {}", self.message)
    }
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Values that aliases may add to `text`.
fn alias_nodes_max(text: &str) -> usize {
    (text.len() / NODE_BYTES_MIN).clamp(NODES_MIN, NODES_MAX)
}

fn options(text: &str, nodes_max: usize) -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            flow_nesting_limit: DEPTH_MAX,
            max_documents: 1,
            max_nodes: nodes_max,
            max_events: nodes_max.saturating_mul(4),
            max_total_scalar_bytes: EXPANDED_BYTES_MAX,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: alias_nodes_max(text),
        },
        // As in yaml.v3: 0777 is octal, `yes` is a string.
        legacy_octal_numbers: true,
        strict_booleans: true,
    }
}

/// Where the lines of a string are whose source is `piece` at byte `at`, in line `line`.
fn layout(source: &str, at: usize, piece: &str, line: u32) -> Layout {
    let before = source.get(..at).unwrap_or_default();
    let above = before.trim_end_matches([' ', '\t', '\r', '\n']);
    let blank = before[above.len()..].matches('\n').count();
    // Only the first line is examined, so that no line is scanned once per value in it.
    if blank > 0 {
        let header = above.lines().next_back().unwrap_or_default();
        let header = header.split(" #").next().unwrap_or_default().trim_end();
        let sign = header.trim_end_matches(|char: char| matches!(char, '+' | '-' | '1'..='9'));
        // Of a block, only the line of its first non-blank line is certain.
        let blank = u32::try_from(blank).unwrap_or(u32::MAX);
        let first = line.saturating_sub(blank).saturating_add(1);
        match sign.chars().next_back() {
            Some('|') => return Layout::Lines(first),
            Some('>') => return Layout::Folded(first),
            _ => {}
        }
    }
    if piece.trim_end().contains('\n') { Layout::Folded(line) } else { Layout::One(line) }
}
