//! Checks the entities of one snapshot: required fields, and consistency within it.

use super::fields::Fields;
use super::names::shown;
use super::rule::{Report, Rule};
use crate::conversation::timeline::approval_id;
use crate::protocol::any::Any;
use crate::protocol::constants::{kind, message, role, segment_type};
use crate::protocol::proto::chat::ChatMessageEntity;
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use std::collections::HashSet;

/// The prefix of the id of a segment of this server; its number follows.
const SEGMENT_PREFIX: &str = "segment-";

/// Payloads of entities, each of which has a kind of its own.
const OWN_PAYLOADS: [&str; 5] = [
    "ChatMessageEntity",
    "ToolCallEntity",
    "ToolResultEntity",
    "ToolApprovalRequested",
    "Compacted",
];

pub(super) fn check_entities(frame: &SnapshotFrame, is_strange: bool, report: &mut Report) {
    let mut seen = HashSet::with_capacity(frame.entities.len());
    for entity in &frame.entities {
        let wrong = wrong_with(entity, frame.snapshot_ordinal, is_strange).or_else(|| {
            let is_new = seen.insert((&entity.kind, &entity.id));
            (!is_new).then(|| "it is in the snapshot twice".to_owned())
        });
        if let Some(wrong) = wrong {
            let id = shown(&entity.id);
            report.add(Rule::SnapshotEntity, format!("entity {id:?}: {wrong}"));
        }
        if let Some(payload) = &entity.payload {
            check_payload(entity, payload, report);
        }
    }
}

/// If the payload was removed because its type is unknown, the kind is unknown too.
fn wrong_with(entity: &SnapshotEntity, snapshot_ordinal: u64, is_strange: bool) -> Option<String> {
    let (created, last) = (entity.created_ordinal, entity.last_event_ordinal);
    let payload = entity.payload.as_ref().map_or("", |payload| payload.name());
    let expected = match &*entity.kind {
        kind::MESSAGE => "ChatMessageEntity",
        kind::TOOL_CALL => "ToolCallEntity",
        kind::TOOL_RESULT => "ToolResultEntity",
        kind::TOOL_APPROVAL => "ToolApprovalRequested",
        kind::COMPACTION => "Compacted",
        _ if is_strange && payload.is_empty() => "",
        _ if OWN_PAYLOADS.contains(&payload) => {
            return Some(format!(
                "its kind is {:?}, but it holds a {payload}",
                shown(&entity.kind)
            ));
        }
        _ => payload,
    };
    if entity.kind.is_empty() || entity.id.is_empty() {
        Some("it has no kind or no id".to_owned())
    } else if created > last || last > snapshot_ordinal {
        Some(format!(
            "created at {created}, changed at {last}, in a snapshot of {snapshot_ordinal}: these \
             rise"
        ))
    } else if payload != expected && !entity.tombstone && !(is_strange && payload.is_empty()) {
        Some(format!("a {} holds a {expected}, not {payload:?}", shown(&entity.kind)))
    } else {
        None
    }
}

fn check_payload(entity: &SnapshotEntity, payload: &Any, report: &mut Report) {
    let fields = Fields::of(payload);
    let expected = match payload.name() {
        "ChatMessageEntity" => fields.message_id.unwrap_or_default().to_owned(),
        "ToolCallEntity" => fields.tool_call_id.unwrap_or_default().to_owned(),
        "ToolResultEntity" => format!("{}:result", fields.tool_call_id.unwrap_or_default()),
        "ToolApprovalRequested" => approval_id(fields.tool_call_id.unwrap_or_default()),
        _ => return,
    };
    if expected != entity.id && !entity.tombstone {
        let (id, expected) = (shown(&entity.id), shown(&expected));
        let message = format!("entity {id:?} has the payload of {expected:?}");
        report.add(Rule::MessageId, message);
    }
    if let Any::ChatMessageEntity(message) = payload {
        check_message(message, &fields, report);
    }
}

fn check_message(message: &ChatMessageEntity, fields: &Fields<'_>, report: &mut Report) {
    let (id, role) = (shown(&message.message_id), &*message.role);
    let is_segment = matches!(role, role::ASSISTANT | role::THINKING);
    let is_known = match role {
        role::USER => message.status == message::ACCEPTED,
        role::ASSISTANT | role::THINKING => message.status != message::ACCEPTED,
        role::ERROR => message.status == message::FAILED,
        _ => true,
    };
    if !is_known && !message.status.is_empty() {
        let status = shown(&message.status);
        let wrong = format!("the status of {id:?}, a message of {role}, is {status:?}");
        report.add(Rule::WrongWord, wrong);
    }
    let parent = &*message.parent_message_id;
    // A message of an earlier conversation belongs to no run.
    let is_of_run = message.correlation.is_some();
    let needs_parent = is_segment && is_of_run;
    if fields.root().is_some_and(|root| parent != root && (needs_parent || !parent.is_empty())) {
        let wrong = format!("the parentMessageId of {id:?} is not its root");
        report.add(Rule::MessageId, wrong);
    }
    let segment_type = segment_type(role);
    let is_left_out = message.segment_type.is_empty() && !is_of_run;
    if message.segment_type != segment_type && !is_left_out {
        let given = shown(&message.segment_type);
        let wrong = format!("the segmentType of {id:?} is {given:?}, not {segment_type:?}");
        report.add(Rule::WrongWord, wrong);
    }
    let segment = message.correlation.as_ref().map_or("", |ids| &ids.segment_id);
    let number = segment.strip_prefix(SEGMENT_PREFIX).and_then(|number| number.parse().ok());
    if is_segment && number.is_some_and(|number: i32| number != message.segment) {
        let wrong = format!("segment of {id:?} is {}, not that of {segment:?}", message.segment);
        report.add(Rule::SnapshotEntity, wrong);
    }
}
