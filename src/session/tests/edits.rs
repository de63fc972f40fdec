//! Turns that are dropped, asked again and replaced, and parts of the conversation: every short
//! sequence, and planted faults.

use super::scene::{Machine, Scene, Symbol, rules};
use super::sequences::{explore, kept};
use crate::conversation::event::{Event, ImportedTurn, Recorded, Scope};
use crate::conversation::patch::PatchMode;
use crate::conversation::transcript::Transcript;
use crate::protocol::any::Any;
use crate::protocol::command::{Command, Page};
use crate::protocol::id::Ordinal;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Request;
use crate::session::{FinalSnapshot, Input, OnBusy, Output, Rules, Session, Uptime};

/// What changes the end of a conversation, and what shows it.
const REQUESTS: &[Symbol] = &[
    Symbol::Submit,
    Symbol::DropLastTurn,
    Symbol::Regenerate,
    Symbol::Replace,
    Symbol::ReplaceGhost,
    Symbol::Snapshot,
    Symbol::Changes,
    Symbol::OldPage,
    Symbol::Cancel,
    Symbol::InputEnded,
];

/// What the engine of a live run can do.
const ENGINE: &[Symbol] = &[Symbol::Text, Symbol::ToolStarted, Symbol::Finished, Symbol::Failed];

/// Inputs in a sequence from the very start.
const DEPTH: usize = 5;

/// Inputs in a sequence that begins after two turns.
const LATE_DEPTH: usize = 4;

/// Two turns, one with text and a tool call that was never made, one that failed without an answer.
const TURNS: &[Symbol] = &[
    Symbol::Submit,
    Symbol::Text,
    Symbol::ToolStarted,
    Symbol::Finished,
    Symbol::Submit,
    Symbol::Failed,
];

fn editing(on_busy: OnBusy) -> Rules {
    rules(on_busy, PatchMode::Append, FinalSnapshot::Full)
}

fn symbols<M: Machine>(scene: &Scene<M>) -> Vec<Symbol> {
    let engine = if scene.has_live_run() { ENGINE } else { &[] };
    [REQUESTS, engine].concat()
}

/// A scene with two turns.
fn after_turns<M: Machine>(mut scene: Scene<M>) -> Scene<M> {
    for symbol in TURNS {
        scene.play(*symbol).expect("the contract");
    }
    scene
}

#[test]
fn every_sequence_of_edits_keeps_the_contract() {
    let sequences = kept(explore(&Scene::new(editing(OnBusy::Reject)), &symbols, DEPTH));
    assert!(sequences > 10_000, "only {sequences}");
}

#[test]
fn every_sequence_of_edits_after_turns_keeps_the_contract() {
    for on_busy in [OnBusy::Reject, OnBusy::Queue] {
        kept(explore(&after_turns(Scene::new(editing(on_busy))), &symbols, LATE_DEPTH));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    HidesTheDrop,
    NamesAnotherPrompt,
    ForgetsAMessage,
    ForgetsTheTombstones,
    ShowsTombstonesToAll,
    IgnoresTheLimit,
    IgnoresTheStart,
    SendsWhatWasDropped,
    DropsTheDone,
}

const ALL: [Fault; 9] = [
    Fault::HidesTheDrop,
    Fault::NamesAnotherPrompt,
    Fault::ForgetsAMessage,
    Fault::ForgetsTheTombstones,
    Fault::ShowsTombstonesToAll,
    Fault::IgnoresTheLimit,
    Fault::IgnoresTheStart,
    Fault::SendsWhatWasDropped,
    Fault::DropsTheDone,
];

#[derive(Clone, Debug)]
struct Faulty {
    inner: Session,
    fault: Fault,
    /// What the model was sent last.
    sent: Option<Transcript>,
}

impl Machine for Faulty {
    fn handle(&mut self, now: Uptime, mut input: Input) -> Vec<Output> {
        self.spoil_input(&mut input);
        let mut outputs = self.inner.handle(now, input);
        match self.fault {
            Fault::HidesTheDrop => {
                outputs.retain(|output| event(output).is_none_or(|name| name != "TurnDropped"));
            }
            Fault::DropsTheDone => {
                if outputs.iter().filter_map(event).any(|name| name == "TurnDropped")
                    && outputs.len() == 2
                {
                    outputs.pop();
                }
            }
            Fault::SendsWhatWasDropped => self.resend(&mut outputs),
            Fault::NamesAnotherPrompt
            | Fault::ForgetsAMessage
            | Fault::ForgetsTheTombstones
            | Fault::ShowsTombstonesToAll => {
                outputs.iter_mut().for_each(|output| self.change_outputs(output))
            }
            // These are in what is asked for.
            Fault::IgnoresTheLimit | Fault::IgnoresTheStart => {}
        }
        outputs
    }
}

impl Faulty {
    fn spoil_input(&self, input: &mut Input) {
        if let Input::Request(Request { command: Command::Snapshot(page), .. }) = input {
            match self.fault {
                Fault::IgnoresTheLimit => page.limit = None,
                Fault::IgnoresTheStart => page.since = None,
                Fault::ShowsTombstonesToAll if *page == Page::default() => {
                    page.since = Some(crate::protocol::id::Ordinal(0));
                }
                Fault::HidesTheDrop
                | Fault::NamesAnotherPrompt
                | Fault::ForgetsAMessage
                | Fault::ForgetsTheTombstones
                | Fault::ShowsTombstonesToAll
                | Fault::SendsWhatWasDropped
                | Fault::DropsTheDone => {}
            }
        }
    }

    fn change_outputs(&self, output: &mut Output) {
        let Output::Frame(frame) = output else { return };
        if let Some(Body::Snapshot(snapshot)) = &mut frame.frame
            && self.fault == Fault::ForgetsTheTombstones
        {
            snapshot.entities.retain(|entity| !entity.tombstone);
        }
        let Some(Body::UiEvent(event)) = &mut frame.frame else { return };
        if let Some(Any::TurnDropped(dropped)) = &mut event.payload {
            if self.fault == Fault::NamesAnotherPrompt {
                dropped.prompt_message_id = dropped.message_ids.last().cloned().unwrap_or_default();
            } else if self.fault == Fault::ForgetsAMessage {
                dropped.message_ids.pop();
            }
        }
    }

    /// Sends the turns of the call before, too.
    fn resend(&mut self, outputs: &mut [Output]) {
        for output in outputs {
            if let Output::StartCall(_, spec) = output {
                let turns =
                    self.sent.iter().flat_map(|sent| sent.turns()).chain(spec.transcript.turns());
                let mut twice = Transcript::default();
                for turn in turns {
                    let imported = ImportedTurn { entities: Vec::new(), turn: Some(turn.clone()) };
                    let event = Event::TurnImported(Box::new(imported));
                    twice.apply(&Recorded { ordinal: Ordinal(1), scope: Scope::OUTSIDE, event });
                }
                self.sent = Some(std::mem::replace(&mut spec.transcript, twice));
            }
        }
    }
}

fn event(output: &Output) -> Option<&str> {
    let Output::Frame(frame) = output else { return None };
    let Some(Body::UiEvent(event)) = &frame.frame else { return None };
    Some(&event.name)
}

#[test]
fn planted_faults_are_seen() {
    for fault in ALL {
        let wrap = |inner| Faulty { inner, fault, sent: None };
        let faulty = after_turns(Scene::with(editing(OnBusy::Reject), wrap));
        let mut sound = after_turns(Scene::new(editing(OnBusy::Reject)));
        let Err(broken) = explore(&faulty, &symbols, LATE_DEPTH) else {
            panic!("{fault:?} went unseen");
        };
        // The same sequence is fine without the fault: it is the fault that was seen.
        for symbol in broken.path {
            sound.play(symbol).unwrap_or_else(|why| panic!("{fault:?}: {why:#}"));
        }
    }
}
