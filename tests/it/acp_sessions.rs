//! Stored sessions of an editor: listed, loaded, resumed, closed and deleted, after any end of the process.

use crate::acp_client::{Client, command, said, updates};
use crate::server::Folder;
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

fn open(session: &str, cwd: &PathBuf) -> Value {
    json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] })
}

/// Ids and texts of the messages, as they were sent, pieces together.
fn messages(seen: &[Value], session: &str) -> Vec<(String, String)> {
    let mut messages: Vec<(String, String)> = Vec::new();
    for message in seen.iter().filter(|it| it["params"]["sessionId"] == session) {
        let update = &message["params"]["update"];
        let Some(id) = update["messageId"].as_str() else { continue };
        let text = update["content"]["text"].as_str().expect("a text");
        match messages.last_mut() {
            Some((last, so_far)) if last == id => so_far.push_str(text),
            _ => messages.push((id.to_owned(), text.to_owned())),
        }
    }
    messages
}

/// The titles of the notices of a session.
fn notices(seen: &[Value], session: &str) -> Vec<String> {
    let notices = updates(seen, session, "notice").into_iter();
    notices.map(|it| it["title"].as_str().expect("a title").to_owned()).collect()
}

#[test]
fn a_session_is_loaded_whole_with_the_ids_that_it_had() {
    let folder = Folder::new();
    let (project, other) = (folder.path("p"), folder.path("q"));
    fs::create_dir_all(&project).expect("a folder");
    fs::create_dir_all(&other).expect("a folder");
    let mut client = Client::start(&folder, &["--echo-reasoning"]);
    let session = client.session(&project);
    let elsewhere = client.session(&other);
    client.turn(&session, "first words");
    client.turn(&session, "second");
    client.turn(&elsewhere, "another");
    let live = messages(&client.finish().seen, &session);
    assert_eq!(live.len(), 4, "{live:?}");

    let mut client = Client::start(&folder, &["--echo-reasoning"]);
    let listed = client.call("session/list", json!({ "cwd": project }));
    let listed = listed["sessions"].as_array().expect("a list").clone();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(
        (&listed[0]["sessionId"], &listed[0]["title"]),
        (&json!(session), &json!("first words"))
    );
    assert_eq!(listed[0]["cwd"], json!(project));
    let all = client.call("session/list", json!({}));
    assert_eq!(all["sessions"].as_array().map(Vec::len), Some(2));
    let loaded = client.call("session/load", open(&session, &project));
    assert!(loaded["configOptions"].is_array() && loaded["modes"].is_object(), "{loaded}");
    let answered = client.seen.len();
    let shown = messages(&client.seen, &session);
    // Everything was shown before the answer, in order, and the prompts too.
    let of_model: Vec<_> =
        shown.iter().filter(|(id, _)| live.iter().any(|it| it.0 == *id)).cloned().collect();
    assert_eq!(of_model, live);
    assert_eq!(said(&client.seen, &session, "user_message_chunk"), "first wordssecond");
    let (_, text) = client.turn(&session, "third");
    assert!(text.starts_with("Turn 3.") && text.contains("second"), "{text}");
    assert_eq!(
        updates(&client.seen[answered..], &session, "user_message_chunk"),
        Vec::<&Value>::new()
    );
    client.finish();
}

/// An editor has the path that was opened, and a shell the folder itself.
#[test]
fn the_terminal_and_the_editor_see_each_others_sessions_through_a_link() {
    let folder = Folder::new();
    let project = folder.path("").canonicalize().expect("a folder").join("project");
    fs::create_dir(&project).expect("a folder");
    symlink(&project, folder.path("link")).expect("a link");
    let in_terminal = |args: &[&str]| {
        let mut terminal = Command::new(env!("CARGO_BIN_EXE_duologue"));
        let editor = command(&folder, &[]);
        let variables = editor.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let output = terminal
            .env_clear()
            .envs(variables)
            .arg("exec")
            .args(args)
            .current_dir(&project)
            .output();
        String::from_utf8(output.expect("it runs").stdout).expect("UTF-8")
    };
    assert_eq!(in_terminal(&["--session", "mine", "one"]).trim_end(), "Turn 1. You said: one");
    let mut client = Client::start(&folder, &[]);
    let link = folder.path("link");
    let listed = client.call("session/list", json!({ "cwd": link }))["sessions"].clone();
    assert_eq!((&listed[0]["sessionId"], &listed[0]["cwd"]), (&json!("mine"), &json!(link)));
    let session = client.session(&link);
    client.turn(&session, "two");
    let listed = client.call("session/list", json!({ "cwd": link }))["sessions"].clone();
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
    client.finish();
    let text = in_terminal(&["--continue", "three"]);
    assert!(text.starts_with("Turn 2. You said: three\nBefore that you said: two"), "{text}");
}

#[test]
fn a_resumed_session_is_not_shown_again() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &[]);
    let session = client.session(&folder.path(""));
    client.turn(&session, "first");
    client.finish();
    let mut client = Client::start(&folder, &[]);
    client.call("session/resume", open(&session, &folder.path("")));
    assert_eq!(messages(&client.seen, &session), []);
    assert!(client.turn(&session, "second").1.starts_with("Turn 2."));
    client.finish();
}

#[test]
fn a_session_that_is_not_there_is_said_to_be_missing() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &[]);
    for method in ["session/load", "session/resume"] {
        let refused = client.refused(method, open("session-none", &folder.path("")));
        assert_eq!(refused["code"], -32002, "{refused}");
        assert!(
            refused["message"].as_str().is_some_and(|it| it.contains("session-none")),
            "{refused}"
        );
    }
    // Also if another one begins so, and where there is a store.
    let session = client.session(&folder.path(""));
    client.turn(&session, "hi");
    let refused = client.refused("session/load", open(&session[..20], &folder.path("")));
    assert_eq!(refused["code"], -32002, "{refused}");
    // What is not there is deleted.
    client.call("session/delete", json!({ "sessionId": "session-none" }));
    client.finish();
}

#[test]
fn a_session_survives_a_kill_in_the_middle_of_an_answer() {
    let folder = Folder::new();
    let words = "word ".repeat(2_000);
    let mut client = Client::start(&folder, &["--echo-delay-ms", "1"]);
    let session = client.session(&folder.path(""));
    client.prompt(&session, &words);
    client.update(&session, "agent_message_chunk");
    client.signal(Signal::KILL);
    let ended = client.ended();
    assert_eq!(ended.status.code(), None);
    let mut client = Client::start(&folder, &[]);
    client.call("session/load", open(&session, &folder.path("")));
    let text = said(&client.seen, &session, "agent_message_chunk");
    let before = said(&ended.seen, &session, "agent_message_chunk");
    // What was shown is stored.
    assert!(text.starts_with(&before) && !before.is_empty(), "{before:?} {text:?}");
    assert_eq!(client.turn(&session, "and now?").0, "end_turn");
    client.finish();
}

#[test]
fn a_session_that_another_process_holds_is_refused_by_name() {
    let folder = Folder::new();
    let mut first = Client::start(&folder, &[]);
    let session = first.session(&folder.path(""));
    first.turn(&session, "mine");
    let mut second = Client::start(&folder, &[]);
    let refused = second.refused("session/load", open(&session, &folder.path("")));
    assert_eq!(refused["code"], -32603);
    // Also to who asks again at once, while the refused session is closed.
    let holder = first.process().0.to_string();
    for method in ["session/load", "session/resume"].repeat(50) {
        let refused = second.refused(method, open(&session, &folder.path("")));
        let why = refused["data"]["details"].as_str().expect("details").to_owned();
        assert!(why.contains(&holder), "{method}: {refused}");
    }
    // Others of this process are as they were, and a closed session is free.
    let own = second.session(&folder.path(""));
    assert_eq!(second.turn(&own, "other").0, "end_turn");
    first.call("session/close", json!({ "sessionId": session }));
    second.call("session/load", open(&session, &folder.path("")));
    first.finish();
    second.finish();
}

#[test]
fn a_closed_session_has_ended_its_run_and_can_be_loaded_again() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &["--echo-delay-ms", "60000"]);
    let session = client.session(&folder.path(""));
    let prompt = client.prompt(&session, "hi");
    client.call("session/close", json!({ "sessionId": session }));
    assert_eq!(client.answer(prompt).expect("an answer")["stopReason"], "cancelled");
    let text = json!([{ "type": "text", "text": "x" }]);
    let refused = client.refused("session/prompt", json!({ "sessionId": session, "prompt": text }));
    assert_eq!(refused["code"], -32002);
    client.call("session/load", open(&session, &folder.path("")));
    // A session that is open is shown again.
    client.call("session/load", open(&session, &folder.path("")));
    assert_eq!(said(&client.seen, &session, "user_message_chunk"), "hihi");
    client.finish();
}

#[test]
fn a_deleted_session_is_gone_also_if_it_was_open() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &[]);
    let session = client.session(&folder.path(""));
    client.turn(&session, "forget this");
    client.call("session/delete", json!({ "sessionId": session }));
    let listed = client.call("session/list", json!({}));
    assert_eq!(listed["sessions"], json!([]));
    assert_eq!(client.refused("session/load", open(&session, &folder.path("")))["code"], -32002);
    client.finish();
}

#[test]
fn each_request_to_delete_a_session_that_ends_is_answered() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &["--echo-delay-ms", "60000"]);
    let session = client.session(&folder.path(""));
    client.prompt(&session, "forget this");
    let params = json!({ "sessionId": session });
    let (first, line) = client.line("session/delete", params.clone());
    let (second, again) = client.line("session/delete", params);
    client.send_raw((line + &again).as_bytes());
    for id in [first, second] {
        assert_eq!(client.answer(id), Ok(json!({})));
    }
    client.finish();
}

#[test]
fn what_was_chosen_is_chosen_after_a_load() {
    let folder = Folder::new();
    let profiles = "profiles:\n  other: {engine: echo}\n  base: {engine: echo}\n";
    fs::write(folder.path("profiles.yaml"), profiles).expect("a file");
    let registries = folder.name("profiles.yaml");
    let args = ["--profile", "base", "--profile-registries", &registries];
    let chosen = |result: &Value, id: &str| {
        let options = result["configOptions"].as_array().expect("options");
        options.iter().find(|it| it["id"] == id).expect(id)["currentValue"].clone()
    };
    let set = |session: &str, id: &str, value: &str| json!({ "sessionId": session, "configId": id, "value": value });
    let mut client = Client::start(&folder, &args);
    let session = client.session(&folder.path(""));
    let untouched = client.session(&folder.path(""));
    client.turn(&session, "hi");
    client.turn(&untouched, "hi");
    client.call("session/set_config_option", set(&session, "model", "profile:other"));
    let after = client.call("session/set_config_option", set(&session, "thought_level", "high"));
    assert_eq!(
        (chosen(&after, "model"), chosen(&after, "thought_level")),
        (json!("profile:other"), json!("high"))
    );
    client.call("session/set_mode", json!({ "sessionId": session, "modeId": "auto" }));
    let refused = client.refused("session/set_config_option", set(&session, "model", "made up"));
    assert_eq!(refused["code"], -32602);
    client.turn(&session, "again");
    client.finish();
    let mut client = Client::start(&folder, &args);
    let loaded = client.call("session/load", open(&session, &folder.path("")));
    assert_eq!(
        (chosen(&loaded, "model"), chosen(&loaded, "thought_level")),
        (json!("profile:other"), json!("high"))
    );
    assert_eq!(
        (chosen(&loaded, "mode"), &loaded["modes"]["currentModeId"]),
        (json!("auto"), &json!("auto"))
    );
    let loaded = client.call("session/load", open(&untouched, &folder.path("")));
    assert_ne!(chosen(&loaded, "model"), json!("profile:other"));
    assert_eq!(chosen(&loaded, "thought_level"), json!("default"));
    assert_eq!(chosen(&loaded, "mode"), "ask");
    client.finish();
}

#[test]
fn a_choice_during_a_run_is_for_the_next_one() {
    let folder = Folder::new();
    let profiles = "profiles:\n  other: {engine: echo}\n";
    fs::write(folder.path("profiles.yaml"), profiles).expect("a file");
    let registries = folder.name("profiles.yaml");
    let mut client =
        Client::start(&folder, &["--profile-registries", &registries, "--echo-delay-ms", "5"]);
    let session = client.session(&folder.path(""));
    let running = client.prompt(&session, "a few words that take a moment");
    client.update(&session, "agent_message_chunk");
    let params = json!({ "sessionId": session, "configId": "model", "value": "profile:other" });
    client.call("session/set_config_option", params);
    assert_eq!(client.answer(running).expect("an answer")["stopReason"], "end_turn");
    assert_eq!(client.turn(&session, "next").0, "end_turn");
    client.finish();
}

/// The client was told that it is chosen.
#[test]
fn a_choice_during_an_answer_survives_the_end_of_its_session() {
    let folder = Folder::new();
    let effort = |opened: &Value| {
        let options = opened["configOptions"].as_array().expect("options");
        options.iter().find(|it| it["id"] == "thought_level").expect("it")["currentValue"].clone()
    };
    let start = || Client::start(&folder, &["--echo-delay-ms", "60000"]);
    let choose = |client: &mut Client, session: &str, value: &str| {
        let running = client.prompt(session, "hi");
        let params = json!({ "sessionId": session, "configId": "thought_level", "value": value });
        assert_eq!(effort(&client.call("session/set_config_option", params)), value);
        running
    };
    let mut client = start();
    let session = client.session(&folder.path(""));
    let load = open(&session, &folder.path(""));
    let running = choose(&mut client, &session, "high");
    client.call("session/close", json!({ "sessionId": session }));
    assert_eq!(client.answer(running).expect("an answer")["stopReason"], "cancelled");
    assert_eq!(effort(&client.call("session/load", load.clone())), "high");
    let running = choose(&mut client, &session, "low");
    let ended = client.finish();
    let answer = ended.seen.iter().find(|it| it["id"] == running && it.get("result").is_some());
    assert_eq!(answer.expect("an answer")["result"]["stopReason"], "cancelled");
    let mut client = start();
    assert_eq!(effort(&client.call("session/load", load.clone())), "low");
    choose(&mut client, &session, "medium");
    client.signal(Signal::TERM);
    assert_eq!(client.ended().status.code(), Some(143));
    let mut client = start();
    assert_eq!(effort(&client.call("session/load", load)), "medium");
    client.finish();
}

/// What answers is what is shown.
#[test]
fn a_model_that_can_not_be_used_any_more_is_not_shown_as_chosen() {
    let folder = Folder::new();
    let profiles = "profiles:\n  other: {engine: echo}\n";
    fs::write(folder.path("profiles.yaml"), profiles).expect("a file");
    let registries = folder.name("profiles.yaml");
    let command = command(&folder, &["--profile-registries", &registries]);
    let mut client = Client::start_with(command, json!({ "session": { "notices": {} } }));
    let open = json!({ "cwd": folder.path(""), "mcpServers": [] });
    let opened = client.call("session/new", open);
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    fs::write(folder.path("profiles.yaml"), "profiles: {}\n").expect("a file");
    let params = json!({ "sessionId": session, "configId": "model", "value": "profile:other" });
    client.call("session/set_config_option", params);
    let changed = client.update(&session, "config_option_update");
    assert_eq!(changed["configOptions"], opened["configOptions"]);
    assert_eq!(client.turn(&session, "hi").1, "Turn 1. You said: hi");
    let seen = client.finish().seen;
    let titles = notices(&seen, &session);
    assert!(titles.iter().any(|it| it.contains("there is no profile")), "{titles:?}");
}

#[test]
fn each_end_of_the_process_is_in_order() {
    let folder = Folder::new();
    let begun = |client: &mut Client| {
        let session = client.session(&folder.path(""));
        let id = client.prompt(&session, "hello");
        client
            .wait("a title", |it| it["params"]["update"]["sessionUpdate"] == "session_info_update");
        (session, id)
    };
    // The end of input.
    let mut client = Client::start(&folder, &["--echo-delay-ms", "60000"]);
    let (session, id) = begun(&mut client);
    let ended = client.finish();
    let answer = ended.seen.iter().find(|it| it["id"] == id && it.get("result").is_some());
    assert_eq!(answer.expect("an answer")["result"]["stopReason"], "cancelled");
    // A signal.
    let mut client = Client::start(&folder, &["--echo-delay-ms", "60000"]);
    client.call("session/load", open(&session, &folder.path("")));
    begun(&mut client);
    client.signal(Signal::TERM);
    assert_eq!(client.ended().status.code(), Some(143));
    // Nobody reads any more: the command line of the client is gone.
    let mut client = Client::start_with(command(&folder, &["--echo-delay-ms", "60000"]), json!({}));
    client.call("session/load", open(&session, &folder.path("")));
    assert_eq!(said(&client.seen, &session, "user_message_chunk"), "hello");
    client.finish();
}

/// A planted defect: in each session the event of this number trips it.
#[test]
fn a_defect_ends_its_own_session_alone() {
    let folder = Folder::new();
    let mut planted = command(&folder, &[]);
    planted.env("DUOLOGUE_FAULT", "project:40");
    let mut client = Client::start_with(planted, json!({}));
    let (broken, fine) = (client.session(&folder.path("")), client.session(&folder.path("")));
    let id = client.prompt(&broken, &"word ".repeat(100));
    let error = client.answer(id).expect_err("the session met a defect");
    assert!(error["message"].as_str().is_some_and(|it| it.contains("defect")), "{error}");
    assert_eq!(client.turn(&fine, "still here?").0, "end_turn");
    let text = json!([{ "type": "text", "text": "x" }]);
    let refused = client.refused("session/prompt", json!({ "sessionId": broken, "prompt": text }));
    // It has ended, or is about to.
    assert!([json!(-32002), json!(-32603)].contains(&refused["code"]), "{refused}");
    client.finish();
    // What was shown of it is stored.
    let mut client = Client::start(&folder, &[]);
    client.call("session/load", open(&broken, &folder.path("")));
    assert!(said(&client.seen, &broken, "user_message_chunk").starts_with("word word"));
    client.finish();
}

#[test]
fn a_store_that_fails_stops_no_session() {
    let folder = Folder::new();
    let mut planted = command(&folder, &[]);
    planted.env("DUOLOGUE_FAULT", "store:2");
    let mut client = Client::start_with(planted, json!({ "session": { "notices": {} } }));
    let session = client.session(&folder.path(""));
    assert_eq!(client.turn(&session, "hi").0, "end_turn");
    assert_eq!(client.turn(&session, "again").0, "end_turn");
    let titles = notices(&client.seen, &session);
    assert!(titles.iter().any(|it| it.contains("not stored any more")), "{titles:?}");
    client.finish();
}

#[test]
fn what_a_damaged_session_has_lost_is_said_when_it_is_opened() {
    for method in ["session/load", "session/resume"] {
        let folder = Folder::new();
        let mut client = Client::start(&folder, &[]);
        let session = client.session(&folder.path(""));
        client.turn(&session, "one");
        client.turn(&session, "two");
        client.finish();
        let database = Connection::open(folder.path("data/duologue/sessions.db")).expect("a store");
        let sql = "UPDATE log SET events = X'FFFF' WHERE key = (SELECT max(key) FROM log)";
        assert_eq!(database.execute(sql, []).expect("a row"), 1);
        drop(database);
        let with_notices = json!({ "session": { "notices": {} } });
        let mut client = Client::start_with(command(&folder, &[]), with_notices);
        client.call(method, open(&session, &folder.path("")));
        assert_eq!(client.turn(&session, "three").0, "end_turn");
        let titles = notices(&client.seen, &session);
        assert!(titles.iter().any(|it| it.contains("is damaged")), "{method}: {titles:?}");
        client.finish();
    }
}

/// Nobody has named the store, which is made with the first session.
#[test]
fn a_default_store_that_is_not_made_yet_has_no_sessions() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &[]);
    assert_eq!(client.call("session/list", json!({}))["sessions"], json!([]));
    assert!(!folder.path("data").exists());
    let session = client.session(&folder.path(""));
    client.turn(&session, "hi");
    let listed = client.call("session/list", json!({}))["sessions"].clone();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed[0]["sessionId"], json!(session));
    client.finish();
    let named = folder.name("typo.db");
    let mut client = Client::start(&folder, &["--store", &named]);
    let error = client.refused("session/list", json!({}));
    assert!(error["message"].as_str().is_some_and(|it| it.contains("typo.db")), "{error}");
    client.finish();
}

#[test]
fn a_new_session_says_that_the_default_store_can_not_be_used() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("data/duologue")).expect("a folder");
    fs::write(folder.path("data/duologue/sessions.db"), "# A page\n".repeat(200)).expect("a file");
    let with_notices = json!({ "session": { "notices": {} } });
    let mut client = Client::start_with(command(&folder, &[]), with_notices);
    let session = client.session(&folder.path(""));
    assert_eq!(client.turn(&session, "hi").0, "end_turn");
    let titles = notices(&client.seen, &session);
    let is_said = |it: &String| it.contains("is not stored") && it.contains("sessions.db");
    assert!(titles.iter().any(is_said), "{titles:?}");
    client.finish();
}
