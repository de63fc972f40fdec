//! The front end at a terminal: one loop that passes keys, frames, signals and time to the model, performs
//! its actions, and draws.

mod actions;
mod bell;
mod child;
mod command;
mod drawing;
mod ending;
mod files;
mod fork;
mod input;
mod opening;
mod performing;
mod screen;
mod servers;

pub(crate) use bell::Bell;
pub(crate) use ending::GoingOn;
pub(crate) use files::HistoryFile;
pub(crate) use fork::Forker;
pub(crate) use input::Source;
pub(crate) use screen::{Screen, full_picture, inline_picture};

use super::model::{Action, Event, Opening, Scroll, State, Vi};
use super::terminal::keys::Typed;
use crate::host::{Host, HostSettings};
use crate::protocol::command::{ModelChoice, Submit};
use crate::protocol::wire::Frame;
use crate::session::{ExitCode, Input, Signal};
use crate::store::{Library, OpenMode};
use crate::support::fail_point::{FailPoint, Place};
use crate::support::sleep_until;
use crate::task::prompt::NamedPrompt;
use crate::transport::{DebugFile, Finish, Signals};
use child::Child;
use command::Running;
use opening::Candidate;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::mpsc;

/// How long a suspended chat waits to be stopped: the shell may not have job control.
const STOP_TIME: Duration = Duration::from_millis(200);

/// A stopped process that is continued gets its signal and the end of [`STOP_TIME`] at nearly the same time:
/// they are one event if they are no further apart than this.
const CONTINUE_TIME: Duration = Duration::from_millis(500);

/// Time between two looks of a chat in the background at whether it has the terminal again.
const BACKGROUND_TIME: Duration = Duration::from_millis(200);

/// How long an exit that waits for the model may take after the person has left.
const LEAVE_MAX: Duration = Duration::from_secs(5);

/// Makes the settings of another conversation.
pub(crate) type Opener = Arc<dyn Fn(&Opening) -> anyhow::Result<NextConversation> + Send + Sync>;

/// Another conversation, which may not begin.
pub(crate) struct NextConversation {
    pub(crate) host: HostSettings,
    /// Called once it has begun: from then on a new conversation inherits its settings, and its provider lists models.
    pub(crate) on_begin: OnBegin,
}

pub(crate) type OnBegin = Box<dyn FnOnce() + Send>;

/// Lists the names of the profiles.
pub(crate) type ProfileNames = Arc<dyn Fn() -> Result<Vec<String>, String> + Send + Sync>;

/// Makes the prompt of the command file that a line names, with its flags; `None` if there is none.
pub(crate) type Prompts = Arc<dyn Fn(&str) -> Result<Option<NamedPrompt>, String> + Send + Sync>;

/// Lists the models of the provider that this choice, or the options, name.
pub(crate) type ModelNames = Arc<dyn Fn(&ModelChoice) -> Result<Vec<String>, String> + Send + Sync>;

/// Says how to resume a session, if it is stored.
pub(crate) type Resume = Box<dyn Fn(&str) -> Option<GoingOn>>;

/// Opens, lists and copies conversations for a chat.
pub(crate) struct Services {
    pub(crate) opener: Opener,
    /// Stored conversations, if there is a store.
    pub(crate) library: Option<Library>,
    pub(crate) profiles: ProfileNames,
    pub(crate) prompts: Prompts,
    pub(crate) models: ModelNames,
    /// Copies conversations, if they are stored.
    pub(crate) forker: Option<Forker>,
    pub(crate) resume: Resume,
    /// An executable of this program, which guards shell commands.
    pub(crate) guard: Option<PathBuf>,
    /// How the terminal says that something waits.
    pub(crate) bell: Bell,
}

/// A chat before its start.
pub(crate) struct Chat {
    /// The first conversation.
    pub(crate) host: HostSettings,
    pub(crate) services: Services,
    pub(crate) beginning: Beginning,
    pub(crate) debug_file: Option<DebugFile>,
    /// Lines of the log.
    pub(crate) logged: mpsc::Receiver<String>,
    pub(crate) source: Source,
    pub(crate) screen: Screen,
    pub(crate) history: HistoryFile,
}

/// The signals that end a chat as well as those that end every process: it has a terminal to restore.
const SIGNALS: [Signal; 6] = [
    Signal::Quit,
    Signal::Abort,
    Signal::Alarm,
    Signal::ProcessorTime,
    Signal::User1,
    Signal::User2,
];

/// How the first conversation begins.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    /// The first prompt.
    pub(crate) prompt: Option<FirstPrompt>,
    pub(crate) system: Option<String>,
    /// The line has the keys of vi.
    pub(crate) has_vi_keys: bool,
    /// The names of the command files that can be used.
    pub(crate) command_files: Vec<String>,
    /// Warnings.
    pub(crate) notices: Vec<&'static str>,
}

/// The prompt that the command line has.
#[derive(Debug)]
pub(crate) struct FirstPrompt {
    /// With the attachments of options.
    pub(crate) submit: Submit,
    /// A person has written it there: the files that it mentions go with it, as with one that is written in the chat.
    pub(crate) is_written: bool,
}

/// The program that gets the terminal for a while.
enum Lending {
    /// The person's editor, with this text.
    ToEditor(String),
    ToShell,
}

/// Holds chats until the person leaves.
pub(crate) async fn serve(chat: Chat, signals: &mut Signals) -> Finish {
    let mut shell = match ending::caught(async { Shell::start(chat, signals) }).await {
        Ok(Ok(shell)) => shell,
        Ok(Err(error)) => {
            let complaint = Some(format!("the terminal can't be used: {error}"));
            return Finish { status: ExitCode::OutputFailed.number(), complaint };
        }
        // Its terminal was put back when it was dropped, and nothing was said yet.
        Err(panic) => return ending::defect(&panic, ""),
    };
    match ending::caught(shell.run()).await {
        Ok(finish) => finish,
        Err(panic) => shell.crashed(&panic).await,
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
    services: Services,
    debug_file: Option<DebugFile>,
    logged: mpsc::Receiver<String>,
    /// Events from other threads.
    found: (mpsc::UnboundedSender<Event>, mpsc::UnboundedReceiver<Event>),
    started: Instant,
    /// When the screen was drawn last.
    drawn: Instant,
    needs_picture: bool,
    /// A person waits for the picture.
    is_urgent: bool,
    /// Nothing can be drawn before.
    waits_until: Option<Instant>,
    /// Keys that were typed and not handled yet.
    typed_ahead: VecDeque<Typed>,
    /// Why no more lines can be read. What those before it ask is answered first.
    input_failure: Option<String>,
    /// The terminal is to be lent.
    lends: Option<Lending>,
    child: Option<Child>,
    /// The shell command that runs.
    command: Option<Running>,
    /// Bytes of a paste that has not ended.
    pasting_bytes: Option<usize>,
    /// Suspended: when to continue if nothing has stopped the process, and it may use the terminal.
    suspended: Option<Instant>,
    /// When the terminal was last taken.
    entered: Instant,
    /// The person has left: when the model is waited for no longer.
    leaves_at: Option<Instant>,
    /// The last signal that ends the chat.
    signal: Option<Signal>,
    /// The first prompt, until the store is open and a stored conversation is loaded.
    first: Option<FirstPrompt>,
    /// The conversation that is to begin.
    candidate: Option<Candidate>,
    /// The last stored conversation before this one in which something was said.
    before: Option<String>,
    exit: Option<ExitCode>,
    /// Another process holds the first conversation: the status if the person does not take a copy. The host has
    /// ended.
    held: Option<ExitCode>,
    draw_fault: FailPoint,
    /// Actions of the model, and whether they are deferred.
    deferred: VecDeque<Action>,
    defers: bool,
}

impl<'a> Shell<'a> {
    fn start(chat: Chat, signals: &'a mut Signals) -> io::Result<Self> {
        let Chat { host, services, mut beginning, debug_file, logged, source, mut screen, history } =
            chat;
        if !screen.is_plain() {
            signals.listen_to(&SIGNALS)?;
        }
        screen.enter()?;
        let draw_fault = host.faults.at(Place::Draw);
        let mut state = State::new(screen.size(), history.load());
        state.status.is_stored = host.store.is_some();
        state.status.system.clone_from(&beginning.system);
        state.vi = beginning.has_vi_keys.then(Vi::default);
        state.command_files = std::mem::take(&mut beginning.command_files);
        state.server_names = host.servers.names().map(ToString::to_string).collect();
        if host.store.as_ref().is_some_and(|store| store.mode != OpenMode::New) {
            state.awaits_conversation();
        }
        state.lines = screen.lines();
        let (host, greeting) = Host::new(host);
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
            services,
            debug_file,
            logged,
            found: mpsc::unbounded_channel(),
            started: now,
            drawn: now,
            needs_picture: true,
            is_urgent: false,
            waits_until: None,
            typed_ahead: VecDeque::new(),
            input_failure: None,
            lends: None,
            child: None,
            command: None,
            pasting_bytes: None,
            suspended: None,
            entered: now,
            leaves_at: None,
            signal: None,
            first: None,
            candidate: None,
            before: None,
            exit: None,
            held: None,
            draw_fault,
            deferred: VecDeque::new(),
            defers: false,
        };
        shell.begin(greeting, beginning);
        Ok(shell)
    }

    /// Shows the first frames and asks the first prompt.
    fn begin(&mut self, greeting: Vec<Frame>, beginning: Beginning) {
        if let Some(file) = &mut self.debug_file {
            file.begin();
        }
        self.greet(greeting);
        for notice in beginning.notices {
            self.update(Event::Logged(notice.to_owned()));
        }
        self.ask_servers(self.state.server_names.clone());
        match beginning.prompt {
            Some(first) if self.is_open() => self.ask_first(first),
            first => self.first = first,
        }
    }

    /// Shows the first frames of a conversation. Its debug file has its first state as well.
    fn greet(&mut self, greeting: Vec<Frame>) {
        greeting.into_iter().for_each(|frame| self.frame(frame));
        if let Some(file) = &mut self.debug_file
            && let Some(state) = self.host.beginning_state()
        {
            file.record(&state);
        }
    }

    async fn run(&mut self) -> Finish {
        loop {
            self.draw_if_due();
            if let Some(code) = self.exit {
                return self.finish(code).await;
            }
            if let Some(lending) = self.lends.take() {
                self.lend(lending).await;
            }
            self.take_typed();
            if self.lends.is_none() && self.exit.is_none() {
                self.wait().await;
            }
        }
    }

    /// Waits for one event and handles it. The person has priority over the engine.
    async fn wait(&mut self) {
        let wake = self.wake_at();
        // A line may be about what is still being loaded.
        let is_loading = self.state.is_plain() && self.host.is_opening();
        let takes_input = self.takes_input() && !is_loading && self.state.takes_lines();
        let (source, child, command) = (&mut self.source, &mut self.child, &mut self.command);
        tokio::select! {
            biased;
            signal = self.signals.next() => self.interrupted(signal),
            read = source.next(&mut self.screen), if takes_input => self.read(read),
            left = child::left(child) => self.child_has_left(left),
            output = command::ended(command) => self.update(Event::CommandEnded(Ok(output))),
            Some(()) = self.resizes.recv() => self.resized(),
            Some(()) = self.continues.recv() => {
                if self.suspended.is_some() || self.entered.elapsed() > CONTINUE_TIME {
                    self.continued();
                }
            }
            Some(event) = self.found.1.recv() => self.update(event),
            Some(line) = self.logged.recv() => self.update(Event::Logged(line)),
            () = sleep_until(wake) => self.look_at_clock(),
            opened = opening::opened(&mut self.candidate) => self.candidate_went_on(opened).await,
            effects = self.host.next(true), if self.held.is_none() => self.engine_went_on(effects).await,
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
            self.exit = Some(self.signal.map_or(ExitCode::Ok, ExitCode::Interrupted));
        }
        for typed in self.source.give_up(now) {
            self.update(Event::Typed(typed));
        }
        self.look_at_paste();
        self.update(Event::Tick);
    }

    /// Handles input of the person.
    fn read(&mut self, read: io::Result<input::Read>) {
        match read {
            Ok(input::Read::Typed(typed)) => {
                self.typed_ahead.extend(typed);
                self.take_typed();
                self.look_at_paste();
            }
            Ok(input::Read::Line(line)) => self.update(Event::Line(line)),
            Ok(input::Read::LineCut) => self.update(Event::LineCut),
            Ok(input::Read::Ended) => self.update(Event::InputEnded),
            // Their end comes next.
            Err(error) if self.state.is_plain() => self.input_failure = Some(error.to_string()),
            // The terminal is gone.
            Err(_) => {
                self.keep_unsent();
                let effects = self.host.handle(Input::Interrupted(Signal::Hangup));
                self.perform(effects);
            }
        }
    }

    /// Handles typed keys, up to one after which another action must happen first.
    fn take_typed(&mut self) {
        while self.takes_input()
            && self.lends.is_none()
            && let Some(typed) = self.next_typed()
        {
            self.typed(typed);
        }
    }

    /// What was typed next. While another conversation is being opened, a prompt for it waits, and a key that
    /// takes this back does not.
    fn next_typed(&mut self) -> Option<Typed> {
        let may_submit = self.typed_ahead.front().is_some_and(Typed::is_enter);
        if self.candidate.is_none() || !may_submit {
            return self.typed_ahead.pop_front();
        }
        let at = self.typed_ahead.iter().position(Typed::takes_back)?;
        self.typed_ahead.remove(at)
    }

    /// Whether the terminal is the chat's.
    fn takes_input(&self) -> bool {
        self.child.is_none() && self.suspended.is_none()
    }

    fn typed(&mut self, typed: Typed) {
        if let Typed::Place { row, column } = typed {
            return self.reported(row, column);
        }
        let enters = typed.is_enter();
        self.update(Event::Typed(typed));
        // What was entered, and what follows from it, is at the end.
        if enters && (self.state.editor.is_empty() || self.state.has_finished()) {
            self.screen.scroll(Scroll::End);
        }
        self.is_urgent = true;
        // Keys that were read together, as those of a paste without marks, have one picture. If some of them must
        // wait, the loop draws.
        if self.typed_ahead.is_empty() {
            self.draw();
        }
    }

    /// Shows that a paste has not ended, or that it has.
    fn look_at_paste(&mut self) {
        let bytes = self.source.pasting_bytes();
        if bytes != self.pasting_bytes {
            self.pasting_bytes = bytes;
            self.update(Event::Pasting(bytes));
        }
    }
}
