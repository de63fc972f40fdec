//! Google's `generateContent` (<https://ai.google.dev/api/generate-content>), and of its guides those
//! about function calling (<https://ai.google.dev/gemini-api/docs/function-calling>) and signatures
//! (<https://ai.google.dev/gemini-api/docs/thought-signatures>).

use super::{Broken, is_name, list, text};
use serde_json::Value;

pub(super) fn check(body: &Value, model: &str, broken: &mut Broken) {
    let declared = list(&body["tools"]).iter();
    let declared = declared.flat_map(|tools| list(&tools["functionDeclarations"]));
    let names: Vec<_> = declared.map(|tool| &tool["name"]).collect();
    for name in &names {
        broken.expect(
            begins_well(text(name)),
            "tools",
            "a name begins with a letter or an underscore",
        );
    }
    broken.expect_tools(names.into_iter());
    for part in list(&body["systemInstruction"]["parts"]) {
        broken.expect_text(&part["text"], "systemInstruction");
    }
    let contents = list(&body["contents"]);
    let mut calls: Vec<&Value> = Vec::new();
    let mut before = "";
    for (at, content) in contents.iter().enumerate() {
        let place = format!("contents[{at}]");
        let (role, parts) = (text(&content["role"]), list(&content["parts"]));
        broken.expect(!parts.is_empty(), &place, "a content has parts");
        for part in parts {
            check_part(part, role, &place, broken);
            check_images(&part["functionResponse"], model, &place, broken);
        }
        let results: Vec<_> = parts.iter().filter_map(|it| it.get("functionResponse")).collect();
        check_results(&calls, &results, &place, broken);
        calls = parts.iter().filter_map(|part| part.get("functionCall")).collect();
        let is_answer = role == "model";
        broken.expect(is_answer || role == "user", &place, "there is no such role");
        let rule = "an answer follows the user or results";
        broken.expect(!is_answer || before == "user", &place, rule);
        before = role;
    }
    broken.expect(before == "user", "contents", "the last one is the user's or has results");
    if needs_signatures(model) {
        check_signatures(contents, broken);
    }
}

fn check_part(part: &Value, role: &str, place: &str, broken: &mut Broken) {
    const KINDS: [&str; 5] = ["text", "functionCall", "functionResponse", "inlineData", "fileData"];
    let kinds = KINDS.iter().filter(|kind| part.get(**kind).is_some()).count();
    broken.expect(kinds == 1, place, "a part is of one kind");
    let is_signed = part.get("thoughtSignature").is_some();
    if let Some(said) = part.get("text")
        && !is_signed
    {
        broken.expect_text(said, place);
    }
    let is_own = is_signed || part.get("thought").is_some() || part.get("functionCall").is_some();
    broken.expect(!is_own || role == "model", place, "only an answer has calls and thoughts");
    for (kind, arguments) in [("functionCall", "args"), ("functionResponse", "response")] {
        let Some(function) = part.get(kind) else { continue };
        let name = text(&function["name"]);
        let is_fine = is_name(name) && begins_well(name);
        broken.expect(is_fine, place, "the name of a tool has its pattern");
        broken.expect(function[arguments].is_object(), place, "arguments and results are objects");
    }
}

/// From Gemini 3 on, a result may have images (<https://ai.google.dev/gemini-api/docs/function-calling>,
/// "Multimodal function responses").
fn check_images(result: &Value, model: &str, place: &str, broken: &mut Broken) {
    let images = list(&result["parts"]);
    let may_have = images.is_empty() || needs_signatures(model);
    broken.expect(may_have, place, "older models take no images in a result");
    for image in images {
        let data = &image["inlineData"];
        let is_image = text(&data["mimeType"]).starts_with("image/");
        let is_one = is_image && !text(&data["data"]).is_empty();
        broken.expect(is_one, place, "a part of a result is an image");
    }
}

/// "Must start with a letter or an underscore."
fn begins_well(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// "Please ensure that the number of function response parts is equal to the number of function call
/// parts of the function call turn."
fn check_results(calls: &[&Value], results: &[&Value], place: &str, broken: &mut Broken) {
    let rule = "each call has its result in the next content, and only there";
    broken.expect(calls.len() == results.len(), place, rule);
    for (call, result) in calls.iter().zip(results) {
        let is_its = call["name"] == result["name"] && call.get("id") == result.get("id");
        broken.expect(is_its, place, "results are in the order of their calls");
    }
}

/// From Gemini 3 on, the first call of each step of the turn that goes on has to be signed.
fn check_signatures(contents: &[Value], broken: &mut Broken) {
    let is_prompt = |content: &Value| {
        let is_result = |part: &Value| part.get("functionResponse").is_some();
        content["role"] == "user" && !list(&content["parts"]).iter().any(is_result)
    };
    let begin = contents.iter().rposition(is_prompt).unwrap_or(0);
    for content in &contents[begin..] {
        let mut parts = list(&content["parts"]).iter();
        let first = parts.find(|part| part.get("functionCall").is_some());
        let is_signed = first.is_none_or(|part| !text(&part["thoughtSignature"]).is_empty());
        broken.expect(is_signed, "contents", "the first call of a step is signed");
    }
}

fn needs_signatures(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default();
    !["gemini-1", "gemini-2", "gemma", "learnlm"].iter().any(|start| name.starts_with(start))
}
