//! Derives the name of a server from its command.

/// Programs that run another one, which says more of a server than they do.
const RUNNERS: [&str; 14] = [
    "npx", "bunx", "pnpx", "uvx", "pipx", "node", "deno", "bun", "python", "python3", "uv",
    "docker", "podman", "env",
];

/// Words between such a program and what it runs.
const RUNNER_WORDS: [&str; 3] = ["run", "exec", "tool"];

/// A name for the server that `words` start: that of the program, or of what a runner runs, without
/// folders, version and extension.
pub(super) fn name_of(words: &[String]) -> String {
    let program = words.first().map_or("", String::as_str);
    let base = base_of(program);
    if !RUNNERS.contains(&base) {
        return base.to_owned();
    }
    let is_name = |word: &&String| !word.starts_with('-') && !word.contains('=');
    let mut rest = words[1..].iter().filter(is_name).map(String::as_str);
    let run = rest.find(|word| !RUNNER_WORDS.contains(word));
    run.map(base_of).filter(|name| !name.is_empty()).unwrap_or(base).to_owned()
}

fn base_of(word: &str) -> &str {
    let base = word.trim_end_matches('/').rsplit('/').next().unwrap_or(word);
    let base =
        base.split_once('@').map_or(base, |(name, _)| if name.is_empty() { base } else { name });
    let extension =
        base.rsplit_once('.').filter(|(_, it)| ["py", "js", "mjs", "ts", "sh"].contains(it));
    extension.map_or(base, |(name, _)| name)
}
