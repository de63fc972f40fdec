//! Reads the images and files that options attach to the prompt. What can't be used is reported before
//! anything is run.

use super::inputs::Inputs;
use crate::cli::{AttachmentArgs, Mode};
use crate::command_file::is_stdin;
use crate::host::FilePolicy;
use crate::host::attachments::Reading;
use crate::protocol::attachment::{Attachment, Content, IMAGE};
use crate::protocol::proto::chat::ChatAttachment;
use anyhow::{Result, anyhow, ensure};
use std::path::Path;

/// Adds the files that `args` name to `inputs`.
pub(super) fn add(args: &AttachmentArgs, inputs: &mut Inputs) {
    args.named().for_each(|(option, path, _)| inputs.add(option, Some(path)));
}

/// The attachments that `args` name, in the order of [`AttachmentArgs::named`].
///
/// # Errors
/// If one can't be used, or there is no prompt of the command line that they could go with.
pub(super) fn read(args: &AttachmentArgs, mode: Mode) -> Result<Vec<Attachment>> {
    let mut reading = Reading::new(&FilePolicy::Any, 0);
    let numbered = (1..).zip(args.named());
    let attachments = numbered.map(|(number, (option, path, is_image))| {
        ensure!(
            !mode.reads_stdin(),
            "{option} attaches to the prompt of a single run, and the prompts come from standard \
             input here; put `attachments` into the submit"
        );
        ensure!(
            !is_stdin(path),
            "{option} can't be standard input; write it to a file first, and name that"
        );
        let attachment = named(number, path, is_image);
        attachment
            .and_then(|attachment| reading.read(attachment))
            .map_err(|why| anyhow!("{option} {}: {why}", shown(path)))
    });
    attachments.collect()
}

fn named(number: u32, path: &Path, is_image: bool) -> Result<Attachment, String> {
    let kind = if is_image { IMAGE.to_owned() } else { String::new() };
    let shown = ChatAttachment { kind, ..ChatAttachment::default() };
    match path.to_str() {
        Some(url) => Attachment::named(number, ChatAttachment { url: url.to_owned(), ..shown }),
        // No URL, then.
        None => Ok(Attachment { shown, content: Content::File(path.to_owned()) }),
    }
}

/// The path or URL for a message: without a password, and without the data of a `data:` URL.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    match text.split_once(':') {
        Some((scheme @ ("http" | "https" | "data"), _)) => format!("{scheme}:\u{2026}"),
        Some(_) | None => text.into_owned(),
    }
}
