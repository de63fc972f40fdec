//! Two frames as structs written by hand, with nothing between them and `serde_json`: the same JSON
//! as the server's.

use serde::{Serialize, Serializer};

pub(crate) const SESSION: &str = "session-7d9f1f6e-5a52-4d0e-9f55-0b2f3a1c4d5e";
pub(crate) const RUN: &str = "run-2b1c9a40-8f3d-4e6b-a1d7-6c5e4f3a2b10";
pub(crate) const ROOT: &str = "chat-msg-2b1c9a40-8f3d-4e6b-a1d7-6c5e4f3a2b10";
pub(crate) const MESSAGE: &str = "chat-msg-2b1c9a40-8f3d-4e6b-a1d7-6c5e4f3a2b10:text:text-1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PatchLine<'a> {
    pub(crate) version: u32,
    pub(crate) session_id: &'a str,
    pub(crate) request_id: &'a str,
    pub(crate) ui_event: PatchEvent<'a>,
}

#[derive(Serialize)]
pub(crate) struct PatchEvent<'a> {
    #[serde(serialize_with = "quoted")]
    pub(crate) ordinal: u64,
    pub(crate) name: &'a str,
    pub(crate) payload: Patch<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Patch<'a> {
    #[serde(rename = "@type")]
    pub(crate) type_url: &'a str,
    pub(crate) message_id: &'a str,
    pub(crate) role: &'a str,
    pub(crate) stream_id: &'a str,
    #[serde(serialize_with = "quoted")]
    pub(crate) sequence: u64,
    #[serde(serialize_with = "quoted", skip_serializing_if = "is_zero")]
    pub(crate) offset: u64,
    pub(crate) text: &'a str,
    pub(crate) mode: &'a str,
    pub(crate) status: &'a str,
    pub(crate) correlation: Correlation<'a>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Correlation<'a> {
    pub(crate) session_id: &'a str,
    pub(crate) run_id: &'a str,
    pub(crate) turn_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) provider_call_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) segment_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SnapshotLine<'a> {
    pub(crate) version: u32,
    pub(crate) session_id: &'a str,
    pub(crate) request_id: &'a str,
    pub(crate) snapshot: Snapshot<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Snapshot<'a> {
    #[serde(serialize_with = "quoted")]
    pub(crate) snapshot_ordinal: u64,
    pub(crate) entities: Vec<Entity<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entity<'a> {
    pub(crate) kind: &'a str,
    pub(crate) id: &'a str,
    #[serde(serialize_with = "quoted")]
    pub(crate) created_ordinal: u64,
    #[serde(serialize_with = "quoted")]
    pub(crate) last_event_ordinal: u64,
    pub(crate) payload: Message<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message<'a> {
    #[serde(rename = "@type")]
    pub(crate) type_url: &'a str,
    pub(crate) message_id: &'a str,
    pub(crate) role: &'a str,
    pub(crate) text: &'a str,
    pub(crate) content: &'a str,
    pub(crate) status: &'a str,
    pub(crate) parent_message_id: &'a str,
    pub(crate) segment: i32,
    pub(crate) segment_type: &'a str,
    #[serde(rename = "final")]
    pub(crate) is_final: bool,
    pub(crate) correlation: Correlation<'a>,
}

/// The ids of an answer's only segment.
pub(crate) fn correlation<'a>() -> Correlation<'a> {
    Correlation {
        session_id: SESSION,
        run_id: RUN,
        turn_id: "turn-1",
        provider_call_id: "run-2b1c9a40-8f3d-4e6b-a1d7-6c5e4f3a2b10:call-1",
        segment_id: "text-1",
    }
}

/// A patch as the server writes it.
pub(crate) fn patch_line<'a>(
    request_id: &'a str,
    (ordinal, sequence, offset): (u64, u64, u64),
    text: &'a str,
) -> PatchLine<'a> {
    let payload = Patch {
        type_url: "type.googleapis.com/pinocchio.chatapp.v1.ChatTextPatch",
        message_id: MESSAGE,
        role: "assistant",
        stream_id: MESSAGE,
        sequence,
        offset,
        text,
        mode: "CHAT_STREAM_PATCH_MODE_APPEND",
        status: "streaming",
        correlation: correlation(),
    };
    let ui_event = PatchEvent { ordinal, name: "ChatTextPatch", payload };
    PatchLine { version: 1, session_id: SESSION, request_id, ui_event }
}

/// A snapshot that holds `count` times the same answer.
pub(crate) fn snapshot_line<'a>(
    request_id: &'a str,
    count: usize,
    text: &'a str,
) -> SnapshotLine<'a> {
    let entity = |_| Entity {
        kind: "ChatMessage",
        id: MESSAGE,
        created_ordinal: 4,
        last_event_ordinal: 1204,
        payload: Message {
            type_url: "type.googleapis.com/pinocchio.chatapp.v1.ChatMessageEntity",
            message_id: MESSAGE,
            role: "assistant",
            text,
            content: text,
            status: "finished",
            parent_message_id: ROOT,
            segment: 1,
            segment_type: "text",
            is_final: true,
            correlation: correlation(),
        },
    };
    let entities = (0..count).map(entity).collect();
    let snapshot = Snapshot { snapshot_ordinal: 1207, entities };
    SnapshotLine { version: 1, session_id: SESSION, request_id, snapshot }
}

/// 64-bit integers stand in quotes.
fn quoted<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
