//! Tool calls of an answer that was cut off.

use super::scene::{server, server_tools};
use crate::conversation::event::{FinishClass, ToolCall};
use crate::protocol::command::{Command, Prompt, Submit};
use crate::protocol::id::{RequestId, TaskId, ToolCallId};
use crate::protocol::wire::Request;
use crate::session::approval::{ApprovalMode, ApprovalRules};
use crate::session::{Input, Output, Rules, Session, TaskEvent, ToolRules, Uptime};
use crate::task::report::{CallEnd, EngineEvent};
use crate::task::server::ServerState;

/// A session whose model is called with a tool that runs without a question, and the task of the call.
fn called() -> (Session, TaskId) {
    let approval = ApprovalRules { mode: ApprovalMode::Auto, ..ApprovalRules::default() };
    let tools = ToolRules { servers: vec![server()], approval, ..ToolRules::default() };
    let mut session = Session::new(Rules { tools, ..Rules::default() }, 1);
    drop(session.handle(Uptime(0), server_tools(ServerState::Ready, &["read"])));
    let prompt = Prompt::new("go".to_owned()).expect("a prompt");
    let command = Command::Submit(Submit::new(prompt));
    let id = RequestId::new("r").expect("not blank");
    let request = Input::Request(Request { session: None, id, command });
    let outputs = session.handle(Uptime(0), request);
    let call = outputs.iter().find_map(|output| {
        let Output::StartCall(task, _) = output else { return None };
        Some(*task)
    });
    (session, call.expect("a call"))
}

/// What follows an answer that calls the tool with `input` and ends so.
fn after_call(input: &str, class: FinishClass) -> Vec<Output> {
    let (mut session, call) = called();
    let id = || ToolCallId("c".to_owned());
    let (stop_reason, provider_data) = ("why".to_owned(), None);
    let events = [
        EngineEvent::ToolCallStarted(ToolCall { id: id(), name: "read".to_owned() }),
        EngineEvent::ToolArguments { id: id(), text: input.to_owned() },
        EngineEvent::ToolCallRequested { id: id() },
        EngineEvent::CallFinished { stop_reason, class, provider_data },
    ];
    let events = events.map(TaskEvent::Engine).into_iter();
    let events = events.chain([TaskEvent::CallEnded(CallEnd::Finished)]);
    events.flat_map(|event| session.handle(Uptime(0), Input::Task(call, event))).collect()
}

fn is_made(outputs: &[Output]) -> bool {
    outputs.iter().any(|output| matches!(output, Output::StartTool(..)))
}

#[test]
fn a_call_whose_arguments_may_be_cut_off_is_not_made() {
    for class in [FinishClass::MaxTokens, FinishClass::ContentFilter] {
        for input in ["", "{}", " {} "] {
            let outputs = after_call(input, class);
            assert!(!is_made(&outputs), "{input:?}: {outputs:?}");
            let shown = format!("{outputs:?}");
            assert!(shown.contains("the answer was cut off before its arguments"), "{shown}");
            // The model reads why, and goes on.
            let asked = outputs.iter().any(|output| matches!(output, Output::StartCall(..)));
            assert!(asked, "{outputs:?}");
        }
    }
}

#[test]
fn other_calls_are_made() {
    assert!(is_made(&after_call(r#"{"a":1}"#, FinishClass::MaxTokens)));
    for input in ["", "{}", r#"{"a":1}"#] {
        assert!(is_made(&after_call(input, FinishClass::ToolCalls)), "{input:?}");
        assert!(is_made(&after_call(input, FinishClass::Other)), "{input:?}");
    }
}
