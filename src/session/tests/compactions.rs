//! What calls cost that summarize a conversation, or answer prompts that have joined.

use super::scene::{server, server_tools};
use crate::conversation::event::{FinishClass, Usage};
use crate::conversation::usage::Cost;
use crate::protocol::command::{Cancel, Command, Compact, ModelChoice, Prompt, Submit};
use crate::protocol::id::{RequestId, TaskId};
use crate::protocol::wire::Request;
use crate::session::compaction::CompactionRules;
use crate::session::prices::{PriceList, Prices};
use crate::session::{Input, Output, Rules, Session, TaskEvent, ToolRules, Uptime};
use crate::task::call::{EngineFacts, EngineRef};
use crate::task::report::{CallEnd, EngineEvent, ErrorClass, RunError};
use crate::task::server::ServerState;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A session whose model costs much, and whose summaries cost little.
fn session(rules: Rules) -> Session {
    let models =
        json!({ "big": { "input": 1000, "output": 1000 }, "small": { "input": 1, "output": 1 } });
    let prices = json!({ "currency": "EUR", "models": models });
    let prices: Prices = serde_json::from_value(prices).expect("prices");
    let compaction = CompactionRules { model: Some("small".to_owned()), ..Default::default() };
    let prices = PriceList::Own(Arc::new(prices));
    let mut session = Session::new(Rules { prices, compaction, ..rules }, 1);
    let (model, provider) = ("big".to_owned(), "host".to_owned());
    let facts = EngineFacts { engine: "openai".into(), model, provider, ..EngineFacts::default() };
    session.know(BTreeMap::from([(EngineRef::Initial, facts)]));
    session
}

fn id(id: &str) -> RequestId {
    RequestId::new(id).expect("an id")
}

fn submit(prompt: &str) -> Submit {
    Submit::new(Prompt::new(prompt.to_owned()).expect("not blank"))
}

fn send(session: &mut Session, request: &str, command: Command) -> Vec<Output> {
    let request = Request { session: None, id: id(request), command };
    session.handle(Uptime(0), Input::Request(request))
}

fn call(outputs: &[Output]) -> Option<TaskId> {
    outputs.iter().find_map(|output| {
        let Output::StartCall(task, _) = output else { return None };
        Some(*task)
    })
}

fn report(session: &mut Session, call: TaskId, event: EngineEvent) {
    drop(session.handle(Uptime(0), Input::Task(call, TaskEvent::Engine(event))));
}

/// A turn with these events of its call.
fn answered(session: &mut Session, request: &str, prompt: &str, events: Vec<EngineEvent>) {
    let outputs = send(session, request, Command::Submit(submit(prompt)));
    let answer = call(&outputs).expect("a call");
    let begun = [EngineEvent::CallStarted, EngineEvent::Text("a".to_owned())];
    let (stop_reason, class, provider_data) = ("stop".to_owned(), FinishClass::Completed, None);
    let finished = EngineEvent::CallFinished { stop_reason, class, provider_data };
    for event in begun.into_iter().chain(events).chain([finished]) {
        report(session, answer, event);
    }
    let ended = TaskEvent::CallEnded(CallEnd::Finished);
    drop(session.handle(Uptime(0), Input::Task(answer, ended)));
}

/// The call that follows one which has failed, if one does.
fn next_call(session: &mut Session, failed: TaskId, class: ErrorClass) -> Option<TaskId> {
    report(session, failed, EngineEvent::CallStarted);
    let error = RunError::of_answer(class, "it failed".to_owned(), String::new());
    let ended = TaskEvent::CallEnded(CallEnd::Failed(error));
    call(&session.handle(Uptime(0), Input::Task(failed, ended)))
}

#[test]
fn a_summary_that_is_cancelled_has_the_price_of_its_model() {
    let mut session = session(Rules::default());
    let counted = || EngineEvent::Usage(Usage { input_tokens: 100, ..Usage::default() });
    answered(&mut session, "r", "hi", vec![counted()]);
    let outputs = send(&mut session, "c", Command::Compact(Compact::default()));
    let summary = call(&outputs).expect("a call");
    for event in [EngineEvent::CallStarted, counted()] {
        report(&mut session, summary, event);
    }
    drop(send(&mut session, "x", Command::Cancel(Cancel::default())));
    let cost = session.recorder.projections.usage.spent("EUR").expect("a cost");
    assert_eq!(cost.to_string(), "0.100100");
}

/// Only calls that are too long are counted: not the failure for which the model that answers is asked.
#[test]
fn a_summary_is_sent_half_as_much_six_times() {
    let mut session = session(Rules::default());
    for turn in 0..128 {
        answered(&mut session, &format!("r{turn}"), &"word ".repeat(800), Vec::new());
    }
    let outputs = send(&mut session, "c", Command::Compact(Compact::default()));
    let summary = call(&outputs).expect("a call");
    let mut next = next_call(&mut session, summary, ErrorClass::Network);
    let mut refusals = 0;
    while let Some(refused) = next {
        next = next_call(&mut session, refused, ErrorClass::ContextOverflow);
        refusals += 1;
    }
    // The last one is not made again.
    assert_eq!(refusals, 1 + 6);
}

/// A compaction is no run that a prompt can join: the prompt waits for a turn of its own.
#[test]
fn a_prompt_that_names_a_compaction_may_have_settings() {
    let mut session = session(Rules::default());
    answered(&mut session, "r", "hi", Vec::new());
    let summary = call(&send(&mut session, "c", Command::Compact(Compact::default())));
    assert!(summary.is_some());
    let choice = ModelChoice { model: "other".to_owned(), ..ModelChoice::default() };
    let next = Submit { joins: Some(id("c")), choice: Some(Box::new(choice)), ..submit("next") };
    let outputs = send(&mut session, "n", Command::Submit(next));
    assert!(outputs.is_empty(), "{outputs:?}");
}

#[test]
fn prompts_that_join_before_the_first_call_count_for_the_budget() {
    let ready = || Some(server_tools(ServerState::Ready, &["read"]));
    for event in [ready(), None] {
        let tools = ToolRules { servers: vec![server()], ..ToolRules::default() };
        let budget = Some(Cost(500_000_000_000));
        let mut session = session(Rules { tools, budget, ..Rules::default() });
        assert_eq!(call(&send(&mut session, "r", Command::Submit(submit("hi")))), None);
        let joins = Some(id("r"));
        let joined = Submit { joins, ..submit(&"x".repeat(3_000)) };
        drop(send(&mut session, "j", Command::Submit(joined)));
        let (now, event) = match event {
            Some(event) => (Uptime(0), event),
            None => (session.deadline().expect("a deadline"), Input::DeadlineReached),
        };
        let outputs = session.handle(now, event);
        assert_eq!(call(&outputs), None, "{outputs:?}");
        assert!(format!("{outputs:?}").contains("budget_exhausted"), "{outputs:?}");
    }
}
