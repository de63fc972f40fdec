//! Ids and names of a stream. Ids are remembered in bounded memory: a stream may hold any number of
//! them, of any length.

use super::rule::{Report, Rule};
use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

/// Characters of an id that a message shows.
const SHOWN_CHARS: usize = 80;

/// An id, by its hash. The seed is drawn for each checker, so that no stream can be made in which
/// two ids meet, and by chance it takes billions of them.
#[derive(Clone, Debug)]
pub(super) struct Name {
    hash: u64,
    /// Its beginning, for people.
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

/// Makes names.
#[derive(Clone, Debug, Default)]
pub(super) struct Namer(RandomState);

impl Namer {
    /// The hash of a text, for comparisons that show nothing.
    pub(super) fn key(&self, text: &str) -> u64 {
        self.0.hash_one(text)
    }

    pub(super) fn name(&self, id: &str) -> Name {
        Name { hash: self.key(id), shown: shown(id) }
    }
}

/// A text from the stream, short enough for a message.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// The last names of many.
#[derive(Clone, Debug)]
pub(super) struct Remembered {
    count_max: usize,
    keys: HashSet<u64>,
    order: VecDeque<u64>,
    /// How many had to be forgotten.
    pub(super) forgotten: u64,
}

impl Remembered {
    pub(super) fn new(count_max: usize) -> Self {
        Self { count_max, keys: HashSet::new(), order: VecDeque::new(), forgotten: 0 }
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.keys.contains(&name.hash)
    }

    pub(super) fn insert(&mut self, name: &Name) {
        if !self.keys.insert(name.hash) {
            return;
        }
        self.order.push_back(name.hash);
        if self.order.len() > self.count_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
            self.forgotten += 1;
        }
    }
}

/// `payload` is the payload's own name; `strange` its full name if it had to be taken out.
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
