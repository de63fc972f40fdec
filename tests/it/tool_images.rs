//! Images that tools of servers return: the real binary against scripted providers and a server.

use crate::attachments::PNG;
use crate::interface::Interface;
use crate::mcp_servers::{config, log, mark};
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, openai};
use crate::{anthropic, gemini, ollama, responses};
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::fs;

const OPENAI: Interface = Interface { engine: "openai", launch: openai, says };

/// The result as people see it, and models that take no images.
const NOTED: &str = "A cat:\n[image: image/png, 33 bytes, not shown]";

/// The result as a model reads it that is sent the image, too.
const SHOWN: &str = "A cat:\n[image: image/png, 33 bytes, image 1 of this result]";

fn calls_for_image() -> Vec<Step> {
    let call = json!({ "index": 0, "id": "call_a", "type": "function",
        "function": { "name": "act", "arguments": r#"{"text":"image"}"# } });
    let event = json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] });
    vec![Step::Event(event.to_string()), Step::Finish("tool_calls", None), Step::Done]
}

/// A conversation in which the model calls a tool for an image, in two processes.
struct Scene {
    interface: Interface,
    folder: Folder,
    mark: String,
}

impl Scene {
    fn new(interface: Interface) -> Self {
        let (folder, mark) = (Folder::new(), mark());
        fs::write(folder.path("servers"), config(&mark, &["none"], &json!({}))).expect("a file");
        Self { interface, folder, mark }
    }

    /// Makes turns with these prompts, in a process of their own. Gives the log.
    fn process(&self, provider: &Provider, options: &[&str], prompts: &[&str]) -> String {
        let (servers, store) = (self.folder.name("servers"), self.folder.name("store"));
        let words = ["--mcp-config", &servers, "--allow", "act", "--store", &store];
        let mut server = (self.interface.launch)(provider, &[&words, options].concat()).start();
        for prompt in prompts {
            assert_eq!(server.turn(prompt, prompt), "ok", "{prompt}");
        }
        let transcript = server.finish();
        let ready = transcript.frames.iter().filter(|it| it.is_event("ChatToolResultReady"));
        assert!(ready.clone().all(|it| it.payload("result") == NOTED), "{ready:?}");
        let base64 = BASE64.encode(PNG);
        assert!(transcript.frames.iter().all(|it| !it.0.to_string().contains(&base64)));
        transcript.stderr
    }

    /// The request with the result; a later one, of a process that has resumed the conversation, begins
    /// with the same messages, which stand at `pointer`.
    fn check(self, script: Vec<Step>, pointer: &str) -> Value {
        let says = self.interface.says;
        let provider = Provider::start(vec![script, says("a cat"), says("once more")]);
        self.process(&provider, &["--session-id", "cat"], &["look"]);
        self.process(&provider, &["--session-id", "cat", "--resume"], &["again"]);
        let messages = |number| provider.wait_request(number).body[pointer].clone();
        let (second, third) = (messages(2), messages(3));
        let sent = second.as_array().expect("a list");
        let later = third.as_array().expect("a list");
        let marks = |value: &Value| {
            value.to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "")
        };
        let begin = later.iter().take(sent.len()).map(marks).collect::<Vec<_>>();
        assert_eq!(begin, sent.iter().map(marks).collect::<Vec<_>>());
        second
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        fs::remove_file(log(&self.mark)).ok();
    }
}

fn data_url() -> String {
    format!("data:image/png;base64,{}", BASE64.encode(PNG))
}

#[test]
fn chat_completions_get_images_of_results_in_a_message_of_the_user() {
    let messages = Scene::new(OPENAI).check(calls_for_image(), "messages");
    let expected = json!([
        { "role": "tool", "tool_call_id": "call_a", "content": SHOWN },
        { "role": "user", "content": [
            { "type": "text", "text": "[The images of the result of act, in order:]" },
            { "type": "image_url", "image_url": { "url": data_url(), "detail": "auto" } },
        ] },
    ]);
    assert_eq!(json!(messages.as_array().expect("a list")[2..]), expected);
}

#[test]
fn responses_get_images_in_a_result() {
    let input = Scene::new(responses::RESPONSES).check(responses::calls_for_image(), "input");
    let output = json!([
        { "type": "input_image", "image_url": data_url(), "detail": "auto" },
        { "type": "input_text", "text": SHOWN },
    ]);
    let expected = json!({ "type": "function_call_output", "call_id": "call_a", "output": output });
    assert_eq!(input[2], expected);
}

#[test]
fn anthropic_gets_images_in_a_result() {
    let scene = Scene::new(anthropic::ANTHROPIC);
    let messages = scene.check(anthropic::calls_for_image(), "messages");
    let source = json!({ "type": "base64", "media_type": "image/png", "data": BASE64.encode(PNG) });
    let expected = json!([
        { "type": "text", "text": SHOWN },
        { "type": "image", "source": source },
    ]);
    assert_eq!(messages[2]["content"][0]["content"], expected);
}

#[test]
fn gemini_gets_images_in_a_result() {
    let contents = Scene::new(gemini::GEMINI).check(gemini::calls_for_image(), "contents");
    let data = json!({ "mimeType": "image/png", "data": BASE64.encode(PNG) });
    let expected = json!([{ "functionResponse": {
        "name": "act", "response": { "output": SHOWN }, "parts": [{ "inlineData": data }],
    } }]);
    assert_eq!(contents[2]["parts"], expected);
}

#[test]
fn ollama_gets_images_with_a_result() {
    let messages = Scene::new(ollama::OLLAMA).check(ollama::calls_for_image(), "messages");
    let result = &messages[2];
    assert_eq!((&result["role"], &result["content"]), (&json!("tool"), &json!(SHOWN)));
    assert_eq!(result["images"], json!([BASE64.encode(PNG)]));
}

/// An image that is too large, or damaged, says nothing about later ones.
#[test]
fn an_image_that_is_refused_costs_no_other_image() {
    for (status, words) in [
        (400, "messages.2.content.1.image_url: image exceeds 5 MB maximum"),
        (400, "Could not process image"),
        (413, "the body is too large"),
    ] {
        let error = json!({ "error": { "message": words } }).to_string();
        let refusal = vec![Step::Status(status, Vec::new(), error)];
        let look = calls_for_image;
        let provider =
            Provider::start(vec![look(), refusal, says("no cat"), look(), says("a cat")]);
        let scene = Scene::new(OPENAI);
        let servers = scene.folder.name("servers");
        let mut server = openai(&provider, &["--mcp-config", &servers, "--allow", "act"]).start();
        assert_eq!(server.turn("first", "look"), "ok", "{words}");
        server.send(r#"{"requestId":"drop","edit":{"dropLastTurn":{}}}"#);
        assert_eq!(server.wait_done("drop"), "ok", "{words}");
        assert_eq!(server.turn("second", "look"), "ok", "{words}");
        server.finish();
        let has_image =
            |number| provider.wait_request(number).body.to_string().contains("data:image/png");
        assert_eq!([1, 2, 3, 4, 5].map(has_image), [false, true, false, false, true], "{words}");
    }
}

/// The model takes no images: it reads the note, in this call and in later ones.
#[test]
fn a_model_that_takes_no_images_gets_the_note() {
    let refusals = [
        (400, "Failed to deserialize: messages[3]: unknown variant `image_url`, expected `text`"),
        (404, "No endpoints found that support image input"),
        (500, "image input is not supported - hint: you may need to provide the mmproj"),
    ];
    for (status, words) in refusals {
        let error = json!({ "error": { "message": words } }).to_string();
        let refusal = vec![Step::Status(status, Vec::new(), error)];
        let scripts = vec![calls_for_image(), refusal, says("a cat"), says("once more")];
        let provider = Provider::start(scripts);
        let stderr = Scene::new(OPENAI).process(&provider, &[], &["look", "again"]);
        let line = "may refuse: the images in the results of tools";
        assert_eq!(stderr.matches(line).count(), 1, "{stderr}");
        let has_image =
            |number| provider.wait_request(number).body.to_string().contains("data:image/png");
        assert_eq!([1, 2, 3, 4].map(has_image), [false, true, false, false], "{words}");
        for number in [3, 4] {
            let body = provider.wait_request(number).body;
            assert_eq!(body["messages"][2]["content"], NOTED, "{body}");
        }
    }
}
