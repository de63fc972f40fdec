//! OpenAI's chat completions (<https://platform.openai.com/docs/api-reference/chat/create>), and what
//! Mistral wants besides (<https://mistralai.github.io/mistral-common/usage/tools/>, and the checks of
//! `mistral_common.protocol.instruct.validator`).

use super::{Broken, is_name, is_object_text, list, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Bytes of a call's id.
const ID_BYTES_MAX: usize = 64;

/// Characters of a call's id at Mistral.
const MISTRAL_ID_CHARS: usize = 9;

pub(super) fn check(body: &Value, is_mistral: bool, broken: &mut Broken) {
    broken.expect_tools(list(&body["tools"]).iter().map(|tool| &tool["function"]["name"]));
    let may_have_options = !is_mistral || body.get("stream_options").is_none();
    broken.expect(may_have_options, "stream_options", "Mistral takes none");
    let messages = list(&body["messages"]);
    // Calls whose results are still to come.
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut before = "system";
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        let role = text(&message["role"]);
        if role != "tool" {
            let rule = "the results of all calls follow their message";
            broken.expect(open.is_empty(), &place, rule);
            open.clear();
        }
        match role {
            "system" | "developer" => broken.expect_text(&message["content"], &place),
            "user" => user(message, &place, broken),
            "assistant" => {
                let has_text = !text(&message["content"]).trim().is_empty();
                let calls = list(&message["tool_calls"]);
                let rule = "an answer has a text or calls";
                broken.expect(has_text || !calls.is_empty(), &place, rule);
                for call in calls {
                    check_call(call, is_mistral, &place, broken);
                    let is_new = open.insert(text(&call["id"]));
                    broken.expect(is_new, &place, "the ids of an answer's calls are unique");
                }
            }
            "tool" => {
                let is_open = open.remove(text(&message["tool_call_id"]));
                broken.expect(is_open, &place, "a result is that of a call just before it");
                broken.expect(message["content"].is_string(), &place, "a result is a text");
            }
            _ => broken.expect(false, &place, "there is no such role"),
        }
        // As the templates of many models have it; OpenAI itself takes more.
        let is_repeated = role == before && matches!(role, "user" | "assistant");
        broken.expect(!is_repeated, &place, "user and assistant alternate");
        let is_odd = is_mistral && before == "tool" && role == "user";
        broken.expect(!is_odd, &place, "at Mistral no user follows a result");
        before = role;
    }
    broken.expect(open.is_empty(), "messages", "each call has its result");
    let answer = messages.last().filter(|message| is_mistral && message["role"] == "assistant");
    let is_marked = answer.is_none_or(|message| message["prefix"] == true);
    broken.expect(is_marked, "messages", "at Mistral an answer at the end has `prefix`");
    let may_be_last = matches!(before, "user" | "tool") && !messages.is_empty();
    broken.expect(may_be_last, "messages", "the last one is the user's or a result");
}

fn user(message: &Value, place: &str, broken: &mut Broken) {
    let content = &message["content"];
    let Some(parts) = content.as_array() else { return broken.expect_text(content, place) };
    broken.expect(!parts.is_empty(), place, "there are parts");
    for part in parts {
        match text(&part["type"]) {
            "text" => broken.expect_text(&part["text"], place),
            "image_url" => broken.expect_text(&part["image_url"]["url"], place),
            "file" => broken.expect_text(&part["file"]["file_data"], place),
            _ => broken.expect(false, place, "there is no such part"),
        }
    }
}

fn check_call(call: &Value, is_mistral: bool, place: &str, broken: &mut Broken) {
    let (id, function) = (text(&call["id"]), &call["function"]);
    broken.expect(is_id(id, is_mistral), place, "the id of a call has its pattern");
    broken.expect(call["type"] == "function", place, "a call is of a function");
    let has_name = is_name(text(&function["name"]));
    broken.expect(has_name, place, "the name of a called tool has its pattern");
    let rule = "arguments are the text of an object";
    broken.expect(is_object_text(&function["arguments"]), place, rule);
}

fn is_id(id: &str, is_mistral: bool) -> bool {
    match is_mistral {
        true => id.len() == MISTRAL_ID_CHARS && id.bytes().all(|it| it.is_ascii_alphanumeric()),
        false => (1..=ID_BYTES_MAX).contains(&id.len()),
    }
}
