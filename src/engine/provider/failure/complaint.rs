//! A provider's own report of an error, and the class of that error.

use crate::engine::ErrorClass;
use crate::engine::provider::json;
use crate::task::report::{CODE, STATUS, is_out_of_credit, is_passing};
use serde_json::Value;
use std::time::Duration;

/// A provider's report of an error.
#[derive(Debug, Default)]
pub(super) struct Complaint {
    pub(super) message: String,
    /// Its words for programs: code and type.
    pub(super) codes: Vec<String>,
    /// The HTTP status in it, if any.
    pub(super) status: Option<u16>,
    /// The field of the request that it is about, if it names one.
    field: Option<String>,
    /// The wait that it requests.
    pub(super) after: Option<Duration>,
}

/// The number by which an error is classified.
#[derive(Clone, Copy, Debug)]
pub(super) enum ErrorNumber {
    /// The HTTP status of the response.
    Status(u16),
    /// A status in the body of a response whose own status is a success.
    Code(u16),
    /// The provider gives none.
    Missing,
}

impl ErrorNumber {
    pub(super) fn status(self) -> Option<u16> {
        match self {
            Self::Status(number) | Self::Code(number) => Some(number),
            Self::Missing => None,
        }
    }

    pub(super) fn words(self) -> Option<String> {
        match self {
            Self::Status(status) => Some(format!("{STATUS}{status}")),
            Self::Code(code) => Some(format!("{CODE}{code}")),
            Self::Missing => None,
        }
    }
}

impl Complaint {
    /// In the body of an error answer: a JSON object with the complaint in `error`, the complaint
    /// itself, which may have a headline in `error`, a list of them, or plain text.
    pub(super) fn from_body(body: &[u8]) -> Self {
        let Ok(value) = json::read::<Value>(body) else {
            let message = String::from_utf8_lossy(body).trim().to_owned();
            return Self { after: wait_in(&message), message, ..Self::default() };
        };
        let value = value.get(0).unwrap_or(&value);
        let is_complaint = |error: &&Value| !error.is_null() && !error.is_string();
        Self::from_value(value.get("error").filter(is_complaint).unwrap_or(value))
    }

    pub(super) fn from_value(error: &Value) -> Self {
        let word = |name: &str| match &error[name] {
            Value::String(word) => Some(word.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let faults = faults(error);
        let text = error.as_str().map(str::to_owned);
        let named = ["message", "detail", "error_message", "error_msg"];
        let message = text.or_else(|| named.into_iter().find_map(word));
        let message = message.or_else(|| faults_text(faults)).or_else(|| inner_message(error));
        let details = error["details"].as_array().map_or(&[][..], Vec::as_slice);
        let reasons = details.iter().filter_map(|detail| detail["reason"].as_str());
        let kinds = faults.iter().filter_map(|fault| fault["type"].as_str());
        let codes = ["code", "type", "error_code", "error_type"].into_iter().filter_map(word);
        let violations = details.iter().filter_map(|detail| detail["violations"].as_array());
        let quotas = violations.flatten().filter_map(|violation| violation["quotaId"].as_str());
        let codes = codes.chain(reasons.chain(kinds).chain(quotas).map(str::to_owned)).collect();
        let headline = error["error"].as_str().map(str::trim).filter(|text| !text.is_empty());
        let message = match (headline, message) {
            (Some(headline), Some(message)) => with_headline(headline, message),
            (Some(only), None) => only.to_owned(),
            (None, Some(message)) => message,
            (None, None) => error.to_string(),
        };
        let message = with_cause(message, &error["metadata"]["raw"]);
        let after = details.iter().find_map(retry_delay).or_else(|| wait_in(&message));
        Self {
            message,
            codes,
            status: STATUS_FIELDS.iter().find_map(|name| status(&error[name])),
            field: word("param"),
            after,
        }
    }

    /// All its words.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let words = self.codes.iter().chain([&self.message]).chain(&self.field);
        words.map(String::as_str)
    }

    /// True if `word` is in one of its words for programs.
    fn has_code(&self, word: &str) -> bool {
        self.codes.iter().any(|code| code.contains(word))
    }

    /// Whether it is about the field of the request that has the schema of the answer.
    pub(super) fn is_about_schemas(&self) -> bool {
        let is_about = |text: String| SCHEMA_WORDS.iter().any(|word| text.contains(word));
        self.texts().any(|text| is_about(text.to_lowercase()))
    }

    /// Whether it is about the model: by the field that it names, else by its words.
    pub(super) fn is_about_model(&self) -> bool {
        match &self.field {
            Some(field) => field == "model",
            None => self.has_code("model") || self.message.to_lowercase().contains("model"),
        }
    }

    /// Whether it is about a limit of the answer that the model can't have, however short the conversation is.
    pub(super) fn is_about_answer_limit(&self) -> bool {
        let message = self.message.to_lowercase();
        let number = |before: &str| number_after(&message, before);
        let is_named = ANSWER_LIMITS.iter().any(|name| message.contains(name));
        let asked = if message.contains("output tokens") {
            number("you requested ")
        } else if message.contains(TGI_LIMIT) {
            number("`inputs` tokens and ")
        } else {
            number("is too large: ").filter(|_| is_named)
        };
        let context =
            number("maximum context length is ").or_else(|| number("`max_new_tokens` must be <= "));
        // A smaller limit leaves room for a conversation, so that a shorter one helps.
        asked.is_some_and(|asked| context.is_none_or(|context| asked >= context))
    }

    /// Whether the model wrote something that the server could not read, as a bad tool call: it may write another
    /// thing the next time.
    pub(super) fn is_by_chance(&self) -> bool {
        BAD_OUTPUT.iter().any(|word| self.has_code(word) || self.message.contains(word))
    }

    /// Whether the account is empty.
    pub(super) fn is_out_of_credit(&self, status: Option<u16>) -> bool {
        is_out_of_credit(status, "") || self.texts().any(|text| is_out_of_credit(None, text))
    }

    /// Whether Google's quota of the day is used up, or is none: its `retryDelay` is one of seconds all the same.
    pub(super) fn is_out_of_quota(&self, status: Option<u16>) -> bool {
        let has_none = || number_after(&self.message, QUOTA_LIMIT) == Some(0);
        status == Some(TOO_MANY) && (self.has_code(QUOTA_OF_DAY) || has_none())
    }

    /// Whether waiting helps, where the provider failed with this status.
    pub(super) fn is_passing(&self, status: u16) -> bool {
        let number = Some(status);
        let is_final = self.is_out_of_credit(number)
            || self.is_out_of_quota(number)
            || self.exceeds_rate_alone(number);
        is_passing(status) && !is_final
    }

    /// Whether one request alone has more tokens than a minute may have, as Groq says with status 413, and OpenAI with
    /// that of any limit, in whose place a gateway puts one of its own: waiting does not help, and a shorter
    /// conversation does.
    pub(super) fn exceeds_rate_alone(&self, status: Option<u16>) -> bool {
        let has_code = || RATE_LIMIT_WORDS.iter().any(|word| self.has_code(word));
        let has_words = || RATE_WORDS.iter().any(|words| self.message.contains(words));
        status == Some(TOO_LARGE) && has_code()
            || self.message.contains(TOO_LARGE_WORDS) && has_words()
    }

    /// Whether the request is one that nobody may make, whatever the key and the model.
    pub(super) fn is_forbidden(&self) -> bool {
        let is_said = |text: String| FORBIDDEN_WORDS.iter().any(|word| text.contains(word));
        self.texts().any(|text| is_said(text.to_lowercase()))
    }

    /// Whether its message has all words of one about an input that is too long.
    fn is_about_length(&self) -> bool {
        let message = self.message.to_lowercase();
        LENGTH_WORDS.iter().all(|words| message.contains(words))
    }

    pub(super) fn class(&self, status: Option<u16>) -> ErrorClass {
        let contains = |words: &[&str]| {
            let texts = self.codes.iter().chain([&self.message]).map(|text| text.to_lowercase());
            texts.into_iter().any(|text| words.iter().any(|word| text.contains(word)))
        };
        let has_code = |words: &[&str]| words.iter().any(|word| self.has_code(word));
        match status {
            // Servers have it also for what no other key helps against.
            Some(403) if self.is_out_of_credit(status) => ErrorClass::RateLimited,
            Some(403) if self.is_forbidden() => ErrorClass::Provider,
            Some(401 | 403) => ErrorClass::Auth,
            Some(_) | None if self.exceeds_rate_alone(status) => ErrorClass::ContextOverflow,
            Some(402 | 429) => ErrorClass::RateLimited,
            Some(404) => ErrorClass::Provider,
            // Google has it under status 400.
            Some(_) | None if has_code(&["API_KEY_INVALID"]) => ErrorClass::Auth,
            Some(400) | None if contains(KEY_WORDS) => ErrorClass::Auth,
            Some(_) | None if self.is_out_of_credit(status) => ErrorClass::RateLimited,
            Some(_) | None if self.is_about_answer_limit() => ErrorClass::Provider,
            None if has_code(RATE_LIMIT_WORDS) => ErrorClass::RateLimited,
            Some(_) | None
                if (contains(OVERFLOW_WORDS) || self.is_about_length())
                    && !contains(RATE_WORDS) =>
            {
                ErrorClass::ContextOverflow
            }
            None if has_code(&["invalid_api_key", "authentication"]) => ErrorClass::Auth,
            Some(_) | None => ErrorClass::Provider,
        }
    }
}

/// Fields that may hold the HTTP status of an error.
const STATUS_FIELDS: [&str; 5] = ["code", "status", "statusCode", "status_code", "error_code"];

/// The request is too large (RFC 9110).
const TOO_LARGE: u16 = 413;

/// Too many requests (RFC 6585).
const TOO_MANY: u16 = 429;

/// OpenAI's words for a request that is too large by itself, which its message begins with. A gateway's may have others
/// before them.
const TOO_LARGE_WORDS: &str = "Request too large for";

/// In the name of each of Google's quotas for a day, and before the limit of a quota in its messages.
const QUOTA_OF_DAY: &str = "PerDay";
const QUOTA_LIMIT: &str = "limit: ";

/// Codes of providers for too many requests, where they give no status.
const RATE_LIMIT_WORDS: &[&str] = &["rate_limit", "too_many_requests"];

/// Words for a limit of tokens in a time, as in "tokens per minute (TPM)": no conversation is too long for it.
const RATE_WORDS: &[&str] = &["tokens per min", "tokens per day", "tokens per hour"];

/// The names of the field for a schema in the interfaces of OpenAI, Anthropic and Google, in lower case, and what
/// servers call it and what they make of it: Groq, Fireworks, Google, vLLM, Anthropic, llama.cpp, vLLM again, Google
/// again.
const SCHEMA_WORDS: &[&str] = &[
    "response_format",
    "text.format",
    "output_config",
    "output_format",
    "responsejsonschema",
    "response_json_schema",
    "json mode",
    "response format",
    "response mime type",
    "provided json schema",
    "compiled grammar",
    "parse grammar",
    "xgrammar",
    "too many states",
];

/// Groq's codes and words for an answer that it could not read, which it has under status 400.
const BAD_OUTPUT: &[&str] = &["tool_use_failed", "json_validate_failed", "failed_generation"];

/// Words for a prompt that may not be answered, which OpenRouter and xAI have under status 403, and others with codes
/// of OpenAI, and OpenAI's code for a country that it does not serve: the key is right.
const FORBIDDEN_WORDS: &[&str] = &[
    "input was flagged",
    "violates usage guidelines",
    "content_policy",
    "content_filter",
    "unsupported_country",
];

/// xAI's words for a wrong key, which it has under status 400.
const KEY_WORDS: &[&str] = &["incorrect api key"];

/// Names of the limit of an answer's tokens.
const ANSWER_LIMITS: &[&str] = &["max_tokens", "max_completion_tokens", "max_output_tokens"];

/// The words of TGI, and of Together, for a request that is too long, in part for its answer.
const TGI_LIMIT: &str = "`inputs` tokens + `max_new_tokens` must be <=";

/// Words of providers for a conversation that is too long: OpenAI's code, its message (vLLM's too),
/// that of others, llama.cpp's, Anthropic's, Google's, Ollama's, Perplexity's code, and the messages of xAI,
/// Bedrock, Moonshot, SGLang, LM Studio, newer versions of vLLM, Groq, DashScope, LM Studio again, Z.ai and Copilot,
/// the code of GitHub Models, the messages of TGI, Cohere and gateways, and further ones of Google and vLLM.
const OVERFLOW_WORDS: &[&str] = &[
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "context size",
    "context_size",
    "prompt is too long",
    "exceed context limit",
    "request_too_large",
    "exceeds the maximum number of tokens",
    "prompt too long",
    "max context length",
    "too_many_prompt_tokens",
    "maximum prompt length",
    "input is too long",
    "exceeded model token limit",
    "longer than the model's context length",
    "greater than the context length",
    "context length is only",
    "reduce the length of the messages",
    "range of input length should be",
    "context length of only",
    "prompt exceeds max length",
    "prompt token count of",
    "tokens_limit_reached",
    TGI_LIMIT,
    "too many tokens:",
    "exceeds token limit",
    "but model only supports up to",
    "longer than the maximum model length",
];

/// Volcengine's words for such a conversation, which stand apart.
const LENGTH_WORDS: [&str; 2] = ["input length", "exceeds the maximum length"];

/// The faults that a server found in a request, as FastAPI lists them: in `detail`, or within the `message` as at
/// Mistral.
fn faults(error: &Value) -> &[Value] {
    let places = [&error["detail"], &error["message"]["detail"]];
    places.into_iter().find_map(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The words of the first fault with some: where it is, and what it is.
fn faults_text(faults: &[Value]) -> Option<String> {
    faults.iter().find_map(|fault| {
        let place = fault["loc"].as_array().map_or(&[][..], Vec::as_slice);
        let place = place.iter().map(|step| step.as_str().map_or(step.to_string(), str::to_owned));
        let place = place.collect::<Vec<_>>().join(".");
        let words = [place.as_str(), fault["msg"].as_str().unwrap_or_default()];
        let words = words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>();
        (!words.is_empty()).then(|| words.join(": "))
    })
}

/// The message of an error that a gateway passes on in its `details`.
fn inner_message(error: &Value) -> Option<String> {
    error.pointer("/details/error/message")?.as_str().map(str::to_owned)
}

/// `message` after the headline that a gateway has for it, unless it says that itself.
fn with_headline(headline: &str, message: String) -> String {
    match message.contains(headline) {
        true => message,
        false => format!("{headline}: {message}"),
    }
}

/// The HTTP status in `field`, if it is one of an error.
fn status(field: &Value) -> Option<u16> {
    let number = field.as_u64().or_else(|| field.as_str()?.trim().parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

/// `message` with the error of the upstream provider, which OpenRouter passes on in `metadata.raw`: a
/// text, or an error in the form of that provider.
fn with_cause(message: String, raw: &Value) -> String {
    let cause = match raw {
        Value::String(text) => Complaint::from_body(text.as_bytes()).message,
        Value::Object(_) => Complaint::from_value(raw.get("error").unwrap_or(raw)).message,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => String::new(),
    };
    match cause.is_empty() || message.contains(&cause) {
        true => message,
        false => format!("{message}: {cause}"),
    }
}

/// The number that follows `before` in `text`.
fn number_after(text: &str, before: &str) -> Option<u64> {
    let (_, rest) = text.split_once(before)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The wait in one of the details of an error, as Google's servers have it: `RetryInfo` of
/// <https://google.aip.dev/193>, a number of seconds and an `s`.
fn retry_delay(detail: &Value) -> Option<Duration> {
    let seconds = detail["retryDelay"].as_str()?.strip_suffix('s')?;
    Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
}

/// Words before the wait in a message, as OpenAI, Groq, Azure and Google have them, also where no header has it.
const WAIT_WORDS: [&str; 4] = ["try again in ", "try again after ", "retry after ", "retry in "];

/// The wait that a message asks for.
fn wait_in(message: &str) -> Option<Duration> {
    let message = message.to_ascii_lowercase();
    WAIT_WORDS.iter().find_map(|words| wait_at_start(message.split_once(words)?.1))
}

/// The wait that `text` begins with: `6s`, `20 seconds`, `1m2.5s`.
fn wait_at_start(text: &str) -> Option<Duration> {
    let (mut seconds, mut rest) = (None, text);
    while let Some((part, after)) = part_of_wait(rest) {
        seconds = Some(seconds.unwrap_or(0.0) + part);
        rest = after;
    }
    Duration::try_from_secs_f64(seconds?).ok()
}

/// The seconds of the number and the unit that `text` begins with, and what follows them.
fn part_of_wait(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at(number_end);
    let rest = rest.trim_start();
    let unit_end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let seconds = match unit {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3_600.0,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * seconds, rest))
}
