//! Prepares a template's text for gotmpl: removes comments and trimmed white space as Go does.
//!
//! Gotmpl trims after a comment that only trims before, trims white space that Go does not, and
//! accepts a string that continues on the next line.

use super::TemplateError;
use super::blocks::Blocks;

/// Most bytes of the actions of a template, with their braces: they take up to a hundred times as much memory.
const ACTION_BYTES_MAX: usize = 256 * 1024;

/// White space in Go's lexer.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// Removes comments and trimmed white space, and checks the blocks. Every action stays in its line:
/// removed line breaks are put into the next action.
pub(super) fn read(text: &str) -> Result<String, TemplateError> {
    let mut reader = Reader {
        rest: text,
        line: 1,
        out: String::with_capacity(text.len()),
        breaks: 0,
        action_bytes: 0,
    };
    let mut blocks = Blocks::default();
    let mut is_trimmed = false;
    while let Some(start) = reader.rest.find("{{") {
        let inside = &reader.rest[start + 2..];
        let trims = inside.starts_with('-') && inside[1..].starts_with(BLANKS);
        reader.text(start, is_trimmed, trims);
        reader.skip(if trims { 3 } else { 2 });
        is_trimmed = if reader.rest.trim_start_matches(BLANKS).starts_with("/*") {
            reader.comment()?
        } else {
            reader.action(&mut blocks)?
        };
    }
    reader.text(reader.rest.len(), is_trimmed, false);
    blocks.end()?;
    Ok(reader.out)
}

struct Reader<'t> {
    rest: &'t str,
    line: u32,
    out: String,
    /// Line breaks that were removed.
    breaks: usize,
    /// Bytes of the actions so far.
    action_bytes: usize,
}

impl<'t> Reader<'t> {
    fn skip(&mut self, bytes: usize) -> &'t str {
        let (skipped, rest) = self.rest.split_at(bytes);
        let lines = u32::try_from(skipped.matches('\n').count()).unwrap_or(u32::MAX);
        self.line = self.line.saturating_add(lines);
        self.rest = rest;
        skipped
    }

    fn text(&mut self, bytes: usize, trims_start: bool, trims_end: bool) {
        let text = self.skip(bytes);
        let kept = if trims_start { text.trim_start_matches(BLANKS) } else { text };
        let kept = if trims_end { kept.trim_end_matches(BLANKS) } else { kept };
        self.breaks += text.matches('\n').count() - kept.matches('\n').count();
        self.out.push_str(kept);
    }

    /// Skips a comment. True if it trims the text after it.
    fn comment(&mut self) -> Result<bool, TemplateError> {
        let Some(end) = self.rest.find("*/") else {
            return Err(self.error("a comment has no closing */"));
        };
        let after = &self.rest[end + 2..];
        let mark = after.trim_start_matches(BLANKS);
        let blanks = after.len() - mark.len();
        let trims = blanks > 0 && mark.starts_with("-}}");
        if !trims && !mark.starts_with("}}") {
            return Err(self.error("a comment must be alone between {{ and }}"));
        }
        let comment = self.skip(end + 2 + blanks + if trims { 3 } else { 2 });
        self.breaks += comment.matches('\n').count();
        Ok(trims)
    }

    /// Copies an action. True if it trims the text after it.
    fn action(&mut self, blocks: &mut Blocks) -> Result<bool, TemplateError> {
        let length = length(self.rest).map_err(|message| self.error(message))?;
        let inside = &self.rest[..length];
        self.action_bytes += "{{".len() + length + "}}".len();
        if self.action_bytes > ACTION_BYTES_MAX {
            return Err(self.error(
                "the actions up to here have more than 256 KiB; take parts of the text from files",
            ));
        }
        let kept = inside.strip_suffix('-').filter(|kept| kept.ends_with(BLANKS));
        blocks.action(self.line, inside)?;
        self.skip(length + 2);
        self.out.push_str("{{");
        self.out.extend(std::iter::repeat_n('\n', std::mem::take(&mut self.breaks)));
        self.out.push_str(kept.unwrap_or(inside));
        self.out.push_str("}}");
        Ok(kept.is_some())
    }

    fn error(&self, message: &str) -> TemplateError {
        TemplateError { line: Some(self.line), message: message.to_owned() }
    }
}

/// The text between `{{` and `}}` of the actions that have a part in this line, from 1.
pub(super) fn in_line(text: &str, line: usize) -> impl Iterator<Item = &str> {
    let (mut rest, mut at) = (text, 1);
    std::iter::from_fn(move || {
        let (before, after) = rest.split_once("{{")?;
        let inside = &after[..length(after).unwrap_or(after.len())];
        let first = at + before.matches('\n').count();
        at = first + inside.matches('\n').count();
        rest = after.get(inside.len() + 2..).unwrap_or_default();
        Some((first..=at, inside))
    })
    .filter(move |(lines, _)| lines.contains(&line))
    .map(|(_, inside)| inside)
}

/// The length up to `}}`, which does not count within strings and characters.
fn length(inside: &str) -> Result<usize, &'static str> {
    let mut chars = inside.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '}' if inside[at..].starts_with("}}") => return Ok(at),
            quote @ ('"' | '\'' | '`') => loop {
                match chars.next() {
                    Some((_, char)) if char == quote => break,
                    Some((_, '\\')) if quote != '`' => {
                        chars.next();
                    }
                    Some((_, '\n')) if quote != '`' => {
                        return Err("a string has no closing quote in its line");
                    }
                    Some(_) => {}
                    None => return Err("a string has no closing quote"),
                }
            },
            _ => {}
        }
    }
    Err("an action begins with {{ and has no closing }}")
}
