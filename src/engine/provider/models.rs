//! The list of a provider's models: its address, and its responses. Pure.

use super::address;
use crate::engine::ListedModel;
use reqwest::Url;
use serde_json::Value;

/// Models on a page, as many as providers allow.
const PAGE_MODELS: &str = "1000";

/// Where lists have the tokens of the most that a model can be sent: Gemini, Anthropic, OpenRouter and Together,
/// Groq, vLLM, Mistral and LM Studio, llama.cpp.
const CONTEXT_TOKENS: [&str; 7] = [
    "/inputTokenLimit",
    "/max_input_tokens",
    "/context_length",
    "/context_window",
    "/max_model_len",
    "/max_context_length",
    "/meta/n_ctx",
];

/// How providers list their models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum ModelList {
    /// `GET {base}/models`: <https://platform.openai.com/docs/api-reference/models/list>.
    OpenAi,
    /// `GET {base}/v1/models`: <https://platform.claude.com/docs/en/api/models-list>.
    Anthropic,
    /// `GET {base}/v1beta/models`, or with the version that the base URL has:
    /// <https://ai.google.dev/api/models#method:-models.list>.
    Gemini,
    /// `GET {base}/api/tags`: <https://docs.ollama.com/api/tags>.
    Ollama,
}

/// The version of Gemini's interface, where a base URL has none.
const GEMINI_VERSION: &str = "/v1beta";

/// The ends of paths that have the version of Gemini's interface already. Google's other service names a publisher
/// after it.
const GEMINI_VERSION_ENDS: [&str; 4] = [GEMINI_VERSION, "/v1", "/v1alpha", "/publishers/google"];

/// The `path` of a base URL of Gemini's interface, up to the version: it may lack the version, or go on to the models.
pub(in crate::engine) fn gemini_path(path: &str) -> String {
    let path = path.trim_end_matches('/');
    let has_version = |path: &str| GEMINI_VERSION_ENDS.iter().any(|end| path.ends_with(end));
    match path.strip_suffix("/models").filter(|start| has_version(start)) {
        Some(start) => start.to_owned(),
        None if has_version(path) => path.to_owned(),
        None => format!("{path}{GEMINI_VERSION}"),
    }
}

/// A page of the list.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::engine) struct Page {
    pub(in crate::engine) models: Vec<ListedModel>,
    /// The token of the next page, if there is one.
    pub(in crate::engine) next: Option<String>,
}

impl ModelList {
    /// Where the page after `after` is; with the login in `base_url` if `has_login`.
    ///
    /// # Errors
    /// If the address can't be used: the reason, for a message.
    pub(in crate::engine) fn url(
        self,
        base_url: &str,
        has_login: bool,
        after: Option<&str>,
    ) -> Result<Url, String> {
        let mut url = address::checked(base_url, has_login)?;
        let start = match self {
            Self::Gemini => gemini_path(url.path()),
            Self::OpenAi | Self::Anthropic | Self::Ollama => url.path().to_owned(),
        };
        let given = start.split('/').filter(|part| !part.is_empty()).map(str::to_owned);
        let given: Vec<String> = given.collect();
        let kept = self.endpoints().iter().find_map(|endpoint| {
            let start = given.len().checked_sub(endpoint.len())?;
            (given[start..] == **endpoint).then_some(start)
        });
        let kept = &given[..kept.unwrap_or(given.len())];
        let path = kept.iter().map(String::as_str).chain(self.path().iter().copied());
        let path: Vec<&str> = path.collect();
        url.set_path(&path.join("/"));
        match (self, after) {
            (Self::Anthropic, after) => {
                url.query_pairs_mut().append_pair("limit", PAGE_MODELS);
                after.iter().for_each(|id| {
                    url.query_pairs_mut().append_pair("after_id", id);
                });
            }
            (Self::Gemini, after) => {
                url.query_pairs_mut().append_pair("pageSize", PAGE_MODELS);
                after.iter().for_each(|token| {
                    url.query_pairs_mut().append_pair("pageToken", token);
                });
            }
            (Self::OpenAi | Self::Ollama, _) => {}
        }
        Ok(url)
    }

    /// The ends of base URLs that are no part of the address of the list.
    fn endpoints(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::OpenAi => &[&["chat", "completions"], &["responses"]],
            Self::Anthropic => &[&["v1", "messages"], &["messages"], &["v1"]],
            Self::Gemini => &[],
            Self::Ollama => &[&["api", "chat"], &["api"]],
        }
    }

    fn path(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["models"],
            Self::Anthropic => &["v1", "models"],
            Self::Gemini => &["models"],
            Self::Ollama => &["api", "tags"],
        }
    }

    /// The page in `body`; `None` if `body` has another form.
    pub(in crate::engine) fn read(self, body: &Value) -> Option<Page> {
        let (list, name, next) = match self {
            Self::OpenAi => ("data", "id", None),
            Self::Anthropic => {
                let has_more = body.get("has_more").and_then(Value::as_bool) == Some(true);
                ("data", "id", body.get("last_id").filter(|_| has_more))
            }
            Self::Gemini => ("models", "name", body.get("nextPageToken")),
            Self::Ollama => ("models", "name", None),
        };
        // Together's list is the body itself.
        let is_bare = self == Self::OpenAi && body.is_array();
        let list = if is_bare { body } else { body.get(list)? };
        // Servers that are written in Go have null for a list without models.
        let list: &[Value] = if list.is_null() { &[] } else { list.as_array()? };
        let models = list.iter().filter_map(|model| {
            let name = model.get(name)?.as_str()?;
            let name = name.strip_prefix("models/").unwrap_or(name).to_owned();
            let tokens = CONTEXT_TOKENS.iter().find_map(|place| model.pointer(place)?.as_u64());
            let context_tokens = tokens.filter(|tokens| *tokens > 0);
            Some(ListedModel { name, context_tokens })
        });
        let next = next.and_then(Value::as_str).filter(|next| !next.is_empty());
        Some(Page { models: models.collect(), next: next.map(str::to_owned) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_list_is_beside_the_endpoint() {
        let check = |list: ModelList, base_url: &str, expected: &str| {
            let url = list.url(base_url, false, None).expect("an address");
            assert_eq!(url.as_str(), expected, "{list:?} {base_url}");
        };
        use ModelList::{Anthropic, Gemini, Ollama, OpenAi};
        check(OpenAi, "http://h/v1", "http://h/v1/models");
        check(OpenAi, "http://u:p@h/v1/chat/completions/", "http://h/v1/models");
        check(OpenAi, "http://h/v1/responses", "http://h/v1/models");
        check(OpenAi, "http://h/d?api-version=1", "http://h/d/models?api-version=1");
        for base_url in ["http://h", "http://h/v1", "http://h/v1/messages"] {
            check(Anthropic, base_url, "http://h/v1/models?limit=1000");
        }
        check(Gemini, "http://h/", "http://h/v1beta/models?pageSize=1000");
        for (base_url, path) in [
            ("http://h/v1beta/", "v1beta/models"),
            ("http://h/v1beta/models", "v1beta/models"),
            ("http://h/v1", "v1/models"),
            ("http://h/v1/models/", "v1/models"),
            ("http://h/v1alpha", "v1alpha/models"),
            ("http://h/v1/publishers/google", "v1/publishers/google/models"),
            ("http://h/models", "models/v1beta/models"),
        ] {
            check(Gemini, base_url, &format!("http://h/{path}?pageSize=1000"));
        }
        check(Ollama, "http://h:11434", "http://h:11434/api/tags");
        check(Ollama, "http://h/x/api/chat", "http://h/x/api/tags");
        let next = Anthropic.url("http://h", false, Some("a&b")).expect("an address");
        assert_eq!(next.as_str(), "http://h/v1/models?limit=1000&after_id=a%26b");
        assert!(OpenAi.url("h/v1", false, None).is_err());
    }

    #[test]
    fn every_form_is_read() {
        let check = |list: ModelList, body: Value, models: &[&str], next: Option<&str>| {
            let page = list.read(&body).expect("a page");
            let names: Vec<_> = page.models.iter().map(|model| model.name.as_str()).collect();
            assert_eq!(names, models, "{list:?}");
            assert_eq!(page.next.as_deref(), next, "{list:?}");
        };
        use ModelList::{Anthropic, Gemini, Ollama, OpenAi};
        check(
            OpenAi,
            json!({ "data": [{ "id": "a" }, { "id": 1 }, { "id": "b" }] }),
            &["a", "b"],
            None,
        );
        let more = json!({ "data": [{ "id": "c" }], "has_more": true, "last_id": "c" });
        check(Anthropic, more, &["c"], Some("c"));
        check(Anthropic, json!({ "data": [], "has_more": false, "last_id": "c" }), &[], None);
        let page = json!({ "models": [{ "name": "models/g" }], "nextPageToken": "t" });
        check(Gemini, page, &["g"], Some("t"));
        check(Ollama, json!({ "models": [{ "name": "llama3.2:1b" }] }), &["llama3.2:1b"], None);
        assert_eq!(OpenAi.read(&json!({ "models": [] })), None);
        check(OpenAi, json!([{ "id": "a", "object": "model" }, "odd"]), &["a"], None);
        check(OpenAi, json!([]), &[], None);
        check(OpenAi, json!({ "object": "list", "data": null }), &[], None);
        assert_eq!(OpenAi.read(&json!({ "data": {} })), None);
        assert_eq!(OpenAi.read(&json!({ "error": "x" })), None);
        assert_eq!(OpenAi.read(&json!("x")), None);
        assert_eq!(Ollama.read(&json!([])), None);
    }

    #[test]
    fn what_a_model_can_be_sent_is_read_where_the_list_has_it() {
        let check = |list: ModelList, body: Value, expected: Option<u64>| {
            let page = list.read(&body).expect("a page");
            assert_eq!(page.models[0].context_tokens, expected, "{body}");
        };
        use ModelList::{Anthropic, Gemini, OpenAi};
        check(OpenAi, json!({ "data": [{ "id": "a", "context_length": 8192 }] }), Some(8192));
        check(OpenAi, json!({ "data": [{ "id": "a", "context_window": 131072 }] }), Some(131_072));
        check(OpenAi, json!({ "data": [{ "id": "a", "max_model_len": 4096 }] }), Some(4096));
        check(OpenAi, json!({ "data": [{ "id": "a", "meta": { "n_ctx": 2048 } }] }), Some(2048));
        check(OpenAi, json!({ "data": [{ "id": "a", "context_length": 0 }] }), None);
        check(OpenAi, json!({ "data": [{ "id": "a", "context_length": "long" }] }), None);
        check(OpenAi, json!({ "data": [{ "id": "a" }] }), None);
        check(
            Anthropic,
            json!({ "data": [{ "id": "a", "max_input_tokens": 200_000 }] }),
            Some(200_000),
        );
        check(Gemini, json!({ "models": [{ "name": "models/g", "inputTokenLimit": 7 }] }), Some(7));
        check(OpenAi, json!([{ "id": "a", "context_length": 131_072 }]), Some(131_072));
    }
}
