//! The answer of a single run on a terminal, drawn as a chat draws it. Nothing is drawn twice: a line is printed as
//! soon as nothing that follows can change it.

use super::display::push_line;
use super::markdown::Markdown;
use super::model::{Piece, Size};
use super::terminal;
use super::view::{Look, OpenRows, Printer};
use crate::protocol::any::Any;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use crate::stdio::Drawing;
use crate::support::terminal::CLEAR_LINE;
use crate::tui::text::Line;
use std::fs::File;

/// The part of the rows, one in so many, that prose may take before it is printed although it may still change.
const OPEN_PART: usize = 2;

/// The answer, as it is drawn on a terminal.
#[derive(Debug)]
pub(crate) struct AnswerLines {
    /// The terminal, whose size may change.
    output: File,
    printer: Printer,
    markdown: Markdown,
}

impl AnswerLines {
    /// An answer that is drawn on `output`, a terminal.
    pub(crate) fn new(output: File, look: Look) -> Self {
        Self { output, printer: Printer::new(look, true), markdown: Markdown::default() }
    }

    /// Appends the lines that can be printed by now.
    fn print(&mut self, out: &mut Vec<u8>) {
        let Size { columns, rows } = terminal::size(&self.output);
        let closed = self.markdown.take_closed().into_iter().map(Piece::Block);
        let closed: Vec<_> =
            closed.flat_map(|piece| self.printer.lines(&piece, columns, false)).collect();
        let room = OpenRows { printed_max: usize::MAX, live: (rows / OPEN_PART).max(1) };
        let (open, _) = self.printer.open(&self.markdown.open(), columns, room);
        push(&closed, out);
        push(&open, out);
    }

    /// A text is complete.
    fn finish(&mut self, out: &mut Vec<u8>) {
        self.markdown.finish();
        self.print(out);
        self.printer.lines(&Piece::AnswerEnd, terminal::size(&self.output).columns, false);
    }
}

impl Drawing for AnswerLines {
    fn frame(&mut self, frame: &Frame, out: &mut Vec<u8>) {
        let Some(Body::UiEvent(event)) = &frame.frame else { return };
        if let Some(Any::ChatTextPatch(patch)) = &event.payload {
            self.markdown.push(&patch.text);
            self.print(out);
        }
        if let Some(Any::Shared(ended)) = &event.payload
            && ended.is_segment_end()
        {
            self.finish(out);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.finish(out);
    }
}

fn push(lines: &[Line], out: &mut Vec<u8>) {
    let mut text = String::new();
    for line in lines {
        push_line(&mut text, line);
        text.push('\n');
    }
    // The row may have the progress line.
    if !text.is_empty() {
        out.extend_from_slice(CLEAR_LINE.as_bytes());
        out.extend_from_slice(text.as_bytes());
    }
}
