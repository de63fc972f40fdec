//! What must never be shown: a key, and the same key inside text that others wrote.

use std::fmt;

/// Stands where a secret was.
const REDACTED: &str = "[redacted]";

/// A key. Shows itself to nobody: its text leaves only by [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The key in `text` without the white space around it, as a file or a variable may add it;
    /// `None` if nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The key itself, for the one header it is meant for.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without this key, and without the user names and passwords of URLs.
    pub fn redact(&self, text: &str) -> String {
        without_userinfo(&text.replace(&self.0, REDACTED))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

/// `text` without the userinfo of the URLs in it (RFC 3986, section 3.2.1).
pub fn without_userinfo(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(colon) = rest.find("://") {
        let (before, after) = rest.split_at(colon + "://".len());
        kept += before;
        let authority = after.find(ends_authority).map_or(after, |end| &after[..end]);
        let userinfo_bytes = authority.rfind('@').map_or(0, |at| at + 1);
        rest = &after[userinfo_bytes..];
    }
    kept + rest
}

fn ends_authority(c: char) -> bool {
    matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>' | '`') || c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_trimmed_and_shows_itself_to_nobody() {
        let secret = Secret::new(" sk-abc\n").expect("not empty");
        assert_eq!(secret.expose(), "sk-abc");
        assert_eq!(format!("{secret:?}"), "Secret([redacted])");
        assert_eq!(Secret::new(" \n"), None);
    }

    #[test]
    fn text_of_others_loses_the_key_and_every_userinfo() {
        let check = |text: &str, redacted: &str| {
            let secret = Secret::new("sk-abc").expect("not empty");
            assert_eq!(secret.redact(text), redacted);
        };
        check("nothing here", "nothing here");
        check("bad key sk-abc, sk-abcd", "bad key [redacted], [redacted]d");
        check("http://u:p@host/a@b and https://h", "http://host/a@b and https://h");
        check("a://sk-abc@h b://u@v@h?x c://", "a://h b://h?x c://");
        check("http://u:\u{e9}@h", "http://h");
    }
}
