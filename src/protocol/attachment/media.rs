//! The media type of an attachment, by its bytes. The bytes decide: a declared type is only checked against
//! them, or says more than they do. Pure.

/// Bytes of a type that nothing is known about (RFC 2046).
const UNKNOWN: &str = "application/octet-stream";

const PDF: &str = "application/pdf";

/// An image in the form of text, which no provider takes as an image.
pub(super) const SVG: &str = "image/svg+xml";

const ZIP: &str = "application/zip";

/// The container of old Office documents.
const OLE: &str = "application/x-ole-storage";

/// Media types by the ending of a name, where bytes are not known or are text of any kind.
const BY_ENDING: [(&str, &str); 17] = [
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("heic", "image/heif"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("md", "text/markdown"),
    ("pdf", PDF),
    ("png", "image/png"),
    ("svg", SVG),
    ("txt", "text/plain"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
];

/// Other names of types, each after the name that is used here.
const OTHER_NAMES: [(&str, &[&str]); 6] = [
    ("image/bmp", &["image/x-bmp", "image/x-ms-bmp"]),
    ("image/heif", &["image/heic", "image/heic-sequence", "image/heif-sequence"]),
    ("image/jpeg", &["image/jpg", "image/pjpeg"]),
    ("image/png", &["image/apng", "image/x-png"]),
    ("image/x-icon", &["image/vnd.microsoft.icon"]),
    (PDF, &["application/x-pdf"]),
];

/// The type of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sniffed {
    Image(&'static str),
    Pdf,
    Text,
    /// Another type that has a signature.
    Known(&'static str),
    Unknown,
}

/// The media type of `data`, which was declared as `declared` (empty if it was not) and may have a
/// name.
///
/// # Errors
/// If the declared type contradicts the bytes: how, for a message.
pub(super) fn of_data(data: &[u8], declared: &str, name: &str) -> Result<String, String> {
    let sniffed = Sniffed::of(data);
    let declared = normal(declared);
    if declared.is_empty() || declared == UNKNOWN {
        return Ok(sniffed.media_type(name).to_owned());
    }
    if !sniffed.may_be(&declared) {
        let what = sniffed.what();
        return Err(format!(
            "its mediaType is {declared:?}, but its bytes are {what}; correct the mediaType, or \
             leave it out"
        ));
    }
    Ok(match sniffed {
        // Every provider accepts text, but not under a media type that it does not know as text.
        Sniffed::Text if !is_text(&declared) => sniffed.media_type(name).to_owned(),
        Sniffed::Image(_) | Sniffed::Pdf | Sniffed::Text | Sniffed::Known(_) | Sniffed::Unknown => {
            declared
        }
    })
}

/// Whether a file that begins so is neither text in UTF-8 nor of another type that is known.
pub(super) fn is_unknown(beginning: &[u8]) -> bool {
    // The last character may be cut.
    let end = match std::str::from_utf8(beginning) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => beginning.len(),
    };
    Sniffed::of(beginning.get(..end).unwrap_or_default()) == Sniffed::Unknown
}

/// The media type of content that can't be read here: the declared one, else that of its names.
pub(super) fn unread(declared: &str, names: [&str; 2]) -> String {
    match normal(declared) {
        declared if declared.is_empty() => of_names(names).to_owned(),
        declared => declared,
    }
}

/// The media type by the end of a name or address, the first that has one; empty if none has.
pub(super) fn of_names(names: [&str; 2]) -> &'static str {
    let paths = names.map(|name| name.split(['?', '#']).next().unwrap_or_default());
    paths.into_iter().find_map(by_ending).unwrap_or_default()
}

/// Whether bytes of that type are an image for a provider.
pub(super) fn is_image(media_type: &str) -> bool {
    media_type.starts_with("image/") && media_type != SVG
}

/// Whether bytes of that type can be read as text.
pub(super) fn is_text(media_type: &str) -> bool {
    const TEXTS: [&str; 8] = [
        "application/javascript",
        "application/json",
        "application/sql",
        "application/toml",
        "application/x-ndjson",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    ];
    media_type.starts_with("text/")
        || TEXTS.contains(&media_type)
        || ["+json", "+xml", "+yaml"].iter().any(|end| media_type.ends_with(end))
}

/// Width and height of an image, if it says so where it should.
pub(super) fn size_of_image(data: &[u8]) -> Option<(u32, u32)> {
    let size = imagesize::blob_size(data).ok()?;
    Some((u32::try_from(size.width).ok()?, u32::try_from(size.height).ok()?))
}

impl Sniffed {
    fn of(data: &[u8]) -> Self {
        // May be text as well.
        if data.starts_with(b"%PDF-") {
            return Self::Pdf;
        }
        // Signatures may be words: text that begins with "BM" is no bitmap.
        if memchr::memchr(0, data).is_none() && std::str::from_utf8(data).is_ok() {
            return Self::Text;
        }
        match infer::get(data).map(|known| known.mime_type()) {
            Some(media_type) if is_image(media_type) => Self::Image(media_type),
            // Text in another encoding, which no provider reads.
            Some(media_type) if is_text(media_type) => Self::Unknown,
            Some(media_type) => Self::Known(media_type),
            None => Self::Unknown,
        }
    }

    /// The type to use if none is declared.
    fn media_type(self, name: &str) -> &'static str {
        match self {
            Self::Image(media_type) | Self::Known(media_type) => media_type,
            Self::Pdf => PDF,
            Self::Text => by_ending(name).filter(|text| is_text(text)).unwrap_or("text/plain"),
            Self::Unknown => UNKNOWN,
        }
    }

    /// Whether bytes like these can be of the type `declared`.
    fn may_be(self, declared: &str) -> bool {
        let has_signature = infer::is_mime_supported(declared) || is_image(declared);
        match self {
            Self::Image(media_type) => declared == media_type,
            Self::Pdf => declared == PDF,
            Self::Text => is_text(declared) || !has_signature && class(declared) == "application",
            // Documents of many types are such an archive.
            Self::Known(ZIP | OLE) => class(declared) == "application" && declared != PDF,
            Self::Known(media_type) => {
                declared == media_type || !has_signature && class(declared) == class(media_type)
            }
            Self::Unknown => !has_signature && !is_text(declared),
        }
    }

    /// The type of the bytes, for people.
    fn what(self) -> &'static str {
        match self {
            Self::Image(media_type) | Self::Known(media_type) => media_type,
            Self::Pdf => "a PDF document",
            Self::Text => "text",
            Self::Unknown => "neither that nor text in UTF-8",
        }
    }
}

/// The part before the slash; sound and moving pictures share their containers.
fn class(media_type: &str) -> &str {
    match media_type.split('/').next().unwrap_or_default() {
        "video" => "audio",
        class => class,
    }
}

/// A media type without its parameters, in lower case, under the name that is used here.
fn normal(media_type: &str) -> String {
    let plain = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let known = OTHER_NAMES.iter().find(|(_, others)| others.contains(&plain.as_str()));
    known.map_or(plain, |(name, _)| (*name).to_owned())
}

fn by_ending(name: &str) -> Option<&'static str> {
    let (_, ending) = name.rsplit_once('.')?;
    let ending = ending.to_ascii_lowercase();
    BY_ENDING.iter().find(|(known, _)| *known == ending).map(|(_, media_type)| *media_type)
}

#[cfg(test)]
mod tests;
