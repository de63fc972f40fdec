//! Faults of a kind that other implementations had, put between the session and its checker: the
//! exhaustive test must see each, and soon.

use super::exhaustive::everything;
use super::scene::{Machine, Scene, rules};
use super::sequences::explore;
use crate::conversation::patch::PatchMode;
use crate::protocol::any::Any;
use crate::protocol::command::{Cancel, Command, Page};
use crate::protocol::id::TaskId;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use crate::session::{FinalSnapshot, Input, OnBusy, Output, Rules, Session, TaskEvent, Uptime};

/// Inputs in a sequence that shows the fault.
const DEPTH: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestFault {
    DropsTheDoneOfACancel,
    SaysDoneBeforeTheLastFrame,
    SaysDoneTwice,
    SwallowsCancelTask,
    SwapsRequestIds,
    StampsAnotherSession,
    BeginsOrdinalsAgain,
    SpeaksAfterDone,
    LeavesASegmentOpen,
    LeavesTheRunOpen,
    StartsTwoRuns,
    StaysAfterShutdown,
    LosesAQueuedSubmit,
    ListensToStaleEngines,
    AnswersAfterExit,
    DropsAPatch,
    ForgetsTheNamelessLine,
    SkipsTheFinalSnapshot,
    ExitsWithTheWrongStatus,
    HoldsAnswersBackInARun,
}

#[derive(Clone, Debug)]
struct Faulty {
    inner: Session,
    fault: RequestFault,
    runs: u32,
    /// The newest provider call.
    call: Option<TaskId>,
    /// Frames that the fault keeps for later.
    held: Vec<Output>,
    has_exited: bool,
}

impl Faulty {
    fn new(inner: Session, fault: RequestFault) -> Self {
        Self { inner, fault, runs: 0, call: None, held: Vec::new(), has_exited: false }
    }
}

impl Machine for Faulty {
    fn handle(&mut self, now: Uptime, input: Input) -> Vec<Output> {
        let is_submit = is_submit(&input);
        let is_live = self.is_live();
        if self.fault == RequestFault::LosesAQueuedSubmit && is_submit && is_live {
            return Vec::new();
        }
        let input = self.change_input(input);
        let mut outputs = self.inner.handle(now, input.clone());
        self.runs += count(&outputs, |output| matches!(output, Output::StartCall(..)));
        self.call = outputs.iter().rev().find_map(started).or(self.call);
        self.change_outputs(&input, &mut outputs);
        self.has_exited |= outputs.iter().any(|output| matches!(output, Output::Exit(_)));
        outputs
    }
}

impl Faulty {
    fn is_live(&mut self) -> bool {
        self.inner.live(Uptime(0)).is_some()
    }

    fn change_input(&self, input: Input) -> Input {
        match (self.fault, input, self.call) {
            (
                RequestFault::ListensToStaleEngines,
                Input::Task(_, TaskEvent::CallEnded(end)),
                Some(call),
            ) => Input::Task(call, TaskEvent::CallEnded(end)),
            (_, input, _) => input,
        }
    }

    fn change_outputs(&mut self, input: &Input, outputs: &mut Vec<Output>) {
        match self.fault {
            RequestFault::DropsTheDoneOfACancel => {
                if is(input, &Command::Cancel(Cancel::default())) {
                    remove_first(outputs, is_done);
                }
            }
            RequestFault::SaysDoneBeforeTheLastFrame => put_before_last(outputs, is_done),
            RequestFault::SaysDoneTwice => double(outputs, is_done),
            RequestFault::SwallowsCancelTask => {
                outputs.retain(|output| !matches!(output, Output::CancelTask(_)));
            }
            RequestFault::SwapsRequestIds => {
                // As a writer does that keeps the id of the line read last.
                if let Input::Task(_, TaskEvent::Engine(_)) = input {
                    each_frame(outputs, |frame| "other".clone_into(&mut frame.request_id));
                }
            }
            RequestFault::StampsAnotherSession => {
                each_frame(outputs, |frame| "session-x".clone_into(&mut frame.session_id));
            }
            RequestFault::BeginsOrdinalsAgain => {
                if self.runs > 1 {
                    each_event(outputs, |ordinal| *ordinal %= 4);
                }
            }
            RequestFault::SpeaksAfterDone => self.speak_after_done(input, outputs),
            RequestFault::LeavesASegmentOpen => outputs.retain(|output| {
                payload(output).is_none_or(|payload| payload.name() != "ChatTextSegmentFinished")
            }),
            RequestFault::LeavesTheRunOpen => {
                outputs.retain(|output| !matches!(payload(output), Some(Any::ChatRunStopped(_))))
            }
            RequestFault::StartsTwoRuns => start_twice(outputs),
            RequestFault::StaysAfterShutdown => {
                if is(input, &Command::Shutdown) {
                    outputs.retain(|output| !matches!(output, Output::Exit(_)));
                }
            }
            // These two are in what the session is given.
            RequestFault::LosesAQueuedSubmit | RequestFault::ListensToStaleEngines => {}
            RequestFault::AnswersAfterExit => self.answer_after_exit(input, outputs),
            RequestFault::DropsAPatch => remove_first(outputs, is_patch),
            RequestFault::ForgetsTheNamelessLine => {
                if let Input::BadLine(line) = input
                    && line.id.is_none()
                {
                    outputs.clear();
                }
            }
            RequestFault::SkipsTheFinalSnapshot => {
                if let Input::Task(_, TaskEvent::CallEnded(_)) = input {
                    remove_first(outputs, is_snapshot);
                }
            }
            RequestFault::ExitsWithTheWrongStatus => exit_well(outputs),
            RequestFault::HoldsAnswersBackInARun => self.hold_back(input, outputs),
        }
    }

    fn speak_after_done(&mut self, input: &Input, outputs: &mut Vec<Output>) {
        if let Some(event) = outputs.iter().find(|output| is_event(output)).cloned() {
            self.held.push(event);
        }
        if let Input::Task(_, TaskEvent::CallEnded(_)) = input {
            outputs.append(&mut self.held);
        }
    }

    fn answer_after_exit(&self, input: &Input, outputs: &mut Vec<Output>) {
        if self.has_exited && is(input, &Command::Snapshot(Page::default())) {
            let mut idle = Session::new(Rules::default(), 1);
            outputs.extend(idle.handle(Uptime(0), input.clone()));
        }
    }

    /// As a reader does that waits for the run before it reads on.
    fn hold_back(&mut self, input: &Input, outputs: &mut Vec<Output>) {
        if is(input, &Command::Snapshot(Page::default())) && self.is_live() {
            self.held.append(outputs);
        } else if !self.is_live() {
            outputs.splice(0..0, std::mem::take(&mut self.held));
        }
    }
}

fn start_twice(outputs: &mut Vec<Output>) {
    let mut start = outputs.iter().find(|output| started(output).is_some()).cloned();
    if let Some(Output::StartCall(task, _)) = &mut start {
        task.0 += 1000;
    }
    outputs.extend(start);
}

fn exit_well(outputs: &mut [Output]) {
    for output in outputs {
        if let Output::Exit(code) = output {
            *code = crate::session::ExitCode::Ok;
        }
    }
}

fn started(output: &Output) -> Option<TaskId> {
    let Output::StartCall(task, _) = output else { return None };
    Some(*task)
}

fn is_submit(input: &Input) -> bool {
    matches!(input, Input::Request(request) if matches!(request.command, Command::Submit(_)))
}

fn is(input: &Input, command: &Command) -> bool {
    matches!(input, Input::Request(request) if request.command == *command)
}

fn body(output: &Output) -> Option<&Body> {
    let Output::Frame(frame) = output else { return None };
    frame.frame.as_ref()
}

fn payload(output: &Output) -> Option<&Any> {
    let Some(Body::UiEvent(event)) = body(output) else { return None };
    event.payload.as_ref()
}

fn is_done(output: &Output) -> bool {
    matches!(body(output), Some(Body::Done(_)))
}

fn is_snapshot(output: &Output) -> bool {
    matches!(body(output), Some(Body::Snapshot(_)))
}

fn is_patch(output: &Output) -> bool {
    matches!(payload(output), Some(Any::ChatTextPatch(_)))
}

fn is_event(output: &Output) -> bool {
    matches!(body(output), Some(Body::UiEvent(_)))
}

fn count(outputs: &[Output], is_it: impl Fn(&Output) -> bool) -> u32 {
    outputs.iter().map(|output| u32::from(is_it(output))).sum()
}

fn remove_first(outputs: &mut Vec<Output>, is_it: impl Fn(&Output) -> bool) {
    if let Some(at) = outputs.iter().position(is_it) {
        drop(outputs.remove(at));
    }
}

fn put_before_last(outputs: &mut [Output], is_it: impl Fn(&Output) -> bool) {
    if let Some(at) = outputs.iter().position(is_it)
        && at > 0
    {
        outputs.swap(at - 1, at);
    }
}

fn double(outputs: &mut Vec<Output>, is_it: impl Fn(&Output) -> bool) {
    if let Some(at) = outputs.iter().position(is_it) {
        outputs.insert(at, outputs[at].clone());
    }
}

fn each_frame(outputs: &mut [Output], change: impl Fn(&mut Frame)) {
    for output in outputs {
        if let Output::Frame(frame) = output {
            change(frame);
        }
    }
}

fn each_event(outputs: &mut [Output], change: impl Fn(&mut u64)) {
    each_frame(outputs, |frame| {
        if let Some(Body::UiEvent(event)) = &mut frame.frame {
            change(&mut event.ordinal);
        }
    });
}

fn check(fault: RequestFault) {
    let rules = rules(OnBusy::Queue, PatchMode::Append, FinalSnapshot::Full);
    let sound = Scene::with(rules.clone(), |session| session);
    let faulty = Scene::with(rules, |session| Faulty::new(session, fault));
    let broken = explore(&faulty, &everything, DEPTH);
    let broken = broken.expect_err(&format!("{fault:?} went unseen"));
    // The same sequence is fine without the fault: it is the fault that was seen.
    let mut sound = sound;
    for symbol in broken.path {
        sound.play(symbol).unwrap_or_else(|why| panic!("{fault:?}: {why:#}"));
    }
}

#[test]
fn planted_faults_are_seen() {
    for fault in [
        RequestFault::DropsTheDoneOfACancel,
        RequestFault::SaysDoneBeforeTheLastFrame,
        RequestFault::SaysDoneTwice,
        RequestFault::SwallowsCancelTask,
        RequestFault::SwapsRequestIds,
        RequestFault::StampsAnotherSession,
        RequestFault::BeginsOrdinalsAgain,
        RequestFault::SpeaksAfterDone,
        RequestFault::LeavesASegmentOpen,
        RequestFault::LeavesTheRunOpen,
        RequestFault::StartsTwoRuns,
        RequestFault::StaysAfterShutdown,
        RequestFault::LosesAQueuedSubmit,
        RequestFault::ListensToStaleEngines,
        RequestFault::AnswersAfterExit,
        RequestFault::DropsAPatch,
        RequestFault::ForgetsTheNamelessLine,
        RequestFault::SkipsTheFinalSnapshot,
        RequestFault::ExitsWithTheWrongStatus,
        RequestFault::HoldsAnswersBackInARun,
    ] {
        check(fault);
    }
}
