//! Stand-in.
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use super::text::wrap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone { Dark, Light }
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colours { True, Indexed256, Ansi16, Attributes, Plain }
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Theme { pub(crate) tone: Tone, pub(crate) colours: Colours }
impl Theme { pub(crate) fn is_plain(&self) -> bool { self.colours == Colours::Plain } }
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block { pub(crate) gap: bool, text: String }
#[derive(Debug, Default)]
pub(crate) struct Markdown { rest: String, closed: Vec<Block>, began: bool, gap: bool }
impl Markdown {
    pub(crate) fn push(&mut self, piece: &str) {
        self.rest.push_str(piece);
        while let Some(at) = self.rest.find('\n') {
            let line: String = self.rest.drain(..=at).collect();
            self.line(line.trim_end());
        }
    }
    fn line(&mut self, line: &str) {
        if line.is_empty() { self.gap = self.began; return; }
        self.closed.push(Block { gap: std::mem::take(&mut self.gap), text: line.to_owned() });
        self.began = true;
    }
    pub(crate) fn finish(&mut self) { let rest = std::mem::take(&mut self.rest); self.line(&rest); }
    pub(crate) fn take_closed(&mut self) -> Vec<Block> { std::mem::take(&mut self.closed) }
    pub(crate) fn open(&self) -> Vec<Block> {
        if self.rest.is_empty() { return Vec::new(); }
        vec![Block { gap: self.gap, text: self.rest.clone() }]
    }
}
pub(crate) fn render(block: &Block, width: usize, _theme: &Theme) -> Vec<Line<'static>> {
    let lines = wrap(&block.text, width).into_iter();
    lines.map(|range| Line::raw(block.text[range].to_owned())).collect()
}
pub(crate) fn unused() -> Style { Style::new().fg(Color::Red) }
