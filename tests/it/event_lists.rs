//! `--events`, and `events` of an `enable`: only the events that a client wants are written.

use crate::client_tools::{asked, result, scripted};
use crate::compaction::{TOO_LONG, long, says};
use crate::frames::{Frame, submit};
use crate::mcp_servers::{assert_gone, config, mark};
use crate::once::run;
use crate::provider::Provider;
use crate::server::{Folder, echo, openai};
use crate::tools;
use serde_json::{Value, json};
use std::fs;

const PROMPT: &str = "a few words";

fn frames(stream: &[u8]) -> Vec<Frame> {
    tools::text(stream).lines().map(|line| Frame::parse(line.as_bytes())).collect()
}

/// Names and ordinals of the events of `request`.
fn events<'a>(frames: &'a [Frame], request: &str) -> Vec<(&'a str, u64)> {
    let of = frames.iter().filter(|frame| frame.id() == request);
    of.filter_map(|frame| Some((frame.event()?, frame.ordinal()?))).collect()
}

#[test]
fn only_the_named_events_are_written_and_their_ordinals_are_those_of_all() {
    let requests = [submit("r", PROMPT), r#"{"requestId":"w","submit":{"prompt":" "}}"#.to_owned()];
    let all = frames(&tools::stream(&[], &requests));
    let list = "ChatTextPatch,ChatRun*,!ChatRunStarted";
    for patches in ["full", "lean"] {
        let stream = tools::stream(&["--events", list, "--patch-fields", patches], &requests);
        let some = frames(&stream);
        let hello = some[0].0["hello"]["capabilities"].as_array().expect("a list");
        assert!(hello.contains(&format!("events={list}").into()), "{hello:?}");
        let mut expected = events(&all, "r");
        expected.retain(|(name, _)| ["ChatTextPatch", "ChatRunFinished"].contains(name));
        assert!(expected.len() > 5);
        assert_eq!(events(&some, "r"), expected);
        // All other frames are there.
        let others = |frames: &[Frame]| {
            let of = frames.iter().filter(|frame| frame.event().is_none());
            of.map(|frame| (frame.id().to_owned(), frame.is_snapshot())).collect::<Vec<_>>()
        };
        assert_eq!(others(&some), others(&all));
        let checked = tools::run(&["check"], &stream);
        assert!(checked.status.success(), "{}", tools::text(&checked.stdout));
        let report = tools::text(&checked.stdout);
        assert!(report.contains("only some events were written"), "{report}");
    }
}

#[test]
fn check_finds_what_is_wrong_in_a_stream_with_some_events() {
    let stream = tools::stream(&["--events", "ChatRun*"], &[submit("r", PROMPT)]);
    let text = tools::text(&stream);
    let swapped = text.replace(r#""ordinal":"2""#, r#""ordinal":"900""#);
    let nameless = text.replace(r#""name":"ChatRunStarted""#, r#""name":"ChatRunStopped""#);
    let unfinished: String =
        text.lines().filter(|it| !it.contains("done")).collect::<Vec<_>>().join("\n") + "\n";
    for wrong in [swapped, nameless, unfinished] {
        assert_ne!(wrong, text);
        assert_eq!(tools::run(&["check"], wrong.as_bytes()).status.code(), Some(1), "{wrong}");
    }
}

#[test]
fn a_client_chooses_events_and_later_others() {
    let enable =
        |id: &str, events: &str| format!(r#"{{"requestId":"{id}","enable":{{{events}}}}}"#);
    let requests = [
        enable("e1", r#""events":["!*Patch","!*Segment*"]"#),
        submit("r1", PROMPT),
        // What names no events leaves them as they are.
        enable("e2", r#""extensions":["usage"]"#),
        enable("wrong", r#""extensions":["timing"],"events":["ChatTextPach"]"#),
        submit("r2", PROMPT),
        enable("e3", r#""events":["*"]"#),
        submit("r3", PROMPT),
    ];
    let mut server = echo(&[]).start();
    for request in &requests {
        server.send(request);
        let id = Frame::parse(request.as_bytes()).id().to_owned();
        let expected = if id == "wrong" { "failed" } else { "ok" };
        assert_eq!(server.wait_done(&id), expected, "{request}");
    }
    let lines = server.lines().join("\n");
    let frames = frames(lines.as_bytes());
    let names =
        |id: &str| events(&frames, id).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let run = [
        "ChatUserMessageAccepted",
        "ChatRunStarted",
        "ChatProviderCallStarted",
        "ChatProviderCallFinished",
        "ChatRunFinished",
    ];
    assert_eq!(names("r1"), run);
    let mut with_usage = run.to_vec();
    with_usage.insert(4, "UsageTotals");
    assert_eq!(names("r2"), with_usage, "nothing of a wrong request is turned on");
    assert!(names("r3").contains(&"ChatTextPatch"));
    let wrong = frames.iter().find(|frame| frame.id() == "wrong").expect("an error");
    assert_eq!(wrong.error(), Some("invalid_request_json"));
    assert!(wrong.text("/error/detail").contains("ChatTextPach"), "{wrong:?}");
}

#[test]
fn a_wrong_list_is_refused_and_other_outputs_have_all_they_need() {
    let folder = Folder::new();
    let wrong =
        run(&folder, &["exec", "--engine", "echo", "--rpc", "--events", "ChatTextPach", "hi"]);
    assert_eq!(wrong.status, 2);
    assert!(wrong.stderr.contains("no event has a name like \"ChatTextPach\""), "{}", wrong.stderr);
    let text = run(&folder, &["exec", "--engine", "echo", "--events", "ChatRun*", "hi"]);
    assert_eq!(text.stdout, "Turn 1. You said: hi\n");
    let rpc = run(&folder, &["exec", "--engine", "echo", "--rpc", "--events", "*Patch", "hi"]);
    let names = rpc.stdout.lines().filter_map(|line| {
        let frame: Value = serde_json::from_str(line).expect("JSON");
        Some(frame["uiEvent"]["name"].as_str()?.to_owned())
    });
    assert!(names.into_iter().all(|name| name == "ChatTextPatch"));
}

const FEW: [&str; 2] = ["--events", "ChatTextPatch,ChatRun*"];

/// A run would wait for the client, and the client for the run.
#[test]
fn a_list_leaves_out_no_question_about_a_tool() {
    let (mark, folder) = (mark(), Folder::new());
    fs::write(folder.path("servers"), config(&mark, &["none"], &json!({}))).expect("a file");
    let call = json!({ "tools": [{ "name": "act", "arguments": { "text": "nothing" } }] });
    fs::write(folder.path("script"), format!("{call}\n{{\"text\":\"done\"}}\n")).expect("a file");
    let (servers, script) = (folder.name("servers"), folder.name("script"));
    let own = ["--mcp-config", &servers, "--echo-script", &script];
    let asks = ["--approval", "ask", "--extensions", "approvals"];
    let mut server = echo(&[&own[..], &asks, &FEW].concat()).start();
    server.send(submit("run", "go"));
    server.wait_event("ToolApprovalRequested");
    server.send(r#"{"requestId":"d","approve":{"toolCallId":"call_1","decision":"DENY"}}"#);
    assert_eq!(server.wait_done("run"), "ok");
    server.finish();
    assert_gone(&mark);
}

#[test]
fn a_list_leaves_out_no_call_of_a_tool_of_the_client() {
    let (_folder, mut server) = scripted(&FEW);
    asked(&mut server);
    for call in ["call_1", "call_2"] {
        server.send(result(call, call, json!({ "time": "noon" })));
    }
    assert_eq!(server.wait_done("run"), "ok");
    server.finish();
}

#[test]
fn a_list_leaves_out_no_proposal_of_a_compaction() {
    let provider = Provider::start(vec![says("one"), says("two")]);
    let asks = ["--compact", "ask", "--extensions", "compaction"];
    let mut server = openai(&provider, &[&asks[..], &TOO_LONG, &FEW].concat()).start();
    assert_eq!(server.turn("r1", &long("first prompt")), "ok");
    server.send(submit("r2", &long("second prompt")));
    server.wait_event("CompactionProposed");
    server.send(r#"{"requestId":"no","compact":{"decline":true}}"#);
    assert_eq!(server.wait_done("r2"), "ok");
    server.finish();
}
