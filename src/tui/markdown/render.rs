//! Blocks as lines of the screen.

use super::super::text::{cut, width, wrap};
use super::theme::{Role, Theme};
use super::{Block, CodeSpan, Inline, Kind, Marker, table};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::ops::Range;

/// Where less than this is left beside a marker or a bar, what they mark stands below or without them.
const TEXT_COLUMNS_MIN: usize = 8;

/// Rules are short, so that they still fit after most resizes of the terminal.
const RULE_COLUMNS_MAX: usize = 40;

/// The lines of `block` on a screen of `width` columns (at least 1).
///
/// Code starts at column 0, also in items, so that what is copied from the screen is the code. No line
/// is wider than `width`, unless a single character is. There is no line for the end of a block: the
/// next one has its gap.
pub(crate) fn render(block: &Block, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let width = width.max(1);
    let page = Page { theme, width, code_width: width, base: theme.style(Role::Text) };
    page.block(block).into_iter().map(|drawn| Line::from(drawn.spans)).collect()
}

/// Where blocks are drawn.
#[derive(Clone, Copy)]
struct Page<'a> {
    theme: &'a Theme,
    width: usize,
    /// The width of code, which is not indented with the items that it stands in.
    code_width: usize,
    base: Style,
}

/// A line, and whether it stays where it is when what is around it is indented.
struct Drawn {
    spans: Vec<Span<'static>>,
    is_code: bool,
}

impl Page<'_> {
    fn block(&self, block: &Block) -> Vec<Drawn> {
        let gap = block.gap.then(|| Drawn { spans: Vec::new(), is_code: false });
        gap.into_iter().chain(self.kind(&block.kind)).collect()
    }

    fn blocks(&self, blocks: &[Block]) -> Vec<Drawn> {
        blocks.iter().flat_map(|block| self.block(block)).collect()
    }

    fn kind(&self, kind: &Kind) -> Vec<Drawn> {
        match kind {
            Kind::Heading { level, text } => self.heading(*level, text),
            Kind::Paragraph(text) => self.prose(&Runs::inline(text, self.theme, self.base)),
            Kind::Item { marker, content } => self.item(*marker, content),
            Kind::Quote(content) => self.quote(content),
            Kind::CodeLine { spans, .. } => self.code(spans),
            Kind::Table(table) => {
                drawn(table::lines(table, self.width, self.theme, self.base)).collect()
            }
            Kind::Source(text) => {
                let style = self.base.patch(self.theme.style(Role::Html));
                self.prose(&Runs::from([(text.as_str(), style)]))
            }
            Kind::Rule => {
                let mark = if self.theme.is_plain() { "-" } else { "─" };
                let text = mark.repeat(self.width.min(RULE_COLUMNS_MAX));
                self.prose(&Runs::from([(text.as_str(), self.theme.style(Role::Rule))]))
            }
        }
    }

    fn heading(&self, level: u8, text: &[Inline]) -> Vec<Drawn> {
        let role = if level == 1 { Role::Title } else { Role::Heading };
        let style = self.base.patch(self.theme.style(role));
        // Where nothing else can show that it is a heading, its marks do.
        let marks =
            if self.theme.is_plain() { "#".repeat(level.into()) + " " } else { String::new() };
        let mut runs = Runs::from([(marks.as_str(), style)]);
        runs.append(&Runs::inline(text, self.theme, style));
        self.prose(&runs)
    }

    fn item(&self, marker: Marker, content: &[Block]) -> Vec<Drawn> {
        let text = match marker {
            Marker::Bullet if self.theme.is_plain() => "- ".to_owned(),
            Marker::Bullet => "• ".to_owned(),
            Marker::Number(number) => format!("{number}. "),
            Marker::Task(true) => "[x] ".to_owned(),
            Marker::Task(false) => "[ ] ".to_owned(),
        };
        let style = self.base.patch(self.theme.style(Role::Marker));
        let indent = width(&text);
        if self.width < indent + TEXT_COLUMNS_MIN {
            let mut lines = self.prose(&Runs::from([(text.as_str(), style)]));
            lines.extend(self.blocks(content));
            return lines;
        }
        let inner = Page { width: self.width - indent, ..*self };
        let mut lines = inner.blocks(content);
        if lines.first().is_none_or(|line| line.is_code) {
            lines.insert(0, Drawn { spans: Vec::new(), is_code: false });
        }
        for (at, line) in lines.iter_mut().enumerate() {
            if at == 0 {
                let alone = line.spans.is_empty();
                let text = if alone { text.trim_end() } else { &text };
                line.spans.insert(0, Span::styled(text.to_owned(), style));
            } else if !line.is_code && !line.spans.is_empty() {
                line.spans.insert(0, Span::raw(" ".repeat(indent)));
            }
        }
        lines
    }

    fn quote(&self, content: &[Block]) -> Vec<Drawn> {
        let base = self.base.patch(self.theme.style(Role::Quote));
        if self.width < 2 + TEXT_COLUMNS_MIN {
            return Page { base, ..*self }.blocks(content);
        }
        let width = self.width - 2;
        let bar = if self.theme.is_plain() { "> " } else { "│ " };
        let style = self.theme.style(Role::Bar);
        let mut lines = Page { base, width, code_width: width, ..*self }.blocks(content);
        for line in &mut lines {
            line.is_code = false;
            let bar = if line.spans.is_empty() { bar.trim_end() } else { bar };
            line.spans.insert(0, Span::styled(bar, style));
        }
        lines
    }

    fn code(&self, spans: &[CodeSpan]) -> Vec<Drawn> {
        let styled = spans.iter().map(|span| {
            let style = self.theme.style(Role::Code(span.token));
            (span.text.as_str(), style)
        });
        let runs = Runs::collect(styled);
        let lines = runs.lines(&cut(&runs.text, self.code_width));
        lines.into_iter().map(|spans| Drawn { spans, is_code: true }).collect()
    }

    fn prose(&self, runs: &Runs) -> Vec<Drawn> {
        drawn(runs.wrapped(self.width)).collect()
    }
}

fn drawn(lines: Vec<Vec<Span<'static>>>) -> impl Iterator<Item = Drawn> {
    lines.into_iter().map(|spans| Drawn { spans, is_code: false })
}

/// Text with the style of each part of it.
#[derive(Default)]
pub(super) struct Runs {
    pub(super) text: String,
    /// Where each part ends.
    styles: Vec<(usize, Style)>,
}

impl<const N: usize> From<[(&str, Style); N]> for Runs {
    fn from(parts: [(&str, Style); N]) -> Runs {
        Runs::collect(parts.into_iter())
    }
}

impl Runs {
    pub(super) fn inline(text: &[Inline], theme: &Theme, base: Style) -> Runs {
        Runs::collect(text.iter().map(|run| (run.text.as_str(), theme.inline(run, base))))
    }

    fn collect<'a>(parts: impl Iterator<Item = (&'a str, Style)>) -> Runs {
        let mut runs = Runs::default();
        for (text, style) in parts {
            runs.text.push_str(text);
            runs.styles.push((runs.text.len(), style));
        }
        runs
    }

    pub(super) fn append(&mut self, other: &Runs) {
        let before = self.text.len();
        self.text.push_str(&other.text);
        self.styles.extend(other.styles.iter().map(|(end, style)| (before + end, *style)));
    }

    /// The spans of each line, wrapped by words.
    pub(super) fn wrapped(&self, width: usize) -> Vec<Vec<Span<'static>>> {
        self.lines(&wrap(&self.text, width))
    }

    /// The spans of each of `lines`, which stand in order.
    fn lines(&self, lines: &[Range<usize>]) -> Vec<Vec<Span<'static>>> {
        let mut part = 0;
        let spans = lines.iter().map(|line| {
            let mut spans = Vec::new();
            let mut at = line.start;
            while at < line.end && part < self.styles.len() {
                let (end, style) = self.styles[part];
                if end > at {
                    let text = &self.text[at..end.min(line.end)];
                    spans.push(Span::styled(text.to_owned(), style));
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
