//! Texts as options take them.

use clap::Arg;
use std::ffi::OsStr;

/// Ids of options whose value can't be blank and whose variable, if that is blank, counts as not set.
const NOT_BLANK: [&str; 11] = [
    "base_url",
    "compact_model",
    "max_tokens",
    "model",
    "profile",
    "reasoning_budget",
    "reasoning_effort",
    "reasoning_summary",
    "seed",
    "temperature",
    "top_p",
];

/// Reads a text that was typed. A blank one is that of a shell's variable that is not set: without the option another
/// provider might get the prompt.
pub(super) fn not_blank(typed: &str) -> Result<String, String> {
    match typed.trim().is_empty() {
        true => Err(
            "it is empty, as where a variable is not set; give it a value, or leave the option out"
                .to_owned(),
        ),
        false => Ok(typed.to_owned()),
    }
}

/// Whether the variable of `arg` with this value counts as not set.
pub(super) fn is_unset(arg: &Arg, variable: &OsStr) -> bool {
    variable.is_empty() || is_blank(variable) && NOT_BLANK.contains(&arg.get_id().as_str())
}

/// Whether `value` has no text.
pub(super) fn is_blank(value: &OsStr) -> bool {
    value.to_str().is_some_and(|value| value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn a_text_that_is_needed_is_not_blank() {
        assert_eq!(not_blank(" a "), Ok(" a ".to_owned()));
        let command = Cli::command();
        let exec = command.find_subcommand("exec").expect("the command");
        for id in NOT_BLANK {
            let arg = exec.get_arguments().find(|arg| arg.get_id() == id).expect(id);
            assert!(is_unset(arg, OsStr::new("")) && is_unset(arg, OsStr::new(" \n")), "{id}");
            assert!(!is_unset(arg, OsStr::new("0")), "{id}");
            let option = format!("--{}", arg.get_long().expect("a name"));
            for blank in ["", " "] {
                let typed = Cli::command().try_get_matches_from([
                    "duologue",
                    "exec",
                    option.as_str(),
                    blank,
                ]);
                let error = typed.expect_err(&option).to_string();
                assert!(error.contains(&option) && error.contains("it is empty"), "{error}");
            }
        }
        let stop = exec.get_arguments().find(|arg| arg.get_id() == "stop").expect("an option");
        assert!(is_unset(stop, OsStr::new("")) && !is_unset(stop, OsStr::new("\n")));
    }
}
