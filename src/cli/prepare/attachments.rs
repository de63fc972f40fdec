//! Reads the images and files that options attach to the prompt. What can't be used is reported before
//! anything is run.

use super::inputs::Inputs;
use crate::cli::{AttachmentArgs, Mode};
use crate::command_file::is_stdin;
use crate::host::FilePolicy;
use crate::host::attachments::Reading;
use crate::protocol::attachment::{ATTACHMENT_BYTES_MAX, Attachment, Content, IMAGE, ResourceName};
use crate::protocol::proto::chat::ChatAttachment;
use crate::support::files::read_named_bytes;
use anyhow::{Result, anyhow, ensure};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Adds the files that `args` name to `inputs`.
pub(super) fn add(args: &AttachmentArgs, inputs: &mut Inputs) {
    args.named().for_each(|(option, path, _)| inputs.add_of_prompt(option, Some(path)));
}

/// The attachments that `args` name, in the order of [`AttachmentArgs::named`], and after them the resources, which
/// have still to be read. Their servers are settled once those are known.
///
/// # Errors
/// If one can't be used, or there is no prompt of the command line that they could go with.
pub(super) fn read(args: &AttachmentArgs, mode: Mode) -> Result<Vec<Attachment>> {
    let mut attachments = files(args, mode)?;
    ensure!(
        args.resource.is_empty() || !mode.reads_stdin(),
        "--resource attaches to the prompt of a single run, and the prompts come from standard input \
         here; put `resources` into the submit"
    );
    let resources = (1..).zip(&args.resource).map(|(number, text)| match text.split_once(':') {
        Some((server, uri)) if !server.is_empty() && !uri.is_empty() => {
            let (server, uri) = (server.to_owned(), uri.to_owned());
            Ok(Attachment::resource(number, ResourceName { server, uri }))
        }
        Some(_) | None => Err(anyhow!(
            "--resource {text:?} is not the name of a server, a colon and an address, as in \
             --resource docs:file:///notes.md"
        )),
    });
    attachments.extend(resources.collect::<Result<Vec<_>>>()?);
    Ok(attachments)
}

fn files(args: &AttachmentArgs, mode: Mode) -> Result<Vec<Attachment>> {
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
        let attachment = named(number, path, is_image).and_then(of_pipe);
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

/// The attachment with its content, if that comes out of a pipe; else as it is.
fn of_pipe(attachment: Attachment) -> Result<Attachment, String> {
    let Content::File(path) = &attachment.content else { return Ok(attachment) };
    if !path.metadata().is_ok_and(|about| about.file_type().is_fifo()) {
        return Ok(attachment);
    }
    let bytes_max = usize::try_from(ATTACHMENT_BYTES_MAX).unwrap_or(usize::MAX);
    let (bytes, _) = read_named_bytes(path, bytes_max).map_err(|error| error.to_string())?;
    Ok(Attachment { content: Content::Data(bytes.into()), ..attachment })
}

/// The path or URL for a message: without a password, and without the data of a `data:` URL.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    match text.split_once(':') {
        Some((scheme @ ("http" | "https" | "data"), _)) => format!("{scheme}:\u{2026}"),
        Some(_) | None => text.into_owned(),
    }
}
