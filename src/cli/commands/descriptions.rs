//! Descriptions of the command line: the manifest, shell completions and manual pages, all
//! generated from its definition.

use super::args::{CompletionsArgs, ManArgs, TextOutputArgs};
use super::complete::VARIABLE;
use super::document::{self, Document};
use super::output::Failure;
use crate::cli::manifest;
use crate::support::files;
use clap::Command;
use clap_complete::env::Shells;
use clap_mangen::Man;
use serde_json::{Value, json};
use std::io;
use std::path::Path;

/// The head of the section with the text after the options.
const EXTRA: &str = ".SH EXTRA\n";

/// Completion scripts of this program, by shell. The ones of clap_complete pass words with their quotes, take the
/// parts of `--engine=echo` for words in bash, and in zsh quote `~` and offer nothing at the first tab.
const SCRIPTS: [(&str, &[u8]); 3] = [
    ("bash", include_bytes!("complete.bash")),
    ("fish", include_bytes!("complete.fish")),
    ("zsh", include_bytes!("complete.zsh")),
];

/// The parts of that text, and the names that manual pages have for them (man-pages(7)).
const SECTIONS: [(&str, &str); 4] = [
    ("Examples:", "EXAMPLES"),
    ("Environment:", "ENVIRONMENT"),
    ("See also:", "SEE ALSO"),
    ("Exit status:", "EXIT STATUS"),
];

/// Prints the manifest of `command`; returns the exit status.
pub fn manifest(command: &Command) -> u8 {
    document::print(&TextOutputArgs::default(), || {
        let data = manifest::manifest(command, manifest::facts);
        Ok(Document { text: format!("{data:#}\n").into_bytes(), data })
    })
}

/// Prints or writes the completion script for `command`, which calls this program; returns the exit status.
pub fn completions(args: &CompletionsArgs, command: &Command) -> u8 {
    document::print(&args.output, || {
        let script = script(&args.shell.to_string(), command.get_name());
        let script = script.map_err(Failure::Output)?;
        if let Some(path) = &args.out {
            return write_script(path, &script);
        }
        let data = String::from_utf8_lossy(&script).into();
        Ok(Document { text: script, data })
    })
}

fn script(shell: &str, name: &str) -> io::Result<Vec<u8>> {
    if let Some((_, script)) = SCRIPTS.iter().find(|(name, _)| *name == shell) {
        return Ok(script.to_vec());
    }
    let mut script = Vec::new();
    match Shells::builtins().completer(shell) {
        Some(shell) => shell.write_registration(VARIABLE, name, name, name, &mut script)?,
        None => return Err(io::Error::other(format!("there is no script for {shell}"))),
    }
    Ok(script)
}

fn write_script(path: &Path, script: &[u8]) -> Result<Document, Failure> {
    // For all who may read the folder: it may be one of the system.
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let made = files::check_home(path);
    let made = made.and_then(|()| folder.map_or(Ok(()), std::fs::create_dir_all));
    made.and_then(|()| std::fs::write(path, script)).map_err(|error| {
        Failure::Unwritten(format!("--out: {} can't be written: {error}", path.display()))
    })?;
    Ok(Document { text: Vec::new(), data: path.to_string_lossy().into() })
}

/// Prints or writes the manual pages of `command`; returns the exit status.
pub fn man(args: &ManArgs, command: &Command) -> u8 {
    document::print(&args.output, || match &args.out {
        Some(folder) => write_pages(folder, command),
        None => pages(command).map_err(Failure::Output),
    })
}

/// All pages: that of the program, then those of its commands.
fn pages(command: &Command) -> io::Result<Document> {
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    let mut document = Document { text: Vec::new(), data: Value::Null };
    let mut list = Vec::new();
    for (name, command) in named(&command, command.get_name().to_owned()) {
        let mut page = Vec::new();
        Man::new(command.clone().display_name(&name)).render(&mut page)?;
        let page = portable(&String::from_utf8_lossy(&page));
        document.text.extend(page.as_bytes());
        list.push(json!({ "name": format!("{name}.1"), "text": page }));
    }
    document.data = list.into();
    Ok(document)
}

fn write_pages(folder: &Path, command: &Command) -> Result<Document, Failure> {
    let command = command.clone().disable_help_subcommand(true);
    let unwritten = |error: io::Error| {
        let folder = folder.display();
        Failure::Unwritten(format!("--out: {folder} can't be written: {error}"))
    };
    files::check_home(folder).map_err(unwritten)?;
    std::fs::create_dir_all(folder).map_err(unwritten)?;
    let pages = named(&command, command.get_name().to_owned());
    let pages: Vec<_> = pages.into_iter().map(|(name, _)| name).collect();
    clap_mangen::generate_to(command, folder).map_err(unwritten)?;
    let mut written: Vec<Value> = Vec::new();
    for name in pages {
        let path = folder.join(format!("{name}.1"));
        let page = std::fs::read_to_string(&path).map_err(unwritten)?;
        std::fs::write(&path, portable(&page)).map_err(unwritten)?;
        written.push(path.to_string_lossy().into_owned().into());
    }
    Ok(Document { text: Vec::new(), data: written.into() })
}

/// `command`, whose page is called `name`, and the commands below it, with the names of theirs.
fn named(command: &Command, name: String) -> Vec<(String, &Command)> {
    let below = command.get_subcommands().flat_map(|each| {
        let name = format!("{name}-{}", each.get_name());
        named(each, name)
    });
    let below: Vec<_> = below.collect();
    [(name, command)].into_iter().chain(below).collect()
}

/// The page in the form that every `man` shows as it is meant.
fn portable(page: &str) -> String {
    // A blank line between two breaks is one that formatters drop with a warning.
    let page = with_title(&with_sections(page)).replace("\n.br\n\n.br\n", "\n.sp\n");
    // What is not ASCII is an escape sequence: not every formatter knows the encoding of its input.
    let escaped = |c: char| match c.is_ascii() {
        true => c.to_string(),
        false => format!("\\[u{:04X}]", u32::from(c)),
    };
    page.chars().map(escaped).collect()
}

/// The page with the version in its title, without a date: the generator leaves an empty one out, and so puts the
/// command in its place.
fn with_title(page: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let lines = page.split('\n').map(|line| {
        match line.strip_prefix(".TH ").and_then(|title| title.split(' ').next()) {
            Some(name) => format!(".TH {name} 1 \"\" \"duologue {version}\" \"duologue\""),
            None => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The page with a section for each part of the text after its options, and with the lines as they are: if
/// they were filled, a table would become a paragraph.
fn with_sections(page: &str) -> String {
    let Some((before, after)) = page.split_once(EXTRA) else { return page.to_owned() };
    let end = after.find("\n.SH ").map_or(after.len(), |at| at + 1);
    let (text, rest) = after.split_at(end);
    let mut sections = vec![("NOTES", String::new())];
    for line in text.lines() {
        match (SECTIONS.iter().find(|(word, _)| *word == line), sections.last_mut()) {
            (Some((_, name)), _) => sections.push((name, String::new())),
            (None, Some((_, lines))) => *lines += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    let mut page = before.to_owned();
    for (name, lines) in sections {
        let lines = lines.trim_matches('\n');
        if !lines.is_empty() {
            page += &format!(".SH \"{name}\"\n.nf\n{lines}\n.fi\n");
        }
    }
    page + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_after_the_options_are_not_filled() {
        let page = ".SH NAME\nn\n.SH EXTRA\nExamples:\n  run\n\nExit status:\n  0    good\n  1    bad\n\
                    .SH VERSION\nv\n";
        let expected = ".SH NAME\nn\n.SH \"EXAMPLES\"\n.nf\n  run\n.fi\n.SH \"EXIT STATUS\"\n.nf\n  0    \
                        good\n  1    bad\n.fi\n.SH VERSION\nv\n";
        assert_eq!(portable(page), expected);
        assert_eq!(portable(".SH EXTRA\nlast"), ".SH \"NOTES\"\n.nf\nlast\n.fi\n");
        assert_eq!(portable(".SH NAME\nn\n"), ".SH NAME\nn\n");
        assert_eq!(portable("a… é"), "a\\[u2026] \\[u00E9]");
        assert_eq!(portable("Text\n.br\n\n.br\nPossible"), "Text\n.sp\nPossible");
    }
}
