//! The settings of a command file: its own `settings`, and `factories` as pinocchio has them
//! (go-go-golems/geppetto, `pkg/steps/ai/settings`).

use super::CommandFile;
use super::parse::FileFault;
use crate::engine::CallSettings;
use crate::profile::{engine_of, setting_of};
use crate::yaml::Node;

/// Keys of `factories: chat:` whose only value here is the one that every run has.
const ALWAYS: [&str; 1] = ["stream"];

/// Reads `settings`: names of settings of a call, and `model`.
///
/// # Errors
/// If there is no such setting, or it can't have that value.
pub(super) fn own(node: &Node, file: &mut CommandFile) -> Result<(), FileFault> {
    for (key, value) in map(node, "settings")? {
        match key.text().unwrap_or_default() {
            "model" => file.model = Some(text(value, "model")?),
            name => set(name, value, file)?,
        }
    }
    Ok(())
}

/// Reads `factories`; returns its ignored parts, with their lines.
///
/// # Errors
/// If a setting can't have its value.
pub(super) fn of_pinocchio(
    node: &Node,
    file: &mut CommandFile,
) -> Result<Vec<(u32, String)>, FileFault> {
    let mut ignored = Vec::new();
    for (section, settings) in map(node, "factories")? {
        let section = section.text().unwrap_or_default();
        for (key, value) in settings.map().unwrap_or_default() {
            let name = key.text().unwrap_or_default();
            if value.is_nothing() || ALWAYS.contains(&name) {
                continue;
            }
            let known = if section == "chat" { setting_of(name) } else { None };
            match (section, name, known) {
                ("chat", "engine", _) => file.model = Some(text(value, name)?),
                ("chat", "api_type", _) => {
                    let api_type = text(value, name)?;
                    match engine_of(&api_type) {
                        Some(engine) => file.engine = Some(engine.to_owned()),
                        None => {
                            ignored.push((key.line, not_taken(&format!("api_type: {api_type}"))))
                        }
                    }
                }
                ("chat", _, Some(own)) if value.list().is_none_or(|list| !list.is_empty()) => {
                    set(own, value, file)?;
                }
                ("chat", _, Some(_)) => {}
                (_, _, _) => ignored.push((key.line, not_taken(&format!("{section}.{name}")))),
            }
        }
    }
    Ok(ignored)
}

fn not_taken(what: &str) -> String {
    format!("`{what}` in `factories` has no counterpart here and is ignored")
}

fn set(name: &str, value: &Node, file: &mut CommandFile) -> Result<(), FileFault> {
    let json = value.json();
    let set = CallSettings::default().set(name, &json);
    set.map_err(|why| (value.line, format!("`settings`: {why}")))?;
    file.settings.push((name.to_owned(), json));
    Ok(())
}

fn map<'a>(node: &'a Node, key: &str) -> Result<&'a [(Node, Node)], FileFault> {
    let entries = node.map();
    entries.ok_or_else(|| (node.line, format!("`{key}` must be a map, not {}", node.what())))
}

fn text(node: &Node, key: &str) -> Result<String, FileFault> {
    let text = node.text().map(str::to_owned);
    text.ok_or_else(|| (node.line, format!("`{key}` must be a string, not {}", node.what())))
}
