//! Tool calls that wait for approval. They are no part of the conversation: they are not stored, and
//! only clients that can decide are shown them.

use super::{Span, Timeline};
use crate::conversation::event::{Recorded, Scope, ToolCall};
use crate::conversation::ui::correlation;
use crate::protocol::constants::kind;
use crate::protocol::id::{Ordinal, SessionId};
use crate::protocol::proto::chat::CorrelationInfo;
use crate::protocol::proto::rpc::SnapshotEntity;
use crate::protocol::proto::tools::ToolApprovalRequested;

/// A call that waits for approval.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Approval {
    requested: Ordinal,
    scope: Scope,
    tool: ToolCall,
    server: String,
    input: String,
}

impl Timeline {
    /// The calls of a snapshot's span that wait for approval.
    pub(crate) fn approvals(&self, session: &SessionId, span: Span) -> Vec<SnapshotEntity> {
        let is_in = |approval: &&Approval| match span {
            Span::Conversation | Span::LastTurn => true,
            Span::Page(page) => {
                page.since.is_none_or(|since| approval.requested > since)
                    && page.before.is_none_or(|before| approval.requested < before)
            }
        };
        let approvals = self.approvals.iter().filter(is_in);
        approvals.map(|approval| approval.on_wire(session)).collect()
    }

    pub(super) fn approval_requested(
        &mut self,
        recorded: &Recorded,
        tool: &ToolCall,
        (server, input): (&str, &str),
    ) {
        let Recorded { ordinal: requested, scope, .. } = *recorded;
        let (tool, server, input) = (tool.clone(), server.to_owned(), input.to_owned());
        self.approvals.push(Approval { requested, scope, tool, server, input });
    }

    pub(super) fn approval_resolved(&mut self, tool: &ToolCall) {
        self.approvals.retain(|approval| approval.tool.id != tool.id);
    }
}

impl Approval {
    /// The payload is the event that asked.
    fn on_wire(&self, session: &SessionId) -> SnapshotEntity {
        let (id, name) = (&self.tool.id.0, &self.tool.name);
        let ids = correlation(session, self.scope);
        let payload = ToolApprovalRequested {
            message_id: self.scope.run.root(),
            tool_call_id: id.clone(),
            tool_name: name.clone(),
            server: self.server.clone(),
            input: self.input.clone(),
            correlation: Some(CorrelationInfo { tool_call_id: id.clone(), ..ids }),
        };
        let ordinals = (self.requested.0, self.requested.0);
        SnapshotEntity::new(kind::TOOL_APPROVAL, approval_id(id), ordinals, Some(payload.into()))
    }
}

/// The id of the entity for the approval of a call.
pub(crate) fn approval_id(call: &str) -> String {
    format!("{call}:approval")
}
