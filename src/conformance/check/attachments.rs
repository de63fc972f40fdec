//! Checks the attachments of messages: each has its id and its kind, and they stay the same.

use super::rule::{Report, Rule};
use crate::protocol::any::Any;
use crate::protocol::proto::chat::ChatAttachment;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};

/// The attachments of a message, in its event or in a snapshot.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others have none")]
pub(super) fn attachments_of(payload: &Any) -> &[ChatAttachment] {
    match payload {
        Any::ChatUserMessageAccepted(it) => &it.attachments,
        Any::ChatMessageEntity(it) => &it.attachments,
        _ => &[],
    }
}

/// Checks the attachments of one message.
pub(super) fn check_attachments(payload: &Any, report: &mut Report) {
    let attachments = attachments_of(payload);
    let mut ids = HashSet::with_capacity(attachments.len());
    for ChatAttachment { attachment_id, kind, .. } in attachments {
        let name = payload.name();
        for (field, value) in [("attachmentId", attachment_id), ("kind", kind)] {
            if value.is_empty() {
                let message = format!("an attachment of {name} has no {field}");
                report.add(Rule::MissingField, message);
            }
        }
        if !ids.insert(attachment_id) {
            let message = format!("two attachments of {name} have the same attachmentId");
            report.add(Rule::Attachments, message);
        }
    }
}

/// All fields of attachments, to be compared by their hash.
pub(super) struct Hashed<'a>(pub(super) &'a [ChatAttachment]);

impl Hash for Hashed<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.len().hash(state);
        for it in self.0 {
            let ChatAttachment { attachment_id, kind, media_type, url, .. } = it;
            (attachment_id, kind, media_type, url).hash(state);
            let ChatAttachment { size_bytes, width, height, filename, detail, metadata, .. } = it;
            (size_bytes, width, height, filename, detail, metadata).hash(state);
        }
    }
}
