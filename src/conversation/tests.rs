//! All projections, applied to the same short conversations.

mod patches;
mod timeline;
mod transcript;

use super::event::{
    Answerer, Ending, Event, FinishClass, Recorded, Scope, Segment, SegmentKind, ToolCall,
    ToolResult, Usage,
};
use super::patch::{PatchFields, PatchMode, Patches};
use super::timeline::{Span, Timeline};
use super::transcript::{INTERRUPTED_MARK, INTERRUPTED_TOOL, Message, Preamble, Transcript};
use super::ui::Ui;
use super::usage::Spent;
use crate::protocol::any::Any;
use crate::protocol::id::{Ids, Ordinal, RunId, SessionId, ToolCallId};
use crate::protocol::proto::chat::ChatStreamPatchMode;
use crate::protocol::proto::rpc::SnapshotFrame;
use crate::support::text::Text;
use std::sync::Arc;

/// Records events with their ordinals and scopes.
struct Recorder {
    ids: Ids,
    scope: Scope,
    recorded: Vec<Recorded>,
}

impl Recorder {
    fn new() -> Self {
        let mut ids = Ids::new(1);
        let scope = Scope { run: ids.run(), turn: 0, call: 0 };
        Self { ids, scope, recorded: Vec::new() }
    }

    fn event(&mut self, event: Event) {
        let ordinal = Ordinal(self.recorded.len() as u64 + 1);
        self.recorded.push(Recorded { ordinal, scope: self.scope, event });
    }

    /// A turn with one provider call, up to just before its end.
    fn turn(&mut self, prompt: &str, said: &[ModelStep]) {
        self.scope = Scope { run: self.ids.run(), turn: self.scope.turn + 1, call: 0 };
        self.event(Event::PromptAccepted { prompt: prompt.into(), attachments: Arc::new([]) });
        self.event(Event::RunStarted {
            prompt: prompt.into(),
            choices: None,
            answerer: Answerer::default(),
            request: Text::default(),
        });
        self.scope.call = 1;
        self.event(Event::CallStarted);
        for (at, said) in said.iter().enumerate() {
            self.said(said, at as u32 + 1);
        }
    }

    fn said(&mut self, said: &ModelStep, number: u32) {
        match said {
            ModelStep::Text(pieces) => {
                self.segment(Segment { number, kind: SegmentKind::Text }, pieces)
            }
            ModelStep::Thought(pieces) => self.segment(thinking(number), pieces),
            ModelStep::Call(id) => self.call(id),
            ModelStep::Round => {
                self.scope.call += 1;
                self.event(Event::CallStarted);
            }
            ModelStep::Result(id, text) => {
                let (tool, result) = (tool(id), ToolResult::Success((*text).to_owned()).into());
                self.event(Event::ToolResultReady { tool: tool.clone(), result });
                self.event(Event::ToolCallFinished { tool, partial_input: String::new() });
            }
        }
    }

    fn segment(&mut self, segment: Segment, pieces: &[&str]) {
        self.event(Event::SegmentStarted { segment, prompt: Text::default() });
        let mut whole = String::new();
        for (at, piece) in pieces.iter().enumerate() {
            self.event(Event::SegmentPatched {
                segment,
                sequence: at as u64 + 1,
                offset_bytes: whole.len() as u64,
                text: (*piece).to_owned(),
            });
            whole += piece;
        }
        self.event(Event::SegmentFinished {
            segment,
            status: Ending::Finished,
            prompt: Text::default(),
            text: whole.into(),
            finish_reason: String::new(),
            is_cut_off: false,
        });
    }

    fn call(&mut self, id: &str) {
        let input = "{}".to_owned();
        self.event(Event::ToolCallStarted { tool: tool(id) });
        self.event(Event::ToolArgumentsPatched {
            tool: tool(id),
            sequence: 1,
            offset_bytes: 0,
            text: input.clone(),
        });
        self.event(Event::ToolCallRequested { tool: tool(id), input: input.clone() });
        self.event(Event::ToolExecutionStarted { tool: tool(id), input });
    }

    fn end(&mut self, ending: Ending) {
        self.event(Event::CallMetadataUpdated {
            stop_reason: "stop".to_owned(),
            usage: Usage::default(),
        });
        self.event(Event::CallFinished {
            stop_reason: "stop".to_owned(),
            class: FinishClass::Completed,
            usage: None,
            duration_ms: 1,
            has_tool_calls: false,
            provider_data: None,
            spent: Spent::default(),
        });
        self.scope.call = 0;
        self.event(match ending {
            Ending::Finished => Event::RunFinished { duration_ms: 2, cut_off: None },
            Ending::Stopped => Event::RunStopped { reason: "cancelled".to_owned() },
            Ending::Failed => Event::RunFailed { error: "broken".to_owned() },
        });
    }
}

/// What a model does in a turn.
enum ModelStep {
    Text(&'static [&'static str]),
    Thought(&'static [&'static str]),
    Call(&'static str),
    Result(&'static str, &'static str),
    /// The end of a provider call and the start of another.
    Round,
}

fn tool(id: &str) -> ToolCall {
    ToolCall { id: ToolCallId(id.to_owned()), name: "clock".to_owned() }
}

fn thinking(number: u32) -> Segment {
    Segment { number, kind: SegmentKind::Thinking }
}

fn session() -> SessionId {
    SessionId::new("s").expect("a name")
}

/// Two turns with one of everything.
fn conversation() -> Recorder {
    let mut recorder = Recorder::new();
    recorder.turn(
        "hi",
        &[
            ModelStep::Thought(&["h", "m"]),
            ModelStep::Text(&["I ", "look."]),
            ModelStep::Call("t1"),
            ModelStep::Call("t2"),
            ModelStep::Result("t2", "noon"),
            ModelStep::Result("t1", "one"),
        ],
    );
    recorder.end(Ending::Finished);
    recorder.turn("again", &[ModelStep::Text(&["It"])]);
    recorder.end(Ending::Failed);
    recorder
}
