//! Images and files that go with a prompt. Pure: files are read by the host.

mod address;
mod media;

use crate::protocol::proto::chat::ChatAttachment;
use crate::protocol::proto::rpc::ResourceReference;
pub use address::URL_BYTES_MAX;
pub(crate) use address::is_path;
use data_encoding::BASE64;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The `kind` of an image, for people. Something that is declared as one must be one.
pub(crate) const IMAGE: &str = "image";

/// The `kind` of everything else.
const FILE: &str = "file";

const MEBIBYTE: u64 = 1024 * 1024;

/// Attachments of a prompt, and images of a result.
pub const ATTACHMENTS_MAX: usize = 32;

/// Longest attachment, in bytes: the largest that any provider accepts.
pub(crate) const ATTACHMENT_BYTES_MAX: u64 = 20 * MEBIBYTE;

/// Bytes of the attachments of a prompt, and of the images of a result.
pub(crate) const PROMPT_BYTES_MAX: u64 = 50 * MEBIBYTE;

/// Bytes of the attachments of a conversation: they are held in memory and sent with every call.
pub(crate) const CONVERSATION_BYTES_MAX: u64 = 256 * MEBIBYTE;

/// The images that every model which takes images takes.
const COMMON_IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// An image or a file of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment {
    /// As events and snapshots show it: without its bytes.
    pub shown: ChatAttachment,
    /// The content for the model.
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
    /// A resource that a tool server sends before the session gets the prompt.
    Resource(ResourceName),
    /// The store of the conversation has lost its bytes: people see that it was attached, and no model is sent it.
    Lost {
        /// The SHA-256 of the bytes, in hexadecimal digits.
        sha256: String,
    },
}

/// The name of a resource of a tool server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceName {
    /// The server.
    pub server: String,
    /// The address, which the server reads.
    pub uri: String,
}

/// Kinds of content that providers distinguish.
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

/// Whether no provider takes a file that begins so: it is neither text in UTF-8 nor of another type that is known.
pub(crate) fn is_unknown(beginning: &[u8]) -> bool {
    media::is_unknown(beginning)
}

/// The one of `servers` whose name, with a colon, begins `text`, and the rest of that, which is not empty. Names may
/// have colons themselves: the longest one is meant.
pub(crate) fn of_server<'s, 't>(
    text: &'t str,
    servers: impl Iterator<Item = &'s str>,
) -> Option<(&'s str, &'t str)> {
    let named = servers.filter_map(|server| {
        let rest = text.strip_prefix(server)?.strip_prefix(':')?;
        (!rest.is_empty()).then_some((server, rest))
    });
    named.max_by_key(|(server, _)| server.len())
}

/// The attachments and resources that a request names. Files and resources are not read here.
///
/// # Errors
/// If one can't be used: why, for a message.
pub(super) fn requested(
    shown: Vec<ChatAttachment>,
    resources: Vec<ResourceReference>,
) -> Result<Vec<Attachment>, String> {
    let count = shown.len() + resources.len();
    if count > ATTACHMENTS_MAX {
        return Err(format!("{count} attachments; a prompt can have {ATTACHMENTS_MAX}"));
    }
    let numbered = (1..).zip(shown);
    let read = numbered.map(|(number, shown)| {
        Attachment::named(number, shown).map_err(|why| format!("attachment {number}: {why}"))
    });
    let numbered = (1..).zip(resources);
    let resources = numbered.map(|(number, ResourceReference { server, uri })| {
        if server.is_empty() || uri.is_empty() {
            return Err(format!("resource {number}: set both its server and its uri"));
        }
        Ok(Attachment::resource(number, ResourceName { server, uri }))
    });
    read.chain(resources).collect()
}

impl Attachment {
    /// The attachment that the `url` of `shown` names: `https://…`, `http://…`, `data:…` (RFC 2397),
    /// `file://…`, or the path of a file. The other fields of `shown` stay as they are.
    ///
    /// # Errors
    /// If it names none: why, for a message.
    pub(crate) fn named(number: u32, mut shown: ChatAttachment) -> Result<Self, String> {
        let (content, media_type) = address::content(std::mem::take(&mut shown.url))?;
        if shown.media_type.is_empty() {
            shown.media_type = media_type;
        } else if !media_type.is_empty() && !shown.media_type.eq_ignore_ascii_case(&media_type) {
            let declared = &shown.media_type;
            return Err(format!(
                "its mediaType is {declared:?}, and its data: URL says {media_type:?}; leave one of \
                 them out"
            ));
        }
        match &content {
            Content::Data(data) => shown.size_bytes = data.len() as u64,
            Content::Url(url) => shown.url.clone_from(url),
            Content::File(_) | Content::Resource(_) | Content::Lost { .. } => {}
        }
        if shown.attachment_id.is_empty() {
            shown.attachment_id = format!("attachment-{number}");
        }
        Ok(Self { shown, content })
    }

    /// The resource of a tool server, which is the prompt's `number`th.
    pub(crate) fn resource(number: u32, name: ResourceName) -> Self {
        let attachment_id = format!("resource-{number}");
        let shown = ChatAttachment {
            attachment_id,
            filename: name.uri.clone(),
            ..ChatAttachment::default()
        };
        Self { shown, content: Content::Resource(name) }
    }

    /// Has a resource that was written as a text named by the longest of `servers` that the text begins with: until the
    /// servers are known, the name of its server ends at the first colon.
    pub(crate) fn settle_server<'s>(&mut self, servers: impl Iterator<Item = &'s str>) {
        let Content::Resource(name) = &mut self.content else { return };
        let text = name.to_string();
        if let Some((server, uri)) = of_server(&text, servers) {
            *name = ResourceName { server: server.to_owned(), uri: uri.to_owned() };
            self.shown.filename.clone_from(&name.uri);
        }
    }

    /// An image of these bytes, which some program gives; `None` if they are none of a type that every
    /// model which takes images takes.
    pub(crate) fn image(data: Vec<u8>) -> Option<Self> {
        let content = Content::Data(data.into());
        let image = Self { shown: ChatAttachment::default(), content }.described().ok()?;
        image.is_common_image().then_some(image)
    }

    /// Whether it is an image of a type that every model which takes images takes.
    pub(crate) fn is_common_image(&self) -> bool {
        COMMON_IMAGES.contains(&self.shown.media_type.as_str())
    }

    /// Whether its content is in a file that has not been read.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.content, Content::File(_))
    }

    /// Whether the store of the conversation has lost its bytes.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.content, Content::Lost { .. })
    }

    /// The resource that its content is in, which has not been read.
    pub(crate) fn as_resource(&self) -> Option<&ResourceName> {
        match &self.content {
            Content::Resource(name) => Some(name),
            Content::Data(_) | Content::Url(_) | Content::File(_) | Content::Lost { .. } => None,
        }
    }

    /// The attachment with all that its content or its URL says of it: type, kind and size. An
    /// attachment in a file has to be read first.
    ///
    /// # Errors
    /// If it can't be used, or is not what it was declared as: why, for a message.
    pub(crate) fn described(mut self) -> Result<Self, String> {
        let shown = &mut self.shown;
        match &self.content {
            Content::Data(data) if data.is_empty() => {
                return Err("it is empty; leave it out".to_owned());
            }
            Content::Data(data) => {
                shown.media_type = media::of_data(data, &shown.media_type, &shown.filename)?;
                shown.size_bytes = data.len() as u64;
                let is_image = media::is_image(&shown.media_type);
                let size = is_image.then(|| media::size_of_image(data)).flatten();
                (shown.width, shown.height) = size.unwrap_or_default();
            }
            Content::Url(url) => {
                let name = address::check(url)?;
                shown.url.clone_from(url);
                shown.media_type = media::unread(&shown.media_type, [&shown.filename, &name]);
                if shown.filename.is_empty() {
                    shown.filename = name;
                }
            }
            Content::File(_) | Content::Resource(_) => return Err("it was not read".to_owned()),
            Content::Lost { .. } => {
                return Err("the store has lost its bytes; attach it again".to_owned());
            }
        }
        let is_image = media::is_image(&shown.media_type);
        // Nothing is known of a URL without a type.
        if shown.kind == IMAGE && !is_image && !shown.media_type.is_empty() {
            let media_type = &shown.media_type;
            return Err(format!("it is {media_type}, not an image; attach it as a file instead"));
        }
        if shown.kind.is_empty() {
            shown.kind = if is_image { IMAGE } else { FILE }.to_owned();
        }
        Ok(self)
    }

    /// The kind, by the media type; where that is not known, by the end of its name or address, or by
    /// what the client calls it.
    pub fn kind(&self) -> Kind {
        kind_of(&self.shown, self.url().unwrap_or_default())
    }

    /// The name of the file; where there is none, a name by the kind.
    pub fn filename(&self) -> &str {
        name_of(&self.shown, self.kind())
    }

    /// The content in base64; `None` if it is an address, or lost.
    pub fn base64(&self) -> Option<String> {
        self.data().map(|data| BASE64.encode(data))
    }

    /// The content as a `data:` URL (RFC 2397); `None` if it is an address, or lost.
    pub fn data_url(&self) -> Option<String> {
        self.base64().map(|base64| format!("data:{};base64,{base64}", self.shown.media_type))
    }

    /// The address; `None` if the content is known.
    pub fn url(&self) -> Option<&str> {
        match &self.content {
            Content::Url(url) => Some(url),
            Content::Data(_) | Content::File(_) | Content::Resource(_) | Content::Lost { .. } => {
                None
            }
        }
    }

    /// Bytes of the content, as far as it is held here.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.data().map_or(0, <[u8]>::len) as u64
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
            Content::Url(_) | Content::File(_) | Content::Resource(_) | Content::Lost { .. } => {
                None
            }
        }
    }
}

/// The kind of an attachment that is at `url`, which is empty for bytes.
fn kind_of(shown: &ChatAttachment, url: &str) -> Kind {
    let media_type = match shown.media_type.as_str() {
        "" => media::of_names([&shown.filename, url]),
        known => known,
    };
    match media_type {
        "application/pdf" => Kind::Pdf,
        // An image that is text is one for people only.
        _ if media::is_text(media_type) => Kind::Text,
        _ if media::is_image(media_type) => Kind::Image,
        "" if shown.kind == IMAGE => Kind::Image,
        _ => Kind::Other,
    }
}

fn name_of(shown: &ChatAttachment, kind: Kind) -> &str {
    match shown.filename.as_str() {
        "" => match kind {
            Kind::Image => "image",
            Kind::Pdf => "document.pdf",
            Kind::Text => "text",
            Kind::Other => "file",
        },
        name => name,
    }
}

/// The name of an attachment for people; where it has none, as in a `data:` URL, what it is: `image (image/png)`.
pub(crate) fn shown_name(shown: &ChatAttachment) -> String {
    let name = name_of(shown, kind_of(shown, &shown.url));
    match (shown.filename.as_str(), shown.media_type.as_str()) {
        ("", media_type) if !media_type.is_empty() => format!("{name} ({media_type})"),
        _ => name.to_owned(),
    }
}

impl fmt::Display for Attachment {
    /// Name, type, and size or address, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ChatAttachment { media_type, width, height, .. } = &self.shown;
        if let Some(name) = self.as_resource() {
            return write!(f, "{name} (a resource that its server sends)");
        }
        let media_type = if media_type.is_empty() { "type unknown" } else { media_type };
        write!(f, "{} ({media_type}", self.filename())?;
        if *width > 0 {
            write!(f, ", {width}x{height}")?;
        }
        match self.url() {
            Some(url) => write!(f, ", {url})"),
            None => write!(f, ", {} bytes)", self.shown.size_bytes),
        }
    }
}

impl fmt::Debug for Content {
    /// Without the bytes, which may be many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data(data) => write!(f, "Data({} bytes)", data.len()),
            Self::Url(url) => f.debug_tuple("Url").field(url).finish(),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Resource(name) => f.debug_tuple("Resource").field(name).finish(),
            Self::Lost { sha256 } => f.debug_struct("Lost").field("sha256", sha256).finish(),
        }
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.server, self.uri)
    }
}

#[cfg(test)]
mod tests;
