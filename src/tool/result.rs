//! The result of a tool for the model: a text, and images.

use crate::conversation::event::ToolResult;
use crate::conversation::tool_images::note;
use crate::protocol::attachment::{
    ATTACHMENT_BYTES_MAX, ATTACHMENTS_MAX, Attachment, PROMPT_BYTES_MAX,
};
use crate::protocol::base64::LENIENT_BASE64;
use crate::tool::listing::cut;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;
use std::slice;

/// Longest URI, name or media type that is repeated to the model, in bytes.
const LABEL_BYTES_MAX: usize = 1024;

/// Strings in structured content that are compared with the data of images, in bytes.
const DATA_BYTES_MIN: usize = 256;

/// Members of a result that are about it, and not what the tool returned.
const ABOUT_RESULT: [&str; 3] = ["_meta", "isError", "resultType"];

/// Says that a tool returned nothing: an empty result looks like a lost one.
const NOTHING: &str = "[the tool returned nothing]";

/// The result of `tools/call` in `result`, in at most `bytes_max` bytes of the server's text and a
/// note that the rest was cut.
///
/// Text is passed on, also that of embedded resources; images, audio and other data are described. The
/// images of a success come beside the text, as far as the limits for attachments allow: providers
/// take none in an error.
/// Structured content follows where there is no text, or where it has values that the text does not
/// have and both fit. Some servers write a result in another form: its other members are passed on where it has
/// neither content nor structured content.
pub(super) fn render(result: &Value, bytes_max: usize) -> ToolResult {
    if let Some(kind) = unsupported(result) {
        let kind = cut(kind, LABEL_BYTES_MAX);
        let text = format!("the tool returned `{kind}`, which this program does not support");
        return ToolResult::Error(text);
    }
    let blocks = blocks(result);
    let parts = other_members(result).unwrap_or_else(|| parts(result, blocks, bytes_max));
    let text = limited(parts, bytes_max);
    if result.get("isError").and_then(Value::as_bool).unwrap_or(false) {
        return ToolResult::Error(text);
    }
    let images = images(blocks);
    match images.is_empty() {
        true => ToolResult::Success(text),
        false => ToolResult::WithImages { text, images: images.into() },
    }
}

/// The blocks of the content: a list, or one text or block in its place.
fn blocks(result: &Value) -> &[Value] {
    match result.get("content") {
        Some(Value::Array(blocks)) => blocks,
        Some(block @ (Value::String(_) | Value::Object(_))) => slice::from_ref(block),
        Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => &[],
    }
}

/// The members of a result that has neither content nor structured content, as JSON, if it has others.
fn other_members(result: &Value) -> Option<Vec<String>> {
    let is_there = |name: &str| result.get(name).is_some_and(|value| !value.is_null());
    if is_there("content") || is_there("structuredContent") {
        return None;
    }
    let mut members = result.as_object()?.clone();
    members.retain(|name, value| !ABOUT_RESULT.contains(&name.as_str()) && !value.is_null());
    (!members.is_empty()).then(|| vec![Value::Object(members).to_string()])
}

/// The images in the result, as many as attachments of one prompt.
fn images(blocks: &[Value]) -> Vec<Attachment> {
    let mut bytes_left = PROMPT_BYTES_MAX;
    let images = blocks.iter().filter_map(image).filter(|image| {
        let bytes = image.len_bytes();
        let fits = bytes <= ATTACHMENT_BYTES_MAX.min(bytes_left);
        bytes_left -= if fits { bytes } else { 0 };
        fits
    });
    images.take(ATTACHMENTS_MAX).collect()
}

/// The image in a block, or in its embedded resource. The bytes decide what it is.
pub(super) fn image(block: &Value) -> Option<Attachment> {
    let base64 = match block.get("type")?.as_str()? {
        "image" => block.get("data")?,
        "resource" => block.get("resource")?.get("blob")?,
        _ => return None,
    };
    Attachment::image(decoded(base64.as_str()?)?)
}

/// The data in `text`, which is base64; `None` if it is not.
pub(super) fn decoded(text: &str) -> Option<Vec<u8>> {
    LENIENT_BASE64.decode(base64_digits(text).as_bytes()).ok()
}

/// The digits of base64 as servers write it: also wrapped into lines, without padding, and as a `data:` URL.
fn base64_digits(text: &str) -> Cow<'_, str> {
    let in_url = text.strip_prefix("data:").and_then(|url| url.split_once(";base64,"));
    let text = in_url.map_or(text, |(_, base64)| base64);
    let digits = text.trim_end_matches(|c: char| c == '=' || c.is_ascii_whitespace());
    match digits.bytes().any(|byte| byte.is_ascii_whitespace()) {
        true => digits.split_ascii_whitespace().collect::<String>().into(),
        false => digits.into(),
    }
}

/// What the server returned in place of a result, if it did: a task to be asked about later, or a
/// question to a person.
fn unsupported(result: &Value) -> Option<&str> {
    let kind = result.get("resultType").and_then(Value::as_str);
    let kind = kind.filter(|kind| *kind != "complete");
    let is_task = result.get("content").is_none() && result.get("task").is_some();
    kind.or(is_task.then_some("task"))
}

/// The parts of the result, in order.
fn parts(result: &Value, blocks: &[Value], bytes_max: usize) -> Vec<String> {
    let structured = result.get("structuredContent").filter(|it| !it.is_null());
    let mut shown: Vec<String> = blocks.iter().map(described).collect();
    let has_text = blocks.iter().filter_map(text_of).any(|text| !text.trim().is_empty());
    // Some servers send the blocks a second time.
    let is_repeated = |value: &Value| value.as_object().is_some_and(|it| repeats(it, blocks));
    let structured = structured.filter(|value| !is_repeated(value));
    let Some(structured) = structured.map(|value| without_data(value, blocks)) else {
        return shown;
    };
    let text = structured.to_string();
    let shown_bytes: usize = shown.iter().map(|part| part.len() + 1).sum();
    if !has_text {
        shown.insert(0, text);
    } else if shown_bytes + text.len() <= bytes_max && !has_all(&shown.join("\n"), &structured) {
        shown.push(text);
    }
    shown
}

/// Whether `structured` has the `blocks` of the result, and nothing else.
fn repeats(structured: &Map<String, Value>, blocks: &[Value]) -> bool {
    let has_blocks = |value: &Value| value.as_array().is_some_and(|it| it.as_slice() == blocks);
    !structured.is_empty() && structured.values().all(has_blocks)
}

/// The text of a block, if it is one.
fn text_of(block: &Value) -> Option<&str> {
    match (block, block.get("type")) {
        (Value::String(text), _) => Some(text),
        // Some servers leave the type out.
        (_, Some(kind)) if kind != "text" && !kind.is_null() => None,
        _ => block.get("text")?.as_str(),
    }
}

/// Whether `text` has each value that is in `structured`.
fn has_all(text: &str, structured: &Value) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '-' | '+'));
    let words = words.map(|word| word.trim_end_matches('.')).collect();
    has_values(text, &words, structured)
}

fn has_values(text: &str, words: &HashSet<&str>, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => words.contains(value.to_string().as_str()),
        Value::String(string) => {
            // A text that is JSON has the string in quotes and escaped.
            text.contains(string.trim()) || text.contains(&value.to_string())
        }
        Value::Array(items) => items.iter().all(|item| has_values(text, words, item)),
        Value::Object(members) => members.values().all(|item| has_values(text, words, item)),
    }
}

/// `value` without the base64 of blocks that are described anyway.
fn without_data(value: &Value, blocks: &[Value]) -> Value {
    match value {
        Value::String(text) if text.len() >= DATA_BYTES_MIN => {
            let same = blocks.iter().find(|block| block.get("data") == Some(value));
            same.map_or_else(|| value.clone(), |block| described(block).into())
        }
        Value::Array(items) => items.iter().map(|item| without_data(item, blocks)).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(key, it)| (key.clone(), without_data(it, blocks)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// A block as text.
pub(super) fn described(block: &Value) -> String {
    if let Some(text) = text_of(block) {
        return text.to_owned();
    }
    let member = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
    match member("type") {
        "text" => String::new(),
        kind @ ("image" | "audio") => data(kind, member("mimeType"), member("data"), ""),
        "resource" => block.get("resource").map_or_else(|| unknown("resource"), resource),
        "resource_link" => link(block),
        other => unknown(other),
    }
}

fn unknown(kind: &str) -> String {
    format!("[content of type `{}`, which can't be shown]", cut(kind, LABEL_BYTES_MAX))
}

/// Data that the model is not shown.
fn data(kind: &str, media_type: &str, base64: &str, uri: &str) -> String {
    let media_type = if media_type.is_empty() { "unknown type" } else { media_type };
    let media_type = cut(media_type, LABEL_BYTES_MAX);
    // The size that the data has: by it the note is known as that of its image.
    let bytes = base64_digits(base64).len() * 3 / 4;
    let of = if uri.is_empty() { String::new() } else { format!(" {}", cut(uri, LABEL_BYTES_MAX)) };
    note(&format!("{kind}{of}"), media_type, bytes)
}

fn resource(resource: &Value) -> String {
    let member = |name: &str| resource.get(name).and_then(Value::as_str);
    let uri = member("uri").unwrap_or_default();
    match (member("text"), member("blob")) {
        (Some(text), _) => format!("[resource {}]\n{text}", cut(uri, LABEL_BYTES_MAX)),
        (None, blob) => {
            let media_type = member("mimeType").unwrap_or_default();
            data("resource", media_type, blob.unwrap_or_default(), uri)
        }
    }
}

fn link(block: &Value) -> String {
    let member = |name: &str| block.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
    let uri = cut(member("uri").unwrap_or_default(), LABEL_BYTES_MAX);
    let labels = [member("title").or(member("name")), member("description"), member("mimeType")];
    let labels: Vec<_> = labels.into_iter().flatten().map(|it| cut(it, LABEL_BYTES_MAX)).collect();
    let about = if labels.is_empty() { String::new() } else { format!(": {}", labels.join(", ")) };
    format!("[link to the resource {uri}{about}]")
}

/// The parts as one text, cut after `bytes_max` bytes.
fn limited(parts: Vec<String>, bytes_max: usize) -> String {
    let text = parts.join("\n");
    if text.trim().is_empty() {
        return NOTHING.to_owned();
    }
    if text.len() <= bytes_max {
        return text;
    }
    let kept = cut(&text, bytes_max);
    format!(
        "{kept}\n[The result was cut here: it has {} bytes, of which the first {} are shown.]",
        text.len(),
        kept.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(result: Value, expected: &str) {
        assert_eq!(render(&result, 1000), ToolResult::Success(expected.to_owned()), "{result}");
    }

    #[test]
    fn every_kind_of_content_is_text() {
        let text = |text: &str| json!({"type": "text", "text": text});
        check(json!({"content": [text("a"), text("b")]}), "a\nb");
        check(json!({"content": []}), NOTHING);
        check(json!({"content": [text("")]}), NOTHING);
        check(json!({}), NOTHING);
        check(json!(null), NOTHING);
        check(json!("odd"), NOTHING);
        let image = json!({"type": "image", "mimeType": "image/png", "data": "aGVsbG8="});
        check(json!({"content": [image]}), "[image: image/png, 5 bytes, not shown]");
        let audio = json!({"type": "audio", "data": ""});
        check(json!({"content": [audio]}), "[audio: unknown type, 0 bytes, not shown]");
        let note = json!({"type": "resource", "resource": {"uri": "file:///a", "text": "x"}});
        check(json!({"content": [note]}), "[resource file:///a]\nx");
        let blob = json!({"uri": "file:///b", "mimeType": "application/pdf", "blob": "aGVsbA=="});
        let blob = json!({"type": "resource", "resource": blob});
        check(
            json!({"content": [blob]}),
            "[resource file:///b: application/pdf, 4 bytes, not shown]",
        );
        let link =
            json!({"type": "resource_link", "uri": "file:///c", "name": "c", "mimeType": "t/x"});
        check(json!({"content": [link]}), "[link to the resource file:///c: c, t/x]");
        let odd = json!({"type": "hologram", "data": "x"});
        check(
            json!({"content": [odd, 7]}),
            "[content of type `hologram`, which can't be shown]\n\
                                            [content of type ``, which can't be shown]",
        );
    }

    #[test]
    fn a_result_in_another_form_is_read() {
        check(json!({"content": "plain"}), "plain");
        check(json!({"content": {"type": "text", "text": "single"}}), "single");
        check(json!({"content": ["a", "b"]}), "a\nb");
        check(
            json!({"content": [{"text": "no type"}, {"type": null, "text": "null"}]}),
            "no type\nnull",
        );
        check(json!({"toolResult": {"n": 1}, "_meta": {}}), "{\"toolResult\":{\"n\":1}}");
        check(json!({"content": null, "n": 1}), "{\"n\":1}");
        check(json!({"content": [], "n": 1}), NOTHING);
        check(json!({"content": "plain", "structuredContent": {"n": 1}}), "plain\n{\"n\":1}");
        check(json!({"_meta": {}, "isError": false}), NOTHING);
        let failed = json!({"isError": true, "error": "no such file"});
        let expected = "{\"error\":\"no such file\"}".to_owned();
        assert_eq!(render(&failed, 1000), ToolResult::Error(expected));
    }

    /// As Python's `base64.encodebytes` wraps it, without padding, in the other alphabet, and as browsers have it.
    #[test]
    fn base64_has_many_forms() {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.resize(125, 0xff);
        let data = Attachment::image(bytes.clone()).expect("an image");
        let base64 = data.base64().expect("its data");
        let (first, second) = base64.split_at(76);
        for written in [
            base64.clone(),
            format!("{first}\n{second}\n"),
            format!("{first}\r\n{second}\r\n"),
            base64.trim_end_matches('=').to_owned(),
            base64.replace('/', "_").replace('+', "-"),
            format!("data:image/png;base64,{base64}"),
        ] {
            assert_eq!(decoded(&written).as_deref(), Some(&bytes[..]), "{written}");
            let image = json!({"type": "image", "mimeType": "image/png", "data": written});
            let text = "[image: image/png, 125 bytes, not shown]".to_owned();
            let expected = ToolResult::WithImages { text, images: [data.clone()].into() };
            assert_eq!(render(&json!({"content": [image]}), 1000), expected);
        }
        for wrong in ["?", "QQ=Q", "A", "data:text/plain,a"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn structured_content_has_one_form() {
        let content = |text: &str| json!([{"type": "text", "text": text}]);
        let value = json!({"n": 1});
        check(json!({"content": [], "structuredContent": value}), "{\"n\":1}");
        check(
            json!({"content": content("{ \"n\": 1 }"), "structuredContent": value}),
            "{ \"n\": 1 }",
        );
        check(json!({"content": content("n is 1."), "structuredContent": value}), "n is 1.");
        check(json!({"content": content(""), "structuredContent": value}), "{\"n\":1}\n");
        // Content that holds more follows the text.
        check(json!({"content": content("One."), "structuredContent": value}), "One.\n{\"n\":1}");
        check(
            json!({"content": content("n is 10."), "structuredContent": value}),
            "n is 10.\n{\"n\":1}",
        );
        // A file as the text, and again as a member.
        let file = "a \"b\"\n\tc\n";
        check(json!({"content": content(file), "structuredContent": {"content": file}}), file);
        check(json!({"content": content("One."), "structuredContent": null}), "One.");
        // The blocks a second time.
        let image = json!({"type": "image", "mimeType": "image/png", "data": "aGVsbG8="});
        let again = json!({"content": [image], "structuredContent": {"content": [image]}});
        check(again, "[image: image/png, 5 bytes, not shown]");
        let long = json!({"n": "x".repeat(2000)});
        check(json!({"content": content("One."), "structuredContent": long}), "One.");
    }

    #[test]
    fn an_image_is_not_repeated_as_text() {
        let base64 = "QUJD".repeat(100);
        let image = json!({"type": "image", "mimeType": "image/png", "data": base64});
        let result = json!({"content": [image], "structuredContent": {"all": [base64, "QUJD"]}});
        let described = "[image: image/png, 300 bytes, not shown]";
        check(result, &format!("{{\"all\":[\"{described}\",\"QUJD\"]}}\n{described}"));
    }

    #[test]
    fn images_come_beside_their_notes() {
        let png = crate::conversation::tool_images::png_of_bytes;
        let base64 = |bytes: usize| png(bytes).base64().expect("its data");
        let block =
            |bytes| json!({"type": "image", "mimeType": "image/png", "data": base64(bytes)});
        // The bytes say what it is.
        let resource = json!({"uri": "file:///a", "mimeType": "x/y", "blob": base64(50)});
        let resource = json!({"type": "resource", "resource": resource});
        let content = json!([block(40), {"type": "text", "text": "and"}, resource]);
        let text = "[image: image/png, 40 bytes, not shown]\nand\n\
                    [resource file:///a: x/y, 50 bytes, not shown]";
        let images = [png(40), png(50)].into();
        let expected = ToolResult::WithImages { text: text.to_owned(), images };
        assert_eq!(render(&json!({"content": content}), 1000), expected);
        // Providers take no images in errors.
        let failed = render(&json!({"isError": true, "content": content}), 1000);
        assert_eq!(failed, ToolResult::Error(text.to_owned()));
        let many: Vec<_> = (0..40).map(|_| block(40)).collect();
        assert_eq!(render(&json!({"content": many}), 1000).images().len(), ATTACHMENTS_MAX);
    }

    #[test]
    fn the_limit_is_for_all_parts_together() {
        let texts: Vec<_> =
            (0..10).map(|_| json!({"type": "text", "text": "é".repeat(10)})).collect();
        let ToolResult::Success(text) = render(&json!({"content": texts}), 50) else {
            panic!("an error")
        };
        assert_eq!(
            text,
            format!(
                "{0}\n{0}\n{1}\n[The result was cut here: it has 209 bytes, of which the first 50 are \
                 shown.]",
                "é".repeat(10),
                "é".repeat(4)
            )
        );
    }

    #[test]
    fn errors_are_errors() {
        let failed =
            json!({"isError": true, "content": [{"type": "text", "text": "no such file"}]});
        assert_eq!(render(&failed, 1000), ToolResult::Error("no such file".to_owned()));
        let early = json!({"task": {"taskId": "1"}});
        assert!(matches!(render(&early, 1000), ToolResult::Error(text) if text.contains("`task`")));
        let task = json!({"resultType": "task", "taskId": "1"});
        assert_eq!(
            render(&task, 1000),
            ToolResult::Error(
                "the tool returned `task`, which this program does not support".into()
            )
        );
        assert_eq!(
            render(&json!({"resultType": "complete", "isError": true}), 1000),
            ToolResult::Error(NOTHING.to_owned())
        );
    }
}
