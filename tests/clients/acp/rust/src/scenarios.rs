//! What each scenario does and expects.

use crate::agent::{Start, stop_reason, text_block};
use crate::{Stage, server};
use agent_client_protocol::UntypedMessage;
use agent_client_protocol::v1::schema::{
    BlobResourceContents, CloseSessionRequest, ContentBlock, DeleteSessionRequest,
    EmbeddedResource, EmbeddedResourceResource, ImageContent, ListSessionsRequest,
    NewSessionRequest, ResourceLink, ResumeSessionRequest, SessionConfigValueId,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest,
    SetSessionModeResponse, TextResourceContents,
};
use agent_client_protocol::{self as acp};
use serde_json::{Value, json};
use std::fmt::Debug;
use std::fs;

pub const SCENARIOS: [(&str, fn(&Stage)); 25] = [
    ("prompt", prompt),
    ("thought", thought),
    ("allowed", allowed),
    ("always", always),
    ("refused", refused),
    ("dismissed", dismissed),
    ("client-servers", client_servers),
    ("cancel", cancel),
    ("waiting", waiting),
    ("killed", killed),
    ("resume", resume),
    ("list", list),
    ("delete", delete),
    ("close", close),
    ("two-sessions", two_sessions),
    ("two-folders", two_folders),
    ("image", image),
    ("resource", resource),
    ("link", link),
    ("errors", errors),
    ("provider", provider),
    ("cancel-request", cancel_request),
    ("options", options),
    ("long", long),
    ("end", end),
];

const ANSWER: &str = "agent_message_chunk";
const THOUGHT: &str = "agent_thought_chunk";
const PROMPT: &str = "user_message_chunk";
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==";

fn long_prompt() -> String {
    "word ".repeat(500)
}

#[track_caller]
fn fails<T: Debug>(result: acp::Result<T>, code: i32) -> acp::Error {
    let error = result.expect_err("an error");
    assert_eq!(i32::from(error.code), code, "{error:?}");
    error
}

#[track_caller]
fn contains(text: &str, part: &str) {
    assert!(text.contains(part), "no {part:?} in {text:?}");
}

#[track_caller]
fn starts(text: &str, part: &str) {
    assert!(text.starts_with(part), "{text:?} does not start with {part:?}");
}

fn current(response: &Value, id: &str) -> Value {
    let options = response["configOptions"].as_array().expect("options");
    let option = options.iter().find(|option| option["id"] == id).expect("the option");
    option["currentValue"].clone()
}

fn prompt(stage: &Stage) {
    let agent = stage.start(stage.echo(&[]));
    let it = agent.open(&stage.folder, vec![]);
    assert_eq!(agent.say(&it, "hello"), "Turn 1. You said: hello");
    assert_eq!(agent.of(&it, "session_info_update")[0]["title"], "hello");
    starts(&agent.say(&it, "again"), "Turn 2. You said: again");
    assert_eq!(agent.text(&it, PROMPT), "");
    let mut ids: Vec<_> =
        agent.of(&it, ANSWER).iter().map(|chunk| chunk["messageId"].to_string()).collect();
    ids.dedup();
    assert!(ids.len() == 2 && !ids.contains(&"null".to_owned()), "{ids:?}");
}

fn thought(stage: &Stage) {
    let agent = stage.start(stage.echo(&["--echo-reasoning"]));
    let it = agent.open(&stage.folder, vec![]);
    agent.say(&it, "hello");
    contains(&agent.text(&it, THOUGHT), "This is turn 1");
    let kinds: Vec<_> = agent.shared.with(|seen| {
        seen.updates.iter().map(|update| update["update"]["sessionUpdate"].clone()).collect()
    });
    let at = |kind: &str| kinds.iter().position(|it| it == kind);
    assert!(at(THOUGHT) < at(ANSWER), "{kinds:?}");
    assert_ne!(agent.of(&it, THOUGHT)[0]["messageId"], agent.of(&it, ANSWER)[0]["messageId"]);
}

fn allowed(stage: &Stage) {
    let agent = stage.start(stage.tools());
    let it = agent.open(&stage.folder, vec![]);
    contains(&agent.say(&it, "What time is it?"), "It is noon in Berlin");
    // Each question has a thread of its own.
    let questions = agent.questions();
    let of = |city: &str| {
        questions.iter().find(|question| question["toolCall"]["rawInput"]["city"] == city)
    };
    let (berlin, _) = (of("Berlin").expect("Berlin"), of("Oz").expect("Oz"));
    assert_eq!(berlin["toolCall"]["title"], "get_time: {\"city\":\"Berlin\"}");
    contains(&berlin["toolCall"]["content"].to_string(), "Berlin");
    let kinds: Vec<_> = berlin["options"]
        .as_array()
        .expect("options")
        .iter()
        .map(|it| it["kind"].clone())
        .collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
    let expected =
        ["get_time pending in_progress completed", "get_time pending in_progress failed"];
    assert_eq!(agent.calls(&it, 0), expected);
    assert_eq!(agent.results(&it), ["12:00"]);
}

fn always(stage: &Stage) {
    let agent = stage.start(stage.tools());
    for (decision, state) in [("allow_always", "completed"), ("reject_always", "failed")] {
        let it = agent.open(&stage.folder, vec![]);
        agent.decide(move |_, _| Some(decision));
        agent.say(&it, "What time is it?");
        let (asked, before) = (agent.questions().len(), agent.count());
        agent.say(&it, "And now?");
        assert_eq!(agent.questions().len(), asked, "no more questions");
        let again = &agent.calls(&it, before)[0];
        assert!(again.ends_with(state), "{again}");
    }
}

fn refused(stage: &Stage) {
    let agent = stage.start(stage.tools());
    let it = agent.open(&stage.folder, vec![]);
    agent.decide(|_, _| Some("reject_once"));
    contains(&agent.say(&it, "What time is it?"), "It is noon");
    assert_eq!(agent.calls(&it, 0), ["get_time pending failed"; 2]);
    agent.decide(|_, _| Some("allow_once"));
    agent.say(&it, "And now?");
    assert_eq!(agent.questions().len(), 4);
}

fn dismissed(stage: &Stage) {
    let agent = stage.start(stage.tools());
    let it = agent.open(&stage.folder, vec![]);
    let shared = agent.shared.clone();
    // The first question is closed by the person, and the second one by the editor, as it is withdrawn.
    agent.decide(move |call, cancellation| match call["rawInput"]["city"] == "Berlin" {
        true => None,
        false => shared.until_withdrawn(cancellation),
    });
    assert_eq!(agent.prompt(&it, "What time is it?"), "cancelled");
    assert!(agent.calls(&it, 0).iter().all(|call| call.ends_with("failed")));
    agent.decide(|_, _| Some("allow_once"));
    contains(&agent.say(&it, "And now?"), "It is noon");
}

fn client_servers(stage: &Stage) {
    let configured = format!("python3 {} configured_tool", stage.fixture("server.py"));
    let agent = stage.start(stage.script("two_tools.jsonl", &["--mcp", &configured]));
    for (servers, state) in [(stage.server("client_tool"), "completed"), (vec![], "failed")] {
        let it = agent.open(&stage.folder, servers);
        contains(&agent.say(&it, "Call both."), "Done");
        let calls = agent.calls(&it, 0);
        assert_eq!(calls[0], "configured_tool pending in_progress completed");
        assert!(calls[1].starts_with("client_tool") && calls[1].ends_with(state), "{calls:?}");
    }
    assert!(agent.questions().is_empty());
}

fn cancel(stage: &Stage) {
    let agent = stage.start(stage.slow());
    let it = agent.open(&stage.folder, vec![]);
    agent.cancel(&it);
    agent.cancelled(&it, &long_prompt(), |_| true);
    let before = agent.count();
    agent.cancelled(&it, &long_prompt(), |seen| {
        seen.text(&it, ANSWER, before).contains("word word")
    });
    let said = agent.text(&it, ANSWER);
    agent.cancel(&it);
    contains(&agent.say(&it, "hello"), "hello");
    starts(&agent.text(&it, ANSWER), &said);
    assert!(said.len() < long_prompt().len());
    // While questions are open, which are withdrawn, and while a tool works.
    let agent = stage.start(stage.tools());
    let it = agent.open(&stage.folder, vec![]);
    let shared = agent.shared.clone();
    agent.decide(move |_, cancellation| shared.until_withdrawn(cancellation));
    agent.cancelled(&it, &long_prompt(), |seen| seen.questions.len() == 2);
    agent.shared.until(|seen| seen.withdrawn == 2);
    let agent = stage.start(stage.script("wait.jsonl", &[]));
    let it = agent.open(&stage.folder, stage.server("wait"));
    agent.cancelled(&it, &long_prompt(), |seen| seen.is_at_work(&it));
    assert_eq!(agent.calls(&it, 0), ["wait pending in_progress failed"]);
}

fn waiting(stage: &Stage) {
    let agent = stage.start(stage.slow());
    let it = agent.open(&stage.folder, vec![]);
    for sent in ["one", "two", "three"].map(|text| agent.begin(&it, text)) {
        assert_eq!(stop_reason(sent), "end_turn");
    }
    let said = agent.text(&it, ANSWER);
    let at = |part: &str| said.find(part).unwrap_or_else(|| panic!("no {part:?} in {said:?}"));
    let order = ["Turn 1. You said: one", "Turn 2. You said: two", "Turn 3. You said: three"];
    assert!(order.map(at).is_sorted(), "{said}");
    let both = [long_prompt(), "four".to_owned()].map(|text| agent.begin(&it, &text));
    agent.shared.until(|seen| seen.says(&it, "word"));
    agent.cancel(&it);
    assert_eq!(both.map(stop_reason), ["cancelled", "cancelled"]);
    contains(&agent.say(&it, "five"), "You said: five");
}

fn killed(stage: &Stage) {
    let mut first = stage.start(stage.slow());
    let it = first.open(&stage.folder, vec![]);
    let live = first.say(&it, "hello");
    let id = first.of(&it, ANSWER)[0]["messageId"].clone();
    let lost = first.begin(&it, &long_prompt());
    first.shared.until(|seen| seen.says(&it, "word word"));
    first.kill();
    drop(lost);
    let second = stage.start(stage.slow());
    let loaded = json!(second.load(&it, &stage.folder).expect("loaded"));
    assert_eq!(current(&loaded, "mode"), "ask");
    assert_eq!(second.text(&it, PROMPT), format!("hello{}", long_prompt()));
    assert_eq!(second.of(&it, ANSWER)[0]["messageId"], id);
    starts(&second.text(&it, ANSWER), &format!("{live}Turn 2. You said: "));
    starts(&second.say(&it, "go on"), "Turn 3.");
}

fn resume(stage: &Stage) {
    let mut first = stage.start(stage.echo(&[]));
    let it = first.open(&stage.folder, vec![]);
    first.say(&it, "hello");
    assert_eq!(first.end(), Some(0));
    let second = stage.start(stage.echo(&[]));
    let resumed = second.call(ResumeSessionRequest::new(it.clone(), stage.folder.as_str()));
    assert_eq!(current(&json!(resumed.expect("resumed")), "mode"), "ask");
    let said = second.say(&it, "go on");
    starts(&said, "Turn 2.");
    contains(&said, "hello");
    assert_eq!((second.text(&it, ANSWER), second.text(&it, PROMPT)), (said, String::new()));
}

fn list(stage: &Stage) {
    let agent = stage.start(stage.echo(&[]));
    let [here, there] = ["here", "there"].map(|name| format!("{}/{name}", stage.folder));
    let mut ids = Vec::new();
    for (cwd, text) in [(&here, "first"), (&there, "second"), (&here, "third")] {
        fs::create_dir_all(cwd).expect("a folder");
        ids.insert(0, agent.open(cwd, vec![]));
        agent.say(&ids[0], text);
    }
    let list = |request| json!(agent.call(request).expect("a list"))["sessions"].clone();
    let texts = |list: Value, key: &str| -> Vec<String> {
        let list = list.as_array().expect("a list").clone();
        list.iter().map(|it| it[key].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(texts(list(ListSessionsRequest::new()), "sessionId"), ids);
    let found = list(ListSessionsRequest::new().cwd(std::path::PathBuf::from(&here)));
    assert_eq!(texts(found.clone(), "title"), ["third", "first"]);
    assert_eq!(texts(found.clone(), "cwd"), [here.clone(), here]);
    assert!(texts(found, "updatedAt").iter().all(|at| at.as_str() > "2020-01-01T"));
}

fn delete(stage: &Stage) {
    let agent = stage.start(stage.echo(&[]));
    let it = agent.open(&stage.folder, vec![]);
    agent.say(&it, "hello");
    for _ in 0..2 {
        agent.call(DeleteSessionRequest::new(it.clone())).expect("deleted");
    }
    assert!(agent.call(ListSessionsRequest::new()).expect("a list").sessions.is_empty());
    fails(agent.load(&it, &stage.folder), -32002);
}

fn close(stage: &Stage) {
    let agent = stage.start(stage.slow());
    let it = agent.open(&stage.folder, vec![]);
    let sent = agent.begin(&it, &long_prompt());
    agent.shared.until(|seen| seen.says(&it, "word"));
    agent.call(CloseSessionRequest::new(it.clone())).expect("closed");
    assert_eq!(stop_reason(sent), "cancelled");
    assert_eq!(agent.prompt(&it, "hello"), "-32002");
    agent.load(&it, &stage.folder).expect("loaded");
    starts(&agent.say(&it, "hello"), "Turn 2.");
}

fn two_sessions(stage: &Stage) {
    let agent = stage.start(stage.slow());
    let [one, two] = [(); 2].map(|()| agent.open(&stage.folder, vec![]));
    let sent = agent.begin(&one, &long_prompt());
    agent.shared.until(|seen| seen.says(&one, "word"));
    assert_eq!(agent.say(&two, "hello to the other"), "Turn 1. You said: hello to the other");
    assert!(agent.text(&one, ANSWER).len() < long_prompt().len(), "both answer at a time");
    agent.cancel(&one);
    assert_eq!(stop_reason(sent), "cancelled");
    starts(&agent.say(&two, "still there?"), "Turn 2.");
}

fn two_folders(stage: &Stage) {
    let agent = stage.start(stage.script("two_tools.jsonl", &[]));
    for name in ["here", "there"] {
        let path = format!("{}/{name}", stage.folder);
        fs::create_dir(&path).expect("a folder");
        fs::copy(stage.fixture("server.py"), format!("{path}/own.py")).expect("a server");
        let it = agent.open(&path, server("client_tool", "own.py"));
        agent.say(&it, "Where are you?");
        assert_eq!(agent.results(&it), [format!("client_tool in {path}")]);
    }
}

fn image(stage: &Stage) {
    let agent = stage.start(stage.echo(&[]));
    assert_eq!(agent.initialized["agentCapabilities"]["promptCapabilities"]["image"], true);
    let it = agent.open(&stage.folder, vec![]);
    let picture = || ContentBlock::Image(ImageContent::new(PNG, "image/png"));
    let said = agent.ask(&it, vec![text_block("look"), picture()]);
    contains(&said, "image/png, 1x1, 70 bytes");
    contains(&agent.ask(&it, vec![picture()]), "image/png");
}

fn resource(stage: &Stage) {
    let agent = stage.start(stage.echo(&[]));
    let capabilities = &agent.initialized["agentCapabilities"]["promptCapabilities"];
    assert_eq!(capabilities["embeddedContext"], true);
    let it = agent.open(&stage.folder, vec![]);
    let read = |resource| {
        let resource = ContentBlock::Resource(EmbeddedResource::new(resource));
        agent.ask(&it, vec![text_block("Read "), resource])
    };
    let text = TextResourceContents::new("some text", "file:///nowhere/a.txt");
    let text = EmbeddedResourceResource::TextResourceContents(text);
    contains(&read(text), "Attached: a.txt (text/plain, 9 bytes)");
    let blob = BlobResourceContents::new(PNG, "file:///nowhere/b.png");
    let blob = EmbeddedResourceResource::BlobResourceContents(blob);
    contains(&read(blob), "Attached: b.png (image/png, 1x1, 70 bytes)");
}

fn link(stage: &Stage) {
    let path = format!("{}/notes.txt", stage.folder);
    fs::write(&path, "on disk\n").expect("a file");
    let link = |name: &str| {
        ContentBlock::ResourceLink(ResourceLink::new(
            name,
            format!("file://{}/{name}", stage.folder),
        ))
    };
    let blocks = || vec![text_block("Read "), link("notes.txt"), link("lost.txt")];
    let plain = stage.start(stage.echo(&[]));
    let said = plain.ask(&plain.open(&stage.folder, vec![]), blocks());
    contains(&said, "notes.txt (text/plain, 8 bytes)");
    assert!(said.contains("lost.txt") && !said.contains("Attached: lost.txt"), "{said}");
    let start = Start { arguments: stage.echo(&[]), reads_files: true, ..Start::default() };
    let editor = stage.start_with(start);
    let said = editor.ask(&editor.open(&stage.folder, vec![]), blocks());
    contains(&said, "notes.txt (text/plain, 13 bytes)");
    assert!(editor.shared.with(|seen| seen.reads.contains(&path)));
}

fn errors(stage: &Stage) {
    let agent = stage.start(stage.echo(&[]));
    let it = agent.open(&stage.folder, vec![]);
    let raw = |method: &str, params: Value| {
        agent.call(UntypedMessage::new(method, params).expect("a message"))
    };
    let hello = json!([{ "type": "text", "text": "hello" }]);
    let unknown = json!({ "sessionId": "no such session", "prompt": hello });
    let error = fails(raw("session/prompt", unknown), -32002);
    contains(&error.data.expect("data")["details"].to_string(), "no such session");
    fails(agent.load("nor this", &stage.folder), -32002);
    fails(raw("session/prompt", json!({ "sessionId": it })), -32602);
    fails(raw("session/prompt", json!({ "prompt": hello })), -32602);
    assert_eq!(agent.prompt(&it, "  \n"), "-32602");
    fails(agent.call(NewSessionRequest::new("relative")), -32602);
    fails(set(&agent, &it, "mode", "yolo"), -32602);
    fails(set_mode(&agent, &it, "yolo"), -32602);
    fails(raw("session/no_such_method", json!({})), -32601);
    fails(raw("_vendor/method", json!({})), -32601);
    starts(&agent.say(&it, "hello"), "Turn 1.");
}

fn provider(stage: &Stage) {
    let key = "key-that-nobody-sees";
    let nowhere = ["--engine", "openai", "--base-url", "http://127.0.0.1:1/v1", "--model", "any"];
    let arguments = nowhere.iter().chain(&["--retries", "0"]).map(|it| (*it).to_owned()).collect();
    let agent = stage.start_with(Start { arguments, key: Some(key), ..Start::default() });
    let it = agent.open(&stage.folder, vec![]);
    for text in ["hello", "again"] {
        let sent = agent.begin(&it, text).block_task();
        let error = fails(futures::executor::block_on(sent), -32603);
        let data = error.data.clone().expect("data");
        assert_eq!(data.as_object().expect("an object").keys().collect::<Vec<_>>(), ["details"]);
        assert!(!format!("{error:?}").contains(key));
    }
    let keyless = stage.start(["--engine", "anthropic"].map(str::to_owned).to_vec());
    assert_eq!(keyless.prompt(&keyless.open(&stage.folder, vec![]), "hello"), "-32603");
}

fn cancel_request(stage: &Stage) {
    let agent = stage.start(stage.slow());
    let it = agent.open(&stage.folder, vec![]);
    let long = [(); 2].map(|()| agent.begin(&it, &long_prompt()));
    let last = agent.begin(&it, "hello");
    agent.shared.until(|seen| seen.says(&it, "word"));
    for sent in long.iter().rev() {
        sent.cancel().expect("cancelled");
    }
    for end in long.map(stop_reason) {
        assert!(["cancelled", "-32800"].contains(&end.as_str()), "{end}");
    }
    assert_eq!(stop_reason(last), "end_turn");
    contains(&agent.text(&it, ANSWER), "You said: hello");
}

fn set(
    agent: &crate::Agent,
    it: &str,
    id: &'static str,
    value: &'static str,
) -> acp::Result<SetSessionConfigOptionResponse> {
    let value = SessionConfigValueId::new(value);
    agent.call(SetSessionConfigOptionRequest::new(it.to_owned(), id, value))
}

fn set_mode(
    agent: &crate::Agent,
    it: &str,
    mode: &'static str,
) -> acp::Result<SetSessionModeResponse> {
    agent.call(SetSessionModeRequest::new(it.to_owned(), mode))
}

fn options(stage: &Stage) {
    let mut agent = stage.start(stage.tools());
    let it = agent.open(&stage.folder, vec![]);
    for (id, value) in [("thought_level", "high"), ("mode", "auto")] {
        let changed = set(&agent, &it, id, value).expect("changed");
        assert_eq!(current(&json!(changed), id), value);
    }
    agent.say(&it, "What time is it?");
    assert_eq!((agent.questions().len(), agent.results(&it).len()), (0, 1));
    set_mode(&agent, &it, "deny").expect("changed");
    agent.say(&it, "And now?");
    assert_eq!(agent.results(&it).len(), 1);
    agent.say(&agent.open(&stage.folder, vec![]), "And here?");
    assert_eq!(agent.questions().len(), 2, "another session has its own mode");
    assert_eq!(agent.end(), Some(0));
    let later = stage.start(stage.tools());
    let loaded = json!(later.load(&it, &stage.folder).expect("loaded"));
    assert_eq!(["thought_level", "mode"].map(|id| current(&loaded, id)), ["high", "deny"]);
}

fn long(stage: &Stage) {
    let line = |n: usize| format!("{n} \"quoted\" \\ \t \u{1F600}\n");
    let answer: String = (0..20_000).map(line).collect();
    let path = format!("{}/answer.txt", stage.folder);
    fs::write(&path, &answer).expect("a file");
    let agent = stage.start(stage.echo(&["--echo-answer", &path]));
    let it = agent.open(&stage.folder, vec![]);
    assert!(agent.say(&it, "Tell me everything.") == answer, "all text arrives");
    agent.call(CloseSessionRequest::new(it.clone())).expect("closed");
    let before = agent.count();
    agent.load(&it, &stage.folder).expect("loaded");
    assert!(agent.text_from(&it, ANSWER, before) == answer, "and again");
}

fn end(stage: &Stage) {
    let mut agent = stage.start(stage.script("wait.jsonl", &[]));
    let it = agent.open(&stage.folder, stage.server("wait"));
    let sent = agent.begin(&it, "Wait.");
    agent.shared.until(|seen| seen.is_at_work(&it));
    let answer = std::thread::spawn(move || stop_reason(sent));
    assert_eq!(agent.end(), Some(0));
    assert_eq!(answer.join().expect("an answer"), "cancelled");
    let pids = fs::read_to_string(format!("{}/servers.pid", stage.folder)).expect("a list");
    let is_gone = |pid: &str| {
        fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |it| it.contains(" Z "))
    };
    assert!(pids.lines().count() == 1 && pids.lines().all(is_gone), "still there: {pids}");
}
