//! Ids, each with its own type, so that one can't be passed in place of another.

use crate::support::split_mix;
use std::fmt;
use uuid::Uuid;

/// Longest id, in bytes. It is on every frame.
pub const ID_BYTES_MAX: usize = 1024;

/// The id of a conversation; trimmed, never empty, of limited length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(String);

/// The id of a request; trimmed, never empty, of limited length. Chosen by the client or generated
/// by the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(String);

/// The id of a tool call, as given by the model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolCallId(pub String);

/// The id of a run, which lasts from accepting a submit to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunId(Uuid);

impl RunId {
    /// The id for events outside of runs.
    pub(crate) const NONE: Self = Self(Uuid::nil());
}

/// Number of a task of a session, which is a provider call or a tool call: from 1, strictly rising.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

/// Number of an event: from 1, strictly rising for the life of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ordinal(pub u64);

impl Ordinal {
    /// The highest ordinal that a conversation may have before it goes on: that of a recording is not
    /// trusted, and those after it must fit into the integers of a database.
    pub(crate) const RESUMABLE_MAX: Self = Self(1 << 62);

    /// The ordinal after this one.
    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// An id is longer than [`ID_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {bytes} bytes, and {ID_BYTES_MAX} are allowed")]
pub struct IdTooLong {
    /// The length of the id.
    pub bytes: usize,
}

macro_rules! trimmed {
    ($name:ident) => {
        impl $name {
            /// The id in `text` without surrounding white space; `None` if nothing is left, or
            /// it is too long.
            pub fn new(text: &str) -> Option<Self> {
                Self::parse(text).ok().flatten()
            }

            /// The id in `text` without surrounding white space; `None` if nothing is left.
            ///
            /// # Errors
            /// If the id is too long.
            pub fn parse(text: &str) -> Result<Option<Self>, IdTooLong> {
                let text = text.trim();
                if text.len() > ID_BYTES_MAX {
                    return Err(IdTooLong { bytes: text.len() });
                }
                Ok((!text.is_empty()).then(|| Self(text.to_owned())))
            }

            /// The id as a string.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    };
}

trimmed!(SessionId);
trimmed!(RequestId);

/// What the id of a run, and what the root of its message ids begins with.
const RUN_PREFIX: &str = "run-";
const ROOT_PREFIX: &str = "chat-msg-";

impl RunId {
    /// The run whose message ids begin with `root`: `chat-msg-<uuid>`, as [`RunId::root`] gives it.
    pub(crate) fn of_root(root: &str) -> Option<Self> {
        let uuid = root.strip_prefix(ROOT_PREFIX)?;
        Uuid::try_parse(uuid.get(..36)?).ok().map(Self)
    }

    /// The bytes of its UUID.
    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The run with a UUID of these bytes; `None` if they are not as many as one has.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        Uuid::from_slice(bytes).ok().map(Self)
    }

    /// Root of the message ids of the run, `chat-msg-<uuid>`.
    pub(crate) fn root(self) -> String {
        self.named(ROOT_PREFIX)
    }

    /// The id as a string, `run-<uuid>`.
    pub(crate) fn text(self) -> String {
        self.named(RUN_PREFIX)
    }

    /// The prefix and the UUID. A long conversation names its runs for each entity of a snapshot, so this does
    /// without a formatter.
    fn named(self, prefix: &str) -> String {
        let mut buffer = Uuid::encode_buffer();
        [prefix, self.0.hyphenated().encode_lower(&mut buffer)].concat()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task-{}", self.0)
    }
}

/// Generates ids. Pure: the only source of randomness is the seed, so a test can predict every id.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    high: u64,
    low: u64,
}

impl Ids {
    /// `seed` is 128 random bits; equal seeds give equal ids.
    pub(crate) fn new(seed: u128) -> Self {
        let [high, low] = [(seed >> 64) as u64, seed as u64];
        Self { high, low }
    }

    /// Generates a session id.
    pub(crate) fn session(&mut self) -> SessionId {
        SessionId(format!("session-{}", self.next()))
    }

    /// Generates a request id.
    pub(crate) fn request(&mut self) -> RequestId {
        RequestId(format!("req-{}", self.next()))
    }

    /// Generates a run id.
    pub(crate) fn run(&mut self) -> RunId {
        RunId(self.next())
    }

    fn next(&mut self) -> Uuid {
        let bits =
            u128::from(split_mix(&mut self.high)) << 64 | u128::from(split_mix(&mut self.low));
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_trimmed_and_never_empty() {
        assert_eq!(
            SessionId::new(" demo\t").map(|id| id.as_str().to_owned()),
            Some("demo".to_owned())
        );
        assert_eq!(RequestId::new(" \n"), None);
    }

    #[test]
    fn the_limit_of_an_id_is_exact_and_holds_after_trimming() {
        let longest = "x".repeat(ID_BYTES_MAX);
        let id = RequestId::parse(&format!("  {longest}\n")).expect("not too long");
        assert_eq!(id.expect("not blank").as_str(), longest);
        let bytes = ID_BYTES_MAX + 1;
        assert_eq!(SessionId::parse(&"x".repeat(bytes)), Err(IdTooLong { bytes }));
        assert_eq!(SessionId::new(&"x".repeat(bytes)), None);
    }

    #[test]
    fn ids_repeat_with_their_seed_and_never_within_it() {
        let (mut one, mut two) = (Ids::new(7), Ids::new(7));
        let made: HashSet<RunId> = (0..10_000).map(|_| one.run()).collect();
        assert_eq!(made.len(), 10_000);
        assert!(made.contains(&two.run()));
        assert!(!made.contains(&Ids::new(8).run()));
    }
}
