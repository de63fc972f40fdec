//! The pieces that are printed once: prompts, blocks of answers, reasoning, tool calls and notes.

use super::live::Above;
use super::look::{Look, Part};
use super::{one_line, seconds, styled};
use crate::tui::markdown::{Block, Committed, Kind, Rest};
use crate::tui::model::{Note, PROMPT_LINES_MAX, Piece, ToolCall, ToolState};
use crate::tui::text::{Line, clean, width, wrap};
use ratatui_core::style::Style;
use std::borrow::Cow;

/// Lines of a result that are printed unless it is wanted in full.
const RESULT_LINES_MAX: usize = 4;

/// Lines of a longer prompt that are printed.
const PROMPT_LINES_FIRST: usize = 10;

/// A line of code that has more columns is cut.
const CODE_COLUMNS_MAX: usize = 64 * 1024;

/// Columns of a dropped prompt that are printed.
const DROPPED_COLUMNS_MAX: usize = 200;

/// Prints pieces, with empty lines between them where a reader expects them.
#[derive(Clone, Debug)]
pub(crate) struct Printer {
    pub(crate) look: Look,
    /// The terminal wraps lines of code itself, so that a long one is one line when it is copied.
    keeps_code: bool,
    last: Option<Last>,
    /// The printed part of an answer whose blocks are still open.
    committed: Committed,
    /// The part of those blocks in the live region.
    shown: Rest,
}

/// How much of the open blocks of an answer may be drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenRows {
    /// Lines that may be printed.
    pub(crate) printed_max: usize,
    /// Rows of the live region.
    pub(crate) live: usize,
}

/// The last printed piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Prompt,
    Block,
    Reasoning,
    Tool,
    Note,
    Lines,
}

impl Printer {
    pub(crate) fn new(look: Look, keeps_code: bool) -> Self {
        let (committed, shown) = (Committed::default(), Rest::default());
        Self { look, keeps_code, last: None, committed, shown }
    }

    /// The lines of `piece`, none wider than `columns` but for those of code.
    pub(crate) fn lines(&mut self, piece: &Piece, columns: usize, is_unfolded: bool) -> Vec<Line> {
        let content = self.content(piece, columns.max(1), is_unfolded);
        let Some(last) = last(piece) else { return Vec::new() };
        let gap = self.has_gap(piece, &content).then(Line::default);
        self.last = Some(last);
        gap.into_iter().chain(content).collect()
    }

    /// Draws the open blocks of an answer. Returns the lines that can be printed, because nothing that follows
    /// changes them, and those for the live region.
    pub(crate) fn open(
        &mut self,
        blocks: &[Block],
        columns: usize,
        room: OpenRows,
    ) -> (Vec<Line>, Vec<Line>) {
        let mut rest = self.committed.rest(blocks, columns.max(1), &self.look.theme);
        if let Some(first) = rest.lines.first()
            && self.has_gap_before_open(first.spans.is_empty())
        {
            rest = rest.with_gap();
        }
        let mut count = rest.settled_lines();
        if rest.is_prose() {
            // Prose that does not settle for long is printed as it is.
            count = count.max(rest.lines.len().saturating_sub(room.live));
        }
        let count = rest.place_after(count.min(room.printed_max)).unwrap_or(0);
        let printed = rest.lines[..count].to_vec();
        if count > 0 {
            self.committed.commit(&rest, count);
            self.last = Some(Last::Block);
        }
        self.shown = rest.after(count);
        let more = self.shown.lines.len().saturating_sub(room.live);
        let mut live = self.shown.lines.clone();
        if more > 0 {
            // The first lines and not the last ones: a terminal that pushes them above its screen has then
            // all that was before them.
            let first = room.live.saturating_sub(1);
            self.shown = std::mem::take(&mut self.shown).truncated(first);
            live.truncate(first);
            let text = one_line(&format!("… {} more lines", more + 1), columns);
            live.extend((room.live > 0).then(|| styled(text, self.look.style(Part::Quiet))));
        }
        (printed, live)
    }

    /// How many lines of the live region are of the open blocks.
    pub(crate) fn open_lines(&self) -> usize {
        self.shown.lines.len()
    }

    /// The terminal has pushed lines of the live region above its screen. Those of an answer are printed then,
    /// if they are whole; returns the number of lines.
    pub(crate) fn pushed_up(&mut self, above: Above) -> usize {
        let shown = std::mem::take(&mut self.shown);
        let count = above.lines.min(shown.lines.len());
        let count = shown.place_after(count).unwrap_or(count);
        let count = if count <= above.whole { count } else { 0 };
        if count > 0 {
            self.committed.commit(&shown, count);
            self.last = Some(Last::Block);
        }
        self.shown = shown.after(count);
        count
    }

    /// No answer is open.
    pub(super) fn close(&mut self) {
        self.shown = Rest::default();
    }

    /// Whether a line stands empty before the open part of an answer, whose first block has a `gap` of
    /// its own or not.
    pub(super) fn has_gap_before_open(&self, gap: bool) -> bool {
        match self.last {
            None | Some(Last::Block) => false,
            Some(Last::Prompt | Last::Reasoning | Last::Tool | Last::Note | Last::Lines) => !gap,
        }
    }

    fn has_gap(&self, piece: &Piece, content: &[Line]) -> bool {
        let Some(first) = content.first() else { return false };
        match (self.last, piece) {
            (None, _) => false,
            // The gap between two blocks is drawn with the second one.
            (Some(_), Piece::Block(_)) => self.has_gap_before_open(first.spans.is_empty()),
            // It belongs to the line that was typed right above it.
            (Some(_), Piece::Prompt { is_echoed: true, .. }) => false,
            (Some(before), piece) => {
                let is_same = Some(before) == last(piece);
                !(is_same && matches!(before, Last::Tool | Last::Note))
            }
        }
    }

    fn content(&mut self, piece: &Piece, columns: usize, is_unfolded: bool) -> Vec<Line> {
        match piece {
            Piece::Prompt { attachments, is_echoed: true, .. } => {
                self.attached(attachments, columns)
            }
            Piece::Prompt { text, written, attachments, is_echoed: false } => {
                let style = self.look.style(Part::Prompt);
                let text = self.prompt(text, written.as_deref(), is_unfolded);
                let mut lines = wrapped(&clean(&text), self.look.signs().prompt, columns, style);
                lines.extend(self.attached(attachments, columns));
                lines
            }
            Piece::Block(block) => {
                let is_whole = self.keeps_code && matches!(block.kind, Kind::CodeLine { .. });
                let columns = if is_whole { CODE_COLUMNS_MAX } else { columns };
                self.committed.complete(block, columns, &self.look.theme)
            }
            Piece::AnswerEnd => {
                self.committed.clear();
                Vec::new()
            }
            Piece::Reasoning { text, seconds } => {
                self.reasoning(text, *seconds, columns, is_unfolded)
            }
            Piece::Tool(call) => self.tool(call, columns, is_unfolded),
            Piece::Unfolded(piece) => self.content(piece, columns, true),
            Piece::Note(note, text) => self.note(*note, text, columns),
            Piece::Dropped { text, turns, .. } => {
                let what = if text.is_empty() { "" } else { ": " };
                let text = one_line(text, DROPPED_COLUMNS_MAX);
                let which = match turns {
                    0 | 1 => "the last turn was dropped".to_owned(),
                    turns => format!("the last {turns} turns were dropped"),
                };
                let text = format!("{which}{what}{text}");
                self.note(Note::Information, &text, columns)
            }
            Piece::Lines(lines) => {
                let lines = lines.iter().flat_map(|line| line.split('\n'));
                lines.flat_map(|line| row(line, columns)).collect()
            }
        }
    }

    /// A prompt as it is shown. Plain text has no key that shows it in full.
    fn prompt<'a>(
        &self,
        text: &'a str,
        written: Option<&'a str>,
        is_unfolded: bool,
    ) -> Cow<'a, str> {
        if is_unfolded || self.look.theme.is_plain() {
            return Cow::Borrowed(text);
        }
        let text = written.unwrap_or(text);
        let count = text.lines().count();
        if count <= PROMPT_LINES_MAX {
            return Cow::Borrowed(text);
        }
        let first: Vec<_> = text.lines().take(PROMPT_LINES_FIRST).collect();
        let more = count - first.len();
        Cow::Owned(format!("{}\n… {more} more lines (Ctrl-O shows them)", first.join("\n")))
    }

    /// What goes with a prompt.
    fn attached(&self, names: &[String], columns: usize) -> Vec<Line> {
        let style = self.look.style(Part::Quiet);
        let names = names.iter().filter(|name| !name.is_empty());
        names.flat_map(|name| wrapped(&format!("attached: {name}"), "  ", columns, style)).collect()
    }

    fn reasoning(&self, text: &str, seconds: u64, columns: usize, is_unfolded: bool) -> Vec<Line> {
        let (sign, style) = (self.look.signs().reasoning, self.look.style(Part::Quiet));
        if is_unfolded {
            return wrapped(text, sign, columns, style);
        }
        let count = text.lines().count();
        let lines = if count == 1 { "1 line".to_owned() } else { format!("{count} lines") };
        let time = if seconds > 0 { format!(" for {seconds} s") } else { String::new() };
        let hint = if self.look.theme.is_plain() { "" } else { " (Ctrl-O shows it)" };
        wrapped(&format!("thought{time}, {lines}{hint}"), sign, columns, style)
    }

    fn tool(&self, call: &ToolCall, columns: usize, is_unfolded: bool) -> Vec<Line> {
        let signs = self.look.signs();
        let (sign, part, took) = match call.state {
            ToolState::Succeeded(took) => (signs.tool, Part::Tool, took),
            ToolState::Failed(took) => (signs.tool_failed, Part::Error, took),
            ToolState::Streaming | ToolState::Requested | ToolState::Running => {
                (signs.tool_running, Part::Quiet, None)
            }
        };
        let took = took.map(|took| format!("  {}", seconds(took))).unwrap_or_default();
        let style = self.look.style(part);
        let head = format!("{}{}{took}", call.name, arguments(&call.input));
        let mut lines = match is_unfolded {
            true => wrapped(&head, sign, columns, style),
            false => {
                let room = columns.saturating_sub(width(sign) + width(&took));
                let head = one_line(&format!("{}{}", call.name, arguments(&call.input)), room);
                wrapped(&format!("{head}{took}"), sign, columns, style)
            }
        };
        lines.extend(self.result(&call.result, columns, is_unfolded));
        lines
    }

    fn result(&self, result: &str, columns: usize, is_unfolded: bool) -> Vec<Line> {
        let style = self.look.style(Part::Quiet);
        let all = result.trim_end().lines();
        if is_unfolded {
            return all.flat_map(|line| wrapped(line, "  ", columns, style)).collect();
        }
        let count = all.clone().count();
        let is_cut = count > RESULT_LINES_MAX;
        let shown = if is_cut { RESULT_LINES_MAX - 1 } else { count };
        // Too narrow for an indentation, as in `wrapped`.
        let (indent, room) = if columns > 2 { ("  ", columns - 2) } else { ("", columns) };
        let lines =
            all.take(shown).map(|line| styled(format!("{indent}{}", one_line(line, room)), style));
        let hint = if self.look.theme.is_plain() { "" } else { " (Ctrl-O shows them)" };
        let rest = is_cut.then(|| format!("… {} more lines{hint}", count - shown));
        let rest = rest.into_iter().flat_map(|rest| wrapped(&rest, "  ", columns, style));
        lines.chain(rest).collect()
    }

    fn note(&self, note: Note, text: &str, columns: usize) -> Vec<Line> {
        let signs = self.look.signs();
        let (sign, part) = match note {
            Note::Information => (signs.information, Part::Quiet),
            Note::Warning => (signs.warning, Part::Warning),
            Note::Error => (signs.error, Part::Error),
        };
        wrapped(&clean(text), sign, columns, self.look.style(part))
    }
}

fn last(piece: &Piece) -> Option<Last> {
    Some(match piece {
        Piece::AnswerEnd => return None,
        Piece::Prompt { attachments, is_echoed: true, .. }
            if attachments.iter().all(String::is_empty) =>
        {
            return None;
        }
        Piece::Prompt { .. } => Last::Prompt,
        Piece::Block(_) => Last::Block,
        Piece::Reasoning { .. } => Last::Reasoning,
        Piece::Tool(_) => Last::Tool,
        Piece::Unfolded(_) | Piece::Lines(_) => Last::Lines,
        Piece::Note(..) | Piece::Dropped { .. } => Last::Note,
    })
}

/// Arguments as they are shown after the name of a tool.
pub(super) fn arguments(input: &str) -> String {
    match input.trim() {
        "" | "{}" => String::new(),
        input => format!(" {input}"),
    }
}

/// A row of a list of two columns. What does not fit in the line stands below the second column, or below the first
/// one where the second begins too far to the right.
fn row(text: &str, columns: usize) -> Vec<Line> {
    let Some(first) = wrap(text, columns.max(1)).into_iter().next() else { return Vec::new() };
    let rest = text[first.end..].trim_start();
    let start = text.len() - text.trim_start().len();
    let second = text[start..].find("  ").map(|at| {
        let rest = &text[start + at..];
        width(&text[..text.len() - rest.trim_start().len()])
    });
    let second = second.filter(|at| *at <= columns / 2);
    let below = second.unwrap_or(if start > 0 { start + 2 } else { 0 }).min(columns / 2);
    let mut lines = vec![styled(text[first].to_owned(), Style::new())];
    let rows = match rest {
        "" => Vec::new(),
        rest => wrap(rest, columns.saturating_sub(below).max(1)),
    };
    let rows = rows.into_iter().map(|range| format!("{}{}", " ".repeat(below), &rest[range]));
    lines.extend(rows.map(|row| styled(row, Style::new())));
    lines
}

/// `text` wrapped after a sign; the other lines are indented to its width as far as there is room.
pub(super) fn wrapped(text: &str, sign: &str, columns: usize, style: Style) -> Vec<Line> {
    let mut before = sign.to_owned();
    let indent = width(sign).min(4);
    let (indent, room) = match columns.checked_sub(width(sign)) {
        Some(room @ 8..) => (indent, room),
        Some(_) | None => {
            // Too narrow for an indentation.
            before.clear();
            (0, columns)
        }
    };
    let mut lines = Vec::new();
    for line in text.split('\n') {
        for range in wrap(line, room.max(1)) {
            lines.push(styled(format!("{before}{}", &line[range]), style));
            before = " ".repeat(indent);
        }
    }
    lines
}
