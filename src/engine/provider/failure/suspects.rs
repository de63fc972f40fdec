//! Which optional part of a request a refusal is about, as far as its words say so.

use super::complaint::Complaint;
use crate::engine::provider::optional::OptionalParts;

/// Statuses with which servers refuse the content of a request.
const STATUSES: [u16; 2] = [400, 422];

/// Words for members that ask for more than the answer.
const MEMBERS: &[&str] =
    &["stream_options", "include_usage", "'include'", "\"include\"", "include["];

/// Words for provider data of an earlier answer.
const PROVIDER_DATA: &[&str] =
    &["thinking", "thought", "signature", "reasoning", "encrypted_content", "phase"];

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
    "'messages'",
    "\"messages\"",
    "input[",
    "input.",
    "'input'",
    "\"input\"",
    "contents[",
    "content block",
    "multiturn",
    "role",
    "tool_use",
    "tool_call",
    "function call",
    "function_call",
];

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
    pub(super) fn suspects(&self, status: u16) -> OptionalParts {
        let none = OptionalParts::default();
        let texts: Vec<_> = self.texts().map(|text| text.to_lowercase()).collect();
        let has =
            |words: &[&str]| texts.iter().any(|text| words.iter().any(|word| text.contains(word)));
        if !STATUSES.contains(&status) || has(POLICY) || has(SETTINGS) {
            return none;
        }
        let named = OptionalParts {
            members: has(MEMBERS),
            provider_data: has(PROVIDER_DATA),
            schema: self.is_about_schemas() || has(&["json_schema"]),
        };
        match has(STRUCTURE) {
            _ if !named.is_empty() => named,
            _ if self.is_about_model() => none,
            true => OptionalParts { members: true, provider_data: true, schema: false },
            false => none,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const NONE: OptionalParts =
        OptionalParts { members: false, provider_data: false, schema: false };

    fn suspects(status: u16, body: &Value) -> OptionalParts {
        Complaint::from_body(body.to_string().as_bytes()).suspects(status)
    }

    #[test]
    fn a_refusal_names_what_it_is_about() {
        let members = OptionalParts { members: true, ..NONE };
        let provider_data = OptionalParts { provider_data: true, ..NONE };
        let schema = OptionalParts { schema: true, ..NONE };
        let both = OptionalParts { members: true, provider_data: true, ..NONE };
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
            ("This model does not support response_format json_schema", schema),
            ("2 validation errors: input[1].content", both),
            ("Please ensure that multiturn requests end with a user role", both),
            ("Unknown name \"x\": Cannot find field.", both),
            ("Invalid value for temperature", NONE),
            ("The model `m` does not exist, see messages[0]", NONE),
            ("messages[0] was flagged by the content policy", NONE),
            ("Your organization must be verified to generate reasoning summaries.", NONE),
            ("thinking.budget_tokens: Input should be greater than 1024", NONE),
        ] {
            assert_eq!(suspects(400, &says(message)), expected, "{message}");
            assert_eq!(suspects(500, &says(message)), NONE, "{message}");
        }
        let field = json!({ "error": { "message": "no", "param": "messages[1].tool_calls" } });
        assert_eq!(suspects(400, &field), both);
    }
}
