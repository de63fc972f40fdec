//! Changes of the end of a conversation.

use super::{CommandFault, Prompt};
use crate::protocol::attachment::{self, Attachment};
use crate::protocol::proto::rpc::EditRequest;
use crate::protocol::proto::rpc::edit_request::Edit as Member;

/// A change of the end of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// The last turn is dropped.
    DropLastTurn,
    /// The last turn is dropped, and its prompt is answered again.
    Regenerate,
    /// A turn and all after it are dropped, and another prompt is answered.
    Replace(Replacement),
}

/// A prompt in the place of an earlier one.
#[derive(Clone, Debug, PartialEq)]
pub struct Replacement {
    /// Message id of the prompt of the first turn that is dropped.
    pub message_id: String,
    /// The new prompt; it may be empty if attachments go with it.
    pub prompt: Prompt,
    /// Its attachments besides those of the earlier one.
    pub attachments: Vec<Attachment>,
    /// Ids of the attachments of the earlier one that do not go with it.
    pub removed: Vec<String>,
}

impl Replacement {
    /// The attachments stay as they are.
    pub fn new(message_id: String, prompt: Prompt) -> Self {
        Self { message_id, prompt, attachments: Vec::new(), removed: Vec::new() }
    }
}

impl TryFrom<EditRequest> for Edit {
    type Error = CommandFault;

    fn try_from(request: EditRequest) -> Result<Self, CommandFault> {
        match request.edit {
            Some(Member::DropLastTurn(_)) => Ok(Self::DropLastTurn),
            Some(Member::Regenerate(_)) => Ok(Self::Regenerate),
            Some(Member::Replace(replace)) => {
                let attachments = attachment::requested(replace.attachments, replace.resources)
                    .map_err(CommandFault::InvalidAttachment)?;
                // A blank one may be asked with the attachments of the earlier prompt, which the session has.
                let prompt = Prompt::new(replace.prompt).unwrap_or_else(Prompt::nothing);
                let (message_id, removed) = (replace.message_id, replace.removed_attachment_ids);
                Ok(Self::Replace(Replacement { message_id, prompt, attachments, removed }))
            }
            None => {
                let reason = "edit must have one of dropLastTurn, regenerate and replace";
                Err(CommandFault::InvalidValue(reason.to_owned()))
            }
        }
    }
}
