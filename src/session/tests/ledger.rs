//! What holds whatever a session is asked, and whatever breaks inside it: one `done` for each
//! request and last, one live run, rising ordinals, the right names on every frame, silence after
//! the end.

use crate::protocol::id::{RunId, SessionId};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{Command, Frame, Request, VERSION};
use crate::session::{Input, Output, Rules, Session};
use anyhow::{Result, bail, ensure};
use std::collections::HashSet;

#[derive(Clone, Debug)]
pub(super) struct Ledger {
    session: String,
    is_bound: bool,
    owed: Vec<Owed>,
    over: HashSet<String>,
    ordinal: u64,
    live: Option<RunId>,
    is_closed: bool,
}

/// A `done` that is still to come.
#[derive(Clone, Debug)]
struct Owed {
    id: String,
    due: Due,
}

/// When a `done` must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// In the step that takes the line in.
    Now,
    /// While a run lives, it may wait.
    WithRun,
}

impl Ledger {
    pub(super) fn new(rules: &Rules, session: &Session) -> Self {
        Self {
            session: session.hello(Vec::new()).session_id,
            is_bound: rules.session.is_some(),
            owed: Vec::new(),
            over: HashSet::new(),
            ordinal: 0,
            live: None,
            is_closed: false,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn live(&self) -> Option<RunId> {
        self.live
    }

    /// Whether `input` comes from the engine of the live run.
    pub(super) fn is_of_live_run(&self, input: &Input) -> bool {
        matches!(input, Input::Engine(run, _) | Input::RunEnded(run, _) if Some(*run) == self.live)
    }

    pub(super) fn watch(&mut self, input: &Input, outputs: &[Output]) -> Result<()> {
        if !self.is_closed {
            self.take_in(input);
        }
        for output in outputs {
            self.output(input, output)?;
        }
        let late = self.owed.iter().find(|owed| owed.due == Due::Now || self.live.is_none());
        ensure!(late.is_none(), "no done for {late:?}");
        Ok(())
    }

    fn take_in(&mut self, input: &Input) {
        match input {
            Input::Request(request) => self.request(request),
            Input::BadLine(line) => {
                let id = line.id.as_ref().map_or("", |id| id.as_str());
                self.owe(id, Due::Now);
            }
            // The farewell has a `done` of its own, with no name. There is only one.
            Input::InputFailed { .. } | Input::Refused(_) => {
                self.drop_farewell();
                self.owe("", Due::WithRun);
            }
            Input::Interrupted(_) => {
                self.drop_farewell();
                self.owe("", Due::Now);
            }
            Input::RunEnded(run, _) if Some(*run) == self.live => self.live = None,
            Input::RunEnded(..) | Input::Engine(..) | Input::InputEnded | Input::ReaderGone => {}
        }
    }

    fn request(&mut self, request: &Request) {
        if !self.is_bound {
            if let Some(named) = &request.session {
                named.as_str().clone_into(&mut self.session);
            }
            self.is_bound = true;
        }
        let is_mine = request.session.as_ref().map(SessionId::as_str) == Some(&self.session)
            || request.session.is_none();
        let due = match request.command {
            Command::Submit(_) | Command::Shutdown if is_mine => Due::WithRun,
            Command::Submit(_) | Command::Shutdown | Command::Cancel | Command::Snapshot => {
                Due::Now
            }
        };
        self.owe(request.id.as_str(), due);
    }

    fn owe(&mut self, id: &str, due: Due) {
        self.owed.push(Owed { id: id.to_owned(), due });
    }

    fn drop_farewell(&mut self) {
        self.owed.retain(|owed| !(owed.id.is_empty() && owed.due == Due::WithRun));
    }

    fn output(&mut self, input: &Input, output: &Output) -> Result<()> {
        if self.is_closed {
            let is_second_signal =
                matches!((input, output), (Input::Interrupted(_), Output::Abort(_)));
            ensure!(is_second_signal, "after the exit: {output:?}");
            return Ok(());
        }
        match output {
            Output::Frame(frame) => self.frame(frame),
            Output::StartRun { run, .. } => {
                ensure!(self.live.is_none(), "two live runs");
                self.live = Some(*run);
                Ok(())
            }
            Output::CancelRun(run) => {
                ensure!(self.live == Some(*run), "cancels a run that is not live");
                self.live = None;
                Ok(())
            }
            Output::Exit(_) => {
                ensure!(self.owed.is_empty(), "exit without done for {:?}", self.owed);
                ensure!(self.live.is_none(), "exit with a live run");
                self.is_closed = true;
                Ok(())
            }
            Output::Abort(_) => bail!("abort without a second signal"),
        }
    }

    fn frame(&mut self, frame: &Frame) -> Result<()> {
        ensure!(frame.version == VERSION, "version {}", frame.version);
        ensure!(frame.session_id == self.session, "stamped {:?}", frame.session_id);
        let id = &frame.request_id;
        let is_farewell_owed = self.owed.iter().any(|owed| owed.id.is_empty());
        if is_defect(frame) && !is_farewell_owed {
            self.owe("", Due::Now);
        }
        ensure!(!self.over.contains(id), "after the done of {id:?}: {frame:?}");
        // The newest first: a nameless line is answered while the nameless farewell is still owed.
        let Some(at) = self.owed.iter().rposition(|owed| owed.id == *id) else {
            bail!("a frame of {id:?}, which nobody sent: {frame:?}");
        };
        match &frame.frame {
            Some(Body::Done(_)) => {
                self.owed.remove(at);
                if !id.is_empty() {
                    self.over.insert(id.clone());
                }
            }
            Some(Body::UiEvent(event)) => {
                ensure!(event.ordinal > self.ordinal, "ordinal {} again", event.ordinal);
                self.ordinal = event.ordinal;
            }
            Some(Body::Snapshot(_) | Body::Error(_)) => {}
            Some(Body::Hello(_) | Body::BackendEvent(_)) | None => bail!("not expected: {frame:?}"),
        }
        Ok(())
    }
}

/// Whether the frame tells that a defect ends the process, which has a `done` of its own.
fn is_defect(frame: &Frame) -> bool {
    matches!(&frame.frame, Some(Body::Error(error)) if error.code == "internal" && error.terminal)
}
