//! The part of a frame that a client may see: extensions that another client of the conversation has asked for are left
//! out. Pure.

use crate::protocol::any::Any;
use crate::protocol::command::{Command, Edit, Extension};
use crate::protocol::constants::extension_of;
use crate::protocol::proto::rpc::HelloFrame;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The frame as a client with these extensions sees it; `None` if it sees nothing of it.
pub(super) fn visible<'a>(
    frame: &'a Frame,
    extensions: &BTreeSet<Extension>,
) -> Option<Cow<'a, Frame>> {
    let is_on = |payload: &Any| {
        payload.full_name().and_then(extension_of).is_none_or(|word| {
            // Extensions that no client can turn on are on because the person who started the node has asked.
            Extension::named(word).is_none_or(|extension| extensions.contains(&extension))
        })
    };
    match frame.frame.as_ref()? {
        Body::UiEvent(event) => {
            event.payload.as_ref().is_none_or(is_on).then_some(Cow::Borrowed(frame))
        }
        Body::BackendEvent(event) => {
            event.payload.as_ref().is_none_or(is_on).then_some(Cow::Borrowed(frame))
        }
        Body::Snapshot(snapshot) => {
            let entities = &snapshot.entities;
            let is_seen = |payload: &Option<Any>| payload.as_ref().is_none_or(is_on);
            if entities.iter().all(|it| is_seen(&it.payload)) {
                return Some(Cow::Borrowed(frame));
            }
            let mut visible = snapshot.clone();
            visible.entities.retain(|it| is_seen(&it.payload));
            Some(Cow::Owned(Frame { frame: Some(Body::Snapshot(visible)), ..frame.clone() }))
        }
        Body::Hello(_) | Body::Error(_) | Body::Done(_) => Some(Cow::Borrowed(frame)),
    }
}

/// `hello`, with the extensions of the client.
pub(super) fn hello_for(hello: &Frame, extensions: &BTreeSet<Extension>) -> Frame {
    let mut hello = hello.clone();
    if let Some(Body::Hello(HelloFrame { capabilities, .. })) = &mut hello.frame {
        for extension in extensions {
            let word = extension.as_str();
            if !capabilities.iter().any(|it| it == word) {
                capabilities.push(word.to_owned());
            }
        }
    }
    hello
}

/// The extensions that a command belongs to: a client that uses a member of an extension has asked for it.
pub(super) fn extensions_of(command: &Command) -> BTreeSet<Extension> {
    let used: Vec<Extension> = match command {
        Command::Enable(enable) => return enable.extensions.clone(),
        Command::Submit(submit) => [
            (submit.joins.is_some(), Extension::Steer),
            (!submit.attachments.is_empty(), Extension::Attachments),
            (submit.attachments.iter().any(|it| it.as_resource().is_some()), Extension::Resources),
            (submit.choice.is_some(), Extension::Settings),
            (submit.schema.is_some(), Extension::Structured),
        ]
        .into_iter()
        .filter_map(|(is_used, extension)| is_used.then_some(extension))
        .collect(),
        Command::Cancel(cancel) => {
            let is_targeted = cancel.target.is_some() || cancel.waiting;
            is_targeted.then_some(Extension::TargetedCancel).into_iter().collect()
        }
        Command::Snapshot(page) => {
            (!page.is_everything()).then_some(Extension::History).into_iter().collect()
        }
        Command::DeclareTools(_) | Command::ToolResult(_) => vec![Extension::ClientTools],
        Command::Approve(_) => vec![Extension::Approvals],
        Command::SwitchModel(_) => vec![Extension::SwitchModel],
        Command::Edit(Edit::Replace(it)) if !it.attachments.is_empty() => {
            vec![Extension::Edit, Extension::Attachments]
        }
        Command::Edit(_) => vec![Extension::Edit],
        Command::Compact(_) => vec![Extension::Compaction],
        Command::Shutdown | Command::Rename(_) | Command::NoteApproval(_) => Vec::new(),
    };
    used.into_iter().collect()
}
