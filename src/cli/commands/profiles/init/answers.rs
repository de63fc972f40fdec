//! What a new profile says, by options or by a person who is asked.

use super::super::ask::Person;
use crate::cli::commands::args::InitProfileArgs;
use crate::cli::commands::models::listed;
use crate::cli::config::engine::{ProviderChoice, engine};
use crate::cli::config::profile::ProfileValues;
use crate::cli::session::EngineArgs;
use crate::cli::{EngineName, ProviderArgs};
use crate::engine::{CallSettings, ErrorClass, is_same_model};
use crate::profile::KeyFrom;
use crate::profile::add::NotAdded;
use crate::support::secret::Secret;
use crate::support::terminal::escape_control;
use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// Bytes of the name of a variable that is typed; a key that is typed in its place is mostly longer.
const VARIABLE_BYTES_MAX: usize = 64;

/// How keys of providers begin.
const KEY_BEGINNINGS: [&str; 6] = ["sk-", "AIza", "gsk_", "xai-", "hf_", "pplx-"];

/// Bytes from which on a word without a slash is more likely a key than an answer.
const KEY_BYTES_MIN: usize = 20;

/// What is said of a key that was typed where it is shown. It is not shown again.
const KEY_IN_SIGHT: &str =
    "the key itself does not belong here: answer `type`, and it can be typed without being shown";

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
    /// It doesn't know the address, which lacks the path that most servers have.
    #[error("{0}")]
    Pathless(String),
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

/// What the server has said when it was asked for its models.
struct Asked {
    models: Vec<String>,
    doubt: Option<Doubt>,
    /// The person has said that a key which is refused is meant all the same.
    is_confirmed: bool,
}

/// Where a person says that the key is.
#[derive(Clone, Copy)]
enum Kind {
    Typed,
    Variable,
    File,
    Command,
    Nowhere,
}

impl Kind {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Typed, "type"),
        (Self::Variable, "variable"),
        (Self::File, "file"),
        (Self::Command, "command"),
        (Self::Nowhere, "none"),
    ];

    fn read(answer: &str) -> Result<Self, String> {
        let typed = answer.to_lowercase();
        let kind = Self::ALL.into_iter().find(|(_, word)| word.starts_with(&typed));
        let wrong = match looks_like_key(answer) {
            true => KEY_IN_SIGHT,
            false => "answer with type, variable, file, command or none",
        };
        kind.map(|(kind, _)| kind).ok_or_else(|| wrong.to_owned())
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
        let (key, asked) = server.key(args, person.as_mut())?;
        let (model, doubt) = server.model(args, &key, asked, person.as_mut())?;
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

/// The names of the engines that a person chooses among; `responses` is another interface of a provider that is named.
fn providers() -> Vec<String> {
    let is_named = |it: &&EngineName| !matches!(it, EngineName::Echo | EngineName::Responses);
    EngineName::value_variants().iter().filter(is_named).map(|it| word(*it)).collect()
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
            let question = format!("Provider ({}, or a base URL)", providers().join(", "));
            person.ask_until(&question, &word(EngineName::Openai), |answer| {
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

    /// Where the key is, and what the server has said to it, if it was typed.
    fn key(
        &self,
        args: &InitProfileArgs,
        person: Option<&mut Person>,
    ) -> Result<(KeyPlace, Option<Asked>)> {
        let needs_none = matches!(self.engine, EngineName::Echo | EngineName::Ollama);
        let is_named = args.key_env.is_some() || args.key_file.is_some();
        let is_said = is_named || args.key_command.is_some() || args.no_key || needs_none;
        match person {
            Some(person) if !is_said => self.asked_key(person),
            person => Ok((self.named_key(args, person.is_some())?, None)),
        }
    }

    /// The key that the options name.
    fn named_key(&self, args: &InitProfileArgs, is_at_terminal: bool) -> Result<KeyPlace> {
        if let Some(name) = &args.key_env {
            let name = variable(name).map_err(|why| anyhow!("--key-env: {why}"))?;
            return Ok(KeyPlace::At(KeyFrom::Variable(name)));
        }
        if let Some(path) = &args.key_file {
            let key = KeyPlace::At(KeyFrom::File(std::path::absolute(path)?));
            if is_at_terminal {
                self.check_key(&key).map_err(|why| anyhow!("nothing was written: {why}"))?;
            }
            return Ok(key);
        }
        if let Some(line) = &args.key_command {
            let command = command(line);
            return Ok(KeyPlace::At(command.map_err(|why| anyhow!("--key-command: {why}"))?));
        }
        let needs_none = matches!(self.engine, EngineName::Echo | EngineName::Ollama);
        match args.no_key || needs_none || self.is_elsewhere() {
            true => Ok(KeyPlace::Nowhere),
            false => bail!(
                "say where the key is: --key-env NAME, --key-file FILE or --key-command 'WORD ...'"
            ),
        }
    }

    fn asked_key(&self, person: &mut Person) -> Result<(KeyPlace, Option<Asked>)> {
        let usual = ProviderChoice::key_variable(self.engine);
        let usual = usual.filter(|_| !self.is_elsewhere()).unwrap_or(GENERAL_VARIABLE);
        let is_set = std::env::var_os(usual).is_some_and(|key| !key.is_empty());
        let default = match self.is_elsewhere() {
            true => "none",
            false if is_set => "variable",
            false => "type",
        };
        let question = "Key: type it now, in a variable, in a file, from a command, or none";
        let key = match person.ask_until(question, default, Kind::read)? {
            Kind::Typed => return self.typed_key(person),
            Kind::Variable => {
                let name = person.ask_until("Name of the variable", usual, variable)?;
                KeyPlace::At(KeyFrom::Variable(name))
            }
            Kind::File => {
                let question = "Path of the file, or nothing to type the key now";
                match person.ask_until(question, "", |path| self.key_file(path))? {
                    None => return self.typed_key(person),
                    Some(key) => key,
                }
            }
            Kind::Command => {
                let question = "Command, which is run without a shell, as in pass show openai";
                KeyPlace::At(person.ask_until(question, "", command)?)
            }
            Kind::Nowhere => KeyPlace::Nowhere,
        };
        Ok((key, None))
    }

    /// A key that is typed now. The server is asked at once: one that it refuses can be corrected.
    fn typed_key(&self, person: &mut Person) -> Result<(KeyPlace, Option<Asked>)> {
        let mut refused = None;
        loop {
            let typed = person.ask_secretly("Key")?;
            let is_confirmed = refused.as_ref() == Some(&typed);
            let key = KeyPlace::Typed(typed.clone());
            let asked = Asked { is_confirmed, ..self.models(&key) };
            match &asked.doubt {
                Some(Doubt::Refused(why)) if !is_confirmed => {
                    let again = "type the key again, or the same once more to go on all the same";
                    person.say(&format!("{}; {again}\n", escape_control(why)))?;
                    refused = Some(typed);
                }
                Some(_) | None => return Ok((key, Some(asked))),
            }
        }
    }

    /// The file that a person names; `None` if they name none and want to type the key.
    fn key_file(&self, path: &str) -> Result<Option<KeyPlace>, String> {
        let is_there = Path::new(path).exists();
        if path.is_empty() || path == "type" && !is_there {
            return Ok(None);
        }
        if looks_like_key(path) && !is_there {
            return Err(KEY_IN_SIGHT.to_owned());
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
        asked: Option<Asked>,
        person: Option<&mut Person>,
    ) -> Result<(Option<String>, Option<Doubt>)> {
        let default =
            if self.is_elsewhere() { "" } else { ProviderChoice::default_model(self.engine) };
        let has_one = self.engine != EngineName::Echo;
        match (&args.model, person) {
            (Some(model), _) => {
                let doubt = asked.and_then(|asked| asked.doubt);
                Ok((Some(model.trim().to_owned()), doubt))
            }
            (None, Some(person)) if has_one => {
                let mut doubtful = String::new();
                let asked = asked.unwrap_or_else(|| self.models(key));
                let Asked { models, doubt, is_confirmed } = asked;
                let refusal = match &doubt {
                    Some(Doubt::Refused(why)) => Some(why).filter(|_| !is_confirmed),
                    Some(Doubt::Pathless(why)) => Some(why),
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
                    let is_known = models.is_empty()
                        || models.iter().any(|listed| is_same_model(listed, answer));
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
    fn models(&self, key: &KeyPlace) -> Asked {
        // A variable may be set later.
        if matches!(key, KeyPlace::At(KeyFrom::Variable(_))) && self.check_key(key).is_err() {
            return Asked { models: Vec::new(), doubt: None, is_confirmed: false };
        }
        let (models, doubt) = match self.listed(key) {
            Ok(models) => (models, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        Asked { models, doubt, is_confirmed: false }
    }

    /// Asks the server for its models, in a short time.
    ///
    /// # Errors
    /// If the server refuses the key, has another address, or can't be reached.
    fn listed(&self, key: &KeyPlace) -> Result<Vec<String>, Doubt> {
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
            Ok(Err(error)) if error.lacks_path() => return Err(Doubt::Pathless(error.message)),
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
    let is_long = name.len() > VARIABLE_BYTES_MAX;
    let is_name = !name.is_empty() && !is_long && name.chars().all(is_fine) && !begins_key(name);
    is_name.then(|| name.to_owned()).ok_or_else(|| {
        "that is no name of a variable; the key itself does not belong here".to_owned()
    })
}

/// Whether an answer is a key rather than what was asked for.
fn looks_like_key(answer: &str) -> bool {
    let is_word = !answer.contains(|c: char| c == '/' || c.is_whitespace());
    is_word && (begins_key(answer) || answer.len() >= KEY_BYTES_MIN)
}

fn begins_key(answer: &str) -> bool {
    KEY_BEGINNINGS.iter().any(|beginning| answer.starts_with(beginning))
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
