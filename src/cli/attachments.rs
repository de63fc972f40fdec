//! Options that attach images and files to the prompt of a single run.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Images and files that go with a prompt.
#[derive(Args, Debug)]
pub struct AttachmentArgs {
    /// Attach this image to the prompt; a URL is read by the provider. May be repeated
    #[arg(long, value_name = "PATH|URL", value_hint = ValueHint::FilePath)]
    pub image: Vec<PathBuf>,

    /// Attach this file of any type, as a PDF document, to the prompt. May be repeated
    #[arg(long, value_name = "PATH|URL", value_hint = ValueHint::FilePath)]
    pub attach: Vec<PathBuf>,

    /// Attach this resource of an MCP server to the prompt: the name of the server, a colon, and the address
    /// that `duologue mcp resources` lists. May be repeated
    #[arg(long, value_name = "SERVER:URI")]
    pub resource: Vec<String>,

    /// The same as `--image`, with a comma between two, as pinocchio has it
    #[arg(long, value_name = "PATHS", value_delimiter = ',', hide = true)]
    pub images: Vec<PathBuf>,
}

impl AttachmentArgs {
    /// The paths of the options, images first, and whether each must be an image.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, &PathBuf, bool)> {
        let image = self.image.iter().map(|path| ("--image", path, true));
        let images = self.images.iter().map(|path| ("--images", path, true));
        let attach = self.attach.iter().map(|path| ("--attach", path, false));
        image.chain(images).chain(attach)
    }
}
