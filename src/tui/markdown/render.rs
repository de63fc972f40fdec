//! Blocks as lines of the screen.

use super::super::text::{Line, LinkTarget, Span, cut, width, wrap};
use super::rest::Walk;
use super::theme::{Role, Theme};
use super::{Block, CodeSpan, Inline, Kind, Marker, table};
use ratatui_core::style::Style;
use std::ops::Range;

/// Where less than this is left beside a marker or a bar, what they mark stands below or without them.
const TEXT_COLUMNS_MIN: usize = 8;

/// Rules are short, so that they still fit after most resizes of the terminal.
const RULE_COLUMNS_MAX: usize = 40;

/// The lines of `block` on a screen of `width` columns (at least 1).
///
/// Code has no frame, so that what is copied from the screen is the code; in an item it is indented with it. No line
/// is wider than `width`, unless a single character is. There is no line for the end of a block: the
/// next one has its gap.
pub(crate) fn render(block: &Block, width: usize, theme: &Theme) -> Vec<Line> {
    let drawn = Page::lines(block, width, theme, &mut Walk::new(""));
    drawn.into_iter().map(Drawn::line).collect()
}

/// Where blocks are drawn.
#[derive(Clone, Copy)]
pub(super) struct Page<'a> {
    theme: &'a Theme,
    width: usize,
    base: Style,
}

/// A line, and whether it is code, which never begins beside a marker.
pub(super) struct Drawn {
    spans: Vec<Span>,
    is_code: bool,
    /// Where its text ends in that of all blocks, if it can be told apart from that of the next line.
    pub(super) end: Option<usize>,
}

impl Drawn {
    pub(super) fn line(self) -> Line {
        Line::from(self.spans)
    }

    fn empty() -> Self {
        Self { spans: Vec::new(), is_code: false, end: None }
    }
}

impl Page<'_> {
    /// The lines of `block`, but for those whose text `walk` leaves out.
    pub(super) fn lines(
        block: &Block,
        width: usize,
        theme: &Theme,
        walk: &mut Walk<'_>,
    ) -> Vec<Drawn> {
        let width = width.max(1);
        let page = Page { theme, width, base: theme.style(Role::Text) };
        page.block(block, walk)
    }

    fn block(&self, block: &Block, walk: &mut Walk<'_>) -> Vec<Drawn> {
        // The line before a block was printed with its first one.
        let gap = (block.gap && !walk.is_inside()).then(Drawn::empty);
        gap.into_iter().chain(self.kind(&block.kind, walk)).collect()
    }

    fn blocks(&self, blocks: &[Block], walk: &mut Walk<'_>) -> Vec<Drawn> {
        blocks.iter().flat_map(|block| self.block(block, walk)).collect()
    }

    fn kind(&self, kind: &Kind, walk: &mut Walk<'_>) -> Vec<Drawn> {
        match kind {
            Kind::Heading { level, text } => self.heading(*level, text, walk),
            Kind::Paragraph(text) => {
                let runs = Runs::inline(text, self.theme, self.base);
                let Some(start) = walk.leaf(&runs.text) else { return Vec::new() };
                walk.prose(text, start);
                self.prose(&runs, start, walk)
            }
            Kind::Item { marker, content } => self.item(*marker, content, walk),
            Kind::Quote(content) => self.quote(content, walk),
            Kind::CodeLine { spans, .. } => self.code(spans, walk),
            Kind::CodeCaption(text) => {
                let runs = Runs::from([(text.as_str(), self.theme.style(Role::Html))]);
                let Some(start) = walk.leaf(&runs.text) else { return Vec::new() };
                self.prose(&runs, start, walk)
            }
            Kind::Table(table) => table::lines(table, self.width, self.theme, self.base, walk)
                .into_iter()
                .map(|(spans, end)| Drawn { spans, is_code: false, end })
                .collect(),
            Kind::Source(text) => {
                let style = self.base.patch(self.theme.style(Role::Html));
                self.changing(&Runs::from([(text.as_str(), style)]), walk)
            }
            Kind::Rule => {
                let mark = if self.theme.is_plain() { "-" } else { "─" };
                let text = mark.repeat(self.width.min(RULE_COLUMNS_MAX));
                // Its text is none: it has another length in another window.
                let Some(_) = walk.leaf("") else { return Vec::new() };
                let spans = vec![Span::styled(text, self.theme.style(Role::Rule))];
                vec![Drawn { spans, is_code: false, end: Some(walk.end()) }]
            }
        }
    }

    fn heading(&self, level: u8, text: &[Inline], walk: &mut Walk<'_>) -> Vec<Drawn> {
        let role = if level == 1 { Role::Title } else { Role::Heading };
        let style = self.base.patch(self.theme.style(role));
        // Where nothing else can show that it is a heading, its marks do.
        let marks =
            if self.theme.is_plain() { "#".repeat(level.into()) + " " } else { String::new() };
        let mut runs = Runs::from([(marks.as_str(), style)]);
        runs.append(&Runs::inline(text, self.theme, style));
        self.changing(&runs, walk)
    }

    fn item(&self, marker: Marker, content: &[Block], walk: &mut Walk<'_>) -> Vec<Drawn> {
        let text = match marker {
            Marker::Bullet if self.theme.is_plain() => "- ".to_owned(),
            Marker::Bullet => "• ".to_owned(),
            Marker::Number(number) => format!("{number}. "),
            Marker::Task(true) => "[x] ".to_owned(),
            Marker::Task(false) => "[ ] ".to_owned(),
        };
        let style = self.base.patch(self.theme.style(Role::Marker));
        let indent = width(&text);
        // The marker was printed with the first line.
        let is_begun = walk.is_inside();
        let alone = |end| {
            let lines = Runs::from([(text.trim_end(), style)]).wrapped(self.width);
            lines.into_iter().map(move |spans| Drawn { spans, is_code: false, end })
        };
        if content.is_empty() {
            let Some(_) = walk.leaf("") else { return Vec::new() };
            return alone(Some(walk.end())).collect();
        }
        if self.width < indent + TEXT_COLUMNS_MIN {
            let marker = (!is_begun).then(|| alone(None)).into_iter().flatten();
            return marker.chain(self.blocks(content, walk)).collect();
        }
        let inner = Page { width: self.width - indent, ..*self };
        let mut lines = inner.blocks(content, walk);
        if !is_begun && lines.first().is_none_or(|line| line.is_code) {
            lines.insert(0, Drawn::empty());
        }
        for (at, line) in lines.iter_mut().enumerate() {
            if at == 0 && !is_begun {
                let alone = line.spans.is_empty();
                let text = if alone { text.trim_end() } else { &text };
                line.spans.insert(0, Span::styled(text.to_owned(), style));
            } else if !line.spans.is_empty() {
                line.spans.insert(0, Span::raw(" ".repeat(indent)));
            }
        }
        lines
    }

    fn quote(&self, content: &[Block], walk: &mut Walk<'_>) -> Vec<Drawn> {
        let base = self.base.patch(self.theme.style(Role::Quote));
        if self.width < 2 + TEXT_COLUMNS_MIN {
            return Page { base, ..*self }.blocks(content, walk);
        }
        let width = self.width - 2;
        let bar = if self.theme.is_plain() { "> " } else { "│ " };
        let style = self.theme.style(Role::Bar);
        let mut lines = Page { base, width, ..*self }.blocks(content, walk);
        for line in &mut lines {
            let bar = if line.spans.is_empty() { bar.trim_end() } else { bar };
            line.spans.insert(0, Span::styled(bar, style));
        }
        lines
    }

    fn code(&self, spans: &[CodeSpan], walk: &mut Walk<'_>) -> Vec<Drawn> {
        let styled = spans.iter().map(|span| {
            let style = self.theme.style(Role::Code(span.token));
            (span.text.as_str(), style)
        });
        let runs = Runs::collect(styled);
        let Some(start) = walk.leaf(&runs.text) else { return Vec::new() };
        let ranges = shifted(cut(&runs.text[start..], self.width), start);
        self.drawn(&runs, &ranges, true, walk)
    }

    /// Text that may become something else as long as its block is open.
    fn changing(&self, runs: &Runs, walk: &mut Walk<'_>) -> Vec<Drawn> {
        let Some(start) = walk.leaf(&runs.text) else { return Vec::new() };
        walk.changing_prose();
        self.prose(runs, start, walk)
    }

    fn prose(&self, runs: &Runs, start: usize, walk: &Walk<'_>) -> Vec<Drawn> {
        let ranges = shifted(wrap(&runs.text[start..], self.width), start);
        self.drawn(runs, &ranges, false, walk)
    }

    /// The lines of the leaf that `walk` came over last.
    fn drawn(
        &self,
        runs: &Runs,
        ranges: &[Range<usize>],
        is_code: bool,
        walk: &Walk<'_>,
    ) -> Vec<Drawn> {
        // The leaf ends with the text and a line break.
        let ends = ranges.iter().skip(1).map(|next| runs.text.len() + 1 - next.start);
        let ends = ends.map(|left| walk.end() - left).chain([walk.end()]);
        let lines = runs.lines(ranges).into_iter().zip(ends);
        lines.map(|(spans, end)| Drawn { spans, is_code, end: Some(end) }).collect()
    }
}

fn shifted(ranges: Vec<Range<usize>>, by: usize) -> Vec<Range<usize>> {
    ranges.into_iter().map(|range| range.start + by..range.end + by).collect()
}

/// Text with the style of each part of it.
#[derive(Default)]
pub(super) struct Runs {
    pub(super) text: String,
    parts: Vec<Part>,
}

/// A part of a text that looks the same and leads to the same place.
#[derive(Clone)]
struct Part {
    /// Where it ends.
    end: usize,
    style: Style,
    target: Option<LinkTarget>,
}

impl<const N: usize> From<[(&str, Style); N]> for Runs {
    fn from(parts: [(&str, Style); N]) -> Runs {
        Runs::collect(parts.into_iter())
    }
}

impl Runs {
    pub(super) fn inline(text: &[Inline], theme: &Theme, base: Style) -> Runs {
        let mut runs = Runs::default();
        for run in text {
            let target = run.target.clone().filter(|_| theme.has_links);
            runs.push(&run.text, theme.inline(run, base), target);
        }
        runs
    }

    fn collect<'a>(parts: impl Iterator<Item = (&'a str, Style)>) -> Runs {
        let mut runs = Runs::default();
        parts.for_each(|(text, style)| runs.push(text, style, None));
        runs
    }

    fn push(&mut self, text: &str, style: Style, target: Option<LinkTarget>) {
        self.text.push_str(text);
        self.parts.push(Part { end: self.text.len(), style, target });
    }

    pub(super) fn append(&mut self, other: &Runs) {
        let before = self.text.len();
        self.text.push_str(&other.text);
        self.parts.extend(other.parts.iter().map(|it| Part { end: before + it.end, ..it.clone() }));
    }

    /// The spans of each line, wrapped by words.
    pub(super) fn wrapped(&self, width: usize) -> Vec<Vec<Span>> {
        self.lines(&wrap(&self.text, width))
    }

    /// Whether a part begins before this place in the text.
    fn starts_before(&self, part: usize, place: usize) -> bool {
        part.checked_sub(1).and_then(|before| self.parts.get(before)).map_or(0, |it| it.end) < place
    }

    /// The spans of each of `lines`, which stand in order.
    fn lines(&self, lines: &[Range<usize>]) -> Vec<Vec<Span>> {
        let mut part = 0;
        let spans = lines.iter().map(|line| {
            let mut spans = Vec::new();
            let mut at = line.start;
            while let Some(Part { end, style, target }) = self.parts.get(part)
                && at < line.end
            {
                let end = *end;
                if end > at {
                    let text = &self.text[at..end.min(line.end)];
                    // An address that is its own text may still grow, if it does not end in this row.
                    let is_cut = || end > line.end || self.starts_before(part, line.start);
                    let is_bare = |target: &LinkTarget| target.as_str().contains(text);
                    let target = target.clone().filter(|it| !(is_cut() && is_bare(it)));
                    spans.push(Span::styled(text, *style).leading_to(target));
                    at = end.min(line.end);
                }
                if end <= line.end {
                    part += 1;
                }
            }
            spans
        });
        spans.collect()
    }
}
