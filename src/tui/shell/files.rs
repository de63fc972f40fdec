//! Files of the chat: earlier prompts, paths to complete, and saved conversations.

use crate::protocol::attachment::{self, Attachment, Content};
use crate::protocol::proto::chat::ChatAttachment;
use crate::support::files::{read_end, replace, user_folder};
use crate::support::shell_words;
use crate::tui::input::{
    Candidates, ENTRIES_MAX, History, fuzzy, meanings, needs_quotes, quoted, unquoted,
};
use crate::tui::model::{Large, PastedFile, UNASKED_BYTES_MAX, is_image_name};
use crate::tui::text::clean;
use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Longest file of prompts, in bytes; of a longer one the end is read, and the oldest prompts are removed from it.
const HISTORY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A prompt that is longer is not stored.
pub(super) const PROMPT_BYTES_MAX: usize = 64 * 1024;

/// Files that are offered in each of the two ways.
const FILES_MAX: usize = 200;

/// Entries of folders that are looked at for one list, those of the nearest folders first.
const ENTRIES_LOOKED_AT_MAX: usize = 20_000;

/// Bytes at the beginning of a file that tell its type.
const LOOKED_AT_BYTES: u64 = 64 * 1024;

/// The file with the prompts of earlier chats: one JSON string a line.
#[derive(Clone, Debug)]
pub(crate) struct HistoryFile(Option<PathBuf>);

impl HistoryFile {
    /// The user's file, in the folder for the state of programs (XDG Base Directory Specification).
    pub(crate) fn of_user() -> Self {
        let folder = user_folder("XDG_STATE_HOME", ".local/state", |name| std::env::var_os(name));
        Self(folder.map(|folder| folder.join("duologue/prompts.jsonl")))
    }

    /// Prompts are forgotten when the chat ends.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// The prompts. A file that can't be read is no reason not to chat.
    pub(super) fn load(&self) -> History {
        let Some(path) = &self.0 else { return History::default() };
        match read_end(path, HISTORY_BYTES_MAX) {
            Ok((bytes, is_whole)) => {
                let lines = bytes.split(|byte| *byte == b'\n');
                // The first line may be the end of one.
                let lines = lines.skip(usize::from(!is_whole));
                let prompts = lines.filter_map(|line| serde_json::from_slice(line).ok());
                let prompts: Vec<String> = prompts.collect();
                if !is_whole || prompts.len() > 2 * ENTRIES_MAX {
                    self.shorten(&prompts[prompts.len().saturating_sub(ENTRIES_MAX)..]);
                }
                History::new(prompts)
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!("earlier prompts can't be read: {}: {error}", path.display());
                }
                History::default()
            }
        }
    }

    fn shorten(&self, prompts: &[String]) {
        let Some(path) = &self.0 else { return };
        let lines = prompts.iter().filter_map(|prompt| serde_json::to_string(prompt).ok());
        let text: String = lines.map(|line| line + "\n").collect();
        if let Err(error) = replace(path, text.as_bytes()) {
            tracing::warn!("earlier prompts can't be shortened: {}: {error}", path.display());
        }
    }

    /// Stores a prompt; false if it is one that is not stored. A line is one write, so that two chats can store at
    /// the same time.
    pub(super) fn add(&self, prompt: &str) -> io::Result<bool> {
        let Some(path) = &self.0 else { return Ok(false) };
        if prompt.len() > PROMPT_BYTES_MAX {
            return Ok(false);
        }
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
        // A file of an earlier program may be readable by others.
        file.set_permissions(Permissions::from_mode(0o600))?;
        let start = if is_cut_off(&file)? { "\n" } else { "" };
        let line = serde_json::to_string(prompt).map_err(io::Error::other)?;
        file.write_all(format!("{start}{line}\n").as_bytes()).map(|()| true)
    }
}

/// Whether the last line of the file has no end, as after a write to a disk that was full: what is added to such a line
/// can't be read with it.
fn is_cut_off(file: &File) -> io::Result<bool> {
    let Some(last) = file.metadata()?.len().checked_sub(1) else { return Ok(false) };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte != *b"\n")
}

/// The files and folders that `part` may mean: those whose path begins with it, then those below that match it in
/// another way, the best first. `resources` of servers are listed alike.
pub(super) fn listed(
    start: usize,
    part: &str,
    (resources, other_resources): (Vec<String>, Vec<String>),
) -> Candidates {
    let (has_quote, path) = (part.starts_with('"'), unquoted(part));
    let mut begun = beginning_with(&path);
    begun.truncate(FILES_MAX);
    begun.extend(resources);
    // All of them, so that they have a beginning in common.
    let in_quotes = has_quote || begun.iter().any(|word| needs_quotes(word));
    let others = matching(&path).into_iter().filter(|word| !begun.contains(word));
    let written = |word: &String| quoted(word, has_quote || needs_quotes(word));
    let others = others.map(|word| written(&word));
    let others: Vec<_> =
        others.take(FILES_MAX).chain(other_resources.iter().map(&written)).collect();
    begun.iter_mut().for_each(|word| *word = quoted(word, in_quotes));
    Candidates::new(start, part.to_owned(), begun).with_others(others)
}

/// The entries of a folder whose path begins with `part`.
fn beginning_with(part: &str) -> Vec<String> {
    let (folder, name) = part.rsplit_once('/').map_or(("", part), |(folder, name)| (folder, name));
    let before = if part.contains('/') { format!("{folder}/") } else { String::new() };
    let at = if before.is_empty() { PathBuf::from(".") } else { expanded(&before) };
    let mut words = Vec::new();
    for (text, is_folder) in entries(&at) {
        let is_hidden = text.starts_with('.') && !name.starts_with('.');
        if !text.starts_with(name) || is_hidden {
            continue;
        }
        let end = if is_folder || at.join(&text).is_dir() { "/" } else { "" };
        words.push(format!("{before}{text}{end}"));
    }
    if words.is_empty() && !part.ends_with('/') && expanded(part).is_dir() {
        // A folder that is not listed in another one: `~` and `..`.
        words.push(format!("{part}/"));
    }
    words.sort();
    words
}

/// The files and folders, at any depth, whose path has the characters of `part` in their order. They are looked for
/// in the folder that `part` names, or in this one if it names none, without following symbolic links.
fn matching(part: &str) -> Vec<String> {
    let (folder, name) = match part.rsplit_once('/') {
        Some((folder, name)) if expanded(&format!("{folder}/")).is_dir() => {
            (format!("{folder}/"), name)
        }
        Some(_) | None => (String::new(), part),
    };
    if name.is_empty() {
        return Vec::new();
    }
    let at = if folder.is_empty() { PathBuf::from(".") } else { expanded(&folder) };
    let mut folders = VecDeque::from([String::new()]);
    let (mut found, mut looked_at) = (Vec::new(), 0);
    while looked_at < ENTRIES_LOOKED_AT_MAX
        && let Some(below) = folders.pop_front()
    {
        for (text, is_folder) in entries(&at.join(&below)) {
            looked_at += 1;
            if text.starts_with('.') {
                continue;
            }
            let path = format!("{below}{text}{}", if is_folder { "/" } else { "" });
            if let Some(cost) = fuzzy(name, &path) {
                found.push((cost, path.len(), format!("{folder}{path}")));
            }
            if is_folder {
                folders.push_back(path);
            }
        }
    }
    found.sort();
    found.into_iter().map(|(_, _, path)| path).collect()
}

/// The entries of a folder, and whether each is itself one. A name that can't be typed, or that would do something
/// to the terminal, is not offered.
fn entries(folder: &Path) -> impl Iterator<Item = (String, bool)> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| {
        let text = entry.file_name().into_string().ok().filter(|text| clean(text) == *text)?;
        Some((text, entry.file_type().is_ok_and(|kind| kind.is_dir())))
    })
}

/// The file that a mention names, and which part of the mention is its name.
pub(super) fn named(mention: &str) -> Option<(&str, PathBuf)> {
    let mut names = meanings(mention).map(|name| (name, expanded(name)));
    names.find(|(_, path)| path.is_file())
}

/// The files that a pasted text names, if it names nothing else: paths of images, as they are or as a shell reads them,
/// and `file://` URLs.
pub(super) fn pasted(text: &str) -> Vec<PastedFile> {
    let text = text.trim();
    if let Some(file) = pasted_file(text) {
        return vec![file];
    }
    let words = shell_words::split(text).unwrap_or_default();
    words.iter().map(|word| pasted_file(word)).collect::<Option<_>>().unwrap_or_default()
}

fn pasted_file(word: &str) -> Option<PastedFile> {
    let is_image = is_image_name(word);
    let path = match word.starts_with("file://") {
        true => {
            let shown = ChatAttachment { url: word.to_owned(), ..ChatAttachment::default() };
            let Content::File(path) = Attachment::named(1, shown).ok()?.content else {
                return None;
            };
            path
        }
        false if is_image => expanded(word),
        false => return None,
    };
    let path = std::path::absolute(path).ok().filter(|path| path.is_file())?;
    let path = path.to_str()?.to_owned();
    (!path.contains(char::is_control)).then_some(PastedFile { path, is_image })
}

/// Whether no provider takes a file. One that can't be read is reported when it is sent.
pub(super) fn is_unknown(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let file = File::open(path);
    let read = file.and_then(|file| file.take(LOOKED_AT_BYTES).read_to_end(&mut beginning));
    read.is_ok() && attachment::is_unknown(&beginning)
}

/// The files that these mentions name and that are attached only if the person agrees, each once.
pub(super) fn large(mentions: &[String]) -> Vec<Large> {
    let mut large: Vec<Large> = Vec::new();
    for (name, path) in mentions.iter().filter_map(|mention| named(mention)) {
        let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
        let is_known = large.iter().any(|other| other.name == name);
        if bytes > UNASKED_BYTES_MAX && !is_known {
            large.push(Large { name: name.to_owned(), bytes });
        }
    }
    large
}

/// A path in which `~` is the user's own folder.
pub(super) fn expanded(path: &str) -> PathBuf {
    let rest = if path == "~" { Some("") } else { path.strip_prefix("~/") };
    match (rest, std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        (Some(_) | None, _) => PathBuf::from(path),
    }
}

/// Writes a new file; one that exists is left alone.
///
/// # Errors
/// Why it can't be written, for a person.
pub(super) fn save(path: &Path, text: &str) -> Result<String, String> {
    let shown = path.display();
    let path = expanded(&path.to_string_lossy());
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let written = file.and_then(|mut file| file.write_all(format!("{text}{end}").as_bytes()));
    match written {
        Ok(()) => Ok(format!("{shown} was written")),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(format!("{shown} exists already and was left as it is; name another file"))
        }
        Err(error) => Err(format!("{shown} can't be written: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::test_folder::TestFolder;

    /// One line may be cut, and one may be no prompt.
    #[test]
    fn the_end_of_a_file_of_prompts_that_is_too_long_is_read() {
        let folder = TestFolder::new();
        let long = |number: usize| format!("\"{number} {}\"\n", "x".repeat(60_000));
        let lines: String = (0..80).map(long).collect();
        let path = folder.file("prompts.jsonl", format!("{lines}no prompt\n\"last\"\n"));
        let file = HistoryFile(Some(path.clone()));
        let prompts: Vec<_> = file.load().newest_first().map(str::to_owned).collect();
        assert_eq!(prompts[0], "last");
        assert!(prompts[1].starts_with("79 x"));
        assert_eq!(prompts.len(), HISTORY_BYTES_MAX / 60_000 + 1);
        assert!(fs::metadata(&path).is_ok_and(|it| it.len() <= 4 * 1024 * 1024));
        assert!(file.add("more").is_ok_and(|is_stored| is_stored));
        assert_eq!(file.load().newest_first().count(), prompts.len() + 1);
        let is_stored = file.add(&"x".repeat(PROMPT_BYTES_MAX + 1));
        assert!(is_stored.is_ok_and(|is_stored| !is_stored));
    }

    /// As after a write to a disk that was full.
    #[test]
    fn a_prompt_is_not_added_to_a_line_that_was_cut_off() {
        let folder = TestFolder::new();
        let path = folder.file("prompts.jsonl", "\"first\"\n\"cut off by a full di");
        let file = HistoryFile(Some(path.clone()));
        for prompt in ["important", "more"] {
            assert!(file.add(prompt).is_ok_and(|is_stored| is_stored));
        }
        let prompts: Vec<_> = file.load().newest_first().map(str::to_owned).collect();
        assert_eq!(prompts, ["more", "important", "first"]);
        let text = fs::read_to_string(path).expect("the prompts");
        assert!(text.ends_with("full di\n\"important\"\n\"more\"\n"), "{text}");
    }
}
