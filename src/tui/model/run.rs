//! The live run: its streamed text, reasoning and open tool calls.

use super::hint::About;
use super::{Notice, Piece, State};
use crate::protocol::constants::{done, tool_result};
use crate::protocol::proto::session::WaitingFor;
use crate::support::hidden::revealed;
use crate::tui::markdown::{Block, Markdown};
use crate::tui::text::{Cleaner, clean};
use std::time::Duration;

/// Bytes of a result, or of arguments, that the screen shows.
const SHOWN_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Run {
    /// The request, by which it is cancelled.
    pub(crate) request: String,
    pub(crate) started: Duration,
    pub(crate) phase: RunPhase,
    /// When the phase began.
    pub(crate) phase_since: Duration,
    pub(crate) text: Option<StreamedText>,
    pub(crate) reasoning: Option<Reasoning>,
    /// Calls that have no result yet.
    pub(crate) tools: Vec<ToolCall>,
    pub(crate) is_stopping: bool,
    /// The provider takes no attachments of a kind that is among those of the conversation.
    pub(super) refuses_attachments: bool,
}

/// The part of a run that is under way, as the status line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RunPhase {
    Starting,
    Model,
    Thinking,
    Answering,
    Tools,
    /// The earlier turns are summarized.
    Compacting,
    /// Nothing has happened for a while.
    Waiting(WaitingFor),
    Retry {
        attempt: u32,
        attempts_max: u32,
        until: Duration,
        reason: String,
    },
}

#[derive(Debug, Default)]
pub(crate) struct StreamedText {
    pub(crate) markdown: Markdown,
    source: String,
}

/// Reasoning that streams.
#[derive(Debug)]
pub(crate) struct Reasoning {
    pub(crate) text: String,
    cleaner: Cleaner,
    since: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// With hidden characters as escapes.
    pub(crate) input: String,
    pub(crate) state: ToolState,
    pub(crate) since: Duration,
    /// How far it is, as its server says; clean, and empty while it says nothing.
    pub(crate) progress: String,
    /// Clean.
    pub(crate) result: String,
}

/// How far a tool call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolState {
    /// The model writes its arguments.
    Streaming,
    /// It waits for its turn, or for an approval.
    Requested,
    Running,
    /// It took this long, as far as that is known.
    Succeeded(Option<Duration>),
    Failed(Option<Duration>),
}

impl StreamedText {
    fn push(&mut self, piece: &str) {
        self.source.push_str(piece);
        self.markdown.push(piece);
    }

    /// The blocks that were still open, and the whole source.
    fn finish(mut self) -> (Vec<Block>, String) {
        self.markdown.finish();
        (self.markdown.take_closed(), self.source)
    }
}

impl ToolCall {
    pub(crate) fn new(id: String, name: &str, since: Duration) -> Self {
        Self {
            id,
            name: revealed(name),
            input: String::new(),
            state: ToolState::Streaming,
            since,
            progress: String::new(),
            result: String::new(),
        }
    }

    pub(super) fn set_input(&mut self, input: &str) {
        self.input = bounded(input, revealed);
    }

    pub(super) fn returned(&mut self, result: &str, status: &str, took: Option<Duration>) {
        self.result = bounded(result, clean);
        let is_error = status == tool_result::ERROR;
        self.state = if is_error { ToolState::Failed(took) } else { ToolState::Succeeded(took) };
    }
}

/// The beginning of a text, as `shown` shows it.
fn bounded(text: &str, shown: impl Fn(&str) -> String) -> String {
    if text.len() <= SHOWN_BYTES_MAX {
        return shown(text);
    }
    let end = text.floor_char_boundary(SHOWN_BYTES_MAX);
    format!("{}… ({} bytes in all)", shown(&text[..end]), text.len())
}

impl Run {
    pub(super) fn new(request: String, now: Duration) -> Self {
        Self {
            request,
            started: now,
            phase: RunPhase::Starting,
            phase_since: now,
            text: None,
            reasoning: None,
            tools: Vec::new(),
            is_stopping: false,
            refuses_attachments: false,
        }
    }

    fn phase(&mut self, phase: RunPhase, now: Duration) {
        if self.phase != phase {
            self.phase = phase;
            self.phase_since = now;
        }
    }

    pub(super) fn tool(&mut self, id: &str) -> Option<&mut ToolCall> {
        self.tools.iter_mut().find(|tool| tool.id == id)
    }
}

impl State {
    pub(super) fn phase(&mut self, phase: RunPhase) {
        let now = self.now;
        if let Some(run) = &mut self.run {
            run.phase(phase, now);
        }
    }

    pub(super) fn text_begins(&mut self) {
        self.reasoning_ends();
        self.text_ends();
        self.phase(RunPhase::Answering);
        if let Some(run) = &mut self.run {
            run.text = Some(StreamedText::default());
        }
    }

    pub(super) fn text_grows(&mut self, piece: &str) {
        let now = self.now;
        let Some(run) = &mut self.run else { return };
        // Also after a silence in the middle of it.
        run.phase(RunPhase::Answering, now);
        let answer = run.text.get_or_insert_default();
        answer.push(piece);
        for block in answer.markdown.take_closed() {
            self.print(Piece::Block(block));
        }
    }

    pub(super) fn text_ends(&mut self) {
        let Some(answer) = self.run.as_mut().and_then(|run| run.text.take()) else { return };
        let (blocks, source) = answer.finish();
        for block in blocks {
            self.print(Piece::Block(block));
        }
        self.print(Piece::AnswerEnd);
        self.log.answer(&source);
    }

    pub(super) fn reasoning_begins(&mut self) {
        self.reasoning_ends();
        self.phase(RunPhase::Thinking);
        let since = self.now;
        if let Some(run) = &mut self.run {
            let (text, cleaner) = (String::new(), Cleaner::default());
            run.reasoning = Some(Reasoning { text, cleaner, since });
        }
    }

    pub(super) fn reasoning_grows(&mut self, piece: &str) {
        if self.run.as_ref().is_some_and(|run| run.reasoning.is_none()) {
            self.reasoning_begins();
        }
        self.phase(RunPhase::Thinking);
        let Some(reasoning) = self.run.as_mut().and_then(|run| run.reasoning.as_mut()) else {
            return;
        };
        let cleaned = reasoning.cleaner.push(piece);
        reasoning.text.push_str(&cleaned);
    }

    pub(super) fn reasoning_ends(&mut self) {
        let Some(mut reasoning) = self.run.as_mut().and_then(|run| run.reasoning.take()) else {
            return;
        };
        reasoning.text.push_str(&reasoning.cleaner.finish());
        let text = reasoning.text.trim().to_owned();
        if text.is_empty() {
            return;
        }
        let seconds = self.now.saturating_sub(reasoning.since).as_secs();
        self.log.reasoning(&text);
        self.print_foldable(Piece::Reasoning { text, seconds });
    }

    pub(super) fn tool_begins(&mut self, id: &str, name: &str) {
        self.reasoning_ends();
        self.text_ends();
        let now = self.now;
        let Some(run) = &mut self.run else { return };
        if run.tool(id).is_none() {
            run.tools.push(ToolCall::new(id.to_owned(), name, now));
        }
        run.phase(RunPhase::Tools, now);
    }

    /// The call has its result: it is printed, and does not change any more.
    pub(super) fn tool_returned(&mut self, id: &str, result: &str, status: &str) {
        let now = self.now;
        let Some(run) = &mut self.run else { return };
        let Some(at) = run.tools.iter().position(|tool| tool.id == id) else { return };
        let mut tool = run.tools.remove(at);
        let took = (tool.state == ToolState::Running).then(|| now.saturating_sub(tool.since));
        tool.returned(result, status, took);
        self.log.tool(&tool);
        self.print_foldable(Piece::Tool(tool));
    }

    /// Prints something that is shortened unless the person wants everything in full, and can be
    /// shown in full later.
    pub(super) fn print_foldable(&mut self, piece: Piece) {
        if !self.unfolded.all {
            self.folded = Some(piece.clone());
        }
        self.print(piece);
    }

    /// The run has ended with this status; an error was printed.
    pub(super) fn end_run(&mut self, status: &str) {
        self.reasoning_ends();
        self.text_ends();
        let Some(run) = self.run.take() else { return };
        // One that waits for its turn is answered next.
        if self.waiting.is_empty() {
            self.waits_for_person(Notice::Answer);
        }
        for mut tool in run.tools {
            tool.state = ToolState::Failed(None);
            self.print(Piece::Tool(tool));
        }
        self.nothing_is_asked();
        self.forget_hint_about(About::Stopping);
        if status == done::STOPPED {
            self.ended_early("stopped".to_owned(), true);
        }
    }
}
