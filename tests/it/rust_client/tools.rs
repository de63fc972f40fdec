//! Functions that the model calls, decisions about tools of servers, and answers of a type.

use super::{Scratch, calls_of, endless, played, read_to, rest, run, start};
use crate::process::DEADLINE;
use duologue::client::{Answer, Any, Approval, Builder, Error, Event, HasSchema, Tool, ToolCall};
use duologue::protocol::proto::tools::ToolApprovalRequested;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fmt::{self, Display, Formatter};
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

const CLOCK: &str = concat!("python3 ", env!("CARGO_MANIFEST_DIR"), "/examples/clock.py");
const MOMENT: Duration = Duration::from_millis(10);

fn no_parameters() -> Map<String, Value> {
    Map::new()
}

/// Tells of its end.
struct Guard(Arc<Notify>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A tool that returns nothing, and what tells that a call of it has ended.
fn without_end(name: &str) -> (Tool, Arc<Notify>) {
    let ended: Arc<Notify> = Arc::default();
    let of_calls = Arc::clone(&ended);
    let tool = Tool::new(name, "", no_parameters(), move |_| {
        let guard = Guard(Arc::clone(&of_calls));
        async move {
            let _guard = guard;
            pending::<Result<Value, String>>().await
        }
    });
    (tool, ended)
}

async fn wait_for(ended: &Notify) {
    timeout(DEADLINE, ended.notified()).await.expect("the call of the tool ends");
}

#[tokio::test]
async fn tools_are_functions() {
    let (builder, _scratch) = played("tools", &calls_of(&["get_time"]));
    let get_time = Tool::new("get_time", "", no_parameters(), |input: Value| async move {
        Ok::<_, String>(format!("12:00 in {}", input["city"].as_str().unwrap_or_default()))
    });
    let chat = start(builder.tool(get_time)).await;
    let answer = run(&chat, "What time is it?").await;
    let call = &answer.tool_calls[0];
    let result = r#"{"result":"12:00 in Berlin"}"#;
    assert_eq!((call.status.as_str(), call.result.as_str()), ("success", result));
    assert_eq!(answer.texts, ["Let me look.", "It is noon."]);
}

/// An error that has no text.
struct Wordless;

impl Display for Wordless {
    fn fmt(&self, _: &mut Formatter<'_>) -> fmt::Result {
        panic!("a defect")
    }
}

#[tokio::test]
async fn a_tool_that_fails_or_takes_too_long_is_a_result() {
    let (builder, _scratch) = played(
        "failing-tools",
        &calls_of(&["broken", "defect", "slow", "nested", "nobody", "wordless"]),
    );
    let broken =
        Tool::new("broken", "", no_parameters(), |_| async { Err::<Value, _>("no such city") });
    let defect = Tool::new("defect", "", no_parameters(), |input: Value| async move {
        assert!(input.is_null(), "a defect");
        Ok::<_, String>(1)
    });
    let (slow, ended) = without_end("slow");
    let wordless =
        Tool::new("wordless", "", no_parameters(), |_| async { Err::<Value, _>(Wordless) });
    let nested = Tool::new("nested", "", no_parameters(), |_| async {
        Ok::<_, String>((0..200).fold(json!(0), |value, _| json!([value])))
    });
    let tools = [broken, defect, slow.time_max(MOMENT), nested, wordless];
    let chat = start(tools.into_iter().fold(builder, Builder::tool)).await;
    let calls = run(&chat, "What time is it?").await.tool_calls;
    assert!(calls.iter().all(|it| it.status == "error"), "{calls:?}");
    let results: Vec<_> = calls.iter().take(3).map(|it| it.result.as_str()).collect();
    let expected =
        ["no such city", "the tool has a defect and panicked", "the tool took longer than 0.01 s"];
    assert_eq!(results, expected);
    let refused = &calls[3].result;
    assert!(refused.starts_with("the server does not take the result: "), "{refused}");
    assert_eq!(calls[5].result, "the tool has a defect and panicked");
    wait_for(&ended).await;
}

#[tokio::test]
async fn tools_of_an_earlier_program_are_offered_no_more() {
    let scratch = Scratch::new("earlier-tools");
    let tool = Tool::new("delete_file", "", no_parameters(), |_| async { Ok::<_, String>(1) });
    let chat = start(scratch.stored().tool(tool)).await;
    run(&chat, "x").await;
    chat.close().await;
    // The session has it when the first of these begins, which takes it back.
    for expected in [vec![vec!["delete_file".to_owned()], vec![]], vec![vec![]]] {
        let lists: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
        let noted = Arc::clone(&lists);
        let on_notice = move |notice: Result<Event, Error>| {
            if let Some(Any::FrontendToolManifestUpdated(list)) = notice.expect("an event").payload
            {
                let names = list.tools.into_iter().map(|it| it.name).collect();
                noted.lock().expect("a list").push(names);
            }
        };
        let chat = start(scratch.stored().on_notice(on_notice)).await;
        run(&chat, "x").await;
        chat.close().await;
        assert_eq!(*lists.lock().expect("a list"), expected);
    }
}

#[tokio::test]
async fn a_tool_ends_with_its_run() {
    let (builder, _scratch) = played("ending-tool", &calls_of(&["get_time"]));
    let (tool, ended) = without_end("get_time");
    let chat = start(builder.tool(tool)).await;
    let mut stream = chat.stream("x");
    read_to(&mut stream, "FrontendToolCallRequested").await;
    stream.cancel().await.expect("a cancel");
    wait_for(&ended).await;
    assert_eq!(rest(&mut stream).await.1, None);
    assert!(stream.answer().is_some_and(Answer::is_stopped));
}

/// A call of a tool server's tool, with these decisions.
async fn decided(name: &str, decide: impl FnOnce(Builder) -> Builder) -> ToolCall {
    let (builder, _scratch) = played(name, &calls_of(&["get_time"]));
    let chat = start(decide(builder.args(["--mcp", CLOCK]))).await;
    run(&chat, "x").await.tool_calls.remove(0)
}

#[tokio::test]
async fn approvals_are_a_callback() {
    needs!(Python);
    let decide = |asked: ToolApprovalRequested| async move {
        match asked.input.as_str() {
            r#"{"city":"Berlin"}"# => Approval::AllowOnce,
            other => Approval::Deny { reason: other.to_owned() },
        }
    };
    let call = decided("allowed", |it| it.approve(decide)).await;
    assert_eq!(call.status, "success", "{call:?}");
    let deny = |_| async { Approval::Deny { reason: "Not now.".to_owned() } };
    let call = decided("denied", |it| it.approve(deny)).await;
    assert!(call.result.contains("Not now."), "{call:?}");
}

#[tokio::test]
async fn without_a_decision_calls_are_denied() {
    needs!(Python);
    let call = decided("nobody", |it| it).await;
    assert!(call.result.contains("approves no tool calls"), "{call:?}");
    let broken = |asked: ToolApprovalRequested| async move {
        assert!(asked.input.is_empty(), "a secret");
        Approval::AllowOnce
    };
    let call = decided("broken", |it| it.approve(broken)).await;
    assert!(call.result.contains("could not decide"), "{call:?}");
    assert!(!call.result.contains("secret"), "{call:?}");
    let call = decided("slow", |it| it.approve(|_| pending()).approve_time(MOMENT)).await;
    assert!(call.result.contains("nobody decided within 0.01 s"), "{call:?}");
}

#[derive(Debug, Deserialize, PartialEq)]
struct City {
    name: String,
    population: u64,
}

impl HasSchema for City {
    fn schema() -> Map<String, Value> {
        let schema = json!({"type": "object", "required": ["name", "population"], "properties": {
            "name": {"type": "string"}, "population": {"type": "integer"}}});
        schema.as_object().cloned().unwrap_or_default()
    }
}

#[tokio::test]
async fn an_answer_is_a_value_of_a_type() {
    let value = json!({"name": "Berlin", "population": 9_007_199_254_740_993_u64}).to_string();
    let (builder, _scratch) = played("value", &[json!({"text": value})]);
    let city = start(builder).await.ask::<City>("Where?").await.expect("a city").value;
    assert_eq!(city, City { name: "Berlin".to_owned(), population: 9_007_199_254_740_993 });
    let (builder, _scratch) = played("no-value", &[json!({"text": "Oz"})]);
    match start(builder).await.ask::<City>("And now?").await {
        Err(Error::Answer { text, .. }) => assert_eq!(text, "Oz"),
        other => panic!("{other:?}"),
    }
    let chat = start(endless()).await;
    let stopping = async { while !chat.cancel().await.expect("a cancel") {} };
    let (stopped, ()) = tokio::join!(chat.ask::<City>("Where?"), stopping);
    assert!(matches!(stopped, Err(Error::Stopped { .. })), "{stopped:?}");
}

#[tokio::test]
async fn what_a_tool_gives_is_what_its_json_is() {
    let results = [
        (json!({"deep": [1, {"b": null}]}), r#"{"deep":[1,{"b":null}]}"#),
        (json!([1, 2]), r#"{"result":[1,2]}"#),
        (json!("text"), r#"{"result":"text"}"#),
        (json!(2.5), r#"{"result":2.5}"#),
        (Value::Null, r#"{"result":null}"#),
    ];
    for (given, expected) in results {
        let (builder, _scratch) = played("tool-json", &calls_of(&["get"]));
        let get = Tool::new("get", "", no_parameters(), move |_| {
            let given = given.clone();
            async move { Ok::<_, String>(given) }
        });
        let answer = run(&start(builder.tool(get)).await, "x").await;
        assert_eq!(answer.tool_calls[0].result, expected);
    }
}
