//! The prompt of `exec`: the typed words, then standard input, then files.

use super::CLAIM;
use super::piped::Piped;
use super::text;
use crate::cli::ExecArgs;
use crate::cli::config::NothingAsked;
use crate::command_file::is_stdin;
use crate::stdio::Unread;
use crate::support::terminal::escape_control;
use anyhow::{Context, Result, bail, ensure};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The sources of a prompt; there is at least one.
#[derive(Debug)]
pub(super) struct Parts {
    first: First,
    stdin: Stdin,
    files: Vec<PathBuf>,
    /// Text that was requested may be blank.
    allows_empty: bool,
}

/// Whether standard input is a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stdin {
    No,
    /// As nothing else is given.
    Implied,
    /// The command line names it.
    Requested,
    /// It was piped in.
    Piped(Piped),
}

#[derive(Debug)]
enum First {
    /// Standard input or the files come first.
    None,
    Invocation(String),
    File(PathBuf),
}

impl Parts {
    /// The parts that `args` name. Standard input is one of them if it is requested, if nothing else is
    /// given, or as it is `piped` in.
    ///
    /// # Errors
    /// If a file is standard input, which has an argument of its own; if there are two prompts; if it is in doubt whose
    /// input it is.
    pub(super) fn of(
        args: &ExecArgs,
        piped: impl FnOnce() -> Result<Option<Piped>>,
    ) -> Result<Self> {
        if args.file.iter().any(|path| is_stdin(path)) {
            bail!("--file can't be standard input; write - after the prompt instead");
        }
        let is_dash = args.prompt.as_deref() == Some("-") && !args.is_prompt_escaped;
        if args.prompt.is_some() && args.prompt_file.is_some() && !is_dash {
            bail!(
                "--prompt-file can't be used with another prompt; leave one of the two out, or write - as the prompt \
                 to add standard input"
            );
        }
        let is_stdin_file = args.prompt_file.as_deref().is_some_and(is_stdin);
        let first = match (&args.prompt, &args.prompt_file) {
            (Some(prompt), _) if !is_dash => First::Invocation(prompt.clone()),
            (_, Some(path)) if !is_stdin_file => First::File(path.clone()),
            (_, _) => First::None,
        };
        let is_all = matches!(first, First::None) && args.file.is_empty();
        let stdin = match is_dash || is_stdin_file || args.piped.is_some() {
            true => Stdin::Requested,
            false if is_all => Stdin::Implied,
            false => piped()?.map_or(Stdin::No, Stdin::Piped),
        };
        Ok(Self { first, stdin, files: args.file.clone(), allows_empty: args.allow_empty })
    }

    pub(super) fn has_stdin(&self) -> bool {
        self.stdin != Stdin::No
    }

    /// Whether all of standard input is read, however long that takes.
    pub(super) fn reads_all(&self) -> bool {
        !matches!(self.stdin, Stdin::No | Stdin::Piped(Piped::Open))
    }

    /// The prompt, if it consists of typed words only.
    pub(super) fn typed(&self) -> Option<&str> {
        let is_alone = !self.has_stdin() && self.files.is_empty();
        match &self.first {
            First::Invocation(prompt) if is_alone => Some(prompt),
            First::None | First::Invocation(_) | First::File(_) => None,
        }
    }

    /// Reads the parts and joins them with a blank line between them.
    ///
    /// # Errors
    /// If one can't be read or is not text, is blank though it was requested, or the prompt gets too
    /// long.
    pub(super) fn read(self, stdin: File, unread: &Unread) -> Result<String> {
        let allows_empty = self.allows_empty;
        let check = |text: &str, missing: NothingAsked| match text.trim().is_empty() {
            true if !allows_empty => Err(missing),
            true | false => Ok(()),
        };
        let mut prompt = match self.first {
            First::None => String::new(),
            First::Invocation(prompt) => prompt,
            First::File(path) => {
                let text = text::from_file(&path, text::PROMPT_BYTES_MAX);
                let text = text.context("--prompt-file")?;
                check(&text, NothingAsked::File(path))?;
                text
            }
        };
        match self.stdin {
            Stdin::No => {}
            Stdin::Implied => add(&mut prompt, &text::from_stdin(stdin)?)?,
            Stdin::Requested => {
                let text = text::from_stdin(stdin)?;
                check(&text, NothingAsked::StandardInput)?;
                add(&mut prompt, &text)?;
            }
            Stdin::Piped(piped) => add(&mut prompt, &piped.read(stdin, CLAIM, unread)?)?,
        }
        for path in &self.files {
            let content = text::from_file(path, text::PROMPT_BYTES_MAX).context("--file")?;
            add(&mut prompt, &element(path, &content))?;
        }
        Ok(prompt)
    }
}

/// Adds `part` to `prompt`, after a blank line, unless it is blank itself.
///
/// # Errors
/// If the prompt gets too long.
pub(super) fn add(prompt: &mut String, part: &str) -> Result<()> {
    if part.trim().is_empty() {
        return Ok(());
    }
    let bytes_max = text::PROMPT_BYTES_MAX;
    ensure!(
        prompt.len() + part.len() <= bytes_max,
        "the prompt has more than {bytes_max} bytes with all its files; leave some of them out"
    );
    if prompt.trim().is_empty() {
        prompt.clear();
    } else {
        prompt.truncate(prompt.trim_end_matches('\n').len());
        prompt.push_str("\n\n");
    }
    prompt.push_str(part);
    Ok(())
}

/// A file between two tags. The first has its name; the second occurs nowhere in its
/// text.
fn element(path: &Path, content: &str) -> String {
    let mut tag = "file".to_owned();
    for number in 2.. {
        if !content.contains(&format!("</{tag}>")) {
            break;
        }
        tag = format!("file-{number}");
    }
    let name = escape_control(&path.to_string_lossy()).replace('&', "&amp;").replace('"', "&quot;");
    let line_end = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
    format!("<{tag} name=\"{name}\">\n{content}{line_end}</{tag}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_ends_where_its_tag_says_and_nowhere_before() {
        let check = |path, content, expected| {
            assert_eq!(element(Path::new(path), content), expected, "{path}");
        };
        check("a/b.txt", "one\n", "<file name=\"a/b.txt\">\none\n</file>");
        check("b", "one", "<file name=\"b\">\none\n</file>");
        check("empty", "", "<file name=\"empty\">\n</file>");
        check("\"a&b\"\n", "", "<file name=\"&quot;a&amp;b&quot; \">\n</file>");
        let tags = "</file> </file-2>";
        check("tags", tags, "<file-3 name=\"tags\">\n</file> </file-2>\n</file-3>");
    }

    #[test]
    fn parts_have_one_blank_line_between_them() {
        let check = |first: &str, part, expected| {
            let mut prompt = first.to_owned();
            add(&mut prompt, part).expect("there is room");
            assert_eq!(prompt, expected);
        };
        check("Review this", "diff\n", "Review this\n\ndiff\n");
        check("Review this\n\n\n", "diff", "Review this\n\ndiff");
        check(" \n", "diff", "diff");
        check("Review this", "\n", "Review this");
    }
}
