//! Lists of tools that the client declares while a provider call is made: they are for the next call.

use super::scene::{client_tools, server, server_tools};
use crate::conversation::choices::Choices;
use crate::conversation::event::ToolCall;
use crate::conversation::log::Restored;
use crate::conversation::projections::Projections;
use crate::protocol::command::{Command, Extension, Prompt, Submit};
use crate::protocol::id::{RequestId, SessionId, TaskId, ToolCallId};
use crate::protocol::proto::frontendtools::{FrontendToolDescriptor, FrontendToolManifestCommand};
use crate::protocol::wire::Request;
use crate::session::approval::{ApprovalMode, ApprovalRules};
use crate::session::{Input, Output, Rules, Session, TaskEvent, ToolRules, Uptime};
use crate::task::report::{CallEnd, EngineEvent};
use crate::task::server::ServerState;
use std::collections::BTreeSet;

fn send(session: &mut Session, id: &str, command: Command) -> Vec<Output> {
    let id = RequestId::new(id).expect("not blank");
    session.handle(Uptime(0), Input::Request(Request { session: None, id, command }))
}

/// The provider calls that begin, with the names of the tools that each is offered.
fn offered(outputs: &[Output]) -> Vec<(TaskId, Vec<String>)> {
    let call = |output: &Output| {
        let Output::StartCall(task, spec) = output else { return None };
        Some((*task, spec.tools.iter().map(|tool| tool.name.clone()).collect()))
    };
    outputs.iter().filter_map(call).collect()
}

/// What follows a call of the tool `name`, in an answer during which the client declares `tools` in place of
/// its `auto`; the server has a tool `read`.
fn called(name: &str, tools: &[&str]) -> Vec<Output> {
    let approval = ApprovalRules { mode: ApprovalMode::Auto, ..ApprovalRules::default() };
    let rules = ToolRules { servers: vec![server()], approval, ..ToolRules::default() };
    let mut session = Session::new(Rules { tools: rules, ..Rules::default() }, 1);
    drop(session.handle(Uptime(0), server_tools(ServerState::Ready, &["read"])));
    drop(send(&mut session, "d1", Command::DeclareTools(client_tools(&["auto"]))));
    let prompt = Prompt::new("go".to_owned()).expect("a prompt");
    let outputs = send(&mut session, "r", Command::Submit(Submit::new(prompt)));
    let [(call, first)] = &offered(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!(*first, ["auto", "read"]);
    let id = || ToolCallId("c".to_owned());
    let events = [
        EngineEvent::ToolCallStarted(ToolCall { id: id(), name: name.to_owned() }),
        EngineEvent::ToolCallRequested { id: id() },
    ];
    for event in events {
        drop(session.handle(Uptime(0), Input::Task(*call, TaskEvent::Engine(event))));
    }
    drop(send(&mut session, "d2", Command::DeclareTools(client_tools(tools))));
    session.handle(Uptime(0), Input::Task(*call, TaskEvent::CallEnded(CallEnd::Finished)))
}

#[test]
fn a_tool_that_was_offered_is_called_although_it_is_no_longer_declared() {
    let outputs = called("auto", &[]);
    assert!(format!("{outputs:?}").contains("FrontendToolCallRequested"), "{outputs:?}");
}

#[test]
fn a_tool_that_is_declared_during_a_call_is_there_for_the_next_one() {
    let outputs = called("late", &["auto", "late"]);
    let shown = format!("{outputs:?}");
    assert!(!shown.contains("FrontendToolCallRequested"), "{shown}");
    assert!(shown.contains("The tools are: auto, read."), "{shown}");
    let [(_, next)] = &offered(&outputs)[..] else { panic!("{shown}") };
    assert_eq!(*next, ["auto", "late", "read"]);
}

#[test]
fn a_tool_of_the_client_does_not_take_the_place_of_a_servers_tool_that_was_offered() {
    let outputs = called("read", &["read"]);
    let started =
        |output: &Output| matches!(output, Output::StartTool(_, call) if call.tool == "read");
    assert!(outputs.iter().any(started), "{outputs:?}");
}

/// An earlier version stored lists with a mode that is not known, in a tool that is not offered.
#[test]
fn a_stored_list_that_cannot_be_used_is_dropped() {
    let tool = |name: &str, mode, available| FrontendToolDescriptor {
        name: name.to_owned(),
        mode,
        available,
        ..FrontendToolDescriptor::default()
    };
    let tools = vec![tool("a", 0, true), tool("b", 99, false)];
    let tools = Some(FrontendToolManifestCommand { tools, revision: 1 });
    let choices = Choices { tools, ..Choices::default() };
    let projections = Projections { choices: choices.into(), ..Projections::default() };
    let session = SessionId::new("s").expect("not blank");
    let (projections, open, loss) = (projections.into(), Vec::new(), None);
    let restored = Restored { session, projections, open, loss };
    let extensions = BTreeSet::from([Extension::ClientTools]);
    let mut session = Session::new(Rules { extensions, ..Rules::default() }, 1);
    let outputs = session.handle(Uptime(0), Input::Restored(Some(restored.into())));
    let shown = format!("{outputs:?}");
    assert!(!shown.contains("FrontendToolManifestUpdated"), "{shown}");
    let prompt = Prompt::new("go".to_owned()).expect("a prompt");
    let outputs = send(&mut session, "r", Command::Submit(Submit::new(prompt)));
    let [(_, tools)] = &offered(&outputs)[..] else { panic!("{outputs:?}") };
    assert!(tools.is_empty(), "{tools:?}");
}
