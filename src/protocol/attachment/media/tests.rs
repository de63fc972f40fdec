//! Types of bytes, declared or not.

use super::*;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x08\x02\0\0\0";
const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0";
const GZIP: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0";
const DOCUMENT: &[u8] = b"PK\x03\x04\x14\0\x06\0\x08\0";
const WAV: &[u8] = b"RIFF\x24\0\0\0WAVEfmt ";
const LATIN: &[u8] = b"caf\xe9";

#[test]
fn bytes_decide_what_a_type_is() {
    let check = |data: &[u8], name: &str, expected: &str| {
        for declared in ["", "application/octet-stream", " Application/Octet-Stream; a=b"] {
            assert_eq!(of_data(data, declared, name).as_deref(), Ok(expected), "{name}");
        }
    };
    check(PNG, "a.jpg", "image/png");
    check(JPEG, "", "image/jpeg");
    check(b"%PDF-1.7\n", "a.txt", "application/pdf");
    check(GZIP, "a.png", "application/gzip");
    check(LATIN, "a.txt", "application/octet-stream");
    check(b"\x01\0", "", "application/octet-stream");
    // The beginning of a bitmap, of a program, of a sound.
    for text in ["BMW makes cars", "MZ", "ID3 tags", "caf\u{e9}", ""] {
        check(text.as_bytes(), "a.png", "text/plain");
        check(text.as_bytes(), "A.MD", "text/markdown");
    }
    check(b"{}", "a.json", "application/json");
    check(b"<svg/>", "a.svg", "image/svg+xml");
    check(b"a\0b", "a.txt", "application/octet-stream");
}

#[test]
fn a_declared_type_may_say_more_than_the_bytes() {
    let check = |data: &[u8], declared: &str, expected: &str| {
        assert_eq!(of_data(data, declared, "").as_deref(), Ok(expected), "{declared}");
    };
    check(JPEG, "image/jpg", "image/jpeg");
    check(PNG, "IMAGE/PNG; x=1", "image/png");
    check(b"a,b", "text/csv; charset=utf-8", "text/csv");
    check(b"{}", "application/ld+json", "application/ld+json");
    check(b"<svg/>", "image/svg+xml", "image/svg+xml");
    // Every provider takes a text.
    check(b"a", "application/x-of-my-own", "text/plain");
    check(
        DOCUMENT,
        "application/vnd.oasis.opendocument.text",
        "application/vnd.oasis.opendocument.text",
    );
    check(WAV, "audio/wav", "audio/wav");
    check(b"\x01\0", "application/x-of-my-own", "application/x-of-my-own");
}

#[test]
fn a_declared_type_that_contradicts_the_bytes_is_refused() {
    let check = |data: &[u8], declared: &str, what: &str| {
        let why = of_data(data, declared, "").expect_err(declared);
        assert!(why.contains(&format!("its bytes are {what};")), "{why}");
    };
    check(PNG, "image/jpeg", "image/png");
    check(PNG, "text/plain", "image/png");
    check(b"hello", "image/png", "text");
    check(b"hello", "application/pdf", "text");
    check(b"hello", "application/zip", "text");
    check(b"hello", "audio/wav", "text");
    check(b"%PDF-1.7", "text/plain", "a PDF document");
    check(GZIP, "application/zip", "application/gzip");
    check(DOCUMENT, "application/pdf", "application/zip");
    check(WAV, "image/png", "audio/x-wav");
    check(LATIN, "text/plain", "neither that nor text in UTF-8");
    check(LATIN, "image/x-of-my-own", "neither that nor text in UTF-8");
}

#[test]
fn an_image_has_a_size_as_far_as_it_is_whole() {
    assert_eq!(size_of_image(PNG), Some((3, 2)));
    for end in 0..PNG.len() {
        assert!(size_of_image(&PNG[..end]).is_none_or(|size| size == (3, 2)), "{end}");
    }
    assert_eq!(size_of_image(JPEG), None);
}

#[test]
fn what_is_not_read_has_the_type_of_its_name() {
    assert_eq!(unread("", ["", "cat.JPG"]), "image/jpeg");
    assert_eq!(unread("", ["cat.png", "https://e.org/cat.jpg?a=b.c"]), "image/png");
    assert_eq!(unread("Image/WebP", ["cat.jpg", ""]), "image/webp");
    assert_eq!(unread("", ["cat", "https://e.org/cat"]), "");
}

#[test]
fn text_in_another_encoding_is_unknown() {
    assert!(is_unknown(b"Gr\xfc\xdfe"), "Latin-1");
    assert!(is_unknown(b"\xff\xfeG\0r\0"), "UTF-16");
    let text = "Grü".as_bytes();
    assert!(!is_unknown(&text[..text.len() - 1]), "it goes on");
    assert!(!is_unknown(b"") && !is_unknown(b"\x89PNG\r\n\x1a\n"));
}
