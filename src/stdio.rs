//! The front end on standard input and output: hands request lines, signals and the end of the
//! reader to the host, and writes its frames, over `transport`. One loop owns everything.
//!
//! `settings` is how it runs, and `printed` what the reader gets. `observers` get the same frames: the
//! debug file, `diagnostics`, `progress`. `saved` is a file for the last message, and `approvals` has a person decide
//! about tool calls.

mod approvals;
mod diagnostics;
mod notices;
mod observers;
mod printed;
mod progress;
mod refusal;
mod saved;
mod settings;

pub(crate) use approvals::TerminalApprovals;
pub(crate) use notices::{Unread, UnreadInput};
pub(crate) use printed::Drawing;
pub(crate) use progress::{Progress, Shown};
pub(crate) use refusal::{is_shortage, refusal, unable};
pub(crate) use saved::SavedMessage;
pub(crate) use settings::{AwaitedPrompt, Requests, Settings};

use crate::host::{CodedWarning, Effect, Effects, Host, log_input};
use crate::protocol::command::{Command, Submit};
use crate::protocol::wire::{self, ClientError};
use crate::session::{ExitCode, Input, Signal, Uptime};
use crate::support::sleep_until;
use crate::support::stderr;
use crate::support::terminal::escape_control;
use crate::support::threads::NoThread;
use crate::transport::{
    Ending, Finish, Incoming, Outgoing, RawLine, Received, Signals, Stdio, status_after,
};
use approvals::answered;
use diagnostics::Diagnostics;
use notices::{INPUT_UNREAD, Notices};
use observers::Observers;
use printed::Printed;
use refusal::unread_prompt;
use std::future::{pending, ready};
use std::io::{self, IsTerminal};
use std::time::Instant;
use tokio::task::yield_now;

/// Engine events handled before the output is written again.
const EVENTS_AT_ONCE_MAX: usize = 64;

/// Serves one conversation, from `hello` to the end of the process.
pub(crate) async fn serve(stdio: Stdio, signals: &mut Signals, settings: Box<Settings>) -> Finish {
    FrontEnd::start(stdio, signals, settings).run().await
}

struct FrontEnd<'a> {
    host: Host,
    signals: &'a mut Signals,
    incoming: Incoming,
    /// The prompt of a single run, while it is read.
    prompt: Option<AwaitedPrompt>,
    outgoing: Outgoing<Printed>,
    observers: Observers,
    /// The file for the last message.
    saved: Option<SavedMessage>,
    /// The person who decides about tool calls.
    asking: Option<TerminalApprovals>,
    notices: Notices,
    ending: Ending,
}

impl<'a> FrontEnd<'a> {
    /// Writes the first frames, and only then prepares everything else.
    fn start(stdio: Stdio, signals: &'a mut Signals, settings: Box<Settings>) -> Box<Self> {
        let mut observers = Observers::new(&settings);
        let Settings {
            host,
            requests,
            format,
            drawing,
            saved,
            asking,
            progress,
            debug_file,
            notices,
            unread,
        } = *settings;
        observers.debug_file = debug_file;
        observers.progress = progress;
        let Stdio { input, output } = stdio;
        let faults = host.faults.clone();
        let (host, greeting) = Host::new(host);
        greeting.iter().for_each(|frame| observers.copy(frame));
        let printed = Printed { format, is_shown: output.is_terminal(), drawing };
        let (outgoing, unwatched) = Outgoing::start(output, printed, greeting, &faults);
        let incoming = if let Requests::Stdin { line_bytes_max } = &requests {
            Incoming::start(input, *line_bytes_max)
        } else {
            Ok(Incoming::default())
        };
        let (incoming, unread_lines) = match incoming {
            Ok(incoming) => (incoming, None),
            Err(error) => (Incoming::default(), Some(error)),
        };
        // Large, and moved from one future into another.
        let mut front_end = Box::new(Self {
            host,
            signals,
            incoming,
            prompt: None,
            outgoing,
            observers,
            saved,
            asking,
            notices: Notices::new(notices, unread),
            ending: Ending::NotYet,
        });
        front_end.begin(requests, unwatched.or(unread_lines));
        front_end
    }

    /// Handles the requests of the command line. After `hello`, which must not wait for the log.
    /// `lacking`: the system has no thread to read standard input or to watch the reader.
    fn begin(&mut self, requests: Requests, lacking: Option<NoThread>) {
        let refused = |front_end: &mut Self, error| front_end.handle(Input::Refused(error));
        match (requests, lacking) {
            // The reason was reported already.
            (Requests::Refused(client_error), _) => refused(self, client_error),
            (Requests::Interrupted(signal), _) => self.handle(Input::Interrupted(signal)),
            (Requests::Stdin { .. } | Requests::Once(_) | Requests::Awaited(_), Some(error)) => {
                self.observers.diagnostics = Diagnostics::None;
                let client_error = unable(&error.into());
                stderr::message(&format!("duologue: {}\n", client_error.message));
                refused(self, client_error);
            }
            (Requests::Stdin { .. }, None) => {
                self.observers.begin();
                self.notices.log();
            }
            (Requests::Once(submit), None) => self.submit_once(submit),
            (Requests::Awaited(prompt), None) => self.prompt = Some(prompt),
        }
    }

    fn submit_once(&mut self, submit: Submit) {
        self.observers.begin();
        self.notices.log();
        self.warn_of_unread(self.host.uptime());
        let (run, effects) = self.host.request(Command::Submit(submit));
        match &mut self.asking {
            // The person may answer until the run has ended.
            Some(asking) => {
                asking.begin(run);
                self.perform(effects);
            }
            None => {
                self.perform(effects);
                self.handle(Input::InputEnded);
            }
        }
    }

    async fn run(mut self: Box<Self>) -> Finish {
        loop {
            self.flush();
            if let Some(code) = self.is_over() {
                return self.exit(code).await;
            }
            let has_room = self.outgoing.outbox.has_room_for_answers();
            let takes_lines = self.host.wants_input() && has_room;
            if takes_lines && let Some(line) = self.incoming.pop() {
                if let Received::Ended = line
                    && let Some(signal) = self.signals.arrived().await
                {
                    self.interrupted(signal);
                }
                self.line(line);
                self.engine_turn_if_owed().await;
                continue;
            }
            self.engine_turn_if_owed().await;
            self.wait(takes_lines).await;
        }
    }

    /// Waits for one event and handles it. Events listed first are handled first: the end of the
    /// process, then room for output, then requests, then the engine. (The engine shares the task's
    /// budget; once that is used up, `select!` yields before it polls anything.)
    async fn wait(&mut self, takes_lines: bool) {
        // Readable input has priority over the engine: a cancel in the same write as its submit must find
        // the run as it was.
        let more_until = self.incoming.more_until().filter(|_| takes_lines);
        let has_room = self.outgoing.has_room_for_engine() && more_until.is_none();
        let awaits = self.outgoing.awaits_reader();
        let times = [self.ending.deadline(), self.observers.next_tick(), awaits, more_until];
        let wake_at = times.into_iter().flatten().min();
        // A question comes after what was said before it.
        let is_flushed = self.outgoing.is_flushed();
        tokio::select! {
            biased;
            signal = self.signals.next() => self.interrupted(signal),
            () = sleep_until(wake_at) => self.look_at_clock(),
            written = self.outgoing.written() => {
                if let Err(error) = written {
                    self.reader_gone(&error);
                }
            }
            () = self.incoming.read(self.host.active_call()), if takes_lines => {}
            read = awaited(&mut self.prompt) => match read {
                Ok(submit) => self.submit_once(submit),
                Err(error) => self.handle(Input::Refused(error)),
            },
            approve = answered(&mut self.asking), if is_flushed => self.decided(approve),
            effects = self.host.next(has_room) => self.engine_went_on(effects),
        }
    }

    /// Polls the engine if many requests were handled without that.
    async fn engine_turn_if_owed(&mut self) {
        if self.incoming.owes_engine_a_turn(self.host.active_call()) {
            yield_now().await;
            self.engine_turn().await;
        }
    }

    /// Handles the events that the engine can produce without waiting.
    async fn engine_turn(&mut self) {
        self.incoming.engine_had_its_turn();
        let has_room = self.outgoing.has_room_for_engine();
        tokio::select! {
            biased;
            effects = self.host.next(has_room) => self.engine_went_on(effects),
            () = ready(()) => {}
        }
    }

    fn engine_went_on(&mut self, effects: Effects) {
        self.incoming.engine_had_its_turn();
        self.perform(effects);
        for _ in 0..EVENTS_AT_ONCE_MAX {
            let Some(effects) = self.host.try_next() else { return };
            self.perform(effects);
        }
    }

    fn line(&mut self, line: Received) {
        match line {
            Received::Line(RawLine::Whole(line)) => {
                let effects = self.host.line(&line);
                self.perform(effects);
            }
            Received::Line(RawLine::TooLong { start, end, bytes_max }) => {
                self.handle(Input::BadLine(wire::too_long(&start, &end, bytes_max)));
            }
            Received::Ended => self.handle(Input::InputEnded),
            Received::Failed(error) => {
                self.handle(Input::InputFailed { reason: error.to_string() })
            }
        }
    }

    fn handle(&mut self, input: Input) {
        let effects = self.host.handle(input);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Effects) {
        let Effects { at, list } = effects;
        let mut has_ended = false;
        for effect in list {
            if let Effect::Frame(frame) = &effect
                && !self.asks(frame)
            {
                continue;
            }
            let outbox = &mut self.outgoing.outbox;
            match effect {
                Effect::Frame(frame) => {
                    has_ended |= self.asking.as_ref().is_some_and(|asking| asking.is_end(&frame));
                    self.observers.observe(&frame);
                    self.outgoing.push(at, frame);
                }
                Effect::Usage(usage) => outbox.codec.format.usage(usage),
                // No output has them.
                Effect::ToolImages(_) => {}
                Effect::Warning(warning) => {
                    outbox.append(|printed, out| printed.warn(at, &warning, out));
                }
                Effect::Exit(code) => {
                    self.observers.end_progress();
                    self.warn_of_unread(at);
                    self.outgoing.outbox.end(at, code);
                    self.ending.flush(code);
                    if let Some(signal) = self.host.late_signal() {
                        self.ending.hurry(code, signal, self.reports_status());
                    }
                }
                Effect::Abort(code) => self.ending.abort(code, self.reports_status()),
            }
        }
        if has_ended {
            self.asking = None;
            self.handle(Input::InputEnded);
        }
    }

    /// Warns, once, of input that is not part of the prompt.
    fn warn_of_unread(&mut self, at: Uptime) {
        if let Some(message) = self.notices.unread() {
            let warning = CodedWarning { code: INPUT_UNREAD, message };
            self.outgoing.outbox.append(|printed, out| printed.warn(at, &warning, out));
        }
    }

    /// Passes queued frames to the writer, and ends the process if one of them has no encoding.
    fn flush(&mut self) {
        self.outgoing.flush();
        if self.outgoing.outbox.is_defective()
            && let Ending::NotYet | Ending::Flushing(_) = self.ending
        {
            self.host.abandon_run();
            self.observers.end_progress();
            self.outgoing.outbox.end(self.host.uptime(), ExitCode::Internal);
            self.ending.flush(ExitCode::Internal);
        }
    }

    /// Whether the end of the output reports the status of the process.
    fn reports_status(&self) -> bool {
        self.outgoing.outbox.codec.format.reports_status()
    }

    /// The status of the process, once there is nothing left to do.
    fn is_over(&self) -> Option<ExitCode> {
        self.ending.is_over(self.outgoing.is_flushed())
    }

    async fn exit(mut self: Box<Self>, mut code: ExitCode) -> Finish {
        // First: a signal while the servers end must not take the answer away.
        if let Some(saved) = self.saved.take() {
            let message = self.host.last_message();
            tokio::select! {
                biased;
                signal = self.signals.next() => {
                    code = status_after(code, signal, self.reports_status());
                }
                written = saved.write(code, message) => {
                    if let Err(complaint) = written {
                        stderr::message(&format!("duologue: {}\n", escape_control(&complaint)));
                        code = ExitCode::OutputFailed;
                    }
                }
            }
        }
        if let (Ending::Flushing(_) | Ending::FlushingUntil(..), Some(file)) =
            (self.ending, self.observers.debug_file.take())
        {
            tokio::select! {
                biased;
                // All frames were written: a signal need not wait for a file.
                signal = self.signals.next() => {
                    code = status_after(code, signal, self.reports_status());
                }
                () = file.finish() => {}
            }
        }
        if !matches!(self.ending, Ending::Now(_)) {
            tokio::select! {
                biased;
                // The servers' guards end what is left of them.
                signal = self.signals.next() => {
                    code = status_after(code, signal, self.reports_status());
                }
                () = self.host.close() => {}
            }
        }
        let status = self.outgoing.outbox.codec.format.status(code);
        tracing::info!(status, "the process ends");
        Finish { status, complaint: self.observers.into_complaint() }
    }

    /// The first signal leaves the reader some time to take the last frames; the second does not.
    fn interrupted(&mut self, signal: Signal) {
        let input = Input::Interrupted(signal);
        match self.ending {
            Ending::Flushing(code) => {
                log_input(&input);
                self.ending.hurry(code, signal, self.reports_status());
            }
            Ending::NotYet | Ending::FlushingUntil(..) | Ending::Now(_) => self.handle(input),
        }
    }

    /// Handles a deadline. Those of the reader and of more input only need another round of the loop.
    fn look_at_clock(&mut self) {
        let now = Instant::now();
        self.observers.tick(now, self.outgoing.is_flushed());
        if self.ending.give_up(now) {
            tracing::warn!("the reader did not take the last frames in time");
        }
    }

    /// The output was closed by its reader, or can't be written.
    fn reader_gone(&mut self, error: &io::Error) {
        let is_reader_gone = error.kind() == io::ErrorKind::BrokenPipe;
        if !is_reader_gone {
            tracing::error!(%error, "standard output could not be written; the process ends");
        }
        self.handle(Input::ReaderGone);
        if !is_reader_gone {
            self.ending.flush(ExitCode::OutputFailed);
        }
    }
}

/// Waits for the prompt, once.
async fn awaited(awaited: &mut Option<AwaitedPrompt>) -> Result<Submit, ClientError> {
    let Some(reading) = awaited else { return pending().await };
    let read = (&mut reading.prompt).await.unwrap_or_else(|_| Err(unread_prompt()));
    let attachments = std::mem::take(&mut reading.attachments);
    *awaited = None;
    Ok(Submit { attachments, ..Submit::new(read?) })
}
