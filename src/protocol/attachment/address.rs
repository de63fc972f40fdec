//! The address that a request or an option names an attachment by: a path, a `file:` or `data:` URL,
//! or a URL that the provider reads. Pure.

use super::Content;
use data_encoding::BASE64;
use percent_encoding::percent_decode_str;
use std::path::PathBuf;
use url::Url;

/// Bytes of a URL that the provider reads.
pub const URL_BYTES_MAX: usize = 8 * 1024;

/// The content that `address` names, and its media type, if it names one.
///
/// # Errors
/// If it names none: why, for a message.
pub(super) fn content(address: String) -> Result<(Content, String), String> {
    if address.trim().is_empty() {
        return Err("it has no url; set it to a path or a URL, or leave the attachment out".into());
    }
    let untyped = |content| Ok((content, String::new()));
    match scheme(&address).as_deref() {
        Some("http" | "https") => untyped(Content::Url(address)),
        Some("data") => {
            let (media_type, data) = data_of(&address)
                .ok_or("its data: URL can't be read; write data:TYPE;base64, and then base64")?;
            // The URL is longer than its content; only the content is stored.
            drop(address);
            Ok((Content::Data(data.into()), media_type))
        }
        Some("file") => {
            let path = Url::parse(&address).ok().and_then(|url| url.to_file_path().ok());
            untyped(Content::File(path.ok_or(
                "its file: URL has no path on this machine; write file:///, and then the path",
            )?))
        }
        Some(scheme) if is_url(scheme, &address) => Err(format!(
            "its URL begins with {scheme:?}; name an http, https, data or file URL, or a path"
        )),
        Some(_) | None => untyped(Content::File(PathBuf::from(address))),
    }
}

/// Whether `address` names a file by its path.
pub(crate) fn is_path(address: &str) -> bool {
    !address.trim().is_empty()
        && scheme(address).is_none_or(|scheme| {
            !matches!(scheme.as_str(), "http" | "https" | "data" | "file")
                && !is_url(&scheme, address)
        })
}

/// What is before the first colon, in lower case: the scheme of a URL, or a part of a path.
fn scheme(address: &str) -> Option<String> {
    address.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase())
}

/// The last part of the path of a URL that a provider may be given; empty if it has none.
///
/// # Errors
/// If a provider may not be given it: why, for a message.
pub(super) fn check(url: &str) -> Result<String, String> {
    if url.len() > URL_BYTES_MAX {
        let kibibytes = URL_BYTES_MAX / 1024;
        return Err(format!(
            "its URL has {} bytes, and {kibibytes} KiB is the limit; name a shorter one, or a file",
            url.len()
        ));
    }
    // Not repeated in the error: it may hold a password.
    let parsed = Url::parse(url).map_err(|error| format!("its URL is wrong: {error}"))?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("its URL has a name or a password, which the provider would see; leave them \
             out, or download the file and attach that"
            .to_owned());
    }
    let last = parsed.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
    Ok(percent_decode_str(last).decode_utf8_lossy().into_owned())
}

/// Whether `address` is meant as a URL of this scheme, and not as a path with a colon.
fn is_url(scheme: &str, address: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    address[scheme.len()..].starts_with("://") && scheme.bytes().all(is_name)
}

/// The media type and the bytes of a `data:` URL (RFC 2397). The type is empty if it is left out: in
/// practice that does not mean text.
fn data_of(url: &str) -> Option<(String, Vec<u8>)> {
    let (about, data) = url.get("data:".len()..)?.split_once(',')?;
    // In any case, and with spaces, as browsers read it.
    let (about, is_base64) = match about.rsplit_once(';') {
        Some((rest, last)) if last.trim().eq_ignore_ascii_case("base64") => (rest, true),
        Some(_) | None => (about, false),
    };
    let media_type = about.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let data = match is_base64 {
        true => BASE64.decode(data.trim().as_bytes()).ok()?,
        false => percent_decode_str(data).collect(),
    };
    Some((media_type, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_url_data_or_a_file() {
        let read = |address: &str, expected: Content, media_type: &str| {
            let expected = (expected, media_type.to_owned());
            assert_eq!(content(address.to_owned()), Ok(expected), "{address}");
        };
        let data = |text: &str| Content::Data(text.as_bytes().into());
        read("https://e.org/a.png", Content::Url("https://e.org/a.png".into()), "");
        read("HTTP://e.org", Content::Url("HTTP://e.org".into()), "");
        read("data:image/PNG;base64,YWJj", data("abc"), "image/png");
        read("data:;base64,YWJj", data("abc"), "");
        read("data:;BASE64,YWJj", data("abc"), "");
        read("data:image/png; base64,YWJj", data("abc"), "image/png");
        read("DATA:x/y;charset=a;Base64 ,YWJj", data("abc"), "x/y");
        read("data:text/plain;charset=utf-8,a%20b", data("a b"), "text/plain");
        read("file:///tmp/a%20b", Content::File("/tmp/a b".into()), "");
        for path in ["C/a.png", "a:b", "1 of 2://x", "https"] {
            read(path, Content::File(path.into()), "");
            assert!(is_path(path), "{path}");
        }
        for url in ["", "HTTP://e.org", "DATA:x/y,a", "file:///tmp/a%20b", "ftp://e.org/a"] {
            assert!(!is_path(url), "{url}");
        }
        for wrong in ["", " ", "data:x", "data:;base64,!", "file://elsewhere/a", "ftp://e.org/a"] {
            let why = content(wrong.to_owned()).expect_err(wrong);
            assert!(why.starts_with("it"), "{why}");
        }
    }

    #[test]
    fn a_url_that_the_provider_may_not_get_is_refused_and_not_repeated() {
        assert_eq!(check("https://e.org/a/b%20c.png?x=1#y").as_deref(), Ok("b c.png"));
        assert_eq!(check("http://e.org").as_deref(), Ok(""));
        let long = format!("https://e.org/{}", "a".repeat(URL_BYTES_MAX));
        for wrong in ["https://", "https://me:hush@e.org/", "https://me@e.org/", &long] {
            let why = check(wrong).expect_err(wrong);
            assert!(!why.contains("hush") && !why.contains("me@") && why.len() < 200, "{why}");
        }
    }
}
