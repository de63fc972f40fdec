//! How the messages and the runs of a conversation ended, for people: as its entities show it. Pure.

use crate::protocol::any::Any;
use crate::protocol::constants::{message, role};
use crate::protocol::proto::chat::{ChatMessageEntity, CorrelationInfo};

/// What people read of a run that has an end and no answer.
pub(crate) const UNANSWERED: &str = "stopped before an answer";

/// What people read of one that has results of tools: the model may have had nothing to add to them.
const AFTER_RESULTS: &str = "no answer after the results";

/// Finds runs without an answer among entities. A run that fails has its error as an entity, so that
/// one which ends without an answer was stopped, or its process ended, or its model was done with the results of tools.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    /// The run whose newest entity is neither an answer nor an error.
    unanswered: Option<Unanswered>,
}

/// A run without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unanswered {
    run: String,
    /// Id of its turn.
    pub(crate) turn: String,
    /// How it ended, for people.
    pub(crate) how: String,
}

impl Endings {
    /// Takes in the payload of the next entity. Returns the run before it if that ended without an answer.
    pub(crate) fn next(&mut self, payload: &Any) -> Option<Unanswered> {
        let (ids, is_answer) = part_of_run(payload)?;
        let ids = ids.filter(|ids| !ids.run_id.is_empty());
        let before = self.unanswered.take();
        let is_same = |before: &Unanswered| ids.is_some_and(|ids| ids.run_id == before.run);
        let (same, ended) = match before {
            Some(before) if is_same(&before) => (Some(before), None),
            before => (None, before),
        };
        let is_result = matches!(payload, Any::ToolResultEntity(_));
        let so_far = same.map(|same| same.how).filter(|how| !is_result || how != UNANSWERED);
        self.unanswered = ids.filter(|_| !is_answer).map(|ids| Unanswered {
            run: ids.run_id.clone(),
            turn: ids.turn_id.clone(),
            how: how_prompt_ended(payload).or(so_far).unwrap_or_else(|| {
                let how = if is_result { AFTER_RESULTS } else { UNANSWERED };
                how.to_owned()
            }),
        });
        ended
    }

    /// Returns the last run, after the last entity, if it ended without an answer.
    pub(crate) fn finish(self) -> Option<Unanswered> {
        self.unanswered
    }
}

/// How the run of a prompt ended, where the prompt says it: its process ended before an answer.
fn how_prompt_ended(payload: &Any) -> Option<String> {
    let Any::ChatMessageEntity(it) = payload else { return None };
    let is_ended = it.role == role::USER && !it.error.is_empty();
    is_ended.then(|| stopped(&it.error))
}

fn stopped(why: &str) -> String {
    format!("{}: {why}", message::STOPPED)
}

/// The ids of an entity of a run, and whether it answers the run's prompt, at least in part.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others are no entities of a run")]
fn part_of_run(payload: &Any) -> Option<(Option<&CorrelationInfo>, bool)> {
    match payload {
        Any::ChatMessageEntity(it) => {
            let is_answer = match it.role.as_str() {
                role::ASSISTANT | role::ERROR => true,
                // Its own mark shows that the run went no further.
                role::THINKING => it.status != message::FINISHED || !it.error.is_empty(),
                _ => false,
            };
            Some((it.correlation.as_ref(), is_answer))
        }
        Any::ToolCallEntity(it) => Some((it.correlation.as_ref(), false)),
        Any::ToolResultEntity(it) => Some((it.correlation.as_ref(), false)),
        _ => None,
    }
}

/// What people read of a message that did not end well.
pub(crate) fn mark(it: &ChatMessageEntity) -> Option<String> {
    let is_of_model = matches!(it.role.as_str(), role::ASSISTANT | role::THINKING);
    match (it.status.as_str(), it.error.as_str()) {
        _ if it.role == role::ERROR => None,
        (message::STOPPED | message::FAILED, "") => Some(it.status.clone()),
        (message::STOPPED | message::FAILED, why) => Some(format!("{}: {why}", it.status)),
        (message::FINISHED, why) if is_of_model && !why.is_empty() => Some(why.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::chat::ToolResultEntity;

    /// The turns without an answer among messages, each with its run, its role and its status.
    fn unanswered(messages: &[(&str, &str, &str)]) -> Vec<String> {
        let mut endings = Endings::default();
        let payload = |(run, role, status): &(&str, &str, &str)| {
            let (run_id, turn_id) = ((*run).to_owned(), format!("turn-{run}"));
            let ids = CorrelationInfo { run_id, turn_id, ..Default::default() };
            let (role, status) = ((*role).to_owned(), (*status).to_owned());
            Any::from(ChatMessageEntity {
                role,
                status,
                correlation: Some(ids),
                ..Default::default()
            })
        };
        let mut found: Vec<_> =
            messages.iter().filter_map(|it| endings.next(&payload(it))).collect();
        found.extend(endings.finish());
        found.into_iter().map(|ended| ended.turn).collect()
    }

    /// Nothing in the entities tells whether it was stopped.
    #[test]
    fn a_run_that_ends_with_a_result_is_not_said_to_be_stopped() {
        let ids = || {
            let (run_id, turn_id) = ("1".to_owned(), "turn-1".to_owned());
            Some(CorrelationInfo { run_id, turn_id, ..Default::default() })
        };
        let said = |role: &str, status: &str| {
            let (role, status, correlation) = (role.to_owned(), status.to_owned(), ids());
            Any::from(ChatMessageEntity { role, status, correlation, ..Default::default() })
        };
        let mut endings = Endings::default();
        for payload in [
            said(role::USER, "accepted"),
            Any::from(ToolResultEntity { correlation: ids(), ..Default::default() }),
            said(role::THINKING, message::FINISHED),
        ] {
            assert_eq!(endings.next(&payload), None);
        }
        assert_eq!(endings.finish().map(|ended| ended.how), Some(AFTER_RESULTS.to_owned()));
    }

    #[test]
    fn a_run_without_an_answer_is_found() {
        let prompt = |run| (run, "user", "accepted");
        let check = |messages: &[_], expected: &[&str]| {
            assert_eq!(unanswered(messages), expected, "{messages:?}");
        };
        check(&[], &[]);
        check(&[prompt("1"), ("1", "assistant", "finished")], &[]);
        check(&[prompt("1"), ("1", "assistant", "stopped"), prompt("2")], &["turn-2"]);
        check(&[prompt("1"), prompt("2"), ("2", "error", "failed")], &["turn-1"]);
        check(&[prompt("1"), prompt("1")], &["turn-1"]);
        check(&[prompt("1"), ("1", "assistant", "finished"), prompt("1")], &["turn-1"]);
        check(&[prompt("1"), ("1", "thinking", "finished")], &["turn-1"]);
        check(&[prompt("1"), ("1", "thinking", "stopped")], &[]);
        // An earlier message belongs to no run.
        check(&[prompt(""), prompt("1"), ("1", "assistant", "finished")], &[]);
    }
}
