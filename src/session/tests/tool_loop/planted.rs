//! Faults of tools, approvals and steering, put between the session and its checker: the exhaustive
//! test must see each, and soon.

use super::contract::name;
use super::explore_all;
use super::scene::{Machine, Scene, rules};
use crate::protocol::command::{Cancel, Command};
use crate::protocol::id::TaskId;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{Done, Request, done};
use crate::session::approval::ApprovalMode;
use crate::session::{Input, Output, Rules, Session, TaskEvent, Uptime};

/// Inputs in a sequence that shows the fault.
const DEPTH: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    DropsAResult,
    DropsTheEndOfACall,
    RunsWithoutApproval,
    RunsWhatIsDenied,
    StartsAToolTwice,
    GivesAResultToAnotherCall,
    ListensToStaleTools,
    LeavesAToolRunning,
    LosesASteer,
    DoublesASteer,
    SaysAcceptedTwice,
    IgnoresDeadlines,
    HasNoDeadline,
    StopsTheRunForAnyName,
    WithdrawsInSilence,
    LeavesAnApprovalOpen,
    TakesAnAnswerTwice,
    TakesAnApprovalTwice,
    WaitsForAClientThatIsGone,
}

const ALL: [Fault; 19] = [
    Fault::DropsAResult,
    Fault::DropsTheEndOfACall,
    Fault::RunsWithoutApproval,
    Fault::RunsWhatIsDenied,
    Fault::StartsAToolTwice,
    Fault::GivesAResultToAnotherCall,
    Fault::ListensToStaleTools,
    Fault::LeavesAToolRunning,
    Fault::LosesASteer,
    Fault::DoublesASteer,
    Fault::SaysAcceptedTwice,
    Fault::IgnoresDeadlines,
    Fault::HasNoDeadline,
    Fault::StopsTheRunForAnyName,
    Fault::WithdrawsInSilence,
    Fault::LeavesAnApprovalOpen,
    Fault::TakesAnAnswerTwice,
    Fault::TakesAnApprovalTwice,
    Fault::WaitsForAClientThatIsGone,
];

#[derive(Clone, Debug)]
struct Faulty {
    inner: Session,
    fault: Fault,
    /// Tools that were started.
    tools: Vec<TaskId>,
}

impl Faulty {
    /// What the checker expects is decided by `rules`; what the session does may be another thing.
    fn new(fault: Fault) -> Self {
        let mut rules: Rules = rules();
        if fault == Fault::RunsWithoutApproval || fault == Fault::RunsWhatIsDenied {
            rules.tools.approval.mode = ApprovalMode::Auto;
        }
        if fault == Fault::RunsWhatIsDenied {
            rules.tools.approval.deny.clear();
        }
        Self { inner: Session::new(rules, 1), fault, tools: Vec::new() }
    }
}

impl Machine for Faulty {
    fn handle(&mut self, now: Uptime, input: Input) -> Vec<Output> {
        let Some(bent) = self.change_input(&input) else { return Vec::new() };
        let mut outputs = self.inner.handle(now, bent.clone());
        if self.fault == Fault::DoublesASteer && is_steer(&input) {
            outputs.extend(self.inner.handle(now, bent));
        }
        self.tools.extend(outputs.iter().filter_map(started));
        self.change_outputs(&input, &mut outputs);
        outputs
    }

    fn deadline(&self) -> Option<Uptime> {
        if self.fault == Fault::HasNoDeadline { None } else { self.inner.deadline() }
    }
}

impl Faulty {
    /// What the session is given instead of `input`.
    fn change_input(&self, input: &Input) -> Option<Input> {
        let mut input = input.clone();
        match (self.fault, &mut input) {
            (Fault::LosesASteer, input) if is_steer(input) => return None,
            (Fault::IgnoresDeadlines, Input::DeadlineReached) => return None,
            (Fault::ListensToStaleTools, Input::Task(task, TaskEvent::ToolEnded(_))) => {
                *task = self.tools.last().copied().unwrap_or(*task);
            }
            (Fault::GivesAResultToAnotherCall, Input::Task(task, TaskEvent::ToolEnded(_))) => {
                let other = self.tools.iter().find(|other| *other != task);
                *task = other.copied().unwrap_or(*task);
            }
            (Fault::StopsTheRunForAnyName, Input::Request(request)) => {
                if let Command::Cancel(cancel) = &mut request.command
                    && !cancel.waiting
                {
                    *cancel = Cancel::default();
                }
            }
            (Fault::WaitsForAClientThatIsGone, Input::InputEnded) => {
                // The run is drained, and what waits in it goes on waiting.
                let id = crate::protocol::id::RequestId::new("drain")?;
                return Some(Input::Request(Request {
                    session: None,
                    id,
                    command: Command::Shutdown,
                }));
            }
            _ => {}
        }
        Some(input)
    }

    fn change_outputs(&self, input: &Input, outputs: &mut Vec<Output>) {
        match self.fault {
            Fault::DropsAResult => remove_first(outputs, "ChatToolResultReady"),
            Fault::DropsTheEndOfACall => remove_first(outputs, "ChatToolCallFinished"),
            Fault::LeavesAnApprovalOpen => remove_first(outputs, "ToolApprovalResolved"),
            Fault::SaysAcceptedTwice => {
                if let Some(at) = position(outputs, "SteeringAccepted") {
                    outputs.insert(at, outputs[at].clone());
                }
            }
            Fault::StartsAToolTwice => {
                let again = outputs.iter().find(|output| started(output).is_some()).cloned();
                if let Some(Output::StartTool(task, call)) = again {
                    outputs.push(Output::StartTool(TaskId(task.0 + 1000), call));
                }
            }
            Fault::LeavesAToolRunning => {
                let is_of_tool = |task: &TaskId| self.tools.contains(task);
                outputs.retain(
                    |output| !matches!(output, Output::CancelTask(task) if is_of_tool(task)),
                );
            }
            Fault::WithdrawsInSilence => {
                if let Input::Request(Request { id, command: Command::Cancel(_), .. }) = input {
                    outputs.retain(|output| !is_done_of_another(output, id.as_str()));
                }
            }
            Fault::TakesAnAnswerTwice => {
                if let Input::Request(Request { command: Command::ToolResult(_), .. }) = input {
                    accept(outputs);
                }
            }
            Fault::TakesAnApprovalTwice => {
                if let Input::Request(Request { command: Command::Approve(_), .. }) = input {
                    accept(outputs);
                }
            }
            // These are in what the session is given.
            Fault::RunsWithoutApproval
            | Fault::RunsWhatIsDenied
            | Fault::GivesAResultToAnotherCall
            | Fault::ListensToStaleTools
            | Fault::LosesASteer
            | Fault::DoublesASteer
            | Fault::IgnoresDeadlines
            | Fault::HasNoDeadline
            | Fault::StopsTheRunForAnyName
            | Fault::WaitsForAClientThatIsGone => {}
        }
    }
}

fn started(output: &Output) -> Option<TaskId> {
    let Output::StartTool(task, _) = output else { return None };
    Some(*task)
}

fn is_steer(input: &Input) -> bool {
    let Input::Request(Request { command: Command::Submit(submit), .. }) = input else {
        return false;
    };
    submit.joins.is_some()
}

fn is_done_of_another(output: &Output, id: &str) -> bool {
    let Output::Frame(frame) = output else { return false };
    matches!(frame.frame, Some(Body::Done(_))) && frame.request_id != id
}

/// Answers as if the request had been right.
fn accept(outputs: &mut Vec<Output>) {
    if let [Output::Frame(error), Output::Frame(end)] = outputs.as_mut_slice()
        && matches!(error.frame, Some(Body::Error(_)))
    {
        end.frame = Some(done(Done::Ok));
        drop(outputs.remove(0));
    }
}

fn position(outputs: &[Output], event: &str) -> Option<usize> {
    outputs.iter().position(|output| name(output) == Some(event))
}

fn remove_first(outputs: &mut Vec<Output>, event: &str) {
    if let Some(at) = position(outputs, event) {
        drop(outputs.remove(at));
    }
}

#[test]
fn planted_faults_are_seen() {
    for fault in ALL {
        let faulty = Scene::with(rules(), |_| Faulty::new(fault));
        let broken = explore_all(&faulty, DEPTH, &[]).expect_err(&format!("{fault:?} went unseen"));
        // The same sequence is fine without the fault: it is the fault that was seen.
        let mut sound = Scene::with(rules(), |session| session);
        for symbol in broken.path {
            sound.play(symbol).unwrap_or_else(|why| panic!("{fault:?}: {why:#}"));
        }
    }
}
