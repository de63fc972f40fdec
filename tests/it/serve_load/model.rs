//! The model of the load: what it answers is known from the prompt, which may ask for a tool.

use crate::paced_provider::{Answer, delta, end};
use crate::rules::broken_rules;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Deltas of each answer.
const DELTAS: usize = 10;

/// The tool that clients run.
pub(super) const TOOL: &str = "look_up";

/// A prompt that no other is equal to.
pub(super) fn prompt(client: usize, number: u64, wants_tool: bool) -> String {
    let tool = if wants_tool { "-tool" } else { "" };
    format!("ask-{client}-{number}{tool}")
}

/// The text of the answer to a prompt.
pub(super) fn text(prompt: &str) -> String {
    texts(prompt).collect()
}

fn texts(prompt: &str) -> impl Iterator<Item = String> + Send + use<> {
    let prompt = prompt.to_owned();
    (0..DELTAS).map(move |number| format!("{prompt}:{number} "))
}

/// The model; notes the requests that a provider would refuse.
pub(super) fn model(broken: Arc<Mutex<Vec<String>>>) -> impl Fn(&Value) -> Answer + Send + Sync {
    move |body: &Value| -> Answer {
        let rules = broken_rules("/v1/chat/completions", "", body);
        broken.lock().expect("no panic").extend(rules);
        let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_prompt = |it: &&Value| it["role"] == "user";
        let asked = messages.iter().rfind(is_prompt).map(|it| it["content"].to_string());
        let asked = asked.unwrap_or_default();
        // Where an answer was cut off, the prompt after it says so as well.
        let mut words = asked.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let prompt = words.rfind(|it| it.starts_with("ask-")).unwrap_or_default();
        let is_result = messages.last().is_some_and(|it| it["role"] == "tool");
        if prompt.ends_with("-tool") && !is_result {
            let id = format!("call-{}", messages.len());
            let call = json!({ "name": TOOL, "arguments": format!(r#"{{"of":"{prompt}"}}"#) });
            let calls = json!({ "tool_calls": [{ "index": 0, "id": id, "function": call }] });
            return Box::new([delta(&calls)].into_iter().chain(end("tool_calls")));
        }
        let deltas = texts(prompt).map(|text| delta(&json!({ "content": text })));
        Box::new(deltas.chain(end("stop")))
    }
}
