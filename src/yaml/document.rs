//! The first document of a YAML text, adapted where the YAML library differs from yaml.v3.

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span};
use std::borrow::Cow;

/// The first document of `text`; what follows it is ignored, as Go's `Decoder.Decode` does.
///
/// The library ends every block scalar with a line feed, even one that is cut off by the end of the
/// text. YAML has none there (section 8.1.1.2, `b-chomped-last`), so such a block scalar is given
/// the indicator that strips it. Line numbers stay the same.
pub(super) fn first(text: &str) -> Cow<'_, str> {
    if !may_differ(text) {
        return Cow::Borrowed(text);
    }
    let mut block = None;
    let mut before = 0;
    // A syntax error is reported when the document is read.
    for (event, span) in Parser::new_from_str(text).map_while(Result::ok) {
        if let Event::DocumentEnd = event {
            return ended(text, &span, block.as_ref());
        }
        if let Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..) = event {
            block = Some(Block { before, span });
        }
        before = span.end.byte_offset().unwrap_or(before);
    }
    Cow::Borrowed(text)
}

/// A block scalar.
struct Block {
    /// The byte that its header follows.
    before: usize,
    /// Its lines.
    span: Span,
}

/// Whether `text` can have a second document, or end inside a block scalar.
fn may_differ(text: &str) -> bool {
    let may_have_second = text.contains("\n---") || text.contains("\n...");
    may_have_second || text.starts_with("---") || !text.ends_with(['\n', '\r'])
}

/// The document of `text` that ends at `end` and whose last block scalar is `block`.
fn ended<'a>(text: &'a str, end: &Span, block: Option<&Block>) -> Cow<'a, str> {
    let at = end.end.byte_offset().unwrap_or(text.len());
    let (document, rest) = text.split_at_checked(at).unwrap_or((text, ""));
    let is_marked = !end.is_empty() || rest.trim_start().starts_with("---");
    if is_marked && !rest.is_empty() {
        return Cow::Borrowed(document);
    }
    let stripped = block.and_then(|block| stripped(text, block));
    stripped.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// `text` with the indicator `-` in the header of this block scalar, if the end of the text cuts
/// off its last line.
fn stripped(text: &str, Block { before, span }: &Block) -> Option<String> {
    let (start, end) = (span.start.byte_offset()?, span.end.byte_offset()?);
    if end < text.len() || text.ends_with(['\n', '\r']) {
        return None;
    }
    let last_line = text.rsplit('\n').next().unwrap_or(text);
    // A last line of spaces, no deeper than the block, is not part of it.
    if last_line.trim_start_matches(' ').is_empty() && last_line.len() <= span.start.col() {
        return None;
    }
    let above = text.get(..start)?.trim_end();
    // A document that begins with the block begins at the block's first line.
    let before = Some(*before).filter(|before| *before <= above.len()).unwrap_or(0);
    let header_start = above.rfind('\n').map_or(0, |at| at + 1).max(before);
    let header = above.get(header_start..)?;
    let is_sign = |at: usize| at == 0 || header[..at].ends_with([' ', '\t']);
    let (at, _) = header.match_indices(['|', '>']).find(|(at, _)| is_sign(*at))?;
    let (head, tail) = text.split_at(header_start + at + 1);
    let indicators = tail.find(|char: char| !matches!(char, '+' | '-' | '0'..='9'));
    let (indicators, tail) = tail.split_at(indicators.unwrap_or(tail.len()));
    Some(format!("{head}{}-{tail}", indicators.replace(['+', '-'], "")))
}
