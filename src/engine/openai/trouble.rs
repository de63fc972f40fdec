//! What can go wrong in a provider call, in words for people and classes for programs.

use super::address;
use super::http::NoClient;
use super::json;
use super::retry::{RETRY_AFTER_MAX, Retry, is_passing};
use crate::engine::{ErrorClass, RunError, Stage};
use crate::secret::{Secret, unescaped, without_userinfo};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::Url;
use serde_json::Value;
use std::error::Error;
use std::time::Duration;

/// Characters of the provider's words that a message quotes.
const QUOTE_CHARS_MAX: usize = 300;

/// Characters of the provider's words that a detail holds.
const DETAIL_CHARS_MAX: usize = 2_000;

/// Where the base URL comes from.
const BASE_URL: &str = "--base-url, DUOLOGUE_BASE_URL or OPENAI_BASE_URL";

/// Where the model comes from.
const MODEL: &str = "--model or DUOLOGUE_MODEL";

/// Where the key comes from.
const KEY: &str = "DUOLOGUE_API_KEY or OPENAI_API_KEY";

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    stage: Stage,
    pub(super) class: ErrorClass,
    message: String,
    detail: String,
    pub(super) retry: Retry,
}

/// Puts troubles into words. Everything that others wrote goes through [`Troubles::quote`], so that
/// no trouble holds a secret.
#[derive(Clone, Debug)]
pub(super) struct Troubles {
    /// The key, and what the login in the base URL holds.
    secrets: Vec<Secret>,
    has_key: bool,
    /// As it may be shown.
    base_url: String,
    /// As the user named it.
    model: String,
}

/// Which time ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elapsed {
    /// Nothing came for so long.
    Idle(Duration),
    /// The call took so long.
    Total(Duration),
}

/// What a provider says went wrong.
#[derive(Debug, Default)]
struct Complaint {
    message: String,
    /// Its words for programs: code and type.
    codes: Vec<String>,
    /// The HTTP status it names, if any.
    status: Option<u16>,
}

/// Which number tells what kind of trouble it is.
#[derive(Clone, Copy, Debug)]
enum Told {
    /// The status of the answer.
    Status(u16),
    /// A status in an answer whose own status is good.
    Code(u16),
    /// None.
    Nothing,
}

impl Trouble {
    fn new(class: ErrorClass, message: impl Into<String>, detail: impl Into<String>) -> Self {
        let (stage, retry) = (Stage::Run, Retry::Never);
        Self { stage, class, message: message.into(), detail: detail.into(), retry }
    }

    /// Found before anything was sent.
    fn at_init(self) -> Self {
        Self { stage: Stage::Init, ..self }
    }

    fn or(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// For people; holds no secret.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The end of a run that this happened in.
    pub(super) fn into_error(self) -> RunError {
        let Self { stage, class, message, detail, retry: _ } = self;
        RunError { stage, class, message, detail }
    }
}

impl Troubles {
    /// Of calls with these settings.
    pub(super) fn new(key: Option<&Secret>, base_url: &str, model: &str) -> Self {
        let login = Url::parse(base_url.trim()).map_or(Vec::new(), |url| login(&url));
        Self {
            secrets: key.cloned().into_iter().chain(login).collect(),
            has_key: key.is_some(),
            base_url: address::shown(base_url),
            model: model.to_owned(),
        }
    }

    /// The base URL can't be used. `why` goes on from "the base URL".
    pub(super) fn bad_base_url(&self, why: &str) -> Trouble {
        let message = format!(
            "the base URL {:?} {why}: name one like http://localhost:11434/v1 with {BASE_URL}",
            self.base()
        );
        Trouble::new(ErrorClass::Config, message, format!("the base URL {why}")).at_init()
    }

    /// OpenAI itself is the provider, and there is no key.
    pub(super) fn no_key(&self) -> Trouble {
        let message = format!(
            "OpenAI wants a key: set {KEY}; for another provider name its address with {BASE_URL}"
        );
        Trouble::new(ErrorClass::Auth, message, "no key").at_init()
    }

    /// The key can't be sent.
    pub(super) fn odd_key(&self) -> Trouble {
        let message = format!("the key holds characters that no key can hold: check {KEY}");
        Trouble::new(ErrorClass::Auth, message, "the key can't be a header").at_init()
    }

    /// No model is named where one must be.
    pub(super) fn no_model(&self) -> Trouble {
        let message =
            format!("no model is named, and {} has no default: name one with {MODEL}", self.base());
        Trouble::new(ErrorClass::Config, message, "no model").at_init()
    }

    /// The HTTP client can't be built.
    pub(super) fn no_client(&self, why: &NoClient) -> Trouble {
        let (what, error, todo) = match why {
            NoClient::Roots(error) => (
                "the root certificates can't be read",
                error,
                "name a file that holds some in PEM with SSL_CERT_FILE, or unset it",
            ),
            NoClient::Other(error) => (
                "the HTTP client can't be built",
                error,
                "check the proxy variables HTTP_PROXY, HTTPS_PROXY and ALL_PROXY",
            ),
        };
        let error = self.quote(&error.to_string(), DETAIL_CHARS_MAX);
        let message = format!("{what} ({error}): {todo}");
        Trouble::new(ErrorClass::Config, message, error).at_init()
    }

    /// The provider answered with an error status. `after` is the wait it asks for.
    pub(super) fn status(&self, status: u16, body: &[u8], after: Option<Duration>) -> Trouble {
        let complaint = Complaint::from_body(body);
        let trouble = self.complaint(Told::Status(status), &complaint);
        let passing = is_passing(status) && !is_out_of_credit(status, &complaint);
        match after {
            Some(wait) if passing && wait > RETRY_AFTER_MAX => {
                let seconds = wait.as_secs();
                let message = format!("{}; it asks to wait {seconds} s", trouble.message);
                Trouble { message, ..trouble }
            }
            Some(wait) if passing => trouble.or(Retry::After(wait)),
            None if passing => trouble.or(Retry::Backoff),
            Some(_) | None => trouble,
        }
    }

    /// The provider reports an error inside an answer that began well.
    pub(super) fn reported(&self, error: &Value) -> Trouble {
        let complaint = Complaint::from_value(error);
        let told = complaint.status.map_or(Told::Nothing, Told::Code);
        let trouble = self.complaint(told, &complaint);
        match complaint.status {
            Some(status) if is_passing(status) && !is_out_of_credit(status, &complaint) => {
                trouble.or(Retry::Backoff)
            }
            Some(_) | None => trouble,
        }
    }

    /// The provider reports an error inside an answer, in an event that is no JSON.
    pub(super) fn reported_text(&self, text: &[u8]) -> Trouble {
        self.reported(&Value::String(String::from_utf8_lossy(text).into_owned()))
    }

    /// The provider sends us to another address.
    pub(super) fn redirected(&self, status: u16, location: Option<&Url>) -> Trouble {
        let location = location.map(address::shown_url);
        let location = location.as_deref().unwrap_or("nowhere that can be read");
        let location = self.quote(location, QUOTE_CHARS_MAX);
        let message = format!(
            "{} sends us on to {location} (status {status}), and the key must not follow by \
             itself: if that is the right address, name it with {BASE_URL}",
            self.base()
        );
        Trouble::new(ErrorClass::Config, message, format!("status {status}, location {location}"))
    }

    /// The provider could not be reached, or the connection broke.
    pub(super) fn network(&self, error: &reqwest::Error) -> Trouble {
        let detail = self.quote(&causes(error), DETAIL_CHARS_MAX);
        let base = self.base();
        if error.is_connect() && error.is_timeout() {
            let message = format!(
                "no connection to {base} came about in time: check your network and {BASE_URL}, or \
                 raise --connect-timeout-ms"
            );
            return Trouble::new(ErrorClass::Timeout, message, detail);
        }
        if is_tls(error) {
            let message = format!(
                "no safe connection to {base} came about, because of its certificate or its TLS: \
                 check {BASE_URL} and the clock of this computer, and name the provider's own root \
                 certificates, if it has some, with SSL_CERT_FILE"
            );
            return Trouble::new(ErrorClass::Network, message, detail);
        }
        let message = match error.is_connect() {
            true => {
                format!("{base} can't be reached: check that it runs, your network, and {BASE_URL}")
            }
            false => format!(
                "the connection to {base} broke: send the prompt again, and check your network if \
                 it breaks again"
            ),
        };
        Trouble::new(ErrorClass::Network, message, detail).or(Retry::Backoff)
    }

    /// Time ran out.
    pub(super) fn timeout(&self, elapsed: Elapsed) -> Trouble {
        let base = self.base();
        let (message, detail) = match elapsed {
            Elapsed::Idle(limit) => (
                format!(
                    "{base} sent nothing for {limit:?}: send the prompt again, or raise \
                     --idle-timeout-ms"
                ),
                format!("no byte for {limit:?}"),
            ),
            Elapsed::Total(limit) => (
                format!(
                    "the answer of {base} was not complete after {limit:?}: ask for less, or \
                     raise --total-timeout-ms"
                ),
                format!("the call took {limit:?}"),
            ),
        };
        Trouble::new(ErrorClass::Timeout, message, detail)
    }

    /// The answer has a good status and no content.
    pub(super) fn empty(&self) -> Trouble {
        let what = format!("sent an empty answer: check {BASE_URL}");
        self.malformed(&what, "the body is empty")
    }

    /// The answer has content, and nothing of it is an answer.
    pub(super) fn not_an_answer(&self, content_type: &str) -> Trouble {
        let content_type = self.quote(content_type, QUOTE_CHARS_MAX);
        let detail = format!("no event in a body of type {content_type:?}");
        let what = format!(
            "sent something that is no answer of a chat-completions server: check {BASE_URL}"
        );
        self.malformed(&what, detail)
    }

    /// The answer ended without its end.
    pub(super) fn cut_off(&self) -> Trouble {
        let detail = "the stream ended without a finish reason and without [DONE]";
        self.malformed("cut off its answer: send the prompt again", detail)
    }

    /// An event can't be read.
    pub(super) fn unreadable(&self, why: &serde_json::Error, data: &[u8]) -> Trouble {
        // `why` may quote the data too.
        let detail = format!("{why}: {}", String::from_utf8_lossy(data));
        let detail = self.quote(&detail, DETAIL_CHARS_MAX);
        let what = format!(
            "sent something that can't be read: send the prompt again, and check {BASE_URL} if it \
             stays so"
        );
        self.malformed(&what, detail)
    }

    /// Something is longer than its limit.
    pub(super) fn too_long(&self, detail: String) -> Trouble {
        let what = format!(
            "sent more than this program takes ({detail}), so the rest is lost: ask for a shorter \
             answer, or choose another model with {MODEL}"
        );
        self.malformed(&what, detail)
    }

    /// A tool call never told its name.
    pub(super) fn nameless_tool(&self) -> Trouble {
        let what = format!(
            "called a tool without naming it: send the prompt again, or choose another model with \
             {MODEL}"
        );
        self.malformed(&what, "a tool call has no name")
    }

    /// The provider gave up in the middle, without saying why.
    pub(super) fn gave_up(&self) -> Trouble {
        let message = format!("{} gave up in its answer: send the prompt again", self.base());
        Trouble::new(ErrorClass::Provider, message, "finish reason \"error\"")
    }

    /// The model calls tools, and there are none.
    pub(super) fn unknown_tools(&self, names: &[&str]) -> Trouble {
        let names = self.quote(&names.join(", "), QUOTE_CHARS_MAX);
        let message = format!(
            "the model called a tool that this process doesn't offer ({names}): ask again, or \
             choose another model with {MODEL}"
        );
        Trouble::new(ErrorClass::Tool, message, format!("called: {names}"))
    }

    /// The request can't be written.
    pub(super) fn unwritable(&self, why: &serde_json::Error) -> Trouble {
        let message =
            "the request could not be written: this is a defect of this program, please report it";
        Trouble::new(ErrorClass::Internal, message, why.to_string())
    }

    /// A word of the provider's as events may show it: without secrets, and of `bytes_max` bytes at
    /// most.
    pub(super) fn shown(&self, word: &str, bytes_max: usize) -> String {
        let mut word = self.redacted(word);
        word.truncate(word.floor_char_boundary(bytes_max));
        word
    }

    /// What came of a text of the provider's that then broke off, without secrets, whole or begun.
    pub(super) fn broken_off(&self, text: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(text).into_owned();
        let redact = |text: String, secret: &Secret| secret.redact_cut(&text);
        self.secrets.iter().fold(text, redact).into_bytes()
    }

    fn redacted(&self, text: &str) -> String {
        let redact = |text: String, secret: &Secret| secret.redact(&text);
        self.secrets.iter().fold(text.to_owned(), redact)
    }

    /// What another wrote, without secrets, cut to `chars_max` characters.
    fn quote(&self, text: &str, chars_max: usize) -> String {
        let text = without_userinfo(&self.redacted(text));
        match text.char_indices().nth(chars_max) {
            Some((end, _)) => format!("{}\u{2026}", &text[..end]),
            None => text,
        }
    }

    fn base(&self) -> String {
        self.quote(&self.base_url, QUOTE_CHARS_MAX)
    }

    fn malformed(&self, what: &str, detail: impl Into<String>) -> Trouble {
        Trouble::new(ErrorClass::MalformedStream, format!("{} {what}", self.base()), detail)
    }

    fn complaint(&self, told: Told, complaint: &Complaint) -> Trouble {
        let class = complaint.class(told.number());
        let mut message = self.headline(class, told, complaint);
        if !complaint.message.is_empty() {
            let words = self.quote(&complaint.message, QUOTE_CHARS_MAX);
            message += &format!("; the provider says: {words}");
        }
        let number = told.number().map(|number| number.to_string());
        let codes = complaint.codes.iter().filter(|code| Some(*code) != number.as_ref());
        let codes = codes.map(String::as_str).collect::<Vec<_>>().join(" ");
        let mut detail = told.words().unwrap_or_else(|| "in the answer".into());
        for more in [&codes, &complaint.message] {
            if !more.is_empty() {
                detail += ": ";
                detail += &self.quote(more, DETAIL_CHARS_MAX);
            }
        }
        Trouble::new(class, message, detail)
    }

    /// What happened, what it means and what to do.
    fn headline(&self, class: ErrorClass, told: Told, complaint: &Complaint) -> String {
        let base = self.base();
        let status = told.number();
        let told = told.words().map_or(String::new(), |words| format!(" ({words})"));
        let model = self.quote(&self.model, QUOTE_CHARS_MAX);
        match (class, status) {
            (ErrorClass::Auth, _) if !self.has_key => {
                format!("{base} wants a key{told}: set {KEY}")
            }
            (ErrorClass::Auth, _) => format!(
                "{base} refuses the key{told}: check {KEY}, and that the key may use model \
                 {model}"
            ),
            (ErrorClass::RateLimited, _)
                if is_out_of_credit(status.unwrap_or_default(), complaint) =>
            {
                format!("the account at {base} has run out{told}: check its plan and billing")
            }
            (ErrorClass::RateLimited, _) => {
                format!("{base} wants us to slow down{told}: wait a while, then try again")
            }
            (ErrorClass::ContextOverflow, _) => format!(
                "the conversation is too long for model {model}{told}: begin a new session, or \
                 choose one with a larger context with {MODEL}"
            ),
            (_, Some(404)) => format!(
                "{base} doesn't know this address or model {model}{told}: check {BASE_URL}, and \
                 {MODEL}"
            ),
            (_, Some(400..=499)) => {
                format!("{base} refuses the request{told}: check {MODEL} (now {model})")
            }
            (_, Some(_) | None) => format!("{base} failed{told}: try again later"),
        }
    }
}

impl Told {
    fn number(self) -> Option<u16> {
        match self {
            Self::Status(number) | Self::Code(number) => Some(number),
            Self::Nothing => None,
        }
    }

    fn words(self) -> Option<String> {
        match self {
            Self::Status(status) => Some(format!("status {status}")),
            Self::Code(code) => Some(format!("code {code}")),
            Self::Nothing => None,
        }
    }
}

impl Complaint {
    /// In the body of an error answer: a JSON object with the complaint in `error`, the complaint
    /// itself, a list of them, or plain text.
    fn from_body(body: &[u8]) -> Self {
        let Ok(value) = json::read::<Value>(body) else {
            let message = String::from_utf8_lossy(body).trim().to_owned();
            return Self { message, ..Self::default() };
        };
        let value = value.get(0).unwrap_or(&value);
        Self::from_value(value.get("error").filter(|error| !error.is_null()).unwrap_or(value))
    }

    fn from_value(error: &Value) -> Self {
        let word = |name: &str| match &error[name] {
            Value::String(word) => Some(word.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let text = error.as_str().map(str::to_owned);
        let message = text.or_else(|| word("message")).or_else(|| word("detail"));
        let codes = [word("code"), word("type")].into_iter().flatten().collect();
        let status = error["code"].as_u64().or_else(|| error["status"].as_u64());
        let status = status.filter(|status| (400..600).contains(status));
        Self {
            message: message.unwrap_or_else(|| error.to_string()),
            codes,
            status: status.and_then(|status| u16::try_from(status).ok()),
        }
    }

    /// True if `word` is in one of its words for programs.
    fn has_code(&self, word: &str) -> bool {
        self.codes.iter().any(|code| code.contains(word))
    }

    fn class(&self, status: Option<u16>) -> ErrorClass {
        let says = |words: &[&str]| {
            let said = self.codes.iter().chain([&self.message]).map(|said| said.to_lowercase());
            said.into_iter().any(|said| words.iter().any(|word| said.contains(word)))
        };
        let has_code = |words: &[&str]| words.iter().any(|word| self.has_code(word));
        match status {
            Some(401 | 403) => ErrorClass::Auth,
            Some(402 | 429) => ErrorClass::RateLimited,
            Some(404) => ErrorClass::Provider,
            Some(_) | None if says(OVERFLOW_WORDS) => ErrorClass::ContextOverflow,
            None if has_code(&["rate_limit", "insufficient_quota"]) => ErrorClass::RateLimited,
            None if has_code(&["invalid_api_key", "authentication"]) => ErrorClass::Auth,
            Some(_) | None => ErrorClass::Provider,
        }
    }
}

/// How providers say that a conversation is too long: OpenAI's code, its message (vLLM's too),
/// that of others, and llama.cpp's.
const OVERFLOW_WORDS: &[&str] = &[
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "context size",
    "context_size",
];

/// What is secret of the login in `url`: the password and the header that it becomes, or a user
/// name without one, which is a key.
fn login(url: &Url) -> Vec<Secret> {
    let user = url.username();
    let secrets = match url.password() {
        Some(password) => {
            let token = BASE64_STANDARD.encode(unescaped(&format!("{user}:{password}")));
            [Secret::new(password), Secret::new(&token)]
        }
        None => [Secret::new(user), None],
    };
    secrets.into_iter().flatten().collect()
}

/// Waiting doesn't help an empty account.
fn is_out_of_credit(status: u16, complaint: &Complaint) -> bool {
    status == 402 || complaint.has_code("insufficient_quota")
}

/// The error and what lies below it, without the URL.
fn causes(error: &reqwest::Error) -> String {
    let mut text = match error.is_connect() {
        true => "connecting".to_owned(),
        false => "the connection".to_owned(),
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// True if the provider's TLS certificate was refused, or it doesn't speak TLS as it should.
fn is_tls(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<rustls::Error>() {
            return true;
        }
        // An `io::Error` leaves the error it wraps out of its sources.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn troubles(key: Option<&str>) -> Troubles {
        let key = key.and_then(Secret::new);
        Troubles::new(key.as_ref(), "https://user:a%2Fpass@host/v1?q=secret", "m")
    }

    /// An answer with `status` and `body` is of `class`, and its message holds all of `words`.
    fn check(status: u16, body: &str, class: ErrorClass, words: &[&str]) {
        let error = troubles(Some("sk-abcdef")).status(status, body.as_bytes(), None).into_error();
        assert_eq!(error.class, class, "{status} {body}");
        for word in words {
            assert!(error.message.contains(word), "{word:?} in {:?}", error.message);
        }
        for shown in [&error.message, &error.detail] {
            assert!(!shown.contains("sk-abcdef") && !shown.contains("pass"), "{shown}");
        }
        assert!(error.detail.starts_with(&format!("status {status}")), "{}", error.detail);
    }

    #[test]
    fn a_status_has_its_class_and_says_what_to_do() {
        use ErrorClass as E;
        let said = r#"{"error":{"message":"no sk-abcdef here","type":"t","code":null}}"#;
        check(401, said, E::Auth, &["DUOLOGUE_API_KEY", "no [redacted] here", "https://host/v1"]);
        check(403, "", E::Auth, &["refuses the key"]);
        check(402, "", E::RateLimited, &["billing"]);
        check(429, said, E::RateLimited, &["slow down"]);
        let quota = r#"{"error":{"message":"x","code":"insufficient_quota"}}"#;
        check(429, quota, E::RateLimited, &["billing"]);
        check(
            404,
            r#"{"detail":"Not Found"}"#,
            E::Provider,
            &["--base-url", "--model", "Not Found"],
        );
        check(400, said, E::Provider, &["refuses the request"]);
        check(500, "a\nbc", E::Provider, &["failed (status 500)", "says: a\nbc"]);
        check(503, r#"[{"error":{"message":"in a list"}}]"#, E::Provider, &["in a list"]);
        check(400, r#"{"error":"only text"}"#, E::Provider, &["says: only text"]);
        check(400, r#"{"object":"error","message":"flat","code":400}"#, E::Provider, &["flat"]);
        check(400, r#"{"error":{"odd":1}}"#, E::Provider, &[r#"{"odd":1}"#]);
        check(400, r#"{"error":{"message":"half \ud83d"}}"#, E::Provider, &["says: half \u{FFFD}"]);
    }

    #[test]
    fn a_conversation_that_is_too_long_is_told_apart() {
        for body in [
            r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens."}}"#,
            r#"{"message":"Your input exceeds the Context Window of this model"}"#,
            r#"{"error":{"code":400,"message":"x","type":"exceed_context_size_error"}}"#,
            r#"{"error":{"message":"the request exceeds the available context size"}}"#,
        ] {
            let class = troubles(None).status(400, body.as_bytes(), None).class;
            assert_eq!(class, ErrorClass::ContextOverflow, "{body}");
        }
    }

    #[test]
    fn only_passing_troubles_are_tried_again() {
        let retry = |status, body: &str, after: Option<u64>| {
            troubles(None).status(status, body.as_bytes(), after.map(Duration::from_secs)).retry
        };
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            assert_eq!(retry(status, "", None), Retry::Backoff, "{status}");
        }
        for status in [400, 401, 402, 403, 404, 413, 422, 501] {
            assert_eq!(retry(status, "", Some(1)), Retry::Never, "{status}");
        }
        assert_eq!(retry(429, "", Some(60)), Retry::After(RETRY_AFTER_MAX));
        assert_eq!(retry(429, "", Some(61)), Retry::Never);
        assert_eq!(retry(429, r#"{"error":{"code":"insufficient_quota"}}"#, Some(1)), Retry::Never);
    }

    #[test]
    fn a_wait_that_is_too_long_is_told() {
        let trouble = troubles(None).status(429, b"", Some(Duration::from_secs(3_600)));
        assert!(trouble.message.contains("3600 s"), "{}", trouble.message);
    }

    #[test]
    fn an_error_inside_an_answer_is_judged_by_its_code() {
        let check = |error: Value, class: ErrorClass, retry: Retry| {
            let trouble = troubles(None).reported(&error);
            assert_eq!((trouble.class, trouble.retry), (class, retry), "{error}");
        };
        let coded = |code: Value| serde_json::json!({ "message": "x", "code": code });
        check(coded(502.into()), ErrorClass::Provider, Retry::Backoff);
        check(coded(429.into()), ErrorClass::RateLimited, Retry::Backoff);
        check(coded(401.into()), ErrorClass::Auth, Retry::Never);
        check(coded("rate_limit_exceeded".into()), ErrorClass::RateLimited, Retry::Never);
        check(coded("invalid_api_key".into()), ErrorClass::Auth, Retry::Never);
        check(coded("context_length_exceeded".into()), ErrorClass::ContextOverflow, Retry::Never);
        check(coded(Value::Null), ErrorClass::Provider, Retry::Never);
        check("text".into(), ErrorClass::Provider, Retry::Never);
    }

    #[test]
    fn a_number_is_told_once_and_for_what_it_is() {
        let error = serde_json::json!({ "message": "overloaded", "code": 529 });
        let body = serde_json::json!({ "error": error }).to_string();
        let check = |trouble: Trouble, told: &str, detail: &str| {
            assert!(trouble.message.contains(&format!("failed ({told}): ")), "{trouble:?}");
            assert_eq!(trouble.detail, detail);
        };
        check(troubles(None).reported(&error), "code 529", "code 529: overloaded");
        let status = |status| troubles(None).status(status, body.as_bytes(), None);
        check(status(529), "status 529", "status 529: overloaded");
        check(status(503), "status 503", "status 503: 529: overloaded");
        let typed = serde_json::json!({ "code": "500", "type": "server_error", "status": 500 });
        let detail = troubles(None).reported(&typed).detail;
        assert!(detail.starts_with("code 500: server_error: "), "{detail}");
    }

    #[test]
    fn every_message_says_what_to_do() {
        let it = troubles(None);
        let why = serde_json::from_str::<Value>("").expect_err("no JSON");
        let limit = Duration::from_secs(1);
        let all = [
            it.bad_base_url("is odd"),
            it.no_key(),
            it.odd_key(),
            it.no_model(),
            it.no_client(&NoClient::Roots("odd".into())),
            it.no_client(&NoClient::Other("odd".into())),
            it.redirected(302, None),
            it.timeout(Elapsed::Idle(limit)),
            it.timeout(Elapsed::Total(limit)),
            it.empty(),
            it.not_an_answer("text/html"),
            it.cut_off(),
            it.unreadable(&why, b""),
            it.too_long("an event is longer than 8 bytes".into()),
            it.nameless_tool(),
            it.gave_up(),
            it.unknown_tools(&["look"]),
            it.unwritable(&why),
        ];
        let statuses = [400, 401, 402, 404, 429, 500].map(|status| it.status(status, b"", None));
        let advice = ["check ", "name ", "set ", "send ", "raise ", "ask ", "choose ", "report "];
        let passing = ["try again later", "wait a while"];
        for trouble in all.iter().chain(&statuses) {
            let (_, todo) = trouble.message.rsplit_once(": ").expect("what to do");
            assert!(advice.iter().chain(&passing).any(|word| todo.contains(word)), "{trouble:?}");
        }
    }

    #[test]
    fn a_long_complaint_is_cut_after_its_secrets_are_gone() {
        let long = "\u{e9}sk-abcdef".repeat(DETAIL_CHARS_MAX);
        let error = troubles(Some("sk-abcdef")).status(500, long.as_bytes(), None).into_error();
        assert!(error.detail.chars().count() <= DETAIL_CHARS_MAX + "status 500: \u{2026}".len());
        assert!(error.message.chars().count() < 2 * QUOTE_CHARS_MAX);
        assert!(!error.detail.contains("sk-"));
    }

    #[test]
    fn a_key_is_redacted_however_the_provider_spells_it() {
        let check = |key: &str, trouble: &dyn Fn(&Troubles) -> Trouble, words: &str| {
            let error = trouble(&troubles(Some(key))).into_error();
            assert!(error.detail.contains(words), "{error:?}");
            let marks = ["ab\"c", "ab\\", "0123456789"];
            let shown = [error.message, error.detail].concat();
            assert!(!marks.iter().any(|mark| shown.contains(mark)), "{shown}");
        };
        let event = br#"{"error":"bad key sk\/abcdef\/0123456789", nope}"#;
        let why = serde_json::from_slice::<Value>(event).expect_err("no JSON");
        let unreadable = |troubles: &Troubles| troubles.unreadable(&why, event);
        check("sk/abcdef/0123456789", &unreadable, "bad key [redacted]");
        let odd = br#"{"error":{"odd":"bad key sk/ab\"c"}}"#;
        check("sk/ab\"c", &|troubles| troubles.status(401, odd, None), "bad key [redacted]");
        let data = br#""sk/abcdef/0123456789""#;
        let why = serde_json::from_slice::<Vec<u8>>(data).expect_err("no list");
        check("sk/abcdef/0123456789", &|troubles| troubles.unreadable(&why, data), "[redacted]");
    }

    #[test]
    fn the_login_in_the_base_url_is_a_secret_too() {
        let check = |base_url: &str, said: &str, redacted: &str| {
            let error = Troubles::new(None, base_url, "m").status(500, said.as_bytes(), None);
            assert!(error.message.ends_with(&format!("says: {redacted}")), "{}", error.message);
        };
        check("http://user:a%2Fpassword@h", "a/password user", "[redacted] user");
        check("http://user:a%2Fpassword@h", "Basic dXNlcjphL3Bhc3N3b3Jk", "Basic [redacted]");
        check("http://token-0123@h", "no token-0123", "no [redacted]");
    }

    #[test]
    fn a_missing_key_is_told_apart_from_a_wrong_one() {
        let error = troubles(None).status(401, b"", None).into_error();
        assert!(error.message.contains("wants a key"), "{}", error.message);
    }
}
