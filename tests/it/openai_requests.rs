//! What the engines for OpenAI's two interfaces send of a submit's images, files, settings and schema.

use crate::frames::errors;
use crate::provider::{Provider, Step, says};
use crate::server::{KEY, Launch};
use serde_json::{Value, json};

const IMAGE: &str = "data:image/png;base64,iVBORw0KGgo=";
const DOCUMENT: &str = "data:application/pdf;base64,JVBERi0xLjcK";

/// The body of the request that a submit with these members becomes; its end is one error if the
/// provider has no request to answer.
fn sent(engine: &str, answer: Vec<Step>, members: &Value) -> Option<Value> {
    let provider = Provider::start(vec![answer]);
    let args = ["rpc", "--engine", engine, "--model", "scripted"];
    let launch = Launch::new(&args).secret("OPENAI_API_KEY", KEY);
    let mut server = launch.env("OPENAI_BASE_URL", provider.base_url()).start();
    let mut submit = json!({ "prompt": "what is this?" });
    for (name, value) in members.as_object().expect("an object") {
        submit[name] = value.clone();
    }
    server.send(json!({ "requestId": "r1", "submit": submit }).to_string());
    let done = server.wait_done("r1");
    let transcript = server.finish();
    if provider.requests() == 0 {
        assert_eq!(done, "failed");
        assert_eq!(errors(&transcript.frames, "r1").len(), 1);
        let error = transcript.frames.iter().find(|frame| frame.error().is_some());
        let error = error.expect("an error");
        assert!(error.text("/error/detail").starts_with("config"), "{error:?}");
        assert!(error.text("/error/message").contains("can't be sent"), "{error:?}");
        return None;
    }
    assert_eq!(done, "ok");
    Some(provider.wait_request(1).body)
}

/// A short answer of the responses engine's server.
fn responds() -> Vec<Step> {
    let delta = json!({ "type": "response.output_text.delta", "delta": "{}" });
    let end = json!({ "type": "response.completed", "response": { "status": "completed" } });
    [delta, end].iter().map(|event| Step::Event(event.to_string())).collect()
}

#[test]
fn images_and_files_of_a_submit_reach_the_provider() {
    let members = json!({ "attachments": [
        { "url": IMAGE, "filename": "a.png" },
        { "url": "https://example.com/b.jpg", "kind": "image" },
        { "url": DOCUMENT, "filename": "c.pdf" },
        { "url": "data:text/plain,hi", "filename": "d.txt" },
    ] });
    let file = "<file name=\"d.txt\">\nhi\n</file>";
    let chat = sent("openai", says("{}"), &members).expect("a request");
    let image =
        |url: &str| json!({ "type": "image_url", "image_url": { "url": url, "detail": "auto" } });
    let expected = json!([
        image(IMAGE),
        image("https://example.com/b.jpg"),
        { "type": "file", "file": { "filename": "c.pdf", "file_data": DOCUMENT } },
        { "type": "text", "text": file },
        { "type": "text", "text": "what is this?" },
    ]);
    assert_eq!(chat["messages"][0]["content"], expected);
    let responses = sent("responses", responds(), &members).expect("a request");
    let image = |url: &str| json!({ "type": "input_image", "image_url": url, "detail": "auto" });
    let expected = json!([
        image(IMAGE),
        image("https://example.com/b.jpg"),
        { "type": "input_file", "filename": "c.pdf", "file_data": DOCUMENT },
        { "type": "input_text", "text": file },
        { "type": "input_text", "text": "what is this?" },
    ]);
    assert_eq!(responses["input"][0]["content"], expected);
}

#[test]
fn what_a_provider_cannot_take_is_an_error_before_the_call() {
    let sound =
        json!({ "attachments": [{ "url": "data:audio/wav;base64,UklGRiQAAABXQVZFZm10IA==" }] });
    let document = json!({ "attachments": [{ "url": "https://example.com/c.pdf" }] });
    assert_eq!(sent("openai", says("a"), &sound), None);
    assert_eq!(sent("responses", responds(), &sound), None);
    // An address of a document has a place in one interface alone.
    assert_eq!(sent("openai", says("a"), &document), None);
    assert!(sent("responses", responds(), &document).is_some());
}

#[test]
fn settings_and_a_schema_of_a_submit_reach_the_provider() {
    let schema = json!({ "type": "object", "properties": {} });
    let settings = json!({ "temperature": 0.5, "max_tokens": 100, "seed": 7,
        "reasoning_effort": "low", "extra_body": { "user": "me" } });
    let members = json!({ "settings": settings, "responseSchema": schema });
    let chat = sent("openai", says("{}"), &members).expect("a request");
    let expected = json!({ "temperature": 0.5, "max_tokens": 100, "seed": 7,
        "reasoning_effort": "low", "user": "me" });
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&chat[name], value, "{chat}");
    }
    assert_eq!(chat["response_format"]["json_schema"]["schema"], schema);
    let responses = sent("responses", responds(), &members).expect("a request");
    let expected = json!({ "temperature": 0.5, "max_output_tokens": 100,
        "reasoning": { "effort": "low" }, "user": "me" });
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&responses[name], value, "{responses}");
    }
    assert_eq!(responses["text"]["format"]["schema"], schema);
    assert!(responses.get("seed").is_none(), "{responses}");
}
