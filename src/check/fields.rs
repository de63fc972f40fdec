//! What a payload says of itself: its role and status, the stream that its text belongs to, and its
//! session and run. What it leaves out is no breach.

use super::names::shown;
use super::rule::{Report, Rule};
use super::words::{roles, statuses};
use crate::any::Any;
use crate::proto::chat::CorrelationInfo;

/// The fields of a payload that are looked at; empty if it has none of that name.
#[derive(Debug, Default)]
pub(super) struct Fields<'a> {
    name: &'static str,
    role: &'a str,
    status: &'a str,
    stream_id: &'a str,
    message_id: &'a str,
    tool_call_id: &'a str,
    correlation: Option<&'a CorrelationInfo>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(payload: &'a Any) -> Self {
        let mut fields = Self { name: payload.name(), ..Self::default() };
        macro_rules! take {
            ($($message:ident: $($field:ident)*;)*) => {
                $(if let Any::$message(it) = payload {
                    $(fields.$field = &it.$field;)*
                    fields.correlation = it.correlation.as_ref();
                })*
            };
        }
        take! {
            ChatTextPatch: role status stream_id message_id;
            ChatReasoningPatch: role status stream_id message_id;
            ChatToolArgumentsPatch: status stream_id tool_call_id;
            ChatTextSegmentStarted: role status;
            ChatTextSegmentFinished: role status;
            ChatReasoningSegmentStarted: role status;
            ChatReasoningSegmentFinished: role status;
            ChatToolCallStarted: status;
            ChatToolCallRequested: status;
            ChatToolExecutionStarted: status;
            ChatToolResultReady: status;
            ChatToolCallFinished: status;
            ChatRunStarted: ;
            ChatRunFinished: status;
            ChatRunStopped: status;
            ChatRunFailed: status;
            ChatProviderCallStarted: ;
            ChatProviderCallMetadataUpdated: ;
            ChatProviderCallFinished: ;
            ChatMessageEntity: role status;
            ToolCallEntity: status;
            ToolResultEntity: status;
            ObjectExtracted: ;
            LineRejected: ;
            ExtractionFinished: ;
        }
        if let Any::ChatUserMessageAccepted(it) = payload {
            (fields.role, fields.status) = (&it.role, &it.status);
        }
        fields
    }

    /// The run that it names; empty if it names none.
    pub(super) fn run_id(&self) -> &'a str {
        self.correlation.map_or("", |ids| &ids.run_id)
    }

    /// Looks at all but the run, in a frame of `session`.
    pub(super) fn check(&self, session: &str, report: &mut Report) {
        self.word("role", self.role, roles(self.name), report);
        self.word("status", self.status, statuses(self.name), report);
        let of = if self.tool_call_id.is_empty() { self.message_id } else { self.tool_call_id };
        if !self.stream_id.is_empty() && self.stream_id != of {
            let (stream, of) = (shown(self.stream_id), shown(of));
            let message = format!("a patch of {of:?} belongs to the stream {stream:?}");
            report.add(Rule::PatchStream, message);
        }
        let named = self.correlation.map_or("", |ids| &ids.session_id);
        if !named.is_empty() && named != session {
            let (named, session) = (shown(named), shown(session));
            let message = format!("the correlation names the session {named:?}, not {session:?}");
            report.add(Rule::Correlation, message);
        }
    }

    fn word(&self, what: &str, word: &str, known: &[&str], report: &mut Report) {
        if !word.is_empty() && !known.is_empty() && !known.contains(&word) {
            let (name, word, known) = (self.name, shown(word), known.join(", "));
            report.add(Rule::WrongWord, format!("the {what} of {name} is {word:?}, not {known}"));
        }
    }
}
