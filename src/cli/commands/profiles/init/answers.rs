//! What a new profile says, by options or by a person who is asked.

use super::super::ask::Person;
use crate::cli::EngineName;
use crate::cli::commands::args::InitProfileArgs;
use crate::cli::config::engine::ProviderChoice;
use crate::profile::KeyFrom;
use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// Bytes of the name of a variable that is typed; a key that is typed in its place is mostly longer.
const VARIABLE_BYTES_MAX: usize = 64;

/// The variable for the key of a server that has none of its own.
const GENERAL_VARIABLE: &str = "DUOLOGUE_API_KEY";

/// What a new profile says.
pub(super) struct Answers {
    pub(super) name: String,
    pub(super) engine: EngineName,
    /// The address, if it is not the provider's own.
    pub(super) base_url: Option<String>,
    pub(super) model: Option<String>,
    pub(super) key: KeyPlace,
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
    pub(super) fn of(args: &InitProfileArgs, mut person: Option<Person>) -> Result<Self> {
        let (engine, base_url) = provider(args, person.as_mut())?;
        let server = Server { engine, is_elsewhere: base_url.is_some() };
        let key = server.key(args, person.as_mut())?;
        let model = server.model(args, person.as_mut())?;
        let name = match (&args.name, person) {
            (Some(name), _) => name.trim().to_owned(),
            (None, Some(mut person)) => person.ask("Name of the profile", &word(engine))?,
            (None, None) => word(engine),
        };
        Ok(Self { name, engine, base_url, model, key })
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
struct Server {
    engine: EngineName,
    is_elsewhere: bool,
}

impl Server {
    fn key(&self, args: &InitProfileArgs, person: Option<&mut Person>) -> Result<KeyPlace> {
        if let Some(name) = &args.key_env {
            return Ok(KeyPlace::At(KeyFrom::Variable(name.clone())));
        }
        if let Some(path) = &args.key_file {
            return Ok(KeyPlace::At(KeyFrom::File(std::path::absolute(path)?)));
        }
        if let Some(line) = &args.key_command {
            let command = command(line);
            return Ok(KeyPlace::At(command.map_err(|why| anyhow!("--key-command: {why}"))?));
        }
        let needs_none = matches!(self.engine, EngineName::Echo | EngineName::Ollama);
        match person {
            _ if args.no_key || needs_none => Ok(KeyPlace::Nowhere),
            Some(person) => self.asked_key(person),
            None if self.is_elsewhere => Ok(KeyPlace::Nowhere),
            None => bail!(
                "say where the key is: --key-env NAME, --key-file FILE or --key-command 'WORD ...'"
            ),
        }
    }

    fn asked_key(&self, person: &mut Person) -> Result<KeyPlace> {
        let default = if self.is_elsewhere { "none" } else { "variable" };
        let question = "Key: in a variable, in a file, from a command, or none";
        Ok(match person.ask_until(question, default, Kind::read)? {
            Kind::Variable => {
                let usual = ProviderChoice::key_variable(self.engine);
                let usual = usual.filter(|_| !self.is_elsewhere).unwrap_or(GENERAL_VARIABLE);
                let name = person.ask_until("Name of the variable", usual, variable)?;
                KeyPlace::At(KeyFrom::Variable(name))
            }
            Kind::File => {
                let question = "Path of the file, or nothing to type the key now";
                let path = person.ask(question, "")?;
                match path.is_empty() {
                    true => KeyPlace::Typed(person.ask_secretly("Key")?),
                    false => KeyPlace::At(KeyFrom::File(expanded(&path)?)),
                }
            }
            Kind::Command => {
                let question = "Command, which is run without a shell, as in pass show openai";
                KeyPlace::At(person.ask_until(question, "", command)?)
            }
            Kind::Nowhere => KeyPlace::Nowhere,
        })
    }

    fn model(&self, args: &InitProfileArgs, person: Option<&mut Person>) -> Result<Option<String>> {
        let default =
            if self.is_elsewhere { "" } else { ProviderChoice::default_model(self.engine) };
        let has_one = self.engine != EngineName::Echo;
        match (&args.model, person) {
            (Some(model), _) => Ok(Some(model.trim().to_owned())),
            (None, Some(person)) if has_one => {
                let answer =
                    person.ask_until("Model", default, |answer| match answer.is_empty() {
                        true => Err("this server has no default model; name one".to_owned()),
                        false => Ok(answer.to_owned()),
                    })?;
                Ok(Some(answer))
            }
            (None, None) if has_one && default.is_empty() => {
                bail!("this server has no default model; name one with --model")
            }
            (None, _) => Ok((!default.is_empty()).then(|| default.to_owned())),
        }
    }
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
