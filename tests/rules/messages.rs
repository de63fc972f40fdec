//! Anthropic's Messages (<https://platform.claude.com/docs/en/api/messages>), and of its guides those
//! about tools (<https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use>) and
//! thinking (<https://platform.claude.com/docs/en/build-with-claude/extended-thinking>).

use super::{Broken, is_name, is_word, list, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Marks of the cache in one request.
const MARKS_MAX: usize = 4;

/// Tokens of the smallest budget for thinking.
const BUDGET_TOKENS_MIN: u64 = 1_024;

/// Types of images.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// "Thinking isn't compatible with `temperature` or `top_k` modifications": this is the default.
const THINKING_TEMPERATURE: f64 = 1.0;

pub(super) fn check(body: &Value, broken: &mut Broken) {
    broken.expect_tools(list(&body["tools"]).iter().map(|tool| &tool["name"]));
    for block in list(&body["system"]) {
        broken.expect_text(&block["text"], "system");
    }
    generation(body, broken);
    let messages = list(&body["messages"]);
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    let mut calls: BTreeSet<&str> = BTreeSet::new();
    let mut before = "assistant";
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        let (role, blocks) = (text(&message["role"]), list(&message["content"]));
        let is_role = matches!(role, "user" | "assistant") && role != before;
        broken.expect(is_role, &place, "user and assistant alternate, from the user on");
        broken.expect(!blocks.is_empty(), &place, "a message has content");
        if role == "assistant" {
            let signs = text(&body["model"]).contains("claude");
            calls = answer((blocks, signs), &place, broken);
            for id in &calls {
                broken.expect(ids.insert(id), &place, "ids of calls are unique");
            }
        } else {
            user(blocks, std::mem::take(&mut calls), &place, broken);
        }
        before = role;
    }
    broken.expect(before == "user", "messages", "the last one is the user's");
    if let Some(last) = messages.last().filter(|last| last["role"] == "assistant") {
        let said = list(&last["content"]).last().map_or("", |block| text(&block["text"]));
        let rule = "an answer at the end has no white space at its end";
        broken.expect(said == said.trim_end(), "messages", rule);
        broken.expect(!is_budgeted(body), "thinking", "no answer stands last");
    }
    thinking(body, messages, broken);
    let marks = body.to_string().matches(r#""cache_control":"#).count();
    broken.expect(marks <= MARKS_MAX, "cache_control", "there are four at most");
}

fn generation(body: &Value, broken: &mut Broken) {
    let max_tokens = body["max_tokens"].as_u64().unwrap_or_default();
    broken.expect(max_tokens > 0, "max_tokens", "there is a limit");
    if let Some(budget) = body["thinking"]["budget_tokens"].as_u64() {
        let is_budget = (BUDGET_TOKENS_MIN..max_tokens).contains(&budget);
        broken.expect(is_budget, "thinking", "a budget is from 1,024 to below the limit");
    }
    if is_budgeted(body) || body["thinking"]["type"] == "adaptive" {
        let temperature = body["temperature"].as_f64();
        let is_default = temperature.is_none_or(|it| it == THINKING_TEMPERATURE);
        broken.expect(is_default, "temperature", "with thinking it is not changed");
        let is_high = body["top_p"].as_f64().is_none_or(|it| (0.95..=1.0).contains(&it));
        broken.expect(is_high, "top_p", "with thinking it is 0.95 at least");
    }
}

fn is_budgeted(body: &Value) -> bool {
    body["thinking"]["type"] == "enabled"
}

/// Gives the ids of the calls. Models of others than Anthropic sign nothing.
fn answer<'v>(
    (blocks, signs): (&'v [Value], bool),
    place: &str,
    broken: &mut Broken,
) -> BTreeSet<&'v str> {
    let mut calls = BTreeSet::new();
    for block in blocks {
        match text(&block["type"]) {
            "text" => broken.expect_text(&block["text"], place),
            "thinking" => {
                let signature = block["signature"].as_str();
                let is_signed = signature.is_some_and(|it| !signs || !it.is_empty());
                broken.expect(is_signed, place, "thinking is signed");
                broken.expect(block["thinking"].is_string(), place, "thinking has a text");
                let is_unmarked = block.get("cache_control").is_none();
                broken.expect(is_unmarked, place, "thinking has no mark of the cache");
            }
            "redacted_thinking" => {
                broken.expect(!text(&block["data"]).is_empty(), place, "thinking has its data");
            }
            "tool_use" => {
                let id = text(&block["id"]);
                let is_id = is_word(id) && !id.is_empty();
                broken.expect(is_id, place, "the id of a call has its pattern");
                broken.expect(calls.insert(id), place, "ids of calls are unique");
                let has_name = is_name(text(&block["name"]));
                broken.expect(has_name, place, "the name of a called tool has its pattern");
                broken.expect(block["input"].is_object(), place, "arguments are an object");
            }
            _ => broken.expect(false, place, "there is no such block in an answer"),
        }
    }
    let last_is_thinking = blocks.last().is_some_and(is_thinking);
    broken.expect(!last_is_thinking, place, "the final block is no thinking");
    calls
}

fn user(blocks: &[Value], mut calls: BTreeSet<&str>, place: &str, broken: &mut Broken) {
    let mut is_at_results = true;
    for block in blocks {
        match text(&block["type"]) {
            "tool_result" => {
                broken.expect(is_at_results, place, "results come first");
                let is_open = calls.remove(text(&block["tool_use_id"]));
                broken.expect(is_open, place, "a result is that of a call just before it");
                result(block, place, broken);
            }
            "text" => {
                is_at_results = false;
                broken.expect_text(&block["text"], place);
            }
            "image" | "document" => is_at_results = false,
            _ => broken.expect(false, place, "there is no such block of a user"),
        }
    }
    broken.expect(calls.is_empty(), place, "the results of all calls follow their message");
}

/// A text, or blocks of texts and images; an error is a text.
fn result(result: &Value, place: &str, broken: &mut Broken) {
    let content = &result["content"];
    if result["is_error"] == true {
        return broken.expect_text(content, place);
    }
    let Some(blocks) = content.as_array() else {
        return broken.expect(content.is_string(), place, "a result is a text or blocks");
    };
    for block in blocks {
        match text(&block["type"]) {
            "text" => broken.expect_text(&block["text"], place),
            "image" => {
                let source = &block["source"];
                let is_image = IMAGES.contains(&text(&source["media_type"]));
                let has_data = source["type"] == "base64" && !text(&source["data"]).is_empty();
                broken.expect(is_image && has_data, place, "an image has a known type and data");
            }
            _ => broken.expect(false, place, "there is no such block in a result"),
        }
    }
    broken.expect(!blocks.is_empty(), place, "a result has blocks");
}

/// "When `thinking` is enabled, a final `assistant` message must start with a thinking block
/// (preceeding the lastmost set of `tool_use` and `tool_result` blocks)." All messages of a tool-use loop are one turn of
/// the assistant, which is that message: only its first one begins with thinking.
fn thinking(body: &Value, messages: &[Value], broken: &mut Broken) {
    let has_results =
        |message: &Value| list(&message["content"]).iter().any(|it| it["type"] == "tool_result");
    let (mut answers, mut rest) = (Vec::new(), messages);
    while let [before @ .., answer, results] = rest
        && has_results(results)
    {
        answers.push(answer);
        rest = before;
    }
    if is_budgeted(body) && !answers.is_empty() {
        let begins = |answer: &&Value| list(&answer["content"]).first().is_some_and(is_thinking);
        let starts_well = answers.iter().any(begins);
        broken.expect(starts_well, "messages", "the last round of tools begins with thinking");
    }
}

fn is_thinking(block: &Value) -> bool {
    matches!(text(&block["type"]), "thinking" | "redacted_thinking")
}
