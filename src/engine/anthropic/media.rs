//! Images and documents in the form that the provider takes
//! (<https://platform.claude.com/docs/en/build-with-claude/vision>).

use crate::engine::provider::interface::Refused;
use crate::protocol::attachment::{Attachment, Kind};
use serde::Serialize;

/// An attachment, as the provider takes it.
pub(super) enum Media<'a> {
    Text(String),
    Image(Source<'a>),
    /// A PDF document, with its name.
    Document(Source<'a>, &'a str),
}

/// Where the content is.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'a str, data: String },
    Url { url: &'a str },
}

/// `attachment`, as the provider takes it.
///
/// # Errors
/// If it takes none of that kind.
pub(super) fn media(attachment: &Attachment) -> Result<Media<'_>, Refused> {
    let media = match (attachment.kind(), attachment.as_text(), source(attachment)) {
        (Kind::Text, Some(text), _) => Some(Media::Text(text)),
        // The type of an image that only the provider reads is its to judge.
        (Kind::Image, _, Some(source)) if attachment.url().is_some() => Some(Media::Image(source)),
        (Kind::Image, _, Some(source)) if attachment.is_common_image() => {
            Some(Media::Image(source))
        }
        (Kind::Pdf, _, Some(source)) => Some(Media::Document(source, attachment.filename())),
        (Kind::Image | Kind::Pdf | Kind::Text | Kind::Other, _, _) => None,
    };
    let taken = "images (JPEG, PNG, GIF, WebP), PDF documents and text files";
    media.ok_or_else(|| Refused::attachment("Anthropic", attachment, taken))
}

fn source(attachment: &Attachment) -> Option<Source<'_>> {
    let media_type = attachment.shown.media_type.as_str();
    let data = attachment.base64().map(|data| Source::Base64 { media_type, data });
    data.or_else(|| attachment.url().map(|url| Source::Url { url }))
}
