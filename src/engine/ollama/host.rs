//! The address in `OLLAMA_HOST`, the variable of Ollama's own programs, which may leave out almost all
//! of it (<https://docs.ollama.com/faq>). Pure.

use super::DEFAULT_BASE_URL;
use std::net::Ipv6Addr;

/// Addresses that a server listens on and no client can call, and those to call in their place.
const EVERY_ADDRESS: [(&str, &str); 2] = [("0.0.0.0", "127.0.0.1"), ("[::]", "[::1]")];

/// The host where nothing names one.
const HOST: &str = "127.0.0.1";

/// The port where neither a port nor a scheme is named.
const PORT: &str = "11434";

/// Around the address, as files of units and containers may hand it on.
const QUOTES: [char; 2] = ['"', '\''];

/// Ollama's own service, and its address: it gets a key, so that it is called with TLS.
const SERVICE: (&str, &str) = ("ollama.com", "https://ollama.com");

/// The base URL that `host` means: `host`, `host:port`, `:port`, or a URL.
pub fn base_url(host: &str) -> String {
    let host = host.trim().trim_matches(QUOTES).trim();
    if host == SERVICE.0 {
        return SERVICE.1.to_owned();
    }
    let (scheme, rest) =
        host.split_once("://").map_or((None, host), |(scheme, rest)| (Some(scheme), rest));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (login, address) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    let (name, port) = name_and_port(address);
    if name.is_empty() && port.is_none() && path.is_empty() {
        return DEFAULT_BASE_URL.to_owned();
    }
    let name = if name.is_empty() { HOST } else { &name };
    let callable = EVERY_ADDRESS.iter().find(|(every, _)| *every == name);
    let name = callable.map_or(name, |(_, callable)| callable);
    let port = match (port, scheme) {
        (Some(port), _) => format!(":{port}"),
        (None, None) => format!(":{PORT}"),
        // The port of the scheme.
        (None, Some(_)) => String::new(),
    };
    format!("{}://{login}{name}{port}{path}", scheme.unwrap_or("http"))
}

/// The name in `address`, with brackets if it is an IPv6 address, and the port. A port that can be none is left out,
/// for the default.
fn name_and_port(address: &str) -> (String, Option<u16>) {
    if let Ok(ip) = address.trim_matches(['[', ']']).parse::<Ipv6Addr>() {
        return (format!("[{ip}]"), None);
    }
    match address.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name.to_owned(), port.parse().ok()),
        Some(_) | None => (address.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_leave_out_what_is_usual() {
        for (host, expected) in [
            ("", "http://127.0.0.1:11434"),
            ("example.com", "http://example.com:11434"),
            (" example.com:56789 ", "http://example.com:56789"),
            (":56789", "http://127.0.0.1:56789"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("0.0.0.0:56789", "http://127.0.0.1:56789"),
            ("[::]:9", "http://[::1]:9"),
            ("[::1]", "http://[::1]:11434"),
            ("::1", "http://[::1]:11434"),
            ("::", "http://[::1]:11434"),
            ("fe80::1", "http://[fe80::1]:11434"),
            ("\"127.0.0.1:11434\"", "http://127.0.0.1:11434"),
            (" 'example.com' ", "http://example.com:11434"),
            ("127.0.0.1:99999", "http://127.0.0.1:11434"),
            ("example.com:", "http://example.com:11434"),
            ("http://example.com:port", "http://example.com"),
            ("ollama.com", "https://ollama.com"),
            ("http://ollama.com", "http://ollama.com"),
            ("ollama.com:80", "http://ollama.com:80"),
            ("http://example.com", "http://example.com"),
            ("https://example.com", "https://example.com"),
            ("https://example.com:56789/ollama", "https://example.com:56789/ollama"),
            ("example.com/ollama", "http://example.com:11434/ollama"),
            ("https://user:word@example.com", "https://user:word@example.com"),
            ("user:word@example.com:9/a", "http://user:word@example.com:9/a"),
        ] {
            assert_eq!(base_url(host), expected, "{host:?}");
        }
    }
}
