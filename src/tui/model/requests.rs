//! The requests of the person, from the key to the last frame.

use super::edits;
use super::{Action, CommandOutput, Expansion, Lines, Note, Piece, State, Switch};
use crate::protocol::attachment::Attachment;
use crate::protocol::command::{Decision, Edit};
use crate::protocol::constants::{code, done};
use crate::protocol::proto::chat::ChatAttachment;
use crate::protocol::proto::rpc::ErrorFrame;
use crate::task::server::FilledPrompt;
use crate::tui::text::clean;
use std::time::Duration;

/// The detail of the error for an attachment that the provider does not take.
const UNSUPPORTED_ATTACHMENT: &str = "config: unsupported";

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outgoing {
    /// A prompt; with the run that it joins, what options attach to it, the outputs of commands that go along, and
    /// what answers it if that was chosen during the run before it.
    Submit {
        prompt: String,
        joins: Option<String>,
        source: PromptSource,
        attached: Vec<Attachment>,
        outputs: Vec<CommandOutput>,
        choice: Option<Switch>,
    },
    /// Stop a run or withdraw a queued prompt.
    Cancel {
        target: Option<String>,
    },
    Approve {
        call: String,
        decision: Decision,
    },
    SwitchModel {
        profile: String,
        model: String,
    },
    /// Report the states of the tool servers, now and whenever they change.
    FollowServers,
    /// Give the conversation a title.
    Rename(String),
    /// Have the model sent a summary in place of the earlier turns.
    Compact(String),
    /// Drop the end of the conversation, and perhaps ask again.
    Edit(Edit),
    /// Ask a prompt in place of an earlier one. Of what goes with that, `removed` is left out, by ids,
    /// and the files that `mentions` names are added.
    Replace {
        message_id: String,
        prompt: String,
        removed: Vec<String>,
        mentions: Vec<String>,
    },
}

/// Where a prompt comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PromptSource {
    /// The person has written it in this line: the files that it mentions go with it.
    Written { line: String },
    /// This line stands for it: what goes with it came along with it, or is mentioned in the line.
    Line { line: String, attachments: Vec<Attachment>, mentions: Vec<String> },
    /// It is that of the command line, with all that goes with it.
    CommandLine,
}

/// A prompt that waits for its turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waiting {
    /// The request.
    pub(crate) id: String,
    pub(crate) prompt: String,
    /// When it was sent.
    pub(crate) since: Duration,
    /// It joins the active run.
    pub(crate) joins: bool,
    attached: Vec<Attachment>,
    outputs: Vec<CommandOutput>,
    /// The line in which it was written, or which stands for it.
    line: String,
    /// A terminal has shown it when it was typed as a line.
    is_echoed: bool,
}

impl State {
    /// Asks the model the prompt that is written in `line`; `joins`: as part of the active run, if there is one.
    pub(super) fn submit(&mut self, line: &str, prompt: String, joins: bool) -> Vec<Action> {
        let source = PromptSource::Written { line: line.to_owned() };
        self.submit_as(line, prompt, joins, source)
    }

    /// Like `submit`, for a prompt that `line` stands for: files that only the prompt mentions are not attached.
    pub(super) fn submit_expanded(
        &mut self,
        line: &str,
        Expansion { prompt, mentions, warnings }: Expansion,
        joins: bool,
    ) -> Vec<Action> {
        for warning in warnings {
            self.note(Note::Warning, warning);
        }
        let FilledPrompt { text, attachments } = prompt;
        let source = PromptSource::Line { line: line.to_owned(), attachments, mentions };
        self.submit_as(line, text, joins, source)
    }

    fn submit_as(
        &mut self,
        line: &str,
        prompt: String,
        joins: bool,
        source: PromptSource,
    ) -> Vec<Action> {
        let joins = self.run.as_ref().filter(|_| joins).map(|run| run.request.clone());
        let remember = self.remember(line);
        let attached = std::mem::take(&mut self.attached);
        let outputs = std::mem::take(&mut self.outputs);
        let choice = self.switch.clone().filter(|_| joins.is_none());
        let outgoing = Outgoing::Submit { prompt, joins, source, attached, outputs, choice };
        let mut actions = vec![Action::Request(outgoing)];
        actions.extend(remember);
        actions.push(Action::Scroll(super::Scroll::End));
        actions
    }

    /// Stops the run and withdraws the queued prompts.
    pub(super) fn cancel(&mut self) -> Vec<Action> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut actions: Vec<_> = waiting.iter().map(|it| cancel(&it.id)).collect();
        // Each is put before what is written, so the last comes first.
        for waiting in waiting.into_iter().rev() {
            self.give_back_waiting(waiting);
        }
        if let Some(run) = &mut self.run {
            run.is_stopping = true;
            actions.push(cancel(&run.request));
        }
        actions
    }

    /// Takes the prompt that waits last back into the editor.
    pub(super) fn take_back(&mut self) -> Vec<Action> {
        let Some(waiting) = self.waiting.pop() else { return Vec::new() };
        let action = cancel(&waiting.id);
        self.give_back_waiting(waiting);
        vec![action]
    }

    fn give_back_waiting(&mut self, waiting: Waiting) {
        self.outputs.splice(..0, waiting.outputs);
        if !self.is_plain() {
            // Lines have no way to drop what has one prompt after the other refused.
            self.attached.splice(..0, waiting.attached);
        }
        self.give_back(waiting.line);
    }

    /// A line whose prompt was not answered goes back to where it was written; returns whether it stands there alone.
    pub(super) fn give_back(&mut self, line: String) -> bool {
        if self.is_ending {
            // The text in the editor was saved before.
            return false;
        }
        if self.is_plain() {
            let text = format!("this prompt was not answered: {}", clean(&line));
            self.note(Note::Warning, text);
            return false;
        }
        if !self.asking.takes_reason() {
            self.history.leave();
        }
        self.with_draft(|state| state.write_above(line))
    }

    /// Writes `line` above what is written; returns whether that is nothing.
    fn write_above(&mut self, line: String) -> bool {
        let written = self.take_line();
        let is_alone = written.trim().is_empty();
        match is_alone {
            true => self.write_again(line),
            // Only the beginning of a text may be that of a command.
            false => self.editor.set(format!("{line}\n{}", self.prompt_in(&written))),
        }
        is_alone
    }

    /// Gives a prompt back that was to take the place of the prompt `message_id`, and is still to do so.
    fn give_replacement_back(&mut self, message_id: String, prompt: &str) {
        // What comes back from the editor has the place of what it was given, which was no edit.
        let is_lent = self.lent.is_some();
        let is_alone = self.give_back(self.line_of(prompt));
        if is_alone && !is_lent && self.prompts.iter().any(|asked| asked.message_id == message_id) {
            self.edits = Some(message_id);
        }
    }

    /// A request was made.
    pub(super) fn sent(&mut self, outgoing: Outgoing, id: String) {
        if let Some(lines) = &mut self.lines {
            lines.request_begins(&id);
        }
        if let Outgoing::Submit { prompt, joins, attached, outputs, source, .. } = outgoing {
            let (since, joins) = (self.now, joins.is_some());
            let is_written = matches!(source, PromptSource::Written { .. });
            let is_first = self.first.take_if(|first| *first == prompt).is_some();
            let is_echoed = self.takes_typed_lines() && is_written && !is_first;
            let line = match source {
                PromptSource::Written { line } | PromptSource::Line { line, .. } => line,
                PromptSource::CommandLine => self.line_of(&prompt),
            };
            let waiting = Waiting { id, prompt, since, joins, attached, outputs, line, is_echoed };
            self.waiting.push(waiting);
        } else {
            self.quiet.push((id, outgoing));
        }
    }

    /// An error of a request, or of none.
    pub(super) fn failed(&mut self, request: &str, error: &ErrorFrame) {
        let outgoing = self.quiet.iter().find(|(id, _)| id == request).map(|(_, it)| it);
        // A run may end before its cancel or an approval is handled.
        let is_late = matches!(outgoing, Some(Outgoing::Cancel { .. } | Outgoing::Approve { .. }))
            && [code::NO_ACTIVE_REQUEST, code::UNKNOWN_TOOL_CALL].contains(&error.code.as_str());
        if is_late {
            return;
        }
        if matches!(outgoing, Some(Outgoing::Edit(_) | Outgoing::Replace { .. }))
            && let Some(text) = edits::failure(error)
        {
            return self.note(Note::Error, text.to_owned());
        }
        let is_switch = matches!(outgoing, Some(Outgoing::SwitchModel { .. }));
        if is_switch || error.code == code::INVALID_SETTINGS {
            // Nothing asks it.
            (self.checks_model, self.switch) = (None, None);
        }
        if (is_switch || error.code == code::INVALID_SETTINGS) && !error.detail.is_empty() {
            // The message is about a request, which a person has not written.
            let answers = self.status.answers_with();
            let text = format!("{}; {answers} answers as before", clean(&error.detail));
            return self.note(Note::Error, text);
        }
        let is_command = outgoing.is_some();
        self.has_reported_store |= error.code == code::STORE_FAILED;
        let text = match new_in_detail(&error.message, &error.detail) {
            detail if detail.is_empty() => error.message.clone(),
            detail => format!("{} ({})", error.message, detail.join(": ")),
        };
        if let Some(run) = self.run.as_mut().filter(|run| run.request == request) {
            run.refuses_attachments = error.detail == UNSUPPORTED_ATTACHMENT;
            self.log.ended(&format!("failed: {}", clean(&text)));
        }
        self.last_failure = Some(clean(&text));
        if error.code == code::STORE_FAILED {
            self.store_failure.clone_from(&self.last_failure);
        }
        match is_command {
            true => self.note(Note::Error, text),
            // A prompt has failed if its last frame says so.
            false => self.print(Piece::Note(Note::Error, text)),
        }
    }

    /// The last frame of a request.
    pub(super) fn done(&mut self, request: &str, status: &str) {
        if let Some(lines) = &mut self.lines {
            lines.request_ends(request);
        }
        let is_prompt = self.waiting.iter().any(|waiting| waiting.id == request);
        let refused = self.quiet.extract_if(.., |(id, _)| id == request).next();
        if let Some((_, Outgoing::Rename(title))) = &refused
            && status == done::OK
        {
            self.note(Note::Information, format!("this conversation is called {title}"));
        }
        if let Some((_, Outgoing::Replace { message_id, prompt, .. })) = refused
            && status == done::FAILED
        {
            self.give_replacement_back(message_id, &prompt);
        }
        if let Some(at) = self.waiting.iter().position(|it| it.id == request) {
            let waiting = self.waiting.remove(at);
            // A prompt that has joined a run ends with it.
            if status == done::FAILED {
                self.give_back_waiting(waiting);
            }
        }
        let is_run = self.run.as_ref().is_some_and(|run| run.request == request);
        if (is_run || is_prompt) && status == done::FAILED {
            self.lines.iter_mut().for_each(Lines::prompt_failed);
        }
        if is_run {
            let is_refused = self.run.as_ref().is_some_and(|run| run.refuses_attachments);
            self.end_run(status);
            let refused = self.last_with_attachments().filter(|_| is_refused && !self.is_plain());
            if let Some(prompt) = refused.filter(|_| status == done::FAILED) {
                self.give_back(self.line_of(&prompt));
            }
        }
    }

    /// The prompt was accepted: it waits no longer.
    pub(super) fn accepted(
        &mut self,
        request: &str,
        message_id: String,
        text: String,
        attachments: &[ChatAttachment],
    ) {
        let sent = self.waiting.extract_if(.., |it| it.id == request).next();
        let is_echoed = sent.is_some_and(|it| it.is_echoed && it.prompt == text);
        self.quiet.retain(|(id, _)| id != request);
        self.keep_prompt(message_id, &text, attachments);
        let attachments = attachments.iter().map(|it| clean(&it.filename)).collect();
        self.print_prompt(text, attachments, is_echoed);
    }
}

fn cancel(id: &str) -> Action {
    Action::Request(Outgoing::Cancel { target: Some(id.to_owned()) })
}

/// Characters of a part of a detail that are looked for in the message: it quotes no more of a long one.
const QUOTED_CHARS: usize = 200;

/// The parts of the detail of an error that its message does not have. The detail of a failed run begins
/// with a word for programs.
fn new_in_detail<'a>(message: &str, detail: &'a str) -> Vec<&'a str> {
    let detail = detail.trim();
    let mut rest = detail.split_once(": ").map_or(detail, |(_, rest)| rest);
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let end = rest.char_indices().nth(QUOTED_CHARS).map_or(rest.len(), |(end, _)| end);
        if message.contains(&rest[..end]) {
            break;
        }
        let (part, after) = rest.split_once(": ").unwrap_or((rest, ""));
        if !message.contains(part) {
            parts.push(part);
        }
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_says_is_shown_once() {
        let check = |message: &str, detail: &str, expected: &[&str]| {
            assert_eq!(new_in_detail(message, detail), expected, "{detail:?}");
        };
        let message = "x refuses the request (status 400); the provider says: Error: odd";
        check(
            message,
            "provider: status 400: invalid_request_error: Error: odd",
            &["invalid_request_error"],
        );
        check(message, "provider: status 400: Error: odd", &[]);
        check("it broke", "network: connection reset: by peer", &["connection reset", "by peer"]);
        check("it broke", "", &[]);
        let long = "words ".repeat(100);
        check(
            &format!("x says: {}…", &long[..300]),
            &format!("provider: status 400: {long}"),
            &["status 400"],
        );
    }
}
