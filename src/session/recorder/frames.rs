//! The frames that are no events: snapshots, errors, and the `done` of each request.

use super::Recorder;
use crate::conversation::timeline::Span;
use crate::protocol::command::Extension;
use crate::protocol::id::RequestId;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{self, ClientError, Done, Frame};
use crate::session::client_error::run_failed;
use crate::session::exit::Verdict;
use crate::session::{FinalSnapshot, Hint, Hints, Output, SessionMode};
use crate::task::report::RunError;
use prost::Message;

/// Messages and tool calls of a stored session after which the snapshot at the end of a run has only
/// what the run added, unless it was asked for in full: about 2 MB.
pub const FULL_SNAPSHOT_ENTITIES_MAX: usize = 2_000;

/// Bytes after which the snapshot at the end of a run of a node has only what the run added: the default limit of
/// gRPC clients is a message of 4 MiB.
const FULL_SNAPSHOT_BYTES_MAX: usize = 1024 * 1024;

impl Recorder {
    pub(in crate::session) fn snapshot(&mut self, request: &RequestId, span: Span) {
        let frame = self.state(Some(request), span);
        self.push(Output::Frame(frame));
    }

    /// A frame with the state of the conversation, and of the calls that wait for the client's
    /// approval.
    pub(in crate::session) fn state(&self, request: Option<&RequestId>, span: Span) -> Frame {
        let mut snapshot = self.projections.timeline.snapshot(&self.session, span);
        if self.is_on(Extension::Compaction) {
            snapshot.entities.extend(self.projections.timeline.compactions(&self.session, span));
        }
        if self.is_on(Extension::Approvals) {
            snapshot.entities.extend(self.projections.timeline.approvals(&self.session, span));
        }
        wire::frame(&self.session, request, wire::snapshot(snapshot))
    }

    /// The snapshot that closes a run, as far as one is wanted.
    pub(in crate::session) fn final_snapshot(&mut self, request: &RequestId) {
        match self.final_snapshot {
            _ if !self.keeps() || self.is_unseen => {}
            FinalSnapshot::FullUntilLong => match self.full_unless_long(request) {
                Ok(frame) => self.push(Output::Frame(frame)),
                Err(how_long) => {
                    self.push(Output::Warning(long_session(&how_long, self.hints).into()));
                    self.final_snapshot = FinalSnapshot::Turn;
                    self.snapshot(request, Span::LastTurn);
                }
            },
            FinalSnapshot::Full => self.snapshot(request, Span::Conversation),
            FinalSnapshot::Turn => self.snapshot(request, Span::LastTurn),
            FinalSnapshot::None => {}
        }
    }

    /// The whole conversation.
    ///
    /// # Errors
    /// How long it is, if the session is stored, and so long that a copy of it after each run is no help.
    fn full_unless_long(&self, request: &RequestId) -> Result<Frame, String> {
        let rules = self.log.rules();
        if rules.is_stored && self.projections.timeline.len() > FULL_SNAPSHOT_ENTITIES_MAX {
            return Err(format!("{FULL_SNAPSHOT_ENTITIES_MAX} messages and tool calls"));
        }
        let frame = self.state(Some(request), Span::Conversation);
        let is_bounded = rules.is_stored && rules.has_request_ids;
        if is_bounded && frame.encoded_len() > FULL_SNAPSHOT_BYTES_MAX {
            return Err(format!("{FULL_SNAPSHOT_BYTES_MAX} bytes"));
        }
        Ok(frame)
    }

    pub(in crate::session) fn run_failed(&mut self, request: &RequestId, error: RunError) {
        if error.class.may_pass(&error.detail) {
            self.verdict = Verdict::FailedForNow;
        }
        self.refuse(Some(request), run_failed(error));
    }

    /// Answers a request with what is wrong, and its end.
    pub(in crate::session) fn refuse(
        &mut self,
        request: Option<&RequestId>,
        client_error: ClientError,
    ) {
        self.error(request, client_error);
        self.done(request, Done::Failed);
    }

    pub(in crate::session) fn error(
        &mut self,
        request: Option<&RequestId>,
        mut client_error: ClientError,
    ) {
        client_error.terminal |= self.mode == SessionMode::OneShot;
        self.frame(request, wire::error(client_error));
    }

    pub(in crate::session) fn done(&mut self, request: Option<&RequestId>, how: Done) {
        self.frame(request, wire::done(how));
    }

    pub(super) fn frame(&mut self, request: Option<&RequestId>, body: Body) {
        let frame = wire::frame(&self.session, request, body);
        self.outputs.push(Output::Frame(frame));
    }
}

/// The notice that snapshots are shorter from here on.
fn long_session(how_long: &str, hints: Hints) -> String {
    format!(
        "the conversation has more than {how_long}: from here on the snapshot at the end of a run has what the run added{}",
        hints.of(Hint::FinalSnapshot)
    )
}
