//! Images and files in the forms that OpenAI's interfaces take.

use super::interface::Refused;
use crate::protocol::attachment::{Attachment, Kind};
use serde::Serialize;
use std::borrow::Cow;

/// An attachment as it is sent.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::engine) enum Media<'a> {
    /// A text with its name.
    Text(String),
    Image {
        /// A `data:` URL, or an address that the provider reads.
        url: Cow<'a, str>,
        /// How closely the model looks at it.
        detail: Detail,
    },
    /// A PDF document.
    Pdf {
        /// The name of its file.
        filename: &'a str,
        data_url: String,
    },
    /// A PDF document at an address that the provider reads.
    PdfUrl(&'a str),
}

/// How closely a model looks at an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::engine) enum Detail {
    Auto,
    Low,
    High,
}

/// The form in which `attachment` is sent.
///
/// # Errors
/// If the attachment can't be sent.
pub(in crate::engine) fn media(attachment: &Attachment) -> Result<Media<'_>, Refused> {
    match attachment.kind() {
        Kind::Text => attachment.as_text().map(Media::Text),
        Kind::Image => {
            let url = attachment.url().map(Cow::Borrowed);
            let url = url.or_else(|| attachment.data_url().map(Cow::Owned));
            url.map(|url| Media::Image { url, detail: detail(&attachment.shown.detail) })
        }
        Kind::Pdf => match (attachment.url(), attachment.data_url()) {
            (Some(url), _) => Some(Media::PdfUrl(url)),
            (None, Some(data_url)) => {
                Some(Media::Pdf { filename: attachment.filename(), data_url })
            }
            (None, None) => None,
        },
        Kind::Other => None,
    }
    .ok_or_else(|| unsupported(attachment))
}

/// The error for an attachment that can't be sent.
pub(in crate::engine) fn unsupported(attachment: &Attachment) -> Refused {
    let media_type = match attachment.shown.media_type.as_str() {
        "" => "of an unknown type",
        media_type => media_type,
    };
    let what = match attachment.url() {
        Some(_) => format!(
            "the attachment {:?} ({media_type}) can't be sent by its address: attach the file itself",
            attachment.filename()
        ),
        None => format!(
            "the attachment {:?} ({media_type}) can't be sent: this engine takes images, PDF \
             documents and text; leave it out, or convert it to one of these",
            attachment.filename()
        ),
    };
    Refused::Unsupported(what)
}

fn detail(word: &str) -> Detail {
    match word {
        "low" => Detail::Low,
        "high" => Detail::High,
        // The provider's default.
        _ => Detail::Auto,
    }
}

#[cfg(test)]
pub(in crate::engine) fn attached(media_type: &str, filename: &str, bytes: &[u8]) -> Attachment {
    let content = crate::protocol::attachment::Content::Data(bytes.into());
    attachment(media_type, filename, content)
}

#[cfg(test)]
pub(in crate::engine) fn linked(media_type: &str, url: &str) -> Attachment {
    attachment(media_type, "", crate::protocol::attachment::Content::Url(url.to_owned()))
}

#[cfg(test)]
fn attachment(
    media_type: &str,
    filename: &str,
    content: crate::protocol::attachment::Content,
) -> Attachment {
    let shown = crate::protocol::proto::chat::ChatAttachment {
        media_type: media_type.to_owned(),
        filename: filename.to_owned(),
        ..Default::default()
    };
    Attachment { shown, content }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_form() {
        let image = |url: &'static str, detail| Media::Image { url: url.into(), detail };
        let mut close = attached("image/png", "", b"abc");
        assert_eq!(media(&close).expect("fits"), image("data:image/png;base64,YWJj", Detail::Auto));
        close.shown.detail = "high".to_owned();
        assert_eq!(media(&close).expect("fits"), image("data:image/png;base64,YWJj", Detail::High));
        let link = linked("image/jpeg", "https://h/a.jpg");
        assert_eq!(media(&link).expect("fits"), image("https://h/a.jpg", Detail::Auto));
        let pdf = attached("application/pdf", "a.pdf", b"abc");
        let data_url = "data:application/pdf;base64,YWJj".to_owned();
        assert_eq!(media(&pdf).expect("fits"), Media::Pdf { filename: "a.pdf", data_url });
        let link = linked("application/pdf", "https://h/a.pdf");
        assert_eq!(media(&link).expect("fits"), Media::PdfUrl("https://h/a.pdf"));
        let text = attached("text/plain", "a.txt", b"hi");
        assert!(matches!(media(&text), Ok(Media::Text(text)) if text.contains("a.txt")));
        // A drawing in XML: models read it, and don't see it.
        let drawing = attached("image/svg+xml", "a.svg", b"<svg/>");
        assert!(matches!(media(&drawing), Ok(Media::Text(text)) if text.contains("<svg/>")));
    }

    #[test]
    fn what_has_no_form_is_refused_with_what_to_do() {
        for (attachment, words) in [
            (attached("audio/wav", "a.wav", b"abc"), "\"a.wav\" (audio/wav) can't be sent"),
            (attached("application/zip", "a.zip", b"abc"), "convert it"),
            (attached("", "a.bin", b"abc"), "of an unknown type"),
            (linked("text/plain", "https://h/a?key=secret"), "attach the file itself"),
        ] {
            let refused = media(&attachment).expect_err(words);
            let Refused::Unsupported(what) = refused else { panic!("{words}") };
            assert!(what.contains(words) && !what.contains("secret"), "{what}");
        }
    }
}
