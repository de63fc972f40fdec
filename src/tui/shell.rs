//! The front end at a terminal: one loop that hands keys, frames, signals and time to the model, performs
//! what the model wants, and draws.

mod actions;
mod child;
mod drawing;
mod ending;
mod files;
mod fork;
mod input;
mod screen;

pub(crate) use files::HistoryFile;
pub(crate) use fork::Forker;
pub(crate) use input::Source;
pub(crate) use screen::{Screen, full_picture, inline_picture, plain_columns};

use super::model::{Event, Note, Opening, State};
use super::terminal::keys::Typed;
use crate::host::{Effect, Effects, Host, HostSettings};
use crate::protocol::command::Submit;
use crate::protocol::wire::Frame;
use crate::session::{ExitCode, Input, Signal};
use crate::stdio::{DebugFile, Finish, Signals};
use crate::store::Library;
use crate::support::fail_point::{FailPoint, Place};
use child::Child;
use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::time::{Duration, Instant};
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::mpsc;
use tokio::task::yield_now;

/// Engine events that are handled before keys are looked at again.
const EVENTS_AT_ONCE_MAX: usize = 64;

/// How long a suspended chat waits to be stopped: the shell may not have job control.
const STOP_TIME: Duration = Duration::from_millis(200);

/// A stopped process that goes on has its signal and the end of [`STOP_TIME`] at nearly the same time:
/// they are one event if they are no further apart than this.
const CONTINUE_TIME: Duration = Duration::from_millis(500);

/// Time between two looks of a chat in the background at whether it has the terminal again.
const BACKGROUND_TIME: Duration = Duration::from_millis(200);

/// How long an exit that waits for the model may take after the person has left.
const LEAVE_MAX: Duration = Duration::from_secs(5);

/// Makes the settings of another conversation.
pub(crate) type Opener = Box<dyn Fn(&Opening) -> anyhow::Result<HostSettings>>;

/// Gives the lines that say how to go on with a session, if it is stored.
pub(crate) type Resume = Box<dyn Fn(&str) -> Option<Vec<String>>>;

/// What a chat needs.
pub(crate) struct Chat {
    /// The first conversation.
    pub(crate) host: HostSettings,
    /// Makes others.
    pub(crate) opener: Opener,
    /// Stored conversations, if there is a store.
    pub(crate) library: Option<Library>,
    pub(crate) beginning: Beginning,
    /// Copies conversations, if there is a store to go on from.
    pub(crate) forker: Option<Forker>,
    /// How to go on with a session, if it is stored.
    pub(crate) resume: Resume,
    pub(crate) debug_file: Option<DebugFile>,
    /// Lines of the log.
    pub(crate) logged: mpsc::Receiver<String>,
    pub(crate) source: Source,
    pub(crate) screen: Screen,
    pub(crate) history: HistoryFile,
}

/// How the first conversation begins.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    /// What is asked first.
    pub(crate) prompt: Option<Submit>,
    pub(crate) system: Option<String>,
    /// Warnings.
    pub(crate) notices: Vec<&'static str>,
}

/// Who gets the terminal for a while.
enum Lending {
    /// The person's editor, with this text.
    ToEditor(String),
    ToShell,
}

/// Holds chats until the person leaves.
pub(crate) async fn serve(chat: Chat, signals: &mut Signals) -> Finish {
    match Shell::start(chat, signals) {
        Ok(shell) => shell.run().await,
        Err(error) => {
            let complaint = Some(format!("the terminal can't be used: {error}"));
            Finish { status: ExitCode::OutputFailed.number(), complaint }
        }
    }
}

struct Shell<'a> {
    host: Host,
    signals: &'a mut Signals,
    resizes: unix::Signal,
    continues: unix::Signal,
    state: State,
    screen: Screen,
    source: Source,
    history: HistoryFile,
    opener: Opener,
    library: Option<Library>,
    forker: Option<Forker>,
    resume: Resume,
    debug_file: Option<DebugFile>,
    logged: mpsc::Receiver<String>,
    /// What was found in other threads.
    found: (mpsc::UnboundedSender<Event>, mpsc::UnboundedReceiver<Event>),
    started: Instant,
    /// When the screen was drawn last.
    drawn: Instant,
    needs_picture: bool,
    /// A person waits for the picture.
    is_urgent: bool,
    /// Nothing can be drawn before.
    waits_until: Option<Instant>,
    /// What was typed and not taken in yet.
    typed_ahead: VecDeque<Typed>,
    /// The terminal is to be lent.
    lends: Option<Lending>,
    child: Option<Child>,
    /// Suspended: when to go on if nothing has stopped the process, and it may use the terminal.
    suspended: Option<Instant>,
    /// When the terminal was last taken.
    entered: Instant,
    /// The person has left: when the model is waited for no longer.
    leaves_at: Option<Instant>,
    /// The conversation was just chosen and may turn out not to be usable.
    is_trial: bool,
    /// The conversation that is to begin.
    opens: Option<Opening>,
    exit: Option<ExitCode>,
    draw_fault: FailPoint,
}

impl<'a> Shell<'a> {
    fn start(chat: Chat, signals: &'a mut Signals) -> io::Result<Self> {
        let Chat {
            host, opener, library, forker, resume, debug_file, logged, source, history, ..
        } = chat;
        let Beginning { prompt, system, notices } = chat.beginning;
        let mut screen = chat.screen;
        screen.enter()?;
        let is_stored = host.store.is_some();
        let draw_fault = host.faults.at(Place::Draw);
        let (host, greeting) = Host::new(host);
        let mut state = State::new(screen.size(), history.load());
        state.status.is_stored = is_stored;
        state.status.system = system;
        state.is_plain = screen.is_plain();
        let now = Instant::now();
        let mut shell = Self {
            host,
            signals,
            resizes: unix::signal(SignalKind::window_change())?,
            continues: unix::signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
            state,
            screen,
            source,
            history,
            opener,
            library,
            forker,
            resume,
            debug_file,
            logged,
            found: mpsc::unbounded_channel(),
            started: now,
            drawn: now,
            needs_picture: true,
            is_urgent: false,
            waits_until: None,
            typed_ahead: VecDeque::new(),
            lends: None,
            child: None,
            suspended: None,
            entered: now,
            leaves_at: None,
            is_trial: false,
            opens: None,
            exit: None,
            draw_fault,
        };
        shell.begin(greeting, Beginning { prompt, system: None, notices });
        Ok(shell)
    }

    /// Shows the first frames and asks the first prompt.
    fn begin(&mut self, greeting: Vec<Frame>, beginning: Beginning) {
        if let Some(file) = &mut self.debug_file {
            file.begin();
        }
        for frame in greeting {
            self.frame(frame);
        }
        for notice in beginning.notices {
            self.update(Event::Logged(notice.to_owned()));
        }
        if let Some(submit) = beginning.prompt {
            self.submit(submit, None);
        }
    }

    async fn run(mut self) -> Finish {
        loop {
            self.draw_if_due();
            if let Some(code) = self.exit {
                return self.finish(code).await;
            }
            if let Some(opening) = self.opens.take() {
                self.open(opening).await;
            }
            if let Some(lending) = self.lends.take() {
                self.lend(lending).await;
            }
            self.take_typed();
            let has_more = self.opens.is_some() || self.lends.is_some() || self.exit.is_some();
            if !has_more {
                self.wait().await;
            }
        }
    }

    /// Waits for one thing and handles it. The person comes first, then the engine.
    async fn wait(&mut self) {
        let wake = self.wake_at();
        let takes_input = self.takes_input();
        let (source, child) = (&mut self.source, &mut self.child);
        tokio::select! {
            biased;
            signal = self.signals.next() => self.interrupted(signal),
            read = source.next(&mut self.screen), if takes_input => self.read(read),
            left = child::left(child) => self.child_has_left(left),
            Some(()) = self.resizes.recv() => self.resized(),
            Some(()) = self.continues.recv() => {
                if self.suspended.is_some() || self.entered.elapsed() > CONTINUE_TIME {
                    self.continued();
                }
            }
            Some(event) = self.found.1.recv() => self.update(event),
            Some(line) = self.logged.recv() => self.update(Event::Logged(line)),
            () = sleep_until(wake) => self.look_at_clock(),
            effects = self.host.next(true) => self.engine_went_on(effects).await,
        }
    }

    fn look_at_clock(&mut self) {
        let now = Instant::now();
        if let Some(at) = self.suspended
            && at <= now
        {
            self.continued();
        }
        if self.leaves_at.is_some_and(|at| at <= now) {
            self.host.abandon_run();
            self.exit = Some(ExitCode::Ok);
        }
        for typed in self.source.give_up(now) {
            self.update(Event::Typed(typed));
        }
        self.update(Event::Tick);
    }

    /// What was read from the person.
    fn read(&mut self, read: io::Result<input::Read>) {
        match read {
            Ok(input::Read::Typed(typed)) => {
                self.typed_ahead.extend(typed);
                self.take_typed();
            }
            Ok(input::Read::Line(line)) => self.update(Event::Line(line)),
            Ok(input::Read::Ended) => self.update(Event::InputEnded),
            // The terminal is gone.
            Err(_) => {
                let effects = self.host.handle(Input::Interrupted(Signal::Hangup));
                self.perform(effects);
            }
        }
    }

    /// Takes in what was typed, up to a key after which something else must happen first: what was typed for
    /// the next conversation is not asked in this one.
    fn take_typed(&mut self) {
        while self.takes_input()
            && self.opens.is_none()
            && self.lends.is_none()
            && let Some(typed) = self.typed_ahead.pop_front()
        {
            self.typed(typed);
        }
    }

    /// Whether the terminal is the chat's.
    fn takes_input(&self) -> bool {
        self.child.is_none() && self.suspended.is_none()
    }

    fn typed(&mut self, typed: Typed) {
        if let Typed::Place { row, column } = typed {
            return self.reported(row, column);
        }
        self.update(Event::Typed(typed));
        self.is_urgent = true;
        self.draw();
    }

    async fn engine_went_on(&mut self, effects: Effects) {
        self.perform(effects);
        for _ in 0..EVENTS_AT_ONCE_MAX {
            match self.host.try_next() {
                Some(effects) => self.perform(effects),
                None => return,
            }
        }
        // Keys and signals are looked at by the runtime.
        yield_now().await;
    }

    fn perform(&mut self, effects: Effects) {
        for effect in effects.list {
            match effect {
                Effect::Frame(frame) => self.frame(frame),
                // The events UsageTotals and StoreDegraded say it.
                Effect::Usage(_) | Effect::StoreWarning(_) => {}
                Effect::Exit(code) | Effect::Abort(code) => self.ends(code),
            }
        }
    }

    /// The conversation has ended. If it was chosen from a list and can't be used, another one begins.
    fn ends(&mut self, code: ExitCode) {
        let is_unusable = self.is_trial && self.leaves_at.is_none() && code == ExitCode::Usage;
        if is_unusable {
            self.is_trial = false;
            self.opens = Some(Opening::New { system: None });
            return;
        }
        self.exit = Some(code);
    }

    fn frame(&mut self, frame: Frame) {
        if let Some(file) = &mut self.debug_file {
            file.record(&frame);
        }
        self.update(Event::Frame(Box::new(frame)));
    }

    fn update(&mut self, event: Event) {
        let actions = self.state.update(self.started.elapsed(), event);
        self.needs_picture = true;
        for action in actions {
            self.act(action);
        }
    }

    fn note(&mut self, note: Note, text: String) {
        self.state.note(note, text);
        self.needs_picture = true;
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => pending().await,
    }
}
