//! One session as its client sees it: how it was opened, its prompts in their order, what is asked and chosen.
//! Pure: takes messages of the client and effects of the host, and gives messages and orders.
//!
//! `opening` is how it begins and ends, `prompting` the way of a prompt, `frames` what the conversation says,
//! `questions` what the client is asked.

mod frames;
mod opening;
mod prompting;
mod questions;
#[cfg(test)]
mod tests;

use super::jsonrpc::{self, Id, RpcError};
use super::options::{self, Change, Chosen, Options};
use super::prompts::Draft;
use super::queue::Queue;
use super::schema::{
    ClientCapabilities, PromptParams, SetConfigOptionParams, SetModeParams, Update,
};
use super::services::CommandFile;
use super::updates::Updates;
use crate::conversation::event::ToolResult;
use crate::protocol::command::{Command, ModelChoice};
use crate::protocol::id::{RequestId, ToolCallId};
use crate::protocol::proto::rpc::ErrorFrame;
use crate::protocol::proto::session::{CompactionCause, WaitingFor};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

/// Prompts that may wait for their turn.
const WAITING_MAX: usize = 256;

/// Bytes of prompts that may wait.
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Requests to the client that a session numbers by itself. Ids fit into 32 bits, as not every client has more.
const REQUESTS_MAX: i64 = 1 << 16;

/// How a session was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    New,
    /// It goes on, and is shown.
    Load,
    /// It goes on, and the client has it.
    Resume,
}

/// Something that the task of the session is to do.
#[derive(Debug, PartialEq)]
pub(super) enum Order {
    /// Give the host this request, and say which id it has.
    Request(Command, Purpose),
    /// Make a submit of the draft, with the text of the command file that its first line names, if one is given.
    Prepare(Box<Draft>, Option<CommandLine>),
    /// Wait for the client's buffers, for a limited time.
    AwaitBuffers,
    /// Give the server this answer to the question of this number.
    Answer(u64, Value),
    /// Answer the questions that servers have asked and this does not know of yet: their turn is cancelled.
    DropQuestions,
    /// End the input of the host.
    End,
}

/// The line that names a command file, and what follows it in the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub(super) line: String,
    pub(super) rest: String,
}

/// Why the host gets a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Prompt,
    /// The conversation is shown again, to this request of the client.
    Replay(Id),
    /// The person has chosen something, which the conversation may refuse.
    Choice(Chosen),
    /// What becomes of it is said by events.
    Notice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its settings are looked for.
    Preparing,
    /// The stored conversation is loaded.
    Loading,
    Open,
    /// It ends, and takes no more prompts.
    Ending,
}

#[derive(Debug)]
struct Waiting {
    id: Id,
    draft: Draft,
}

/// The prompt whose turn it is.
#[derive(Debug)]
struct Active {
    id: Id,
    stage: PromptStage,
    is_cancelled: bool,
}

#[derive(Debug)]
enum PromptStage {
    /// The client is asked for its buffers of the files that the prompt names.
    Fetching(Box<Draft>),
    /// Files are looked at.
    Preparing,
    /// The host has it, or is about to be given it.
    Running(Option<RequestId>),
}

/// A request to the client that has no response yet.
#[derive(Debug)]
enum Asked {
    Permission {
        call: ToolCallId,
        tool: Tool,
    },
    /// The text of a link of the prompt.
    Buffer(usize),
    /// What a server wants to know, by its number.
    Question(u64),
    /// Whether the conversation is compacted.
    Compaction,
}

/// A tool of a server, by their names.
type Tool = (String, String);

#[derive(Debug)]
pub(super) struct Dialog {
    session: String,
    /// Tells the requests of this session from those of others.
    number: i64,
    tag: String,
    client: ClientCapabilities,
    folder: PathBuf,
    pub(super) queue: Queue,
    orders: VecDeque<Order>,
    /// The request that opens it, until it is answered.
    opening: Option<(Id, How)>,
    stage: Stage,
    /// What was said can be loaded again.
    is_stored: bool,
    /// Why there is no conversation, though the request that was to open it has been answered.
    broken: Option<String>,
    waiting: VecDeque<Waiting>,
    active: Option<Active>,
    updates: Updates,
    options: Options,
    commands: Vec<CommandFile>,
    /// Requests of the client that the session is shown again to.
    replays: Vec<(RequestId, Id)>,
    /// Requests to the host about a choice.
    switches: Vec<(RequestId, Chosen)>,
    /// Choices that wait for the end of the run.
    changes: Vec<(ModelChoice, Chosen)>,
    /// What the person has chosen before the settings were known, by the ids of the options.
    early: BTreeMap<String, String>,
    asked: BTreeMap<i64, Asked>,
    requests: i64,
    /// The addresses that the client was asked to open, by the ids of their servers; the last one first.
    elicitations: VecDeque<String>,
    /// Tools that the person does not want to be asked about again.
    rejected: BTreeSet<Tool>,
    /// The last error of each request.
    errors: BTreeMap<String, ErrorFrame>,
    /// What the person is to be told, and was not yet.
    notices: Vec<String>,
    notices_told: usize,
    /// Results that are shown with their images when the past is.
    with_images: BTreeMap<ToolCallId, Arc<ToolResult>>,
    /// The wait that was reported to the editor since the last event.
    waits_for: Option<WaitingFor>,
    /// How many compactions have begun.
    compactions: usize,
    /// Why the last one was begun, while it has not ended.
    compacting: Option<CompactionCause>,
    /// How many the person was asked about.
    compactions_asked: usize,
    /// The tool call that stands for the one that was asked about, while that has not ended.
    compaction_call: Option<String>,
    closers: Vec<Id>,
    is_over: bool,
}

/// What a session is, before its settings are known.
#[derive(Debug)]
pub(super) struct Beginning {
    pub(super) session: String,
    pub(super) number: i64,
    /// Tells the ids that the session makes from those of its earlier openings: a client that resumes it has these.
    pub(super) tag: String,
    pub(super) client: ClientCapabilities,
    pub(super) folder: PathBuf,
    /// The request that opens it.
    pub(super) request: Id,
    pub(super) how: How,
    /// What the person is to be told.
    pub(super) notices: Vec<String>,
}

impl Dialog {
    pub(super) fn new(beginning: Beginning) -> Self {
        let Beginning { session, number, tag, client, folder, .. } = beginning;
        let Beginning { request, how, notices, .. } = beginning;
        Self {
            queue: Queue::new(session.clone()),
            session,
            number,
            tag,
            client,
            updates: Updates::new(folder.clone()),
            folder,
            orders: VecDeque::new(),
            opening: Some((request, how)),
            stage: Stage::Preparing,
            is_stored: false,
            broken: None,
            waiting: VecDeque::new(),
            active: None,
            options: Options::default(),
            commands: Vec::new(),
            replays: Vec::new(),
            switches: Vec::new(),
            changes: Vec::new(),
            early: BTreeMap::new(),
            asked: BTreeMap::new(),
            requests: 0,
            elicitations: VecDeque::new(),
            rejected: BTreeSet::new(),
            errors: BTreeMap::new(),
            notices,
            notices_told: 0,
            with_images: BTreeMap::new(),
            waits_for: None,
            compactions: 0,
            compacting: None,
            compactions_asked: 0,
            compaction_call: None,
            closers: Vec::new(),
            is_over: false,
        }
    }

    /// The session of a request to the client with this id.
    pub(super) fn number_of(request: i64) -> i64 {
        request / REQUESTS_MAX
    }

    pub(super) fn next_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// Whether nothing more comes of it but the answers to those who have closed it.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether the session ends, or has ended.
    pub(super) fn is_ending(&self) -> bool {
        self.stage == Stage::Ending
    }

    /// Handles a request of the client.
    pub(super) fn request(&mut self, id: Id, method: &str, params: Value) {
        let refused = match method {
            "session/prompt" => self.prompt(&id, params),
            "session/set_mode" => self.set_mode(&id, params),
            "session/set_config_option" => self.set_config_option(&id, params),
            "session/load" => self.shown_again(&id),
            "session/resume" => self.resumed_again(&id),
            "session/close" => {
                self.close(id);
                return;
            }
            _ => Err(RpcError::method_not_found(method)),
        };
        if let Err(error) = refused {
            self.queue.respond(id, Err(error));
        }
    }

    fn prompt(&mut self, id: &Id, params: Value) -> Result<(), RpcError> {
        let PromptParams { prompt } = jsonrpc::params(params)?;
        let draft = super::prompts::draft(prompt)?;
        self.refuse_if_closed()?;
        let bytes: usize = self.waiting.iter().map(|it| it.draft.len_bytes()).sum();
        if self.waiting.len() >= WAITING_MAX || bytes >= WAITING_BYTES_MAX {
            let why = "too many prompts wait for the one that is being answered; send this one again later";
            return Err(RpcError::failed(why));
        }
        self.waiting.push_back(Waiting { id: id.clone(), draft });
        self.proceed();
        Ok(())
    }

    fn refuse_if_closed(&self) -> Result<(), RpcError> {
        match (&self.broken, self.stage) {
            (Some(why), _) => Err(RpcError::failed(why.clone())),
            (None, Stage::Ending) => Err(RpcError::not_found(&self.session)),
            (None, Stage::Preparing | Stage::Loading | Stage::Open) => Ok(()),
        }
    }

    fn set_mode(&mut self, id: &Id, params: Value) -> Result<(), RpcError> {
        let SetModeParams { mode_id } = jsonrpc::params(params)?;
        self.refuse_if_closed()?;
        self.options.set_mode(&mode_id).map_err(RpcError::invalid_params)?;
        self.remember(options::MODE, &mode_id);
        self.queue.respond(id.clone(), Ok(json!({})));
        self.note_mode();
        self.config_changed();
        self.decide_asked();
        Ok(())
    }

    fn set_config_option(&mut self, id: &Id, params: Value) -> Result<(), RpcError> {
        let SetConfigOptionParams { config_id, value } = jsonrpc::params(params)?;
        self.refuse_if_closed()?;
        let value =
            value.as_str().ok_or_else(|| RpcError::invalid_params("the value is no text"))?;
        let change = self.options.set(&config_id, value).map_err(RpcError::invalid_params)?;
        self.remember(&config_id, value);
        let options = self.options.config();
        self.queue.respond(id.clone(), Ok(json!({ "configOptions": options })));
        match change {
            Change::Model(choice, chosen) => self.changes.push((choice, chosen)),
            Change::Approval => {
                let current_mode_id = self.options.mode();
                self.queue.update(Update::Mode { current_mode_id });
                self.note_mode();
                self.decide_asked();
            }
        }
        self.proceed();
        Ok(())
    }

    /// Keeps a choice that was made before the settings were known, as they would take its place.
    fn remember(&mut self, id: &str, value: &str) {
        if self.stage == Stage::Preparing {
            self.early.insert(id.to_owned(), value.to_owned());
        }
    }

    /// Has the mode stored, so that the session has it when it is loaded.
    fn note_mode(&mut self) {
        if self.stage == Stage::Preparing {
            // No host takes requests yet: `opened` sends it.
            return;
        }
        self.order(Command::NoteApproval(self.options.mode()), Purpose::Notice);
    }

    fn config_changed(&mut self) {
        let config_options = self.options.config();
        self.queue.update(Update::ConfigOptions { config_options });
    }

    /// The id of something that no event of the conversation has one for.
    fn own_id(&self, what: &str, number: usize) -> String {
        format!("{what}-{}-{number}", self.tag)
    }

    fn order(&mut self, command: Command, purpose: Purpose) {
        self.orders.push_back(Order::Request(command, purpose));
    }
}
