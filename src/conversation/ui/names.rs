//! The ids of messages, and the ids that tell to which run, turn, call and segment an event belongs.

use crate::conversation::event::{Scope, Segment, SegmentKind, ToolCall};
use crate::conversation::timeline::turn_id;
use crate::protocol::id::SessionId;
use crate::protocol::proto::chat::CorrelationInfo;

/// Number of the prompt that began a run.
pub(crate) const FIRST_PROMPT: u32 = 1;

/// The ids of a scope and of a segment in it, formatted once and not for each of its thousands of patches.
#[derive(Clone, Debug)]
pub(super) struct Names {
    session: SessionId,
    scope: Option<Scope>,
    /// The id of the run's message.
    pub(super) root: String,
    correlation: CorrelationInfo,
    segment: Option<SegmentNames>,
}

/// The ids of the last segment that was named.
#[derive(Clone, Debug)]
struct SegmentNames {
    segment: Segment,
    message_id: String,
    correlation: CorrelationInfo,
}

impl Names {
    pub(super) fn new(session: SessionId) -> Self {
        let (scope, root, correlation, segment) = Default::default();
        Self { session, scope, root, correlation, segment }
    }

    pub(super) fn enter(&mut self, scope: Scope) {
        if self.scope != Some(scope) {
            self.scope = Some(scope);
            self.root = scope.run.root();
            self.correlation = correlation(&self.session, scope);
            self.segment = None;
        }
    }

    /// The id of a segment's message.
    pub(super) fn message(&mut self, segment: Segment) -> String {
        self.of_segment(segment).message_id.clone()
    }

    /// Correlation of an event of the whole run.
    pub(super) fn run(&self) -> Option<CorrelationInfo> {
        let provider_call_id = String::new();
        Some(CorrelationInfo { provider_call_id, ..self.correlation.clone() })
    }

    /// Correlation of an event of the provider call.
    pub(super) fn call(&self) -> Option<CorrelationInfo> {
        Some(self.correlation.clone())
    }

    /// Correlation of an event of a segment.
    pub(super) fn segment(&mut self, segment: Segment) -> Option<CorrelationInfo> {
        Some(self.of_segment(segment).correlation.clone())
    }

    fn of_segment(&mut self, segment: Segment) -> &SegmentNames {
        let Self { root, correlation, segment: last, .. } = self;
        if last.as_ref().is_some_and(|names| names.segment != segment) {
            *last = None;
        }
        last.get_or_insert_with(|| SegmentNames {
            segment,
            message_id: message_id(root, segment),
            correlation: CorrelationInfo { segment_id: segment.to_string(), ..correlation.clone() },
        })
    }

    pub(super) fn tool(&self, tool: &ToolCall) -> Option<CorrelationInfo> {
        Some(CorrelationInfo { tool_call_id: tool.id.0.clone(), ..self.correlation.clone() })
    }
}

/// Message id of a segment.
pub(crate) fn message_id(root: &str, segment: Segment) -> String {
    match segment.kind {
        SegmentKind::Text => [root, ":text:", &segment.to_string()].concat(),
        SegmentKind::Thinking => [root, ":thinking:", &segment.to_string()].concat(),
    }
}

/// Message id of a prompt, by its number in the run.
pub(crate) fn user_message_id(root: &str, number: u32) -> String {
    match number {
        FIRST_PROMPT => [root, "-user"].concat(),
        _ => format!("{root}-user-{number}"),
    }
}

/// The ids of a scope in wire format.
pub(crate) fn correlation(session: &SessionId, scope: Scope) -> CorrelationInfo {
    let run_id = scope.run.text();
    let provider_call_id = match scope.call {
        0 => String::new(),
        call => [&run_id, ":call-", &call.to_string()].concat(),
    };
    CorrelationInfo {
        session_id: session.as_str().to_owned(),
        run_id,
        turn_id: turn_id(scope.turn),
        provider_call_id,
        ..Default::default()
    }
}
