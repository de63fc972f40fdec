//! Reads profiles that were written for Pinocchio: a map of names to sections of settings, and the
//! registries of its later versions (go-go-golems/geppetto, `pkg/profiles`, `pkg/engineprofiles`).
//! A setting without counterpart is reported with its line.

use super::item::{Item, KeyFrom};
use super::read::{Draft, Drafts, Fault, map, profile_name, setting, text};
use crate::support::secret::Secret;
use crate::yaml::Node;

/// Keys of a profile in a registry.
const REGISTRY_KEYS: [&str; 4] = ["runtime", "inference_settings", "stack", "slug"];

/// Keys that say nothing about a conversation.
const DESCRIPTIONS: [&str; 8] = [
    "slug",
    "display_name",
    "description",
    "metadata",
    "policy",
    "extensions",
    "created_at",
    "updated_at",
];

/// Settings whose only value here is the one that every conversation has.
const ALWAYS: [&str; 2] = ["ai-stream", "stream"];

/// Names of a setting in sections, in the order of its names in `settings`.
const SETTINGS: [(&str, &[&str]); 7] = [
    ("temperature", &["ai-temperature", "inference-temperature", "temperature"]),
    ("top-p", &["ai-top-p", "inference-top-p", "top_p"]),
    (
        "max-tokens",
        &[
            "ai-max-response-tokens",
            "inference-max-response-tokens",
            "max_response_tokens",
            "max_tokens",
        ],
    ),
    ("stop", &["ai-stop", "inference-stop", "stop"]),
    ("seed", &["inference-seed", "ollama-seed", "seed"]),
    (
        "reasoning-effort",
        &["inference-reasoning-effort", "openai-reasoning-effort", "reasoning_effort"],
    ),
    ("reasoning-budget", &["inference-thinking-budget", "thinking_budget"]),
];

/// Engines by the names of Pinocchio's types of APIs, with the word that its keys and base URLs begin
/// with.
const TYPES: [(&str, &str, &str); 8] = [
    ("openai", "openai", "openai"),
    ("openai-responses", "responses", "openai"),
    ("claude", "anthropic", "claude"),
    ("anthropic", "anthropic", "claude"),
    ("gemini", "gemini", "gemini"),
    ("ollama", "ollama", "ollama"),
    ("anyscale", "openai", "anyscale"),
    ("fireworks", "openai", "fireworks"),
];

/// The engine that Pinocchio calls `api_type`.
pub(crate) fn engine_of(api_type: &str) -> Option<&'static str> {
    TYPES.iter().find(|(name, ..)| *name == api_type).map(|(_, engine, _)| *engine)
}

/// The setting that Pinocchio calls `name`.
pub(crate) fn setting_of(name: &str) -> Option<&'static str> {
    SETTINGS.iter().find(|(_, names)| names.contains(&name)).map(|(own, _)| *own)
}

/// Whether a file is of one of these forms.
pub(super) fn is_one(document: &Node) -> bool {
    if document.get("registries").is_some() || document.get("slug").is_some() {
        return true;
    }
    let entries = |node: &Node| node.map().unwrap_or_default().len();
    match document.get("profiles") {
        Some(profiles) => profiles
            .map()
            .unwrap_or_default()
            .iter()
            .any(|(_, profile)| REGISTRY_KEYS.iter().any(|key| profile.get(key).is_some())),
        None => {
            let profiles = document.map().unwrap_or_default();
            entries(document) > 0 && profiles.iter().any(|(_, profile)| has_section(profile))
        }
    }
}

fn has_section(profile: &Node) -> bool {
    let sections = profile.map().unwrap_or_default();
    sections.iter().any(|(name, section)| {
        let name = name.text().unwrap_or_default();
        section.map().is_some() && (name.ends_with("-chat") || name.starts_with("ai-"))
    })
}

/// The profiles of such a file.
///
/// # Errors
/// If a part that decides where a conversation goes can't be taken.
pub(super) fn read(document: &Node) -> Result<Drafts, Fault> {
    let mut drafts = Drafts::default();
    if let Some(registries) = document.get("registries") {
        let registries = map(registries, "`registries`")?;
        for (_, registry) in registries {
            registry_profiles(registry, registries.len() == 1, &mut drafts)?;
        }
        return Ok(drafts);
    }
    if document.get("profiles").is_some() {
        registry_profiles(document, true, &mut drafts)?;
        return Ok(drafts);
    }
    for (name, sections) in map(document, "a file of profiles")? {
        let mut reading = ProfileReader::new(name, &mut drafts.warnings)?;
        reading.sections(sections)?;
        drafts.profiles.push(reading.end()?);
    }
    Ok(drafts)
}

/// Adds the profiles of a registry; `is_only`: it is the only one of its file, so that its default is the file's.
fn registry_profiles(registry: &Node, is_only: bool, drafts: &mut Drafts) -> Result<(), Fault> {
    for (key, value) in map(registry, "a registry")? {
        match key.text().unwrap_or_default() {
            "profiles" => {
                for (name, profile) in map(value, "`profiles`")? {
                    let mut reading = ProfileReader::new(name, &mut drafts.warnings)?;
                    reading.registered(profile)?;
                    drafts.profiles.push(reading.end()?);
                }
            }
            // Pinocchio has none then, too.
            "default_profile_slug" if is_blank(value) => {}
            "default_profile_slug" if is_only => {
                drafts.default = Some((profile_name(value)?, key.line));
            }
            known if DESCRIPTIONS.contains(&known) => {}
            other => drafts.warnings.push((key.line, not_taken(other))),
        }
    }
    Ok(())
}

fn is_blank(value: &Node) -> bool {
    value.is_nothing() || value.text().is_some_and(|text| text.trim().is_empty())
}

fn not_taken(what: &str) -> String {
    format!("`{what}` of Pinocchio has no counterpart here and is ignored")
}

/// One profile.
struct ProfileReader<'a> {
    draft: Draft,
    warnings: &'a mut Vec<(u32, String)>,
    /// The type of API, and its line.
    api_type: Option<(String, u32)>,
    /// Keys and base URLs by the word before them, as they apply to one type of API each.
    keys: Vec<(String, KeyFrom, u32)>,
    base_urls: Vec<(String, String, u32)>,
}

impl<'a> ProfileReader<'a> {
    fn new(name: &Node, warnings: &'a mut Vec<(u32, String)>) -> Result<Self, Fault> {
        let draft = Draft::new(&profile_name(name)?);
        Ok(Self { draft, warnings, api_type: None, keys: Vec::new(), base_urls: Vec::new() })
    }

    /// A profile of a registry.
    fn registered(&mut self, profile: &Node) -> Result<(), Fault> {
        for (key, value) in map(profile, "a profile")? {
            match key.text().unwrap_or_default() {
                "runtime" => self.runtime(value)?,
                "inference_settings" => self.inference(value)?,
                "stack" => self.stack(value)?,
                known if DESCRIPTIONS.contains(&known) => {}
                other => self.warnings.push((key.line, not_taken(other))),
            }
        }
        Ok(())
    }

    fn runtime(&mut self, runtime: &Node) -> Result<(), Fault> {
        for (key, value) in map(runtime, "`runtime`")? {
            match key.text().unwrap_or_default() {
                "system_prompt" => {
                    let system = text(value, "system_prompt")?;
                    self.draft.push(Item::System(system), key.line);
                }
                "step_settings_patch" => self.sections(value)?,
                other => self.warnings.push((key.line, not_taken(other))),
            }
        }
        Ok(())
    }

    /// Settings under the names of the structures that hold them.
    fn inference(&mut self, settings: &Node) -> Result<(), Fault> {
        for (key, value) in map(settings, "`inference_settings`")? {
            match key.text().unwrap_or_default() {
                "chat" | "inference" => self.section(value)?,
                "api" => {
                    for (kind, addresses) in map(value, "`api`")? {
                        match kind.text().unwrap_or_default() {
                            "api_keys" | "base_urls" => self.section(addresses)?,
                            other => self.warnings.push((kind.line, not_taken(other))),
                        }
                    }
                }
                other => self.warnings.push((key.line, not_taken(other))),
            }
        }
        Ok(())
    }

    /// The profiles that lie under this one: none, or one.
    fn stack(&mut self, stack: &Node) -> Result<(), Fault> {
        let line = stack.line;
        match stack.list() {
            Some([]) => Ok(()),
            Some([one]) => match one.get("profile_slug") {
                Some(name) => {
                    self.draft.inherits = Some((text(name, "profile_slug")?, line));
                    Ok(())
                }
                None => Err((Some(line), "an entry of `stack` has no `profile_slug`".to_owned())),
            },
            Some(_) | None => Err((
                Some(line),
                "`stack` lists several profiles, and a profile here inherits from one; let each \
                 of them inherit from the one before"
                    .to_owned(),
            )),
        }
    }

    fn sections(&mut self, sections: &Node) -> Result<(), Fault> {
        for (name, section) in map(sections, "a profile")? {
            match section.map() {
                Some(_) => self.section(section)?,
                None => {
                    let name = name.text().unwrap_or_default();
                    self.warnings.push((section.line, not_taken(name)));
                }
            }
        }
        Ok(())
    }

    fn section(&mut self, section: &Node) -> Result<(), Fault> {
        for (key, value) in map(section, "a section")? {
            let name = key.text().unwrap_or_default();
            if value.is_nothing() || ALWAYS.contains(&name) {
                continue;
            }
            if let Some(own) = setting_of(name) {
                // An empty list of stop sequences is how Pinocchio writes that there are none.
                if value.list().is_none_or(|list| !list.is_empty()) {
                    self.draft.push(setting(own, value)?, key.line);
                }
                continue;
            }
            self.one(name, key, value)?;
        }
        Ok(())
    }

    fn one(&mut self, name: &str, key: &Node, value: &Node) -> Result<(), Fault> {
        let line = key.line;
        match name {
            "ai-engine" | "engine" => self.draft.push(Item::Model(text(value, name)?), line),
            "ai-api-type" | "api_type" => self.api_type = Some((text(value, name)?, line)),
            _ => {
                if let Some(word) = name.strip_suffix("-api-key") {
                    let from = key_from(&text(value, name)?);
                    self.keys.extend(from.map(|from| (word.to_owned(), from, line)));
                } else if let Some(word) = name.strip_suffix("-base-url") {
                    self.base_urls.push((word.to_owned(), text(value, name)?, line));
                } else {
                    self.warnings.push((line, not_taken(name)));
                }
            }
        }
        Ok(())
    }

    /// The profile, with the key and the base URL of its type of API.
    fn end(mut self) -> Result<Draft, Fault> {
        let words = self.keys.iter().map(|(word, _, line)| (word.as_str(), *line));
        let words =
            words.chain(self.base_urls.iter().map(|(word, _, line)| (word.as_str(), *line)));
        let first = words.into_iter().next().map(|(word, line)| (word.to_owned(), line));
        let Some((api_type, line)) = self.api_type.clone().or(first) else {
            return Ok(self.draft);
        };
        let Some((_, engine, word)) = TYPES.iter().find(|(name, ..)| *name == api_type) else {
            let known: Vec<_> = TYPES.iter().map(|(name, ..)| *name).collect();
            let message = format!(
                "the type of API `{api_type}` is not known here, so the profile `{}` can't be \
                 used; known types are {}",
                self.draft.name,
                known.join(", ")
            );
            return Err((Some(line), message));
        };
        self.draft.push(Item::Engine((*engine).to_owned()), line);
        for (of, from, line) in std::mem::take(&mut self.keys) {
            if of == *word {
                self.draft.push(Item::Key(from), line);
            }
        }
        for (of, url, line) in std::mem::take(&mut self.base_urls) {
            if of == *word && !url.trim().is_empty() {
                self.draft.push(Item::BaseUrl(url), line);
            }
        }
        Ok(self.draft)
    }
}

/// A literal key, or the variable in `${…}`. Blank counts as none.
fn key_from(text: &str) -> Option<KeyFrom> {
    let variable = text.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    match variable {
        Some(name) => Some(KeyFrom::Variable(name.to_owned())),
        None => Secret::new(text).map(KeyFrom::Here),
    }
}
