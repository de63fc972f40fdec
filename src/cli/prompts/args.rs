//! Arguments of `run` where it lists prompts; those of a prompt are known once its file was read.

use super::{Listed, is_name, list};
use crate::cli::commands::args::TextOutputArgs;
use crate::support::files::WorkFolder;
use clap::Args;
use clap_complete::{ArgValueCandidates, CompletionCandidate};

/// Arguments of `run` without a name: then it lists the prompts.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Name of the prompt; its own flags and arguments, and the options of `run-command`, follow it
    #[arg(add = ArgValueCandidates::new(names))]
    pub name: Option<String>,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// The names of the prompts, for completions.
pub(crate) fn names() -> Vec<CompletionCandidate> {
    let candidate = |Listed { name, about, .. }: Listed| {
        let about = about.ok().filter(|about| !about.is_empty());
        CompletionCandidate::new(name).help(about.map(Into::into))
    };
    let listed = list(&WorkFolder::default()).into_iter();
    listed.filter(|it| is_name(&it.name)).map(candidate).collect()
}
