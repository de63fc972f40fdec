//! The text of a paragraph, heading or cell: runs that each look the same.

use super::super::text::{LinkTarget, clean};
use super::{Face, Inline, Marks};
use pulldown_cmark::{CowStr, Event, Tag, TagEnd};
use std::ops::Range;

/// Puts runs of text together from the parser's events.
#[derive(Debug, Default)]
pub(super) struct InlineReader {
    runs: Vec<Inline>,
    /// How many emphases, strong emphases and strikes are open.
    emphasis: usize,
    strong: usize,
    strike: usize,
    /// The links and images that are open.
    targets: Vec<Target>,
    /// The formula in LaTeX that is open, which Markdown does not know: its backslashes are not those of escapes.
    formula: Option<Formula>,
}

/// A formula in LaTeX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Formula {
    /// Between `\(` and `\)`, on one line.
    Inline,
    /// Between `\[` and `\]`.
    Display,
}

/// A link or an image that is open.
#[derive(Debug)]
struct Target {
    face: Face,
    address: String,
    link: Option<LinkTarget>,
    /// Where its text starts: the number of runs, and the bytes of the last of them.
    start: (usize, usize),
}

impl InlineReader {
    /// Reads `event` if it belongs to a text; returns any other. `is_escaped`: a backslash stands before it.
    pub(super) fn read<'a>(&mut self, event: Event<'a>, is_escaped: bool) -> Option<Event<'a>> {
        match event {
            Event::Text(text) if is_escaped && self.is_of_formula(&text) => {
                self.push(&format!("\\{text}"), self.face());
            }
            Event::Text(text) => self.push(self.after_break(&text), self.face()),
            Event::Code(text) => self.push(&text, Face::Code),
            Event::InlineHtml(html) if is_line_break(&html) => self.push("\n", Face::Text),
            Event::InlineHtml(html) => self.push(&html, Face::Html),
            // Models write verses, and facts a line each, and mean the breaks. One in the source after `<br>` is
            // the same break.
            Event::SoftBreak if self.is_empty() || self.is_after_break() => {}
            Event::SoftBreak | Event::HardBreak => self.break_line(),
            Event::FootnoteReference(label) => self.push(&format!("[^{label}]"), Face::Text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.push(&text, Face::Code),
            Event::Start(tag) => return self.start(tag).map(Event::Start),
            Event::End(end) => return self.end(end).map(Event::End),
            event @ (Event::Html(_) | Event::Rule | Event::TaskListMarker(_)) => {
                return Some(event);
            }
        }
        None
    }

    /// Whether `text`, which a backslash stands before, is of a formula. One begins at `\(` or `\[`, but not right
    /// after a word, as in `array\[0\]`. Whether it ends is not asked, as its end may not have come yet.
    fn is_of_formula(&mut self, text: &str) -> bool {
        let is_end = text.starts_with([')', ']']);
        let begun = match text.as_bytes().first() {
            Some(b'(') => Some(Formula::Inline),
            Some(b'[') => Some(Formula::Display),
            Some(_) | None => None,
        };
        let was_open = self.formula.is_some();
        if was_open {
            self.formula = self.formula.filter(|_| !is_end);
        } else if !self.follows_word() {
            self.formula = begun;
        }
        was_open || self.formula.is_some()
    }

    /// Whether what comes next stands right after a word, in a script that has spaces between words and formulas.
    fn follows_word(&self) -> bool {
        let last = self.runs.last().and_then(|run| run.text.bytes().next_back());
        last.is_some_and(|last| last.is_ascii_alphanumeric())
    }

    /// Breaks the line, which ends a formula that stands on one.
    fn break_line(&mut self) {
        self.formula = self.formula.filter(|formula| *formula == Formula::Display);
        self.push("\n", self.face());
    }

    /// The runs that were read; there may be none.
    pub(super) fn take(&mut self) -> Vec<Inline> {
        std::mem::take(self).runs.into_iter().flat_map(with_bare_links).collect()
    }

    /// `text` without the white space that would begin a row of its own after a break of the line.
    fn after_break<'t>(&self, text: &'t str) -> &'t str {
        if self.is_after_break() { text.trim_start_matches([' ', '\t']) } else { text }
    }

    fn is_after_break(&self) -> bool {
        self.runs.last().is_some_and(|run| run.text.ends_with('\n'))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    fn start<'a>(&mut self, tag: Tag<'a>) -> Option<Tag<'a>> {
        if let Some(open) = self.stress(tag.to_end()) {
            *open += 1;
        } else if let Tag::Link { dest_url, .. } = tag {
            self.open(Face::Link, &dest_url);
        } else if let Tag::Image { dest_url, .. } = tag {
            self.open(Face::Image, &dest_url);
        } else {
            return Some(tag);
        }
        None
    }

    fn end(&mut self, end: TagEnd) -> Option<TagEnd> {
        if let Some(open) = self.stress(end) {
            *open = open.saturating_sub(1);
        } else if let TagEnd::Link | TagEnd::Image = end {
            self.close();
        } else {
            return Some(end);
        }
        None
    }

    /// The count of what `end` closes, if that is a kind of stress.
    fn stress(&mut self, end: TagEnd) -> Option<&mut usize> {
        if let TagEnd::Emphasis = end {
            Some(&mut self.emphasis)
        } else if let TagEnd::Strong = end {
            Some(&mut self.strong)
        } else if let TagEnd::Strikethrough = end {
            Some(&mut self.strike)
        } else {
            None
        }
    }

    fn open(&mut self, face: Face, address: &CowStr<'_>) {
        let start = (self.runs.len(), self.runs.last().map_or(0, |run| run.text.len()));
        let (shown, link) = (clean(address).replace('\n', " "), LinkTarget::of(address));
        self.targets.push(Target { face, address: shown, link, start });
    }

    /// A link is followed by its address, unless its text is the address; so is the description of an image, of
    /// which the address alone is shown where it has none.
    fn close(&mut self) {
        let Some(Target { face, address, link, start }) = self.targets.pop() else { return };
        let text = self.text_since(start);
        if face == Face::Image && text.is_empty() {
            self.push_linked(&address, Face::Image, link);
        } else if !address.is_empty() && !says(&address, &text) {
            let separator = if text.is_empty() { "" } else { " " };
            self.push(separator, Face::Text);
            self.push_linked(&format!("({address})"), Face::Address, link);
        }
    }

    fn text_since(&self, (runs, bytes): (usize, usize)) -> String {
        let before = runs.checked_sub(1).and_then(|last| self.runs.get(last));
        let grown = before.and_then(|run| run.text.get(bytes..)).unwrap_or_default();
        let later = self.runs.iter().skip(runs).map(|run| run.text.as_str());
        std::iter::once(grown).chain(later).collect()
    }

    fn face(&self) -> Face {
        self.targets.last().map_or(Face::Text, |target| target.face)
    }

    /// A part of the link that is open, if one is.
    fn push(&mut self, text: &str, face: Face) {
        let link = self.targets.iter().find_map(|target| target.link.clone());
        self.push_linked(text, face, link);
    }

    fn push_linked(&mut self, text: &str, face: Face, target: Option<LinkTarget>) {
        // Cleaned here and not before it was parsed: entities like `&#27;` are characters by now.
        let text = clean(text);
        if text.is_empty() {
            return;
        }
        let (emphasis, strong, strike) = (self.emphasis > 0, self.strong > 0, self.strike > 0);
        let marks = Marks { emphasis, strong, strike };
        match self.runs.last_mut() {
            Some(run) if (run.face, run.marks, &run.target) == (face, marks, &target) => {
                run.text.push_str(&text);
            }
            _ => self.runs.push(Inline { text, face, marks, target }),
        }
    }
}

/// Whether the text of a link is its address.
fn says(address: &str, text: &str) -> bool {
    address == text || address.strip_prefix("mailto:") == Some(text)
}

/// The parts of a run, of which each address without any marks of a link leads to where it says.
fn with_bare_links(run: Inline) -> Vec<Inline> {
    if run.face != Face::Text || run.target.is_some() || !run.text.contains("://") {
        return vec![run];
    }
    let Inline { text, face, marks, .. } = run;
    let part = |text: &str, target| Inline { text: text.to_owned(), face, marks, target };
    let mut parts = Vec::new();
    let mut rest = text.as_str();
    while let Some(range) = bare_address(rest) {
        let (before, address) = (&rest[..range.start], &rest[range.clone()]);
        if !before.is_empty() {
            parts.push(part(before, None));
        }
        parts.push(part(address, LinkTarget::of(address)));
        rest = &rest[range.end..];
    }
    if !rest.is_empty() {
        parts.push(part(rest, None));
    }
    parts
}

/// Where the first address in `text` stands that begins a word, without the punctuation of the sentence around it.
fn bare_address(text: &str) -> Option<Range<usize>> {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`' | '|');
    let starts = text.match_indices("http").map(|(at, _)| at);
    let mut found = starts.filter_map(|start| {
        let is_word = !text[..start].ends_with(char::is_alphanumeric);
        let rest = text.get(start..).filter(|_| is_word)?;
        let scheme = ["https://", "http://"].into_iter().find(|scheme| rest.starts_with(scheme))?;
        let mut address = &rest[..rest.find(is_end).unwrap_or(rest.len())];
        while let Some(last) = address.chars().next_back() {
            let is_closing = last == ')' && !address.contains('(');
            if !is_closing
                && !matches!(last, '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '*' | '_' | ']')
            {
                break;
            }
            address = &address[..address.len() - last.len_utf8()];
        }
        (address.len() > scheme.len()).then(|| start..start + address.len())
    });
    found.next()
}

/// `<br>`, which answers use in the cells of tables.
fn is_line_break(html: &str) -> bool {
    let name = html.trim_start_matches('<').trim_end_matches('>');
    name.trim_end_matches('/').trim().eq_ignore_ascii_case("br")
}
