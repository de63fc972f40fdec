//! The flags and arguments of a command file.

use super::{FileFault, FileReader, list, text, texts, truth};
use crate::command_file::flag::{Flag, Type};
use crate::command_file::{CommandFile, default};
use crate::yaml::{Kind, Node};

const FLAG_KEYS: [&str; 8] =
    ["name", "shortFlag", "type", "help", "default", "choices", "required", "short"];

/// Most flags, arguments and choices of a flag in a file.
const LIST_MAX: usize = 1000;

/// Characters allowed in the name of a flag.
const NAME_EXPECTED: &str =
    "a name has letters, digits, `-`, `_` and `.`, and begins with a letter or digit";

impl FileReader<'_> {
    pub(super) fn flags(&mut self, node: &Node, key: &str) -> Result<Vec<Flag>, FileFault> {
        let items = list(node, key)?;
        short_enough(items, key)?;
        let flags = items.iter().map(|item| self.flag(item, key == "arguments"));
        let mut flags: Vec<Flag> = flags.collect::<Result<_, _>>()?;
        // Arguments are positional: one can be left out only if all after it can.
        let mut is_followed = false;
        for flag in flags.iter_mut().rev() {
            flag.required &= flag.default.is_none() || is_followed;
            is_followed = flag.is_argument && (is_followed || flag.required);
        }
        Ok(flags)
    }

    fn flag(&mut self, node: &Node, is_argument: bool) -> Result<Flag, FileFault> {
        let Kind::Map(entries) = &node.kind else {
            let message =
                format!("a flag is a map with `name` and `type`; this is {}", node.what());
            return Err((node.line, message));
        };
        for (key, _) in entries {
            if !FLAG_KEYS.contains(&key.text().unwrap_or_default()) {
                self.unknown(key, &FLAG_KEYS);
            }
        }
        let get = |key| node.get(key);
        let name = flag_name(get("name"), node.line)?;
        let in_flag = |(line, message)| (line, format!("flag `{name}`: {message}"));
        let kind = flag_type(get("type"), node.line).map_err(in_flag)?;
        let choices = get("choices").map_or(Ok(Vec::new()), choices).map_err(in_flag)?;
        if matches!(kind, Type::Choice | Type::ChoiceList) && choices.is_empty() {
            return Err(in_flag((node.line, "it has no `choices`; list them".into())));
        }
        let default = get("default").map_or(Ok(None), |value| {
            default::read(value, kind, &choices).map_err(|message| in_flag((value.line, message)))
        })?;
        Ok(Flag {
            // glazed uses the first name, but people write the second.
            short: get("shortFlag").or(get("short")).map_or(Ok(None), letter).map_err(in_flag)?,
            required: get("required")
                .map_or(Ok(false), |node| truth(node, "required"))
                .map_err(in_flag)?,
            help: get("help").map_or(Ok(String::new()), |help| text(help, "help"))?,
            name: name.clone(),
            kind,
            default,
            choices,
            is_argument,
            line: node.line,
        })
    }
}

/// The name of the flag that begins in this line.
fn flag_name(node: Option<&Node>, line: u32) -> Result<String, FileFault> {
    let node = node.ok_or_else(|| (line, "a flag here has no `name`; give it one".to_owned()))?;
    let name = node.text().unwrap_or_default();
    let is_part = |char: char| char.is_alphanumeric() || matches!(char, '-' | '_' | '.');
    if name.chars().all(is_part) && name.starts_with(char::is_alphanumeric) {
        return Ok(name.to_owned());
    }
    Err((node.line, format!("`{name}` can't be the name of a flag: {NAME_EXPECTED}")))
}

fn flag_type(node: Option<&Node>, line: u32) -> Result<Type, FileFault> {
    let names = || Type::ALL.map(Type::name).join(", ");
    let node = node.ok_or_else(|| (line, format!("it has no `type`; known are {}", names())))?;
    let name = node.text().unwrap_or_default();
    let kind = Type::named(name);
    kind.ok_or_else(|| (node.line, format!("unknown type `{name}`; known are {}", names())))
}

fn choices(node: &Node) -> Result<Vec<String>, FileFault> {
    short_enough(list(node, "choices")?, "choices")?;
    texts(node, "choices")
}

/// Items of a list are held against each other.
fn short_enough(items: &[Node], key: &str) -> Result<(), FileFault> {
    items.get(LIST_MAX).map_or(Ok(()), |item| {
        Err((item.line, format!("`{key}` has more than {LIST_MAX} items; remove some")))
    })
}

fn letter(node: &Node) -> Result<Option<char>, FileFault> {
    let mut letters = node.text().unwrap_or_default().chars();
    match (letters.next(), letters.next()) {
        (None, _) => Ok(None),
        (Some(letter), None) if letter.is_alphanumeric() || letter == '?' => Ok(Some(letter)),
        _ => Err((node.line, "`shortFlag` must be one letter".to_owned())),
    }
}

/// Names and letters are taken once, and places can be distinguished.
pub(super) fn check(file: &CommandFile) -> Result<(), FileFault> {
    let all: Vec<&Flag> = file.flags.iter().chain(&file.arguments).collect();
    for (index, flag) in all.iter().enumerate() {
        let earlier = &all[..index];
        if let Some(other) = earlier.iter().find(|other| other.option() == flag.option()) {
            let message = format!(
                "the name `{}` is taken: `{}` in line {} is typed the same way; rename one of them",
                flag.name, other.name, other.line
            );
            return Err((flag.line, message));
        }
        let same = |other: &&&Flag| flag.short.is_some() && other.short == flag.short;
        if let Some(other) = earlier.iter().find(same) {
            let message = format!(
                "flag `{}` has the same letter as `{}` in line {}; change one of them",
                flag.name, other.name, other.line
            );
            return Err((flag.line, message));
        }
    }
    for pair in file.arguments.windows(2) {
        let [before, after] = pair else { continue };
        if before.takes_many() {
            let message = format!(
                "argument `{}` takes all remaining values, so nothing can follow it",
                before.name
            );
            return Err((after.line, message));
        }
        if after.required && !before.required {
            let message = format!(
                "argument `{}` is required and follows `{}`, which is not; swap them",
                after.name, before.name
            );
            return Err((after.line, message));
        }
    }
    Ok(())
}
