//! The system prompt: where its parts come from, and what is added to it.

use super::not_blank;
use super::profile::ProfileValues;
use crate::cli::SessionArgs;
use crate::profile::FILE_BYTES_MAX;
use crate::profile::trust::Trusted;
use crate::support::files::{WorkFolder, read_limited};
use crate::yaml;
use std::path::{Path, PathBuf};

/// The file with a project's instructions for programs that work on it: <https://agents.md>.
const AGENTS_FILE: &str = "AGENTS.md";

/// Between two parts of a system prompt.
const PART_BREAK: &str = "\n\n";

/// The system prompt of a conversation: `of_request`, else that of the options, else that of the
/// profile, with what the profile and the options add to it. A session that `goes_on` with the prompt
/// that it began with has these parts already.
pub(super) fn system_prompt(
    of_request: Option<String>,
    args: &SessionArgs,
    profile: &ProfileValues,
    goes_on: bool,
) -> Option<String> {
    let base = of_request.or(of_options(args)).or(profile.system.clone());
    if base.is_none() && goes_on {
        if !args.append_system.is_empty() {
            tracing::warn!(
                "--append-system is not used: the session goes on with the system prompt that it began \
                 with; give it another one with --system, which --append-system adds to"
            );
        }
        return None;
    }
    let agents = profile.agents_file.then(|| agents_file(&args.folder)).flatten();
    appended(joined(base, agents), args)
}

/// The system prompt of the options. A blank one that is typed asks for none; in a variable it counts as not set.
fn of_options(args: &SessionArgs) -> Option<String> {
    let is_typed = |id: &str| args.calls.typed.iter().any(|typed| typed == id);
    match is_typed("system") || is_typed("system_file") {
        true => args.system.clone(),
        false => not_blank(args.system.clone()),
    }
}

/// `system` with what the options add to it.
pub(super) fn appended(system: Option<String>, args: &SessionArgs) -> Option<String> {
    joined(system, args.append_system.iter().cloned())
}

fn joined(first: Option<String>, more: impl IntoIterator<Item = String>) -> Option<String> {
    let parts = first.into_iter().chain(more).filter(|part| !part.trim().is_empty());
    let parts: Vec<_> = parts.map(|part| part.trim_end_matches('\n').to_owned()).collect();
    (!parts.is_empty()).then(|| parts.join(PART_BREAK))
}

/// The text of the project's AGENTS.md, if there is one that the person trusts. Another is left out with
/// a warning: whoever wrote it would tell the model what to do.
fn agents_file(working: &WorkFolder) -> Option<String> {
    let path = project_file(working)?;
    let shown = path.display();
    let text = match read_limited(&path, FILE_BYTES_MAX) {
        Ok((text, _)) => text,
        Err(error) => {
            tracing::warn!(
                "{shown} can't be read, so it is left out of the system prompt: {error}"
            );
            return None;
        }
    };
    let trusted = Trusted::load();
    let is_trusted = trusted.as_ref().is_ok_and(|trusted| trusted.has(&path, &text));
    if !is_trusted {
        let why = trusted.err().map(|error| format!("{error:#}; ")).unwrap_or_default();
        tracing::warn!(
            "{why}{shown} is left out of the system prompt, because it is not trusted; read it, then run \
             `duologue profiles trust {shown}`"
        );
        return None;
    }
    Some(yaml::without_mark(&text).to_owned())
}

/// The file of the project that the working folder is part of: that of the nearest folder that has one.
fn project_file(working: &WorkFolder) -> Option<PathBuf> {
    let folder = working.path().ok()?;
    folder.ancestors().map(|folder: &Path| folder.join(AGENTS_FILE)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> SessionArgs {
        let append_system = words.iter().map(|word| (*word).to_owned()).collect();
        SessionArgs { append_system, ..SessionArgs::default() }
    }

    #[test]
    fn parts_stand_below_one_another() {
        let profile =
            ProfileValues { system: Some("of profile\n".to_owned()), ..ProfileValues::default() };
        let prompt = |of_request: Option<&str>, own: Option<&str>, more: &[&str]| {
            let args = SessionArgs { system: own.map(str::to_owned), ..args(more) };
            system_prompt(of_request.map(str::to_owned), &args, &profile, false).expect("a prompt")
        };
        assert_eq!(prompt(None, None, &[]), "of profile");
        assert_eq!(prompt(None, Some("own"), &["", "more", "last"]), "own\n\nmore\n\nlast");
        assert_eq!(prompt(Some("file"), Some("own"), &["more"]), "file\n\nmore");
        assert_eq!(appended(None, &args(&["alone"])).as_deref(), Some("alone"));
        assert_eq!(appended(None, &args(&[" "])), None);
    }

    #[test]
    fn a_blank_prompt_that_is_typed_is_none() {
        let profile =
            ProfileValues { system: Some("of profile".to_owned()), ..ProfileValues::default() };
        let mut args = SessionArgs { system: Some(" ".to_owned()), ..SessionArgs::default() };
        let prompt = |args: &SessionArgs| system_prompt(None, args, &profile, false);
        assert_eq!(prompt(&args).as_deref(), Some("of profile"), "of a variable");
        args.calls.typed = ["system".to_owned()].into_iter().collect();
        assert_eq!(prompt(&args), None);
        args.append_system = vec!["more".to_owned()];
        assert_eq!(prompt(&args).as_deref(), Some("more"));
    }

    #[test]
    fn a_session_goes_on_with_the_prompt_that_it_began_with() {
        let mut args = args(&["more"]);
        let nothing = ProfileValues::default();
        assert_eq!(system_prompt(None, &args, &nothing, true), None);
        args.system = Some("new".to_owned());
        assert_eq!(system_prompt(None, &args, &nothing, true).as_deref(), Some("new\n\nmore"));
    }
}
