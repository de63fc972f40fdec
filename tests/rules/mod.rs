//! The published rules for the requests of five interfaces: what a provider refuses with status 400
//! or 422. A conversation that breaks one of them is refused at every later turn, so that the tests of
//! the engines check the requests that they make, and the scripted providers those that they get.
//!
//! Each file names the sources of its rules. Where servers of one interface differ, the strictest
//! counts, as far as the others take what it wants.

mod chat_completions;
mod generate_content;
mod messages;
mod ollama;
mod responses;

use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Display;

/// Bytes of a tool's name that every provider takes.
const NAME_BYTES_MAX: usize = 64;

/// The domain of Mistral's servers, which have rules of their own.
const MISTRAL: &str = "mistral.ai";

/// The rules that a request to `path` at `host` breaks, each with its place in `body`; none for what
/// is no call of a model.
pub(crate) fn broken_rules(path: &str, host: &str, body: &Value) -> Vec<String> {
    let path = path.split('?').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    let mut broken = Broken::default();
    if path.ends_with("/chat/completions") {
        let is_mistral = host == MISTRAL || host.ends_with(&format!(".{MISTRAL}"));
        chat_completions::check(body, is_mistral, &mut broken);
    } else if path.ends_with("/responses") {
        responses::check(body, &mut broken);
    } else if path.ends_with("/messages") {
        messages::check(body, &mut broken);
    } else if let Some(model) = path.strip_suffix(":streamGenerateContent") {
        generate_content::check(body, model, &mut broken);
    } else if path.ends_with("/api/chat") {
        ollama::check(body, &mut broken);
    }
    broken.0
}

/// What was found.
#[derive(Default)]
struct Broken(Vec<String>);

impl Broken {
    /// `rule` has to hold at `place`.
    fn expect(&mut self, holds: bool, place: impl Display, rule: &str) {
        if !holds {
            self.0.push(format!("{place}: {rule}"));
        }
    }

    /// What is said or returned has to be a text with more than white space in it.
    fn expect_text(&mut self, value: &Value, place: impl Display) {
        self.expect(!text(value).trim().is_empty(), place, "a text is not blank");
    }

    /// `names` of tools that are offered.
    fn expect_tools<'v>(&mut self, names: impl Iterator<Item = &'v Value>) {
        let mut known = BTreeSet::new();
        for (at, name) in names.enumerate() {
            let name = text(name);
            self.expect(is_name(name), format!("tools[{at}]"), "a name has its pattern");
            self.expect(known.insert(name), format!("tools[{at}]"), "names are unique");
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// OpenAI: `^[a-zA-Z0-9_-]+$`, up to 64; Anthropic's and Google's patterns take more.
fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && is_word(name)
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Arguments as they stand in a text.
fn is_object_text(arguments: &Value) -> bool {
    serde_json::from_str::<Value>(text(arguments)).is_ok_and(|value| value.is_object())
}
