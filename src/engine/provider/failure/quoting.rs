//! Text that others wrote, as failures quote it: cut, and without secrets.

use super::Failures;
use crate::engine::provider::http::login_token;
use crate::engine::provider::tool::NAME_BYTES_MAX;
use crate::support::secret::{Secret, without_userinfo};
use crate::support::shorten::first_chars;
use reqwest::Url;

/// Bytes of the provider's words that are searched for secrets before they are quoted.
const QUOTED_BYTES_MAX: usize = 64 * 1024;

/// Headers that hold no credentials, in lower case: who asks, what for, and which form of the interface. The value of
/// any other header may be a key.
const PUBLIC_HEADERS: [&str; 20] = [
    "accept",
    "accept-language",
    "anthropic-beta",
    "anthropic-version",
    "content-type",
    "copilot-integration-id",
    "copilot-vision-request",
    "editor-plugin-version",
    "editor-version",
    "http-referer",
    "openai-beta",
    "openai-intent",
    "openai-organization",
    "openai-project",
    "referer",
    "user-agent",
    "x-goog-user-project",
    "x-initiator",
    "x-openrouter-title",
    "x-title",
];

impl Failures {
    /// Failures that hide the values of `headers`, which have their names in lower case, too, also without the word for
    /// their scheme. Those of [`PUBLIC_HEADERS`] stay: an error may be about them, and a name may have the same words.
    pub(in crate::engine) fn hiding<'a>(
        mut self,
        headers: impl Iterator<Item = (&'a String, &'a Secret)>,
    ) -> Self {
        let secret = headers.filter(|(name, _)| !PUBLIC_HEADERS.contains(&name.as_str()));
        let forms = |(_, header): (&String, &Secret)| [Some(header.clone()), credentials(header)];
        self.secrets.extend(secret.flat_map(forms).flatten());
        self
    }

    /// The name of a called tool for an event. The name of an offered tool stays as it is: the client has given it, and
    /// the call is for the tool of this name.
    pub(in crate::engine) fn shown_tool_name(&self, name: &str) -> String {
        match self.tool_names.iter().any(|offered| offered == name) {
            true => name.to_owned(),
            false => self.shown(name, NAME_BYTES_MAX),
        }
    }

    /// A word of the provider's for an event: without secrets, and of `bytes_max` bytes at most.
    pub(in crate::engine) fn shown(&self, word: &str, bytes_max: usize) -> String {
        let mut word = self.redacted(word);
        word.truncate(word.floor_char_boundary(bytes_max));
        word
    }

    /// A text of the provider's that was cut off, without secrets, including one that is cut by its end.
    pub(in crate::engine) fn broken_off(&self, text: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(text).into_owned();
        let redact = |text: String, secret: &Secret| secret.redact_cut(&text);
        self.secrets.iter().fold(text, redact).into_bytes()
    }

    pub(super) fn redacted(&self, text: &str) -> String {
        let redact = |text: String, secret: &Secret| secret.redact(&text);
        self.secrets.iter().fold(text.to_owned(), redact)
    }

    /// Text that the provider or the user wrote, without secrets, cut to `chars_max` characters.
    pub(super) fn quote(&self, text: &str, chars_max: usize) -> String {
        let text = match text.get(..text.floor_char_boundary(QUOTED_BYTES_MAX)) {
            // The search for secrets takes time that grows with the text.
            Some(start) if start.len() < text.len() => {
                String::from_utf8_lossy(&self.broken_off(start.as_bytes())).into_owned()
            }
            Some(_) | None => self.redacted(text),
        };
        first_chars(&without_userinfo(&text), chars_max).into_owned()
    }
}

/// The credentials after the scheme in a header as `Bearer KEY` (RFC 9110, section 11.4). A provider may repeat
/// it alone.
fn credentials(header: &Secret) -> Option<Secret> {
    Secret::new(header.expose().split_once(' ')?.1)
}

/// The secrets of the login in `url`: the password and its form in the header, or a user name
/// without a password, which is a key.
pub(super) fn login(url: &Url) -> Vec<Secret> {
    let secrets = match url.password() {
        Some(password) => [Secret::new(password), Secret::new(&login_token(url))],
        None => [Secret::new(url.username()), None],
    };
    secrets.into_iter().flatten().collect()
}
