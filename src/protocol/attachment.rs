//! Images and files that go with a prompt. Pure: files are read by the host.

use crate::protocol::proto::chat::ChatAttachment;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::path::PathBuf;
use std::sync::Arc;

/// An image or a file of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment {
    /// As events and snapshots show it: without its bytes.
    pub shown: ChatAttachment,
    /// What the model gets.
    pub content: Content,
}

/// The content of an attachment, or where it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// Its bytes.
    Data(Arc<[u8]>),
    /// An address that the provider reads.
    Url(String),
    /// A file that the host reads before the session gets the prompt.
    File(PathBuf),
}

/// Kinds of content, by what providers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An image.
    Image,
    /// A PDF document.
    Pdf,
    /// Text, which every provider takes.
    Text,
    /// Anything else.
    Other,
}

impl Attachment {
    /// The kind, by the media type.
    pub fn kind(&self) -> Kind {
        let media_type = self.shown.media_type.as_str();
        let is_text = |media_type: &str| {
            media_type.starts_with("text/")
                || matches!(media_type, "application/json" | "application/xml" | "application/yaml")
        };
        match media_type {
            "application/pdf" => Kind::Pdf,
            _ if media_type.starts_with("image/") => Kind::Image,
            _ if is_text(media_type) => Kind::Text,
            _ => Kind::Other,
        }
    }

    /// The name of the file; where there is none, a name by the kind.
    pub fn filename(&self) -> &str {
        match self.shown.filename.as_str() {
            "" => match self.kind() {
                Kind::Image => "image",
                Kind::Pdf => "document.pdf",
                Kind::Text => "text",
                Kind::Other => "file",
            },
            name => name,
        }
    }

    /// The content in base64; `None` if it is an address.
    pub fn base64(&self) -> Option<String> {
        self.data().map(|data| BASE64_STANDARD.encode(data))
    }

    /// The content as a `data:` URL (RFC 2397); `None` if it is an address.
    pub fn data_url(&self) -> Option<String> {
        self.base64().map(|base64| format!("data:{};base64,{base64}", self.shown.media_type))
    }

    /// The address; `None` if the content is known.
    pub fn url(&self) -> Option<&str> {
        match &self.content {
            Content::Url(url) => Some(url),
            Content::Data(_) | Content::File(_) => None,
        }
    }

    /// A text as every provider takes it: with its name, as a part of the prompt; `None` if this is
    /// no text, or an address.
    pub fn as_text(&self) -> Option<String> {
        if self.kind() != Kind::Text {
            return None;
        }
        let text = String::from_utf8_lossy(self.data()?);
        Some(format!(
            "<file name=\"{}\">\n{}\n</file>",
            self.filename(),
            text.trim_end_matches('\n')
        ))
    }

    fn data(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Data(data) => Some(data),
            Content::Url(_) | Content::File(_) => None,
        }
    }
}

impl std::fmt::Debug for Content {
    /// Without the bytes, which may be many.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Data(data) => write!(f, "Data({} bytes)", data.len()),
            Self::Url(url) => f.debug_tuple("Url").field(url).finish(),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(media_type: &str, filename: &str, content: Content) -> Attachment {
        let shown = ChatAttachment {
            media_type: media_type.to_owned(),
            filename: filename.to_owned(),
            ..ChatAttachment::default()
        };
        Attachment { shown, content }
    }

    #[test]
    fn an_attachment_has_the_forms_that_providers_take() {
        let data = |text: &str| Content::Data(text.as_bytes().into());
        let image = attachment("image/png", "", data("abc"));
        assert_eq!(image.kind(), Kind::Image);
        assert_eq!(image.data_url().as_deref(), Some("data:image/png;base64,YWJj"));
        assert_eq!((image.filename(), image.as_text()), ("image", None));
        let notes = attachment("text/markdown", "notes.md", data("# hi\n"));
        let text = "<file name=\"notes.md\">\n# hi\n</file>";
        assert_eq!(notes.as_text().as_deref(), Some(text));
        let link = attachment("image/png", "", Content::Url("https://example.com/a".to_owned()));
        assert_eq!((link.base64(), link.url()), (None, Some("https://example.com/a")));
        assert_eq!(attachment("application/pdf", "", data("")).kind(), Kind::Pdf);
        assert_eq!(attachment("audio/wav", "", data("")).kind(), Kind::Other);
    }
}
