//! The files that a command reads. One that it would also write, as its debug file or its log, would
//! be destroyed before or while it is read, so such a command is refused.

use crate::cli::SessionArgs;
use crate::store::StorePlace;
use crate::support::files::FileId;
use anyhow::{Result, ensure};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Names a file of root certificates.
const ROOTS_VARIABLE: &str = "SSL_CERT_FILE";

/// The regular files that a command reads.
#[derive(Debug)]
pub(super) struct Inputs(Vec<InputFile>);

#[derive(Debug)]
struct InputFile {
    /// The option or variable that names it, and its path.
    name: String,
    id: FileId,
}

impl Inputs {
    /// The inputs of a conversation: `stdin`, and the files that options and variables name.
    pub(super) fn of(args: &SessionArgs, stdin: &File) -> Self {
        let stdin = stdin.metadata().ok().as_ref().and_then(FileId::of);
        let stdin = stdin.map(|id| InputFile { name: "standard input".to_owned(), id });
        let mut inputs = Self(stdin.into_iter().collect());
        inputs.add("--history", args.history.as_deref());
        inputs.add("--system-file", args.system_file.as_deref());
        let store = &args.store;
        for (option, place) in [
            ("--store", &store.store),
            ("--turns-db", &store.turns_db),
            ("--timeline-db", &store.timeline_db),
        ] {
            inputs.add(option, place.as_ref().and_then(StorePlace::path));
        }
        inputs.add("--echo-answer", args.engines.echo_answer.as_deref());
        inputs.add("--echo-script", args.engines.echo_script.as_deref());
        inputs.add(ROOTS_VARIABLE, std::env::var_os(ROOTS_VARIABLE).as_deref().map(Path::new));
        inputs
    }

    /// Adds the file that `option` names.
    pub(super) fn add(&mut self, option: &str, path: Option<&Path>) {
        let Some(path) = path else { return };
        let name = || format!("{} ({option})", path.display());
        self.0.extend(FileId::at(path).map(|id| InputFile { name: name(), id }));
    }

    /// Adds files that the flags of a command file name.
    pub(super) fn add_values(&mut self, files: Vec<(PathBuf, FileId)>) {
        let named = |(path, id): (PathBuf, FileId)| InputFile {
            name: format!("{} (a flag of the command file)", path.display()),
            id,
        };
        self.0.extend(files.into_iter().map(named));
    }

    /// # Errors
    /// If a file that `args` name for writing is one of them.
    pub(super) fn ensure_kept(&self, args: &SessionArgs) -> Result<()> {
        self.ensure_not("--debug-events-jsonl", args.debug_events_jsonl.as_deref())?;
        self.ensure_not("--log-file", args.log_file.as_deref())
    }

    fn ensure_not(&self, option: &str, path: Option<&Path>) -> Result<()> {
        let written = path.and_then(|path| Some((path, FileId::at(path)?)));
        let Some((path, id)) = written else { return Ok(()) };
        let same = self.0.iter().find(|input| input.id == id);
        let input = same.map(|input| input.name.as_str()).unwrap_or_default();
        ensure!(
            same.is_none(),
            "{option}: {} is the same file as {input}, which this command reads; name another file \
             to write to",
            path.display()
        );
        Ok(())
    }
}
