//! Requests on their way to the host: lines of standard input, or the prompt of a single run.

use super::input::{FromStdin, StdinLines};
use super::observers::Observers;
use super::refusal::unable;
use super::{AwaitedPrompt, Requests};
use crate::protocol::command::Submit;
use crate::protocol::id::TaskId;
use crate::protocol::wire::ClientError;
use crate::session::unread_prompt;
use crate::stdio::diagnostics::Diagnostics;
use crate::support::stderr;
use crate::support::threads::NoThread;
use std::collections::VecDeque;
use std::fs::File;
use std::future::pending;
use std::time::{Duration, Instant};

/// Chunks of input that are handled before the engine gets a turn, however many more there are.
const CHUNKS_BEFORE_ENGINE_MAX: u32 = 32;

/// Lines that are handled before the engine gets a turn: a few chunks can hold thousands.
const LINES_BEFORE_ENGINE_MAX: u32 = 256;

/// How long the engine waits for input that can be read: another process that shares standard
/// input may have taken it, and must not hold up the run.
const MORE_INPUT_MAX: Duration = Duration::from_millis(100);

type PromptRead = Result<Submit, ClientError>;

pub(super) struct Incoming {
    lines: StdinLines,
    /// Lines that were read and wait for room.
    waiting: VecDeque<FromStdin>,
    /// More input can be read; the engine waits for it until then.
    more_until: Option<Instant>,
    /// Since the engine had a turn in this provider call.
    chunks: u32,
    /// Lines handled since then.
    lines_taken: u32,
    call: Option<TaskId>,
    /// The prompt of a single run, while it is read.
    prompt: Option<AwaitedPrompt>,
}

/// Something that was read.
pub(super) enum Arrival {
    /// Lines, which wait to be taken with [`Incoming::pop`].
    Lines,
    /// The only prompt, or why there is none.
    Prompt(PromptRead),
}

impl Incoming {
    /// Begins to read what `requests` names; returns the requests to begin with. If the system has no
    /// thread to read standard input or to watch the reader (`unwatched`), they are a refusal.
    pub(super) fn of(
        requests: Requests,
        input: File,
        unwatched: Option<NoThread>,
        observers: &mut Observers,
    ) -> (Self, Requests) {
        let (lines, unread) = StdinLines::of(&requests, input);
        let requests = match (requests, unwatched.or(unread)) {
            // The reason was reported already.
            (refused @ (Requests::Refused(_) | Requests::Interrupted(_)), _) => refused,
            (requests, None) => requests,
            (Requests::Stdin { .. } | Requests::Once(_) | Requests::Awaited(_), Some(error)) => {
                observers.diagnostics = Diagnostics::None;
                refused_for(error)
            }
        };
        let waiting = VecDeque::new();
        let incoming = Self {
            lines,
            waiting,
            more_until: None,
            chunks: 0,
            lines_taken: 0,
            call: None,
            prompt: None,
        };
        (incoming, requests)
    }

    /// Waits for `prompt` from here on.
    pub(super) fn await_prompt(&mut self, prompt: AwaitedPrompt) {
        self.prompt = Some(prompt);
    }

    /// The next line.
    pub(super) fn pop(&mut self) -> Option<FromStdin> {
        let line = self.waiting.pop_front();
        self.lines_taken += u32::from(line.is_some());
        line
    }

    /// Until when the engine waits for input that could be read at once.
    pub(super) fn more_until(&self) -> Option<Instant> {
        self.more_until.filter(|until| Instant::now() < *until)
    }

    /// Waits for lines, if they are taken, and for the prompt. `run` is the active one.
    pub(super) async fn next(&mut self, takes_lines: bool, call: Option<TaskId>) -> Arrival {
        let Self { lines, prompt, .. } = self;
        let chunk = tokio::select! {
            biased;
            chunk = lines.next(), if takes_lines => chunk,
            read = awaited(prompt) => return Arrival::Prompt(read),
        };
        self.waiting.extend(chunk.lines);
        self.more_until = chunk.comes_more.then(|| Instant::now() + MORE_INPUT_MAX);
        self.count_for(call);
        self.chunks += 1;
        Arrival::Lines
    }

    /// Counts from the beginning of a provider call: a cancel right after its submit must find the run as it
    /// was.
    fn count_for(&mut self, call: Option<TaskId>) {
        if self.call != call {
            (self.call, self.chunks, self.lines_taken) = (call, 0, 0);
        }
    }

    /// So many chunks or lines were handled that the engine is to go on, however many more come.
    pub(super) fn owes_engine_a_turn(&mut self, call: Option<TaskId>) -> bool {
        self.count_for(call);
        self.chunks >= CHUNKS_BEFORE_ENGINE_MAX || self.lines_taken >= LINES_BEFORE_ENGINE_MAX
    }

    pub(super) fn engine_had_its_turn(&mut self) {
        self.chunks = 0;
        self.lines_taken = 0;
    }
}

/// The refusal of a process that can't read requests or watch its reader.
fn refused_for(error: NoThread) -> Requests {
    let client_error = unable(&error.into());
    stderr::message(&format!("duologue: {}\n", client_error.message));
    Requests::Refused(client_error)
}

/// Waits for the prompt, once.
async fn awaited(awaited: &mut Option<AwaitedPrompt>) -> PromptRead {
    let Some(reading) = awaited else { return pending().await };
    let read = (&mut reading.prompt).await.unwrap_or_else(|_| Err(unread_prompt()));
    let attachments = std::mem::take(&mut reading.attachments);
    *awaited = None;
    Ok(Submit { attachments, ..Submit::new(read?) })
}
