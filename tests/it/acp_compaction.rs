//! Long conversations in an editor: what a prompt of `/compact` answers, and what the person is asked.

use crate::acp_client::{Client, bare_command, said, updates};
use crate::provider::{Provider, Step};
use crate::server::Folder;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;

fn with_provider(folder: &Folder, provider: &Provider, args: &[&str]) -> Command {
    let mut command = bare_command(folder, args);
    command.args(["--engine", "openai", "--model", "scripted", "--retries", "0"]);
    command.args(["--base-url", &provider.base_url()]).env("DUOLOGUE_API_KEY", "sk-test");
    command
}

/// An answer that is counted as 122 tokens, with its request.
fn answer(text: &str, finish: &'static str) -> Vec<Step> {
    vec![Step::Text(text.to_owned()), Step::Finish(finish, Some((110, 12))), Step::Done]
}

fn says(text: &str) -> Vec<Step> {
    answer(text, "stop")
}

#[test]
fn a_compaction_after_an_answer_that_was_cut_off_is_whole() {
    let folder = Folder::new();
    let provider = Provider::start(vec![says("one"), answer("half", "length"), says("SUMMARY")]);
    let mut client = Client::start_with(with_provider(&folder, &provider, &[]), json!({}));
    let session = client.session(&folder.path(""));
    assert_eq!(client.turn(&session, "one").0, "end_turn");
    assert_eq!(client.turn(&session, "two").0, "max_tokens");
    assert_eq!(client.turn(&session, "/compact").0, "end_turn");
    client.finish();
}

#[test]
fn a_client_that_shows_no_compactions_is_told_of_them() {
    let told = "the earlier turns were summarized for the model, now about ";
    for capabilities in [json!({}), json!({ "session": { "notices": {} } })] {
        let folder = Folder::new();
        let provider = Provider::start(vec![says("one"), says("SUMMARY")]);
        let has_notices = capabilities != json!({});
        let command = with_provider(&folder, &provider, &[]);
        let mut client = Client::start_with(command, capabilities);
        let session = client.session(&folder.path(""));
        assert_eq!(client.turn(&session, "one").0, "end_turn");
        let from = client.seen.len();
        assert_eq!(client.turn(&session, "/compact").0, "end_turn");
        let seen = &client.seen[from..];
        // Before the answer to the prompt.
        let texts = match has_notices {
            true => {
                let notices = updates(seen, &session, "notice").into_iter();
                notices.map(|it| it["title"].to_string()).collect()
            }
            false => said(seen, &session, "agent_thought_chunk"),
        };
        assert_eq!(texts.matches(told).count(), 1, "{texts}");
        client.finish();
    }
}

/// A client that shows compactions, with a session that has become too long for its model.
fn too_long(folder: &Folder, provider: &Provider, args: &[&str]) -> (Client, String) {
    let ask = ["--compact", "ask", "--context-tokens", "150", "--compact-prompt", "Summarize it."];
    let command = with_provider(folder, provider, &[&ask, args].concat());
    let mut client = Client::start_with(command, json!({ "session": { "compaction": {} } }));
    let session = client.session(&folder.path(""));
    assert_eq!(client.turn(&session, &format!("first prompt{}", " word".repeat(48))).0, "end_turn");
    (client, session)
}

fn sent(provider: &Provider, number: usize) -> String {
    provider.wait_request(number).body["messages"].to_string()
}

/// What became of the tool calls that stand for the questions.
fn statuses(seen: &[Value], session: &str) -> Vec<String> {
    let changes = updates(seen, session, "tool_call_update").into_iter();
    changes.map(|it| it["status"].as_str().expect("a status").to_owned()).collect()
}

#[test]
fn the_person_decides_about_a_compaction() {
    let folder = Folder::new();
    let script = vec![says("one"), says("two"), says("SUMMARY"), says("three")];
    let provider = Provider::start(script);
    let (mut client, session) = too_long(&folder, &provider, &[]);
    let id = client.prompt(&session, "second prompt");
    let question = client.permission();
    let params = &question["params"];
    let shown = updates(&client.seen, &session, "tool_call")[0].clone();
    assert_eq!(params["toolCall"]["toolCallId"], shown["toolCallId"]);
    assert_eq!(params["toolCall"]["title"], "Summarize the earlier turns for the model?");
    let text = params["toolCall"]["content"][0]["content"]["text"].as_str().expect("a text");
    assert!(text.contains(" of 150 tokens)"), "{text}");
    let options = params["options"].as_array().expect("options").iter();
    let options: Vec<_> = options.map(|it| (it["name"].as_str(), it["kind"].as_str())).collect();
    let (yes, no) =
        ((Some("Summarize"), Some("allow_once")), (Some("Not now"), Some("reject_once")));
    assert_eq!(options, [yes, no]);
    client.choose(&question, "reject_once");
    assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
    assert!(sent(&provider, 2).contains("first prompt"));
    assert_eq!(statuses(&client.seen, &session), ["failed"]);
    // What never began is not said to have failed.
    assert_eq!(updates(&client.seen, &session, "compaction_update"), Vec::<&Value>::new());

    let id = client.prompt(&session, "third prompt");
    let question = client.permission();
    client.choose(&question, "allow_once");
    assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
    let sent = sent(&provider, 4);
    assert!(sent.contains("SUMMARY") && !sent.contains("first prompt"), "{sent}");
    let seen = client.finish().seen;
    assert_eq!(statuses(&seen, &session), ["failed", "in_progress", "completed"]);
    let compactions = updates(&seen, &session, "compaction_update").into_iter();
    let compactions: Vec<_> = compactions.map(|it| it["status"].as_str()).collect();
    assert_eq!(compactions, [Some("in_progress"), Some("completed")]);
}

/// What a client was shown of a session keeps its ids when the session is resumed, as nothing is shown again.
#[test]
fn what_a_resumed_session_shows_has_ids_of_its_own() {
    let folder = Folder::new();
    let resume = |client: &mut Client, session: &str| {
        client.call("session/close", json!({ "sessionId": session }));
        let open = json!({ "sessionId": session, "cwd": folder.path(""), "mcpServers": [] });
        client.call("session/resume", open);
    };
    let distinct = |seen: &[Value], session: &str, kind: &str, id: &str| {
        let found = updates(seen, session, kind).into_iter();
        found.map(|it| it[id].as_str().expect("an id").to_owned()).collect::<BTreeSet<_>>().len()
    };
    for (capabilities, kind, id) in [
        (json!({}), "agent_thought_chunk", "messageId"),
        (json!({ "session": { "compaction": {} } }), "compaction_update", "compactionId"),
    ] {
        let script = ["one", "SUMMARY", "two", "SUMMARY"].map(says);
        let provider = Provider::start(script.into());
        let mut client = Client::start_with(with_provider(&folder, &provider, &[]), capabilities);
        let session = client.session(&folder.path(""));
        for text in ["one", "two"] {
            assert_eq!(client.turn(&session, text).0, "end_turn");
            assert_eq!(client.turn(&session, "/compact").0, "end_turn");
            resume(&mut client, &session);
        }
        assert_eq!(distinct(&client.finish().seen, &session, kind, id), 2, "{kind}");
    }

    let provider = Provider::start(["one", "two", "three"].map(says).into());
    let (mut client, session) = too_long(&folder, &provider, &[]);
    for text in ["second prompt", "third prompt"] {
        let id = client.prompt(&session, text);
        let question = client.permission();
        client.choose(&question, "reject_once");
        assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
        resume(&mut client, &session);
    }
    assert_eq!(distinct(&client.finish().seen, &session, "tool_call", "toolCallId"), 2);
}

#[test]
fn a_question_about_a_compaction_ends_with_its_time_or_its_turn() {
    let folder = Folder::new();
    let provider = Provider::start(vec![says("one"), says("two")]);
    let (mut client, session) = too_long(&folder, &provider, &["--ask-timeout-ms", "1"]);
    assert_eq!(client.turn(&session, "second prompt").0, "end_turn");
    let taken_back =
        |seen: &[Value]| seen.iter().filter(|it| it["method"] == "$/cancel_request").count();
    assert_eq!(
        (taken_back(&client.seen), statuses(&client.seen, &session)),
        (1, vec!["failed".to_owned()])
    );
    client.finish();

    let provider = Provider::start(vec![says("one"), says("two")]);
    let (mut client, session) = too_long(&folder, &provider, &[]);
    let stops: [fn(&mut Client, &str); 2] = [Client::cancel, |client, _| {
        let question = client.seen.last().expect("the question").clone();
        client.reply(&question, json!({ "outcome": { "outcome": "cancelled" } }));
    }];
    for stop in stops {
        let id = client.prompt(&session, "second prompt");
        client.permission();
        stop(&mut client, &session);
        assert_eq!(client.answer(id).expect("an answer")["stopReason"], "cancelled");
    }
    client.finish();
    assert_eq!(provider.requests(), 1);
}
