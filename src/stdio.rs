//! The front end on standard input and output: hands request lines, signals and the end of the
//! reader to the host, and writes its frames. One loop owns everything; threads only read and write.
//!
//! `incoming` is what comes in, from `input`, `framer` and `streams`. `outbox` (pure) merges patches for
//! a slow reader and says when to stop; `writer` writes what it gives. `observers` get the same frames:
//! `debug_file`, `diagnostics`, `progress`.

pub(crate) mod outbox;

mod debug_file;
mod diagnostics;
mod ending;
mod framer;
mod incoming;
mod input;
mod notices;
mod observers;
mod progress;
mod refusal;
mod settings;
mod signals;
mod streams;
mod writer;

pub(crate) use debug_file::DebugFile;
pub(crate) use notices::UnreadInput;
pub(crate) use progress::{Progress, Shown};
pub(crate) use refusal::{is_shortage, refusal, unable};
pub(crate) use settings::{AwaitedPrompt, Finish, Requests, Settings};
pub(crate) use signals::{Signals, take_file_size_signal};
pub(crate) use streams::{Stdio, reader_gone};

use crate::host::{Effect, Effects, Host, log_input};
use crate::protocol::command::{Command, Submit};
use crate::protocol::wire::{self, Frame};
use crate::session::{ExitCode, Input, Signal, Uptime};
use crate::stdio::outbox::Outbox;
use crate::support::fail_point::Place;
use ending::Ending;
use framer::RawLine;
use incoming::{Arrival, Incoming};
use input::FromStdin;
use notices::Notices;
use observers::Observers;
use std::future::{pending, ready};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Instant;
use streams::Reader;
use tokio::task::yield_now;
use writer::Writer;

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
    outbox: Outbox,
    writer: Writer,
    reader: Reader,
    observers: Observers,
    notices: Notices,
    ending: Ending,
}

impl<'a> FrontEnd<'a> {
    /// Writes the first frames, and only then prepares everything else.
    fn start(stdio: Stdio, signals: &'a mut Signals, settings: Box<Settings>) -> Box<Self> {
        let mut observers = Observers::new(&settings);
        let Settings { host, requests, format, debug_file, progress, notices, unread } = *settings;
        observers.debug_file = debug_file;
        observers.progress = progress;
        let Stdio { input, output } = stdio;
        let output = Arc::new(output);
        let faults = host.faults.clone();
        let (host, greeting) = Host::new(host);
        let mut outbox = Outbox::new(format, faults.at(Place::Encode)).shown(output.is_terminal());
        for frame in greeting {
            observers.copy(&frame);
            outbox.push(Uptime::default(), frame);
        }
        let mut writer = Writer::new(Arc::clone(&output), faults.at(Place::Write));
        writer.write(outbox.take(Vec::new()));
        let (reader, unwatched) = Reader::of(output);
        let (incoming, requests) = Incoming::of(requests, input, unwatched, &mut observers);
        let notices = Notices::new(notices, unread);
        let ending = Ending::NotYet;
        // Large, and moved from one future into another.
        let mut front_end = Box::new(Self {
            host,
            signals,
            incoming,
            outbox,
            writer,
            reader,
            observers,
            notices,
            ending,
        });
        front_end.begin(requests);
        front_end
    }

    /// Handles the requests of the command line. After `hello`, which must not wait for the log.
    fn begin(&mut self, requests: Requests) {
        match requests {
            Requests::Stdin { .. } => {
                self.observers.begin();
                self.notices.log();
            }
            Requests::Once(submit) => self.submit_once(submit),
            Requests::Awaited(prompt) => self.incoming.await_prompt(prompt),
            Requests::Refused(client_error) => self.handle(Input::Refused(client_error)),
            Requests::Interrupted(signal) => self.handle(Input::Interrupted(signal)),
        }
    }

    fn submit_once(&mut self, submit: Submit) {
        self.observers.begin();
        self.notices.log();
        let (_, effects) = self.host.request(Command::Submit(submit));
        self.perform(effects);
        self.handle(Input::InputEnded);
    }

    async fn run(mut self: Box<Self>) -> Finish {
        loop {
            self.flush();
            if let Some(code) = self.is_over() {
                return self.exit(code).await;
            }
            let takes_lines = self.host.wants_input() && self.outbox.has_room_for_answers();
            if takes_lines && let Some(line) = self.incoming.pop() {
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
        // Input that can be read comes before the engine: a cancel in the same write as its submit must find
        // the run as it was.
        let more_until = self.incoming.more_until().filter(|_| takes_lines);
        let awaits = self.awaits_reader();
        let has_room =
            self.outbox.has_room_for_engine() && awaits.is_none() && more_until.is_none();
        let times = [self.ending.deadline(), self.observers.next_tick(), awaits, more_until];
        let wake_at = times.into_iter().flatten().min();
        tokio::select! {
            biased;
            signal = self.signals.next() => self.interrupted(signal),
            () = self.reader.gone() => self.reader_gone(),
            () = sleep_until(wake_at) => self.look_at_clock(),
            written = self.writer.written(), if self.writer.is_busy() => {
                if let Err(error) = written {
                    self.write_failed(&error);
                }
            }
            arrival = self.incoming.next(takes_lines, self.host.active_call()) => match arrival {
                Arrival::Lines => {}
                Arrival::Prompt(Ok(submit)) => self.submit_once(submit),
                Arrival::Prompt(Err(error)) => self.handle(Input::Refused(error)),
            },
            effects = self.host.next(has_room) => self.engine_went_on(effects),
        }
    }

    /// Until when a reader for whom frames wait is given time to take them. After that it is slow: the
    /// engine goes on, and patches merge.
    fn awaits_reader(&self) -> Option<Instant> {
        let slow_at = self.writer.slow_at().filter(|_| self.outbox.is_behind());
        slow_at.filter(|slow_at| Instant::now() < *slow_at)
    }

    /// Gives the engine a turn if many requests were handled without one.
    async fn engine_turn_if_owed(&mut self) {
        if self.incoming.owes_engine_a_turn(self.host.active_call()) {
            yield_now().await;
            self.engine_turn().await;
        }
    }

    /// Handles the events that the engine can produce without waiting.
    async fn engine_turn(&mut self) {
        self.incoming.engine_had_its_turn();
        let has_room = self.outbox.has_room_for_engine() && self.awaits_reader().is_none();
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

    fn line(&mut self, line: FromStdin) {
        match line {
            FromStdin::Line(RawLine::Whole(line)) => {
                let effects = self.host.line(&line);
                self.perform(effects);
            }
            FromStdin::Line(RawLine::TooLong { start, bytes_max }) => {
                self.handle(Input::BadLine(wire::too_long(&start, bytes_max)));
            }
            FromStdin::Ended => self.handle(Input::InputEnded),
            FromStdin::Failed(error) => {
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
        for effect in list {
            match effect {
                Effect::Frame(frame) => self.send(at, frame),
                Effect::Usage(usage) => self.outbox.usage(usage),
                Effect::Warning(warning) => self.outbox.warn(at, &warning),
                Effect::Exit(code) => {
                    self.observers.end_progress();
                    self.outbox.end(at, code);
                    self.ending.flush(code);
                    if let Some(signal) = self.host.late_signal() {
                        self.ending.hurry(code, signal, self.outbox.reports_status());
                    }
                }
                Effect::Abort(code) => self.ending.abort(code, self.outbox.reports_status()),
            }
        }
    }

    fn send(&mut self, made: Uptime, frame: Frame) {
        self.observers.observe(&frame);
        if !self.reader.is_gone() {
            self.outbox.push(made, frame);
        }
    }

    /// Passes waiting frames to the writer, if it is ready.
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
            self.host.abandon_run();
            self.observers.end_progress();
            self.outbox.end(self.host.uptime(), ExitCode::Internal);
            self.ending.flush(ExitCode::Internal);
        }
    }

    /// The status of the process, once there is nothing left to do.
    fn is_over(&self) -> Option<ExitCode> {
        let is_flushed = self.outbox.is_empty() && !self.writer.is_busy();
        self.ending.is_over(is_flushed || self.reader.is_gone())
    }

    async fn exit(mut self: Box<Self>, mut code: ExitCode) -> Finish {
        if let (Ending::Flushing(_) | Ending::FlushingUntil(..), Some(file)) =
            (self.ending, self.observers.debug_file.take())
        {
            tokio::select! {
                biased;
                // All frames were written: a signal need not wait for a file.
                signal = self.signals.next() => {
                    code = ending::status_after(code, signal, self.outbox.reports_status());
                }
                () = file.finish() => {}
            }
        }
        if !matches!(self.ending, Ending::Now(_)) {
            tokio::select! {
                biased;
                // The servers' guards end what is left of them.
                signal = self.signals.next() => {
                    code = ending::status_after(code, signal, self.outbox.reports_status());
                }
                () = self.host.close() => {}
            }
        }
        self.notices.log_unread();
        let status = self.outbox.status(code);
        tracing::info!(status, "the process ends");
        Finish { status, complaint: self.observers.into_complaint() }
    }

    /// The first signal leaves the reader some time to take the last frames; the second does not.
    fn interrupted(&mut self, signal: Signal) {
        let input = Input::Interrupted(signal);
        match self.ending {
            Ending::Flushing(code) => {
                log_input(&input);
                self.ending.hurry(code, signal, self.outbox.reports_status());
            }
            Ending::NotYet | Ending::FlushingUntil(..) | Ending::Now(_) => self.handle(input),
        }
    }

    /// A deadline has come. Those of the reader and of more input only need the loop to go round.
    fn look_at_clock(&mut self) {
        let now = Instant::now();
        self.observers.tick(now);
        if self.ending.give_up(now) {
            tracing::warn!("the reader did not take the last frames in time");
        }
    }

    fn reader_gone(&mut self) {
        self.reader = Reader::Gone;
        self.handle(Input::ReaderGone);
    }

    fn write_failed(&mut self, error: &io::Error) {
        let is_reader_gone = error.kind() == io::ErrorKind::BrokenPipe;
        if !is_reader_gone {
            tracing::error!(%error, "standard output could not be written; the process ends");
        }
        self.reader_gone();
        if !is_reader_gone {
            self.ending.flush(ExitCode::OutputFailed);
        }
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => pending().await,
    }
}
