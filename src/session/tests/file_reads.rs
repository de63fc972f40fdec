//! Requests whose files are being read: every sequence of what can happen meanwhile, and what each is
//! answered with.

use super::ledger::Ledger;
use super::model::{Item, outline};
use crate::protocol::attachment::{Attachment, Content};
use crate::protocol::command::{self, Command, Page, Prompt};
use crate::protocol::id::{RequestId, SessionId, TaskId};
use crate::protocol::proto::chat::ChatAttachment;
use crate::protocol::wire::Request;
use crate::session::{self, Input, OnBusy, Output, Rules, Session, TaskEvent, Uptime};
use crate::task::report::CallEnd;
use anyhow::{Context, Result, ensure};
use std::collections::VecDeque;

/// Inputs in a sequence.
const DEPTH: usize = 5;

/// Milliseconds between two inputs.
const STEP_MS: u64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symbol {
    Submit,
    /// A submit that names a file.
    Attach,
    Cancel,
    /// A cancel of the first request that names a file.
    CancelFirst,
    CancelWaiting,
    Snapshot,
    Shutdown,
    InputEnded,
    Signal,
    /// The files of the request that came first have been read.
    Read,
    /// The files of the request that came last can't be read.
    Unreadable,
    /// Files that nobody waits for any more.
    Stale,
    /// The time for the oldest read is up.
    TooLate,
    Answered,
}
use Symbol::{
    Answered, Attach, Cancel, CancelFirst, CancelWaiting, InputEnded, Read, Shutdown, Signal,
    Snapshot, Stale, Submit, TooLate, Unreadable,
};

const ALL: [Symbol; 14] = [
    Submit,
    Attach,
    Cancel,
    CancelFirst,
    CancelWaiting,
    Snapshot,
    Shutdown,
    InputEnded,
    Signal,
    Read,
    Unreadable,
    Stale,
    TooLate,
    Answered,
];

#[derive(Clone)]
struct Scene {
    session: Session,
    ledger: Ledger,
    now: Uptime,
    steps: u32,
    reads: VecDeque<TaskId>,
    first: Option<RequestId>,
}

impl Scene {
    fn new(on_busy: OnBusy) -> Self {
        let rules = Rules { on_busy, ..Rules::default() };
        let session = Session::new(rules.clone(), 1);
        let ledger = Ledger::new(&rules, &session);
        let reads = VecDeque::new();
        Self { session, ledger, now: Uptime(0), steps: 0, reads, first: None }
    }

    /// What is done in a step; `None` if it can't happen now.
    fn input(&mut self, symbol: Symbol) -> Option<Input> {
        let id = RequestId::new(&format!("{}", self.steps)).expect("an id");
        let command = match symbol {
            Submit => Command::Submit(command::Submit::new(prompt())),
            Attach => {
                self.first.get_or_insert_with(|| id.clone());
                let attachments = vec![attachment(Content::File("a".into()))];
                Command::Submit(command::Submit { attachments, ..command::Submit::new(prompt()) })
            }
            Cancel => Command::Cancel(command::Cancel::default()),
            CancelFirst => {
                let target = Some(self.first.clone()?);
                Command::Cancel(command::Cancel { target, waiting: false })
            }
            CancelWaiting => Command::Cancel(command::Cancel { target: None, waiting: true }),
            Snapshot => Command::Snapshot(Page::default()),
            Shutdown => Command::Shutdown,
            InputEnded => return Some(Input::InputEnded),
            Signal => return Some(Input::Interrupted(session::Signal::Terminate)),
            Read => {
                let data = attachment(Content::Data(b"text".as_slice().into()));
                return Some(Input::FilesRead(*self.reads.front()?, Ok(vec![data])));
            }
            Unreadable => {
                return Some(Input::FilesRead(*self.reads.back()?, Err("it is gone".to_owned())));
            }
            Stale => {
                let why = "nobody asks".to_owned();
                return Some(Input::FilesRead(TaskId(u64::MAX), Err(why)));
            }
            TooLate => {
                self.now = self.session.deadline()?.max(self.now);
                return Some(Input::DeadlineReached);
            }
            Answered => {
                let ended = TaskEvent::CallEnded(CallEnd::Finished);
                return Some(Input::Task(self.ledger.call()?, ended));
            }
        };
        Some(Input::Request(Request { session: None, id, command }))
    }

    fn play(&mut self, symbol: Symbol) -> Result<Option<Vec<Output>>> {
        self.steps += 1;
        self.now.0 += STEP_MS;
        let Some(input) = self.input(symbol) else { return Ok(None) };
        let outputs = self.session.handle(self.now, input.clone());
        self.ledger.watch(&input, &outputs).with_context(|| format!("{input:?}"))?;
        if let Input::FilesRead(task, _) = input {
            self.reads.retain(|read| *read != task);
        }
        for output in &outputs {
            if let Output::ReadFiles(task, _) = output {
                self.reads.push_back(*task);
            }
            if let Output::CancelTask(task) = output {
                self.reads.retain(|read| read != task);
            }
        }
        Ok(Some(outputs))
    }

    /// Ends the input, all reads and all runs; the session must be closed then.
    fn settle(&mut self) -> Result<()> {
        self.play(InputEnded)?;
        while !self.reads.is_empty() || self.ledger.call().is_some() {
            self.play(Read)?;
            self.play(Answered)?;
        }
        ensure!(self.ledger.is_closed(), "not closed after the end of input, reads and runs");
        Ok(())
    }
}

fn prompt() -> Prompt {
    Prompt::new("what?".to_owned()).expect("it is not blank")
}

fn attachment(content: Content) -> Attachment {
    Attachment { shown: ChatAttachment::default(), content }
}

/// Tries every sequence; returns how many there were.
fn explore(scene: &Scene, path: &mut Vec<Symbol>) -> u64 {
    if path.len() == DEPTH || scene.ledger.is_closed() {
        let mut scene = scene.clone();
        if !scene.ledger.is_closed() {
            scene.settle().unwrap_or_else(|why| panic!("after {path:?}: {why:#}"));
        }
        return 1;
    }
    let mut sequences = 0;
    for symbol in ALL {
        let mut scene = scene.clone();
        path.push(symbol);
        let played = scene.play(symbol).unwrap_or_else(|why| panic!("after {path:?}: {why:#}"));
        if played.is_some() {
            sequences += explore(&scene, path);
        }
        path.pop();
    }
    sequences
}

#[test]
fn every_sequence_has_one_done_for_each_request_and_an_end() {
    for on_busy in [OnBusy::Reject, OnBusy::Queue] {
        let mut scene = Scene::new(on_busy);
        // Whatever comes before a read is tried elsewhere.
        scene.play(Attach).expect("the contract");
        let sequences = explore(&scene, &mut vec![Attach]);
        assert!(sequences > 10_000, "only {sequences}");
    }
}

/// What the last of `symbols` leads to.
fn last(symbols: &[Symbol]) -> Vec<String> {
    let mut scene = Scene::new(OnBusy::Reject);
    let mut outputs = Vec::new();
    for symbol in symbols {
        outputs = scene.play(*symbol).expect("the contract").expect("it can happen");
    }
    let name = |item| match item {
        Item::Start => Some("starts".to_owned()),
        Item::Cancel => Some("drops".to_owned()),
        Item::Exit(_) => Some("exits".to_owned()),
        Item::Error(_, name, _) | Item::Done(_, name) => Some(name),
        Item::Dropped(_) | Item::Begin(_) | Item::End(_) | Item::Snapshot(_) | Item::Abort(_) => {
            None
        }
    };
    outline(&outputs).into_iter().filter_map(name).collect()
}

#[test]
fn a_request_takes_effect_once_its_files_have_been_read() {
    let check = |symbols: &[Symbol], expected: &[&str]| {
        assert_eq!(last(symbols), expected, "{symbols:?}");
    };
    check(&[Attach], &[]);
    check(&[Attach, Read], &["starts"]);
    check(&[Attach, Unreadable], &["invalid_attachment", "failed"]);
    check(&[Attach, TooLate], &["drops", "invalid_attachment", "failed"]);
    // What comes meanwhile does not wait, and may be first.
    check(&[Attach, Submit], &["starts"]);
    check(&[Attach, Submit, Read], &["session_busy", "failed"]);
    check(&[Attach, Submit, Answered, Read], &["starts"]);
    // Without a run a cancel is about the prompts whose files are read; with one, about the run.
    check(&[Attach, Cancel], &["drops", "ok", "stopped"]);
    check(&[Attach, Submit, Cancel], &["ok", "drops", "stopped"]);
    check(&[Attach, Submit, Cancel, Read], &["starts"]);
    check(&[Attach, Submit, CancelFirst], &["drops", "ok", "stopped"]);
    check(&[Attach, Attach, CancelWaiting], &["drops", "drops", "ok", "stopped", "stopped"]);
    check(&[Attach, Cancel, Cancel], &["no_active_request", "ok"]);
    check(&[Attach, Read, CancelFirst], &["ok", "drops", "stopped"]);
    // A client that ends the process waits for no file; the end of input is no such wish.
    check(&[Attach, Shutdown], &["drops", "shutting_down", "failed", "shutdown", "exits"]);
    check(
        &[Attach, Signal],
        &["drops", "shutting_down", "failed", "interrupted", "stopped", "exits"],
    );
    check(&[Attach, InputEnded], &[]);
    check(&[Attach, InputEnded, Read], &["starts"]);
    check(&[Attach, InputEnded, Read, Answered], &["ok", "exits"]);
    check(&[Attach, InputEnded, Unreadable], &["invalid_attachment", "failed", "exits"]);
    check(&[Submit, Shutdown, Attach], &["shutting_down", "failed"]);
}

/// A session, and how it takes a submit that names a file.
fn attach(session: &mut Session, id: &str, named: Option<&str>, prompt: String) -> Vec<Output> {
    let prompt = Prompt::new(prompt).expect("it is not blank");
    let attachments = vec![attachment(Content::File("a".into()))];
    let submit = command::Submit { attachments, ..command::Submit::new(prompt) };
    let (id, command) = (RequestId::new(id).expect("an id"), Command::Submit(submit));
    let named = named.and_then(SessionId::new);
    session.handle(Uptime(0), Input::Request(Request { session: named, id, command }))
}

#[test]
fn a_session_has_the_name_of_its_first_request_before_the_files_of_it_are_read() {
    let mut session = Session::new(Rules::default(), 1);
    let ask = |session: &mut Session, id, named| attach(session, id, named, "what?".to_owned());
    let outputs = ask(&mut session, "a", Some("mine"));
    let [Output::ReadFiles(read, _)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(session.id().as_str(), "mine");
    // Another session's request is refused at once.
    let refused = ask(&mut session, "b", Some("other"));
    let is_read = refused.iter().any(|output| matches!(output, Output::ReadFiles(..)));
    assert!(!is_read && format!("{refused:?}").contains("session_mismatch"), "{refused:?}");
    let data = attachment(Content::Data(b"text".as_slice().into()));
    let outputs = session.handle(Uptime(0), Input::FilesRead(*read, Ok(vec![data])));
    assert!(outputs.iter().any(|output| matches!(output, Output::StartCall(..))), "{outputs:?}");
}

#[test]
fn requests_that_wait_for_their_files_have_a_limit() {
    let mut session = Session::new(Rules::default(), 1);
    let large = || "x".repeat(6 * 1024 * 1024);
    for id in ["a", "b", "c"] {
        let outputs = attach(&mut session, id, None, large());
        assert!(matches!(outputs[..], [Output::ReadFiles(..)]), "{id}");
    }
    let refused = attach(&mut session, "d", None, "small".to_owned());
    assert!(format!("{refused:?}").contains("session_busy"), "{refused:?}");
}
