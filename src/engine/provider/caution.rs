//! Warnings about the connection to the provider, before anything is sent. They hold no value of a
//! variable: the address of a proxy may hold a password.

use super::http::is_this_machine;
use http::Uri;
use reqwest::Url;
use std::ffi::{OsStr, OsString};

/// The variables that name a proxy.
const PROXY_VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// The warnings for requests to `url`, which carry a key, or headers that may be one, if `has_key`.
pub(in crate::engine) fn warnings(
    url: &Url,
    has_key: bool,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<String> {
    let is_open = url.scheme() == "http" && !is_this_machine(url);
    let has_key = has_key || !url.username().is_empty() || url.password().is_some();
    let mut warnings = Vec::new();
    if is_open && has_key {
        warnings.push(format!(
            "the key is sent to {} over http://, where others on the network can read it, as they can \
             read every header; name an https:// address, or leave out the key and the headers that \
             hold one",
            url.host_str().unwrap_or_default()
        ));
    }
    for name in PROXY_VARIABLES {
        let value = variable(name).filter(|value| !value.is_empty());
        warnings.extend(value.and_then(|value| proxy_fault(&value)).map(|fault| match fault {
            ProxyFault::Unreadable => format!(
                "{name} is ignored, because it holds no address of a proxy; requests go without that \
                 proxy. Set it to one like http://127.0.0.1:3128, or unset it"
            ),
            ProxyFault::NoPort => format!(
                "{name} names a SOCKS proxy without its port, which has no default here; requests \
                 through it will fail. Set it to one like socks5h://127.0.0.1:1080"
            ),
        }));
    }
    warnings
}

/// Why a variable names no proxy that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProxyFault {
    /// The HTTP client ignores it.
    Unreadable,
    /// A SOCKS proxy, for which the HTTP client takes the port of HTTP.
    NoPort,
}

/// The error in the value of a proxy variable, read as the HTTP client reads it.
fn proxy_fault(value: &OsStr) -> Option<ProxyFault> {
    let uri = value.to_str().and_then(|value| value.parse::<Uri>().ok());
    let Some((uri, authority)) = uri.as_ref().and_then(|uri| Some((uri, uri.authority()?))) else {
        return Some(ProxyFault::Unreadable);
    };
    let host = authority.as_str().rsplit('@').next().unwrap_or_default();
    let port = host.rsplit(']').next().and_then(|rest| rest.split_once(':'));
    if port.is_some() && authority.port_u16().is_none() {
        return Some(ProxyFault::Unreadable);
    }
    match uri.scheme_str() {
        None | Some("http" | "https") => None,
        Some("socks4" | "socks4a" | "socks5" | "socks5h") => {
            port.is_none().then_some(ProxyFault::NoPort)
        }
        Some(_) => Some(ProxyFault::Unreadable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_sent_in_the_clear_without_a_warning() {
        let check = |url: &str, has_key: bool, is_warned: bool| {
            let warnings = warnings(&Url::parse(url).expect("an address"), has_key, |_| None);
            assert_eq!(warnings.len(), usize::from(is_warned), "{url}: {warnings:?}");
            assert!(!format!("{warnings:?}").contains("secret"), "{warnings:?}");
        };
        check("http://provider.example/v1", true, true);
        check("http://provider.example/v1", false, false);
        check("http://user:secret@provider.example/v1", false, true);
        check("http://192.168.0.7:11434/v1", true, true);
        check("https://provider.example/v1", true, false);
        for host in ["localhost", "LOCALHOST:1", "127.0.0.2:9", "[::1]:9", "a.localhost"] {
            check(&format!("http://{host}/v1"), true, false);
        }
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_warned_of_without_its_value() {
        let url = Url::parse("https://provider.example").expect("an address");
        let check = |value: &str, words: Option<&str>| {
            for name in PROXY_VARIABLES {
                let warnings = warnings(&url, true, |read| (read == name).then(|| value.into()));
                assert_eq!(warnings.len(), usize::from(words.is_some()), "{value}: {warnings:?}");
                for warning in warnings {
                    assert!(warning.starts_with(name), "{warning}");
                    assert!(words.is_some_and(|words| warning.contains(words)), "{warning}");
                    assert!(!warning.contains("secret"), "{warning}");
                }
            }
        };
        for good in [
            "",
            "http://127.0.0.1:3128",
            "proxy:8080",
            "proxy",
            "http://u:secret@[::1]:9",
            "socks5h://user:secret@proxy:1080",
            "socks4://proxy:1080",
        ] {
            check(good, None);
        }
        for bad in [
            "not an address",
            "http://",
            "/path",
            "ftp://user:secret@proxy",
            "http://proxy:secret",
            "http://user:sec ret@proxy",
            "http://[half",
            "caf\u{e9} secret",
        ] {
            check(bad, Some("is ignored"));
        }
        check("socks5://user:secret@proxy", Some("without its port"));
    }
}
