//! Progress of a server's tool: each report gives the call its time anew, up to a limit, and is told to those
//! who ask.

use super::scene::{server, server_tools};
use crate::conversation::event::{CallProgress, ToolCall};
use crate::protocol::any::{Any, Kind, Value};
use crate::protocol::command::{Command, Extension, Prompt, Submit};
use crate::protocol::id::{RequestId, TaskId, ToolCallId};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::tools::ToolCallProgressed;
use crate::protocol::wire::Request;
use crate::session::approval::{ApprovalMode, ApprovalRules};
use crate::session::{Input, Output, Rules, Session, TaskEvent, ToolRules, Uptime};
use crate::task::report::{CallEnd, EngineEvent};
use crate::task::server::ServerState;

const CALL_MS: u64 = 1_000;

/// A session in which a server runs a tool since `at`.
struct Scene {
    session: Session,
    tool: TaskId,
}

impl Scene {
    fn start(extensions: &[Extension], at: Uptime) -> Self {
        let approval = ApprovalRules { mode: ApprovalMode::Auto, ..ApprovalRules::default() };
        let tools = ToolRules {
            servers: vec![server()],
            approval,
            call_ms: CALL_MS,
            ..ToolRules::default()
        };
        let extensions = extensions.iter().copied().collect();
        let mut session = Session::new(Rules { tools, extensions, ..Rules::default() }, 1);
        drop(session.handle(at, server_tools(ServerState::Ready, &["read"])));
        let prompt = Prompt::new("go".to_owned()).expect("a prompt");
        let command = Command::Submit(Submit::new(prompt));
        let id = RequestId::new("r").expect("not blank");
        let outputs = session.handle(at, Input::Request(Request { session: None, id, command }));
        let call = task(&outputs, |output| {
            let Output::StartCall(task, _) = output else { return None };
            Some(*task)
        });
        let id = || ToolCallId("c".to_owned());
        let tool = ToolCall { id: id(), name: "read".to_owned() };
        for event in
            [EngineEvent::ToolCallStarted(tool), EngineEvent::ToolCallRequested { id: id() }]
        {
            drop(session.handle(at, Input::Task(call, TaskEvent::Engine(event))));
        }
        let ended = TaskEvent::CallEnded(CallEnd::Finished);
        let outputs = session.handle(at, Input::Task(call, ended));
        let tool = task(&outputs, |output| {
            let Output::StartTool(task, _) = output else { return None };
            Some(*task)
        });
        Self { session, tool }
    }

    /// The server reports; returns what clients are shown.
    fn progress(&mut self, at: u64, progress: f64) -> Vec<ToolCallProgressed> {
        let progress = CallProgress { progress, total: Some(10.0), message: "at it".to_owned() };
        let event = TaskEvent::ToolProgressed(progress);
        let outputs = self.session.handle(Uptime(at), Input::Task(self.tool, event));
        let shown = outputs.into_iter().filter_map(|output| {
            let Output::Frame(frame) = output else { return None };
            let Some(Body::UiEvent(event)) = frame.frame else { return None };
            let Some(Any::ToolCallProgressed(shown)) = event.payload else { return None };
            Some(*shown)
        });
        shown.collect()
    }

    fn deadline(&self) -> u64 {
        self.session.deadline().expect("a deadline").0
    }
}

fn task(outputs: &[Output], of: impl Fn(&Output) -> Option<TaskId>) -> TaskId {
    outputs.iter().find_map(of).expect("a task")
}

#[test]
fn a_report_gives_the_call_its_time_anew_up_to_six_times() {
    let mut scene = Scene::start(&[], Uptime(500));
    assert_eq!(scene.deadline(), 500 + CALL_MS);
    for at in (1_000..6_500).step_by(500) {
        assert_eq!(scene.progress(at, 1.0), [], "nobody has asked for it");
        assert_eq!(scene.deadline(), (at + CALL_MS).min(500 + 6 * CALL_MS));
    }
    let at = Uptime(scene.deadline());
    let outputs = scene.session.handle(at, Input::DeadlineReached);
    let is_cancelled = |it: &Output| matches!(it, Output::CancelTask(task) if *task == scene.tool);
    assert!(outputs.iter().any(is_cancelled), "{outputs:?}");
    assert_eq!(scene.progress(7_000, 2.0), [], "the call has ended");
}

#[test]
fn a_silent_call_has_its_time_once() {
    let mut scene = Scene::start(&[Extension::ToolProgress], Uptime(0));
    let outputs = scene.session.handle(Uptime(CALL_MS), Input::DeadlineReached);
    assert!(outputs.iter().any(|it| matches!(it, Output::CancelTask(_))), "{outputs:?}");
}

#[test]
fn who_asks_for_it_is_told_of_it() {
    let mut scene = Scene::start(&[Extension::ToolProgress], Uptime(0));
    let shown = scene.progress(10, 2.5);
    let [shown] = &shown[..] else { panic!("{shown:?}") };
    let number = |number| Some(Value { kind: Some(Kind::Number(number)) });
    assert_eq!((&shown.progress, &shown.total), (&number(2.5), &number(10.0)));
    assert_eq!((shown.tool_name.as_str(), shown.message.as_str()), ("read", "at it"));
}
