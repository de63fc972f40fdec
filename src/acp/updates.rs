//! The conversation as updates of the client: what an event adds to it, and what a stored conversation
//! consists of. Both give the same messages, under the same ids. Pure.

use super::queue::{Chunk, ChunkKind, Item, Queue};
use super::schema::{Cost, ToolCall, ToolContent, ToolStatus, Update};
use super::tool_calls::{begun, requested, result};
use crate::conversation::event::ToolResult;
use crate::output::how_far;
use crate::protocol::any::Any;
use crate::protocol::attachment::{Attachment, IMAGE};
use crate::protocol::constants::{finish, role, tool_call, tool_result};
use crate::protocol::id::ToolCallId;
use crate::protocol::proto::chat::{ChatAttachment, ChatMessageEntity, ToolCallEntity};
use crate::protocol::proto::rpc::SnapshotFrame;
use crate::protocol::proto::session::UsageTotals;
use crate::protocol::proto::tools::{ToolCallProgressed, ToolServerChanged, ToolServerState};
use crate::store::title_of;
use crate::support::terminal::escape_control;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of the images in a result, in base64: some clients end for good at a line of 10 MiB.
const IMAGES_BYTES_MAX: usize = 6 * 1024 * 1024;

/// Characters of a report on the progress of a call.
const PROGRESS_CHARS_MAX: usize = 400;

/// The fold of a session's events.
#[derive(Debug)]
pub(super) struct Updates {
    folder: PathBuf,
    /// Tokens that the model can be sent, if that is known.
    pub(super) context_size: Option<NonZeroU64>,
    /// How many of them were in use in the last update that was sent.
    used: Option<u64>,
    /// What the session has cost, if that is known.
    cost: Option<Cost>,
    /// Calls that have a result.
    returned: BTreeSet<String>,
    has_title: bool,
    /// The last answer was cut off at a limit on its tokens.
    is_cut_off: bool,
    /// Images of the result that comes next.
    images: Arc<[Attachment]>,
}

impl Updates {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            context_size: None,
            used: None,
            cost: None,
            returned: BTreeSet::new(),
            has_title: false,
            is_cut_off: false,
            images: Arc::default(),
        }
    }

    /// Notes the images of the result that comes next.
    pub(super) fn images(&mut self, images: Arc<[Attachment]>) {
        self.images = images;
    }

    /// Whether something was said, now or in an earlier process.
    pub(super) fn has_begun(&self) -> bool {
        self.has_title
    }

    /// Whether the last answer ended at a limit on its tokens.
    pub(super) fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// The host is given another prompt, or a request in its place that has no answer of the model.
    pub(super) fn begin_prompt(&mut self) {
        self.is_cut_off = false;
    }

    /// Adds what the event of a run shows; returns any other payload.
    pub(super) fn event(&mut self, payload: Any, to: &mut Queue) -> Option<Any> {
        let payload = self.text_event(payload, to)?;
        let payload = self.tool_event(payload, to)?;
        self.run_event(payload, to)
    }

    fn text_event(&mut self, payload: Any, to: &mut Queue) -> Option<Any> {
        if let Any::ChatTextPatch(patch) = payload {
            to.push(chunk(ChunkKind::Answer, patch.message_id, patch.text));
        } else if let Any::ChatReasoningPatch(patch) = payload {
            to.push(chunk(ChunkKind::Thought, patch.message_id, patch.text));
        } else {
            return Some(payload);
        }
        None
    }

    fn tool_event(&mut self, payload: Any, to: &mut Queue) -> Option<Any> {
        if let Any::ChatToolCallStarted(call) = payload {
            let call = begun(&call.tool_call_id, &call.tool_name);
            to.update(Update::ToolCall(ToolCall { status: Some(ToolStatus::Pending), ..call }));
        } else if let Any::ChatToolCallRequested(call) = payload {
            let call = requested(&call.tool_call_id, &call.tool_name, &call.input, &self.folder);
            to.update(Update::ToolCallChanged(call));
        } else if let Any::ChatToolExecutionStarted(call) = payload {
            to.update(changed(call.tool_call_id, ToolStatus::InProgress));
        } else if let Any::ToolCallProgressed(it) = payload {
            to.update(progressed(&it));
        } else if let Any::ChatToolResultReady(it) = payload {
            self.returned.insert(it.tool_call_id.clone());
            let images = pictures(&std::mem::take(&mut self.images));
            to.update(returned_with(it.tool_call_id, status_of(&it.status), &it.result, images));
        } else if let Any::ChatToolCallFinished(it) = payload {
            // A call whose arguments never became whole has no result.
            if !self.returned.remove(&it.tool_call_id) {
                to.update(changed(it.tool_call_id, ToolStatus::Failed));
            }
        } else {
            return Some(payload);
        }
        None
    }

    fn run_event(&mut self, payload: Any, to: &mut Queue) -> Option<Any> {
        if let Any::ChatUserMessageAccepted(prompt) = payload {
            // The client shows what it has sent.
            self.title(&prompt.text, to);
        } else if let Any::ChatProviderCallFinished(call) = payload {
            self.is_cut_off = call.finish_class == finish::MAX_TOKENS;
        } else if let Any::UsageTotals(totals) = payload {
            to.push_some(self.usage(&totals));
        } else {
            return Some(payload);
        }
        None
    }

    /// A conversation has the title that the list of sessions gives it.
    fn title(&mut self, prompt: &str, to: &mut Queue) {
        if !std::mem::replace(&mut self.has_title, true) {
            let title = escape_control(&title_of(prompt));
            if !title.is_empty() {
                to.update(Update::SessionInfo { title });
            }
        }
    }

    /// Notes what all calls have cost, also those that are no part of the conversation.
    pub(super) fn note_cost(&mut self, totals: &UsageTotals) {
        let session = totals.session.as_ref();
        self.cost = session.filter(|session| !session.currency.is_empty()).and_then(|session| {
            Some(Cost { amount: session.cost.parse().ok()?, currency: session.currency.clone() })
        });
    }

    /// What the model was sent and has written, of what it can be sent; only with known numbers.
    fn usage(&mut self, totals: &UsageTotals) -> Option<Item> {
        self.note_cost(totals);
        let call = totals.call.as_ref()?;
        let used = call.input_tokens.saturating_add(call.output_tokens);
        if used > 0 { self.in_use(used) } else { None }
    }

    /// So much of what the model can be sent is in use.
    pub(super) fn in_use(&mut self, used: u64) -> Option<Item> {
        self.used = Some(used);
        let size = self.context_size?.get();
        Some(Item::Update(Update::Usage { used, size, cost: self.cost.clone() }))
    }

    /// As much is in use as before, and what the session has cost may be more.
    pub(super) fn still_in_use(&mut self) -> Option<Item> {
        self.used.and_then(|used| self.in_use(used))
    }

    /// Adds a conversation, message for message, with the images that are in the results of tools.
    pub(super) fn replay(
        &mut self,
        conversation: SnapshotFrame,
        mut with_images: BTreeMap<ToolCallId, Arc<ToolResult>>,
        to: &mut Queue,
    ) {
        let payloads = conversation.entities.into_iter().filter_map(|entity| entity.payload);
        let payloads: Vec<_> = payloads.map(Any::into_whole).collect();
        let returned: BTreeSet<_> = payloads.iter().filter_map(returned_call).collect();
        for payload in &payloads {
            if let Any::ChatMessageEntity(message) = payload {
                self.has_title |= message.role == role::USER;
                message_of(message, to);
            } else if let Any::ToolCallEntity(call) = payload {
                let is_returned = returned.contains(call.tool_call_id.as_str());
                to.update(Update::ToolCall(self.stored_call(call, is_returned)));
            } else if let Any::ToolResultEntity(it) = payload {
                let (id, status) = (it.tool_call_id.clone(), status_of(&it.status));
                let result = with_images.remove(&ToolCallId(id.clone()));
                let images = result.map(|result| pictures(result.images())).unwrap_or_default();
                to.update(returned_with(id, status, &it.result, images));
            }
        }
    }

    /// A call as it stands; the result says how it ended, if there is one.
    fn stored_call(&self, call: &ToolCallEntity, is_returned: bool) -> ToolCall {
        let status = match call.status.as_str() {
            tool_call::COMPLETED if is_returned => ToolStatus::InProgress,
            tool_call::COMPLETED => ToolStatus::Failed,
            tool_call::EXECUTING => ToolStatus::InProgress,
            _ => ToolStatus::Pending,
        };
        let begun = begun(&call.tool_call_id, &call.tool_name);
        let requested = requested(&call.tool_call_id, &call.tool_name, &call.input, &self.folder);
        ToolCall { name: begun.name, kind: begun.kind, status: Some(status), ..requested }
    }

    /// Notes that a conversation goes on, whose title the client knows.
    pub(super) fn goes_on(&mut self) {
        self.has_title = true;
    }
}

/// Images as people see them, as far as they have room in a line: the text of the result has a note for each.
fn pictures(images: &[Attachment]) -> Vec<ToolContent> {
    let mut left = IMAGES_BYTES_MAX;
    let shown = images.iter().filter_map(|image| {
        let data = image.base64()?;
        left = left.checked_sub(data.len())?;
        Some(ToolContent::image(data, image.shown.media_type.clone()))
    });
    shown.collect()
}

/// What people are told of a server whose tools are missing.
pub(super) fn missing_server(changed: &ToolServerChanged) -> Option<String> {
    let is_missing = match changed.state() {
        ToolServerState::Unavailable | ToolServerState::Gone => true,
        ToolServerState::Starting | ToolServerState::Ready | ToolServerState::Unspecified => false,
    };
    let (server, reason) = (escape_control(&changed.server), escape_control(&changed.reason));
    is_missing.then(|| format!("the MCP server {server} can't be used: {reason}"))
}

fn chunk(kind: ChunkKind, message_id: String, text: String) -> Item {
    Item::Chunk(Chunk { kind, message_id, text })
}

fn changed(tool_call_id: String, status: ToolStatus) -> Update {
    Update::ToolCallChanged(ToolCall { tool_call_id, status: Some(status), ..ToolCall::default() })
}

/// A call that goes on, with how far it is in the place of its result.
fn progressed(it: &ToolCallProgressed) -> Update {
    let how_far: String = how_far(it).chars().take(PROGRESS_CHARS_MAX).collect();
    Update::ToolCallChanged(ToolCall {
        tool_call_id: it.tool_call_id.clone(),
        status: Some(ToolStatus::InProgress),
        content: result(&escape_control(&how_far)),
        ..ToolCall::default()
    })
}

fn status_of(status: &str) -> ToolStatus {
    if status == tool_result::SUCCESS { ToolStatus::Completed } else { ToolStatus::Failed }
}

/// The error of a run is no message: the client was told it as the answer to its prompt.
fn message_of(message: &ChatMessageEntity, to: &mut Queue) {
    let kind = match message.role.as_str() {
        role::USER => ChunkKind::User,
        role::ASSISTANT => ChunkKind::Answer,
        role::THINKING => ChunkKind::Thought,
        _ => return,
    };
    let mut text = message.text.clone();
    for image in message.attachments.iter().filter(|it| it.kind == IMAGE) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&named_image(image));
    }
    if !text.is_empty() {
        to.push(chunk(kind, message.message_id.clone(), text));
    }
}

/// What stands for an image, whose bytes a conversation that is shown does not have.
fn named_image(image: &ChatAttachment) -> String {
    let name = if image.filename.is_empty() { &image.media_type } else { &image.filename };
    format!("[image: {}]", escape_control(name))
}

/// The call that the result in `payload` is of.
fn returned_call(payload: &Any) -> Option<&str> {
    if let Any::ToolResultEntity(it) = payload { Some(&it.tool_call_id) } else { None }
}

fn returned_with(
    tool_call_id: String,
    status: ToolStatus,
    text: &str,
    images: Vec<ToolContent>,
) -> Update {
    let content = result(text).into_iter().chain(images).collect();
    let status = Some(status);
    Update::ToolCallChanged(ToolCall { tool_call_id, status, content, ..ToolCall::default() })
}
