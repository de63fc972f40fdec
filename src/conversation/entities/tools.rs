//! Tool calls and their results, as events show them.

use super::super::patch::apply_piece;
use super::Entities;
use crate::protocol::any::Any;
use crate::protocol::constants::{kind, tool_call};
use crate::protocol::proto::chat::{CorrelationInfo, ToolCallEntity, ToolResultEntity};

/// A stage of a tool call, whose event comes once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ToolStage {
    Started,
    Requested,
    Executing,
    Finished,
}

impl Entities {
    /// Tool calls and their results.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are of no tool call")]
    pub(super) fn of_tool(&mut self, payload: &Any) -> bool {
        match payload {
            Any::ChatToolCallStarted(it) => {
                let call = begun(&it.tool_call_id, &it.tool_name, &it.message_id, &it.correlation);
                self.stage(&call, ToolStage::Started);
                self.tool(call, tool_call::PENDING, |_| {});
            }
            Any::ChatToolArgumentsPatch(it) => {
                let call = begun(&it.tool_call_id, &it.tool_name, &it.message_id, &it.correlation);
                self.tool(call, tool_call::STREAMING_ARGS, |call| {
                    apply_piece(&mut call.input, &it.arguments, it.mode);
                });
            }
            Any::ChatToolCallRequested(it) => {
                let call = begun(&it.tool_call_id, &it.tool_name, &it.message_id, &it.correlation);
                self.stage(&call, ToolStage::Requested);
                self.tool(call, tool_call::PENDING, |call| call.input.clone_from(&it.input));
            }
            Any::ChatToolExecutionStarted(it) => {
                let call = begun(&it.tool_call_id, &it.tool_name, &it.message_id, &it.correlation);
                self.stage(&call, ToolStage::Executing);
                self.tool(call, tool_call::EXECUTING, |_| {});
            }
            Any::ChatToolCallFinished(it) => {
                let call = begun(&it.tool_call_id, &it.tool_name, &it.message_id, &it.correlation);
                self.stage(&call, ToolStage::Finished);
                self.tool(call, tool_call::COMPLETED, |_| {});
            }
            Any::ChatToolResultReady(it) => {
                let entity = ToolResultEntity {
                    message_id: it.message_id.clone(),
                    tool_call_id: it.tool_call_id.clone(),
                    tool_name: it.tool_name.clone(),
                    result: it.result.clone(),
                    status: it.status.clone(),
                    correlation: it.correlation.clone(),
                };
                self.add(kind::TOOL_RESULT, result_id(&it.tool_call_id), entity.into());
            }
            _ => return false,
        }
        true
    }

    /// Checks that `stage` was not shown before.
    fn stage(&mut self, call: &ToolCallEntity, stage: ToolStage) {
        if !self.stages.insert((call.tool_call_id.clone(), stage)) {
            self.repeated(kind::TOOL_CALL, call.tool_call_id.clone());
        }
    }

    /// Changes a tool call, which is added if it was not shown before.
    fn tool(
        &mut self,
        begun: ToolCallEntity,
        status: &str,
        change: impl FnOnce(&mut ToolCallEntity),
    ) {
        let id = begun.tool_call_id.clone();
        let is_end = status == tool_call::COMPLETED;
        let at = match self.places.get(&(kind::TOOL_CALL.to_owned(), id.clone())) {
            Some(&at) => at,
            None => self.add(kind::TOOL_CALL, id.clone(), begun.into()),
        };
        let Some(entity) = self.list.get_mut(at) else { return };
        entity.last_event_ordinal = self.ordinal;
        if let Some(Any::ToolCallEntity(call)) = &mut entity.payload {
            let has_ended = call.status == tool_call::COMPLETED && !is_end;
            status.clone_into(&mut call.status);
            call.executing = status == tool_call::EXECUTING;
            change(call);
            if has_ended && !entity.tombstone {
                self.repeated(kind::TOOL_CALL, id);
            }
        }
    }
}

/// Id of the entity with a tool's result.
pub(in crate::conversation) fn result_id(tool_call_id: &str) -> String {
    format!("{tool_call_id}:result")
}

/// A tool call at its beginning.
fn begun(
    id: &str,
    name: &str,
    message_id: &str,
    correlation: &Option<CorrelationInfo>,
) -> ToolCallEntity {
    ToolCallEntity {
        message_id: message_id.to_owned(),
        tool_call_id: id.to_owned(),
        tool_name: name.to_owned(),
        correlation: correlation.clone(),
        ..Default::default()
    }
}
