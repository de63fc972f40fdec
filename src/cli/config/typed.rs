//! Options whose meaning is a value of another module, and those that change nothing here.

use crate::cli::session::ForeignArgs;
use crate::cli::{self, ProviderArgs};
use crate::conversation::patch::{PatchFields, PatchMode};
use crate::session::{FinalSnapshot, OnBusy};

/// Warns of keys that others can see.
pub(super) fn warn_of_keys(args: &ProviderArgs) {
    for (option, variable, _) in args.typed_keys.all() {
        tracing::warn!(
            "{option} is used, but other users of the machine can see the options of a process; set \
             {variable} instead"
        );
    }
}

/// Warns of options of Pinocchio that change nothing here.
pub(super) fn warn_of_foreign(typed: &ForeignArgs) {
    let options = [
        ("--config-file", typed.config_file.is_some(), "write its settings as a profile"),
        ("--log-to-stdout", typed.log_to_stdout, "standard output is for frames; see --log-file"),
        ("--log-format", typed.log_format.is_some(), "the log is text"),
        ("--with-caller", typed.with_caller, "the log has no places"),
        ("--ai-stream", typed.ai_stream.is_some(), "answers are always streamed"),
    ];
    for (option, _, instead) in options.into_iter().filter(|(_, is_typed, _)| *is_typed) {
        tracing::warn!("{option} is ignored: {instead}");
    }
}

impl From<cli::OnBusy> for OnBusy {
    fn from(typed: cli::OnBusy) -> Self {
        match typed {
            cli::OnBusy::Reject => Self::Reject,
            cli::OnBusy::Queue => Self::Queue,
        }
    }
}

impl From<cli::PatchMode> for PatchMode {
    fn from(typed: cli::PatchMode) -> Self {
        match typed {
            cli::PatchMode::Append => Self::Append,
            cli::PatchMode::Snapshot => Self::Snapshot,
        }
    }
}

impl From<cli::PatchFields> for PatchFields {
    fn from(typed: cli::PatchFields) -> Self {
        match typed {
            cli::PatchFields::Full => Self::Full,
            cli::PatchFields::Lean => Self::Lean,
        }
    }
}

impl From<cli::FinalSnapshot> for FinalSnapshot {
    fn from(typed: cli::FinalSnapshot) -> Self {
        match typed {
            cli::FinalSnapshot::Full => Self::Full,
            cli::FinalSnapshot::Turn => Self::Turn,
            cli::FinalSnapshot::None => Self::None,
        }
    }
}
