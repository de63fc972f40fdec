//! The shell around a session: waits for what happens, hands it to the session, and does what the
//! session says, in order. One loop owns everything; threads only read and write.

pub mod outbox;

mod debug_file;
mod diagnostics;
mod framer;
mod input;
mod input_log;
mod progress;
mod refusal;
mod settings;
mod signals;
mod streams;
mod unread;
mod writer;

pub use debug_file::DebugFile;
pub use progress::{Progress, Shown};
pub use refusal::{is_shortage, refusal, unable};
pub use settings::{Finish, Requests, Settings};
pub use signals::Signals;
pub use streams::Stdio;
pub use unread::UnreadInput;

use crate::chat::transcript::Transcript;
use crate::engine::{Engine, EngineEvent, RunEnd, Running, Sink, TaggedEvent};
use crate::protocol::id::{Ids, RunId};
use crate::protocol::wire::{self, ClientError, Command, Frame, Prompt, Request};
use crate::session::{
    ExitCode, Input, Output, Session, Signal, Uptime, panic_text, run_defect, unread_prompt,
};
use crate::stdio::outbox::Outbox;
use crate::support::fail_point::{FailPoint, Place};
use crate::support::stderr;
use crate::support::threads::NoThread;
use diagnostics::Diagnostics;
use framer::RawLine;
use input::{FromStdin, StdinLines};
use std::collections::VecDeque;
use std::fs::File;
use std::future::{pending, poll_fn};
use std::io::{self, IsTerminal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use writer::Writer;

/// Engine events on their way to the loop. Past that the engine waits.
const EVENTS_AHEAD_MAX: usize = 256;

/// Engine events handled before the output is looked after again.
const EVENTS_AT_ONCE_MAX: usize = 64;

/// Chunks of input that are handled before the engine gets a turn, however many more there are.
const CHUNKS_BEFORE_ENGINE_MAX: u32 = 32;

/// How long the engine waits for input that can be read: another process that shares standard
/// input may have taken it, and must not hold up the run.
const MORE_INPUT_MAX: Duration = Duration::from_millis(100);

/// How long the last frames may take after a signal, if the reader does not take them.
const INTERRUPTED_FLUSH_MAX: Duration = Duration::from_secs(5);

/// Serves one conversation, from `hello` to the end of the process.
pub async fn serve(stdio: Stdio, signals: &mut Signals, settings: Settings) -> Finish {
    Server::start(stdio, signals, settings).run().await
}

struct Server<'a> {
    started: Instant,
    session: Session,
    engine: Engine,
    ids: Ids,
    signals: &'a mut Signals,
    lines: StdinLines,
    /// Lines that were read and wait for room.
    pending: VecDeque<FromStdin>,
    /// More could be read at once than was, and is waited for until then.
    more_until: Option<Instant>,
    chunks_since_engine: u32,
    events: mpsc::Receiver<TaggedEvent>,
    ends: mpsc::Receiver<(RunId, RunEnd)>,
    to_events: mpsc::Sender<TaggedEvent>,
    to_ends: mpsc::Sender<(RunId, RunEnd)>,
    run: Option<(RunId, AbortHandle)>,
    /// The only one, while it is read.
    prompt: Option<oneshot::Receiver<Result<Prompt, ClientError>>>,
    /// For the log, once there is something to ask.
    notices: Vec<&'static str>,
    unread: Option<UnreadInput>,
    outbox: Outbox,
    writer: Writer,
    reader: Reader,
    debug_file: Option<DebugFile>,
    diagnostics: Diagnostics,
    progress: Option<Progress>,
    ending: Ending,
    decode_fault: FailPoint,
    engine_fault: FailPoint,
}

/// Whoever reads standard output.
enum Reader {
    Watched(oneshot::Receiver<()>),
    /// Seen only when it is written to.
    Unwatched,
    Gone,
}

/// How far the process is from its end.
#[derive(Clone, Copy)]
enum Ending {
    NotYet,
    /// Once everything is written.
    Flushing(ExitCode),
    /// Once everything is written, or at the deadline.
    FlushingUntil(ExitCode, Instant),
    Now(ExitCode),
}

impl<'a> Server<'a> {
    /// Greets the reader, and gets everything else ready behind its back.
    fn start(stdio: Stdio, signals: &'a mut Signals, mut settings: Settings) -> Self {
        let Stdio { input, output } = stdio;
        let output = Arc::new(output);
        let faults = &settings.faults;
        let diagnostics = Diagnostics::new(&settings);
        let mut session = Session::new(settings.rules, settings.seed);
        session.plant(faults.at(Place::Project));
        let mut outbox = Outbox::new(settings.format, faults.at(Place::Encode));
        outbox = outbox.shown(output.is_terminal());
        for frame in session.greeting(settings.capabilities) {
            if let Some(file) = &mut settings.debug_file {
                file.record(&frame);
            }
            outbox.push(Uptime::default(), frame);
        }
        let mut writer = Writer::new(Arc::clone(&output), faults.at(Place::Write));
        writer.write(outbox.take(Vec::new()));
        let (to_events, events) = mpsc::channel(EVENTS_AHEAD_MAX);
        let (to_ends, ends) = mpsc::channel(1);
        let (reader, unwatched) = Reader::of(output);
        let (lines, unread) = StdinLines::of(&settings.requests, input);
        let (requests, diagnostics) = match (settings.requests, unwatched.or(unread)) {
            // The reason was reported already.
            (refused @ (Requests::Refused(_) | Requests::Interrupted(_)), _) => {
                (refused, diagnostics)
            }
            (requests, None) => (requests, diagnostics),
            (_, Some(error)) => (refused_for(error), Diagnostics::None),
        };
        let mut server = Self {
            started: Instant::now(),
            session,
            engine: settings.engine,
            // Other ids than the session's, from the same chance.
            ids: Ids::new(!settings.seed),
            signals,
            lines,
            pending: VecDeque::new(),
            more_until: None,
            chunks_since_engine: 0,
            events,
            ends,
            to_events,
            to_ends,
            run: None,
            prompt: None,
            notices: settings.notices,
            unread: settings.unread,
            outbox,
            writer,
            reader,
            debug_file: settings.debug_file,
            diagnostics,
            progress: settings.progress,
            ending: Ending::NotYet,
            decode_fault: faults.at(Place::Decode),
            engine_fault: faults.at(Place::Engine),
        };
        server.ask(requests);
        server
    }

    /// Asks what is known from the start. After `hello`, which is not to wait for a log.
    fn ask(&mut self, requests: Requests) {
        match requests {
            Requests::Stdin { .. } => {
                self.begin_debug_file();
                self.notice();
            }
            Requests::Once(prompt) => self.ask_once(prompt),
            Requests::Awaited(prompt) => self.prompt = Some(prompt),
            Requests::Refused(client_error) => self.handle(Input::Refused(client_error)),
            Requests::Interrupted(signal) => self.handle(Input::Interrupted(signal)),
        }
    }

    fn notice(&mut self) {
        for notice in self.notices.drain(..) {
            tracing::warn!("{notice}");
        }
        self.notice_unread();
    }

    /// Logs, once, that standard input holds data that is not read. Its writer may be slow, so this is
    /// looked for at the beginning and at the end.
    fn notice_unread(&mut self) {
        if let Some(notice) = self.unread.as_ref().and_then(UnreadInput::notice) {
            tracing::warn!("{notice}");
            self.unread = None;
        }
    }

    fn begin_debug_file(&mut self) {
        if let Some(file) = &mut self.debug_file {
            file.begin();
        }
    }

    fn ask_once(&mut self, prompt: Prompt) {
        self.begin_debug_file();
        self.notice();
        let command = Command::Submit(prompt);
        let id = self.ids.request();
        self.handle(Input::Request(Request { session: None, id, command }));
        self.handle(Input::InputEnded);
    }

    async fn run(mut self) -> Finish {
        loop {
            self.flush();
            if let Some(code) = self.is_over() {
                return self.exit(code).await;
            }
            let takes_lines = self.session.wants_input() && self.outbox.has_room_for_answers();
            if let Some(line) = self.pending.pop_front_if(|_| takes_lines) {
                self.line(line);
                continue;
            }
            if self.chunks_since_engine >= CHUNKS_BEFORE_ENGINE_MAX {
                tokio::task::yield_now().await;
                self.engine_turn();
            }
            self.wait(takes_lines).await;
        }
    }

    /// Waits for one thing to happen and deals with it. What is listed first goes first: the end of
    /// the process, then room for output, then requests, then answers.
    async fn wait(&mut self, takes_lines: bool) {
        // What is there to be read comes first: a cancel in the same write as its submit must find
        // the run as it was.
        let more_until = self.more_until.filter(|until| takes_lines && Instant::now() < *until);
        let awaits = self.awaits_reader();
        let takes_events =
            self.outbox.has_room_for_engine() && awaits.is_none() && more_until.is_none();
        let deadline = self.deadline();
        let tick = self.progress.as_ref().and_then(Progress::next_tick);
        tokio::select! {
            biased;
            signal = self.signals.next() => self.interrupted(signal),
            () = self.reader.gone() => self.reader_gone(),
            () = sleep_until(deadline) => self.give_up_flushing(),
            () = sleep_until(tick) => {
                if let Some(progress) = &mut self.progress {
                    progress.tick();
                }
            }
            () = sleep_until(awaits) => tracing::debug!("the reader is slow; patches merge"),
            written = self.writer.written(), if self.writer.is_busy() => {
                if let Err(error) = written {
                    self.write_failed(&error);
                }
            }
            chunk = self.lines.next(), if takes_lines => {
                self.pending.extend(chunk.lines);
                self.more_until = chunk.comes_more.then(|| Instant::now() + MORE_INPUT_MAX);
                self.chunks_since_engine += 1;
            }
            prompt = awaited(&mut self.prompt) => match prompt {
                Ok(prompt) => self.ask_once(prompt),
                Err(client_error) => self.handle(Input::Refused(client_error)),
            },
            () = sleep_until(more_until) => tracing::debug!("what could be read was not"),
            Some(said) = self.events.recv(), if takes_events => {
                self.engine_said(said);
                self.more_events(EVENTS_AT_ONCE_MAX);
            }
            Some((run, end)) = self.ends.recv(), if takes_events => self.run_ended(run, end),
        }
    }

    /// Until when a reader that is behind is given time to take what waits. After that it is slow:
    /// the engine goes on, and patches merge.
    fn awaits_reader(&self) -> Option<Instant> {
        let slow_at = self.writer.slow_at().filter(|_| self.outbox.is_behind());
        slow_at.filter(|slow_at| Instant::now() < *slow_at)
    }

    /// Takes what the engine has said by now, without waiting for more.
    fn engine_turn(&mut self) {
        self.chunks_since_engine = 0;
        if self.outbox.has_room_for_engine() && self.awaits_reader().is_none() {
            self.more_events(EVENTS_AT_ONCE_MAX);
            if let Ok((run, end)) = self.ends.try_recv() {
                self.run_ended(run, end);
            }
        }
    }

    fn more_events(&mut self, most: usize) {
        for _ in 0..most {
            let Ok(said) = self.events.try_recv() else { return };
            self.engine_said(said);
        }
    }

    fn engine_said(&mut self, said: TaggedEvent) {
        self.chunks_since_engine = 0;
        // Frames have no field for some of the counts.
        if let EngineEvent::Usage(usage) = &said.event
            && self.run.as_ref().is_some_and(|(run, _)| *run == said.run)
        {
            self.outbox.usage(*usage);
        }
        self.handle(Input::Engine(said.run, said.event));
    }

    fn run_ended(&mut self, run: RunId, end: RunEnd) {
        // All the engine has said comes before its end.
        self.more_events(EVENTS_AHEAD_MAX);
        self.handle(Input::RunEnded(run, end));
    }

    fn line(&mut self, line: FromStdin) {
        let input = match line {
            FromStdin::Line(RawLine::Whole(line)) => self.decode(&line),
            FromStdin::Line(RawLine::TooLong { start, bytes_max }) => {
                Input::BadLine(wire::too_long(&start, bytes_max))
            }
            FromStdin::Ended => Input::InputEnded,
            FromStdin::Failed(error) => Input::InputFailed { reason: error.to_string() },
        };
        self.handle(input);
    }

    fn decode(&mut self, line: &[u8]) -> Input {
        let Self { ids, decode_fault, .. } = self;
        let decoding = AssertUnwindSafe(|| {
            decode_fault.step();
            wire::decode(line, || ids.request())
        });
        match catch_unwind(decoding) {
            Ok(Ok(request)) => Input::Request(request),
            Ok(Err(bad)) => Input::BadLine(bad),
            Err(panic) => Input::BadLine(wire::unreadable(line, panic_text(panic.as_ref()))),
        }
    }

    fn handle(&mut self, input: Input) {
        input_log::input(&input);
        let now = self.now();
        for output in self.session.handle(now, input) {
            self.perform(now, output);
        }
    }

    fn now(&self) -> Uptime {
        Uptime(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn perform(&mut self, now: Uptime, output: Output) {
        match output {
            Output::Frame(frame) => self.send(now, frame),
            Output::StartRun { run, transcript } => {
                tracing::info!(%run, "a run starts");
                self.start_run(run, transcript);
            }
            Output::CancelRun(run) => {
                tracing::info!(%run, "the run is stopped");
                self.drop_run();
            }
            Output::Exit(code) => {
                self.progress = None;
                self.outbox.end(now, code);
                self.end(code);
            }
            Output::Abort(code) => {
                self.ending = Ending::Now(match self.ending {
                    Ending::Flushing(told) | Ending::FlushingUntil(told, _)
                        if self.outbox.reports_status() =>
                    {
                        told
                    }
                    Ending::NotYet
                    | Ending::Flushing(_)
                    | Ending::FlushingUntil(..)
                    | Ending::Now(_) => code,
                });
            }
        }
    }

    fn send(&mut self, now: Uptime, frame: Frame) {
        if let Some(file) = &mut self.debug_file {
            file.record(&frame);
        }
        self.diagnostics.take(&frame);
        if let Some(progress) = &mut self.progress {
            progress.take(&frame);
        }
        if let Reader::Gone = self.reader {
            return;
        }
        self.outbox.push(now, frame);
    }

    fn start_run(&mut self, run: RunId, transcript: Transcript) {
        self.chunks_since_engine = 0;
        let running = self.engine.start(transcript, Sink::new(run, self.to_events.clone()));
        let fault = std::mem::take(&mut self.engine_fault);
        let ends = self.to_ends.clone();
        let task = tokio::spawn(async move {
            let end = run_to_end(running, fault).await;
            // A loop that has ended wants to know of no run's end.
            drop(ends.send((run, end)).await);
        });
        self.run = Some((run, task.abort_handle()));
    }

    fn drop_run(&mut self) {
        if let Some((_, run)) = self.run.take() {
            run.abort();
        }
    }

    fn end(&mut self, code: ExitCode) {
        self.ending = match (code, self.ending) {
            (_, Ending::Now(code)) => Ending::Now(code),
            (ExitCode::Interrupted(_), _) => {
                Ending::FlushingUntil(code, Instant::now() + INTERRUPTED_FLUSH_MAX)
            }
            (
                ExitCode::Ok
                | ExitCode::RunFailed
                | ExitCode::InputFailed
                | ExitCode::Usage
                | ExitCode::CutOff
                | ExitCode::Internal
                | ExitCode::OutputFailed,
                _,
            ) => Ending::Flushing(code),
        };
    }

    /// Hands what waits to the writer, if it has time.
    fn flush(&mut self) {
        // Frames with long texts are taken one by one.
        while !self.outbox.is_empty()
            && let Some(buffer) = self.writer.ready()
        {
            let batch = self.outbox.take(buffer);
            self.writer.write(batch);
        }
        if self.outbox.is_defective()
            && let Ending::NotYet | Ending::Flushing(_) = self.ending
        {
            self.drop_run();
            self.progress = None;
            self.outbox.end(self.now(), ExitCode::Internal);
            self.end(ExitCode::Internal);
        }
    }

    /// The status of the process, once there is nothing left to do.
    fn is_over(&self) -> Option<ExitCode> {
        let is_flushed = self.outbox.is_empty() && !self.writer.is_busy();
        let is_unread = matches!(self.reader, Reader::Gone);
        match self.ending {
            Ending::NotYet => None,
            Ending::Flushing(code) | Ending::FlushingUntil(code, _) => {
                (is_flushed || is_unread).then_some(code)
            }
            Ending::Now(code) => Some(code),
        }
    }

    async fn exit(mut self, mut code: ExitCode) -> Finish {
        if let (Ending::Flushing(_) | Ending::FlushingUntil(..), Some(file)) =
            (self.ending, self.debug_file.take())
        {
            tokio::select! {
                biased;
                // All was told: whoever is in a hurry need not wait for a file.
                signal = self.signals.next() => code = self.status_after(code, signal),
                () = file.finish() => {}
            }
        }
        self.notice_unread();
        let status = self.outbox.status(code);
        tracing::info!(status, "the process ends");
        Finish { status, complaint: self.diagnostics.into_complaint() }
    }

    fn deadline(&self) -> Option<Instant> {
        match self.ending {
            Ending::FlushingUntil(_, deadline) => Some(deadline),
            Ending::NotYet | Ending::Flushing(_) | Ending::Now(_) => None,
        }
    }

    /// The first signal leaves the reader some time, whatever the process was about; the second
    /// does not.
    fn interrupted(&mut self, signal: Signal) {
        match self.ending {
            Ending::Flushing(told) => {
                input_log::input(&Input::Interrupted(signal));
                let code = self.status_after(told, signal);
                self.ending = Ending::FlushingUntil(code, Instant::now() + INTERRUPTED_FLUSH_MAX);
            }
            Ending::NotYet | Ending::FlushingUntil(..) | Ending::Now(_) => {
                self.handle(Input::Interrupted(signal));
            }
        }
    }

    /// The status of a process that was about to end with `code` when a signal came: who was told a
    /// status reads that one.
    fn status_after(&self, code: ExitCode, signal: Signal) -> ExitCode {
        if self.outbox.reports_status() { code } else { ExitCode::Interrupted(signal) }
    }

    fn give_up_flushing(&mut self) {
        if let Ending::FlushingUntil(code, _) = self.ending {
            tracing::warn!("the reader did not take the last frames in time");
            self.ending = Ending::Now(code);
        }
    }

    fn reader_gone(&mut self) {
        self.reader = Reader::Gone;
        self.handle(Input::ReaderGone);
    }

    fn write_failed(&mut self, error: &io::Error) {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return self.reader_gone();
        }
        tracing::error!(%error, "standard output could not be written; the process ends");
        self.reader = Reader::Gone;
        self.handle(Input::ReaderGone);
        self.end(ExitCode::OutputFailed);
    }
}

impl Reader {
    /// The reader of `output`; watched, unless the system has no thread for that.
    fn of(output: Arc<File>) -> (Self, Option<NoThread>) {
        match streams::watch(output) {
            Ok(gone) => (Self::Watched(gone), None),
            Err(error) => (Self::Unwatched, Some(error)),
        }
    }

    /// Waits until nobody reads any more.
    async fn gone(&mut self) {
        if let Self::Watched(told) = self {
            let is_told = told.await.is_ok();
            *self = Self::Unwatched;
            if is_told {
                return;
            }
        }
        pending().await
    }
}

/// What is left to do for a process that can't read requests or watch its reader.
fn refused_for(error: NoThread) -> Requests {
    let client_error = unable(&error.into());
    stderr::message(&format!("duologue: {}\n", client_error.message));
    Requests::Refused(client_error)
}

/// A run, to its end: a defect of the engine is one, too.
async fn run_to_end(mut running: Running, mut fault: FailPoint) -> RunEnd {
    poll_fn(move |context| {
        let poll = AssertUnwindSafe(|| {
            fault.step();
            running.as_mut().poll(context)
        });
        catch_unwind(poll).unwrap_or_else(|panic| {
            Poll::Ready(RunEnd::Failed(run_defect(&panic_text(panic.as_ref()))))
        })
    })
    .await
}

/// Waits for the prompt, once.
async fn awaited(
    prompt: &mut Option<oneshot::Receiver<Result<Prompt, ClientError>>>,
) -> Result<Prompt, ClientError> {
    let Some(reading) = prompt else { return pending().await };
    let read = reading.await.unwrap_or_else(|_| Err(unread_prompt()));
    *prompt = None;
    read
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => pending().await,
    }
}
