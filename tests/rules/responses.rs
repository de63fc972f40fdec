//! OpenAI's Responses (<https://platform.openai.com/docs/api-reference/responses/create>), read as
//! strictly as servers do that check `input` with the types of OpenAI's own client
//! (`ResponseInputItemParam`): vLLM, SGLang, Azure.

use super::{Broken, is_name, is_object_text, list, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Bytes of a call's id.
const ID_BYTES_MAX: usize = 64;

pub(super) fn check(body: &Value, broken: &mut Broken) {
    broken.expect_tools(list(&body["tools"]).iter().map(|tool| &tool["name"]));
    let items = list(&body["input"]);
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    let mut kind = "";
    for (at, item) in items.iter().enumerate() {
        let place = format!("input[{at}]");
        let before = kind;
        kind = match (text(&item["type"]), text(&item["role"])) {
            ("" | "message", role) => role,
            (kind, _) => kind,
        };
        let is_of_answer = matches!(kind, "assistant" | "reasoning" | "function_call");
        let rule = "what the model wrote follows a reasoning";
        broken.expect(before != "reasoning" || is_of_answer, &place, rule);
        // A text of the same answer may stand between its calls, and its reasoning, too.
        let goes_on = is_of_answer && before != "function_call_output";
        let may_follow = open.is_empty() || goes_on || kind == "function_call_output";
        broken.expect(may_follow, &place, "the results of all calls follow their answer");
        match kind {
            "system" | "developer" | "user" => input(item, &place, broken),
            "assistant" => answer(item, &place, broken),
            "reasoning" => reasoning(item, &place, broken),
            "function_call" => {
                let id = text(&item["call_id"]);
                let is_id = (1..=ID_BYTES_MAX).contains(&id.len());
                broken.expect(is_id, &place, "the id of a call has its length");
                broken.expect(ids.insert(id), &place, "ids of calls are unique");
                let has_name = is_name(text(&item["name"]));
                broken.expect(has_name, &place, "the name of a called tool has its pattern");
                let rule = "arguments are the text of an object";
                broken.expect(is_object_text(&item["arguments"]), &place, rule);
                open.insert(id);
            }
            "function_call_output" => {
                let is_open = open.remove(text(&item["call_id"]));
                broken.expect(is_open, &place, "a result is that of a call before it");
                if let Value::Array(parts) = &item["output"] {
                    input_parts(parts, &place, broken);
                } else {
                    broken.expect(item["output"].is_string(), &place, "a result is a text");
                }
            }
            _ => broken.expect(false, &place, "there is no such item"),
        }
    }
    broken.expect(open.is_empty(), "input", "each call has its result");
    let may_be_last = matches!(kind, "user" | "function_call_output");
    broken.expect(may_be_last, "input", "the last one is the user's or a result");
}

fn input(item: &Value, place: &str, broken: &mut Broken) {
    let Some(parts) = item["content"].as_array() else {
        return broken.expect_text(&item["content"], place);
    };
    input_parts(parts, place, broken);
}

fn input_parts(parts: &[Value], place: &str, broken: &mut Broken) {
    broken.expect(!parts.is_empty(), place, "there are parts");
    for part in parts {
        let is_known = matches!(text(&part["type"]), "input_text" | "input_image" | "input_file");
        broken.expect(is_known, place, "a part is of the input");
        if part["type"] == "input_text" {
            broken.expect_text(&part["text"], place);
        }
        if part["type"] == "input_image" {
            broken.expect_text(&part["image_url"], place);
        }
    }
}

/// A text of the model: an `EasyInputMessage`, or all of a `ResponseOutputMessage`.
fn answer(item: &Value, place: &str, broken: &mut Broken) {
    let Some(parts) = item["content"].as_array() else {
        return broken.expect_text(&item["content"], place);
    };
    let is_whole = item["type"] == "message"
        && ["id", "status"].iter().all(|name| item[*name].is_string())
        && parts.iter().all(|part| part["annotations"].is_array() && part["text"].is_string());
    broken.expect(is_whole, place, "an answer of parts has id, status and annotations");
}

fn reasoning(item: &Value, place: &str, broken: &mut Broken) {
    let has_id = item["id"].as_str().is_some_and(|id| !id.is_empty());
    broken.expect(has_id, place, "a reasoning has an id");
    broken.expect(item["summary"].is_array(), place, "a reasoning has a summary");
    // Nothing is stored at the provider, which knows an item only by its content.
    let has_content = !text(&item["encrypted_content"]).is_empty();
    broken.expect(has_content, place, "a reasoning has its content");
}
