//! Changes of the end of a conversation.

use super::{CommandFault, Prompt};
use crate::protocol::proto::rpc::EditRequest;
use crate::protocol::proto::rpc::edit_request::Edit as Member;

/// A change of the end of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The last turn is dropped.
    DropLastTurn,
    /// The last turn is dropped, and its prompt is answered again.
    Regenerate,
    /// A turn and all after it are dropped, and another prompt is answered.
    Replace {
        /// Message id of the prompt of the first turn that is dropped.
        message_id: String,
        /// The new prompt.
        prompt: Prompt,
    },
}

impl TryFrom<EditRequest> for Edit {
    type Error = CommandFault;

    fn try_from(request: EditRequest) -> Result<Self, CommandFault> {
        match request.edit {
            Some(Member::DropLastTurn(_)) => Ok(Self::DropLastTurn),
            Some(Member::Regenerate(_)) => Ok(Self::Regenerate),
            Some(Member::Replace(replace)) => {
                let prompt = Prompt::new(replace.prompt).ok_or(CommandFault::EmptyPrompt)?;
                Ok(Self::Replace { message_id: replace.message_id, prompt })
            }
            None => {
                let reason = "edit must have one of dropLastTurn, regenerate and replace";
                Err(CommandFault::InvalidValue(reason.to_owned()))
            }
        }
    }
}
