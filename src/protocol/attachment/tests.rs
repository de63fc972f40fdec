//! Forms and descriptions of attachments.

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
    super::requested(vec![shown], Vec::new()).map(|mut attachments| attachments.remove(0))
}

#[test]
fn a_requested_attachment_keeps_its_address_and_its_type_apart() {
    let typed = requested("data:image/PNG;base64,YWJj").expect("data").shown;
    assert_eq!((typed.media_type.as_str(), typed.url.as_str()), ("image/png", ""));
    assert_eq!(typed.attachment_id, "attachment-1");
    let why = requested("data:image/png;base64,!").expect_err("no base64");
    assert!(why.starts_with("attachment 1: "), "{why}");
    let two = ChatAttachment {
        url: "data:image/png;base64,YWJj".to_owned(),
        media_type: "image/gif".to_owned(),
        ..ChatAttachment::default()
    };
    assert!(Attachment::named(1, two).is_err_and(|why| why.contains("leave one")));
    let many = vec![ChatAttachment::default(); ATTACHMENTS_MAX + 1];
    assert!(super::requested(many, Vec::new()).is_err());
}

#[test]
fn an_attachment_is_described_by_its_bytes() {
    let bytes = |bytes: &[u8]| Content::Data(bytes.into());
    let mut text = attachment("", "notes.md", bytes(b"# hi"));
    (text.shown.size_bytes, text.shown.width) = (7, 7);
    let shown = text.clone().described().expect("text").shown;
    assert_eq!((shown.media_type.as_str(), shown.kind.as_str()), ("text/markdown", "file"));
    assert_eq!((shown.size_bytes, shown.width), (4, 0));
    text.shown.kind = IMAGE.to_owned();
    let why = text.described().expect_err("no image");
    assert!(why.starts_with("it is text/markdown, not an image"), "{why}");
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x08\x02\0\0\0";
    let shown = attachment("", "", bytes(png)).described().expect("an image").shown;
    assert_eq!((shown.kind.as_str(), shown.width, shown.height), ("image", 3, 2));
    assert!(attachment("", "", bytes(b"")).described().is_err());
    let url = Content::Url("https://e.org/a/cat.jpg".to_owned());
    let shown = attachment("", "", url).described().expect("a URL").shown;
    assert_eq!((shown.filename.as_str(), shown.media_type.as_str()), ("cat.jpg", "image/jpeg"));
    let mut unknown = attachment("", "", Content::Url("https://e.org/cat".to_owned()));
    unknown.shown.kind = IMAGE.to_owned();
    assert_eq!(unknown.described().expect("a URL").kind(), Kind::Image);
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
    assert_eq!(attachment("image/svg+xml", "", data("")).kind(), Kind::Text);
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
