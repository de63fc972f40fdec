//! The files that a command reads, its stores, and its output. One that it would also write, as its debug file, its
//! log or its last message, would be destroyed before or while it is read, or have parts of others between its own, so
//! such a command is refused.

use super::Terminal;
use crate::cli::SessionArgs;
use crate::cli::store::default_place;
use crate::command_file::is_stdin;
use crate::profile::files::Places;
use crate::store::StorePlace;
use crate::support::files::{FileId, FilePlace};
use anyhow::{Result, anyhow, bail, ensure};
use std::path::{Path, PathBuf};

/// Names a file of root certificates.
const ROOTS_VARIABLE: &str = "SSL_CERT_FILE";

/// Names the store of conversations, also of those that a single run does not add to.
const STORE_VARIABLE: &str = "DUOLOGUE_STORE";

/// The regular files that a command reads, and the one that its frames or its answer go to.
#[derive(Debug)]
pub(super) struct Inputs {
    files: Vec<InputFile>,
    /// The first option that names standard input and can't be that.
    of_stdin: Option<&'static str>,
    /// The regular file that standard output goes to.
    output: Option<FilePlace>,
}

#[derive(Debug)]
struct InputFile {
    /// The option or variable that names it, and its path.
    name: String,
    place: FilePlace,
    kind: Kind,
}

/// The error that `option` names standard input: its path leads to an empty input, as the program has made its own
/// private.
pub(super) fn no_stdin(option: &str) -> anyhow::Error {
    let advice = match option {
        "--system-file" => "write --system \"$(cat)\", or name a file",
        _ => "write it to a file first, and name that",
    };
    anyhow!("{option} can't be standard input, which is for the prompt or for requests; {advice}")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A part of the prompt, or attached to it: read as a whole before the answer is saved.
    Prompt,
    /// Another file that is read.
    Other,
    /// Holds conversations, and may not be made yet.
    Store,
}

/// The options that name files which are written while the command runs.
const EVENTS: &str = "--debug-events-jsonl";
const LOG: &str = "--log-file";

/// # Errors
/// If both options name the same regular file.
fn ensure_apart(
    (option, path): (&str, Option<&Path>),
    (other, other_path): (&str, Option<&Path>),
) -> Result<()> {
    let (Some(path), Some(other_path)) = (path, other_path) else { return Ok(()) };
    let place = FilePlace::of(path);
    ensure!(
        place.is_none() || place != FilePlace::of(other_path),
        "{option}: {} is the file of {other}, too; name another file for one of the two",
        path.display()
    );
    Ok(())
}

impl Inputs {
    /// The inputs of a conversation: standard input, the files that options and variables name, those of profiles, and
    /// the stores.
    pub(super) fn of(args: &SessionArgs, terminal: &Terminal) -> Self {
        let stdin = terminal.stdin.metadata().ok().as_ref().and_then(FileId::of);
        let output = terminal.output.map(FilePlace::Present);
        let stdin = stdin.map(|id| InputFile {
            name: "standard input".to_owned(),
            place: FilePlace::Present(id),
            kind: Kind::Prompt,
        });
        let mut inputs = Self { files: stdin.into_iter().collect(), of_stdin: None, output };
        let SessionArgs { provider, tools, answers, engines, .. } = args;
        inputs.add("--history", args.history.as_deref());
        inputs.add("--system-file", args.system_file.as_deref());
        inputs.add_stores(args);
        inputs.add("--echo-answer", engines.echo_answer.as_deref());
        inputs.add("--echo-script", engines.echo_script.as_deref());
        inputs.add("--key-file", provider.key_file.as_deref());
        inputs.add("--prices", answers.prices.as_deref());
        tools.servers.mcp_config.iter().for_each(|path| inputs.add("--mcp-config", Some(path)));
        let registries = &provider.registries;
        let named = &registries.profile_registries;
        named.iter().for_each(|path| inputs.add("--profile-registries", Some(path)));
        let found = Places::find(&[], &registries.folder).files;
        found.iter().for_each(|(_, path)| inputs.add("a file of profiles", Some(path)));
        let roots = std::env::var_os(ROOTS_VARIABLE);
        inputs.add_as(Kind::Other, ROOTS_VARIABLE, roots.as_deref().map(Path::new));
        inputs
    }

    /// Adds the stores of the conversation, and those that others are stored in if no option names one.
    fn add_stores(&mut self, args: &SessionArgs) {
        let SessionArgs { store, .. } = args;
        for (id, place) in store.named() {
            let option = match store.is_default {
                true => "the default store".to_owned(),
                false => format!("--{}", id.replace('_', "-")),
            };
            self.add_store(&option, place.as_ref());
        }
        let of_variable = std::env::var(STORE_VARIABLE).ok().and_then(|text| text.parse().ok());
        self.add_store(STORE_VARIABLE, of_variable.as_ref());
        self.add_store("the default store", default_place().as_ref());
    }

    fn add_store(&mut self, option: &str, place: Option<&StorePlace>) {
        self.add_as(Kind::Store, option, place.and_then(StorePlace::path));
    }

    /// Adds the file that `option` names, which can't be standard input.
    pub(super) fn add(&mut self, option: &'static str, path: Option<&Path>) {
        if path.is_some_and(is_stdin) {
            self.of_stdin.get_or_insert(option);
        }
        self.add_as(Kind::Other, option, path);
    }

    /// Adds the command file, which may be standard input.
    pub(super) fn add_command_file(&mut self, path: &Path) {
        self.add_as(Kind::Other, "the command file", Some(path));
    }

    /// Adds a file of the prompt that `option` names.
    pub(super) fn add_of_prompt(&mut self, option: &str, path: Option<&Path>) {
        self.add_as(Kind::Prompt, option, path);
    }

    fn add_as(&mut self, kind: Kind, option: &str, path: Option<&Path>) {
        let Some(path) = path else { return };
        let place = FilePlace::of(path).filter(|place| match place {
            FilePlace::Present(_) => true,
            // What is read and missing is an error of its own.
            FilePlace::Missing(_) => kind == Kind::Store,
        });
        let name = || format!("{} ({option})", path.display());
        self.files.extend(place.map(|place| InputFile { name: name(), place, kind }));
    }

    /// Adds files that the flags of a command file name.
    pub(super) fn add_values(&mut self, files: Vec<(PathBuf, FileId)>) {
        let named = |(path, id): (PathBuf, FileId)| InputFile {
            name: format!("{} (a flag of the command file)", path.display()),
            place: FilePlace::Present(id),
            kind: Kind::Prompt,
        };
        self.files.extend(files.into_iter().map(named));
    }

    /// # Errors
    /// If a file that `args` name for writing is one of them, or another file that is written, or an option names
    /// standard input.
    pub(super) fn ensure_kept(&self, args: &SessionArgs) -> Result<()> {
        if let Some(option) = self.of_stdin {
            return Err(no_stdin(option));
        }
        let all = [Kind::Prompt, Kind::Other, Kind::Store];
        let (events, log) = (args.debug_events_jsonl.as_deref(), args.log_file.as_deref());
        for (option, path) in [(EVENTS, events), (LOG, log)] {
            self.ensure_not(option, path, &all)?;
            let is_output =
                |path: &&Path| self.output.is_some() && FilePlace::of(path) == self.output;
            if let Some(path) = path.filter(is_output) {
                bail!(
                    "{option}: standard output goes to {}, too; name another file for one of the two",
                    path.display()
                );
            }
        }
        ensure_apart((LOG, log), (EVENTS, events))
    }

    /// # Errors
    /// If the file for the last message is one of them that is no part of the prompt, or another file that `args`
    /// name for writing.
    pub(super) fn ensure_not_saved(&self, saved: Option<&Path>, args: &SessionArgs) -> Result<()> {
        const SAVE: &str = "--save";
        self.ensure_not(SAVE, saved, &[Kind::Other, Kind::Store])?;
        ensure_apart((SAVE, saved), (EVENTS, args.debug_events_jsonl.as_deref()))?;
        ensure_apart((SAVE, saved), (LOG, args.log_file.as_deref()))
    }

    fn ensure_not(&self, option: &str, path: Option<&Path>, kinds: &[Kind]) -> Result<()> {
        let written = path.and_then(|path| Some((path, FilePlace::of(path)?)));
        let Some((path, place)) = written else { return Ok(()) };
        let mut inputs = self.files.iter().filter(|input| kinds.contains(&input.kind));
        let Some(InputFile { name, kind, .. }) = inputs.find(|input| input.place == place) else {
            return Ok(());
        };
        let why = match kind {
            Kind::Prompt | Kind::Other => "which this command reads",
            Kind::Store => "which holds conversations",
        };
        bail!(
            "{option}: {} is the same file as {name}, {why}; name another file to write to",
            path.display()
        );
    }
}
