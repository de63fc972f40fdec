//! Prepares a command: reads its files, and decides what is run and what is printed. That may wait
//! for standard input or a named pipe, so it is done in a separate thread, while the process
//! listens for signals.

mod acp;
mod attachments;
mod chat;
mod command;
mod history;
mod inputs;
pub(super) mod many;
mod person;
mod piped;
mod prompt;
#[cfg(feature = "serve")]
mod serve;
mod shown;
mod system;
mod text;

use crate::acp::Services;
#[cfg(feature = "serve")]
use crate::cli::ServeArgs;
use crate::cli::answer_options::AnswerSchema;
use crate::cli::config::{self, NothingAsked, Once, PromptRequest, Source};
use crate::cli::log::{self, Flush};
use crate::cli::store::DefaultStore;
use crate::cli::{AcpArgs, ChatArgs, Cli, CommandMode, ExecArgs, Mode, RpcArgs};
use crate::command_file::Rendered;
use crate::conversation::transcript::Preamble;
use crate::extract::ResponseType;
use crate::protocol::command::Prompt;
use crate::session::Signal;
use crate::stdio::{Settings, Unread, UnreadInput};
use crate::store::OpenMode;
use crate::support::files::FileId;
use crate::support::threads;
use crate::transport::{Signals, reader_gone};
use anyhow::{Result, bail};
pub(crate) use chat::ReadyChat;
use config::prompt as prompt_of;
use inputs::Inputs;
pub(crate) use person::Person;
use piped::{Claim, Piped};
use prompt::Parts;
use shown::{Unasked, shown};
use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time limit for the preparation of a command after standard output was closed: a wrong command is still
/// reported, and a named pipe without a writer does not block the end.
const READY_WITHOUT_READER_MAX: Duration = Duration::from_secs(1);

/// Shown when data comes on standard input that is not read.
const UNREAD: &str = "standard input has data that is not part of the prompt: it came late, and the program \
     that started this command has the same input; write - after the prompt to add it, or redirect standard input \
     from /dev/null";

/// How standard input becomes a part of the prompt of `exec`.
const CLAIM: Claim = Claim { way: "write - after the prompt", of_here_document: "" };

/// A command that serves a conversation or a prompt.
#[derive(Debug)]
pub enum Job {
    /// `rpc`.
    Rpc(Box<RpcArgs>),
    /// `exec`.
    Exec(Box<ExecArgs>),
    /// `chat`.
    Chat(Box<ChatArgs>),
    /// `acp`.
    Acp(Box<AcpArgs>),
    /// `serve`.
    #[cfg(feature = "serve")]
    Serve(Box<ServeArgs>),
    /// `run-command`, whose words can be parsed once its file has been read.
    RunCommand(Vec<OsString>),
    /// Words that can't be parsed, and the output that they seem to select.
    Wrong(CommandMode, clap::Error),
}

/// Standard input and output, as they were before they were made private.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// Standard input.
    pub stdin: File,
    /// Standard input is a terminal.
    pub is_typed: bool,
    /// Standard output is a terminal.
    pub is_shown: bool,
    /// The regular file that standard output is, if it is one.
    pub output: Option<FileId>,
}

impl Terminal {
    /// Whether a person is at a terminal: one of the three standard streams is one.
    fn is_attended(&self) -> bool {
        self.is_typed || self.is_shown || std::io::stderr().is_terminal()
    }
}

/// The end of the preparation of a command.
#[derive(Debug)]
pub(crate) struct Waits<'a> {
    /// A signal, at once.
    pub signals: &'a mut Signals,
    /// Standard output was closed by its reader.
    pub output: &'a File,
}

/// A prepared command.
pub(crate) enum Prepared {
    /// Serve these settings; the log is closed when its guard is dropped.
    Serve(Box<Settings>, Option<Flush>),
    /// Hold a chat at a terminal.
    Chat(Box<ReadyChat>),
    /// Hold conversations for an editor.
    Acp(Box<Services>, Option<Flush>),
    /// Hold the conversations of a fleet's node.
    #[cfg(feature = "serve")]
    Fleet(Box<crate::serve::Services>, Option<Flush>),
    /// Print this and exit.
    Print(String),
}

/// Why a command can't be served.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The command and its output mode.
    pub command_mode: CommandMode,
    /// The error.
    pub reason: Reason,
}

/// The error of a command.
#[derive(Debug)]
pub(crate) enum Reason {
    /// The command line is wrong. Also a request for help, which is no error.
    Usage(clap::Error),
    /// An option value, or a file that it names, can't be used.
    Wrong(anyhow::Error),
    /// A bug in this program.
    Defect,
    /// A signal arrived first.
    Interrupted(Signal),
    /// Standard output was closed by its reader.
    ReaderGone,
}

impl Job {
    /// Whether it is worth more than one thread.
    pub(crate) fn is_parallel(&self) -> bool {
        #[cfg(feature = "serve")]
        if let Self::Serve(_) = self {
            return true;
        }
        false
    }

    /// The command and its output mode, as far as they are known before any file is read.
    pub(crate) fn command_mode(&self) -> CommandMode {
        match self {
            Self::Rpc(args) => CommandMode { command: "rpc", mode: args.output.mode() },
            Self::Exec(args) => CommandMode { command: "exec", mode: args.output.mode_of_errors() },
            Self::Chat(_) => CommandMode { command: "chat", mode: Mode::Text },
            Self::Acp(_) => CommandMode { command: "acp", mode: Mode::Text },
            #[cfg(feature = "serve")]
            Self::Serve(_) => CommandMode { command: "serve", mode: Mode::Text },
            Self::RunCommand(words) => Cli::guess(words, None),
            Self::Wrong(command_mode, _) => *command_mode,
        }
    }
}

impl<E: Into<anyhow::Error>> From<E> for Reason {
    fn from(error: E) -> Self {
        match error.into().downcast() {
            Ok(usage) => Self::Usage(usage),
            Err(other) => Self::Wrong(other),
        }
    }
}

/// Prepares `job`.
///
/// # Errors
/// If there is nothing to run, with the error to report.
pub(crate) async fn prepare(
    job: Job,
    terminal: Terminal,
    waits: &mut Waits<'_>,
) -> Result<Prepared, Refusal> {
    let command_mode = job.command_mode();
    match job {
        Job::Rpc(args) => {
            let session = &args.session;
            let provider = &session.provider;
            let has_profile =
                provider.profile.is_some() || config::profile::may_be_default(provider);
            let resumes = session.store.mode() != OpenMode::New;
            // Whether there are profiles is looked for then.
            let may_lack_provider = provider.engine.is_none() && !terminal.is_attended();
            let has_file = session.history.is_some() || session.system_file.is_some();
            let reads = has_profile || has_file || resumes || may_lack_provider;
            let work =
                move || rpc(*args, &terminal).map_err(|reason| Refusal { command_mode, reason });
            // A command that reads nothing needs no thread.
            if reads { in_thread(waits, command_mode, work).await } else { work() }
        }
        Job::Wrong(_, error) => Err(Refusal { command_mode, reason: Reason::Usage(error) }),
        Job::Exec(args) => {
            let output = waits.output.try_clone();
            let refuse = move |reason| Refusal { command_mode, reason };
            let output = output.map_err(|error| refuse(error.into()))?;
            let work = move || exec(*args, terminal, &output).map_err(refuse);
            in_thread(waits, command_mode, work).await
        }
        Job::Chat(args) => {
            let output = waits.output.try_clone();
            let refuse = move |reason| Refusal { command_mode, reason };
            let output = output.map_err(|error| refuse(error.into()))?;
            let work = move || chat::run(*args, terminal, output).map_err(refuse);
            in_thread(waits, command_mode, work).await
        }
        Job::Acp(args) => {
            let reads = args.session.system_file.is_some();
            let work = move || acp::run(*args).map_err(|reason| Refusal { command_mode, reason });
            if reads { in_thread(waits, command_mode, work).await } else { work() }
        }
        #[cfg(feature = "serve")]
        Job::Serve(args) => {
            let work = move || serve::run(*args).map_err(|reason| Refusal { command_mode, reason });
            in_thread(waits, command_mode, work).await
        }
        Job::RunCommand(words) => {
            let output = waits.output.try_clone();
            let output = output.map_err(|error| Refusal { command_mode, reason: error.into() })?;
            let work = move || command::run(&words, terminal, output);
            in_thread(waits, command_mode, work).await
        }
    }
}

/// Does `work`, unless a signal arrives first or the reader of the result is gone.
async fn in_thread(
    waits: &mut Waits<'_>,
    command_mode: CommandMode,
    work: impl FnOnce() -> Result<Prepared, Refusal> + Send + 'static,
) -> Result<Prepared, Refusal> {
    let refuse = |reason| Err(Refusal { command_mode, reason });
    let (ready, mut outcome) = oneshot::channel();
    // An interrupted command reports no error.
    let work = move || drop(ready.send(work()));
    if let Err(error) = threads::spawn("prepare", work) {
        return refuse(error.into());
    }
    tokio::select! {
        biased;
        signal = waits.signals.next() => refuse(Reason::Interrupted(signal)),
        outcome = &mut outcome => outcome.unwrap_or_else(|_| refuse(Reason::Defect)),
        () = reader_gone(waits.output) => {
            match timeout(READY_WITHOUT_READER_MAX, outcome).await {
                Ok(outcome) => outcome.unwrap_or_else(|_| refuse(Reason::Defect)),
                Err(_) => refuse(Reason::ReaderGone),
            }
        }
    }
}

fn rpc(mut args: RpcArgs, terminal: &Terminal) -> Result<Prepared, Reason> {
    args.session.settle_store(DefaultStore::Unused)?;
    Inputs::of(&args.session, terminal).ensure_kept(&args.session)?;
    system::read(&mut args.session)?;
    let log = log::start(args.session.log_level, args.session.log_file.as_deref())?;
    let history = history::for_engine(history::read(args.session.history.as_deref())?);
    let at_terminal = (terminal.is_typed, terminal.is_attended());
    let settings = config::rpc(args, history, at_terminal)?;
    Ok(Prepared::Serve(Box::new(settings), log))
}

/// Reads a prompt in the background: its writer may wait for `hello` first. As context of a
/// conversation, or to be printed, the prompt is needed before that.
fn later(
    is_needed_now: bool,
    may_be_blank: bool,
    read: impl FnOnce() -> Result<String> + Send + 'static,
) -> Result<Source> {
    if is_needed_now {
        return Ok(Source::Text(read()?));
    }
    let (done, prompt) = oneshot::channel();
    let work = move || {
        let prompt = read().and_then(|text| match may_be_blank && text.trim().is_empty() {
            true => Ok(Prompt::nothing()),
            false => config::prompt(text),
        });
        // An interrupted command reports no error.
        drop(done.send(prompt.map_err(|error| config::client_error(&error))));
    };
    threads::spawn("prompt", work)?;
    Ok(Source::Awaited(prompt))
}

fn exec(mut args: ExecArgs, terminal: Terminal, output: &File) -> Result<Prepared, Reason> {
    let mode = args.output.mode()?;
    args.session.settle_store(DefaultStore::OfSessions)?;
    let person = Person::of(&args.output, args.background, &terminal, output)?;
    let mut inputs = Inputs::of(&args.session, &terminal);
    inputs.add_of_prompt("--prompt-file", args.prompt_file.as_deref());
    inputs.add("--schema", args.schema.as_deref());
    args.file.iter().for_each(|path| inputs.add_of_prompt("--file", Some(path)));
    attachments::add(&args.attachments, &mut inputs);
    inputs.ensure_kept(&args.session)?;
    inputs.ensure_not_saved(args.output.save.as_deref(), &args.session)?;
    let log = log::start(args.session.log_level, args.session.log_file.as_deref())?;
    system::read(&mut args.session)?;
    let history = history::read(args.session.history.as_deref())?;
    let attachments = attachments::read(&args.attachments, mode)?;
    let schema = args.schema.as_deref().map(AnswerSchema::load).transpose()?;
    // In a conversation it holds the requests.
    let is_free = !mode.reads_stdin();
    let piped = || if is_free { Piped::of(&terminal.stdin, CLAIM) } else { Ok(None) };
    let parts = Parts::of(&args, piped)?;
    let unread = Unread::default();
    let left = (!parts.reads_all()).then(|| terminal.stdin.try_clone()).transpose()?;
    let left = left.map(|stdin| UnreadInput::new(stdin, UNREAD, unread.clone()));
    // Attachments need no prompt, unless standard input may have had one that was lost.
    let is_blank = args.prompt.as_deref().is_some_and(|prompt| prompt.trim().is_empty());
    let may_be_blank = !attachments.is_empty() && (is_blank || args.allow_empty);
    let prompt = source(&args, (parts, &unread), (mode, may_be_blank), terminal)?;
    if let (true, Source::Text(prompt)) = (args.print_prompt, &prompt) {
        // In a conversation it is context, of which there may be none.
        if prompt.trim().is_empty() && !may_be_blank && !mode.reads_stdin() {
            return Err(anyhow::Error::from(NothingAsked::Prompt).into());
        }
        let system = config::printed_system(None, &mut args.session, mode)?;
        let rendered = Rendered { system, messages: history, prompt: prompt.clone() };
        let session_id = args.session.session_id.as_deref();
        let is_shown = person.is_shown;
        unread.log();
        let schema = schema.and_then(|schema| schema.for_provider);
        let unasked =
            Unasked { command: "exec", mode, session_id, schema, warnings: Vec::new(), is_shown };
        return Ok(Prepared::Print(shown(&rendered, &attachments, &unasked)?));
    }
    let preamble = Preamble { system: None, history: history::for_engine(history) };
    let request = PromptRequest {
        preamble,
        prompt,
        attachments,
        response: if schema.is_some() { ResponseType::Json } else { ResponseType::Text },
        schema,
        name: "exec".to_owned(),
        ..PromptRequest::default()
    };
    let once = Once { command: "exec", mode, person, request, unread: left };
    let settings = config::once(once, args.session)?;
    Ok(Prepared::Serve(Box::new(settings), log))
}

/// The prompt that `parts` of `args` make, or where it will come from; and whether it may be blank.
fn source(
    args: &ExecArgs,
    (parts, unread): (Parts, &Unread),
    (mode, may_be_blank): (Mode, bool),
    terminal: Terminal,
) -> Result<Source> {
    let is_needed_now = mode.reads_stdin() || args.print_prompt;
    let Terminal { stdin, is_typed, .. } = terminal;
    if let Some(prompt) = parts.typed() {
        let is_left_out = may_be_blank && !is_needed_now && prompt.trim().is_empty();
        return Ok(if is_left_out { Source::Nothing } else { Source::Text(prompt.to_owned()) });
    }
    let is_given = args.prompt.is_some() || args.prompt_file.is_some();
    match (parts.has_stdin(), mode.reads_stdin()) {
        // Standard input carries the requests.
        (true, true) if !is_given => Ok(Source::default()),
        (true, true) => bail!(
            "standard input can't hold both the prompt and the requests; write the prompt after \
             `exec`, or name a file with --prompt-file or --file"
        ),
        // On a terminal there is no pipe to forget.
        (true, false) if is_typed && !is_given => bail!(
            "there is no prompt; write it after `exec`, name a file with --prompt-file, or pipe it \
             in"
        ),
        (_, _) => {
            let unread = unread.clone();
            later(is_needed_now, may_be_blank, move || parts.read(stdin, &unread))
        }
    }
}
