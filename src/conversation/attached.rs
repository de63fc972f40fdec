//! The bytes of attachments in an export of a conversation, and in what is imported. In frames of a
//! process the `url` of an attachment is empty if its bytes are known; in an export it is a `data:` URL
//! (RFC 2397) with them. Pure.

use super::timeline::turn_number;
use super::transcript::{Turn, TurnItem};
use crate::protocol::any::Any;
use crate::protocol::attachment::Attachment;
use crate::protocol::constants::role;
use crate::protocol::proto::chat::ChatAttachment;
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use std::collections::HashMap;
use std::sync::Arc;

/// Adds the bytes that `turns` have to the attachments that a state shows; gives how many have neither
/// bytes nor an address.
pub(crate) fn show_bytes(state: &mut SnapshotFrame, turns: &[Arc<Turn>]) -> usize {
    let mut held: HashMap<u32, Vec<&Attachment>> =
        turns.iter().map(|turn| (turn.number, attachments_of(turn))).collect();
    let mut lost = 0;
    for entity in &mut state.entities {
        entity.payload = entity.payload.take().map(Any::into_whole);
        let turn = turn_of(entity);
        for shown in shown_by(entity) {
            let held = turn.and_then(|turn| held.get_mut(&turn));
            // Two that look the same come in their order.
            let found = held.and_then(|held| {
                let at = held.iter().position(|it| it.shown == *shown)?;
                held.remove(at).data_url()
            });
            if let Some(url) = found {
                shown.url = url;
            }
            lost += usize::from(shown.url.is_empty());
        }
    }
    lost
}

/// The attachment that `shown` gives the bytes of, or an address that the provider can read.
pub(super) fn given(shown: &ChatAttachment) -> Option<Attachment> {
    let is_given = ["https://", "http://", "data:"].iter().any(|it| shown.url.starts_with(it));
    let attachment = is_given.then(|| Attachment::named(1, shown.clone()))?.ok()?;
    // Providers refuse one without bytes.
    (attachment.url().is_some() || attachment.len_bytes() > 0).then_some(attachment)
}

/// Leaves the bytes out, as frames of a process do.
pub(super) fn hide_bytes(shown: &mut ChatAttachment) {
    if shown.url.starts_with("data:") {
        shown.url.clear();
    }
}

/// The attachments of a prompt that an entity shows.
pub(super) fn shown_by(entity: &mut SnapshotEntity) -> &mut [ChatAttachment] {
    match &mut entity.payload {
        Some(Any::ChatMessageEntity(it)) if it.role == role::USER => &mut it.attachments,
        Some(_) | None => &mut [],
    }
}

/// The attachments of a turn, of its first prompt and of those that joined it.
fn attachments_of(turn: &Turn) -> Vec<&Attachment> {
    let joined = turn.items.iter().flat_map(|item| match item {
        TurnItem::Prompt(_, attachments) => &attachments[..],
        TurnItem::Text { .. } | TurnItem::ProviderData(_) | TurnItem::Called { .. } => &[],
    });
    turn.attachments.iter().chain(joined).collect()
}

fn turn_of(entity: &SnapshotEntity) -> Option<u32> {
    let Some(Any::ChatMessageEntity(it)) = &entity.payload else { return None };
    turn_number(&it.correlation.as_ref()?.turn_id)
}
