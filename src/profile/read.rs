//! Reads the text of a file of profiles; errors have line numbers.

use super::item::{Item, KeyFrom};
use super::pinocchio;
use super::{FILE_BYTES_MAX, PROFILES_MAX};
use crate::engine::CallSettings;
use crate::session::approval::ApprovalMode;
use crate::tool::config::Protected;
use crate::yaml::{Kind, Node};
use http::HeaderName;
use std::path::{Path, PathBuf};

/// Keys of a profile.
const KEYS: [&str; 16] = [
    "engine",
    "model",
    "base-url",
    "key-variable",
    "key-command",
    "key-file",
    "system",
    "context-tokens",
    "agents-file",
    "settings",
    "extra-headers",
    "mcp",
    "approval",
    "allow",
    "deny",
    "inherits",
];

/// An error in a file, and its line, if it is known.
pub(super) type Fault = (Option<u32>, String);

/// A profile as one file has it.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) name: String,
    /// The profile whose items come before these, and the line that says so.
    pub(super) inherits: Option<(String, u32)>,
    /// Each item with its line.
    pub(super) items: Vec<(Item, u32)>,
}

/// The content of a file.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    pub(super) profiles: Vec<Draft>,
    /// The profile that is used where none is chosen, and the line that says so.
    pub(super) default: Option<(String, u32)>,
    /// The ignored parts of the file, with their lines.
    pub(super) warnings: Vec<(u32, String)>,
}

/// The folders that paths in a file are relative to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folders<'a> {
    pub(super) file: &'a Path,
    /// The user's own.
    pub(super) home: Option<&'a Path>,
}

impl Draft {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), inherits: None, items: Vec::new() }
    }

    pub(super) fn push(&mut self, item: Item, line: u32) {
        self.items.push((item, line));
    }
}

/// The profiles of the file that holds `text`.
///
/// # Errors
/// If it is no YAML, or not a file of profiles.
pub(super) fn read(text: &str, folders: Folders<'_>) -> Result<Drafts, Fault> {
    if text.len() > FILE_BYTES_MAX {
        let message = format!("it is larger than {FILE_BYTES_MAX} bytes; remove what is not used");
        return Err((None, message));
    }
    let document =
        Node::parse(text).map_err(|fault| (fault.line, format!("it {}", fault.predicate())))?;
    let entries = map(&document, "a file of profiles")?;
    let drafts = if pinocchio::is_one(&document) {
        pinocchio::read(&document)?
    } else {
        own(entries, folders)?
    };
    if drafts.profiles.len() > PROFILES_MAX {
        return Err((None, format!("it has more than {PROFILES_MAX} profiles; split it")));
    }
    Ok(drafts)
}

fn own(entries: &[(Node, Node)], folders: Folders<'_>) -> Result<Drafts, Fault> {
    let mut drafts = Drafts::default();
    for (key, value) in entries {
        match key.text() {
            Some("profiles") => {
                for (name, profile) in map(value, "`profiles`")? {
                    drafts.profiles.push(draft(name, profile, folders)?);
                }
            }
            Some("default") => drafts.default = Some((profile_name(value)?, key.line)),
            other => {
                return Err((Some(key.line), unknown(other, "a file", &["default", "profiles"])));
            }
        }
    }
    Ok(drafts)
}

fn draft(name: &Node, profile: &Node, folders: Folders<'_>) -> Result<Draft, Fault> {
    let name_text = profile_name(name)?;
    let mut draft = Draft::new(&name_text);
    let mut key_line = None;
    for (key, value) in map(profile, &format!("the profile `{name_text}`"))? {
        let word = key.text().unwrap_or_default();
        if word.starts_with("key-") && key_line.replace(key.line).is_some() {
            let message = "a profile has one of key-variable, key-command and key-file; keep one";
            return Err((Some(key.line), message.to_owned()));
        }
        if word == "inherits" {
            draft.inherits = Some((text(value, word)?, key.line));
        } else {
            items(word, key, value, folders, &mut draft)?;
        }
    }
    Ok(draft)
}

/// The name of a profile, which can be typed and shown.
pub(super) fn profile_name(node: &Node) -> Result<String, Fault> {
    let name = node.text().unwrap_or_default();
    let is_name = !name.trim().is_empty() && !name.contains(char::is_control);
    match is_name && name.trim() == name {
        true => Ok(name.to_owned()),
        false => Err((Some(node.line), "the name of a profile is a short text".to_owned())),
    }
}

fn items(
    word: &str,
    key: &Node,
    value: &Node,
    folders: Folders<'_>,
    draft: &mut Draft,
) -> Result<(), Fault> {
    let line = key.line;
    match word {
        "engine" => draft.push(Item::Engine(text(value, word)?), line),
        "model" => draft.push(Item::Model(text(value, word)?), line),
        "base-url" => draft.push(Item::BaseUrl(text(value, word)?), line),
        "system" => draft.push(Item::System(text(value, word)?), line),
        "context-tokens" => draft.push(Item::ContextTokens(tokens(value, word)?), line),
        "agents-file" => draft.push(Item::AgentsFile(truth(value, word)?), line),
        "key-variable" => draft.push(Item::Key(variable(value)?), line),
        "key-command" => draft.push(Item::Key(command(value)?), line),
        "key-file" => {
            let path = text(value, word)?;
            draft.push(Item::Key(KeyFrom::File(path_in(&path, folders))), line);
        }
        "settings" => {
            for (name, value) in map(value, "`settings`")? {
                let name = text(name, "the name of a setting")?;
                draft.push(setting(&name, value)?, value.line);
            }
        }
        "extra-headers" => {
            for (name, value) in map(value, "`extra-headers`")? {
                let name = header_name(name)?;
                let value_text = Protected::new(text(value, &name)?);
                draft.push(Item::Header { name, value: value_text }, value.line);
            }
        }
        "mcp" => {
            for (name, server) in servers(value)? {
                draft.push(item_of_server(name, server)?, name.line);
            }
        }
        "approval" => draft.push(Item::Approval(approval(value)?), line),
        "allow" => draft.push(Item::Allow(texts(value, word)?), line),
        "deny" => draft.push(Item::Deny(texts(value, word)?), line),
        other => return Err((Some(line), unknown(Some(other), "a profile", &KEYS))),
    }
    Ok(())
}

/// The name of a header. What is none may hold the value too, as in `"Name: value"`, so it is not shown.
fn header_name(node: &Node) -> Result<String, Fault> {
    let name = text(node, "the name of a header")?;
    match HeaderName::try_from(name.as_str()) {
        Ok(_) => Ok(name),
        Err(_) => {
            let message = "in `extra-headers`, a header is a name and a value, as in `X-Team: core`; \
                 this name has characters that no name of a header has";
            Err((Some(node.line), message.to_owned()))
        }
    }
}

/// A setting of the calls, checked.
pub(super) fn setting(name: &str, value: &Node) -> Result<Item, Fault> {
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    let own = CallSettings::NAMES.into_iter().find(|own| plain(own) == plain(name));
    let name = own.unwrap_or(name).replace('_', "-");
    if name == "extra-headers" {
        let message = "write `extra-headers` beside `settings`, not in it";
        return Err((Some(value.line), message.to_owned()));
    }
    let json = value.json();
    let set = CallSettings::default().set(&name, &json);
    set.map_err(|why| (Some(value.line), format!("`settings`: {why}")))?;
    Ok(Item::Setting { name, value: json })
}

fn variable(node: &Node) -> Result<KeyFrom, Fault> {
    let name = text(node, "key-variable")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // The text may be a key that was put there by mistake, so it is not shown.
    match !name.is_empty() && name.chars().all(is_name) {
        true => Ok(KeyFrom::Variable(name)),
        false => {
            let message = "`key-variable` is the name of a variable that holds the key, with letters, \
                 digits and _ only; the key itself does not belong here";
            Err((Some(node.line), message.to_owned()))
        }
    }
}

fn command(node: &Node) -> Result<KeyFrom, Fault> {
    let words = match node.list() {
        Some(_) => texts(node, "key-command")?,
        None => Vec::new(),
    };
    if words.first().is_none_or(|word| word.trim().is_empty()) {
        let message = "`key-command` is a list of words, as in [pass, show, openai]: a program and its \
             arguments; it is run without a shell";
        return Err((Some(node.line), message.to_owned()));
    }
    Ok(KeyFrom::Command(words))
}

/// A number of tokens.
fn tokens(node: &Node, word: &str) -> Result<u64, Fault> {
    let tokens = node.json().as_u64().filter(|tokens| *tokens > 0);
    tokens.ok_or_else(|| (Some(node.line), format!("`{word}` is a number of tokens, as in 200000")))
}

fn path_in(path: &str, folders: Folders<'_>) -> PathBuf {
    match (path.strip_prefix("~/"), folders.home) {
        (Some(rest), Some(home)) => home.join(rest),
        (Some(_) | None, _) => folders.file.join(path),
    }
}

/// The servers of `mcp`, also under `mcpServers` as in files of other clients.
fn servers(node: &Node) -> Result<&[(Node, Node)], Fault> {
    let entries = map(node, "`mcp`")?;
    match entries {
        [(key, inner)] if key.text() == Some("mcpServers") => map(inner, "`mcpServers`"),
        _ => Ok(entries),
    }
}

fn item_of_server(name: &Node, server: &Node) -> Result<Item, Fault> {
    let name = text(name, "the name of a server")?;
    map(server, &format!("the server `{name}`"))?;
    let members = server.json().as_object().cloned().unwrap_or_default();
    Ok(Item::Server { name, members })
}

fn approval(node: &Node) -> Result<ApprovalMode, Fault> {
    match node.text() {
        Some("auto") => Ok(ApprovalMode::Auto),
        Some("ask") => Ok(ApprovalMode::Ask),
        Some("deny") => Ok(ApprovalMode::Deny),
        Some(_) | None => Err((Some(node.line), "`approval` must be auto, ask or deny".to_owned())),
    }
}

pub(super) fn map<'a>(node: &'a Node, what: &str) -> Result<&'a [(Node, Node)], Fault> {
    let entries = node.map();
    entries.ok_or_else(|| (Some(node.line), format!("{what} must be a map, not {}", node.what())))
}

pub(super) fn text(node: &Node, key: &str) -> Result<String, Fault> {
    match (&node.kind, node.text()) {
        (Kind::Nothing, _) => Err((Some(node.line), format!("`{key}` has no value"))),
        (_, Some(text)) => Ok(text.to_owned()),
        (_, None) => {
            Err((Some(node.line), format!("`{key}` must be a string, not {}", node.what())))
        }
    }
}

fn truth(node: &Node, key: &str) -> Result<bool, Fault> {
    let wrong = || (Some(node.line), format!("`{key}` must be true or false, not {}", node.what()));
    node.truth().filter(|_| !node.is_nothing()).ok_or_else(wrong)
}

pub(super) fn texts(node: &Node, key: &str) -> Result<Vec<String>, Fault> {
    let list = node.list();
    let wrong = || (Some(node.line), format!("`{key}` must be a list, not {}", node.what()));
    list.ok_or_else(wrong)?.iter().map(|item| text(item, key)).collect()
}

/// The error for an unknown key, with a similar known one.
fn unknown(key: Option<&str>, what: &str, known: &[&str]) -> String {
    let key = key.unwrap_or("this");
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    match known.iter().find(|known| plain(known) == plain(key)) {
        Some(meant) => format!("{what} has no key `{key}`; did you mean `{meant}`?"),
        None if ["key", "apikey"].contains(&plain(key).as_str()) => {
            "a key does not belong in a file like this; name a variable with key-variable, a \
             program with key-command, or a file with key-file"
                .to_owned()
        }
        None => format!("{what} has no key `{key}`; known keys are {}", known.join(", ")),
    }
}
