//! Ollama's `POST /api/chat` (<https://docs.ollama.com/api/chat>); the types that it reads a request
//! with are in `api/types.go` of its source.

use super::{Broken, is_name, list, text};
use serde_json::Value;

pub(super) fn check(body: &Value, broken: &mut Broken) {
    broken.expect_tools(list(&body["tools"]).iter().map(|tool| &tool["function"]["name"]));
    let messages = list(&body["messages"]);
    // Names of the called tools whose results are still to come: older servers know no ids.
    let mut open: Vec<&Value> = Vec::new();
    let mut before = "system";
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        let (role, content) = (text(&message["role"]), &message["content"]);
        if role != "tool" {
            let rule = "the results of all calls follow their message";
            broken.expect(open.is_empty(), &place, rule);
            open.clear();
        }
        let images = list(&message["images"]);
        let may_have = images.is_empty() || matches!(role, "user" | "tool");
        broken.expect(may_have, &place, "prompts and results have images");
        for image in images {
            broken.expect_text(image, &place);
        }
        match role {
            "system" => broken.expect_text(content, &place),
            "user" if images.is_empty() => broken.expect_text(content, &place),
            "user" => {}
            "assistant" => {
                let has_text = !text(content).trim().is_empty();
                let calls = list(&message["tool_calls"]);
                let rule = "an answer has a text or calls";
                broken.expect(has_text || !calls.is_empty(), &place, rule);
                for call in calls {
                    let function = &call["function"];
                    let has_name = is_name(text(&function["name"]));
                    broken.expect(has_name, &place, "the name of a called tool has its pattern");
                    let rule = "arguments are an object";
                    broken.expect(function["arguments"].is_object(), &place, rule);
                }
                open = calls.iter().rev().map(|call| &call["function"]["name"]).collect();
            }
            "tool" => {
                let is_its = open.pop().is_some_and(|name| *name == message["tool_name"]);
                broken.expect(is_its, &place, "results are in the order of their calls");
                broken.expect(content.is_string(), &place, "a result is a text");
            }
            _ => broken.expect(false, &place, "there is no such role"),
        }
        let is_repeated = role == before && matches!(role, "user" | "assistant");
        broken.expect(!is_repeated, &place, "user and assistant alternate");
        before = role;
    }
    broken.expect(open.is_empty(), "messages", "each call has its result");
    // A model goes on with an answer that stands last.
    let may_be_last = matches!(before, "user" | "tool") && !messages.is_empty();
    broken.expect(may_be_last, "messages", "the last one is the user's or a result");
}
