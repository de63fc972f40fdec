//! Models, settings and schemas that requests choose, with retries, repairs, cut-off answers and token
//! counts: every short sequence, and planted faults.

use super::scene::{Machine, Scene, Symbol, rules};
use super::sequences::{explore, kept};
use crate::conversation::patch::PatchMode;
use crate::protocol::any::Any;
use crate::protocol::command::{Command, Extension};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{Done, Request, done};
use crate::session::{FinalSnapshot, Input, OnBusy, Output, Rules, Session, TaskEvent, Uptime};
use crate::task::report::{EngineEvent, ErrorClass, Retry};

/// What requests choose.
const CHOICES: &[Symbol] = &[
    Symbol::Submit,
    Symbol::SubmitChosen,
    Symbol::SubmitSchema,
    Symbol::SubmitWrong,
    Symbol::Switch,
    Symbol::SwitchWrong,
    Symbol::Cancel,
    Symbol::InputEnded,
];

/// What the engine of a live run can do.
const ENGINE: &[Symbol] = &[
    Symbol::CallStarted,
    Symbol::RetryScheduled,
    Symbol::RetryStarted,
    Symbol::Json,
    Symbol::Usage,
    Symbol::CallFinished,
    Symbol::CutOff,
    Symbol::Finished,
    Symbol::Failed,
];

/// Inputs in a sequence from the very start.
const DEPTH: usize = 4;

/// Inputs in a sequence that begins within a run with a schema.
const ENGINE_DEPTH: usize = 4;

/// Inputs in a sequence that shows a fault.
const FAULT_DEPTH: usize = 4;

fn choosing(on_busy: OnBusy, extensions: &[Extension]) -> Rules {
    Rules {
        repairs: 1,
        extensions: extensions.iter().copied().collect(),
        ..rules(on_busy, PatchMode::Append, FinalSnapshot::Turn)
    }
}

fn symbols<M: Machine>(scene: &Scene<M>) -> Vec<Symbol> {
    let engine = if scene.has_live_run() { ENGINE } else { &[] };
    [CHOICES, engine].concat()
}

#[test]
fn every_sequence_of_choices_keeps_the_contract() {
    for (on_busy, extensions) in
        [(OnBusy::Queue, &[Extension::Usage, Extension::Retries][..]), (OnBusy::Reject, &[])]
    {
        let scene = Scene::new(choosing(on_busy, extensions));
        let sequences = kept(explore(&scene, &symbols, DEPTH));
        assert!(sequences > 10_000, "only {sequences}");
    }
}

#[test]
fn every_sequence_of_an_engine_with_a_schema_keeps_the_contract() {
    use Symbol::{CallStarted, Finished, SubmitSchema};
    let engine = |_: &Scene<_>| [ENGINE, &[Symbol::Cancel]].concat();
    for start in [&[SubmitSchema, CallStarted][..], &[SubmitSchema, CallStarted, Finished]] {
        let mut scene =
            Scene::new(choosing(OnBusy::Reject, &[Extension::Usage, Extension::Retries]));
        for symbol in start {
            scene.play(*symbol).expect("the contract");
        }
        kept(explore(&scene, &engine, ENGINE_DEPTH));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    CountsTwice,
    ForgetsTheCallsBefore,
    ShowsARetryWithTheExtensionOff,
    HidesARetry,
    HidesATruncation,
    ShowsATruncationOfAWholeAnswer,
    ForgetsTheErrorOfACutOffRun,
    RejectsPastTheLimit,
    RejectsInVain,
    SwitchesInARun,
    CallsTheOldModel,
    LosesTheSchema,
}

const ALL: [Fault; 12] = [
    Fault::CountsTwice,
    Fault::ForgetsTheCallsBefore,
    Fault::ShowsARetryWithTheExtensionOff,
    Fault::HidesARetry,
    Fault::HidesATruncation,
    Fault::ShowsATruncationOfAWholeAnswer,
    Fault::ForgetsTheErrorOfACutOffRun,
    Fault::RejectsPastTheLimit,
    Fault::RejectsInVain,
    Fault::SwitchesInARun,
    Fault::CallsTheOldModel,
    Fault::LosesTheSchema,
];

#[derive(Clone, Debug)]
struct Faulty {
    inner: Session,
    fault: Fault,
}

/// The rules that the checker has; what the session does may be another thing.
fn sound_rules(fault: Fault) -> Rules {
    let extensions: &[Extension] = match fault {
        Fault::ShowsARetryWithTheExtensionOff => &[],
        Fault::CountsTwice
        | Fault::ForgetsTheCallsBefore
        | Fault::HidesARetry
        | Fault::HidesATruncation
        | Fault::ShowsATruncationOfAWholeAnswer
        | Fault::ForgetsTheErrorOfACutOffRun
        | Fault::RejectsPastTheLimit
        | Fault::RejectsInVain
        | Fault::SwitchesInARun
        | Fault::CallsTheOldModel
        | Fault::LosesTheSchema => &[Extension::Usage, Extension::Retries],
    };
    choosing(OnBusy::Reject, extensions)
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        let mut rules = sound_rules(fault);
        match fault {
            Fault::ShowsARetryWithTheExtensionOff => {
                rules.extensions.insert(Extension::Retries);
            }
            Fault::RejectsPastTheLimit => rules.repairs = 2,
            Fault::CountsTwice
            | Fault::ForgetsTheCallsBefore
            | Fault::HidesARetry
            | Fault::HidesATruncation
            | Fault::ShowsATruncationOfAWholeAnswer
            | Fault::ForgetsTheErrorOfACutOffRun
            | Fault::RejectsInVain
            | Fault::SwitchesInARun
            | Fault::CallsTheOldModel
            | Fault::LosesTheSchema => {}
        }
        Self { inner: Session::new(rules, 1), fault }
    }

    fn change_outputs(&self, input: &Input, outputs: &mut Vec<Output>) {
        match self.fault {
            Fault::HidesARetry => remove(outputs, "RetryStarted"),
            Fault::HidesATruncation => remove(outputs, "AnswerTruncated"),
            Fault::RejectsInVain => {
                if outputs.iter().filter_map(name).any(|name| name == "AnswerRejected") {
                    outputs.retain(|output| !matches!(output, Output::StartCall(..)));
                }
            }
            Fault::SwitchesInARun => {
                if let Input::Request(Request { command: Command::SwitchModel(_), .. }) = input
                    && let [Output::Frame(_), Output::Frame(end)] = outputs.as_mut_slice()
                {
                    end.frame = Some(done(Done::Ok));
                    drop(outputs.remove(0));
                }
            }
            Fault::CallsTheOldModel => each_spec(outputs, |spec| spec.model = None),
            Fault::LosesTheSchema => each_spec(outputs, |spec| spec.schema = None),
            Fault::CountsTwice
            | Fault::ForgetsTheCallsBefore
            | Fault::ShowsATruncationOfAWholeAnswer
            | Fault::ForgetsTheErrorOfACutOffRun => {
                outputs.iter_mut().filter_map(payload).for_each(|payload| self.change(payload));
            }
            // These are in the session's rules.
            Fault::ShowsARetryWithTheExtensionOff | Fault::RejectsPastTheLimit => {}
        }
    }

    fn change(&self, payload: &mut Any) {
        if let Any::UsageTotals(it) = payload {
            let call = it.call.clone().expect("its counts");
            let session = it.session.as_mut().expect("its counts");
            if self.fault == Fault::CountsTwice {
                session.input_tokens += call.input_tokens;
            } else if self.fault == Fault::ForgetsTheCallsBefore {
                *session = call;
            }
        }
        if let Any::ChatProviderCallFinished(it) = payload
            && self.fault == Fault::ShowsATruncationOfAWholeAnswer
            && it.finish_class == "max_tokens"
        {
            it.finish_class = "completed".to_owned();
        }
        if let Any::ChatRunFinished(it) = payload
            && self.fault == Fault::ForgetsTheErrorOfACutOffRun
        {
            it.error.clear();
        }
    }
}

impl Machine for Faulty {
    fn handle(&mut self, now: Uptime, input: Input) -> Vec<Output> {
        let mut outputs = self.inner.handle(now, input.clone());
        self.change_outputs(&input, &mut outputs);
        outputs
    }
}

fn payload(output: &mut Output) -> Option<&mut Any> {
    let Output::Frame(frame) = output else { return None };
    let Some(Body::UiEvent(event)) = &mut frame.frame else { return None };
    event.payload.as_mut()
}

fn name(output: &Output) -> Option<&str> {
    let Output::Frame(frame) = output else { return None };
    let Some(Body::UiEvent(event)) = &frame.frame else { return None };
    Some(&event.name)
}

fn remove(outputs: &mut Vec<Output>, event: &str) {
    outputs.retain(|output| name(output) != Some(event));
}

fn each_spec(outputs: &mut [Output], change: impl Fn(&mut crate::task::call::CallSpec)) {
    for output in outputs {
        if let Output::StartCall(_, spec) = output {
            change(spec);
        }
    }
}

#[test]
fn planted_faults_are_seen() {
    for fault in ALL {
        let faulty = Scene::with(sound_rules(fault), |_| Faulty::new(fault));
        let sound = Scene::new(sound_rules(fault));
        let is_seen = [&[][..], &[Symbol::SubmitSchema]].into_iter().any(|start| {
            let (mut faulty, mut sound) = (faulty.clone(), sound.clone());
            for symbol in start {
                faulty.play(*symbol).expect("the contract");
                sound.play(*symbol).expect("the contract");
            }
            let Err(broken) = explore(&faulty, &symbols, FAULT_DEPTH) else { return false };
            // The same sequence is fine without the fault: it is the fault that was seen.
            for symbol in broken.path {
                sound.play(symbol).unwrap_or_else(|why| panic!("{fault:?}: {why:#}"));
            }
            true
        });
        assert!(is_seen, "{fault:?} went unseen");
    }
}

/// The retry of these tests.
pub(super) fn retry() -> Retry {
    let (class, reason) = (ErrorClass::RateLimited, "too many requests".to_owned());
    Retry { attempt: 2, attempts_max: 3, wait_ms: 500, class, reason }
}

/// A retry that comes before its call has nothing that it could name.
#[test]
fn a_retry_outside_of_a_call_is_not_shown() {
    let mut session = Session::new(choosing(OnBusy::Reject, &[Extension::Retries]), 1);
    let submit = Scene::new(Rules::default()).input(Symbol::Submit);
    let outputs = session.handle(Uptime(0), submit);
    let task = outputs.iter().find_map(|output| {
        let Output::StartCall(task, _) = output else { return None };
        Some(*task)
    });
    let event = TaskEvent::Engine(EngineEvent::RetryScheduled(retry()));
    let outputs = session.handle(Uptime(1), Input::Task(task.expect("a call"), event));
    assert!(outputs.is_empty(), "{outputs:?}");
}
