//! The files of profiles, and the profile that is chosen.

use super::Check;
use crate::cli::ProviderArgs;
use crate::cli::config::profile::{self, ProfileValues};
use crate::profile::{Layer, Origin, Profiles, Resolved};
use anyhow::Result;
use std::path::Path;

/// The profile that options choose; blank if they choose none.
pub(super) struct Chosen {
    pub(super) values: ProfileValues,
    pub(super) resolved: Option<Resolved>,
}

/// Checks the files and the profile; returns the profile if it can be used.
pub(super) fn check(args: &ProviderArgs, checks: &mut Vec<Check>) -> Option<Chosen> {
    let profiles = match profile::read(&args.registries) {
        Ok(profiles) => profiles,
        Err(error) => {
            checks.push(Check::wrong("profiles", format!("{error:#}")));
            return None;
        }
    };
    for (layer, path, is_trusted) in profiles.files() {
        let shown = file(layer, path, is_trusted);
        // Its values are left out or refused where they matter, which the profile's own line says.
        checks.push(match is_trusted {
            true => Check::fine("file", shown),
            false => Check::note("file", shown),
        });
    }
    let warnings = profiles.warnings().chain(profiles.ignored_default());
    checks.extend(warnings.map(|warning| Check::note("ignored", warning)));
    let Some(name) = profile::name(args) else {
        checks.push(Check::fine("profile", "none is chosen"));
        return Some(Chosen { values: ProfileValues::default(), resolved: None });
    };
    match resolve(&profiles, name) {
        Ok((resolved, values)) => {
            checks.push(Check::fine("profile", shown(&resolved)));
            checks.extend(resolved.warnings().map(|warning| Check::note("left out", warning)));
            Some(Chosen { values, resolved: Some(resolved) })
        }
        Err(error) => {
            checks.push(Check::wrong("profile", format!("{error:#}")));
            None
        }
    }
}

fn resolve(profiles: &Profiles, name: &str) -> Result<(Resolved, ProfileValues)> {
    let resolved = profiles.resolve(name)?;
    let values = ProfileValues::of(&resolved)?;
    Ok((resolved, values))
}

/// A profile for people: its name, its files, and the names of what it sets.
fn shown(profile: &Resolved) -> String {
    let (mut files, mut names) = (Vec::new(), Vec::new());
    for value in &profile.values {
        let Origin { layer, file: path, is_trusted, .. } = &value.origin;
        let file = file(*layer, path, *is_trusted);
        if !files.contains(&file) {
            files.push(file);
        }
        let name = value.item.name();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return format!("{}, which sets nothing", profile.name);
    }
    format!("{}, of {}; sets {}", profile.name, files.join(" and "), names.join(", "))
}

/// A file for people.
fn file(layer: Layer, path: &Path, is_trusted: bool) -> String {
    let trust = match (layer, is_trusted) {
        (Layer::Project, true) => ", trusted",
        (Layer::Project, false) => ", not trusted",
        (Layer::System | Layer::User | Layer::Named, _) => "",
    };
    format!("{} ({}{trust})", path.display(), layer.as_str())
}
