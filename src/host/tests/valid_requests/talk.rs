//! A session whose provider calls are answered by models of six dialects, and whose every request is
//! checked in all of them.

use crate::conversation::copy::CopiedTurns;
use crate::conversation::entities::Entities;
use crate::conversation::log::{Record, Restored};
use crate::conversation::transcript::{HistoryMessage, Message, Preamble};
use crate::engine::CallSpec;
use crate::engine::dialects::{AnswerEnd, Dialect, Said};
use crate::protocol::any::Any;
use crate::protocol::attachment::{Attachment, Content};
use crate::protocol::command::{
    Cancel, ClientToolResult, Command, Edit, Extension, Prompt, Submit,
};
use crate::protocol::id::{Ids, RequestId, SessionId, TaskId, ToolCallId};
use crate::protocol::proto::chat::ChatAttachment;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{Frame, Request};
use crate::session::tests::scene::client_tools;
use crate::session::{FinalSnapshot, Input, Output, Rules, Session, TaskEvent, Uptime};
use crate::store::testing::restore;

/// Something that happens; without effect where it makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    Submit,
    /// An image without a word.
    SubmitImage,
    /// The model is called with what was said before.
    SubmitNothing,
    /// A prompt joins the run.
    Steer,
    /// The model says something.
    Says(Said),
    /// The answer ends.
    Ends(AnswerEnd),
    /// The client gives the results of all calls that wait for it.
    ClientAnswers,
    /// The client gives errors that say nothing, for all calls that wait for it.
    ClientFails,
    /// The time of what the run waits for is over.
    Expires,
    Cancel,
    DropLast,
    Regenerate,
    /// Another provider answers from here on.
    Switch,
    /// The process is killed, and another one resumes the session.
    Crash,
    /// Another process goes on with what frames have shown, which is without the bytes of attachments.
    Import,
}

pub(super) struct Talk {
    session: Session,
    /// What was said before.
    preamble: Preamble,
    /// What frames have shown.
    shown: Entities,
    records: Vec<Record>,
    dialect: Dialect,
    /// Those in which requests are checked.
    checked: &'static [Dialect],
    now: Uptime,
    steps: u32,
    /// What the model has said in the call that goes on.
    said: Vec<Said>,
    call: Option<TaskId>,
    run: Option<RequestId>,
    /// Calls that wait for the client.
    waiting: Vec<ToolCallId>,
    requests: usize,
    last: Option<CallSpec>,
    broken: Vec<String>,
}

impl Talk {
    /// A session in which nothing was said, with a tool of its client.
    pub(super) fn with(dialect: Dialect, checked: &'static [Dialect]) -> Self {
        Self::after(Preamble::default(), dialect, checked)
    }

    /// Like `with`, after the conversation of `preamble`.
    pub(super) fn after(preamble: Preamble, dialect: Dialect, checked: &'static [Dialect]) -> Self {
        let mut talk = Self {
            session: Session::new(rules(&preamble, false), 1),
            preamble,
            shown: Entities::default(),
            records: Vec::new(),
            dialect,
            checked,
            now: Uptime(0),
            steps: 0,
            said: Vec::new(),
            call: None,
            run: None,
            waiting: Vec::new(),
            requests: 0,
            last: None,
            broken: Vec::new(),
        };
        talk.request(Command::DeclareTools(client_tools(&["get_time", "7zip"])));
        talk
    }

    pub(super) fn requests(&self) -> usize {
        self.requests
    }

    /// The messages of the last request, in words.
    pub(super) fn last_messages(&self) -> Vec<String> {
        let spec = self.last.as_ref().expect("a request");
        let words = |message: &Message<'_>| match message {
            Message::System(_) => "system".to_owned(),
            Message::User { text, .. } => format!("user: {text}"),
            Message::Assistant { text, calls, .. } => format!("model: {text} + {}", calls.len()),
            Message::Tool { .. } => "tool".to_owned(),
        };
        spec.transcript.messages().iter().map(words).collect()
    }

    /// Has something happen.
    ///
    /// # Errors
    /// If a provider would refuse the request that follows: why.
    pub(super) fn play(&mut self, happening: Happening) -> Result<(), String> {
        self.steps += 1;
        match happening {
            Happening::Submit => self.submit(None),
            Happening::SubmitImage => {
                let submit = Submit::new(Prompt::nothing());
                let attachments = vec![image()];
                self.run_of(Command::Submit(Submit { attachments, ..submit }));
            }
            Happening::SubmitNothing => {
                self.run_of(Command::Submit(Submit::new(Prompt::nothing())));
            }
            Happening::Steer => {
                if let Some(run) = self.run.clone() {
                    self.submit(Some(run));
                }
            }
            Happening::Says(said) => {
                if self.call.is_some() {
                    self.said.push(said);
                }
            }
            Happening::Ends(end) => self.answer(end, true),
            Happening::ClientAnswers => self.results(None),
            Happening::ClientFails => self.results(Some(String::new())),
            Happening::Expires => {
                if let Some(deadline) = self.session.deadline() {
                    self.now = deadline;
                    self.feed(Input::DeadlineReached);
                }
            }
            Happening::Cancel => {
                self.answer(AnswerEnd::Broken, false);
                self.request(Command::Cancel(Cancel::default()));
            }
            Happening::DropLast => self.request(Command::Edit(Edit::DropLastTurn)),
            Happening::Regenerate => self.run_of(Command::Edit(Edit::Regenerate)),
            Happening::Switch => {
                let at = Dialect::ALL.iter().position(|it| *it == self.dialect).unwrap_or_default();
                // In the middle of an answer it is that of the provider that began it.
                if self.said.is_empty() {
                    self.dialect = Dialect::ALL[(at + 1) % Dialect::ALL.len()];
                }
            }
            Happening::Crash => self.crash(),
            Happening::Import => self.import(),
        }
        match self.broken.is_empty() {
            true => Ok(()),
            false => Err(self.broken.join("\n")),
        }
    }

    fn submit(&mut self, joins: Option<RequestId>) {
        let prompt = Prompt::new(format!("prompt {}", self.steps)).expect("a prompt");
        let command = Command::Submit(Submit { joins, ..Submit::new(prompt) });
        self.run_of(command);
    }

    /// A request that has a run of its own, unless one goes on.
    fn run_of(&mut self, command: Command) {
        if self.run.is_none() {
            self.run = Some(self.request_id());
        }
        self.request(command);
    }

    fn request_id(&self) -> RequestId {
        RequestId::new(&format!("r{}", self.steps)).expect("a name")
    }

    fn request(&mut self, command: Command) {
        let id = self.request_id();
        self.feed(Input::Request(Request { session: None, id, command }));
    }

    /// The call gets what the model has said, and its end if it `ends`.
    fn answer(&mut self, end: AnswerEnd, ends: bool) {
        let Some(task) = self.call else { return };
        let (events, ended) = self.dialect.answer(&std::mem::take(&mut self.said), end);
        for event in events {
            self.feed(Input::Task(task, TaskEvent::Engine(event)));
        }
        if ends {
            self.call = None;
            self.feed(Input::Task(task, TaskEvent::CallEnded(ended)));
        }
    }

    fn results(&mut self, error: Option<String>) {
        for call in std::mem::take(&mut self.waiting) {
            let (tool_name, result, error) = (None, None, error.clone());
            let answer = ClientToolResult { call, tool_name, result, error };
            self.request(Command::ToolResult(answer));
        }
    }

    fn crash(&mut self) {
        self.answer(AnswerEnd::Broken, false);
        let restored = restore(self.session.id().clone(), &self.records);
        if !self.records.is_empty() {
            self.session.assert_projected(&restored.projections);
        }
        self.resume(restored);
    }

    fn resume(&mut self, restored: Restored) {
        (self.call, self.run) = (None, None);
        self.waiting.clear();
        self.session = Session::new(rules(&self.preamble, true), u128::from(self.steps) + 1);
        self.feed(Input::Restored(Some(Box::new(restored))));
    }

    fn import(&mut self) {
        self.answer(AnswerEnd::Broken, false);
        let copy = CopiedTurns::of_shown(std::mem::take(&mut self.shown).finish());
        let mut ids = Ids::new(u128::from(self.steps) << 64);
        let session = self.session.id().clone();
        self.records = copy.records(&session, &mut ids);
        self.resume(restore(session, &self.records));
    }

    fn feed(&mut self, input: Input) {
        self.now.0 += 1;
        for output in self.session.handle(self.now, input) {
            match output {
                Output::Persist(record) => self.records.push(record),
                Output::Frame(frame) => self.frame(&frame),
                Output::StartCall(task, spec) => {
                    self.call = Some(task);
                    self.check(spec);
                }
                Output::CancelTask(_) => self.call = None,
                Output::StartTool(..)
                | Output::ReadFiles(..)
                | Output::Warning(_)
                | Output::Exit(_)
                | Output::Abort(_) => {}
            }
        }
    }

    fn frame(&mut self, frame: &Frame) {
        match &frame.frame {
            Some(Body::UiEvent(event)) => {
                let payload = event.payload.clone().map(Any::into_whole);
                if let Some(payload) = &payload {
                    self.shown.event(event.ordinal, payload);
                }
                if let Some(Any::FrontendToolCallRequested(call)) = payload {
                    self.waiting.push(ToolCallId(call.tool_call_id));
                }
            }
            Some(Body::Done(_)) => {
                if self.run.as_ref().is_some_and(|run| run.as_str() == frame.request_id) {
                    (self.run, self.call) = (None, None);
                    self.said.clear();
                    self.waiting.clear();
                }
            }
            Some(Body::Hello(_) | Body::Snapshot(_) | Body::Error(_) | Body::BackendEvent(_))
            | None => {}
        }
    }

    fn check(&mut self, spec: CallSpec) {
        self.requests += 1;
        let goes_on = self.goes_on(&spec);
        for dialect in self.checked {
            let mut broken = dialect.broken_rules(&spec, false);
            // Only there a budget for reasoning has rules of its own.
            if *dialect == Dialect::Anthropic {
                broken.extend(dialect.broken_rules(&spec, true));
            }
            broken.retain(|rule| !goes_on || !rule.contains(": the last one is the user's"));
            self.broken.extend(broken);
        }
        self.last = Some(spec);
    }

    /// Whether the model is to go on with an answer that the conversation began with, and that nothing
    /// followed: it was written so.
    fn goes_on(&self, spec: &CallSpec) -> bool {
        let Some(Message::Assistant { text, .. }) = spec.transcript.messages().pop() else {
            return false;
        };
        let is_blank = |message: &&HistoryMessage| match message {
            HistoryMessage::ByUser(text)
            | HistoryMessage::ByModel(text)
            | HistoryMessage::BySystem(text) => text.trim().is_empty(),
        };
        let last = self.preamble.history.iter().rfind(|message| !is_blank(message));
        matches!(last, Some(HistoryMessage::ByModel(last)) if text.ends_with(last.as_str()))
    }
}

fn image() -> Attachment {
    let shown = ChatAttachment {
        media_type: "image/png".to_owned(),
        filename: "a.png".to_owned(),
        ..ChatAttachment::default()
    };
    Attachment { shown, content: Content::Data(b"abc".as_slice().into()) }
}

fn rules(preamble: &Preamble, resumes: bool) -> Rules {
    let mut rules = Rules {
        preamble: preamble.clone(),
        session: SessionId::new("s"),
        final_snapshot: FinalSnapshot::None,
        extensions: [Extension::Attachments, Extension::ClientTools].into(),
        ..Rules::default()
    };
    rules.log.is_stored = true;
    rules.log.may_resume = resumes;
    rules
}
