//! Adds a profile to the text of a file, of which everything else stays as it is. Pure.

use super::item::KeyFrom;
use super::read::{Draft, Drafts, Fault, Folders, read};
use crate::yaml::Node;
use std::path::Path;

/// Blanks before the name of a profile in a file that has none yet.
const INDENT: usize = 2;

/// A profile that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewProfile {
    pub(crate) name: String,
    pub(crate) engine: String,
    pub(crate) model: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) key: Option<KeyFrom>,
}

/// The text of a file with a new profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    pub(crate) text: String,
    /// The profile that the file uses where none is chosen: the new one, if it had none.
    pub(crate) default: String,
}

/// Why a profile can't be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAdded {
    #[error(
        "there is a profile `{0}` already, which stays as it is; give the new one another name, or edit the file to \
         change that one"
    )]
    Exists(String),
    #[error("{}{message}", .line.map_or(String::new(), |line| format!("line {line}: ")))]
    Wrong { line: Option<u32>, message: String },
    #[error(
        "its profiles are not written one a line, so that nothing can be added without writing it \
         anew; add this to it yourself:\n{0}"
    )]
    Unknown(String),
}

/// Checks that `text`, the content of a file in `folder`, has no profile of that name.
///
/// # Errors
/// If it has one, or can't be read.
pub(crate) fn ensure_new(name: &str, text: &str, folder: &Path) -> Result<(), NotAdded> {
    let drafts = read(text, Folders { file: folder, home: None }).map_err(wrong)?;
    match drafts.profiles.iter().any(|draft| draft.name == name) {
        true => Err(NotAdded::Exists(name.to_owned())),
        false => Ok(()),
    }
}

impl NewProfile {
    /// Adds the profile to `text`, the content of a file in `folder`.
    ///
    /// # Errors
    /// If the file has a profile of that name, or can't be changed line by line.
    pub(crate) fn added_to(&self, text: &str, folder: &Path) -> Result<Added, NotAdded> {
        let folders = Folders { file: folder, home: None };
        ensure_new(&self.name, text, folder)?;
        let before = read(text, folders).map_err(wrong)?;
        let entry = || NotAdded::Unknown(format!("profiles:\n{}", self.entry(INDENT)));
        let added = self.inserted_into(text).ok_or_else(entry)?;
        let (text, default) = match &before.default {
            Some((name, _)) => (added, name.clone()),
            None => {
                let line = format!("default: {}\n", scalar(&self.name));
                (inserted(&added, "profiles:", &line).ok_or_else(entry)?, self.name.clone())
            }
        };
        let after = read(&text, folders).map_err(wrong)?;
        if !is_extended(&before, &after, &self.name) {
            return Err(entry());
        }
        Ok(Added { text, default })
    }

    /// `text` with the profile before its others; `None` if the lines are not as they are written here.
    fn inserted_into(&self, text: &str) -> Option<String> {
        let document = Node::parse(text).ok()?;
        let entries = document.map()?;
        let Some((key, profiles)) = entries.iter().find(|(key, _)| key.text() == Some("profiles"))
        else {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            return Some(format!("{text}{end}profiles:\n{}", self.entry(INDENT)));
        };
        let indent = match profiles.map()?.first() {
            None => INDENT,
            Some((first, _)) if first.line > key.line => {
                let line = text.lines().nth(usize::try_from(first.line).ok()?.checked_sub(1)?)?;
                line.len() - line.trim_start_matches(' ').len()
            }
            Some(_) => return None,
        };
        let at = text.lines().position(|line| line.starts_with("profiles:"))?;
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        let head = lines[at].strip_prefix("profiles:")?.trim();
        if !head.is_empty() && !head.starts_with('#') {
            return None;
        }
        let entry = self.entry(indent);
        let end = if lines[at].ends_with('\n') { "" } else { "\n" };
        let entry = format!("{end}{entry}");
        lines.insert(at + 1, &entry);
        Some(lines.concat())
    }

    /// The lines of the profile.
    fn entry(&self, indent: usize) -> String {
        let values = [
            ("engine", Some(scalar(&self.engine))),
            ("model", self.model.as_deref().map(scalar)),
            ("base-url", self.base_url.as_deref().map(scalar)),
        ];
        let values = values.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let lines = values.chain(self.key.as_ref().and_then(key_line));
        let margin = " ".repeat(indent);
        let lines: String =
            lines.map(|(key, value)| format!("{margin}  {key}: {value}\n")).collect();
        format!("{margin}{}:\n{lines}", scalar(&self.name))
    }
}

fn key_line(key: &KeyFrom) -> Option<(&'static str, String)> {
    match key {
        KeyFrom::Variable(name) => Some(("key-variable", scalar(name))),
        KeyFrom::File(path) => Some(("key-file", scalar(&path.display().to_string()))),
        KeyFrom::Command(words) => {
            let words: Vec<_> = words.iter().map(|word| scalar(word)).collect();
            Some(("key-command", format!("[{}]", words.join(", "))))
        }
        // A key is never written into a file of profiles.
        KeyFrom::Here(_) => None,
    }
}

/// `line` before the line of `text` that begins with `start`.
fn inserted(text: &str, start: &str, line: &str) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = lines.iter().position(|line| line.starts_with(start))?;
    Some([&lines[..at], &[line], &lines[at..]].concat().concat())
}

/// Whether `after` has what `before` has, and the profile `name`.
fn is_extended(before: &Drafts, after: &Drafts, name: &str) -> bool {
    let same = |one: &Draft, other: &Draft| {
        let items = |draft: &Draft| draft.items.iter().map(|(item, _)| item.clone()).collect();
        let (one_items, other_items): (Vec<_>, Vec<_>) = (items(one), items(other));
        let inherits = |draft: &Draft| draft.inherits.as_ref().map(|(from, _)| from.clone());
        one.name == other.name && inherits(one) == inherits(other) && one_items == other_items
    };
    let is_there = |draft: &Draft| after.profiles.iter().any(|other| same(draft, other));
    let names = after.profiles.iter().filter(|draft| draft.name == name).count();
    let counts = (after.profiles.len(), names);
    counts == (before.profiles.len() + 1, 1) && before.profiles.iter().all(is_there)
}

/// A text as YAML: plain where it is only a word or an address.
fn scalar(text: &str) -> String {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "._-/:~".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && !text.ends_with(':')
        && text.chars().all(is_fine)
        && Node::parse(text).is_ok_and(|node| node.truth().is_none() && node.text() == Some(text));
    // A string of JSON is one of YAML.
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

fn wrong((line, message): Fault) -> NotAdded {
    NotAdded::Wrong { line, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(name: &str) -> NewProfile {
        NewProfile {
            name: name.to_owned(),
            engine: "openai".to_owned(),
            model: Some("gpt: 5".to_owned()),
            base_url: Some("http://127.0.0.1:1/v1".to_owned()),
            key: Some(KeyFrom::Command(["pass", "show it"].map(str::to_owned).to_vec())),
        }
    }

    const ENTRY: &str = "  new:\n    engine: openai\n    model: \"gpt: 5\"\n    base-url: \
         http://127.0.0.1:1/v1\n    key-command: [pass, \"show it\"]\n";

    #[test]
    fn everything_else_in_the_file_stays_as_it_is() {
        let check = |text: &str, expected: &str, default: &str| {
            let added = profile("new").added_to(text, Path::new("/p"));
            let added = added.unwrap_or_else(|error| panic!("{text:?}: {error}"));
            assert_eq!(added.text, expected.replace("ENTRY", ENTRY), "{text:?}");
            assert_eq!(added.default, default, "{text:?}");
        };
        check("", "default: new\nprofiles:\nENTRY", "new");
        check("# mine\n", "# mine\ndefault: new\nprofiles:\nENTRY", "new");
        check(
            "default: a # now\n\nprofiles: # all\n  # one\n  a: {model: b} # it\n",
            "default: a # now\n\nprofiles: # all\nENTRY  # one\n  a: {model: b} # it\n",
            "a",
        );
        check("profiles:", "default: new\nprofiles:\nENTRY", "new");
        check(
            "profiles:\n  a:\n    system: |\n      profiles:\n",
            "default: new\nprofiles:\nENTRY  a:\n    system: |\n      profiles:\n",
            "new",
        );
        let wide = "profiles:\n    a:\n        model: b\n";
        let added = profile("new").added_to(wide, Path::new("/p")).expect("added");
        assert!(added.text.contains("\n    new:\n      engine: openai\n"), "{}", added.text);
        assert!(added.text.ends_with("\n    a:\n        model: b\n"), "{}", added.text);
    }

    #[test]
    fn a_file_that_can_not_be_changed_line_by_line_is_left_alone() {
        let check = |text: &str, expected: &str| {
            let error = profile("new").added_to(text, Path::new("/p")).expect_err("not added");
            assert!(error.to_string().contains(expected), "{text:?}: {error}");
        };
        check("profiles: {new: {}}\n", "there is a profile `new` already");
        check("profiles: {a: {}}\n", &format!("yourself:\nprofiles:\n{ENTRY}"));
        check("{profiles: {a: {}}}\n", "add this to it yourself");
        check("profiles:\n  a: {modle: x}\n", "line 2: a profile has no key `modle`");
        check("profiles: [", "it is not valid YAML");
    }

    #[test]
    fn words_that_yaml_reads_otherwise_are_quoted() {
        for plain in ["a", "gpt-5-mini", "http://h:1/v1", "/etc/key", "a:b"] {
            assert_eq!(scalar(plain), plain);
        }
        for quoted in ["yes", "null", "1.5", "a b", "a: b", "#a", "a:", "", "*a", "caf\u{e9}"] {
            let text = scalar(quoted);
            assert!(text.starts_with('"'), "{text}");
            assert_eq!(Node::parse(&text).expect("YAML").text(), Some(quoted));
        }
    }
}
