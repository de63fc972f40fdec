//! A name for the server that a command line starts.

/// Programs that run another one, which says more of a server than they do.
const RUNNERS: [&str; 14] = [
    "npx", "bunx", "pnpx", "uvx", "pipx", "node", "deno", "bun", "python", "python3", "uv",
    "docker", "podman", "env",
];

/// Words between such a program and the program that it runs.
const RUNNER_WORDS: [&str; 3] = ["run", "exec", "tool"];

/// Options of containers that have a value in the next word, without their dashes. Others have a value after `=`, or
/// none.
const OF_CONTAINERS: &str = "e env env-file v volume mount tmpfs p publish name network net add-host h hostname dns l \
    label annotation u user w workdir platform pull entrypoint m memory shm-size cpus gpus device cap-add cap-drop \
    security-opt ulimit restart";

/// Such options of programs that run packages.
const OF_PACKAGES: &str = "p package from with with-requirements with-editable extra directory project python index \
    spec env-file";

/// A name for the server that `words` start: that of the program, or of the program of a runner, without
/// folders, version and extension.
pub(super) fn name_of(words: &[String]) -> String {
    let program = words.first().map_or("", String::as_str);
    let base = base_of(program);
    if !RUNNERS.contains(&base) {
        return base.to_owned();
    }
    let rest = words[1..].iter().map(String::as_str);
    let run = program_of(rest, options_of(base));
    run.map(base_of).filter(|name| !name.is_empty()).unwrap_or(base).to_owned()
}

/// The options of a runner that have a value in the next word, without their dashes.
fn options_of(runner: &str) -> &'static str {
    match runner {
        "docker" | "podman" => OF_CONTAINERS,
        "npx" | "bunx" | "pnpx" | "uvx" | "pipx" | "uv" => OF_PACKAGES,
        "node" | "bun" => "r require import loader env-file",
        "python" | "python3" => "W X",
        "env" => "u unset C chdir",
        _ => "",
    }
}

/// The first of a runner's words that is neither an option, nor the value of one, nor a variable.
fn program_of<'w>(mut words: impl Iterator<Item = &'w str>, valued: &str) -> Option<&'w str> {
    while let Some(word) = words.next() {
        let option = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
        match option {
            Some(option) if valued.split_whitespace().any(|it| it == option) => drop(words.next()),
            Some(_) => {}
            None if word.contains('=') || RUNNER_WORDS.contains(&word) => {}
            None => return Some(word),
        }
    }
    None
}

fn base_of(word: &str) -> &str {
    let package = ["npm:", "jsr:"].iter().find_map(|registry| word.strip_prefix(registry));
    let word = package.unwrap_or(word);
    let base = word.trim_end_matches('/').rsplit('/').next().unwrap_or(word);
    // A version after `@`, or the tag of an image after `:`.
    let name = base.split(['@', ':']).next().filter(|name| !name.is_empty()).unwrap_or(base);
    let extension =
        name.rsplit_once('.').filter(|(_, it)| ["py", "js", "mjs", "ts", "sh"].contains(it));
    extension.map_or(name, |(name, _)| name)
}

/// Whether a shell would set a variable by `word`, and not start it.
pub(super) fn sets_variable(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins_name = |c: char| is_name_char(c) && !c.is_ascii_digit();
    name.starts_with(begins_name) && name.chars().all(is_name_char)
}
