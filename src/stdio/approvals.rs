//! Asks the person who has started a single run, at the terminal, whether a tool call may run: one call after the
//! other, in lines. What was typed before a question is dropped, so that nothing answers it by accident.

use super::FrontEnd;
use crate::output::approval;
use crate::protocol::any::Any;
use crate::protocol::command::{Approve, Command, Decision};
use crate::protocol::id::{RequestId, ToolCallId};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::tools::ToolApprovalRequested;
use crate::protocol::wire::Frame;
use crate::support::files::{wait_until, write_all};
use crate::support::hidden::revealed;
use crate::support::shorten::first_chars;
use crate::support::threads;
use rustix::event::PollFlags;
use rustix::termios::{QueueSelector, tcflush};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::future::pending;
use std::io;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Characters of a call's arguments that are shown.
const ARGUMENTS_CHARS_MAX: usize = 4096;

/// Bytes of the text before a call that are shown with it.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Bytes of a line that is typed: more than terminals give at once.
const LINE_BYTES: usize = 4096;

/// How often a question looks whether it is still to be answered.
const WAIT_TIME: Duration = Duration::from_millis(100);

const CHOICES: &str = "run it? y: yes, a: yes to this tool from now on, n or n REASON: no > ";

const UNKNOWN: &str = "that is no answer; type y, a, n, or n and a reason, which the model reads\n";

/// A person at a terminal, and the calls that wait for an answer.
#[derive(Debug)]
pub(crate) struct TerminalApprovals {
    /// What is typed.
    input: File,
    /// What the person reads.
    output: File,
    /// The person reads the answer while it streams.
    is_answer_shown: bool,
    /// The text of the provider call, where the person does not see it otherwise.
    text: String,
    waiting: VecDeque<Question>,
    asked: Option<Asked>,
    /// The request that is the run. Every other one is an answer of this person, and has no frames for the reader.
    run: Option<RequestId>,
}

#[derive(Debug)]
struct Question {
    call: String,
    text: String,
}

/// The question on the terminal.
#[derive(Debug)]
struct Asked {
    call: String,
    decision: oneshot::Receiver<io::Result<Decision>>,
}

impl TerminalApprovals {
    /// A person who types on `input` and reads `output`, both terminals, and there also the answer, if it is shown.
    pub(crate) fn new(input: File, output: File, is_answer_shown: bool) -> Self {
        let (text, waiting) = (String::new(), VecDeque::new());
        Self { input, output, is_answer_shown, text, waiting, asked: None, run: None }
    }

    /// The request of the run.
    pub(super) fn begin(&mut self, run: RequestId) {
        self.run = Some(run);
    }

    /// Whether `frame` replies to an answer of the person.
    pub(super) fn is_reply(&self, frame: &Frame) -> bool {
        let is_run =
            |run: &RequestId| frame.request_id.is_empty() || run.as_str() == frame.request_id;
        self.run.as_ref().is_some_and(|run| !is_run(run))
    }

    /// Whether `frame` is the last one of the run.
    pub(super) fn is_end(&self, frame: &Frame) -> bool {
        matches!(frame.frame, Some(Body::Done(_))) && !self.is_reply(frame)
    }

    /// Takes the next frame.
    pub(super) fn take(&mut self, frame: &Frame) {
        let Some(Body::UiEvent(event)) = &frame.frame else { return };
        if let Some(Any::ChatProviderCallStarted(_)) = &event.payload {
            self.text.clear();
        }
        if let Some(Any::ChatTextPatch(patch)) = &event.payload
            && !self.is_answer_shown
            && self.text.len() < TEXT_BYTES_MAX
        {
            self.text.push_str(&patch.text);
        }
        if let Some(Any::ToolApprovalRequested(asked)) = &event.payload {
            // It comes before the first of the calls.
            let said = std::mem::take(&mut self.text);
            self.waiting.push_back(Question::of(said.trim(), asked));
        }
        if let Some(Any::ToolApprovalResolved(resolved)) = &event.payload {
            self.waiting.retain(|question| question.call != resolved.tool_call_id);
            self.asked.take_if(|asked| asked.call == resolved.tool_call_id);
        }
    }

    /// Whether a question is on the terminal, or about to be.
    pub(super) fn is_asking(&self) -> bool {
        self.asked.is_some() || !self.waiting.is_empty()
    }

    /// The answer to the next question; never if there is none. Cancel-safe.
    pub(super) async fn answer(&mut self) -> Approve {
        if self.asked.is_none()
            && let Some(question) = self.waiting.pop_front()
        {
            self.asked = Some(self.ask(question));
        }
        let Some(asked) = &mut self.asked else { return pending().await };
        let decision = match (&mut asked.decision).await {
            Ok(Ok(decision)) => decision,
            Ok(Err(error)) => deny(&format!("the terminal can't be used: {error}")),
            Err(_) => deny("the terminal can't be used"),
        };
        let call = ToolCallId(std::mem::take(&mut asked.call));
        self.asked = None;
        Approve { call, decision }
    }

    /// Has a thread ask, as both terminals may block it.
    fn ask(&self, Question { call, text }: Question) -> Asked {
        let (decided, decision) = oneshot::channel();
        let files = self.input.try_clone().and_then(|input| Ok((input, self.output.try_clone()?)));
        let ask = move || {
            let asked =
                files.and_then(|(input, output)| dialogue(&input, &output, &text, &decided));
            if let Some(outcome) = asked.transpose() {
                // The question may have been answered otherwise meanwhile.
                drop(decided.send(outcome));
            }
        };
        // Without a thread, nobody is asked.
        threads::spawn("ask", ask).ok();
        Asked { call, decision }
    }
}

impl FrontEnd<'_> {
    /// Has the session know what the person has decided.
    pub(super) fn decided(&mut self, approve: Approve) {
        let (_, effects) = self.host.request(Command::Approve(approve));
        if !self.asking.as_ref().is_some_and(TerminalApprovals::is_asking)
            && let Some(progress) = &mut self.observers.progress
        {
            progress.resume();
        }
        self.perform(effects);
    }

    /// Takes a frame of a run about which a person is asked. Returns whether the reader gets it.
    pub(super) fn asks(&mut self, frame: &Frame) -> bool {
        let Some(asking) = &mut self.asking else { return true };
        if asking.is_reply(frame) {
            return false;
        }
        asking.take(frame);
        if asking.is_asking()
            && let Some(progress) = &mut self.observers.progress
        {
            progress.pause();
        }
        true
    }
}

/// Waits for the answer of a person, if one is asked.
pub(super) async fn answered(asking: &mut Option<TerminalApprovals>) -> Approve {
    match asking {
        Some(asking) => asking.answer().await,
        None => pending().await,
    }
}

impl Question {
    /// A question about this call, before which the model said something or nothing.
    fn of(said: &str, asked: &ToolApprovalRequested) -> Self {
        let shown = [&asked.tool_name, &asked.server, &asked.input].map(|text| one_line(text));
        let [tool, server, input] = &shown;
        let said = if said.is_empty() { String::new() } else { revealed(said) + "\n" };
        let text = said + &approval::request(tool, server, input) + "\n";
        Self { call: asked.tool_call_id.clone(), text }
    }
}

/// `text` in one line, as a person may trust it: with escapes for hidden characters, and cut.
fn one_line(text: &str) -> String {
    let shown = first_chars(text, ARGUMENTS_CHARS_MAX);
    let rest = match &shown {
        Cow::Owned(_) => format!(" ({} bytes in all)", text.len()),
        Cow::Borrowed(_) => String::new(),
    };
    revealed(&shown).replace('\n', " ") + &rest
}

/// Asks until there is an answer; `None` if nobody waits for it any more.
fn dialogue(
    input: &File,
    output: &File,
    text: &str,
    decided: &oneshot::Sender<io::Result<Decision>>,
) -> io::Result<Option<Decision>> {
    write_all(output, text.as_bytes())?;
    loop {
        // A background job's terminal can't be changed, and then nothing was typed for this.
        tcflush(input, QueueSelector::IFlush).ok();
        write_all(output, CHOICES.as_bytes())?;
        while !wait_until(input, PollFlags::IN, Instant::now() + WAIT_TIME) {
            if decided.is_closed() {
                write_all(output, b"\n")?;
                return Ok(None);
            }
        }
        let mut line = [0; LINE_BYTES];
        let bytes = rustix::io::read(input, &mut line)?;
        if bytes == 0 {
            write_all(output, b"\n")?;
        }
        let typed = String::from_utf8_lossy(&line[..bytes]);
        // An empty line, and the end of input, is no permission.
        let none = || typed.trim().is_empty().then(|| deny(""));
        if let Some(decision) = approval::decision(&typed).or_else(none) {
            return Ok(Some(decision));
        }
        write_all(output, UNKNOWN.as_bytes())?;
    }
}

fn deny(reason: &str) -> Decision {
    Decision::Deny { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_in_one_line_of_limited_length() {
        let said = |said: &str, input: &str| {
            let (tool_name, server) = ("rm\u{202e}".to_owned(), "files".to_owned());
            let input = input.to_owned();
            let asked = ToolApprovalRequested { tool_name, server, input, ..Default::default() };
            Question::of(said, &asked).text
        };
        let text = |input: &str| said("", input);
        let expected = "rm\\u{202e} of files asks to run with {\"a\": \"\\u{1b}[2J\", \"b\": 1}\n";
        assert_eq!(text("{\"a\": \"\u{1b}[2J\",\n\"b\": 1}"), expected);
        assert!(said("One\u{1b}[2J.\nTwo.", "{}").starts_with("One\\u{1b}[2J.\nTwo.\nrm"));
        let long = text(&"x".repeat(ARGUMENTS_CHARS_MAX + 1));
        assert!(long.ends_with("x\u{2026} (4097 bytes in all)\n"), "{long}");
    }
}
