//! The streams of a client that has lost its connection and come back, as one stream that a checker takes.

use duologue::conformance::check::{Checker, Violation};
use duologue::protocol::proto::rpc::RpcLine;
use duologue::protocol::proto::rpc::rpc_line::Frame as Body;
use std::collections::HashSet;

/// The last events of runs.
const RUN_ENDS: [&str; 3] = ["ChatRunFinished", "ChatRunStopped", "ChatRunFailed"];

/// The frames of a client, joined: those of a stream that goes on after an event follow those of the one before.
#[derive(Default)]
pub(super) struct Joined {
    /// `None` after a fault, as one brings others.
    checker: Option<Checker>,
    hello: Option<RpcLine>,
    /// Requests whose snapshot it has seen.
    snapshots: HashSet<String>,
    /// The run whose last event it has seen, and not its done, which has no ordinal.
    without_done: Option<String>,
}

impl Joined {
    pub(super) fn new() -> Self {
        Self { checker: Some(Checker::joined()), ..Self::default() }
    }

    /// Whether a checker has taken the last frame.
    pub(super) fn is_checked(&self) -> bool {
        self.checker.is_some()
    }

    /// What the checker says of the next frame of a stream.
    pub(super) fn next(&mut self, frame: &RpcLine, is_known: bool) -> Vec<Violation> {
        let id = &frame.request_id;
        let mut wrong = Vec::new();
        match &frame.frame {
            // The one of the first stream is that of all.
            Some(Body::Hello(_)) if self.hello.replace(frame.clone()).is_some() => {
                // Where the conversation has moved, a done that was missed comes late, or to its own client alone.
                if self.without_done.take().is_some() {
                    let mut checker = Checker::joined();
                    wrong.extend(checker.frame(frame.clone()));
                    self.checker = Some(checker);
                }
                return wrong;
            }
            // It stands for what came before.
            Some(Body::Snapshot(_)) if id.is_empty() => {
                self.snapshots.clear();
                self.without_done = None;
            }
            // What has no ordinal may be shown once more.
            Some(Body::Snapshot(_)) if !self.snapshots.insert(id.clone()) => return wrong,
            Some(Body::Done(_) | Body::Error(_)) if is_known => return wrong,
            Some(Body::Done(_)) if self.without_done.as_ref() == Some(id) => {
                self.without_done = None;
            }
            Some(Body::UiEvent(event)) if RUN_ENDS.contains(&event.name.as_str()) => {
                self.without_done = Some(id.clone());
            }
            _ => {}
        }
        wrong.extend(self.checker.iter_mut().flat_map(|it| it.frame(frame.clone())));
        if !wrong.is_empty() {
            self.checker = None;
        }
        wrong
    }
}
