//! `run-command`: builds the request from a command file, its flags and its prompt.

use super::chat::{self, Opening};
use super::inputs::Inputs;
use super::piped::{Claim, Piped};
use super::shown::{Unasked, shown};
use super::{
    Person, Prepared, Reason, Refusal, Terminal, attachments, history, later, prompt, system, text,
};
use crate::cli::answer_options::AnswerSchema;
use crate::cli::config::{self, NothingAsked, Once, PromptRequest, Source};
use crate::cli::foreign::switches;
use crate::cli::log;
use crate::cli::store::DefaultStore;
use crate::cli::{
    Cli, CommandMode, EngineName, Mode, ModelOfFile, RUN, RUN_COMMAND, RunCommandArgs, SessionArgs,
    prompts,
};
use crate::command_file::{CommandFile, FILE_BYTES_MAX, FileMessage, Outside, Rendered, is_stdin};
use crate::conversation::transcript::Preamble;
use crate::extract::ResponseType;
use crate::host::CodedWarning;
use crate::protocol::attachment::Attachment;
use crate::protocol::command::{Prompt, Submit};
use crate::protocol::constants::capability::EXTRACT;
use crate::stdio::{Unread, UnreadInput};
use crate::support::files::{Blocking, WorkFolder};
use crate::support::terminal::escape_control;
use crate::template::{Missing, Values};
use crate::tui::FirstPrompt;
use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use jiff::Zoned;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The name of the warning about a part of a message that has no value.
const NO_VALUE_CODE: &str = "no_value";

/// Why nothing else can be read from standard input.
const REQUESTS_ARE_READ: &str =
    "standard input holds the requests of --stdin-rpc; name a file instead of -";

/// Shown when data comes on standard input that is not read.
const UNREAD: &str = "standard input has data that is not part of the prompt: it came late, and the program \
     that started this command has the same input; write cat | before the command to add it, or redirect \
     standard input from /dev/null";

/// How standard input becomes a part of the prompt that is not in doubt: of a pipeline of its own.
const CLAIM: Claim = Claim {
    way: "write cat | before the command",
    of_here_document: ", and << with the here-document right after cat",
};

/// Prepares the command that `words` name.
pub(super) fn run(
    words: &[OsString],
    terminal: Terminal,
    output: File,
) -> Result<Prepared, Refusal> {
    let command_mode = Cli::guess(words, None);
    let file = file(words, command_mode, &terminal.stdin);
    let file = file.map_err(|reason| Refusal { command_mode, reason })?;
    // From here on it is known which words are the file's flags.
    let words = &switches::without_values(words, &file);
    let command_mode = Cli::guess(words, Some(&file));
    with_file(words, &file, terminal, output).map_err(|reason| Refusal { command_mode, reason })
}

/// The command file that `words` name.
fn file(
    words: &[OsString],
    command_mode: CommandMode,
    stdin: &File,
) -> Result<CommandFile, Reason> {
    let Some(path) = Cli::command_file(words) else {
        // Without a file there is only help, or the error that it is missing.
        Cli::read(words)?;
        return Err(anyhow!("name a command file: duologue run-command FILE.yaml").into());
    };
    if words.get(1).is_some_and(|word| word == RUN) {
        let name = path.to_string_lossy();
        return Ok(
            prompts::find(&name, &WorkFolder::default())?.ok_or_else(|| prompts::missing(&name))?
        );
    }
    let path = Path::new(&path);
    if is_stdin(path) && command_mode.mode.reads_stdin() {
        return Err(anyhow!("the command file can't be there: {REQUESTS_ARE_READ}").into());
    }
    let is_first = words.get(2).is_some_and(|word| Path::new(word) == path);
    let hint = if is_first { "" } else { " (the file comes first, its flags after it)" };
    Ok(read(path, stdin).map_err(|error| anyhow!("{error:#}{hint}"))?)
}

fn with_file(
    words: &[OsString],
    file: &CommandFile,
    terminal: Terminal,
    output: File,
) -> Result<Prepared, Reason> {
    let (mut args, typed) = Cli::read_with_file(words, file)?;
    let mode = args.output.mode()?;
    let is_chat = args.interactive.is_chat(terminal.is_typed && terminal.is_shown);
    args.session.settle_store(match is_chat {
        true => DefaultStore::OfAll,
        false => DefaultStore::OfSessions,
    })?;
    let mut inputs = Inputs::of(&args.session, &terminal);
    inputs.add_command_file(&file.path);
    attachments::add(&args.attachments, &mut inputs);
    let mut read = None;
    let mut from_stdin = || match mode.reads_stdin() {
        true => Err(io::Error::other(REQUESTS_ARE_READ)),
        false => all(&terminal.stdin).inspect(|bytes| read = Some(!bytes.trim_ascii().is_empty())),
    };
    let history = history::read(args.session.history.as_deref())?;
    let mut outside = Outside::new(&mut from_stdin);
    if is_stdin(&args.file) {
        outside = outside.without_stdin();
    }
    let values = file.values(&typed, &mut outside)?;
    inputs.add_values(outside.files());
    if read == Some(false) && !args.allow_empty {
        return Err(anyhow::Error::from(NothingAsked::StandardInput).into());
    }
    inputs.ensure_kept(&args.session)?;
    inputs.ensure_not_saved(args.output.save.as_deref(), &args.session)?;
    system::read(&mut args.session)?;
    let attachments = attachments::read(&args.attachments, mode)?;
    if is_chat && !args.print_prompt {
        return begin_chat(args, file, values, (history, attachments), (terminal, output));
    }
    let log = log::start(args.session.log_level, args.session.log_file.as_deref())?;
    warn_of(file);
    if let Some(ignored) = apply_settings(file, &mut args.session) {
        tracing::warn!("{}: {ignored}", file.path.display());
    }
    let (mut rendered, missing) = rendered(file, values, &args)?;
    report(&missing);
    rendered.messages.extend(history);
    let is_free = read.is_none() && !mode.reads_stdin();
    let piped = if is_free { Piped::of(&terminal.stdin, CLAIM)? } else { None };
    if args.print_prompt {
        return printed((rendered, missing), &attachments, piped, (file, args, terminal));
    }
    let person = Person::of(&args.output, args.screen.background, &terminal, &output)?;
    let unread = Unread::default();
    let is_left = is_free && matches!(piped, None | Some(Piped::Open));
    let left = is_left.then(|| terminal.stdin.try_clone()).transpose()?;
    let left = left.map(|stdin| UnreadInput::new(stdin, UNREAD, unread.clone()));
    let piped = piped.map(|piped| (piped, terminal.stdin, unread));
    let request = request(file, (rendered, missing), attachments, piped)?;
    let once = Once { command: RUN_COMMAND, mode, person, request, unread: left };
    let settings = config::once(once, args.session)?;
    Ok(Prepared::Serve(Box::new(settings), log))
}

/// The messages of `file` with these values, and the warnings about parts of them that have no value.
fn rendered(
    file: &CommandFile,
    values: Values,
    args: &RunCommandArgs,
) -> Result<(Rendered, Vec<CodedWarning>)> {
    let missing = if args.strict { Missing::Refused } else { Missing::Shown };
    // One that is not used need not be renderable.
    let without_system = args.is_system_typed.then(|| file.without_system_prompt());
    let file = without_system.as_ref().unwrap_or(file);
    let mut rendered = file.render(values, &Zoned::now(), missing)?;
    // What is added to the file's own messages has no flags that could lack a value.
    let warnings = file.missing_values(&rendered).into_iter();
    let warnings = warnings.map(|message| CodedWarning { code: NO_VALUE_CODE, message });
    if args.is_system_typed {
        rendered.system = args.session.system.clone();
    }
    Ok((rendered, warnings.collect()))
}

fn report(warnings: &[CodedWarning]) {
    for CodedWarning { message, .. } in warnings {
        tracing::warn!("{message}");
    }
}

/// Prints the request.
fn printed(
    (mut rendered, warnings): (Rendered, Vec<CodedWarning>),
    attachments: &[Attachment],
    piped: Option<Piped>,
    (file, mut args, terminal): (&CommandFile, RunCommandArgs, Terminal),
) -> Result<Prepared, Reason> {
    let mode = args.output.mode()?;
    let has_messages = rendered.system.is_some() || !rendered.messages.is_empty();
    let has_rest = has_messages || !attachments.is_empty();
    // Options and the profile count only if the file sets no value.
    rendered.system = config::printed_system(rendered.system, &mut args.session, mode)?;
    if let Some(piped) = piped {
        let unread = Unread::default();
        prompt::add(&mut rendered.prompt, &piped.read(terminal.stdin, CLAIM, &unread)?)?;
        unread.log();
    }
    if rendered.prompt.trim().is_empty() && !has_rest && !mode.reads_stdin() {
        return Err(anyhow::Error::from(NothingAsked::Prompt).into());
    }
    let is_shown = terminal.is_shown;
    let session_id = args.session.session_id.as_deref();
    let schema = answer_schema(file)?.filter(|_| file.response == ResponseType::Json);
    let schema = schema.and_then(|schema| schema.for_provider);
    let unasked = Unasked { command: RUN_COMMAND, mode, session_id, schema, warnings, is_shown };
    Ok(Prepared::Print(shown(&rendered, attachments, &unasked)?))
}

/// The rendered prompt as the first one of a chat.
fn begin_chat(
    mut args: RunCommandArgs,
    file: &CommandFile,
    values: Values,
    (history, attachments): (Vec<FileMessage>, Vec<Attachment>),
    (terminal, output): (Terminal, File),
) -> Result<Prepared, Reason> {
    let mode = args.output.mode()?;
    if mode != Mode::Text {
        return Err(anyhow!(
            "a chat is for a person, and another output was chosen by an option or DUOLOGUE_OUTPUT; \
             leave one of the two out"
        )
        .into());
    }
    let ignored = apply_settings(file, &mut args.session);
    let (Rendered { system, messages, prompt }, missing) = rendered(file, values, &args)?;
    let history = history::for_engine(messages.into_iter().chain(history).collect());
    let prompt = Prompt::new(prompt);
    if prompt.is_none() && !attachments.is_empty() {
        return Err(anyhow!(
            "an attachment goes with a prompt, and that of the command file is blank; attach a file in the chat with \
             @ before its name"
        )
        .into());
    }
    let prompt = prompt.map(|prompt| {
        let submit = Submit { attachments, ..Submit::new(prompt) };
        FirstPrompt { submit, is_written: false }
    });
    let opening = Opening {
        session: args.session,
        screen: args.screen,
        forces_terminal: args.interactive.force_interactive,
        preamble: Preamble { system, history },
        prompt,
    };
    let prepared = chat::ready(opening, terminal, output)?;
    warn_of(file);
    if file.response != ResponseType::Text || file.schema.is_some() {
        let path = escape_control(&file.path.display().to_string());
        tracing::warn!("{path}: `response-type` and `schema` do not apply in a chat");
    }
    report(&missing);
    if let Some(ignored) = ignored {
        tracing::warn!("{}: {ignored}", file.path.display());
    }
    Ok(prepared)
}

/// Reports the parts of the file that are ignored.
fn warn_of(file: &CommandFile) {
    for warning in &file.warnings {
        tracing::warn!("{}", escape_control(&warning.to_string()));
    }
    for name in file.extensions.iter().filter(|name| *name != EXTRACT) {
        let path = file.path.display();
        tracing::warn!(
            "{path}: the extension `{}` is unknown and ignored; the known one is {EXTRACT}",
            escape_control(name)
        );
    }
}

fn read(path: &Path, stdin: &File) -> Result<CommandFile> {
    if !is_stdin(path) {
        return Ok(CommandFile::load(path)?);
    }
    let text = text::read(stdin, FILE_BYTES_MAX).context("the command file on standard input")?;
    Ok(CommandFile::parse(Path::new("stdin"), &text)?)
}

fn all(stdin: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = crate::command_file::VALUE_BYTES_MAX as u64 + 1;
    Blocking(stdin).take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The schema of the answer to `file`.
///
/// # Errors
/// If it is no schema.
fn answer_schema(file: &CommandFile) -> Result<Option<AnswerSchema>> {
    let schema = file.schema.as_ref().map(|schema| AnswerSchema::new(&file.name, schema));
    let place = || format!("{}:{}: `schema`", file.path.display(), file.schema_line);
    schema.transpose().with_context(place)
}

fn request(
    file: &CommandFile,
    (rendered, warnings): (Rendered, Vec<CodedWarning>),
    attachments: Vec<Attachment>,
    piped: Option<(Piped, File, Unread)>,
) -> Result<PromptRequest> {
    let schema = answer_schema(file)?;
    let Rendered { system, messages, mut prompt } = rendered;
    // The preceding messages are enough to answer, and so are attachments.
    let has_rest = system.is_some() || !messages.is_empty() || !attachments.is_empty();
    let has_nothing = prompt.trim().is_empty() && has_rest;
    let prompt = match piped {
        Some((piped, stdin, unread)) => later(false, has_nothing, move || {
            prompt::add(&mut prompt, &piped.read(stdin, CLAIM, &unread)?)?;
            Ok(prompt)
        })?,
        None if has_nothing => Source::Nothing,
        None => Source::Text(prompt),
    };
    Ok(PromptRequest {
        preamble: Preamble { system, history: history::for_engine(messages) },
        prompt,
        attachments,
        response: file.response,
        schema,
        warnings,
        reports_values: file.extensions.iter().any(|name| name == EXTRACT),
        name: file.name.clone(),
    })
}

/// Puts what `file` says about the provider and its calls into `args`: typed options win over it, and it
/// wins over variables and the profile. Returns what is ignored of it, for people.
fn apply_settings(file: &CommandFile, args: &mut SessionArgs) -> Option<String> {
    args.calls.of_file = file.settings.clone();
    let of_file = file.engine.as_deref();
    let engine = of_file.and_then(|name| EngineName::from_str(name, false).ok());
    let provider = &mut args.provider;
    // A key or an address that is named otherwise is not for the engine of a file.
    let is_address_of_others = provider.addresses.engine().is_some()
        && engine.is_none_or(|engine| provider.addresses.of(engine).is_none());
    let is_chosen = provider.engine.is_some()
        || is_address_of_others
        || provider.profile.is_some()
        || provider.base_url.is_some()
        || provider.key_command.is_some()
        || provider.key_file.is_some()
        || std::env::var_os("DUOLOGUE_API_KEY").is_some_and(|key| !key.is_empty());
    if !is_chosen {
        provider.engine = engine;
    }
    if provider.engine.is_some() && engine.is_some() && provider.engine != engine {
        let name = of_file.unwrap_or_default();
        return Some(format!(
            "the file is written for the engine {name}, and another one is chosen: its engine and \
             its model are ignored"
        ));
    }
    let is_typed = args.calls.typed.iter().any(|id| id == "model");
    if let Some(model) = file.model.clone().filter(|_| !is_typed) {
        provider.model = Some(model.clone());
        provider.model_of_file = Some(ModelOfFile { model, engine });
    }
    None
}
