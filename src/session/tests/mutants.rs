//! Faults in each frame of a conversation: a frame is dropped, doubled or moved, and each of its fields is
//! changed or dropped. The contract sees every fault but those in what it leaves free.

use super::scene::{self, Scene, Symbol};
use super::tool_loop;
use crate::conversation::patch::PatchMode;
use crate::protocol::command::Extension;
use crate::protocol::json;
use crate::protocol::wire::Frame;
use crate::session::{FinalSnapshot, Input, OnBusy, Output, Rules, Session, Uptime};
use anyhow::Result;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Faults of one kind that are tried.
const TRIES_MAX: u32 = 2;

/// What the contract leaves free, by the name of the event: the frame itself, or fields of it. Of a field
/// that is `changed` only the value is free.
const FREE: &[(&str, &[&str])] = &[
    // Nothing tells whether there is one, and its texts are for people.
    ("AnswerRejected", &["drop", "reason"]),
    // A call of which nothing was shown may have made a summary.
    ("AnswerTruncated", &["drop"]),
    ("ChatProviderCallFinished", &["durationMs", "hasToolCalls", "stopReason", "usage"]),
    ("ChatProviderCallMetadataUpdated", &["drop", "stopReason", "usage"]),
    ("ChatReasoningSegmentFinished", &["finishReason"]),
    ("ChatRunFailed", &["error"]),
    ("ChatRunFinished", &["ordinal", "durationMs", "changed error"]),
    ("ChatRunStopped", &["ordinal", "error"]),
    ("ChatTextSegmentFinished", &["finishReason"]),
    ("ChatToolArgumentsPatch", &["drop", "arguments", "mode"]),
    ("ChatToolCallFinished", &["swap", "ordinal"]),
    ("ChatToolExecutionStarted", &["swap"]),
    ("ChatToolResultReady", &["result"]),
    ("ExtractionFinished", &["drop", "objects", "rejected", "truncated"]),
    ("FrontendToolCallRequested", &["drop", "input", "mode"]),
    ("FrontendToolManifestUpdated", &["drop", "ordinal"]),
    ("FrontendToolResultReceived", &["drop", "error"]),
    ("LineRejected", &["drop", "swap", "line", "reason"]),
    ("ModelSwitched", &["drop", "ordinal", "engine", "model"]),
    ("ObjectExtracted", &["drop", "swap", "json", "line", "object"]),
    ("RetryScheduled", &["drop", "attemptsMax", "reason", "waitMs"]),
    ("RetryStarted", &["attemptsMax"]),
    ("SteeringAccepted", &["providerCallId"]),
    ("ToolApprovalRequested", &["server"]),
    ("ToolApprovalResolved", &["decision", "reason"]),
    ("ToolServerChanged", &["drop", "ordinal", "reason", "server", "state", "tools"]),
    ("TurnDropped", &["ordinal"]),
    ("done", &["swap"]),
    ("error", &["detail", "message"]),
    ("snapshot", &["error", "messageId"]),
];

/// What is done to a frame.
#[derive(Clone, Debug)]
enum Fault {
    Drop,
    Double,
    /// It comes after the next frame of the same step.
    Swap,
    /// The value at this place is another one, or gone.
    Set(Vec<String>, Option<Value>),
}

/// A session with a fault in the frame of a number, or with none.
#[derive(Clone, Debug)]
pub(super) struct Faulty {
    inner: Session,
    fault: Option<(usize, Fault)>,
    frames: Vec<Value>,
    /// The fault has changed something.
    is_spoiled: bool,
}

impl Faulty {
    fn spoil(&mut self, mut outputs: Vec<Output>) -> Vec<Output> {
        let mut at = 0;
        while at < outputs.len() {
            let Output::Frame(frame) = &outputs[at] else {
                at += 1;
                continue;
            };
            let value = value(frame);
            let is_it = self.fault.as_ref().is_some_and(|(number, _)| *number == self.frames.len());
            self.frames.push(value.clone());
            at += 1;
            let Some((_, fault)) = self.fault.as_ref().filter(|_| is_it) else { continue };
            let next = (at..outputs.len()).find(|at| matches!(outputs[*at], Output::Frame(_)));
            self.is_spoiled = true;
            match (fault, next) {
                (Fault::Drop, _) => drop(outputs.remove(at - 1)),
                (Fault::Double, _) => outputs.insert(at, outputs[at - 1].clone()),
                (Fault::Swap, Some(next)) => outputs.swap(at - 1, next),
                (Fault::Swap, None) => self.is_spoiled = false,
                (Fault::Set(path, new), _) => {
                    let changed = with(value, path, new.as_ref());
                    self.is_spoiled = changed != *frame;
                    outputs[at - 1] = Output::Frame(changed);
                }
            }
            return outputs;
        }
        outputs
    }
}

impl scene::Machine for Faulty {
    fn handle(&mut self, now: Uptime, input: Input) -> Vec<Output> {
        let outputs = self.inner.handle(now, input);
        self.spoil(outputs)
    }
}

impl tool_loop::scene::Machine for Faulty {
    fn handle(&mut self, now: Uptime, input: Input) -> Vec<Output> {
        let outputs = self.inner.handle(now, input);
        self.spoil(outputs)
    }

    fn deadline(&self) -> Option<Uptime> {
        self.inner.deadline()
    }
}

fn value(frame: &Frame) -> Value {
    let mut line = Vec::new();
    json::write_line(frame, &mut line).expect("a frame");
    serde_json::from_slice(&line).expect("JSON")
}

/// The frame with another value at `path`; the same if no frame can have it.
fn with(mut frame: Value, path: &[String], new: Option<&Value>) -> Frame {
    let sound = frame.clone();
    let (last, parents) = path.split_last().expect("a path");
    let parent = parents.iter().fold(&mut frame, |value, key| match value.is_array() {
        true => &mut value[key.parse::<usize>().expect("a number")],
        false => &mut value[key.as_str()],
    });
    match (parent, new) {
        (Value::Object(members), Some(new)) => drop(members.insert(last.clone(), new.clone())),
        (Value::Object(members), None) => drop(members.shift_remove(last)),
        (Value::Array(all), Some(new)) => {
            all[last.parse::<usize>().expect("a number")] = new.clone();
        }
        (Value::Array(all), None) => drop(all.remove(last.parse().expect("a number"))),
        (other, _) => panic!("no place in {other}"),
    }
    let read = |value: Value| serde_json::from_value::<Frame>(value);
    read(frame).unwrap_or_else(|_| read(sound).expect("a frame"))
}

/// The faults in the fields of a value.
fn faults(value: &Value, path: &mut Vec<String>, all: &mut Vec<Fault>) {
    let mut inner = |key: String, value: &Value| {
        path.push(key);
        if path.len() > 1 {
            all.push(Fault::Set(path.clone(), None));
        }
        faults(value, path, all);
        path.pop();
    };
    let new = match value {
        Value::Object(members) => {
            let fields = members.iter().filter(|(key, _)| *key != "@type");
            return fields.for_each(|(key, value)| inner(key.clone(), value));
        }
        Value::Array(values) => {
            let items = values.iter().enumerate();
            return items.for_each(|(at, value)| inner(at.to_string(), value));
        }
        Value::String(text) => match text.parse::<u64>() {
            Ok(number) => (number + 1).to_string().into(),
            Err(_) => format!("{text}x").into(),
        },
        Value::Number(number) => (number.as_u64().unwrap_or_default() + 1).into(),
        Value::Bool(is_so) => (!is_so).into(),
        Value::Null => return,
    };
    all.push(Fault::Set(path.clone(), Some(new)));
}

/// The event or the frame, and what of it: without the numbers of entities and items.
fn kind(frame: &Value, fault: &Fault) -> (String, String) {
    let member = ["snapshot", "error", "done"].into_iter().find(|it| frame.get(it).is_some());
    let event = frame["uiEvent"]["name"].as_str();
    let what = match fault {
        Fault::Drop => "drop".to_owned(),
        Fault::Double => "double".to_owned(),
        Fault::Swap => "swap".to_owned(),
        Fault::Set(path, new) => {
            let names = path.iter().filter(|name| name.parse::<usize>().is_err());
            let names = names.map(String::as_str).collect::<Vec<_>>().join("/");
            names + if new.is_some() { "" } else { " gone" }
        }
    };
    (event.or(member).expect("a frame").to_owned(), what)
}

fn is_free(frame: &str, what: &str) -> bool {
    let field = what.strip_suffix(" gone");
    let fields = FREE.iter().find(|(name, _)| *name == frame).map_or(&[][..], |(_, free)| free);
    let is_changed = |name: &str| field.is_none() && fields.contains(&&*format!("changed {name}"));
    // `usage/inputTokens` is of `usage`.
    let mut names = field.unwrap_or(what).split('/');
    names.any(|name| fields.contains(&name) || is_changed(name))
}

/// The kinds of faults: how often each was tried, and those that were not seen.
#[derive(Debug, Default)]
struct Kinds {
    tried: BTreeMap<(String, String), u32>,
    unseen: BTreeSet<(String, String)>,
}

impl Kinds {
    /// Plays a conversation with each fault. `play` plays it with one of them or with none, and gives the
    /// session, or why the contract is broken.
    fn check(&mut self, play: &dyn Fn(Option<(usize, Fault)>) -> Result<Faulty>) {
        let sound = play(None).unwrap_or_else(|why| panic!("{why:#}"));
        for (number, frame) in sound.frames.iter().enumerate() {
            let mut all = vec![Fault::Drop, Fault::Double, Fault::Swap];
            faults(frame, &mut Vec::new(), &mut all);
            for fault in all {
                let kind = kind(frame, &fault);
                let tries = self.tried.entry(kind.clone()).or_default();
                if *tries == TRIES_MAX || is_free(&kind.0, &kind.1) {
                    continue;
                }
                *tries += 1;
                if play(Some((number, fault))).is_ok_and(|faulty| faulty.is_spoiled) {
                    self.unseen.insert(kind);
                }
            }
        }
    }

    fn assert(&self, tried_min: usize) {
        assert!(self.unseen.is_empty(), "not seen: {:#?}", self.unseen);
        assert!(self.tried.len() > tried_min, "only {} kinds", self.tried.len());
    }
}

fn faulty(inner: Session, fault: Option<(usize, Fault)>) -> Faulty {
    Faulty { inner, fault, frames: Vec::new(), is_spoiled: false }
}

/// Numbers below a bound, always the same ones.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const REQUESTS: &[Symbol] = &[
    Symbol::Submit,
    Symbol::SubmitChosen,
    Symbol::SubmitSchema,
    Symbol::Switch,
    Symbol::Cancel,
    Symbol::Snapshot,
    Symbol::Changes,
    Symbol::OldPage,
    Symbol::DropLastTurn,
    Symbol::Regenerate,
    Symbol::Replace,
    Symbol::Blank,
    Symbol::Malformed,
];

const ENGINE: &[Symbol] = &[
    Symbol::CallStarted,
    Symbol::Text,
    Symbol::Text,
    Symbol::Reasoning,
    Symbol::ToolStarted,
    Symbol::ToolArguments,
    Symbol::ToolRequested,
    Symbol::Usage,
    Symbol::RetryScheduled,
    Symbol::RetryStarted,
    Symbol::Json,
    Symbol::CallFinished,
    Symbol::CutOff,
    Symbol::Finished,
    Symbol::Failed,
];

/// Inputs of a conversation.
const INPUTS: usize = 20;

#[test]
fn a_fault_in_any_frame_is_seen() {
    let mut dice = Dice(7);
    let mut kinds = Kinds::default();
    let last = [FinalSnapshot::Full, FinalSnapshot::Turn, FinalSnapshot::None];
    let modes = [PatchMode::Append, PatchMode::Append, PatchMode::Snapshot];
    let busy = [OnBusy::Queue, OnBusy::Reject];
    for round in 0..24 {
        let rules = Rules {
            repairs: 1,
            extensions: [Extension::Usage, Extension::Retries].into(),
            ..scene::rules(busy[round % 2], modes[round / 3 % 3], last[round % 3])
        };
        let mut symbols = Vec::new();
        let mut plan = Scene::new(rules.clone());
        for _ in 0..INPUTS {
            let is_of_engine = plan.has_live_run() && dice.below(5) > 0;
            symbols.push(dice.of(if is_of_engine { ENGINE } else { REQUESTS }));
            plan.play(symbols[symbols.len() - 1]).expect("the contract");
        }
        kinds.check(&|fault| {
            let mut scene = Scene::with(rules.clone(), |session| faulty(session, fault));
            symbols.iter().try_for_each(|symbol| scene.play(*symbol))?;
            scene.settle().map(|()| scene.machine)
        });
    }
    kinds.assert(400);
}

#[test]
fn a_fault_in_any_frame_around_tools_is_seen() {
    use tool_loop::scene::{Scene, Symbol, rules};
    let mut dice = Dice(7);
    let mut kinds = Kinds::default();
    let seldom = [Symbol::Shutdown, Symbol::EndOfInput, Symbol::Signal, Symbol::ReaderGone];
    for _ in 0..16 {
        let mut symbols = vec![Symbol::Declare, Symbol::ServerReady, Symbol::Submit];
        let mut plan = Scene::with(rules(), |session| session);
        symbols.iter().for_each(|symbol| plan.play(*symbol).expect("the contract"));
        while symbols.len() < INPUTS {
            let next = dice.of(&tool_loop::symbols(&plan, tool_loop::CHOICES));
            if !seldom.contains(&next) {
                plan.play(next).expect("the contract");
                symbols.push(next);
            }
        }
        kinds.check(&|fault| {
            let mut scene = Scene::with(rules(), |session| faulty(session, fault));
            symbols.iter().try_for_each(|symbol| scene.play(*symbol))?;
            scene.settle().map(|()| scene.into_machine())
        });
    }
    kinds.assert(400);
}
