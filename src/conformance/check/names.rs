//! Ids and names of a stream. They are remembered in bounded memory, as a stream may contain any
//! number of them, of any length.

use super::rule::{Report, Rule};
use crate::support::shorten::first_chars;
use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

/// Longest part of an id in a message, in characters.
const SHOWN_CHARS: usize = 80;

/// An id, by its hash. Each checker has a random seed, so that no stream can be constructed in
/// which two ids collide; by chance that takes billions of them.
#[derive(Clone, Debug)]
pub(super) struct Name {
    hash: u64,
    /// Its beginning, for messages.
    pub(super) shown: String,
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Name {
    pub(super) fn key(&self) -> u64 {
        self.hash
    }
}

/// Creates names.
#[derive(Clone, Debug, Default)]
pub(super) struct Namer(RandomState);

impl Namer {
    /// The hash of a text that is only compared.
    pub(super) fn key(&self, text: &str) -> u64 {
        self.0.hash_one(text)
    }

    pub(super) fn name(&self, id: &str) -> Name {
        Name { hash: self.key(id), shown: shown(id) }
    }
}

/// A text from the stream, short enough for a message.
pub(super) fn shown(text: &str) -> String {
    first_chars(text, SHOWN_CHARS).into_owned()
}

/// A bounded set of the latest names.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered {
    keys: HashSet<u64>,
    order: VecDeque<u64>,
    /// How many were forgotten.
    pub(super) forgotten: u64,
}

impl Remembered {
    pub(super) fn contains(&self, name: &Name) -> bool {
        self.keys.contains(&name.hash)
    }

    /// Adds a name, and forgets the oldest of more than `count_max`.
    pub(super) fn insert(&mut self, name: &Name, count_max: usize) {
        if !self.keys.insert(name.hash) {
            return;
        }
        self.order.push_back(name.hash);
        if self.order.len() > count_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
            self.forgotten += 1;
        }
    }
}

/// `payload` is the payload's own name; `strange` its full name if it was removed.
pub(super) fn check_event_name(
    name: &str,
    payload: &str,
    strange: Option<&String>,
    report: &mut Report,
) {
    let payload = match strange {
        Some(strange) => strange.rsplit('.').next().unwrap_or_default(),
        None => payload,
    };
    if payload.is_empty() {
        report.add(Rule::PayloadMissing, "the event has no payload");
    } else if payload != name {
        let (name, payload) = (shown(name), shown(payload));
        report.add(Rule::NameMismatch, format!("the event {name:?} has the payload {payload}"));
    }
}
