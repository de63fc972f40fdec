//! Checks the fields of one payload: required fields, allowed values, and consistency within
//! the payload. Consistency between frames is checked in `identity`, `run` and `conversation`.

use super::names::shown;
use super::rule::{Report, Rule};
use crate::protocol::any::Any;
use crate::protocol::constants::{finish, message, role, roles, sources, statuses, tool_call};
use crate::protocol::proto::chat::CorrelationInfo;

/// The prefix of a run's root message id.
const ROOT_PREFIX: &str = "chat-msg-";

/// Follows the root in the message id of a prompt.
pub(super) const PROMPT_SUFFIX: &str = "-user";

/// The fields of a payload that are checked. `None` if its message has no such field, and empty if
/// the payload leaves it out.
#[derive(Debug, Default)]
pub(super) struct Fields<'a> {
    pub(super) name: &'static str,
    pub(super) message_id: Option<&'a str>,
    pub(super) parent_message_id: Option<&'a str>,
    pub(super) role: Option<&'a str>,
    pub(super) prompt: Option<&'a str>,
    pub(super) tool_call_id: Option<&'a str>,
    pub(super) tool_name: Option<&'a str>,
    status: Option<&'a str>,
    stream_id: Option<&'a str>,
    source: Option<&'a str>,
    text: Option<&'a str>,
    content: Option<&'a str>,
    finish_class: Option<&'a str>,
    /// The part of the arguments that a patch carries.
    arguments: Option<&'a str>,
    mode: Option<i32>,
    r#final: Option<bool>,
    streaming: Option<bool>,
    executing: Option<bool>,
    /// The `final` of a message, which is not that of a patch.
    is_final: Option<bool>,
    has_correlation: bool,
    correlation: Option<&'a CorrelationInfo>,
}

/// What a payload is about, which determines its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Prompt,
    Run,
    Call,
    Text,
    Thinking,
    Warning,
    Error,
    Tool,
    /// A prompt that has joined a run, with the ids of that run.
    Steering,
    /// An extension, at any place in a run.
    Extension,
    /// Nothing that has ids of a run.
    Elsewhere,
}

/// Takes the fields that a message has: its texts, and after a comma its other values. Messages in
/// the second list have no correlation.
macro_rules! take {
    ($payload:ident, $fields:ident;
        { $($message:ident: $($text:ident)* $(, $value:ident)*;)* }
        { $($other:ident: $($other_text:ident)*;)* }) => {
        $(if let Any::$message(it) = $payload {
            $($fields.$text = Some(&*it.$text);)*
            $($fields.$value = Some(it.$value);)*
            $fields.has_correlation = true;
            $fields.correlation = it.correlation.as_ref();
        })*
        $(if let Any::$other(it) = $payload {
            $($fields.$other_text = Some(&*it.$other_text);)*
        })*
    };
}

impl<'a> Fields<'a> {
    pub(super) fn of(payload: &'a Any) -> Self {
        let mut fields = Self { name: payload.name(), ..Self::default() };
        take! {
            payload, fields;
            {
                ChatTextPatch: message_id role stream_id text status, mode, r#final;
                ChatReasoningPatch:
                    message_id parent_message_id role stream_id text status source, mode, r#final;
                ChatToolArgumentsPatch:
                    message_id tool_call_id tool_name stream_id arguments status, mode, r#final;
                ChatTextSegmentStarted: message_id role prompt status, streaming;
                ChatTextSegmentFinished: message_id role prompt text content status, streaming;
                ChatReasoningSegmentStarted: message_id parent_message_id role status source, streaming;
                ChatReasoningSegmentFinished:
                    message_id parent_message_id role text content status source, streaming;
                ChatToolCallStarted: message_id tool_call_id tool_name status, executing;
                ChatToolCallRequested: message_id tool_call_id tool_name status, executing;
                ChatToolExecutionStarted: message_id tool_call_id tool_name status, executing;
                ChatToolResultReady: message_id tool_call_id tool_name status;
                ChatToolCallFinished: message_id tool_call_id tool_name status;
                ChatRunStarted: message_id prompt;
                ChatRunFinished: message_id status;
                ChatRunStopped: message_id status;
                ChatRunFailed: message_id status;
                ChatProviderCallStarted: ;
                ChatProviderCallMetadataUpdated: ;
                ChatProviderCallFinished: finish_class;
                ChatMessageEntity:
                    message_id parent_message_id role prompt text content status, streaming;
                ToolCallEntity: message_id tool_call_id tool_name status, executing;
                ToolResultEntity: message_id tool_call_id tool_name status;
                ToolApprovalRequested: message_id tool_call_id tool_name;
                ToolApprovalResolved: message_id tool_call_id tool_name;
                ToolCallProgressed: message_id tool_call_id tool_name;
                SteeringAccepted: message_id;
                ObjectExtracted: message_id;
                LineRejected: message_id;
                ExtractionFinished: message_id;
                AnswerRejected: message_id;
                AnswerTruncated: message_id finish_class;
                RetryScheduled: ;
                RetryStarted: ;
                CallTiming: ;
                UsageTotals: ;
                TurnSummary: ;
            }
            {
                ChatUserMessageAccepted: message_id role prompt text content status;
                FrontendToolCallRequested: message_id tool_call_id tool_name status;
                FrontendToolResultReceived: message_id tool_call_id tool_name status;
            }
        }
        if let Any::ChatTextSegmentFinished(it) = payload {
            fields.is_final = Some(it.r#final);
        }
        if let Any::ChatMessageEntity(it) = payload {
            fields.is_final = Some(it.r#final);
        }
        fields
    }

    pub(super) fn place(&self) -> Place {
        match self.name {
            "ChatUserMessageAccepted" => Place::Prompt,
            "ChatRunStarted" | "ChatRunFinished" | "ChatRunStopped" | "ChatRunFailed"
            | "AnswerRejected" => Place::Run,
            "ChatTextSegmentStarted" | "ChatTextPatch" | "ChatTextSegmentFinished" => Place::Text,
            "ChatMessageEntity" => match self.role.unwrap_or_default() {
                role::USER => Place::Prompt,
                role::ASSISTANT => Place::Text,
                role::THINKING => Place::Thinking,
                role::WARNING => Place::Warning,
                role::ERROR => Place::Error,
                _ => Place::Elsewhere,
            },
            "SteeringAccepted" => Place::Steering,
            "ObjectExtracted" | "LineRejected" | "ExtractionFinished" => Place::Extension,
            _ if self.parent_message_id.is_some() => Place::Thinking,
            _ if self.tool_call_id.is_some() => Place::Tool,
            _ if self.has_correlation => Place::Call,
            _ => Place::Elsewhere,
        }
    }

    pub(super) fn status(&self) -> &'a str {
        self.status.unwrap_or_default()
    }

    pub(super) fn ids(&self) -> Option<&'a CorrelationInfo> {
        self.correlation
    }

    /// The root in its message id, if that has the form required by the contract.
    pub(super) fn root(&self) -> Option<&'a str> {
        let id = self.message_id?;
        let root = match self.place() {
            Place::Prompt | Place::Steering => root_of_prompt(id),
            Place::Text => self.root_of_segment(id, ":text:"),
            Place::Thinking => self.root_of_segment(id, ":thinking:"),
            Place::Warning => id.strip_suffix(":warning"),
            Place::Error
            | Place::Run
            | Place::Call
            | Place::Tool
            | Place::Extension
            | Place::Elsewhere => Some(id),
        };
        root.filter(|root| root.len() > ROOT_PREFIX.len() && root.starts_with(ROOT_PREFIX))
    }

    /// A prompt that joined the run of an earlier one.
    pub(super) fn is_joined_prompt(&self) -> bool {
        let id = self.message_id.unwrap_or_default();
        self.place() == Place::Prompt && !id.ends_with(PROMPT_SUFFIX)
    }

    fn root_of_segment(&self, id: &'a str, kind: &str) -> Option<&'a str> {
        let (root, segment) = id.rsplit_once(kind)?;
        let named = self.correlation.map_or("", |ids| &ids.segment_id);
        (!segment.is_empty() && (named.is_empty() || named == segment)).then_some(root)
    }

    /// Checks the payload on its own; `session` is that of its frame.
    pub(super) fn check(&self, session: &str, report: &mut Report) {
        self.check_set(report);
        self.check_words(report);
        self.check_texts(report);
        self.check_flags(report);
        if self.mode == Some(0) {
            report.add(Rule::PatchMode, format!("{} has no mode", self.name));
        }
        if self.message_id.is_some_and(|id| !id.is_empty()) && self.root().is_none() {
            let id = shown(self.message_id.unwrap_or_default());
            let message = format!(
                "the messageId {id:?} of {} is not made of the root of a run, \
                 {ROOT_PREFIX}<uuid>, and its segment",
                self.name
            );
            report.add(Rule::MessageId, message);
        }
        self.check_stream(report);
        self.check_ids(session, report);
    }

    /// Required fields.
    fn check_set(&self, report: &mut Report) {
        let is_entity = self.name == "ChatMessageEntity";
        let mut need = |field: &str, is_needed: bool, value: Option<&str>| {
            if is_needed && value == Some("") {
                report.add(Rule::MissingField, format!("{} has no {field}", self.name));
            }
        };
        need("messageId", true, self.message_id);
        need("toolCallId", true, self.tool_call_id);
        need("finishClass", true, self.finish_class);
        // The last patch may only mark the end.
        let has_piece = self.r#final == Some(false);
        need("text", has_piece && self.mode.is_some(), self.text);
        need("arguments", has_piece, self.arguments);
        need("parentMessageId", !is_entity, self.parent_message_id);
        need("role", true, self.role);
        need("status", true, self.status);
        need("streamId", true, self.stream_id);
        need("source", true, self.source);
        need("toolName", true, self.tool_name);
        // An entity may be of an earlier conversation, without a run of this session.
        let is_entity = is_entity || matches!(self.name, "ToolCallEntity" | "ToolResultEntity");
        if self.has_correlation && self.correlation.is_none() && !is_entity {
            report.add(Rule::MissingField, format!("{} has no correlation", self.name));
        }
    }

    fn check_words(&self, report: &mut Report) {
        let words = [
            ("role", self.role, roles(self.name)),
            ("status", self.status, statuses(self.name)),
            ("source", self.source, sources(self.name)),
            ("finishClass", self.finish_class, finish::ALL),
        ];
        for (what, word, known) in words {
            let word = word.unwrap_or_default();
            if !word.is_empty() && !known.is_empty() && !known.contains(&word) {
                let (name, word, known) = (self.name, shown(word), known.join(", "));
                let message = format!("the {what} of {name} is {word:?}; known are {known}");
                report.add(Rule::WrongWord, message);
            }
        }
    }

    fn check_texts(&self, report: &mut Report) {
        let (Some(text), Some(content)) = (self.text, self.content) else { return };
        if text != content {
            let message = format!(
                "text and content of {} differ: {} and {} bytes",
                self.name,
                text.len(),
                content.len()
            );
            report.add(Rule::TextContent, message);
        }
        if self.place() == Place::Prompt && self.prompt != Some(text) {
            let message = format!("prompt and text of {} differ", self.name);
            report.add(Rule::TextContent, message);
        }
    }

    /// A flag must agree with the status.
    fn check_flags(&self, report: &mut Report) {
        let Some(status) = self.status.filter(|status| !status.is_empty()) else { return };
        let flags = [
            ("streaming", self.streaming, message::STREAMING),
            ("executing", self.executing, tool_call::EXECUTING),
            ("final", self.is_final.map(|is_final| !is_final), message::STREAMING),
        ];
        for (field, flag, word) in flags {
            if flag.is_some_and(|flag| flag != (status == word)) {
                let (name, status) = (self.name, shown(status));
                let message =
                    format!("{field} of {name} does not agree with its status {status:?}");
                report.add(Rule::WrongWord, message);
            }
        }
    }

    fn check_stream(&self, report: &mut Report) {
        let stream = self.stream_id.unwrap_or_default();
        let of = self.tool_call_id.or(self.message_id).unwrap_or_default();
        if !stream.is_empty() && stream != of {
            let (stream, of) = (shown(stream), shown(of));
            let message = format!("a patch of {of:?} belongs to the stream {stream:?}");
            report.add(Rule::PatchStream, message);
        }
    }

    fn check_ids(&self, session: &str, report: &mut Report) {
        let Some(ids) = self.correlation else { return };
        if ids.session_id != session {
            let (named, session) = (shown(&ids.session_id), shown(session));
            let message = format!("the correlation names the session {named:?}, not {session:?}");
            report.add(Rule::Correlation, message);
        }
        if let Some(tool) = self.tool_call_id
            && ids.tool_call_id != tool
        {
            let (named, tool) = (shown(&ids.tool_call_id), shown(tool));
            let message = format!("the correlation names the tool call {named:?}, not {tool:?}");
            report.add(Rule::Correlation, message);
        }
        let is_segment = matches!(self.place(), Place::Text | Place::Thinking);
        if is_segment && ids.segment_id.is_empty() {
            report.add(Rule::Correlation, "the correlation names no segment");
        }
    }

    /// The mode of a patch of a segment.
    pub(super) fn segment_mode(&self) -> Option<i32> {
        self.mode.filter(|_| self.tool_call_id.is_none())
    }
}

/// The root in the message id of a prompt, which has a number from the second one of a run on.
fn root_of_prompt(id: &str) -> Option<&str> {
    let (root, number) = id.rsplit_once(PROMPT_SUFFIX)?;
    let is_later = || {
        let number = number.strip_prefix('-').and_then(|number| number.parse().ok());
        number.is_some_and(|number: u32| number > 1)
    };
    (number.is_empty() || is_later()).then_some(root)
}
