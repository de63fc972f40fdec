//! `chat`, and command files with `--chat`: what is decided before there is a screen.

use super::inputs::Inputs;
use super::person::{colours, tone};
use super::{Prepared, Reason, Terminal, attachments, history, prompt_of, system};
use crate::cli::commands;
use crate::cli::config::{self, chat::CurrentArgs};
use crate::cli::log::{self, Flush};
use crate::cli::prompts::{self, expand};
use crate::cli::store::DefaultStore;
use crate::cli::tools::guard;
use crate::cli::{AttachmentArgs, BellKind, ChatArgs, Editing, Mode, ScreenArgs, SessionArgs};
use crate::conversation::transcript::Preamble;
use crate::protocol::command::Submit;
use crate::stdio::Settings;
use crate::support::files::WorkFolder;
use crate::support::terminal::{has_links, is_dumb};
use crate::task::server::ServerName;
use crate::tui::{
    Beginning, Bell, Chat, Colours, FirstPrompt, HistoryFile, Look, Screen, Services, Source,
    Terminal as Tty, Theme,
};
use anyhow::{Context, Result, ensure};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Shown where a chat is forced to a terminal that is not standard input.
const UNREAD_INPUT: &str = "standard input is not read, because --force-interactive chats on the terminal; to ask \
     about a text, attach its file with --attach, or with @ before its name";

/// A chat that is ready but for its screen.
pub(crate) struct ReadyChat {
    settings: Settings,
    session: SessionArgs,
    /// The typed options, with those of a stored conversation where none was typed.
    first: SessionArgs,
    beginning: Beginning,
    place: Place,
    look: Look,
    is_fullscreen: bool,
    bell: Bell,
    logged: mpsc::Receiver<String>,
    /// The log, if it has a file of its own.
    pub(crate) flush: Option<Flush>,
}

/// The first state of a chat.
pub(super) struct Opening {
    pub(super) session: SessionArgs,
    pub(super) screen: ScreenArgs,
    pub(super) forces_terminal: bool,
    pub(super) preamble: Preamble,
    pub(super) prompt: Option<FirstPrompt>,
}

/// Where a person types and reads.
enum Place {
    /// Keys and pictures.
    Terminal { input: File, output: File },
    /// Lines. `echoes`: they are typed at a terminal, which shows them.
    Lines { input: File, output: File, is_shown: bool, echoes: bool },
}

impl Place {
    fn new(
        screen: ScreenArgs,
        forces_terminal: bool,
        terminal: Terminal,
        output: File,
    ) -> Result<Self> {
        let Terminal { stdin: input, is_typed, is_shown, .. } = terminal;
        let is_plain = screen.plain || is_dumb();
        if is_typed && is_shown && !is_plain {
            return Ok(Self::Terminal { input, output });
        }
        if !forces_terminal || is_typed && is_shown {
            let echoes = is_typed && is_shown;
            return Ok(Self::Lines { input, output, is_shown, echoes });
        }
        let open = || OpenOptions::new().read(true).write(true).open("/dev/tty");
        let both = open().and_then(|input| Ok((input, open()?)));
        let (input, output) =
            both.context("--force-interactive: this process has no terminal to chat at")?;
        Ok(match is_plain {
            true => Self::Lines { input, output, is_shown: true, echoes: true },
            false => Self::Terminal { input, output },
        })
    }
}

/// Prepares `chat`.
pub(super) fn run(
    mut args: ChatArgs,
    terminal: Terminal,
    output: File,
) -> Result<Prepared, Reason> {
    args.session.settle_store(DefaultStore::OfAll)?;
    let mut inputs = Inputs::of(&args.session, &terminal);
    attachments::add(&args.attachments, &mut inputs);
    inputs.ensure_kept(&args.session)?;
    system::read(&mut args.session)?;
    let history = history::for_engine(history::read(args.session.history.as_deref())?);
    let prompt = first_prompt(args.prompt, &args.attachments)?;
    let opening = Opening {
        session: args.session,
        screen: args.screen,
        forces_terminal: args.force_interactive,
        preamble: Preamble { system: None, history },
        prompt,
    };
    ready(opening, terminal, output)
}

/// The first prompt with its attachments.
fn first_prompt(text: Option<String>, attached: &AttachmentArgs) -> Result<Option<FirstPrompt>> {
    let attachments = attachments::read(attached, Mode::Text)?;
    let Some(text) = text else {
        ensure!(
            attachments.is_empty(),
            "an attachment goes with a prompt; write the prompt after `chat`, or attach a file in \
             the chat with @ before its name"
        );
        return Ok(None);
    };
    let prompt = prompt_of(text)?;
    let submit = Submit { attachments, ..Submit::new(prompt) };
    Ok(Some(FirstPrompt { submit, is_written: true }))
}

/// Prepares a chat that begins like this.
pub(super) fn ready(
    opening: Opening,
    terminal: Terminal,
    output: File,
) -> Result<Prepared, Reason> {
    let Opening { mut session, screen, forces_terminal, preamble, mut prompt } = opening;
    let (is_typed, unread_input) = (terminal.is_typed, may_have_text(&terminal.stdin));
    let is_attended = forces_terminal || terminal.is_attended();
    let place = Place::new(screen, forces_terminal, terminal, output)?;
    let (level, file) = (session.log_level, session.log_file.as_deref());
    // On a terminal with pictures a line of the log has to be part of them.
    let is_drawn = matches!(place, Place::Terminal { .. }) && io::stderr().is_terminal();
    let (flush, logged) = match is_drawn && file.is_none() {
        true => (None, log::start_for_screen(level)?),
        false => (log::start_for_lines(level, file)?, mpsc::channel(1).1),
    };
    let leaves_input = forces_terminal && !is_typed && unread_input;
    let system = config::chat::system(&session, &preamble);
    if let Some(not_stored) = config::chat::check_default(&mut session.store) {
        tracing::warn!("{not_stored}");
    }
    let mut first = session.clone();
    config::chat::go_on(&mut first)?;
    let settings = config::chat::chat(&first, preamble, is_attended)?;
    for attachment in prompt.iter_mut().flat_map(|prompt| &mut prompt.submit.attachments) {
        attachment.settle_server(settings.host.servers.names().map(ServerName::as_str));
    }
    let colours = match place {
        Place::Terminal { .. } => colours(),
        Place::Lines { .. } => Colours::Plain,
    };
    let tone = tone(screen.background.background);
    let theme = Theme { tone, colours, has_links: has_links() };
    let unread = leaves_input.then_some(UNREAD_INPUT);
    let notices = settings.notices.iter().copied().chain(unread).collect();
    let has_vi_keys = screen.editing == Editing::Vi;
    let usable = prompts::list(&WorkFolder::default())
        .into_iter()
        .filter(|it| it.about.is_ok())
        .map(|it| it.name);
    let command_files = usable.filter(|name| !name.contains(char::is_control)).collect();
    let beginning = Beginning { prompt, system, has_vi_keys, command_files, notices };
    Ok(Prepared::Chat(Box::new(ReadyChat {
        settings,
        session,
        first,
        beginning,
        place,
        look: Look::new(theme),
        is_fullscreen: screen.fullscreen,
        bell: bell(screen.bell),
        logged,
        flush,
    })))
}

impl ReadyChat {
    /// The chat on its screen. Inside the runtime, which waits for keys.
    ///
    /// # Errors
    /// If the terminal can't be used.
    pub(crate) fn on_screen(self) -> Result<Chat> {
        let Self {
            settings,
            session,
            first,
            beginning,
            place,
            look,
            is_fullscreen,
            bell,
            logged,
            ..
        } = self;
        let (source, screen) = match place {
            Place::Terminal { input, output } => {
                let terminal = Tty::new(input, output, is_fullscreen);
                let terminal = terminal.context("the terminal can't be used")?;
                let screen = match is_fullscreen {
                    true => Screen::full(terminal, look),
                    false => Screen::inline(terminal, look, reflows()),
                };
                (Source::keys(), screen)
            }
            Place::Lines { input, output, is_shown, echoes } => {
                (Source::lines(input)?, Screen::plain(output, look, is_shown, echoes))
            }
        };
        let history = if screen.is_plain() { HistoryFile::none() } else { HistoryFile::of_user() };
        let (library, resumed) = (config::chat::library(&session), session.store.clone());
        let forker = config::chat::forker(&session);
        let registries = session.provider.registries.clone();
        let current = CurrentArgs::new(first);
        let of_provider = current.clone();
        let services = Services {
            models: Arc::new(move |choice| commands::model_names(of_provider.get(), choice)),
            opener: config::chat::opener(session, current),
            library,
            forker,
            profiles: config::chat::profiles(registries),
            prompts: Arc::new(|line| expand(line, &WorkFolder::default())),
            guard: guard(),
            bell,
            resume: Box::new(move |id| config::chat::resume(&resumed, id)),
        };
        Ok(Chat {
            host: settings.host,
            services,
            beginning,
            debug_file: settings.debug_file,
            logged,
            source,
            screen,
            history,
        })
    }
}

/// Whether a file may hold input: a pipe, a socket, a file that is not empty.
fn may_have_text(input: &File) -> bool {
    let is_some = |about: Metadata| {
        let kind = about.file_type();
        kind.is_fifo() || kind.is_socket() || kind.is_file() && about.len() > 0
    };
    input.metadata().is_ok_and(is_some)
}

fn bell(kind: BellKind) -> Bell {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    match kind {
        BellKind::Auto => Bell::of_terminal(&variable("TERM"), &variable("TERM_PROGRAM")),
        BellKind::Sound => Bell::Sound,
        BellKind::Notification => Bell::Notification,
        BellKind::Off => Bell::Nothing,
    }
}

/// Whether the terminal wraps the lines on its screen again when it gets narrower. Most do.
fn reflows() -> bool {
    let has = |name: &str| std::env::var_os(name).is_some();
    let term = std::env::var("TERM").unwrap_or_default();
    let is_screen = term.starts_with("screen") && !has("TMUX");
    !(has("XTERM_VERSION") || term == "linux" || is_screen)
}
