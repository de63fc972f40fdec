//! The events that a client wants to be written, by their names. Pure.

use super::any::NAMES;
use crate::support::glob::fits;
use std::fmt;

/// Before the name of an event that is not written.
const NOT: char = '!';

/// The end of the name of a message that is in snapshots and no event.
const ENTITY: &str = "Entity";

/// The events with which a run waits for its client, up to an hour. Clients get them only after they have asked for
/// approvals, tools of their own or compactions.
const QUESTIONS: [&str; 3] =
    ["CompactionProposed", "FrontendToolCallRequested", "ToolApprovalRequested"];

/// Which events are written. Written is what fits one of the names, or any name if there is none, and
/// none of those with a `!`; and always the events with which a run waits for its client. By default all are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    shown: Vec<String>,
    hidden: Vec<String>,
}

impl EventFilter {
    /// The filter of these names and patterns, of which those after a `!` are not written.
    ///
    /// # Errors
    /// If no event has a name that fits one of them.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut filter = Self::default();
        for name in names.into_iter().map(str::trim) {
            let (list, pattern) = match name.strip_prefix(NOT) {
                Some(pattern) => (&mut filter.hidden, pattern.trim_start()),
                None => (&mut filter.shown, name),
            };
            let mut events = NAMES.iter().filter(|name| !name.ends_with(ENTITY));
            if !events.any(|event| fits(pattern, event)) {
                return Err(format!("no event has a name like {pattern:?}"));
            }
            list.push(pattern.to_owned());
        }
        Ok(filter)
    }

    /// The filter in a list with commas.
    ///
    /// # Errors
    /// If no event has a name that fits one of its items.
    pub fn parse(list: &str) -> Result<Self, String> {
        Self::new(list.split(','))
    }

    /// Whether events of this name are written.
    pub fn shows(&self, name: &str) -> bool {
        let fits_any = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, name));
        // A client that never saw the question would wait for the run, and the run for the client.
        let is_question = QUESTIONS.contains(&name);
        is_question || (self.shown.is_empty() || fits_any(&self.shown)) && !fits_any(&self.hidden)
    }
}

impl fmt::Display for EventFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.hidden.iter().map(|pattern| format!("{NOT}{pattern}"));
        f.write_str(&self.shown.iter().cloned().chain(hidden).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_written_if_a_name_fits_and_none_with_a_mark() {
        let check = |list: &str, shown: &[&str], hidden: &[&str]| {
            let filter = EventFilter::parse(list).expect("a list");
            assert!(shown.iter().all(|name| filter.shows(name)), "{list}");
            assert!(!hidden.iter().any(|name| filter.shows(name)), "{list}");
        };
        let [patch, started, stopped] = ["ChatTextPatch", "ChatRunStarted", "ChatRunStopped"];
        check("ChatTextPatch, ChatRun*", &[patch, started, stopped], &["ChatTextSegmentStarted"]);
        check("ChatRun*,!ChatRunStarted", &[stopped], &[started, patch]);
        check("!ChatRunStarted,ChatRun*", &[stopped], &[started, patch]);
        check("!*Patch", &[started, stopped], &[patch]);
        check("*", &[patch, started], &[]);
        check("Chat?extPatch", &[patch], &[started]);
        assert!(EventFilter::default().shows(patch));
    }

    #[test]
    fn what_a_run_waits_for_its_client_with_is_always_written() {
        for question in QUESTIONS {
            assert!(NAMES.contains(&question), "{question}");
            for list in ["ChatRun*", "!*Requested,!*Proposed", "!*"] {
                let filter = EventFilter::parse(list).expect("a list");
                assert!(filter.shows(question), "{question} {list}");
            }
        }
    }

    #[test]
    fn a_name_that_no_event_has_is_an_error() {
        for wrong in ["ChatTextPach", "", "ChatRun*,", "!", "ChatMessageEntity", "chattextpatch"] {
            assert!(EventFilter::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn it_is_shown_as_it_is_read() {
        let filter = EventFilter::parse("!*Patch, ChatRun*").expect("a list");
        assert_eq!(filter.to_string(), "ChatRun*,!*Patch");
        assert_eq!(EventFilter::parse(&filter.to_string()), Ok(filter));
    }
}
