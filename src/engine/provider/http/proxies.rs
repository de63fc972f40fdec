//! The proxies that the environment names, and the hosts that it exempts from them.

use super::is_this_machine;
use data_encoding::BASE64;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use reqwest::{Proxy, Url};

/// The list of exempt hosts; the first one that is set counts.
const EXEMPT_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The entry of the list that exempts every host.
const EVERY_HOST: &str = "*";

/// A name that no server has (RFC 6761).
const NOWHERE: &str = "http://proxy.invalid/";

#[derive(Debug)]
pub(super) struct Proxies {
    /// As the HTTP client reads them.
    matcher: Matcher,
    exempt: String,
}

impl Proxies {
    pub(super) fn from_environment() -> Self {
        let exempt = EXEMPT_VARIABLES.iter().find_map(|name| std::env::var(name).ok());
        Self { matcher: Matcher::from_system(), exempt: exempt.unwrap_or_default() }
    }

    /// The proxy that requests to `url` go through.
    pub(super) fn of(&self, url: &Url) -> Option<Intercept> {
        // A proxy's loopback is another machine.
        if is_this_machine(url) || is_exempt(&self.exempt, url) {
            return None;
        }
        self.matcher.intercept(&url.as_str().parse().ok()?)
    }

    /// Chooses in this way for each request of a client, which may ask several hosts, as at a login.
    pub(super) fn into_choice(self) -> Proxy {
        Proxy::custom(move |url| address(&self.of(url)?))
    }
}

/// The address of a proxy with its login. A request whose proxy has an unusable address must fail, not go around the
/// proxy.
fn address(proxy: &Intercept) -> Option<Url> {
    let mut url = Url::parse(&proxy.uri().to_string()).or_else(|_| Url::parse(NOWHERE)).ok()?;
    if let Some((name, password)) = login(proxy) {
        let is_set = url.set_username(&name).and_then(|()| url.set_password(Some(&password)));
        if is_set.is_err() {
            return Url::parse(NOWHERE).ok();
        }
    }
    Some(url)
}

fn login(proxy: &Intercept) -> Option<(String, String)> {
    if let Some((name, password)) = proxy.raw_auth() {
        return Some((name.to_owned(), password.to_owned()));
    }
    let token = proxy.basic_auth()?.as_bytes().strip_prefix(b"Basic ")?;
    let login = String::from_utf8(BASE64.decode(token).ok()?).ok()?;
    let (name, password) = login.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

/// Whether `list` exempts the host of `url`. Programs differ in what they take in such a list: entries are separated
/// by commas, as in curl, or by white space, and may be `*.example.com` and `HOST:PORT`, as in Go and Node.
fn is_exempt(list: &str, url: &Url) -> bool {
    let port = url.port_or_known_default();
    let entries = list.split(|it: char| it == ',' || it.is_whitespace());
    let hosts: Vec<_> = entries.filter_map(|entry| exempt_at(entry, port)).collect();
    if hosts.contains(&EVERY_HOST) {
        return true;
    }
    let Ok(uri) = url.as_str().parse() else { return false };
    // The HTTP client compares names, addresses and networks; which proxy it would choose does not matter.
    let matcher = Matcher::builder().all(NOWHERE).no(hosts.join(",")).build();
    matcher.intercept(&uri).is_none()
}

/// What an entry exempts at `port`, as the HTTP client takes it.
fn exempt_at(entry: &str, port: Option<u16>) -> Option<&str> {
    let (host, only_at) = host_and_port(entry);
    let is_at = only_at.is_none_or(|only| only.parse().ok() == port);
    let domain = host.strip_prefix('*').filter(|rest| rest.starts_with('.'));
    is_at.then_some(domain.unwrap_or(host)).filter(|host| !host.is_empty())
}

fn host_and_port(entry: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host, rest.strip_prefix(':'));
    }
    match entry.split_once(':') {
        // More colons are those of an IPv6 address.
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        Some(_) | None => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_exempt_in_every_form_that_programs_take() {
        let check = |list: &str, url: &str, expected: bool| {
            let url = Url::parse(url).expect("an address");
            assert_eq!(is_exempt(list, &url), expected, "{list:?} {url}");
        };
        let (llm, named) = ("http://llm.corp.example:8080/v1", "https://llm.corp.example/v1");
        for list in [
            "corp.example",
            ".corp.example",
            "*.corp.example",
            "*.CORP.example:8080",
            "llm.corp.example:8080",
            "other.example llm.corp.example",
            " other.example ,\tllm.corp.example:8080\n",
            "*",
            "*:8080",
            "other.example,*",
        ] {
            check(list, llm, true);
        }
        for list in [
            "",
            " , ",
            "*.example.org",
            "llm.corp.example:80",
            "llm.corp.example:",
            "llm.corp.example:http",
            "m.corp.example",
            "http://llm.corp.example:8080",
            "10.0.0.0/8",
            "*:80",
        ] {
            check(list, llm, false);
        }
        // A scheme has a port.
        check("llm.corp.example:443", named, true);
        check("llm.corp.example:8080", named, false);
        for (list, expected) in [
            ("10.1.2.3", true),
            ("10.1.2.3:8080", true),
            ("10.0.0.0/8", true),
            ("*", true),
            ("10.1.2.3:80", false),
            ("10.1.2.4:8080", false),
        ] {
            check(list, "http://10.1.2.3:8080/v1", expected);
        }
        for (list, expected) in [
            ("fd00::7", true),
            ("[fd00::7]", true),
            ("[fd00::7]:8080", true),
            ("fd00::/8", true),
            ("[fd00::7]:80", false),
            ("fd00::8", false),
        ] {
            check(list, "http://[fd00::7]:8080/v1", expected);
        }
    }

    /// A client that takes one address for all gets the login in it.
    #[test]
    fn the_address_of_a_proxy_has_its_login() {
        let check = |proxy: &str, expected: &str| {
            let matcher = Matcher::builder().all(proxy).build();
            let uri = "http://models.invalid".parse().expect("an address");
            let intercept = matcher.intercept(&uri).expect("a proxy");
            assert_eq!(address(&intercept).as_ref().map(Url::as_str), Some(expected), "{proxy}");
        };
        check("proxy.example:3128", "http://proxy.example:3128/");
        check(
            "http://ann:hid%20den@proxy.example:3128/x",
            "http://ann:hid%20den@proxy.example:3128/",
        );
        check("http://ann@proxy.example:3128", "http://ann@proxy.example:3128/");
        check("socks5h://ann:p%40ss@127.0.0.1:1080", "socks5h://ann:p%40ss@127.0.0.1:1080/");
        check("socks5h://127.0.0.1:1080", "socks5h://127.0.0.1:1080/");
        // No address is a reason to go around the proxy.
        check("http://999.999.999.999:3128", NOWHERE);
    }
}
