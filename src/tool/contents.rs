//! What servers give people to ask with: the contents of a resource, and the messages of a prompt.

use crate::protocol::attachment::{Attachment, Content};
use crate::protocol::proto::chat::ChatAttachment;
use crate::task::server::FilledPrompt;
use crate::tool::listing::text_of;
use crate::tool::result;
use serde_json::Value;

/// The contents in `result`, the reply to `resources/read` for `uri`: one, or several if the resource is a
/// collection, of which empty ones are left out.
///
/// # Errors
/// If there is none that can be used: why, for people.
pub(super) fn of_resource(result: &Value, uri: &str) -> Result<Vec<Attachment>, String> {
    let contents = result.get("contents").and_then(Value::as_array);
    let contents = contents.ok_or("its answer to resources/read has no contents")?;
    if contents.is_empty() {
        return Err("the resource has no content".to_owned());
    }
    let attachments = contents.iter().filter_map(|content| attachment(content, uri).transpose());
    let attachments = attachments.collect::<Result<Vec<_>, _>>()?;
    if attachments.is_empty() {
        return Err("the resource is empty".to_owned());
    }
    Ok(attachments)
}

/// A content, named after its own address or, if it has none, after `uri`; `None` if it is empty.
fn attachment(content: &Value, uri: &str) -> Result<Option<Attachment>, String> {
    let data = match (content.get("text"), content.get("blob")) {
        (Some(Value::String(text)), _) => text.clone().into_bytes(),
        (_, Some(Value::String(base64))) => {
            result::decoded(base64).ok_or("the data of the resource is no base64")?
        }
        _ => return Err("the resource has neither text nor data".to_owned()),
    };
    if data.is_empty() {
        return Ok(None);
    }
    let own = text_of(content, "uri");
    let attached = |media_type: &str| {
        let shown = ChatAttachment {
            filename: if own.is_empty() { uri } else { own }.to_owned(),
            media_type: media_type.to_owned(),
            ..ChatAttachment::default()
        };
        Attachment { shown, content: Content::Data(data.as_slice().into()) }.described()
    };
    // The bytes decide: a type that contradicts them is one that nobody here can correct.
    attached(text_of(content, "mimeType")).or_else(|_| attached("")).map(Some)
}

/// The prompt in `result`, the reply to `prompts/get`.
///
/// All messages are one prompt. If one of them is the model's, each has its role before it, since what a
/// server wrote is nothing that the model has said.
///
/// # Errors
/// If it has nothing to ask: why, for people.
pub(super) fn of_prompt(result: &Value) -> Result<FilledPrompt, String> {
    let messages = result.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or("its answer to prompts/get has no messages")?;
    let is_dialogue = messages.iter().any(|message| text_of(message, "role") == "assistant");
    let mut attachments = Vec::new();
    let mut parts: Vec<String> = Vec::new();
    for message in messages {
        let Some(text) = text_or_attached(message.get("content"), &mut attachments) else {
            continue;
        };
        parts.push(match (is_dialogue, text_of(message, "role")) {
            (false, _) => text,
            (true, "assistant") => format!("Assistant: {text}"),
            (true, _) => format!("User: {text}"),
        });
    }
    let text = parts.join("\n\n");
    if text.trim().is_empty() && attachments.is_empty() {
        return Err("its prompt is blank".to_owned());
    }
    Ok(FilledPrompt { text, attachments })
}

/// The content of a message as text; an image or an embedded resource is attached instead.
fn text_or_attached(content: Option<&Value>, attachments: &mut Vec<Attachment>) -> Option<String> {
    let content = content?;
    let attached = match (text_of(content, "type"), content.get("resource")) {
        ("image", _) => result::image(content),
        ("resource", Some(resource)) => attachment(resource, "resource").ok().flatten(),
        _ => None,
    };
    match attached {
        Some(mut attached) => {
            let number = attachments.len() + 1;
            attached.shown.attachment_id = format!("prompt-{number}");
            if attached.shown.filename.is_empty() {
                attached.shown.filename = format!("image-{number}");
            }
            attachments.push(attached);
            None
        }
        None => Some(result::described(content)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::BASE64;
    use serde_json::json;

    #[test]
    fn a_resource_is_text_or_data_whatever_its_server_says_of_it() {
        let read = |contents: Value| of_resource(&json!({ "contents": contents }), "note://1");
        let one = |content: Value| {
            let mut read = read(json!([content])).expect("a resource");
            let shown = read.remove(0).shown;
            (shown.filename, shown.media_type)
        };
        let of = |name: &str, media_type: &str| (name.to_owned(), media_type.to_owned());
        let text = json!({"uri": "a.md", "mimeType": "text/markdown", "text": "# a"});
        assert_eq!(one(text), of("a.md", "text/markdown"));
        // What its server says of it is wrong, or nothing.
        let wrong = json!({"uri": "a", "mimeType": "image/png", "text": "a"});
        assert_eq!(one(wrong), of("a", "text/plain"));
        assert_eq!(one(json!({"text": "a"})), of("note://1", "text/plain"));
        let blob = json!({"uri": "b", "blob": BASE64.encode(b"%PDF-1.7")});
        assert_eq!(one(blob), of("b", "application/pdf"));
        assert_eq!(read(json!([{"text": "a"}, {"text": "b"}])).map(|it| it.len()), Ok(2));
        assert_eq!(read(json!([{"text": ""}, {"text": "b"}])).map(|it| it.len()), Ok(1));
        let why = |contents: Value| read(contents).expect_err("nothing");
        assert_eq!(why(json!([{"text": ""}, {"blob": ""}])), "the resource is empty");
        assert_eq!(why(json!([])), "the resource has no content");
        assert_eq!(why(json!([{"text": ""}])), "the resource is empty");
        assert_eq!(why(json!([{"blob": "?"}])), "the data of the resource is no base64");
        assert_eq!(why(json!([{"uri": "a"}])), "the resource has neither text nor data");
        assert_eq!(why(json!({})), "its answer to resources/read has no contents");
    }

    #[test]
    fn a_prompt_is_one_text_with_roles_where_the_model_is_said_to_have_spoken() {
        let text = |role: &str, text: &str| json!({"role": role, "content": {"type": "text", "text": text}});
        let prompt = |messages: Value| of_prompt(&json!({ "messages": messages }));
        let texts = |messages: Value| prompt(messages).expect("a prompt").text;
        assert_eq!(texts(json!([text("user", "a"), text("user", "b")])), "a\n\nb");
        let dialogue = json!([text("user", "a"), text("assistant", "b"), text("user", "c")]);
        assert_eq!(texts(dialogue), "User: a\n\nAssistant: b\n\nUser: c");
        let resource = json!({"uri": "note://1", "text": "x"});
        let embedded =
            json!({"role": "user", "content": {"type": "resource", "resource": resource}});
        let filled = prompt(json!([embedded, text("user", "What is it?")])).expect("a prompt");
        assert_eq!(filled.text, "What is it?");
        let [attached] = &filled.attachments[..] else { panic!("{filled:?}") };
        assert_eq!(attached.shown.filename, "note://1");
        assert_eq!(prompt(json!([])), Err("its prompt is blank".to_owned()));
        assert!(prompt(json!({})).is_err());
    }
}
