//! The messages of a provider request, made of the turns. Every tool call in them has a result.

use super::{HistoryMessage, Transcript, Turn, TurnItem, TurnState};
use crate::conversation::compaction::Compaction;
use crate::conversation::event::{ProviderData, ToolCall, ToolResult};
use crate::protocol::attachment::Attachment;
use crate::protocol::id::ToolCallId;
use std::borrow::Cow;
use std::collections::HashSet;

/// Appended to the answer of a turn that was cut off, so that the model knows.
pub(crate) const INTERRUPTED_MARK: &str = "[This answer was interrupted before it was complete.]";

/// Used as the result of a tool call that was cut off: providers refuse a request in which
/// a call has no result.
pub(crate) const INTERRUPTED_TOOL: &str = "The call was interrupted before it returned a result.";

/// Sent before the summary of earlier turns.
pub(crate) const SUMMARY_MARK: &str =
    "[The conversation before this was too long to be sent again. This is a summary of it:]";

/// Sent in place of the result of a tool call that is left out.
pub(crate) const CLEARED_RESULT: &str =
    "[This result was left out to make room. Call the tool again if it is needed.]";

/// Sent as a prompt in a place where providers require one and the conversation has none: before an
/// answer that it begins with, and after a system prompt that is all there is.
pub(crate) const NO_TEXT: &str = "[The user sent no text. Go on.]";

/// Sent as the text of a prompt that consisted of attachments only, none of which were stored.
pub(crate) const LOST_ATTACHMENTS: &str = "[an attachment that was not kept]";

/// One message of a provider request.
#[derive(Clone, Debug, PartialEq)]
pub enum Message<'a> {
    /// The system prompt.
    System(&'a str),
    /// A message of the user.
    User {
        /// The user's text.
        text: Cow<'a, str>,
        /// Images and files, which come before the text.
        attachments: Cow<'a, [Attachment]>,
    },
    /// An answer of the model, with its tool calls.
    Assistant {
        /// Empty if it only called tools.
        text: Cow<'a, str>,
        /// The tool calls, with their arguments as JSON text.
        calls: Vec<(&'a ToolCall, &'a str)>,
        /// What its provider wrote for itself, if it is known.
        provider_data: Option<&'a ProviderData>,
    },
    /// The result of a tool call.
    Tool {
        /// The tool call.
        tool: &'a ToolCall,
        /// The tool's output.
        result: Cow<'a, str>,
        /// Images in the output, which notes in it number.
        images: &'a [Attachment],
        /// The call failed, or was interrupted.
        is_error: bool,
    },
}

impl Transcript {
    /// The messages of a provider request, oldest first. Every tool call in them has a result, and roles
    /// alternate from the user on, as some providers require. An answer stands last only if the
    /// conversation began with it and nothing followed: then the model continues it.
    pub fn messages(&self) -> Vec<Message<'_>> {
        let system = self.preamble.system.as_deref().map(Message::System);
        let history = self.preamble.history.iter().filter(|message| self.sends(message));
        let history = history.map(HistoryMessage::message);
        let mut messages = Vec::new();
        for message in system.into_iter().chain(history).filter(|message| !message.is_blank()) {
            add(&mut messages, message);
        }
        if let Some(Compaction { summary, .. }) = self.summary() {
            let text = format!("{SUMMARY_MARK}\n\n{}", summary.as_str()).into();
            add(&mut messages, Message::User { text, attachments: Cow::default() });
        }
        for (at, turn) in self.sent_turns().enumerate() {
            // The first turn may be a call with the preamble alone, which continues its last message; a
            // later turn without a prompt has lost it.
            let goes_on = at == 0 && !matches!(messages.last(), Some(Message::System(_)) | None);
            if turn.has_no_prompt() && !goes_on {
                add(&mut messages, Message::user(NO_TEXT, &[]));
            }
            for message in turn.messages(&self.compactions.cleared) {
                add(&mut messages, message);
            }
        }
        begin_with_user(&mut messages);
        messages
    }
}

/// Adds a message, or merges it with the last one if both have the same role.
fn add<'a>(messages: &mut Vec<Message<'a>>, message: Message<'a>) {
    let joined = match messages.last_mut() {
        Some(last) => last.join(message),
        None => Some(message),
    };
    messages.extend(joined);
}

/// Has a message of the user follow the first ones of the system, if something else does.
fn begin_with_user(messages: &mut Vec<Message<'_>>) {
    // Instructions may stand anywhere in a history; some interfaces have them apart.
    let first = messages.iter().position(|message| !matches!(message, Message::System(_)));
    let at = first.unwrap_or(messages.len());
    if !matches!(messages.get(at), Some(Message::User { .. })) {
        messages.insert(at, Message::user(NO_TEXT, &[]));
    }
}

impl HistoryMessage {
    /// Its text.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::ByUser(text) | Self::ByModel(text) | Self::BySystem(text) => text,
        }
    }

    fn message(&self) -> Message<'_> {
        match self {
            Self::ByUser(text) => Message::user(text, &[]),
            Self::ByModel(text) => Message::assistant(text.into()),
            Self::BySystem(text) => Message::System(text),
        }
    }
}

impl<'a> Message<'a> {
    /// A text of the user, and what goes with it. An attachment whose bytes are lost is named in the text: a provider
    /// refuses one without bytes, and each later request with it.
    pub(crate) fn user(text: &'a str, attachments: &'a [Attachment]) -> Self {
        let mut text = Cow::Borrowed(text);
        if !attachments.iter().any(Attachment::is_lost) {
            return Self::User { text, attachments: attachments.into() };
        }
        for lost in attachments.iter().filter(|it| it.is_lost()) {
            add_paragraph(&mut text, format!("[{lost} is lost and was left out.]").into());
        }
        let rest: Vec<_> = attachments.iter().filter(|it| !it.is_lost()).cloned().collect();
        Self::User { text, attachments: rest.into() }
    }

    /// A text of the model.
    fn assistant(text: Cow<'a, str>) -> Self {
        Self::Assistant { text, calls: Vec::new(), provider_data: None }
    }

    /// Whether there is nothing in it that a provider takes.
    fn is_blank(&self) -> bool {
        match self {
            Self::System(text) => text.trim().is_empty(),
            Self::User { text, attachments } => text.trim().is_empty() && attachments.is_empty(),
            Self::Assistant { text, calls, .. } => text.trim().is_empty() && calls.is_empty(),
            Self::Tool { .. } => false,
        }
    }

    /// Merges the next message of the same role; returns it if the role differs.
    fn join(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (
                Self::User { text, attachments },
                Self::User { text: more, attachments: more_attachments },
            ) => {
                add_paragraph(text, more);
                if !more_attachments.is_empty() {
                    attachments.to_mut().extend_from_slice(&more_attachments);
                }
                None
            }
            // What stood between them was not stored, or not shown.
            (
                Self::Assistant { text, calls, provider_data },
                Self::Assistant { text: more, calls: more_calls, .. },
            ) if calls.is_empty() => {
                add_paragraph(text, more);
                *calls = more_calls;
                // The data refers to the bytes of one of the two texts.
                *provider_data = None;
                None
            }
            (_, next) => Some(next),
        }
    }
}

/// Adds a text to another one, as a paragraph of its own.
fn add_paragraph<'a>(text: &mut Cow<'a, str>, more: Cow<'a, str>) {
    if text.trim().is_empty() {
        *text = more;
    } else if !more.trim().is_empty() {
        *text += "\n\n";
        *text += more;
    }
}

impl Turn {
    fn has_no_prompt(&self) -> bool {
        Message::user(&self.prompt, &self.attachments).is_blank()
    }

    /// Its messages, without the results of the calls that are `cleared`.
    fn messages(&self, cleared: &HashSet<ToolCallId>) -> Vec<Message<'_>> {
        let mut messages = Vec::new();
        if !self.has_no_prompt() {
            messages.push(Message::user(&self.prompt, &self.attachments));
        }
        let mut items = self.items.as_slice();
        while !items.is_empty() {
            if let [TurnItem::Prompt(prompt, attachments), rest @ ..] = items {
                let message = Message::user(prompt, attachments);
                let is_lost = message.is_blank();
                messages.push(if is_lost { Message::user(NO_TEXT, &[]) } else { message });
                items = rest;
                continue;
            }
            let CallOutput { text, calls, provider_data } = CallOutput::first(&mut items);
            // Some providers refuse a message of white space only, which has no content anyway.
            let text = if text.trim().is_empty() { Cow::Borrowed("") } else { text };
            if text.is_empty() && calls.is_empty() {
                continue;
            }
            let results = calls.iter().map(|(tool, _, result)| {
                let sent = result.filter(|_| !cleared.contains(&tool.id));
                let left_out = if result.is_some() { CLEARED_RESULT } else { INTERRUPTED_TOOL };
                Message::Tool {
                    tool,
                    result: sent.map_or(left_out.into(), ToolResult::text_beside_images),
                    images: sent.map_or(&[], ToolResult::images),
                    is_error: result.is_none_or(ToolResult::is_error),
                }
            });
            let results: Vec<_> = results.collect();
            let calls = calls.into_iter().map(|(tool, input, _)| (tool, input)).collect();
            messages.push(Message::Assistant { text, calls, provider_data });
            messages.extend(results);
        }
        if self.state == TurnState::Interrupted {
            mark_interrupted(&mut messages);
        }
        messages
    }
}

/// The items of one provider call.
#[derive(Default)]
struct CallOutput<'a> {
    text: Cow<'a, str>,
    calls: Vec<CalledTool<'a>>,
    provider_data: Option<&'a ProviderData>,
}

type CalledTool<'a> = (&'a ToolCall, &'a str, Option<&'a ToolResult>);

impl<'a> CallOutput<'a> {
    /// Takes the output of the first call off `items`: its tool calls, its text, also that after or
    /// between the tool calls, and the provider's own data. Providers want the results directly after
    /// the whole output.
    fn first(items: &mut &'a [TurnItem]) -> Self {
        let (mut output, mut texts) = (Self::default(), Vec::new());
        let mut round = None;
        while let [item, rest @ ..] = *items {
            match item {
                TurnItem::Text { round: own, text } => {
                    // A text without a number is of the next call if it follows tool calls.
                    let belongs = match (round, own) {
                        (Some(round), Some(own)) => round == *own,
                        (None, _) | (_, None) => output.calls.is_empty(),
                    };
                    if !belongs {
                        break;
                    }
                    round = round.or(*own);
                    texts.push((output.calls.len(), text.as_str()));
                }
                TurnItem::Called { round: own, tool, input, result } => {
                    if round.is_some_and(|round| round != *own) {
                        break;
                    }
                    round = Some(*own);
                    output.calls.push((tool, input, result.as_deref()));
                }
                TurnItem::Prompt(..) => break,
                TurnItem::ProviderData(data) => {
                    output.provider_data = Some(data);
                    *items = rest;
                    break;
                }
            }
            *items = rest;
        }
        output.text = joined(&texts, output.provider_data.is_some());
        output
    }
}

/// One text of `texts`, each with the number of calls before it. Texts with calls between them become
/// paragraphs, unless the text `is_measured`: provider data refers to its bytes.
fn joined<'a>(texts: &[(usize, &'a str)], is_measured: bool) -> Cow<'a, str> {
    let mut joined = Cow::Borrowed("");
    let mut calls_before = 0;
    for (calls, text) in texts {
        let is_apart = *calls != calls_before && !is_measured;
        if is_apart && !joined.trim().is_empty() && !text.trim().is_empty() {
            joined += "\n\n";
        }
        joined += *text;
        calls_before = *calls;
    }
    joined
}

/// Appends the mark to the model's last text, or adds it as an answer if there is none, because
/// providers require user and assistant to alternate.
fn mark_interrupted(messages: &mut Vec<Message<'_>>) {
    if let Some(Message::Assistant { text, calls, .. }) = messages.last_mut()
        && calls.is_empty()
    {
        *text += "\n\n";
        *text += INTERRUPTED_MARK;
        return;
    }
    messages.push(Message::assistant(INTERRUPTED_MARK.into()));
}
