//! Questions with which a run waits for a client: for a decision about a tool call or a compaction, or for the result
//! of a tool that the client runs. While no client that can answer is attached, the others would wait for one that may
//! never come back.

use super::{Conversation, in_scope};
use crate::protocol::command::{Approve, ClientToolResult, Command, Compact, Decision, Extension};
use crate::session::Question;
use std::collections::HashSet;
use tokio::time::Instant;

/// The extensions of clients that answer questions.
const ANSWERING: [Extension; 3] =
    [Extension::Approvals, Extension::ClientTools, Extension::Compaction];

/// Why a call has no decision, or no result.
const NOBODY_IS_THERE: &str = "no client that can answer is attached";

/// The questions that nobody who is attached can answer.
#[derive(Debug, Default)]
pub(super) struct Unanswered {
    /// Since when there are questions for a client that has left.
    since: Option<Instant>,
    /// Questions that were answered in the place of a client.
    given_up: HashSet<Question>,
}

impl Conversation {
    /// Answers the questions that no client will answer; returns whether there was one. A client that could have
    /// answered and has left has as long to come back as a run goes on without clients.
    pub(super) fn answer_for_absent(&mut self) -> bool {
        let Some((run, questions)) = self.host.questions() else {
            self.unanswered = Unanswered::default();
            return false;
        };
        let (now, mut is_awaited) = (Instant::now(), false);
        let mut given_up = Vec::new();
        for question in questions {
            let extension = extension_of(&question);
            let is_there = self.clients.iter().any(|client| client.has(extension));
            if is_there || self.unanswered.given_up.contains(&question) {
                // A client may still answer it, or its answer is on the way.
            } else if self.requests.had_answerer(run.as_str(), extension) {
                is_awaited = true;
                let since = *self.unanswered.since.get_or_insert(now);
                if now >= since + self.times.detached {
                    given_up.push(question);
                }
            } else {
                given_up.push(question);
            }
        }
        if !is_awaited {
            self.unanswered.since = None;
        }
        let has_answered = !given_up.is_empty();
        given_up.into_iter().for_each(|question| self.give_up(question));
        has_answered
    }

    /// When the time is over in which a client that could have answered may come back.
    pub(super) fn unanswered_until(&self) -> Option<Instant> {
        Some(self.unanswered.since? + self.times.detached)
    }

    /// Notes what the clients that are attached can answer, also of a run that has no question yet: one of them may
    /// have lost its connection when the question comes, and come back.
    pub(super) fn note_answerers(&mut self) {
        let Self { clients, requests, .. } = self;
        for extension in ANSWERING {
            if clients.iter().any(|client| client.has(extension)) {
                requests.could_answer(extension);
            }
        }
    }

    fn give_up(&mut self, question: Question) {
        let log = || tracing::info!("a question was given up: {NOBODY_IS_THERE}");
        in_scope(self.run_span.as_ref(), log);
        self.unanswered.given_up.insert(question.clone());
        let why = NOBODY_IS_THERE.to_owned();
        self.ask_own(match question {
            Question::Result(call) => Command::ToolResult(ClientToolResult {
                call,
                tool_name: None,
                result: None,
                error: Some(format!("There is no result: {why}.")),
            }),
            Question::Decision(call) => {
                Command::Approve(Approve { call, decision: Decision::Deny { reason: why } })
            }
            Question::Compaction => {
                Command::Compact(Compact { decline: true, ..Compact::default() })
            }
        });
    }
}

/// The extension of the clients that can answer.
fn extension_of(question: &Question) -> Extension {
    match question {
        Question::Decision(_) => Extension::Approvals,
        Question::Result(_) => Extension::ClientTools,
        Question::Compaction => Extension::Compaction,
    }
}
