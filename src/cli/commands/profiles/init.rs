//! `duologue profiles init`: asks for what the options do not say, and adds a profile to the user's
//! file.

mod answers;

use super::ask::Person;
use crate::cli::commands::args::InitProfileArgs;
use crate::cli::commands::document::Document;
use crate::cli::commands::readiness::readiness;
use crate::cli::config::engine::ProviderChoice;
use crate::cli::config::profile::{self, ProfileValues};
use crate::cli::{ProfileFiles, ProviderArgs};
use crate::engine::shown_address;
use crate::profile::add::{Added, NewProfile, ensure_new};
use crate::profile::files::{Places, ProfileFile};
use crate::profile::{FILE_BYTES_MAX, KeyFrom, Layer, Profiles};
use crate::support::files::{
    WorkFolder, lock_folder_of, make_folders_of, read_limited, replace, target_of,
};
use crate::support::shell_words;
use crate::tool::config::Protected;
use answers::{Answers, Doubt, KeyPlace};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of typed keys, beside the file of profiles.
const KEYS_FOLDER: &str = "keys";

/// Mode of a file with a key.
const PRIVATE_MODE: u32 = 0o600;

/// A key that was typed, and the file that it gets.
struct TypedKey {
    path: PathBuf,
    key: String,
}

/// Writes the profile that `args`, and the answers of a person, describe.
///
/// # Errors
/// If something is missing and nobody can be asked, or the file can't be written. Then it is as it was.
pub(super) fn init(args: &InitProfileArgs) -> Result<Document> {
    let places = Places::find(&[], &WorkFolder::default());
    let path = places.user().context("there is no place for your file of profiles; set HOME")?;
    // The file is read by its own name: what it says of files is relative to the folder of that.
    let folder = path.parent().unwrap_or(Path::new(""));
    // A link stays a link.
    let target = target_of(path).with_context(|| format!("{} can't be written", path.display()))?;
    let text = text_of(&target)?;
    let is_new = |name: &str| ensure_new(name, &text, folder);
    // Before anything is asked.
    if let Some(name) = &args.name {
        is_new(name.trim()).with_context(|| path.display().to_string())?;
    }
    let answers = Answers::of(args, Person::at_terminal(), is_new)?;
    let doubt = answers.doubt.clone();
    let (profile, typed) = profile_of(answers, folder);
    if let Some(typed) = &typed {
        let written = write_key(typed);
        written.with_context(|| format!("nothing was written; {}", typed.path.display()))?;
    }
    let added = add(&profile, path, &target, places.home.as_deref());
    if let (Err(_), Some(typed)) = (&added, &typed) {
        // The error is the one of the profile.
        std::fs::remove_file(&typed.path).ok();
    }
    let added = added.with_context(|| format!("nothing was written to {}", path.display()))?;
    Ok(report(&profile, &added, path, doubt))
}

fn profile_of(answers: Answers, folder: &Path) -> (NewProfile, Option<TypedKey>) {
    let Answers { name, engine, base_url, model, key, .. } = answers;
    let (key, typed) = match key {
        KeyPlace::Nowhere => (None, None),
        KeyPlace::At(from) => (Some(from), None),
        KeyPlace::Typed(key) => {
            let file = Path::new(KEYS_FOLDER).join(file_name(&name));
            (Some(KeyFrom::File(file.clone())), Some(TypedKey { path: folder.join(file), key }))
        }
    };
    (NewProfile { name, engine: answers::word(engine), model, base_url, key }, typed)
}

/// The text of the file at `path`; blank if there is none.
fn text_of(path: &Path) -> Result<String> {
    match read_limited(path, FILE_BYTES_MAX) {
        Ok((text, _)) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => bail!("{} can't be read: {error}", path.display()),
    }
}

/// Adds the profile to the file at `path`, which may be a link to `target`.
fn add(profile: &NewProfile, path: &Path, target: &Path, home: Option<&Path>) -> Result<Added> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let added = || anyhow::Ok(profile.added_to(&text_of(target)?, folder)?);
    // A lock is not held while a key is looked for, which may take long.
    checked(&added()?, profile, path, home)?;
    // Another process may have added a profile meanwhile.
    let _lock = lock_folder_of(target)?;
    let added = added()?;
    replace(target, added.text.as_bytes())?;
    Ok(added)
}

/// Checks that the profile can be used as it will be read. A variable may be set later.
fn checked(added: &Added, profile: &NewProfile, path: &Path, home: Option<&Path>) -> Result<()> {
    let file = ProfileFile {
        layer: Layer::User,
        path: Arc::from(path),
        text: Protected::new(added.text.clone()),
        is_trusted: true,
        is_open_to_others: false,
    };
    let profiles = Profiles::read(vec![file], home)?;
    let values = ProfileValues::of(&profiles.resolve(&profile.name)?)?;
    if matches!(profile.key, Some(KeyFrom::Variable(_))) {
        return Ok(());
    }
    let choice = ProviderChoice::other(&ProviderArgs::default(), &values)?;
    choice.check_key().map_err(|why| anyhow!(why))
}

/// Writes a key into a new file that its owner alone can read.
fn write_key(TypedKey { path, key }: &TypedKey) -> Result<()> {
    make_folders_of(path)?;
    let opened = OpenOptions::new().write(true).create_new(true).mode(PRIVATE_MODE).open(path);
    let mut file = match opened {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => bail!(
            "there is such a file already, which stays as it is; name it with --key-file, or give \
             the profile another name"
        ),
        opened => opened?,
    };
    file.write_all(format!("{key}\n").as_bytes())?;
    Ok(file.sync_all()?)
}

/// What was written; `doubt` is what was found when the server was asked for its models.
fn report(profile: &NewProfile, added: &Added, path: &Path, doubt: Option<Doubt>) -> Document {
    let NewProfile { name, engine, model, base_url, key } = profile;
    let profiles = profile::read(&ProfileFiles::default()).unwrap_or_default();
    let mut readiness = readiness(profiles.resolve(name));
    if let Some(doubt) = doubt {
        (readiness.can_answer, readiness.why) = (false, doubt.to_string());
    }
    let is_default = added.default == *name;
    let (which, option) = match is_default {
        true => ("it is the default".to_owned(), String::new()),
        false => {
            let option = shell_words::joined(["--profile", name]).unwrap_or_default();
            (format!("the default is still `{}`", added.default), format!(" {option}"))
        }
    };
    let can = if readiness.can_answer { "it is complete" } else { "it can't answer yet" };
    let try_it = match readiness.can_answer {
        true => format!("try it: duologue exec{option} hello\n"),
        false => String::new(),
    };
    let text = format!(
        "the profile `{name}` is in {}; {which}\n{can}: {}\n{try_it}",
        path.display(),
        readiness.why
    );
    let data = json!({
        "name": name,
        "path": path.display().to_string(),
        "engine": engine,
        "model": model,
        "baseUrl": base_url.as_deref().map(shown_address),
        "key": key.as_ref().map(ToString::to_string),
        "default": is_default,
        "canAnswer": readiness.can_answer,
        "why": readiness.why,
    });
    Document { text: text.into_bytes(), data }
}

/// The name of a profile as one of a file.
fn file_name(name: &str) -> String {
    let is_fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    name.chars().map(|c| if is_fine(c) { c } else { '_' }).collect()
}
