//! Which optional part of a request a refusal is about, as far as its words say so.

use super::complaint::Complaint;
use crate::engine::provider::optional::{Ground, OptionalParts, Suspects};

/// Statuses with which servers refuse the content of a request.
const STATUSES: [u16; 2] = [400, 422];

/// Words for members that ask for more than the answer.
const MEMBERS: &[&str] =
    &["stream_options", "include_usage", "'include'", "\"include\"", "include[", "body.include"];

/// Words for provider data of an earlier answer. Azure, for one, says "encrypted content".
const PROVIDER_DATA: &[&str] = &[
    "thinking",
    "thought",
    "signature",
    "reasoning",
    "encrypted_content",
    "encrypted content",
    "phase",
];

/// The member that answers with calls need with a model that thinks, and the words of DeepSeek and Moonshot where one
/// has none, as another model's has.
const REASONING_MEMBER: &str = "reasoning_content";
const UNSAID: &[&str] = &["be passed back", "is missing"];

/// Words for calls in a request that declares no tools: those of Bedrock, LiteLLM and Anthropic.
const UNDECLARED: &[&str] =
    &["toolconfig field must be defined", "without `tools=` param", "must define tools"];

/// Words for images.
const IMAGES: &[&str] = &["image", "vision", "multimodal", "multi-modal"];

/// Words for one image that a server doesn't take, where it takes others.
const ONE_IMAGE: &[&str] = &[
    "exceed",
    "maximum",
    "too large",
    "too big",
    "dimension",
    "pixels",
    "could not process",
    "unable to process",
    "invalid image",
    "invalid_image",
    "not a valid image",
];

/// Statuses with which servers say that a model takes no images: routers with 404, llama.cpp and Ollama
/// with 500.
const NO_IMAGES_STATUSES: [u16; 4] = [404, 415, 500, 501];

/// Words of such a server.
const NO_IMAGES: &[&str] =
    &["image input", "support image", "support vision", "multimodal", "mmproj"];

/// The request is too large (RFC 9110): texts alone are smaller than the limit of every server.
const TOO_LARGE: u16 = 413;

/// Words for settings that the person chose, which are in the way of these.
const SETTINGS: &[&str] = &[
    "budget_tokens",
    "reasoning_effort",
    "reasoning.effort",
    "reasoning.summary",
    "reasoning summar",
    "thinkingconfig",
];

/// Words for members that a server doesn't know, and for messages that it wants otherwise.
const STRUCTURE: &[&str] = &[
    "extra inputs",
    "extra_forbidden",
    "additional propert",
    "unknown field",
    "unknown name",
    "unknown parameter",
    "unrecognized",
    "unexpected keyword",
    "validation error",
    "invalid type",
    "messages[",
    "messages.",
    "body.messages",
    "'messages'",
    "\"messages\"",
    "input[",
    "input.",
    "body.input",
    "'input'",
    "\"input\"",
    "contents[",
    "content block",
    "multiturn",
    "tool_use",
    "tool_call",
    "function call",
    "function_call",
];

/// Like [`STRUCTURE`], as words of their own: a "role-play" is none.
const STRUCTURE_WORDS: [&str; 2] = ["role", "roles"];

/// Words for a refusal of the content of a conversation, not of its form.
const POLICY: &[&str] = &[
    "content_filter",
    "content_policy",
    "content policy",
    "content management",
    "safety",
    "moderation",
    "flagged",
    "prohibited",
    "inappropriate",
    "usage polic",
];

impl Complaint {
    /// The parts of a request that it may be about, if the server refused it with `status`; none if it
    /// is clearly about something else.
    pub(super) fn suspects(&self, status: u16) -> Suspects {
        let none = OptionalParts::default();
        let texts: Vec<_> = self.texts().map(|text| text.to_lowercase()).collect();
        let has =
            |words: &[&str]| texts.iter().any(|text| words.iter().any(|word| text.contains(word)));
        let images = OptionalParts { tool_images: true, ..none };
        if status == TOO_LARGE {
            return Suspects { parts: images, ground: Ground::ThisRequest };
        }
        if NO_IMAGES_STATUSES.contains(&status) && has(NO_IMAGES) {
            return Suspects::named(images);
        }
        let is_of_content = has(POLICY) || has(SETTINGS) || self.is_by_chance();
        if !STATUSES.contains(&status) || is_of_content {
            return Suspects::named(none);
        }
        if self.wants_reasoning() {
            return Suspects::named(OptionalParts { unsaid_reasoning: true, ..none });
        }
        if has(UNDECLARED) {
            return Suspects::named(OptionalParts { undeclared_tools: true, ..none });
        }
        let named = OptionalParts {
            members: has(MEMBERS),
            provider_data: has(PROVIDER_DATA),
            schema: self.is_about_schemas() || has(&["json_schema"]),
            tool_images: has(IMAGES),
            ..none
        };
        if named.tool_images && has(ONE_IMAGE) {
            return Suspects { parts: named, ground: Ground::ThisRequest };
        }
        let is_about_structure =
            has(STRUCTURE) || texts.iter().any(|text| has_structure_word(text));
        if !named.is_empty() || !is_about_structure || self.is_about_model() {
            return Suspects::named(named);
        }
        let parts = OptionalParts {
            members: true,
            provider_data: true,
            schema: true,
            tool_images: true,
            ..none
        };
        Suspects { parts, ground: Ground::Guessed }
    }

    /// Whether an answer was sent without its reasoning, which the model requires: it helps nothing to leave out
    /// more of it.
    pub(super) fn wants_reasoning(&self) -> bool {
        let message = self.message.to_lowercase();
        message.contains(REASONING_MEMBER) && UNSAID.iter().any(|words| message.contains(words))
    }
}

fn has_structure_word(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '-');
    words.any(|word| STRUCTURE_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const NONE: OptionalParts = OptionalParts {
        members: false,
        provider_data: false,
        schema: false,
        tool_images: false,
        unsaid_reasoning: false,
        undeclared_tools: false,
    };

    fn suspects(status: u16, body: &Value) -> OptionalParts {
        Complaint::from_body(body.to_string().as_bytes()).suspects(status).parts
    }

    #[test]
    fn a_refusal_names_what_it_is_about() {
        let members = OptionalParts { members: true, ..NONE };
        let provider_data = OptionalParts { provider_data: true, ..NONE };
        let schema = OptionalParts { schema: true, ..NONE };
        let both = OptionalParts {
            members: true,
            provider_data: true,
            schema: true,
            tool_images: true,
            ..NONE
        };
        let images = OptionalParts { tool_images: true, ..NONE };
        let unsaid = OptionalParts { unsaid_reasoning: true, ..NONE };
        let undeclared = OptionalParts { undeclared_tools: true, ..NONE };
        let says = |message: &str| json!({ "error": { "message": message } });
        // Mistral's form.
        let detail = json!([{ "type": "extra_forbidden",
            "loc": ["body", "stream_options", "include_usage"] }]);
        let mistral = json!({ "object": "error", "message": { "detail": detail } });
        assert_eq!(suspects(422, &mistral), members);
        for (message, expected) in [
            (
                "messages.1: The final block in an assistant message cannot be `thinking`.",
                provider_data,
            ),
            ("Invalid `signature` in `thinking` block", provider_data),
            ("The encrypted content for item rs_1 could not be verified.", provider_data),
            ("The encrypted content gAAA...wXBV could not be verified.", provider_data),
            (
                "The `reasoning_content` in the thinking mode must be passed back to the API.",
                unsaid,
            ),
            (
                "thinking is enabled but reasoning_content is missing in assistant tool call message \
                 at index 2",
                unsaid,
            ),
            (
                "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
                undeclared,
            ),
            ("This model does not support response_format json_schema", schema),
            ("json mode cannot be combined with tool/function calling", schema),
            ("You cannot specify response format and function call at the same time", schema),
            (
                "Function calling with a response mime type: 'application/json' is unsupported",
                schema,
            ),
            ("The compiled grammar is too large, which would cause performance issues.", schema),
            ("The specified schema produces a constraint that has too many states", schema),
            ("failed to parse grammar", schema),
            ("The provided JSON schema contains features not supported by xgrammar.", schema),
            ("Invalid responseJsonSchema", schema),
            ("2 validation errors: input[1].content", both),
            ("Please ensure that multiturn requests end with a user role", both),
            ("Unknown name \"x\": Cannot find field.", both),
            ("Conversation roles must alternate user/assistant/user/assistant/...", both),
            ("The prompt was rejected by the role-play guard", NONE),
            ("Invalid value for temperature", NONE),
            ("The model `m` does not exist, see messages[0]", NONE),
            ("messages[0] was flagged by the content policy", NONE),
            ("Your organization must be verified to generate reasoning summaries.", NONE),
            ("thinking.budget_tokens: Input should be greater than 1024", NONE),
        ] {
            assert_eq!(suspects(400, &says(message)), expected, "{message}");
            assert_eq!(suspects(500, &says(message)), NONE, "{message}");
        }
        for (status, message) in [
            (400, "unknown variant `image_url`, expected `text`"),
            (400, "m is not a multimodal model"),
            (404, "No endpoints found that support image input"),
            (500, "image input is not supported - hint: you may need to provide the mmproj"),
            (413, "request_too_large"),
        ] {
            assert_eq!(suspects(status, &says(message)), images, "{status} {message}");
        }
        assert_eq!(suspects(500, &says("the image of the runner crashed")), NONE);
        let field = json!({ "error": { "message": "no", "param": "messages[1].tool_calls" } });
        assert_eq!(suspects(400, &field), both);
    }

    /// Groq's words for a call that the model wrote badly.
    #[test]
    fn a_refusal_by_chance_is_about_no_part_of_the_request() {
        for error in [
            json!({ "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
                "type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": "<function=look>" }),
            json!({ "message": "Tool call validation failed: tool call validation failed: parameters for tool look did not match schema",
                "type": "invalid_request_error", "code": "tool_use_failed" }),
        ] {
            assert_eq!(suspects(400, &json!({ "error": error })), NONE, "{error}");
        }
    }

    #[test]
    fn words_about_one_image_are_about_this_request() {
        let suspects =
            |status: u16, message: &str| Complaint::from_body(message.as_bytes()).suspects(status);
        for (status, message) in [
            (
                400,
                "messages.2.content.0.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes",
            ),
            (400, "Could not process image"),
            (400, "image dimensions exceed max allowed size: 8000 pixels"),
            (400, "Unable to process input image. Please retry or report"),
            (413, "the body is too large"),
        ] {
            let parts = OptionalParts { tool_images: true, ..NONE };
            let expected = Suspects { parts, ground: Ground::ThisRequest };
            assert_eq!(suspects(status, message), expected, "{status} {message}");
        }
    }

    #[test]
    fn words_about_the_form_of_a_request_are_a_guess() {
        let ground = |message: &str| Complaint::from_body(message.as_bytes()).suspects(400).ground;
        assert_eq!(ground("messages[1]: odd"), Ground::Guessed);
        assert_eq!(ground("Unknown parameter: 'stream_options'"), Ground::Named);
        assert_eq!(ground("messages[1]: unknown field `reasoning_content`"), Ground::Named);
        assert_eq!(ground("unknown variant `image_url`, expected `text`"), Ground::Named);
    }
}
