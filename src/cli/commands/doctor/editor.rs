//! What an editor needs to start `duologue acp`: the command, and what it takes from variables that an editor
//! may not have.

use super::Check;
use crate::cli::config::missing;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Folders in which a desktop looks for programs, whatever a shell adds.
const FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// The name under which the program is installed.
const PROGRAM: &str = "duologue";

/// Adds what concerns editors.
pub(super) fn check(checks: &mut Vec<Check>) {
    let version = env!("CARGO_PKG_VERSION");
    let found = format!("version {version}, by version 1 of the Agent Client Protocol");
    checks.push(Check::fine("editors", found));
    let path = std::env::var_os("PATH");
    let (own, in_path) = (std::env::current_exe().ok(), path.as_deref().and_then(in_path));
    checks.push(command(own.as_deref(), in_path.as_deref()));
    checks.push(variables(&missing::set_variables()));
}

/// Where a shell finds the program.
fn in_path(path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(PROGRAM)).find(|it| it.is_file())
}

fn command(own: Option<&Path>, in_path: Option<&Path>) -> Check {
    let is_everywhere =
        |it: &Path| FOLDERS.iter().any(|folder| it.parent() == Some(Path::new(folder)));
    match (in_path, own) {
        (Some(found), _) if is_everywhere(found) => Check::fine("command", "`duologue acp`"),
        (_, Some(own)) => Check::note(
            "command",
            format!(
                "`{} acp`; name the whole path in the editor, which may not have the PATH of this shell",
                own.display()
            ),
        ),
        (_, None) => Check::note("command", "`duologue acp`, if the editor finds it"),
    }
}

fn variables(names: &[&str]) -> Check {
    match names.is_empty() {
        true => Check::fine("variables", "the provider depends on none of this shell"),
        false => Check::note(
            "variables",
            format!(
                "{} of this shell choose the provider or have its key, and an editor that is started from \
                 the desktop may not have them; write a profile with `duologue profiles init`, or set them \
                 in the editor's configuration of the agent",
                names.join(", ")
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn a_program_of_the_system_needs_no_path() {
        let check = |own: &str, in_path: Option<&str>| {
            command(Some(Path::new(own)), in_path.map(Path::new))
        };
        assert_eq!(check("/usr/bin/duologue", Some("/usr/bin/duologue")).state, State::Fine);
        let own = check("/home/ann/.cargo/bin/duologue", Some("/home/ann/.cargo/bin/duologue"));
        assert_eq!(own.state, State::Note);
        assert!(own.found.starts_with("`/home/ann/.cargo/bin/duologue acp`"), "{}", own.found);
        assert_eq!(check("/x/duologue", None).state, State::Note);
    }
}
