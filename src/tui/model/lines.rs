//! Lines in place of keys, from a pipe or a screen reader: each is handled when what was asked
//! before it has ended, so that a command finds what the lines before it have made.

use super::prompts::expand;
use super::{Action, Draft, Event, LEAVE_TIME, Note, State};
use crate::output::approval;
use crate::protocol::command::Decision;
use crate::tui::commands::{Command, Name, Wrong};
use std::collections::VecDeque;

/// Lines that may wait for their turn before no more are read.
const LINES_WAITING_MAX: usize = 16;

/// Lines that wait while a question is open: its reply may follow other lines.
const LINES_WAITING_WITH_QUESTION_MAX: usize = 1_024;

/// The lines of a chat without keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    waiting: VecDeque<String>,
    /// The input has ended.
    have_ended: bool,
    /// A person types them at a terminal, and so sees what was printed before; else they may all have
    /// been written before the first answer.
    are_typed: bool,
    /// An action of a line has not ended.
    is_acting: bool,
    /// Requests whose last frame has not come.
    under_way: Vec<String>,
    /// The call whose question was printed last.
    asked: Option<PrintedQuestion>,
    /// The line that is being handled chooses who gets what follows it.
    chooses: bool,
    /// A prompt was not answered, because it was refused or its run failed, or a command was not carried out.
    has_failed: bool,
}

/// A question that was printed.
#[derive(Clone, Debug)]
struct PrintedQuestion {
    call: String,
    /// It can be read.
    is_shown: bool,
}

/// A reply in a line to the question about a tool call.
enum ApprovalReply {
    /// A word with a slash, which is nothing else.
    Command(Decision),
    /// A letter or a word, which is a prompt unless a question was shown before.
    Word(Decision),
    /// A no and why, which is a prompt alike. It answers no question but that about a call.
    Reason(Decision),
}

impl Lines {
    /// Lines that a person types at a terminal, or those of a file or a program.
    pub(crate) fn new(are_typed: bool) -> Self {
        Self { are_typed, ..Self::default() }
    }

    /// The printed text is on the screen.
    pub(super) fn question_is_shown(&mut self) {
        if let Some(asked) = &mut self.asked {
            asked.is_shown = true;
        }
    }

    /// A request was made.
    pub(super) fn request_begins(&mut self, id: &str) {
        self.under_way.push(id.to_owned());
    }

    /// The last frame of a request was received.
    pub(super) fn request_ends(&mut self, id: &str) {
        self.under_way.retain(|other| other != id);
    }

    /// A prompt was not answered.
    pub(super) fn prompt_failed(&mut self) {
        self.has_failed = true;
    }

    /// Whether no more lines come.
    pub(super) fn have_ended(&self) -> bool {
        self.have_ended
    }

    fn has_shown_question(&self) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.is_shown)
    }
}

impl State {
    /// Whether there is room for another line.
    pub(crate) fn takes_lines(&self) -> bool {
        let Some(lines) = &self.lines else { return true };
        let most = match self.approvals.is_empty() && !lines.are_typed {
            true => LINES_WAITING_MAX,
            false => LINES_WAITING_WITH_QUESTION_MAX,
        };
        lines.waiting.len() < most
    }

    /// Whether lines of a file or a program had a prompt that was not answered, or a command that failed: nobody else
    /// sees it.
    pub(crate) fn has_failed_unseen(&self) -> bool {
        self.lines.as_ref().is_some_and(|lines| lines.has_failed && !lines.are_typed)
    }

    /// Whether a person types lines at a terminal.
    pub(crate) fn takes_typed_lines(&self) -> bool {
        self.lines.as_ref().is_some_and(|lines| lines.are_typed)
    }

    /// Ctrl-C while nothing runs: a second one leaves. It is not the end of input, and whoever meant to
    /// stop an answer that has just ended stays.
    pub(super) fn line_interrupted(&mut self) -> Vec<Action> {
        if self.leave_until.take().is_some_and(|until| self.now <= until) {
            return self.leave();
        }
        self.leave_until = Some(self.now + LEAVE_TIME);
        let text = "nothing is being answered; Ctrl-C again, Ctrl-D or /quit leaves";
        self.note(Note::Information, text.to_owned());
        Vec::new()
    }

    /// A line was read.
    pub(super) fn line_read(&mut self, line: String) -> Vec<Action> {
        self.leave_until = None;
        let Some(lines) = &mut self.lines else { return Vec::new() };
        let word = line.trim();
        let is_asked = lines.has_shown_question();
        let decision = match answer(word) {
            Some(ApprovalReply::Command(decision) | ApprovalReply::Word(decision)) => {
                Some(decision)
            }
            Some(ApprovalReply::Reason(_)) | None => None,
        };
        if let Some(actions) = self.answer_about_line(decision.as_ref()) {
            return actions;
        }
        if let Some(actions) = self.answer_about_files(decision.as_ref()) {
            return actions;
        }
        let Some(lines) = &mut self.lines else { return Vec::new() };
        match answer(word) {
            Some(
                ApprovalReply::Command(decision)
                | ApprovalReply::Word(decision)
                | ApprovalReply::Reason(decision),
            ) if is_asked => {
                return self.decide(decision);
            }
            // What was typed before a question appeared is no answer to it. A pipe has no other time.
            Some(ApprovalReply::Command(_)) if lines.are_typed => {
                self.note(Note::Error, NO_QUESTION.to_owned());
                return Vec::new();
            }
            Some(ApprovalReply::Command(_) | ApprovalReply::Word(_) | ApprovalReply::Reason(_))
            | None => {}
        }
        match word {
            "" => return Vec::new(),
            "/stop" => return self.cancel(),
            _ if lines.are_typed && Command::read(word) == Some(Ok(Command::Quit)) => {
                return self.leave();
            }
            // After a line that ends the input.
            _ if lines.have_ended => {}
            _ => lines.waiting.push_back(line),
        }
        Vec::new()
    }

    pub(super) fn lines_ended(&mut self) {
        if let Some(lines) = &mut self.lines {
            lines.have_ended = true;
        }
        self.end_question_with_input();
    }

    /// Handles the lines that have waited long enough, up to the first that has something done.
    pub(super) fn next_lines(&mut self) -> Vec<Action> {
        loop {
            let Some(lines) = &mut self.lines else { return Vec::new() };
            let is_loading =
                self.is_opening || self.lists_servers.is_some() || self.consent.is_unknown();
            let waits = is_loading || self.attaching.asks_in_lines();
            if self.is_ending || waits || lines.is_acting {
                return Vec::new();
            }
            if !self.approvals.is_empty() {
                return self.answer_by_line();
            }
            if lines.waiting.is_empty() && lines.have_ended {
                self.is_ending = true;
                return vec![Action::EndInput];
            }
            if !lines.under_way.is_empty() {
                return Vec::new();
            }
            let Some(line) = lines.waiting.pop_front() else { return Vec::new() };
            let actions = self.begin_line(&line);
            if !actions.is_empty() {
                return actions;
            }
        }
    }

    /// An error was printed, so what the line asks for was not done. If others would get what follows it in a file,
    /// no more is read.
    pub(super) fn line_failed(&mut self) {
        let Some(lines) = &mut self.lines else { return };
        lines.has_failed = true;
        if lines.are_typed || !std::mem::take(&mut lines.chooses) {
            return;
        }
        let may_go_on = !lines.waiting.is_empty() || !lines.have_ended;
        lines.waiting.clear();
        lines.have_ended = true;
        if may_go_on {
            self.note(Note::Warning, NOT_READ.to_owned());
        }
    }

    /// Handles a line in its turn. The lines after it wait until what it has done has ended.
    pub(super) fn begin_line(&mut self, line: &str) -> Vec<Action> {
        self.lines.iter_mut().for_each(|lines| lines.chooses = chooses(line));
        let actions = self.line(line);
        let is_acting = actions.iter().any(ends_with_an_event);
        self.lines.iter_mut().for_each(|lines| lines.is_acting |= is_acting);
        actions
    }

    /// The part of a line's action that has ended.
    pub(super) fn action_ended(&mut self, event: &Event) {
        let ends = matches!(
            event,
            Event::Reported(_)
                | Event::Sessions(_)
                | Event::Profiles(_)
                | Event::Expanded { .. }
                | Event::Forked(_)
                | Event::Sent(..)
                | Event::Measured { .. }
                | Event::Opened(_)
                | Event::NotOpened(_)
        );
        if let Some(lines) = &mut self.lines
            && ends
        {
            if matches!(event, Event::Opened(_)) {
                lines.under_way.clear();
            }
            lines.is_acting = false;
        }
    }

    fn line(&mut self, line: &str) -> Vec<Action> {
        if let Some(ApprovalReply::Command(_)) = answer(line.trim()) {
            self.note(Note::Error, NO_QUESTION.to_owned());
            return Vec::new();
        }
        match Command::read(line.trim_end()) {
            Some(Ok(Command::Quit)) => {
                self.lines.iter_mut().for_each(|lines| {
                    lines.waiting.clear();
                    lines.have_ended = true;
                });
                Vec::new()
            }
            Some(Ok(command)) if command.sends() && self.consent_is_missing() => {
                self.note(Note::Error, NO_CONSENT.to_owned());
                Vec::new()
            }
            Some(Ok(Command::Edit(Some(text)))) => self.send_line(Draft::Edit(text)),
            Some(Ok(command)) => self.order(command),
            Some(Err(Wrong::Unknown(_))) => expand(line, false),
            Some(Err(wrong)) => {
                self.note(Note::Error, wrong.to_string());
                Vec::new()
            }
            None if !self.may_send_line(line) => Vec::new(),
            None => self.send_line(Draft::Line(line.to_owned())),
        }
    }

    /// Asks about the first call that waits, unless its question was printed already.
    pub(super) fn ask_by_line(&mut self) {
        let Some(lines) = &mut self.lines else { return };
        let Some(approval) = self.approvals.first() else { return lines.asked = None };
        if lines.asked.as_ref().is_some_and(|asked| asked.call == approval.call) {
            return;
        }
        lines.asked = Some(PrintedQuestion { call: approval.call.clone(), is_shown: false });
        let (tool, server, input) = (&approval.tool, &approval.server, &approval.input);
        let from = if server.is_empty() { String::new() } else { format!(" of {server}") };
        let more = match self.approvals.len() {
            1 => String::new(),
            count => format!(" ({} more will be asked about after it)", count - 1),
        };
        let text = format!(
            "May {tool}{from} run with {input}?{more} Write y (or /allow), a (or /always, in this \
             conversation), n or n REASON (or /deny)"
        );
        self.note(Note::Warning, text);
    }

    /// The next line, if it answers the question; nobody else can once all lines were read.
    fn answer_by_line(&mut self) -> Vec<Action> {
        let Some(lines) = &mut self.lines else { return Vec::new() };
        let next = lines.waiting.front().and_then(|line| answer(line.trim()));
        match next {
            Some(ApprovalReply::Command(decision)) => {
                lines.waiting.pop_front();
                self.decide(decision)
            }
            Some(ApprovalReply::Word(_) | ApprovalReply::Reason(_)) | None if lines.have_ended => {
                let reason = "input has ended, so nobody can answer";
                self.note(Note::Warning, reason.to_owned());
                self.decide(Decision::Deny { reason: reason.to_owned() })
            }
            Some(ApprovalReply::Word(_) | ApprovalReply::Reason(_)) | None => Vec::new(),
        }
    }
}

const NO_CONSENT: &str =
    "another provider would get the conversation; write a prompt first, and agree to that";

/// A line that a terminal has cut.
pub(super) const LINE_CUT: &str = "the line was not sent, as its end is lost: a terminal takes no line of more than \
     4,094 bytes; name a file with @FILE in place of the text, or chat without --plain";

/// Lines of a file after one that chooses and has failed.
const NOT_READ: &str =
    "nothing after this line is read, because it was meant for what the line chooses";

const NO_QUESTION: &str = "no tool call waits for a decision";

/// Whether a line chooses the model or the conversation that the lines after it are meant for.
fn chooses(line: &str) -> bool {
    match Command::read(line.trim_end()) {
        Some(Ok(Command::Resume(words))) => !words.is_empty(),
        Some(Ok(command)) => {
            matches!(command, Command::Model(Some(_)) | Command::Profile(Some(_)) | Command::Fork)
        }
        Some(Err(wrong)) => wrong == Wrong::TakesNothing(Name::Fork.as_str()),
        None => false,
    }
}

/// Whether a text is the word for a decision about a tool call.
pub(super) fn is_decision(text: &str) -> bool {
    matches!(answer(text.trim()), Some(ApprovalReply::Command(_) | ApprovalReply::Word(_)))
}

fn answer(word: &str) -> Option<ApprovalReply> {
    if let Some(reason) = word.strip_prefix("/deny ") {
        let reason = reason.trim().to_owned();
        return Some(ApprovalReply::Command(Decision::Deny { reason }));
    }
    Some(match word.to_ascii_lowercase().as_str() {
        "/allow" => ApprovalReply::Command(Decision::AllowOnce),
        "/always" => ApprovalReply::Command(Decision::AllowSession),
        "/deny" => ApprovalReply::Command(Decision::Deny { reason: String::new() }),
        _ => match approval::decision(word)? {
            Decision::Deny { reason } if !reason.is_empty() => {
                ApprovalReply::Reason(Decision::Deny { reason })
            }
            decision @ (Decision::AllowOnce | Decision::AllowSession | Decision::Deny { .. }) => {
                ApprovalReply::Word(decision)
            }
        },
    })
}

/// Whether an event reports the end of the action, or that a request was made: that ends with its last
/// frame.
fn ends_with_an_event(action: &Action) -> bool {
    matches!(
        action,
        Action::Open(_)
            | Action::Fork(_)
            | Action::ListSessions
            | Action::ListProfiles
            | Action::Expand { .. }
            | Action::Write { .. }
            | Action::RestartServer(_)
            | Action::Measure { .. }
            | Action::Request(_)
    )
}

#[cfg(test)]
mod tests;
