//! Images and files that go with a prompt. Pure: files are read by the host.

use crate::protocol::proto::chat::ChatAttachment;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use std::path::PathBuf;
use std::sync::Arc;
use url::Url;

/// Attachments of a prompt.
pub const ATTACHMENTS_MAX: usize = 32;

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

/// The attachments that a request names. Files are not read here.
///
/// # Errors
/// If one can't be used: why, for a message.
pub(super) fn requested(shown: Vec<ChatAttachment>) -> Result<Vec<Attachment>, String> {
    if shown.len() > ATTACHMENTS_MAX {
        return Err(format!("{} attachments; a prompt can have {ATTACHMENTS_MAX}", shown.len()));
    }
    let numbered = (1..).zip(shown);
    numbered.map(|(number, shown)| Attachment::requested(number, shown)).collect()
}

impl Attachment {
    /// The attachment of an address: `https://…`, `http://…`, `data:…` (RFC 2397), `file://…`, or the
    /// path of a file. What else `shown` says of it is kept.
    ///
    /// # Errors
    /// If it can't be one: why, for a message that names it by its number.
    pub(crate) fn requested(number: u32, mut shown: ChatAttachment) -> Result<Self, String> {
        let url = std::mem::take(&mut shown.url);
        let wrong = |why: &str| format!("attachment {number}: {why}");
        let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        let content = match scheme.as_deref() {
            _ if url.trim().is_empty() => return Err(wrong("it has no url")),
            Some("http" | "https") => {
                shown.url.clone_from(&url);
                Content::Url(url)
            }
            Some("data") => {
                let (media_type, data) = data_of(&url)
                    .ok_or_else(|| wrong("its data: URL can't be read; write base64"))?;
                if shown.media_type.is_empty() {
                    shown.media_type = media_type;
                }
                shown.size_bytes = data.len() as u64;
                Content::Data(data.into())
            }
            Some("file") => {
                let path = Url::parse(&url).ok().and_then(|url| url.to_file_path().ok());
                Content::File(path.ok_or_else(|| wrong("its file: URL has no path here"))?)
            }
            Some(_) | None => Content::File(PathBuf::from(url)),
        };
        if shown.attachment_id.is_empty() {
            shown.attachment_id = format!("attachment-{number}");
        }
        Ok(Self { shown, content })
    }

    /// The kind, by the media type; where that is not known, by what the client calls it, or by the
    /// end of its name or address.
    pub fn kind(&self) -> Kind {
        let media_type = self.shown.media_type.as_str();
        if media_type.is_empty() {
            return self.kind_by_name();
        }
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

    fn kind_by_name(&self) -> Kind {
        let named = [self.shown.filename.as_str(), self.url().unwrap_or_default()];
        let ends_in = |ends: &[&str]| {
            named.iter().any(|name| {
                let name = name.split(['?', '#']).next().unwrap_or_default();
                let end = name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
                end.is_some_and(|end| ends.contains(&end.as_str()))
            })
        };
        match self.shown.kind.as_str() {
            _ if ends_in(&["pdf"]) => Kind::Pdf,
            "image" => Kind::Image,
            _ if ends_in(&["png", "jpg", "jpeg", "gif", "webp"]) => Kind::Image,
            _ => Kind::Other,
        }
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

/// The media type and the bytes of a `data:` URL.
fn data_of(url: &str) -> Option<(String, Vec<u8>)> {
    let (about, data) = url.get("data:".len()..)?.split_once(',')?;
    let (about, is_base64) = match about.strip_suffix(";base64") {
        Some(about) => (about, true),
        None => (about, false),
    };
    let media_type = about.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let media_type = if media_type.is_empty() { "text/plain".to_owned() } else { media_type };
    let data = match is_base64 {
        true => BASE64_STANDARD.decode(data.trim()).ok()?,
        false => percent_decode_str(data).collect(),
    };
    Some((media_type, data))
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

    fn requested(url: &str) -> Result<Attachment, String> {
        let shown = ChatAttachment { url: url.to_owned(), ..ChatAttachment::default() };
        Attachment::requested(1, shown)
    }

    #[test]
    fn an_address_is_a_url_data_or_a_file() {
        let check = |url: &str, content: Content, shown_url: &str| {
            let attachment = requested(url).expect(url);
            assert_eq!(attachment.content, content, "{url}");
            assert_eq!(attachment.shown.url, shown_url, "{url}");
            assert_eq!(attachment.shown.attachment_id, "attachment-1");
        };
        let data = |text: &str| Content::Data(text.as_bytes().into());
        check(
            "https://e.org/a.png",
            Content::Url("https://e.org/a.png".into()),
            "https://e.org/a.png",
        );
        check("data:image/png;base64,YWJj", data("abc"), "");
        check("data:,a%20b", data("a b"), "");
        check("file:///tmp/a%20b", Content::File("/tmp/a b".into()), "");
        check("C/a.png", Content::File("C/a.png".into()), "");
        let typed = requested("data:image/PNG;base64,YWJj").expect("data").shown;
        assert_eq!((typed.media_type.as_str(), typed.size_bytes), ("image/png", 3));
        for url in ["", " ", "data:image/png;base64,!", "data:x"] {
            let why = requested(url).expect_err(url);
            assert!(why.starts_with("attachment 1: "), "{why}");
        }
        let many = vec![ChatAttachment::default(); ATTACHMENTS_MAX + 1];
        assert!(super::requested(many).is_err());
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

    #[test]
    fn the_kind_of_an_address_is_in_its_name_or_given() {
        let kind = |url: &str, kind: &str| {
            let mut attachment = attachment("", "", Content::Url(url.to_owned()));
            attachment.shown.kind = kind.to_owned();
            attachment.kind()
        };
        assert_eq!(kind("https://e.org/a.PNG?size=1.pdf", ""), Kind::Image);
        assert_eq!(kind("https://e.org/a.pdf#page=2", "file"), Kind::Pdf);
        assert_eq!(kind("https://e.org/photo/1", "image"), Kind::Image);
        assert_eq!(kind("https://e.org/photo/1", ""), Kind::Other);
        assert_eq!(attachment("", "b.jpeg", Content::Data([].into())).kind(), Kind::Image);
    }
}
