//! Functions on URLs: <https://masterminds.github.io/sprig/url.html>. Parsed and formatted as by
//! Go's `net/url`: <https://pkg.go.dev/net/url>.

use super::{Function, FunctionCall, function};
use crate::template::value::{Map, Value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

pub(super) const FUNCTIONS: &[Function] = &[
    function("urlParse", (1, 1), |call| {
        let text = call.text(0)?;
        let url = Url::read(text).map_err(|why| format!("{text:?} is not a URL: {why}"))?;
        let map: Map =
            url.parts().map(|(name, part)| (name.into(), Value::text(part.as_str()))).collect();
        call.heap.map(map)
    }),
    function("urlJoin", (1, 1), |call| {
        let url = Url {
            scheme: part(call, "scheme")?,
            userinfo: userinfo(&part(call, "userinfo")?)?,
            host: part(call, "host")?,
            path: part(call, "path")?,
            query: part(call, "query")?,
            opaque: part(call, "opaque")?,
            fragment: part(call, "fragment")?,
        };
        Ok(Value::text(url.written()))
    }),
];

/// Characters that are never escaped in a URL.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

const USER: &AsciiSet =
    &UNRESERVED.remove(b'$').remove(b'&').remove(b'+').remove(b',').remove(b';').remove(b'=');

const PATH: &AsciiSet = &USER.remove(b'/').remove(b':').remove(b'@');

const FRAGMENT: &AsciiSet = &PATH.remove(b'?').remove(b'!').remove(b'(').remove(b')').remove(b'*');

const HOST: &AsciiSet = &USER
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b':')
    .remove(b'[')
    .remove(b']')
    .remove(b'<')
    .remove(b'>')
    .remove(b'"');

/// The parts of a URL. `userinfo` and `query` are escaped, the others are not.
#[derive(Default)]
struct Url {
    scheme: String,
    userinfo: String,
    host: String,
    path: String,
    query: String,
    opaque: String,
    fragment: String,
}

impl Url {
    fn read(text: &str) -> Result<Self, String> {
        if text.chars().any(|char| char.is_ascii_control()) {
            return Err("it contains a control character".into());
        }
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = Self { fragment: decoded(fragment)?, ..Self::default() };
        let (scheme, rest) = scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        url.query = query.to_owned();
        if !rest.starts_with('/') && !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if rest.split('/').next().is_some_and(|first| first.contains(':')) {
            return Err("its path begins with a name that has a colon".into());
        }
        let has_host = !url.scheme.is_empty() || !rest.starts_with("///");
        let path = match rest.strip_prefix("//").filter(|_| has_host) {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
                url.userinfo = userinfo(user)?;
                url.host = checked_host(host)?;
                path
            }
            None => rest,
        };
        url.path = decoded(path)?;
        Ok(url)
    }

    /// The host without its port, and an IPv6 address without its brackets.
    fn hostname(&self) -> String {
        let has_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let host = match self.host.rsplit_once(':') {
            Some((host, port)) if has_port(port) => host,
            _ => &self.host,
        };
        let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        inside.unwrap_or(host).to_owned()
    }

    fn parts(self) -> impl Iterator<Item = (&'static str, String)> {
        let hostname = self.hostname();
        [
            ("scheme", self.scheme),
            ("userinfo", self.userinfo),
            ("host", self.host),
            ("hostname", hostname),
            ("path", self.path),
            ("query", self.query),
            ("opaque", self.opaque),
            ("fragment", self.fragment),
        ]
        .into_iter()
    }

    fn written(&self) -> String {
        let mut out = String::new();
        if !self.scheme.is_empty() {
            out.push_str(&self.scheme);
            out.push(':');
        }
        if self.opaque.is_empty() {
            self.write_hierarchy(&mut out);
        } else {
            out.push_str(&self.opaque);
        }
        if !self.query.is_empty() {
            out.push('?');
            out.push_str(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push('#');
            out.extend(utf8_percent_encode(&self.fragment, FRAGMENT));
        }
        out
    }

    fn write_hierarchy(&self, out: &mut String) {
        let has_authority = !self.host.is_empty() || !self.userinfo.is_empty();
        if has_authority || !self.scheme.is_empty() && !self.path.is_empty() {
            out.push_str("//");
        }
        if !self.userinfo.is_empty() {
            out.push_str(&self.userinfo);
            out.push('@');
        }
        out.extend(utf8_percent_encode(&self.host, HOST));
        if !self.host.is_empty() && !self.path.is_empty() && !self.path.starts_with('/') {
            out.push('/');
        }
        // Otherwise the text before the colon would be taken for the scheme.
        if out.is_empty() && self.path.split('/').next().is_some_and(|first| first.contains(':')) {
            out.push_str("./");
        }
        out.extend(utf8_percent_encode(&self.path, PATH));
    }
}

/// A member of the map that `urlJoin` gets; empty if it is missing.
fn part(call: &FunctionCall<'_>, name: &str) -> Result<String, String> {
    match call.heap.read(call.map(0)?).get(name) {
        None => Ok(String::new()),
        Some(Value::Text(text)) => Ok(text.to_string()),
        Some(other) => {
            Err(format!("{name:?} must be a string in the map, got {}", other.type_name()))
        }
    }
}

/// The scheme, if there is one, and the rest.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    let end = text.find(|char: char| !char.is_ascii_alphanumeric() && !"+-.".contains(char));
    match end.map(|end| text.split_at(end)) {
        Some(("", rest)) if rest.starts_with(':') => Err("its scheme is missing".into()),
        Some((scheme, rest)) if scheme.starts_with(|char: char| char.is_ascii_alphabetic()) => {
            Ok(rest.strip_prefix(':').map_or(("", text), |rest| (scheme, rest)))
        }
        Some(_) | None => Ok(("", text)),
    }
}

/// User and password, escaped where necessary.
fn userinfo(text: &str) -> Result<String, String> {
    let is_allowed =
        |char: char| char.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(char);
    if !text.chars().all(is_allowed) {
        return Err("its user has a character that must be escaped".into());
    }
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(decoded(password)?)),
        None => (text, None),
    };
    let mut out = utf8_percent_encode(&decoded(user)?, USER).to_string();
    if let Some(password) = password {
        out.push(':');
        out.extend(utf8_percent_encode(&password, USER));
    }
    Ok(out)
}

fn checked_host(host: &str) -> Result<String, String> {
    let after_address = host.rsplit_once(']').map_or(host, |(_, after)| after);
    if host.starts_with('[') && !host.contains(']') {
        return Err("its host has a [ without a ]".into());
    }
    let port = after_address.rsplit_once(':').map_or("", |(_, port)| port);
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("its port is not a number".to_owned());
    }
    let is_allowed = |char: char| {
        !char.is_ascii() || char.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(char)
    };
    match host.chars().find(|char| !is_allowed(*char)) {
        Some(char) => Err(format!("its host contains {char:?}")),
        None => decoded(host),
    }
}

/// Decodes percent escapes.
fn decoded(text: &str) -> Result<String, String> {
    for (at, _) in text.match_indices('%') {
        let digits = text.as_bytes().get(at + 1..at + 3);
        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            return Err("it has a % that is not followed by two hexadecimal digits".into());
        }
    }
    let text = percent_decode_str(text).decode_utf8();
    text.map(Into::into).map_err(|_| "its decoded escapes are not UTF-8".into())
}
