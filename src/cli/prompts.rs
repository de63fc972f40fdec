//! Prompts by name: command files in a folder of the project and in one of the user.
//!
//! `run` and the chat take them. A file of a project may come from another person, so it is used only
//! once the person trusts its content, as a file of profiles is ([`Trusted`]).

mod args;
mod expanding;

pub use args::RunArgs;
pub(crate) use args::names;
pub(crate) use expanding::expand;

use crate::command_file::{CommandFile, FILE_BYTES_MAX, Warning};
use crate::profile::Layer;
use crate::profile::trust::Trusted;
use crate::support::files::{WorkFolder, read_limited, user_folder};
use crate::support::nearest::nearest;
use crate::support::terminal::escape_control;
use anyhow::{Result, anyhow, bail};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of a project.
const PROJECT_FOLDER: &str = ".duologue/commands";

/// The user's folder, in that of configurations.
const USER_FOLDER: &str = "duologue/commands";

/// The endings of the names of command files; of two files for one prompt the first one counts.
const ENDINGS: [&str; 2] = ["yaml", "yml"];

/// Prompts that are listed of a folder.
const LISTED_MAX: usize = 1_000;

/// Why a file is no prompt that can be run.
const UNNAMEABLE: &str =
    "its name has a space, or begins with -, so that no command can name it; rename the file";

/// A prompt in the list.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) layer: Layer,
    pub(crate) path: PathBuf,
    /// It is the person's own, or trusted.
    pub(crate) is_trusted: bool,
    /// Its description, or why it can't be used. What is not trusted describes itself to nobody.
    pub(crate) about: Result<String, String>,
}

/// The folders in which prompts are looked for, the one that wins first; they may be missing.
pub(crate) fn folders(working: &WorkFolder) -> Vec<(Layer, PathBuf)> {
    let project = working.path().ok().and_then(|folder| {
        let mut folders = folder.ancestors().map(|folder| folder.join(PROJECT_FOLDER));
        folders.find(|folder| folder.is_dir())
    });
    let user = user_folder("XDG_CONFIG_HOME", ".config", |name| std::env::var_os(name));
    let user = user.map(|folder| (Layer::User, folder.join(USER_FOLDER)));
    project.map(|folder| (Layer::Project, folder)).into_iter().chain(user).collect()
}

/// All prompts, sorted by their names. Of two with one name the one that [`find`] takes is listed.
pub(crate) fn list(working: &WorkFolder) -> Vec<Listed> {
    let trusted = trusted();
    let mut listed = BTreeMap::<String, Listed>::new();
    for (layer, folder) in folders(working) {
        for (name, path) in files_in(&folder) {
            let prompt = listed_prompt(&name, layer, path, &trusted);
            let has_better = listed.get(&name).is_some_and(|other| other.is_trusted);
            if !has_better && (prompt.is_trusted || !listed.contains_key(&name)) {
                listed.insert(name, prompt);
            }
        }
    }
    listed.into_values().collect()
}

fn listed_prompt(name: &str, layer: Layer, path: PathBuf, trusted: &Trusted) -> Listed {
    let text = read_limited(&path, FILE_BYTES_MAX).map(|(text, _)| text);
    let is_trusted = match &text {
        Ok(text) => layer != Layer::Project || trusted.has(&path, text),
        Err(_) => layer != Layer::Project,
    };
    let about = match text {
        _ if !is_name(name) => Err(UNNAMEABLE.to_owned()),
        Ok(_) if !is_trusted => Err(untrusted(&path)),
        Ok(text) => match CommandFile::parse(&path, &text) {
            Ok(file) => Ok(file.short),
            Err(error) => Err(error.to_string()),
        },
        Err(error) => Err(error.to_string()),
    };
    Listed { name: name.to_owned(), layer, path, is_trusted, about }
}

/// The command file of the prompt `name`; `None` if there is none. One of the project that is not
/// trusted is left out where the user has another, which then has a warning.
///
/// # Errors
/// If its file can't be used, or is not trusted and there is no other.
pub(crate) fn find(name: &str, working: &WorkFolder) -> Result<Option<CommandFile>> {
    if !is_name(name) {
        return Ok(None);
    }
    let trusted = trusted();
    let mut left_out = None;
    for (layer, folder) in folders(working) {
        let Some((path, text)) = read_prompt(&folder, name)? else { continue };
        if layer == Layer::Project && !trusted.has(&path, &text) {
            let why = untrusted(&path);
            left_out = Some((path, why));
            continue;
        }
        let mut file = CommandFile::parse(&path, &text)?;
        file.warnings.extend(left_out.map(|(project, why)| Warning {
            message: format!("{why}; {} is used in its place", path.display()),
            path: project,
            line: 1,
        }));
        return Ok(Some(file));
    }
    match left_out {
        Some((path, why)) => bail!("{}: {why}", path.display()),
        None => Ok(None),
    }
}

/// The error where there is no prompt `name`.
pub(crate) fn missing(name: &str) -> anyhow::Error {
    let working = WorkFolder::default();
    let listed = list(&working);
    if let Some(unnameable) = listed.iter().find(|it| it.name == name && !is_name(name)) {
        return anyhow!("{}: {UNNAMEABLE}", unnameable.path.display());
    }
    let similar = nearest(name, listed.iter().map(|it| it.name.as_str()));
    let similar = similar.map(|name| format!("did you mean `{}`? ", escape_control(name)));
    let hint = match is_name(name) {
        true => format!("to make one, write {name}.yaml into {}", writable(&working)),
        false => format!("the file of that path is run by `duologue run-command {name}`"),
    };
    anyhow!(
        "there is no prompt `{name}`; {}`duologue run` lists those there are; {hint}",
        similar.unwrap_or_default()
    )
}

/// The folders for a new prompt. That of the project is among them where it is not made yet.
fn writable(working: &WorkFolder) -> String {
    let folders = folders(working);
    let has_project = folders.iter().any(|(layer, _)| *layer == Layer::Project);
    let project = (!has_project).then(|| format!("{PROJECT_FOLDER} of the project"));
    let found = folders.iter().map(|(_, folder)| folder.display().to_string());
    project.into_iter().chain(found).collect::<Vec<_>>().join(" or ")
}

/// The file of the prompt `name` in `folder`, with its text.
fn read_prompt(folder: &Path, name: &str) -> Result<Option<(PathBuf, String)>> {
    for ending in ENDINGS {
        let path = folder.join(format!("{name}.{ending}"));
        match read_limited(&path, FILE_BYTES_MAX) {
            Ok((text, _)) => return Ok(Some((path, text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
            Err(error) => bail!("{} can't be read: {error}", path.display()),
        }
    }
    Ok(None)
}

/// The prompts of `folder`: each name with its file, also one that nobody can type. Of a folder that is there and can't
/// be read a warning tells.
fn files_in(folder: &Path) -> BTreeMap<String, PathBuf> {
    let entries = folder.read_dir();
    if let Err(error) = &entries
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(
            "{} can't be read, so that no prompt of it is listed: {error}; check what it is and who may read it",
            escape_control(&folder.display().to_string())
        );
    }
    let entries = entries.into_iter().flatten().filter_map(Result::ok);
    let mut files = BTreeMap::new();
    for path in entries.map(|entry| entry.path()).take(LISTED_MAX) {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        // Files of editors and the like are hidden.
        let is_shown = !name.is_empty() && !name.starts_with('.');
        if ENDINGS.contains(&ending) && is_shown {
            let is_first = ending == ENDINGS[0] || !files.contains_key(name);
            if is_first {
                files.insert(name.to_owned(), path);
            }
        }
    }
    files
}

/// Whether `name` names a prompt and not a file elsewhere.
fn is_name(name: &str) -> bool {
    let is_fine = |c: char| !c.is_control() && !c.is_whitespace() && c != '/';
    !name.is_empty() && !name.starts_with(['.', '-']) && name.chars().all(is_fine)
}

fn trusted() -> Trusted {
    Trusted::load().unwrap_or_else(|error| {
        tracing::warn!("no file of a project is trusted: {error:#}");
        Trusted::default()
    })
}

fn untrusted(path: &Path) -> String {
    format!(
        "it is not used, because it comes from the project and is not trusted; read it, then run \
         `duologue profiles trust {}`",
        path.display()
    )
}
