//! What fuzz targets check of files of profiles.

use super::add::{NewProfile, NotAdded};
use super::item::KeyFrom;
use super::read::{Folders, read};
use std::path::Path;

/// Checks that lines in errors and warnings are lines of the file, and that a profile which is added to it is
/// there afterwards, once.
pub(crate) fn profiles(text: &str) {
    let folder = Path::new("/folder");
    let folders = Folders { file: folder, home: Some(Path::new("/home/me")) };
    let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count();
    let is_line = |line: u32| line >= 1 && usize::try_from(line).is_ok_and(|line| line <= lines);
    match read(text, folders) {
        Err((line, message)) => assert!(line.is_none_or(is_line), "{line:?}: {message}"),
        Ok(drafts) => {
            let warned = drafts.warnings.iter().map(|(line, _)| *line);
            let items =
                drafts.profiles.iter().flat_map(|it| it.items.iter().map(|(_, line)| *line));
            for line in warned.chain(items).chain(drafts.default.map(|(_, line)| line)) {
                assert!(is_line(line), "line {line} of {lines}");
            }
        }
    }
    let new = NewProfile {
        name: "brand new: # '1'".to_owned(),
        engine: "openai".to_owned(),
        model: Some("yes".to_owned()),
        base_url: None,
        key: Some(KeyFrom::Variable("A_KEY".to_owned())),
    };
    if let Ok(added) = new.added_to(text, folder) {
        let again = new.added_to(&added.text, folder);
        assert_eq!(again, Err(NotAdded::Exists(new.name)));
    }
}

/// Parses a file, for measurements.
#[cfg(test)]
pub(crate) fn parse(text: &str) {
    drop(read(text, Folders { file: Path::new("/folder"), home: None }));
}
