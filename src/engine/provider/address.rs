//! Where requests go, and how much of an address may be shown: it may hold a login.

use crate::support::shorten::first_chars;
use reqwest::Url;
use url::ParseError;

/// Characters that are shown of a text that is not an address. It may be a key that was put there by
/// mistake: this much lets its owner recognize it.
const ODD_CHARS_MAX: usize = 8;

/// The error for an address that does not belong to a web server.
const NO_SCHEME: &str = "does not begin with http:// or https://";

/// `base_url` with the path `endpoint` after its own, which it may end in already; its query stays,
/// and its login if `has_login`.
///
/// # Errors
/// If the address can't be used: the reason, for a message.
pub(in crate::engine) fn endpoint(
    base_url: &str,
    endpoint: &str,
    has_login: bool,
) -> Result<Url, String> {
    let mut url = checked(base_url, has_login)?;
    let is_endpoint = url.path().trim_end_matches('/').ends_with(endpoint);
    let more = endpoint.trim_start_matches('/').split('/').filter(|_| !is_endpoint);
    match url.path_segments_mut() {
        Ok(mut path) => path.pop_if_empty().extend(more),
        Err(()) => return Err(UNUSABLE.into()),
    };
    Ok(url)
}

/// Like [`endpoint`], where the base URL may end in the `prefix` of the endpoint already: `prefix` and
/// `rest` are its two parts.
pub(in crate::engine) fn prefixed_endpoint(
    base_url: &str,
    prefix: &str,
    rest: &str,
    has_login: bool,
) -> Result<Url, String> {
    let url = endpoint(base_url, &format!("{prefix}{rest}"), has_login)?;
    match url.path().ends_with(&format!("{prefix}{prefix}{rest}")) {
        true => endpoint(base_url, rest, has_login),
        false => Ok(url),
    }
}

/// The path of `example`, and `base_url` with it, if `base_url` has none of its own.
pub(in crate::engine) fn with_path_of(base_url: &str, example: &str) -> Option<(String, String)> {
    let example = checked(example, false).ok().filter(|it| it.path() != "/")?;
    let mut url = checked(base_url, false).ok().filter(|it| it.path() == "/")?;
    url.set_path(example.path());
    Some((example.path().to_owned(), url.into()))
}

/// The error for a URL that can have no path or no login.
const UNUSABLE: &str = "can't be used";

/// `base_url` as an address, with its login if `has_login`.
///
/// # Errors
/// If it can't be used: the reason, for a message.
pub(in crate::engine) fn checked(base_url: &str, has_login: bool) -> Result<Url, String> {
    let mut url = Url::parse(base_url.trim()).map_err(unusable)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(NO_SCHEME.into());
    }
    if has_stray_at(&url) {
        // The text before it would be taken for the host and get the key.
        return Err("has an @ after its host (in a password write / as %2F, ? as %3F and # as \
                    %23; elsewhere write @ as %40)"
            .into());
    }
    url.set_fragment(None);
    let cleared = has_login || (url.set_username("").is_ok() && url.set_password(None).is_ok());
    if !cleared || url.cannot_be_a_base() {
        return Err(UNUSABLE.into());
    }
    Ok(url)
}

/// The error of the parser, in words that help a person to correct the address.
fn unusable(error: ParseError) -> String {
    let why = match error {
        ParseError::RelativeUrlWithoutBase => NO_SCHEME,
        ParseError::EmptyHost => "names no host",
        ParseError::InvalidPort => "has a port that is not a number from 0 to 65535",
        ParseError::InvalidIpv4Address | ParseError::InvalidIpv6Address => {
            "has an IP address that is not valid"
        }
        ParseError::InvalidDomainCharacter | ParseError::IdnaError => {
            "has a host name with characters that no host name can have"
        }
        ParseError::RelativeUrlWithCannotBeABaseBase
        | ParseError::SetHostOnCannotBeABaseUrl
        | ParseError::Overflow
        | _ => "is not a URL",
    };
    why.to_owned()
}

/// The host of `base_url`, with its port if that is not the scheme's own; `None` if it can't be used.
pub(in crate::engine) fn host(base_url: &str) -> Option<String> {
    let url = checked(base_url, false).ok()?;
    let host = url.host_str()?;
    Some(url.port().map_or(host.to_owned(), |port| format!("{host}:{port}")))
}

/// Whether two base URLs name the same address, but for white space and slashes at the end. Those that
/// can't be used are the same as no other.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let plain = |text: &str| {
        let mut url = checked(text, true).ok()?;
        url.path_segments_mut().ok()?.pop_if_empty();
        Some(url)
    };
    plain(one).is_some_and(|one| plain(other) == Some(one))
}

/// `base_url` as it may be shown, readable or not: scheme, host, port and path.
pub(crate) fn shown(base_url: &str) -> String {
    let text = base_url.trim();
    match Url::parse(text) {
        Ok(url) if is_scheme(url.scheme()) && url.has_host() && !has_stray_at(&url) => {
            shown_url(&url)
        }
        Ok(_) | Err(_) => shown_odd(text),
    }
}

/// `url` as it may be shown: scheme, host, port and path.
pub(in crate::engine) fn shown_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    if url.set_username("").is_ok() && url.set_password(None).is_ok() {
        url.as_str().trim_end_matches('/').to_owned()
    } else {
        // A URL without a host has no login either.
        url.into()
    }
}

/// True for the mark of a login in a place where no login is: most likely the password holds what
/// ends a host.
fn has_stray_at(url: &Url) -> bool {
    let parts = [Some(url.path()), url.query(), url.fragment()];
    parts.into_iter().flatten().any(|part| part.contains('@'))
}

fn shown_odd(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme))
    else {
        return first_chars(text, ODD_CHARS_MAX).into_owned();
    };
    // The last @ ends the login, even if the login holds another.
    let rest = rest.rsplit('@').take(1).collect::<String>();
    let rest = rest.split(['?', '#']).take(1).collect::<String>();
    match rest.split_once(':') {
        // No port: a login whose host is missing.
        Some((host, port)) if !is_port(port) => format!("{scheme}://{host}:\u{2026}"),
        Some(_) | None => format!("{scheme}://{rest}"),
    }
}

fn is_scheme(text: &str) -> bool {
    text.len() <= ODD_CHARS_MAX && text.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_port(text: &str) -> bool {
    let port = text.split('/').next().unwrap_or_default();
    port.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_keeps_path_and_query() {
        let check = |base_url: &str, has_login: bool, expected: &str| {
            assert_eq!(
                endpoint(base_url, "/chat/completions", has_login).expect("good").as_str(),
                expected
            );
        };
        check("http://h/v1", true, "http://h/v1/chat/completions");
        check(" http://h/v1/ ", true, "http://h/v1/chat/completions");
        check("https://h", true, "https://h/chat/completions");
        check("https://h/d?api-version=1#x", true, "https://h/d/chat/completions?api-version=1");
        check("http://u:p%2Fw%40@h", true, "http://u:p%2Fw%40@h/chat/completions");
        check("http://u:p@h", false, "http://h/chat/completions");
        check("http://h/v1/chat/completions", false, "http://h/v1/chat/completions");
        check("http://h/v1/chat/completions/", false, "http://h/v1/chat/completions");
        check("http://h/chat/completions?v=1", false, "http://h/chat/completions?v=1");
        check(
            "http://h/my-chat/completions",
            false,
            "http://h/my-chat/completions/chat/completions",
        );
        check("http://h/%40scope", false, "http://h/%40scope/chat/completions");
    }

    #[test]
    fn a_path_is_missing_only_where_there_is_none() {
        let check = |base_url: &str, example: &str, expected: Option<&str>| {
            let found = with_path_of(base_url, example);
            assert_eq!(found.map(|(_, url)| url).as_deref(), expected, "{base_url} {example}");
        };
        let example = "http://localhost:11434/v1";
        check("http://127.0.0.1:18932", example, Some("http://127.0.0.1:18932/v1"));
        check("https://h/", example, Some("https://h/v1"));
        check("https://h/v1", example, None);
        check("https://h/openai", example, None);
        check("https://h", "https://api.anthropic.com", None);
        check("https://h", "", None);
        check("h", example, None);
    }

    #[test]
    fn a_host_is_named_without_login_path_and_query() {
        let check = |base_url: &str, expected: Option<&str>| {
            assert_eq!(host(base_url).as_deref(), expected, "{base_url}");
        };
        check("https://api.openai.com/v1", Some("api.openai.com"));
        check("https://user:word@Host:8443/v1?key=word", Some("host:8443"));
        check("http://[::1]:80/v1", Some("[::1]"));
        check("http://user:p@ss/word@127.0.0.1:9/v1", None);
        check("localhost:1234", None);
    }

    #[test]
    fn addresses_are_the_same_but_for_their_end() {
        let check = |one: &str, other: &str, same: bool| {
            assert_eq!(is_same(one, other), same, "{one} {other}");
        };
        check("https://h/v1", " https://H:443/v1/ ", true);
        check("https://h", "https://h/", true);
        check("https://h/v1", "http://h/v1", false);
        check("https://h/v1", "https://h/v2", false);
        check("https://h/v1", "https://h:8443/v1", false);
        check("https://h/v1", "https://h.evil/v1", false);
        check("https://h/v1", "https://u@h/v1", false);
        check("https://h/v1", "https://h/v1?to=evil", false);
        check("h/v1", "h/v1", false);
    }

    #[test]
    fn an_address_that_may_be_another_than_meant_is_refused() {
        let check = |base_url: &str, words: &str| {
            let why = endpoint(base_url, "/chat/completions", false).expect_err(base_url);
            assert!(why.contains(words), "{base_url}: {why}");
        };
        check("http://user:p@ss/word@127.0.0.1:9/v1", "%2F");
        check("http://user:1/word@host/v1", "%2F");
        check("http://user:1?word@host/v1", "%3F");
        check("http://user:1#word@host/v1", "%23");
        check("http://user:pass/word@host/v1", "not a number from 0 to 65535");
        check("localhost:1234/v1", "does not begin with http:// or https://");
        check("host/v1", "does not begin with http:// or https://");
        check("http://", "names no host");
        check("http://[", "an IP address that is not valid");
        check("http://a b", "characters that no host name can have");
    }

    #[test]
    fn no_login_and_no_query_is_shown() {
        let check = |base_url: &str, expected: &str| assert_eq!(shown(base_url), expected);
        check(" https://h:1/v1/ ", "https://h:1/v1");
        check("http://h", "http://h");
        check("http://user:pass@h/v1?key=secret#x", "http://h/v1");
        check("http://user:p@ss/word@127.0.0.1:9/v1", "http://127.0.0.1:9/v1");
        check("http://user:1/w@h/v1?secret", "http://h/v1");
        check("http://user:1?w@h/v1#secret", "http://h/v1");
        check("http://user:1#w@h/v1", "http://h/v1");
        check(r"http://user:p@s\w@h", "http://h");
        check("http://user:pass", "http://user:\u{2026}");
        check("http://host:99999/v1", "http://host:99999/v1");
        check("http://a host/v1", "http://a host/v1");
        check("ftp://user:pass@h/a", "ftp://h/a");
        check("data:user@secret", "data:use\u{2026}");
        check("sk-proj-0123456789", "sk-proj-\u{2026}");
        check("sk-proj-0123456789://a", "sk-proj-\u{2026}");
        check("user:pass@http://h", "user:pas\u{2026}");
        check("localhost:1234/v1", "localhos\u{2026}");
        check("http://", "http://");
        check("", "");
    }
}
