//! The state of a chat, and how events change it. Pure: `update` takes an event and the time, and returns
//! actions for the shell.

mod approvals;
mod attaching;
mod completing;
mod consent;
mod edits;
mod events;
mod forking;
mod frames;
mod hint;
mod keys;
mod leaving;
mod lending;
mod lines;
mod log;
mod notices;
mod offer;
mod offers;
mod orders;
mod pasting;
mod picker;
mod prompts;
mod requests;
mod restored;
mod rewinding;
mod run;
mod servers;
mod shell_commands;
mod switching;
mod vi;
mod written;

pub(crate) use approvals::{Approval, Asking};
pub(crate) use attaching::{Draft, Large, UNASKED_BYTES_MAX};
pub(crate) use events::{Action, Copied, EditorFailure, Event, Expansion, Opening, Scroll};
pub(crate) use frames::retrying;
pub(crate) use lines::Lines;
pub(crate) use log::Log;
pub(crate) use notices::Notice;
pub(crate) use offer::Offer;
pub(crate) use pasting::{PastedFile, is_image_name};
pub(crate) use picker::{Choice, Picker, PickerKind};
pub(crate) use requests::{Outgoing, PromptSource, Waiting};
pub(crate) use run::{Run, RunPhase, ToolCall, ToolState};
pub(crate) use shell_commands::{CommandOutput, ShellCommand};
pub(crate) use switching::Switch;
pub(crate) use vi::Vi;

use super::input::{Candidates, Editor, FoldedText, History};
use super::markdown::Block;
use crate::protocol::attachment::Attachment;
use crate::protocol::command::{Decision, ModelChoice};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use attaching::Attaching;
use consent::Consent;
use hint::Hint;
use lending::Lent;
use lines::LINE_CUT;
use offers::OfOffers;
use servers::Listing;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

/// How long after the first Ctrl-C a second one leaves.
const LEAVE_TIME: Duration = Duration::from_secs(2);

/// Lines of a prompt that are printed unless it is wanted in full.
pub(crate) const PROMPT_LINES_MAX: usize = 40;

/// Columns and rows of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// Something that is printed once, and does not change any more.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Prompt {
        text: String,
        /// With signs in place of what was pasted, if something long was.
        written: Option<String>,
        attachments: Vec<String>,
        /// The terminal has shown the text when it was typed as a line: only the attachments are to be printed.
        is_echoed: bool,
    },
    /// A block of an answer.
    Block(Block),
    /// All blocks of the answer were printed.
    AnswerEnd,
    Reasoning {
        text: String,
        seconds: u64,
    },
    Tool(ToolCall),
    /// A piece that was shortened before, in full.
    Unfolded(Box<Piece>),
    Note(Note, String),
    /// So many turns with so many prompts were dropped; the first prompt is `text`.
    Dropped {
        prompts: usize,
        turns: usize,
        text: String,
    },
    /// Prepared lines, as those of /help.
    Lines(Vec<String>),
}

/// The topic of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Information,
    Warning,
    Error,
}

/// The kinds of text that are printed in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unfolded {
    pub(crate) all: bool,
}

/// The content of the status line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    pub(crate) session: String,
    pub(crate) engine: String,
    pub(crate) model: String,
    pub(crate) profile: String,
    pub(crate) system: Option<String>,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// Tokens of the last provider call: what it was sent and its answer.
    pub(crate) context_tokens: u64,
    /// Tokens that the model can be sent, if that is known.
    pub(crate) context_size: Option<NonZeroU64>,
    /// With its currency.
    pub(crate) cost: Option<String>,
    pub(crate) is_stored: bool,
    pub(crate) turns: u32,
}

/// A tool server, as its last event describes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerInfo {
    pub(crate) state: &'static str,
    pub(crate) reason: String,
    pub(crate) tools: Vec<String>,
}

/// A chat.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) size: Size,
    pub(crate) now: Duration,
    pub(crate) editor: Editor,
    /// The line has the keys of vi.
    pub(crate) vi: Option<Vi>,
    /// The texts into which something long was pasted, the newest last.
    folded_texts: Vec<FoldedText>,
    pub(crate) history: History,
    pub(crate) candidates: Option<Candidates>,
    /// The names of the command files that can be used.
    pub(crate) command_files: Vec<String>,
    pub(crate) run: Option<Run>,
    pub(crate) waiting: Vec<Waiting>,
    /// The shell command that runs.
    pub(crate) command: Option<ShellCommand>,
    /// Outputs of commands that go along with the next prompt.
    pub(crate) outputs: Vec<CommandOutput>,
    /// What options attach to the first prompt, until that is sent.
    pub(crate) attached: Vec<Attachment>,
    /// The prompt of the command line, while the person is asked about it.
    first: Option<String>,
    /// The text that was entered while the command ran, and goes with its output if it is still written then.
    enters_with_output: Option<String>,
    /// The text that the person's editor was given, while it runs.
    lent: Option<Lent>,
    /// A model that was chosen by its name, while the list of the provider is asked for.
    checks_model: Option<String>,
    /// What was chosen to answer while the model answers, and is switched to after that.
    pub(crate) switch: Option<Switch>,
    /// The message that the written text will replace.
    pub(crate) edits: Option<String>,
    pub(crate) approvals: Vec<Approval>,
    /// How the question about the first of them is answered.
    pub(crate) asking: Asking,
    pub(crate) picker: Option<Picker>,
    pub(crate) offer: Option<Offer>,
    pub(crate) status: Status,
    pub(crate) servers: BTreeMap<String, ServerInfo>,
    /// The names of all servers, also of those that have not reported yet.
    pub(crate) server_names: Vec<String>,
    /// The model that the conversation was switched to.
    pub(crate) chosen: Option<ModelChoice>,
    pub(crate) unfolded: Unfolded,
    pub(crate) log: Log,
    /// Lines in place of keys and pictures, if there are no keys.
    pub(crate) lines: Option<Lines>,
    /// Whether the provider may get the conversation.
    consent: Consent,
    /// The provider that had the conversation, and the one that would get it, while consent is missing.
    handover: String,
    attaching: Attaching,
    /// The files that the text may name are to be listed: where the name begins, and the name.
    lists_files: Option<(usize, String)>,
    /// What the servers offer to ask with.
    offers: OfOffers,
    /// What is to be listed of the servers once it is known.
    lists_servers: Option<Listing>,
    /// Another conversation is being opened.
    is_opening: bool,
    /// All prompts of the conversation, oldest first.
    prompts: Vec<edits::AcceptedPrompt>,
    /// Something has begun to wait for the person.
    notice: Option<Notice>,
    /// The person looks at the window, as far as the terminal reports it.
    is_looked_at: bool,
    hint: Option<Hint>,
    leave_until: Option<Duration>,
    /// Until then a second Esc lists the prompts of the conversation.
    rewind_until: Option<Duration>,
    /// Ctrl-X was pressed.
    is_prefixed: bool,
    /// The last piece that was folded, to be shown in full.
    folded: Option<Piece>,
    /// The ordinal of the last event that was shown.
    last_ordinal: u64,
    /// Cancels and the like, whose errors are of interest.
    quiet: Vec<(String, Outgoing)>,
    finished: Vec<Piece>,
    /// Input has ended or the person leaves: no more questions.
    is_ending: bool,
    /// The text that was stored last for later chats.
    remembered: Option<String>,
    /// An error has said that nothing more is stored.
    has_reported_store: bool,
    /// What the last error frame of this conversation said.
    last_failure: Option<String>,
    /// Why this conversation is not stored any more.
    store_failure: Option<String>,
}

impl State {
    /// A chat in which nothing was said.
    pub(crate) fn new(size: Size, history: History) -> Self {
        Self {
            size,
            now: Duration::ZERO,
            editor: Editor::default(),
            vi: None,
            folded_texts: Vec::new(),
            history,
            candidates: None,
            run: None,
            waiting: Vec::new(),
            command: None,
            outputs: Vec::new(),
            attached: Vec::new(),
            first: None,
            enters_with_output: None,
            lent: None,
            checks_model: None,
            switch: None,
            edits: None,
            approvals: Vec::new(),
            asking: Asking::default(),
            picker: None,
            offer: None,
            status: Status::default(),
            servers: BTreeMap::new(),
            server_names: Vec::new(),
            chosen: None,
            unfolded: Unfolded::default(),
            log: Log::default(),
            lines: None,
            consent: Consent::Given,
            handover: String::new(),
            attaching: Attaching::default(),
            lists_files: None,
            offers: OfOffers::new(),
            lists_servers: None,
            is_opening: false,
            command_files: Vec::new(),
            prompts: Vec::new(),
            notice: None,
            is_looked_at: true,
            hint: None,
            leave_until: None,
            rewind_until: None,
            is_prefixed: false,
            folded: None,
            last_ordinal: 0,
            quiet: Vec::new(),
            finished: Vec::new(),
            is_ending: false,
            remembered: None,
            has_reported_store: false,
            last_failure: None,
            store_failure: None,
        }
    }

    /// Applies an event at `now`, the time since the chat began; returns the actions for the shell.
    pub(crate) fn update(&mut self, now: Duration, event: Event) -> Vec<Action> {
        self.now = now;
        self.forget_hint();
        self.action_ended(&event);
        let mut actions = self.happened(event);
        if actions.is_empty() {
            actions = self.next_lines();
        }
        actions.extend(self.remember_put_aside());
        actions.extend(self.look_for_files());
        actions.extend(self.list_files());
        actions.extend(self.show_call());
        actions.extend(self.notify());
        actions
    }

    fn happened(&mut self, event: Event) -> Vec<Action> {
        match event {
            Event::Typed(typed) => return self.typed(typed),
            Event::Line(line) => return self.line_read(line),
            Event::LineCut => self.note(Note::Error, LINE_CUT.to_owned()),
            Event::LineInterrupted => return self.line_interrupted(),
            Event::InputEnded => self.lines_ended(),
            Event::Frame(frame) => {
                let is_last = matches!(frame.frame, Some(Body::Done(_)));
                self.frame(*frame);
                return if is_last { self.switch_at_last() } else { Vec::new() };
            }
            Event::Sent(outgoing, id) => self.sent(outgoing, id),
            Event::Tick => {}
            Event::Resized(size) => {
                self.size = size;
                self.is_not_drawn();
            }
            Event::Logged(line) => self.note(Note::Warning, line),
            Event::Reported(Ok(done)) => self.hint(done),
            Event::Reported(Err(why)) => self.note(Note::Error, why),
            Event::Sessions(sessions) => return self.sessions_listed(sessions),
            Event::Profiles(listed) => self.profiles_listed(listed),
            Event::Expanded { line, joins, prompt } => return self.expanded(&line, joins, prompt),
            Event::Offered { server, offers } => self.offered(server, offers),
            Event::Models(listed) => self.models_listed(listed),
            Event::Files { found, completes } => self.candidates_listed(found, completes),
            Event::FilesFound { looked_for, missing, unknown } => {
                self.files_found(&looked_for, missing, unknown);
            }
            Event::Measured { large, draft } => return self.measured(&large, draft),
            Event::PastedFiles { text, files } => self.pasted_files_found(&text, files),
            Event::Edited(edited) => self.edited(edited),
            Event::CommandEnded(ended) => return self.command_ended(ended),
            Event::Forked(copy) => return self.forked(copy),
            Event::SessionHeld { session, is_only } => self.session_is_held(session, is_only),
            Event::Opened(text) => {
                self.opened();
                self.note(Note::Information, text);
            }
            Event::NotOpened(why) => self.not_opened(why),
            Event::ProviderChanged(text) => self.provider_changed(text),
            Event::Pasting(bytes) => self.paste_goes_on(bytes),
        }
        Vec::new()
    }

    /// Takes the pieces to print, each once.
    pub(crate) fn take_finished(&mut self) -> Vec<Piece> {
        if let Some(lines) = &mut self.lines {
            lines.question_is_shown();
        }
        std::mem::take(&mut self.finished)
    }

    /// These pieces were taken and not printed.
    pub(crate) fn put_back(&mut self, mut pieces: Vec<Piece>) {
        pieces.append(&mut self.finished);
        self.finished = pieces;
    }

    /// Whether there is something to print.
    pub(crate) fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Whether lines are read in place of keys.
    pub(crate) fn is_plain(&self) -> bool {
        self.lines.is_some()
    }

    /// What the last error of this conversation says: why it ends, if it ends by itself.
    pub(crate) fn last_failure(&self) -> Option<&str> {
        self.last_failure.as_deref()
    }

    /// Why this conversation is not stored any more, if it was.
    pub(crate) fn store_failure(&self) -> Option<&str> {
        self.store_failure.as_deref()
    }

    /// Says something at the end of the printed text.
    pub(crate) fn note(&mut self, note: Note, text: String) {
        self.print(Piece::Note(note, text));
        if note == Note::Error {
            self.line_failed();
        }
    }

    fn print(&mut self, piece: Piece) {
        self.finished.push(piece);
    }

    /// Another conversation: what belongs to the old one is gone, but not what the person writes.
    fn opened(&mut self) {
        let system = self.status.system.take();
        let Status { is_stored, context_size, .. } = self.status;
        self.status = Status { system, is_stored, context_size, ..Status::default() };
        self.is_opening = false;
        self.offer = None;
        self.run = None;
        self.waiting.clear();
        self.nothing_is_asked();
        self.servers.clear();
        self.offers.clear();
        self.lists_servers = None;
        self.chosen = None;
        self.switch = None;
        self.consent = Consent::Given;
        self.log = Log::default();
        self.prompts.clear();
        self.edits = None;
        self.folded = None;
        self.last_ordinal = 0;
        self.quiet.clear();
        self.last_failure = None;
        self.store_failure = None;
    }
}

/// A decision as the person sees it.
pub(crate) fn decided(decision: &Decision) -> &'static str {
    match decision {
        Decision::AllowOnce => "allowed",
        Decision::AllowSession => "allowed for this conversation",
        Decision::Deny { .. } => "denied",
    }
}

#[cfg(test)]
pub(crate) mod tests;
