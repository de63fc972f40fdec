//! What a new profile says, by options or by a person who is asked.

use super::super::ask::Person;
use crate::cli::commands::args::InitProfileArgs;
use crate::cli::commands::models::listed;
use crate::cli::config::engine::{ProviderChoice, engine};
use crate::cli::config::profile::ProfileValues;
use crate::cli::session::EngineArgs;
use crate::cli::{EngineName, ProviderArgs};
use crate::engine::{CallSettings, ErrorClass};
use crate::profile::KeyFrom;
use crate::profile::add::NotAdded;
use crate::support::secret::Secret;
use crate::support::terminal::escape_control;
use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// Bytes of the name of a variable that is typed; a key that is typed in its place is mostly longer.
const VARIABLE_BYTES_MAX: usize = 64;

/// The variable for the key of a server that has none of its own.
const GENERAL_VARIABLE: &str = "DUOLOGUE_API_KEY";

/// Models that are named where another one was typed.
const MODELS_SHOWN_MAX: usize = 12;

/// How long the list of models is waited for: a person sits there, and the list is only a help.
const LIST_WAIT_MS: u64 = 5000;

/// What a new profile says.
pub(super) struct Answers {
    pub(super) name: String,
    pub(super) engine: EngineName,
    /// The address, if it is not the provider's own.
    pub(super) base_url: Option<String>,
    pub(super) model: Option<String>,
    pub(super) key: KeyPlace,
    /// What was found when the server was asked for its models.
    pub(super) doubt: Option<Doubt>,
}

/// Why the server may not answer, for people.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Doubt {
    /// It refuses the key.
    #[error("{0}")]
    Refused(String),
    /// It can't be reached, which may change.
    #[error("the server can't be reached now: {0}; `duologue doctor` checks it")]
    Unreached(String),
}

/// Where the key is.
pub(super) enum KeyPlace {
    Nowhere,
    At(KeyFrom),
    /// It was typed, and gets a file.
    Typed(String),
}

/// Where a person says that the key is.
#[derive(Clone, Copy)]
enum Kind {
    Variable,
    File,
    Command,
    Nowhere,
}

impl Kind {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Variable, "variable"),
        (Self::File, "file"),
        (Self::Command, "command"),
        (Self::Nowhere, "none"),
    ];

    fn read(answer: &str) -> Result<Self, String> {
        let typed = answer.to_lowercase();
        let kind = Self::ALL.into_iter().find(|(_, word)| word.starts_with(&typed));
        let wrong = || "answer with variable, file, command or none".to_owned();
        kind.map(|(kind, _)| kind).ok_or_else(wrong)
    }
}

impl Answers {
    /// What `args` say; the person at the terminal, if there is one, is asked for the rest.
    ///
    /// # Errors
    /// If something is missing and nobody can be asked.
    pub(super) fn of(
        args: &InitProfileArgs,
        mut person: Option<Person>,
        is_new: impl Fn(&str) -> Result<(), NotAdded>,
    ) -> Result<Self> {
        let (engine, base_url) = provider(args, person.as_mut())?;
        let server = Server { engine, base_url: base_url.as_deref() };
        let key = server.key(args, person.as_mut())?;
        let (model, doubt) = server.model(args, &key, person.as_mut())?;
        let name = match (&args.name, person) {
            (Some(name), _) => name.trim().to_owned(),
            (None, Some(mut person)) => {
                let usual = Some(word(engine)).filter(|name| is_new(name).is_ok());
                person.ask_until("Name of the profile", &usual.unwrap_or_default(), |name| {
                    match name.is_empty() {
                        true => Err("a profile needs a name".to_owned()),
                        false => {
                            is_new(name).map(|()| name.to_owned()).map_err(|why| why.to_string())
                        }
                    }
                })?
            }
            (None, None) => word(engine),
        };
        Ok(Self { name, engine, base_url, model, key, doubt })
    }
}

/// The engine, and the address if it is not the provider's own.
fn provider(
    args: &InitProfileArgs,
    person: Option<&mut Person>,
) -> Result<(EngineName, Option<String>)> {
    match (args.provider, &args.base_url, person) {
        (Some(engine), url, _) => Ok((engine, url.clone())),
        (None, Some(url), _) => Ok((EngineName::Openai, Some(url.clone()))),
        (None, None, Some(person)) => {
            let question = "Provider (openai, anthropic, gemini, ollama, or a base URL)";
            person.ask_until(question, &word(EngineName::Openai), |answer| {
                if answer.contains("://") {
                    return Ok((EngineName::Openai, Some(answer.to_owned())));
                }
                let engine = EngineName::from_str(answer, true);
                Ok((engine.map_err(|_| format!("{answer:?} is none of these"))?, None))
            })
        }
        (None, None, None) => bail!(
            "there is no terminal to ask at, so options have to say it: --provider, or --base-url \
             and --model for another server"
        ),
    }
}

/// A server that a profile is written for.
struct Server<'a> {
    engine: EngineName,
    /// Its address, if it is not the provider's own.
    base_url: Option<&'a str>,
}

impl Server<'_> {
    fn is_elsewhere(&self) -> bool {
        self.base_url.is_some()
    }

    fn key(&self, args: &InitProfileArgs, person: Option<&mut Person>) -> Result<KeyPlace> {
        if let Some(name) = &args.key_env {
            return Ok(KeyPlace::At(KeyFrom::Variable(name.clone())));
        }
        if let Some(path) = &args.key_file {
            let key = KeyPlace::At(KeyFrom::File(std::path::absolute(path)?));
            if person.is_some() {
                self.check_key(&key).map_err(|why| anyhow!("nothing was written: {why}"))?;
            }
            return Ok(key);
        }
        if let Some(line) = &args.key_command {
            let command = command(line);
            return Ok(KeyPlace::At(command.map_err(|why| anyhow!("--key-command: {why}"))?));
        }
        let needs_none = matches!(self.engine, EngineName::Echo | EngineName::Ollama);
        match person {
            _ if args.no_key || needs_none => Ok(KeyPlace::Nowhere),
            Some(person) => self.asked_key(person),
            None if self.is_elsewhere() => Ok(KeyPlace::Nowhere),
            None => bail!(
                "say where the key is: --key-env NAME, --key-file FILE or --key-command 'WORD ...'"
            ),
        }
    }

    fn asked_key(&self, person: &mut Person) -> Result<KeyPlace> {
        let default = if self.is_elsewhere() { "none" } else { "variable" };
        let question = "Key: in a variable, in a file, from a command, or none";
        Ok(match person.ask_until(question, default, Kind::read)? {
            Kind::Variable => {
                let usual = ProviderChoice::key_variable(self.engine);
                let usual = usual.filter(|_| !self.is_elsewhere()).unwrap_or(GENERAL_VARIABLE);
                let name = person.ask_until("Name of the variable", usual, variable)?;
                KeyPlace::At(KeyFrom::Variable(name))
            }
            Kind::File => {
                let question = "Path of the file, or nothing to type the key now";
                match person.ask_until(question, "", |path| self.key_file(path))? {
                    None => KeyPlace::Typed(person.ask_secretly("Key")?),
                    Some(key) => key,
                }
            }
            Kind::Command => {
                let question = "Command, which is run without a shell, as in pass show openai";
                KeyPlace::At(person.ask_until(question, "", command)?)
            }
            Kind::Nowhere => KeyPlace::Nowhere,
        })
    }

    /// The file that a person names; `None` if they name none.
    fn key_file(&self, path: &str) -> Result<Option<KeyPlace>, String> {
        if path.is_empty() {
            return Ok(None);
        }
        let path = expanded(path).map_err(|error| format!("{error:#}"))?;
        let key = KeyPlace::At(KeyFrom::File(path));
        self.check_key(&key)?;
        Ok(Some(key))
    }

    /// Checks that the key can be had, as far as is known without getting it.
    fn check_key(&self, key: &KeyPlace) -> Result<(), String> {
        self.choice(key).map_err(|error| format!("{error:#}"))?.check_key()
    }

    /// The model, and what was found when the server was asked for those it has, if it was.
    fn model(
        &self,
        args: &InitProfileArgs,
        key: &KeyPlace,
        person: Option<&mut Person>,
    ) -> Result<(Option<String>, Option<Doubt>)> {
        let default =
            if self.is_elsewhere() { "" } else { ProviderChoice::default_model(self.engine) };
        let has_one = self.engine != EngineName::Echo;
        match (&args.model, person) {
            (Some(model), _) => Ok((Some(model.trim().to_owned()), None)),
            (None, Some(person)) if has_one => {
                let mut doubtful = String::new();
                let (models, doubt) = match self.models(key) {
                    Ok(models) => (models, None),
                    Err(why) => (Vec::new(), Some(why)),
                };
                let refusal = match &doubt {
                    Some(Doubt::Refused(why)) => Some(why),
                    Some(Doubt::Unreached(_)) | None => None,
                };
                if !models.is_empty() {
                    person.say(&format!("The server lists {}.\n", named(&models)))?;
                }
                let answer = person.ask_until("Model", default, |answer| {
                    if answer.is_empty() {
                        return Err("this server has no default model; name one".to_owned());
                    }
                    if let Some(why) = refusal.filter(|_| doubtful.is_empty()) {
                        answer.clone_into(&mut doubtful);
                        return Err(format!(
                            "{why}; write the model once more to go on all the same"
                        ));
                    }
                    let is_known = models.is_empty() || models.iter().any(|model| model == answer);
                    if is_known || answer == doubtful {
                        return Ok(answer.to_owned());
                    }
                    answer.clone_into(&mut doubtful);
                    Err(unlisted(answer, &models))
                })?;
                Ok((Some(answer), doubt))
            }
            (None, None) if has_one && default.is_empty() => {
                bail!("this server has no default model; name one with --model")
            }
            (None, _) => Ok(((!default.is_empty()).then(|| default.to_owned()), None)),
        }
    }

    /// The models that the server lists; none if it lists none, or can't be asked for them.
    ///
    /// # Errors
    /// If it refuses the key, or can't be reached.
    fn models(&self, key: &KeyPlace) -> Result<Vec<String>, Doubt> {
        let asked = self.choice(key).and_then(|choice| {
            let hurried = EngineArgs {
                connect_timeout_ms: LIST_WAIT_MS,
                idle_timeout_ms: LIST_WAIT_MS,
                total_timeout_ms: LIST_WAIT_MS,
                retries: 0,
                ..EngineArgs::default()
            };
            let engine = engine(&choice, &hurried, &mut Vec::new())?;
            listed(&*engine, &CallSettings::default())
        });
        let listed = match asked {
            Ok(Err(error)) if error.class == ErrorClass::Auth => {
                return Err(Doubt::Refused(error.message));
            }
            Ok(Err(error)) if matches!(error.class, ErrorClass::Network | ErrorClass::Timeout) => {
                return Err(Doubt::Unreached(error.message));
            }
            Ok(listed) => listed.unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        let mut models: Vec<_> = listed.into_iter().map(|it| it.name).collect();
        models.sort_unstable();
        Ok(models)
    }

    /// The server with its key.
    fn choice(&self, key: &KeyPlace) -> Result<ProviderChoice> {
        let key = match key {
            KeyPlace::Nowhere => None,
            KeyPlace::At(KeyFrom::File(path)) => Some(KeyFrom::File(in_home(path))),
            KeyPlace::At(from) => Some(from.clone()),
            KeyPlace::Typed(key) => Secret::new(key).map(KeyFrom::Here),
        };
        let values = ProfileValues::of_provider(self.engine, self.base_url.map(str::to_owned), key);
        ProviderChoice::other(&ProviderArgs::default(), &values)
    }
}

/// Why a model is asked for again that is not among `models`.
fn unlisted(model: &str, models: &[String]) -> String {
    format!(
        "the server lists no model {:?}, but {}; write it once more to take it all the same",
        escape_control(model),
        named(models)
    )
}

/// Models for people: the first of them.
fn named(models: &[String]) -> String {
    let shown: Vec<_> = models.iter().take(MODELS_SHOWN_MAX).map(|it| escape_control(it)).collect();
    let more = match models.len().saturating_sub(MODELS_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

/// The name of an engine, as options have it.
pub(super) fn word(engine: EngineName) -> String {
    let value = engine.to_possible_value();
    value.map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The name of a variable. A wrong one may be a key, so it is not shown again.
fn variable(name: &str) -> Result<String, String> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = name.len() <= VARIABLE_BYTES_MAX && name.chars().all(is_fine);
    is_name.then(|| name.to_owned()).ok_or_else(|| {
        "that is no name of a variable; the key itself does not belong here".to_owned()
    })
}

fn command(line: &str) -> Result<KeyFrom, String> {
    let words = shlex::split(line).filter(|words| !words.is_empty());
    let words = words.ok_or("a command is a program and its arguments, with quotes in pairs")?;
    Ok(KeyFrom::Command(words))
}

/// A path as it is typed. One in the user's own folder is read from there, as in any file of profiles.
fn expanded(path: &str) -> Result<PathBuf> {
    match path.starts_with("~/") {
        true => Ok(path.into()),
        false => Ok(std::path::absolute(Path::new(path))?),
    }
}

/// Where a path in a file of profiles leads.
fn in_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        (Ok(_) | Err(_), _) => path.to_owned(),
    }
}
