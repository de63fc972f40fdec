//! What the model sees next: the turns so far, projected from the events.

use super::event::{Ending, Event, Recorded, SegmentKind, ToolCall, ToolResult};
use crate::support::text::Text;
use std::borrow::Cow;
use std::sync::Arc;

/// Ends the model's own words in a turn that was cut off, so that it knows.
pub const INTERRUPTED_MARK: &str = "[This answer was interrupted before it was complete.]";

/// Stands in for the result of a tool call that was cut off: a provider refuses a request in which
/// a call has no result.
pub const INTERRUPTED_TOOL: &str = "The call was interrupted before it returned a result.";

/// A conversation as the model is shown it. Cheap to clone: turns are shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    preamble: Arc<Preamble>,
    turns: Vec<Arc<Turn>>,
}

/// What the model is told before the first turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preamble {
    /// How it is to behave.
    pub system: Option<String>,
    /// What is taken to have been said, oldest first.
    pub said: Vec<HistoryMessage>,
}

/// Something that is taken to have been said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryMessage {
    /// By the user.
    ByUser(String),
    /// By the model.
    ByModel(String),
    /// By neither: an instruction to the model.
    BySystem(String),
}

/// A prompt and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// As written; empty if the model was called with what was said before alone.
    pub prompt: String,
    /// What the model did, in order.
    pub steps: Vec<Step>,
    /// How far it is.
    pub state: TurnState,
}

/// One thing the model did.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It said this.
    HistoryMessage(Text),
    /// It called a tool.
    Called {
        /// Number of the provider call in which it did, from 1.
        round: u32,
        /// The call.
        tool: ToolCall,
        /// The arguments, as JSON text.
        input: String,
        /// What came back; `None` if nothing has.
        result: Option<ToolResult>,
    },
}

/// How far a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnState {
    /// The model is to answer it, or is answering it.
    Open,
    /// Answered.
    Finished,
    /// Stopped or failed on the way.
    Interrupted,
}

/// One message of a provider request.
#[derive(Clone, Debug, PartialEq)]
pub enum Message<'a> {
    /// How the model is to behave.
    System(&'a str),
    /// What the user said.
    User(Cow<'a, str>),
    /// What the model said and which tools it called.
    Assistant {
        /// Empty if it only called tools.
        text: Cow<'a, str>,
        /// Each with its arguments as JSON text.
        calls: Vec<(&'a ToolCall, &'a str)>,
    },
    /// What a tool returned.
    Tool {
        /// The call.
        tool: &'a ToolCall,
        /// What came back.
        result: Cow<'a, str>,
    },
}

impl Transcript {
    /// A conversation in which only the preamble was said yet.
    pub fn new(preamble: Preamble) -> Self {
        Self { preamble: Arc::new(preamble), turns: Vec::new() }
    }

    /// The turns, oldest first; the last one is open while a run answers it.
    pub fn turns(&self) -> &[Arc<Turn>] {
        &self.turns
    }

    /// Takes in what happened.
    pub fn apply(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::PromptAccepted { prompt } => {
                // A turn whose end was never told was cut off by a defect.
                self.end(Ending::Failed);
                self.turns.push(Arc::new(Turn {
                    prompt: prompt.as_str().to_owned(),
                    steps: Vec::new(),
                    state: TurnState::Open,
                }));
            }
            Event::SegmentFinished { segment, text, .. } => self.said(segment.kind, text),
            Event::ToolCallRequested { tool, input } => {
                self.called(recorded.scope.call, tool, input);
            }
            Event::ToolResultReady { tool, result } => self.returned(tool, result),
            Event::RunFinished { .. } => self.end(Ending::Finished),
            Event::RunStopped { .. } => self.end(Ending::Stopped),
            Event::RunFailed { .. } => self.end(Ending::Failed),
            Event::RunStarted { .. }
            | Event::CallStarted
            | Event::SegmentStarted { .. }
            | Event::SegmentPatched { .. }
            | Event::ToolCallStarted { .. }
            | Event::ToolArgumentsPatched { .. }
            | Event::ToolExecutionStarted { .. }
            | Event::ToolCallFinished { .. }
            | Event::CallMetadataUpdated { .. }
            | Event::CallFinished { .. } => {}
        }
    }

    /// The messages of a provider request, oldest first. Every tool call in them has a result. What
    /// the preamble holds is sent as it is; in the turns after it nobody speaks twice in a row,
    /// which some providers refuse.
    pub fn messages(&self) -> Vec<Message<'_>> {
        let system = self.preamble.system.as_deref().map(Message::System);
        let said = self.preamble.said.iter().map(HistoryMessage::message);
        let mut messages: Vec<Message<'_>> = system.into_iter().chain(said).collect();
        let preamble_len = messages.len();
        for message in self.turns.iter().flat_map(|turn| turn.messages()) {
            let joined = match messages[preamble_len..].last_mut() {
                Some(last) => last.join(message),
                None => Some(message),
            };
            messages.extend(joined);
        }
        messages
    }

    fn said(&mut self, kind: SegmentKind, text: &Text) {
        // Reasoning is shown to people and not sent back: providers ask for the answers alone.
        let SegmentKind::Text = kind else { return };
        if !text.is_empty() {
            self.step(Step::HistoryMessage(text.clone()));
        }
    }

    fn called(&mut self, round: u32, tool: &ToolCall, input: &str) {
        let (tool, input) = (tool.clone(), input.to_owned());
        self.step(Step::Called { round, tool, input, result: None });
    }

    fn returned(&mut self, returned: &ToolCall, with: &ToolResult) {
        let Some(turn) = self.open() else { return };
        for step in turn.steps.iter_mut().rev() {
            if let Step::Called { tool, result, .. } = step
                && tool.id == returned.id
            {
                *result = Some(with.clone());
                return;
            }
        }
    }

    fn end(&mut self, ending: Ending) {
        let Some(turn) = self.open() else { return };
        turn.state = match ending {
            Ending::Finished => TurnState::Finished,
            Ending::Stopped | Ending::Failed => TurnState::Interrupted,
        };
        // A prompt that failed without a word would only be answered twice.
        if ending == Ending::Failed && turn.steps.iter().all(Step::is_blank) {
            self.turns.pop();
        }
    }

    fn step(&mut self, step: Step) {
        if let Some(turn) = self.open() {
            turn.steps.push(step);
        }
    }

    fn open(&mut self) -> Option<&mut Turn> {
        let turn = self.turns.last_mut().filter(|turn| turn.state == TurnState::Open)?;
        Some(Arc::make_mut(turn))
    }
}

impl Step {
    fn is_blank(&self) -> bool {
        match self {
            Self::HistoryMessage(text) => text.trim().is_empty(),
            Self::Called { .. } => false,
        }
    }
}

impl HistoryMessage {
    fn message(&self) -> Message<'_> {
        match self {
            Self::ByUser(text) => Message::User(text.into()),
            Self::ByModel(text) => Message::Assistant { text: text.into(), calls: Vec::new() },
            Self::BySystem(text) => Message::System(text),
        }
    }
}

impl<'a> Message<'a> {
    /// Takes in what the same one says next; gives it back if it is another's.
    fn join(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::User(said), Self::User(more)) => {
                *said += "\n\n";
                *said += more;
                None
            }
            (_, next) => Some(next),
        }
    }
}

impl Turn {
    fn messages(&self) -> Vec<Message<'_>> {
        let mut messages = Vec::new();
        if !self.prompt.is_empty() {
            messages.push(Message::User(Cow::Borrowed(&self.prompt)));
        }
        let mut steps = self.steps.as_slice();
        while !steps.is_empty() {
            let said = leading_text(&mut steps);
            let calls = leading_calls(&mut steps);
            // Some providers refuse a message of white space alone, and it says nothing.
            let said = if said.trim().is_empty() { Cow::Borrowed("") } else { said };
            if said.is_empty() && calls.is_empty() {
                continue;
            }
            let results = calls.iter().map(|(tool, _, result)| Message::Tool {
                tool,
                result: result.map_or(INTERRUPTED_TOOL, ToolResult::text).into(),
            });
            let results: Vec<_> = results.collect();
            let calls = calls.into_iter().map(|(tool, input, _)| (tool, input)).collect();
            messages.push(Message::Assistant { text: said, calls });
            messages.extend(results);
        }
        if self.state == TurnState::Interrupted {
            mark_interrupted(&mut messages);
        }
        messages
    }
}

fn leading_text<'a>(steps: &mut &'a [Step]) -> Cow<'a, str> {
    let mut text = Cow::Borrowed("");
    while let [Step::HistoryMessage(said), rest @ ..] = *steps {
        text += said.as_str();
        *steps = rest;
    }
    text
}

type Called<'a> = (&'a ToolCall, &'a str, Option<&'a ToolResult>);

/// The calls of one round. Those of the next were made with the results of these in view, and a
/// provider that is told otherwise can't use what it cached of its last request.
fn leading_calls<'a>(steps: &mut &'a [Step]) -> Vec<Called<'a>> {
    let mut calls = Vec::new();
    let mut first = None;
    while let [Step::Called { round, tool, input, result }, rest @ ..] = *steps
        && *first.get_or_insert(*round) == *round
    {
        calls.push((tool, input.as_str(), result.as_ref()));
        *steps = rest;
    }
    calls
}

/// Puts the mark after the model's last words; an answer of its own where it said none, because
/// providers want user and assistant to take turns.
fn mark_interrupted(messages: &mut Vec<Message<'_>>) {
    if let Some(Message::Assistant { text, calls }) = messages.last_mut()
        && calls.is_empty()
    {
        *text += "\n\n";
        *text += INTERRUPTED_MARK;
        return;
    }
    messages.push(Message::Assistant { text: INTERRUPTED_MARK.into(), calls: Vec::new() });
}
