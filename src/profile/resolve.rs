//! What a profile says once all files are read: later files win, and what a file of a project may
//! not say until it is trusted is withheld.

use super::files::ProfileFile;
use super::item::{Item, KeyFrom, Layer, Origin, Sourced};
use super::read::{Draft, Drafts, Fault, Folders, read};
use super::{INHERITED_MAX, ProfileError};
use crate::engine::is_same_address;
use crate::session::approval::ApprovalMode;
use std::collections::BTreeSet;
use std::path::Path;

#[derive(Debug, Default)]
pub(crate) struct Profiles {
    files: Vec<ReadFile>,
}

#[derive(Debug)]
struct ReadFile {
    file: ProfileFile,
    profiles: Vec<Draft>,
    default: Option<(String, u32)>,
    warnings: Vec<(u32, String)>,
}

/// A profile with everything that lies under it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Resolved {
    pub(crate) name: String,
    /// The items that apply, in the order of the files.
    pub(crate) values: Vec<Sourced>,
    /// The items that do not apply, because their file is not trusted.
    pub(crate) withheld: Vec<Withheld>,
}

/// An item that does not apply, because its file is not trusted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Withheld {
    /// The item.
    pub(crate) sourced: Sourced,
    /// The effect of leaving it out.
    pub(crate) effect: Omission,
}

/// The effect of leaving an item out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Omission {
    /// Without it the conversation, or a key, would go elsewhere: the profile can't be used.
    Refused,
    /// The profile can be used without it.
    LeftOut,
}

impl Profiles {
    /// Reads the text of `files`, the later of which win.
    ///
    /// # Errors
    /// If one of them is not a file of profiles.
    pub(crate) fn read(files: Vec<ProfileFile>, home: Option<&Path>) -> Result<Self, ProfileError> {
        let files = files.into_iter().map(|file| {
            let folder = file.path.parent().unwrap_or(Path::new(""));
            let drafts = read(file.text.expose(), Folders { file: folder, home });
            let checked = drafts.and_then(|drafts| {
                check_inline_keys(&file, &drafts.profiles)?;
                Ok(drafts)
            });
            let drafts = match checked {
                Ok(drafts) => drafts,
                Err((line, message)) if file.is_trusted => {
                    let path = file.path.to_path_buf();
                    return Err(ProfileError { file: Some(path), line, message });
                }
                Err((line, message)) => left_out(line, &message),
            };
            let Drafts { profiles, default, warnings } = drafts;
            Ok(ReadFile { file, profiles, default, warnings })
        });
        Ok(Self { files: files.collect::<Result<_, ProfileError>>()? })
    }

    /// The names of all profiles, sorted.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        self.drafts().map(|(_, draft)| draft.name.as_str()).collect()
    }

    /// The files: layer, path, and whether each is the person's own or trusted.
    pub(crate) fn files(&self) -> impl Iterator<Item = (Layer, &Path, bool)> {
        self.files.iter().map(|read| (read.file.layer, &*read.file.path, read.file.is_trusted))
    }

    /// The ignored parts of the files.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        self.files.iter().flat_map(|read| {
            let shown = read.file.path.display();
            read.warnings.iter().map(move |(line, message)| format!("{shown}:{line}: {message}"))
        })
    }

    /// The profile that is used where none is chosen, and the place that says so. A file of a project
    /// says it once it is trusted: another profile of the person has another address and key.
    ///
    /// # Errors
    /// If there is no profile of that name.
    pub(crate) fn default_profile(&self) -> Result<Option<(&str, Origin)>, ProfileError> {
        let Some((name, origin)) = self.defaults().rfind(|(_, origin)| origin.is_trusted) else {
            return Ok(None);
        };
        match self.layer(name) {
            Some(_) => Ok(Some((name, origin))),
            None => Err(ProfileError::at(&origin, format!("`default`: {}", self.no_profile(name)))),
        }
    }

    /// The `default` that does not count, because its file is not trusted, for people.
    pub(crate) fn ignored_default(&self) -> Option<String> {
        let (name, Origin { file, line, is_trusted, .. }) = self.defaults().next_back()?;
        let counts = self.defaults().rfind(|(_, origin)| origin.is_trusted);
        let is_same = counts.is_some_and(|(own, _)| own == name);
        let file = file.display();
        (!is_trusted && !is_same).then(|| {
            format!(
                "{file}:{line}: `default` is left out, because the file is not trusted; read it, \
                 then run `duologue profiles trust {file}`"
            )
        })
    }

    fn defaults(&self) -> impl DoubleEndedIterator<Item = (&str, Origin)> {
        self.files.iter().filter_map(|read| {
            let (name, line) = read.default.as_ref()?;
            Some((name.as_str(), read.file.origin(*line)))
        })
    }

    /// The last layer that has something of the profile `name`.
    pub(crate) fn layer(&self, name: &str) -> Option<Layer> {
        self.drafts().filter(|(_, draft)| draft.name == name).map(|(file, _)| file.layer).last()
    }

    /// The items of the profile `name`.
    ///
    /// # Errors
    /// If there is none, or one that it inherits from is missing.
    pub(crate) fn resolve(&self, name: &str) -> Result<Resolved, ProfileError> {
        let Lineage { names, withheld } = self.lineage(name)?;
        let drafts: Vec<_> = names
            .iter()
            .flat_map(|name| self.drafts().filter(move |it| it.1.name == *name))
            .collect();
        let mut merging = Merging { own: Own::of(drafts.iter().copied()), ..Merging::default() };
        for (file, draft) in drafts {
            for (item, line) in &draft.items {
                merging.add(Sourced { item: item.clone(), origin: file.origin(*line) });
            }
        }
        let withheld = withheld.into_iter().chain(merging.withheld).collect();
        Ok(Resolved { name: name.to_owned(), values: merging.values, withheld })
    }

    /// The profiles that `name` is made of. Once one of them is the person's own, what it inherits is
    /// the person's own choice: another file could take its key and its rules to another address.
    fn lineage(&self, name: &str) -> Result<Lineage, ProfileError> {
        let (mut lineage, mut withheld) = (Vec::new(), Vec::new());
        let mut is_own = false;
        let mut next = Some((name.to_owned(), None));
        while let Some((name, said_at)) = next {
            if lineage.contains(&name) || lineage.len() == INHERITED_MAX {
                let message = format!(
                    "`{name}` inherits from itself, or from more than {INHERITED_MAX} profiles"
                );
                return Err(at(said_at.as_ref(), message));
            }
            let drafts = || self.drafts().filter(|(_, draft)| draft.name == name);
            if drafts().next().is_none() {
                return Err(at(said_at.as_ref(), self.no_profile(&name)));
            }
            is_own |= drafts().any(|(file, _)| file.is_trusted);
            let (counting, other): (Vec<_>, Vec<_>) = drafts()
                .filter_map(|(file, draft)| {
                    let (from, line) = draft.inherits.as_ref()?;
                    Some((from.clone(), file.origin(*line)))
                })
                .partition(|(_, origin)| origin.is_trusted || !is_own);
            next = counting.into_iter().next_back().map(|(from, origin)| (from, Some(origin)));
            let own = next.as_ref().map(|(from, _)| from);
            withheld.extend(other.into_iter().filter(|(from, _)| own != Some(from)).map(
                |(from, origin)| {
                    let sourced = Sourced { item: Item::Inherits(from), origin };
                    Withheld { sourced, effect: Omission::Refused }
                },
            ));
            lineage.push(name);
        }
        lineage.reverse();
        Ok(Lineage { names: lineage, withheld })
    }

    fn no_profile(&self, name: &str) -> String {
        let names: Vec<_> = self.names().into_iter().collect();
        match names.is_empty() {
            true => format!(
                "there is no profile `{name}`: no file of profiles was found; `duologue profiles` \
                 lists where they are looked for"
            ),
            false => format!("there is no profile `{name}`; there are {}", names.join(", ")),
        }
    }

    fn drafts(&self) -> impl Iterator<Item = (&ProfileFile, &Draft)> {
        self.files.iter().flat_map(|read| read.profiles.iter().map(|draft| (&read.file, draft)))
    }
}

/// The profiles that a profile is made of: the one that inherits from no other comes first.
struct Lineage {
    names: Vec<String>,
    /// The items that files without trust must not set.
    withheld: Vec<Withheld>,
}

/// The items of a profile, and of those that it inherits from, in the person's own files.
#[derive(Debug, Default)]
struct Own {
    has_profile: bool,
    engine: Option<String>,
    base_url: Option<String>,
}

impl Own {
    fn of<'a>(drafts: impl Iterator<Item = (&'a ProfileFile, &'a Draft)>) -> Self {
        let mut own = Self::default();
        for (_, draft) in drafts.filter(|(file, _)| file.is_trusted) {
            own.has_profile = true;
            for (item, _) in &draft.items {
                if let Item::Engine(engine) = item {
                    own.engine = Some(engine.clone());
                }
                if let Item::BaseUrl(url) = item {
                    own.base_url = Some(url.clone());
                }
            }
        }
        own
    }

    /// Whether `item` is among them.
    fn says(&self, item: &Item) -> bool {
        let is_own_url = |url| self.base_url.as_ref().is_some_and(|own| is_same_address(own, url));
        matches!(item, Item::Engine(engine) if self.engine.as_ref() == Some(engine))
            || matches!(item, Item::BaseUrl(url) if is_own_url(url))
    }
}

/// In the place of a file of a project that can't be used: it must not take the person's own
/// profiles with it.
fn left_out(line: Option<u32>, message: &str) -> Drafts {
    let warning = format!(
        "{message}; the file is left out, because it is not trusted either; correct it, or remove it"
    );
    Drafts { warnings: vec![(line.unwrap_or(1), warning)], ..Drafts::default() }
}

fn at(origin: Option<&Origin>, message: String) -> ProfileError {
    match origin {
        Some(origin) => ProfileError::at(origin, message),
        None => ProfileError::new(message),
    }
}

/// Whether other users can read a file that holds a key.
fn check_inline_keys(file: &ProfileFile, profiles: &[Draft]) -> Result<(), Fault> {
    if !file.is_open_to_others {
        return Ok(());
    }
    let items = profiles.iter().flat_map(|draft| &draft.items);
    let key = items.into_iter().find(|(item, _)| matches!(item, Item::Key(KeyFrom::Here(_))));
    let Some((_, line)) = key else { return Ok(()) };
    let path = file.path.display();
    let message = format!(
        "it holds a key, and other users can read the file; run `chmod 600 {path}`, or name a \
         variable as in ${{OPENAI_API_KEY}}"
    );
    Err((Some(*line), message))
}

/// The values of a profile as its files are laid over one another.
#[derive(Debug, Default)]
struct Merging {
    own: Own,
    values: Vec<Sourced>,
    withheld: Vec<Withheld>,
}

impl Merging {
    fn add(&mut self, sourced: Sourced) {
        if !sourced.origin.is_trusted {
            // It changes nothing, so the origin of the value stays.
            let is_known = self.values.iter().any(|value| value.item == sourced.item);
            if is_known || self.own.says(&sourced.item) {
                return;
            }
            if let Some(effect) = self.effect(&sourced.item) {
                self.withheld.push(Withheld { sourced, effect });
                return;
            }
        }
        self.values.retain(|value| !value.item.is_replaced_by(&sourced.item));
        self.withheld.retain(|held| !held.sourced.item.is_replaced_by(&sourced.item));
        self.values.push(sourced);
    }

    /// The effect of leaving out `item` of a file without trust; `None` if such a file may set it.
    fn effect(&self, item: &Item) -> Option<Omission> {
        match item {
            Item::Model(_) | Item::System(_) | Item::Deny(_) => None,
            // It makes nothing possible that the model's provider would refuse.
            Item::ContextTokens(_) => None,
            // The file that it adds is trusted or not by itself.
            Item::AgentsFile(_) => None,
            // A profile without an engine of its own has the one that the conversation begins with.
            Item::Engine(_) => self.own.has_profile.then_some(Omission::Refused),
            Item::BaseUrl(_) | Item::Key(_) | Item::Inherits(_) => Some(Omission::Refused),
            // Some providers connect to servers of others if a request asks for that.
            Item::Setting { name, .. } => (name == "extra-body").then_some(Omission::LeftOut),
            Item::Header { .. } | Item::Server { .. } | Item::Allow(_) => Some(Omission::LeftOut),
            Item::Approval(mode) => {
                (strictness(*mode) < strictness(self.approval())).then_some(Omission::LeftOut)
            }
        }
    }

    fn approval(&self) -> ApprovalMode {
        let mode = |value: &Sourced| {
            if let Item::Approval(mode) = value.item { Some(mode) } else { None }
        };
        self.values.iter().rev().find_map(mode).unwrap_or_default()
    }
}

fn strictness(mode: ApprovalMode) -> u8 {
    match mode {
        ApprovalMode::Auto => 0,
        ApprovalMode::Ask => 1,
        ApprovalMode::Deny => 2,
    }
}

impl Resolved {
    /// Why the profile can't be used, if that is so.
    pub(crate) fn refusal(&self) -> Option<ProfileError> {
        let held = self.withheld.iter().find(|held| held.effect == Omission::Refused)?;
        let Origin { file, .. } = &held.sourced.origin;
        let message = format!(
            "the profile `{}` can't be used: its `{}` comes from a file of the project that you \
             have not trusted; read the file, then run `duologue profiles trust {}`",
            self.name,
            held.sourced.item.name(),
            file.display()
        );
        Some(ProfileError::at(&held.sourced.origin, message))
    }

    /// The items that are left out, for people.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let left_out = self.withheld.iter().filter(|held| held.effect == Omission::LeftOut);
        left_out.map(|held| {
            let Origin { file, line, .. } = &held.sourced.origin;
            let (file, name) = (file.display(), held.sourced.item.name());
            format!(
                "{file}:{line}: `{name}` is left out, because the file is not trusted; read it, \
                 then run `duologue profiles trust {file}`"
            )
        })
    }
}
