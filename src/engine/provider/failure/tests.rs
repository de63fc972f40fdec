//! The words and classes of what can go wrong in a provider call.

use super::*;
use crate::engine::provider::body::Ignored;
use crate::engine::provider::interface::Refused;
use crate::engine::provider::optional::{Ground, OptionalParts, Suspects};
use crate::engine::provider::retry::RETRY_AFTER_MAX;
use crate::task::report::QUOTATION;
use serde_json::Value;

const NAMES: SettingNames = SettingNames {
    base_url: "--base-url",
    model: "--model",
    key: "DUOLOGUE_API_KEY",
    ..SettingNames::FIELDS
};

fn failures(key: Option<&str>) -> Failures {
    let key = key.and_then(Secret::new);
    Failures::new(&NAMES, key.as_ref(), "https://user:a%2Fpass@host/v1?q=secret", "m")
}

/// An answer with `status` and `body` is of `class`, and its message holds all of `words`.
fn check(status: u16, body: &str, class: ErrorClass, words: &[&str]) {
    let error = failures(Some("sk-abcdef")).status(status, body.as_bytes(), None).into_error();
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
    check(429, said, E::RateLimited, &["limits the rate"]);
    let quota = r#"{"error":{"message":"x","code":"insufficient_quota"}}"#;
    check(429, quota, E::RateLimited, &["billing"]);
    check(404, r#"{"detail":"Not Found"}"#, E::Provider, &["--base-url", "--model", "Not Found"]);
    check(400, said, E::Provider, &["refuses the request"]);
    check(500, "a\nbc", E::Provider, &["failed (status 500)", "says: a\nbc"]);
    check(503, r#"[{"error":{"message":"in a list"}}]"#, E::Provider, &["in a list"]);
    check(400, r#"{"error":"only text"}"#, E::Provider, &["says: only text"]);
    check(400, r#"{"object":"error","message":"flat","code":400}"#, E::Provider, &["flat"]);
    check(400, r#"{"error":{"odd":1}}"#, E::Provider, &[r#"{"odd":1}"#]);
    check(400, r#"{"error":{"message":"half \ud83d"}}"#, E::Provider, &["says: half \u{FFFD}"]);
}

/// Gateways have a headline in `error`, and the words that matter beside it.
#[test]
fn the_words_beside_a_headline_are_in_the_message() {
    use ErrorClass as E;
    let budget =
        r#"{"statusCode":429,"error":"Too Many Requests","message":"Budget of 50 USD used up"}"#;
    check(429, budget, E::RateLimited, &["says: Too Many Requests: Budget of 50 USD used up"]);
    let field = r#"{"status":400,"error":"Bad Request","message":"field temperature not allowed"}"#;
    check(400, field, E::Provider, &["says: Bad Request: field temperature not allowed"]);
    let inner =
        r#"{"error":"403 Forbidden","status":403,"details":{"error":{"message":"no seat"}}}"#;
    check(403, inner, E::Auth, &["says: 403 Forbidden: no seat"]);
    let coded = r#"{"code":"invalid-argument","error":"odd"}"#;
    check(400, coded, E::Provider, &["says: odd"]);
    let error = failures(None).status(400, coded.as_bytes(), None).into_error();
    assert_eq!(error.detail, "status 400: invalid-argument: odd");
}

/// As Mistral and FastAPI list them.
#[test]
fn the_faults_of_a_request_are_said_with_their_places() {
    let faults = r#"[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":7}]"#;
    let words = &["says: body.seed: Extra inputs are not permitted"];
    let mistral = format!(r#"{{"object":"error","message":{{"detail":{faults}}}}}"#);
    check(422, &mistral, ErrorClass::Provider, words);
    check(422, &format!(r#"{{"detail":{faults}}}"#), ErrorClass::Provider, words);
}

#[test]
fn a_wrong_key_under_status_400_is_recognized() {
    let said = r#"{"code":"invalid-argument","error":"Incorrect API key provided. Get one."}"#;
    check(400, said, ErrorClass::Auth, &["refuses the key", "Incorrect API key provided"]);
    check(500, said, ErrorClass::Provider, &["failed (status 500)"]);
}

/// A router says why the provider behind it failed.
#[test]
fn the_cause_behind_a_router_is_in_the_message() {
    let check_raw = |raw: Value, words: &[&str]| {
        let metadata = serde_json::json!({ "provider_name": "Google", "raw": raw });
        let error =
            serde_json::json!({ "message": "Provider returned error", "metadata": metadata });
        check(
            429,
            &serde_json::json!({ "error": error }).to_string(),
            ErrorClass::RateLimited,
            words,
        );
    };
    let text = "the model is limited upstream, key sk-abcdef";
    let shown = "Provider returned error: the model is limited upstream, key [redacted]";
    check_raw(text.into(), &[shown]);
    let error = serde_json::json!({ "error": { "message": text } });
    check_raw(error.to_string().into(), &[shown]);
    check_raw(error, &[shown]);
    check_raw("Provider returned error".into(), &["says: Provider returned error"]);
    check_raw(Value::Null, &["says: Provider returned error"]);
}

/// Nobody is sent to look at the model for an error that is about something else.
#[test]
fn a_refusal_names_the_model_only_if_it_is_about_the_model() {
    let says = |body: &str, names_model: bool| {
        let error = failures(None).status(400, body.as_bytes(), None).into_error();
        assert_eq!(error.message.contains("--model"), names_model, "{}", error.message);
    };
    says(r#"{"error":{"message":"The model `m` does not exist","code":"x"}}"#, true);
    says(r#"{"error":{"message":"no such name","code":"model_not_found"}}"#, true);
    says(r#"{"error":{"message":"odd value","param":"model"}}"#, true);
    says("", true);
    says(r#"{"error":{"message":"messages: roles must alternate"}}"#, false);
    let temperature = r#"{"error":{"message":"'temperature' does not go with this model","param":"temperature"}}"#;
    says(temperature, false);
}

#[test]
fn a_conversation_that_is_too_long_is_recognized() {
    for body in [
        r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens."}}"#,
        r#"{"message":"Your input exceeds the Context Window of this model"}"#,
        r#"{"error":{"code":400,"message":"x","type":"exceed_context_size_error"}}"#,
        r#"{"error":{"message":"the request exceeds the available context size"}}"#,
        r#"{"error":{"message":"prompt too long; exceeded max context length by 9 tokens"}}"#,
        r#"{"error":{"message":"All is too long.","type":"too_many_prompt_tokens","code":400}}"#,
        r#"{"error":{"message":"The input token count (9) exceeds the maximum number of tokens allowed (8)."}}"#,
        r#"{"code":"invalid-argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
        r#"{"message":"Input is too long for requested model."}"#,
        r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)","type":"invalid_request_error"}}"#,
        r#"{"object":"error","message":"The input (40000 tokens) is longer than the model's context length (32768 tokens).","code":400}"#,
        r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length."}"#,
        r#"{"error":{"message":"You passed 40000 input tokens and requested 0 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 32768 tokens."}}"#,
        r#"{"error":{"message":"Please reduce the length of the messages or completion.","param":"messages"}}"#,
        r#"{"error":{"message":"Range of input length should be [1, 30720]","code":"invalid_parameter_error"}}"#,
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8500 in the messages, 500 in the completion)."}}"#,
        r#"{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 8192 tokens and your request has 7500 input tokens (1000 > 8192 - 7500)."}}"#,
        r#"{"error":{"message":"This model's maximum context length is 262144 tokens. However, you requested 128000 output tokens and your prompt contains at least 134145 input tokens."}}"#,
        r#"{"error":{"message":"input length and `max_tokens` exceed context limit: 174167 + 64000 > 200000"}}"#,
        r#"{"error":"Trying to keep the first 6000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}"#,
        r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#,
        r#"{"error":{"message":"prompt token count of 150000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}"#,
        r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 20 `max_new_tokens`","error_type":"validation"}"#,
        r#"{"message":"too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 150000."}"#,
        r#"{"error":{"message":"input exceeds token limit of 8000"}}"#,
        r#"{"error":{"code":400,"message":"The input token count is 1300000 but model only supports up to 1048576.","status":"INVALID_ARGUMENT"}}"#,
        r#"{"object":"error","message":"The decoder prompt (length 9000) is longer than the maximum model length of 8192.","code":400}"#,
        r#"{"error":{"message":"Input length 203743 exceeds the maximum length 202752","code":"InvalidParameter"}}"#,
    ] {
        let class = failures(None).status(400, body.as_bytes(), None).class;
        assert_eq!(class, ErrorClass::ContextOverflow, "{body}");
    }
    let github = r#"{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}"#;
    check(413, github, ErrorClass::ContextOverflow, &["too long for model m"]);
}

/// The words of Groq and OpenAI for one request that has more tokens than a minute may have, which a shorter
/// conversation mends and waiting does not, and others' for several.
#[test]
fn a_request_that_alone_exceeds_the_tokens_of_a_minute_is_too_long() {
    let message = "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7000, please reduce your message size and try again.";
    let error =
        serde_json::json!({ "message": message, "type": "tokens", "code": "rate_limit_exceeded" });
    let body = serde_json::json!({ "error": error }).to_string();
    let said = ["more tokens than https://host/v1", "model m", "waiting does not help", "--model"];
    check(413, &body, ErrorClass::ContextOverflow, &said);
    let failure = failures(None).status(413, body.as_bytes(), None).into_error();
    assert!(!failure.class.may_pass(&failure.detail), "{failure:?}");
    let alone = "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 45000. The input or output tokens must be reduced in order to run successfully.";
    let several = "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.";
    let failed = |message: &str| {
        let error = serde_json::json!({ "message": message, "type": "tokens", "code": "rate_limit_exceeded" });
        let status = failures(None).status(429, error.to_string().as_bytes(), None);
        let reported = failures(None).reported_as(&error, Some(429));
        [(status.class, status.retry), (reported.class, reported.retry)]
    };
    assert_eq!(failed(alone), [(ErrorClass::ContextOverflow, Retry::Never); 2]);
    // OpenRouter passes it on with a code of its own.
    let raw = serde_json::json!({ "error": { "message": alone } }).to_string();
    for routed in [
        serde_json::json!({ "code": 502, "message": alone }),
        serde_json::json!({ "code": 429, "message": "Provider returned error", "metadata": { "raw": raw } }),
    ] {
        let routed = failures(None).reported(&routed);
        assert_eq!((routed.class, routed.retry), (ErrorClass::ContextOverflow, Retry::Never));
    }
    let later = Retry::After(Duration::from_secs(2));
    assert_eq!(failed(several), [(ErrorClass::RateLimited, later); 2]);
    let many = r#"{"error":{"message":"The prompt token count of this key exceeds its tokens per minute"}}"#;
    check(400, many, ErrorClass::Provider, &["refuses the request"]);
}

/// No shorter conversation would help.
#[test]
fn a_limit_of_the_answer_that_is_too_large_is_no_conversation_that_is_too_long() {
    for message in [
        "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 8192 tokens and your request has 50 input tokens (32000 > 8192 - 50).",
        "This model's maximum context length is 8192 tokens. However, you requested 32000 output tokens and your prompt contains at least 50 input tokens.",
        "max_tokens is too large: 32000. This model supports at most 4096 completion tokens.",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 50 `inputs` tokens and 32000 `max_new_tokens`",
    ] {
        let body = serde_json::json!({ "error": { "message": message } }).to_string();
        check(400, &body, ErrorClass::Provider, &["`max_tokens`", "model m"]);
    }
}

#[test]
fn only_temporary_errors_are_tried_again() {
    let retry = |status, body: &str, after: Option<u64>| {
        failures(None).status(status, body.as_bytes(), after.map(Duration::from_secs)).retry
    };
    let servers = (500..=599).filter(|status| !matches!(status, 501 | 505));
    for status in [408, 409, 429].into_iter().chain(servers) {
        assert_eq!(retry(status, "", None), Retry::Backoff, "{status}");
        let error = failures(None).status(status, b"", None).into_error();
        assert!(error.class.may_pass(&error.detail), "{status}");
        let advice = ["try again later", "wait a while"];
        assert!(advice.iter().any(|words| error.message.contains(words)), "{error:?}");
    }
    for status in [400, 402, 403, 404, 422, 501, 505] {
        let error = failures(None).status(status, b"", None).into_error();
        assert!(!error.class.may_pass(&error.detail), "{status}");
        assert!(!error.message.contains("try again later"), "{error:?}");
        assert_eq!(retry(status, "", Some(1)), Retry::Never, "{status}");
    }
    let images = OptionalParts { tool_images: true, ..OptionalParts::default() };
    let suspects = Suspects { parts: images, ground: Ground::ThisRequest };
    assert_eq!(retry(413, "", Some(1)), Retry::Without(suspects));
    assert_eq!(retry(429, "", Some(60)), Retry::After(RETRY_AFTER_MAX));
    assert_eq!(retry(429, "", Some(61)), Retry::Never);
}

/// An empty account does not fill by waiting, whatever the status and the place of its error.
#[test]
fn an_empty_account_is_for_good() {
    let never = |failure: Failure| {
        assert_eq!(failure.retry, Retry::Never, "{failure:?}");
        assert!(failure.message.contains("billing"), "{failure:?}");
        let error = failure.into_error();
        assert_eq!(error.class, ErrorClass::RateLimited);
        assert!(!error.class.may_pass(&error.detail), "{error:?}");
    };
    for error in [
        serde_json::json!({ "message": "x", "code": "insufficient_quota" }),
        serde_json::json!({ "message": "x", "type": "insufficient_quota", "code": null }),
        serde_json::json!({ "message": "x", "code": "billing_hard_limit_reached" }),
        serde_json::json!({ "message": "x", "code": "billing_not_active" }),
        serde_json::json!({ "message": "x", "type": "exceeded_current_quota_error" }),
        serde_json::json!({ "message": "Your credit balance is too low." }),
        serde_json::json!(
            "Your team x has either used all available credits or reached its monthly spending limit."
        ),
        serde_json::json!("Your newly created team doesn't have any credits or licenses yet."),
        serde_json::json!("You have run out of credits or need a Grok subscription."),
        serde_json::json!({ "message": "Key limit exceeded (total limit). Manage it.", "code": 403 }),
    ] {
        let body = serde_json::json!({ "code": "odd", "error": error }).to_string();
        for status in [400, 402, 403, 429, 500] {
            never(failures(None).status(status, body.as_bytes(), Some(Duration::from_secs(1))));
        }
        never(failures(None).reported(&error));
        never(failures(None).reported_as(&error, Some(429)));
    }
    never(failures(None).status(402, b"", None));
}

/// The words of OpenRouter, xAI and OpenAI. Another key would not help, and the key of the person is right.
#[test]
fn what_is_forbidden_with_every_key_is_not_the_fault_of_the_key() {
    let flagged = r#"{"error":{"message":"openai/gpt-4o requires moderation on OpenRouter. Your input was flagged for \"violence\". No credits were charged.","code":403}}"#;
    let violates = r#"{"code":"The caller does not have permission to execute the specified operation","error":"Content violates usage guidelines. Team: t, API key ID: k, Model: m, Failed check: SAFETY_CHECK_TYPE_BIO"}"#;
    let region = r#"{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","type":"request_forbidden"}}"#;
    for body in [flagged, violates, region] {
        check(403, body, ErrorClass::Provider, &["refuses the request", "change what it names"]);
        let failure = failures(Some("sk-abcdef")).status(403, body.as_bytes(), None);
        let (headline, _) = failure.message.split_once(QUOTATION).expect("its words");
        assert!(!headline.contains("key") && !headline.contains("--model"), "{failure:?}");
        assert_eq!(failure.retry, Retry::Never);
    }
    let denied = r#"{"error":{"message":"Your key may not use this model"}}"#;
    check(403, denied, ErrorClass::Auth, &["refuses the key"]);
}

/// Google asks for a wait of seconds also where the quota of the day is used up.
#[test]
fn a_quota_of_a_day_is_not_waited_for() {
    let failure = |quota: &str, message: &str| {
        let violation = serde_json::json!({ "quotaId": quota, "quotaValue": "50" });
        let details = serde_json::json!([{ "violations": [violation] }, { "retryDelay": "23s" }]);
        let error = serde_json::json!({ "code": 429, "status": "RESOURCE_EXHAUSTED",
            "message": message, "details": details });
        let body = serde_json::json!({ "error": error }).to_string();
        failures(None).status(429, body.as_bytes(), None)
    };
    let of_day = "GenerateRequestsPerDayPerProjectPerModel-FreeTier";
    let of_minute = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier";
    let none = "Quota exceeded for metric: free_tier_requests, limit: 0, model: m";
    for (quota, message) in [(of_day, "Quota exceeded, limit: 50"), (of_minute, none)] {
        let failure = failure(quota, message);
        assert_eq!((failure.class, failure.retry), (ErrorClass::RateLimited, Retry::Never));
        assert!(failure.message.contains("quota of the day"), "{failure:?}");
        assert!(failure.detail.contains(quota), "{failure:?}");
    }
    let failure = failure(of_minute, "Quota exceeded, limit: 5");
    assert_eq!(failure.retry, Retry::After(Duration::from_secs(23)));
    assert!(failure.message.contains("limits the rate"), "{failure:?}");
}

#[test]
fn a_wait_that_is_too_long_is_reported() {
    let failure = failures(None).status(429, b"", Some(Duration::from_secs(3_600)));
    assert!(failure.message.contains("3600 s"), "{}", failure.message);
}

#[test]
fn an_error_inside_an_answer_is_judged_by_its_code() {
    let check = |error: Value, class: ErrorClass, retry: Retry| {
        let failure = failures(None).reported(&error);
        assert_eq!((failure.class, failure.retry), (class, retry), "{error}");
    };
    let coded = |code: Value| serde_json::json!({ "message": "x", "code": code });
    check(coded(502.into()), ErrorClass::Provider, Retry::Backoff);
    check(coded(429.into()), ErrorClass::RateLimited, Retry::Backoff);
    check(coded("429".into()), ErrorClass::RateLimited, Retry::Backoff);
    check(coded(" 503 ".into()), ErrorClass::Provider, Retry::Backoff);
    check(coded(401.into()), ErrorClass::Auth, Retry::Never);
    check(coded("too_many_requests".into()), ErrorClass::RateLimited, Retry::Never);
    check(coded("rate_limit_exceeded".into()), ErrorClass::RateLimited, Retry::Never);
    check(coded("invalid_api_key".into()), ErrorClass::Auth, Retry::Never);
    check(coded("context_length_exceeded".into()), ErrorClass::ContextOverflow, Retry::Never);
    check(coded(Value::Null), ErrorClass::Provider, Retry::Never);
    check("text".into(), ErrorClass::Provider, Retry::Never);
}

#[test]
fn a_number_is_reported_once_and_for_what_it_is() {
    let error = serde_json::json!({ "message": "overloaded", "code": 529 });
    let body = serde_json::json!({ "error": error }).to_string();
    let check = |failure: Failure, number: &str, detail: &str| {
        assert!(failure.message.contains(&format!("failed ({number}): ")), "{failure:?}");
        assert_eq!(failure.detail, detail);
    };
    check(failures(None).reported(&error), "code 529", "code 529: overloaded");
    let status = |status| failures(None).status(status, body.as_bytes(), None);
    check(status(529), "status 529", "status 529: overloaded");
    check(status(503), "status 503", "status 503: 529: overloaded");
    let typed = serde_json::json!({ "code": "500", "type": "server_error", "status": 500 });
    let detail = failures(None).reported(&typed).detail;
    assert!(detail.starts_with("code 500: server_error: "), "{detail}");
}

#[test]
fn every_message_says_what_to_do() {
    let it = failures(None);
    let why = serde_json::from_str::<Value>("").expect_err("no JSON");
    let limit = Duration::from_secs(1);
    let all = [
        it.bad_base_url("is odd", "http://h"),
        it.no_key("OpenAI"),
        it.odd_key(),
        it.no_model(),
        it.no_roots("odd"),
        it.no_client(&why),
        it.redirected(302, None),
        it.timeout(Elapsed::Idle(limit)),
        it.timeout(Elapsed::Total(limit)),
        it.empty(),
        it.not_an_answer("chat-completions", "text/html", &Ignored::default()),
        it.cut_off("[DONE]", &Ignored::default()),
        it.closed_early(&Ignored::default()),
        it.no_answer("stop", false),
        it.no_answer("stop", true),
        it.answer_unshown("STOP"),
        it.unreadable(&why, b""),
        it.too_long("an event is longer than 8 bytes".into()),
        it.nameless_tool(),
        it.gave_up("finish reason"),
        it.refused(Refused::Unwritable(why)),
    ];
    let statuses = [400, 401, 402, 404, 429, 500].map(|status| it.status(status, b"", None));
    let advice = ["check ", "name ", "set ", "send ", "raise ", "ask ", "choose ", "report "];
    let passing = ["try again later", "wait a while"];
    for failure in all.iter().chain(&statuses) {
        let (_, todo) = failure.message.rsplit_once(": ").expect("what to do");
        assert!(advice.iter().chain(&passing).any(|word| todo.contains(word)), "{failure:?}");
    }
}

#[test]
fn a_long_complaint_is_cut_after_its_secrets_are_gone() {
    let long = "\u{e9}sk-abcdef".repeat(DETAIL_CHARS_MAX);
    let error = failures(Some("sk-abcdef")).status(500, long.as_bytes(), None).into_error();
    assert!(error.detail.chars().count() <= DETAIL_CHARS_MAX + "status 500: \u{2026}".len());
    assert!(error.message.chars().count() < 2 * QUOTE_CHARS_MAX);
    assert!(!error.detail.contains("sk-"));
}

#[test]
fn a_key_is_redacted_however_the_provider_spells_it() {
    let check = |key: &str, failure: &dyn Fn(&Failures) -> Failure, words: &str| {
        let error = failure(&failures(Some(key))).into_error();
        assert!(error.detail.contains(words), "{error:?}");
        let marks = ["ab\"c", "ab\\", "0123456789"];
        let shown = [error.message, error.detail].concat();
        assert!(!marks.iter().any(|mark| shown.contains(mark)), "{shown}");
    };
    let event = br#"{"error":"bad key sk\/abcdef\/0123456789", nope}"#;
    let why = serde_json::from_slice::<Value>(event).expect_err("no JSON");
    let unreadable = |failures: &Failures| failures.unreadable(&why, event);
    check("sk/abcdef/0123456789", &unreadable, "bad key [redacted]");
    let odd = br#"{"error":{"odd":"bad key sk/ab\"c"}}"#;
    check("sk/ab\"c", &|failures| failures.status(401, odd, None), "bad key [redacted]");
    let data = br#""sk/abcdef/0123456789""#;
    let why = serde_json::from_slice::<Vec<u8>>(data).expect_err("no list");
    check("sk/abcdef/0123456789", &|failures| failures.unreadable(&why, data), "[redacted]");
}

#[test]
fn the_login_in_the_base_url_is_a_secret_too() {
    let check = |base_url: &str, said: &str, redacted: &str| {
        let error = Failures::new(&NAMES, None, base_url, "m").status(500, said.as_bytes(), None);
        assert!(error.message.ends_with(&format!("says: {redacted}")), "{}", error.message);
    };
    check("http://user:a%2Fpassword@h", "a/password user", "[redacted] user");
    check("http://user:a%2Fpassword@h", "Basic dXNlcjphL3Bhc3N3b3Jk", "Basic [redacted]");
    check("http://token-0123@h", "no token-0123", "no [redacted]");
}

/// Google has the wait and the reason in the details of its errors.
#[test]
fn details_of_an_error_have_its_wait_and_its_reason() {
    let error = |code: u16, details: Value| serde_json::json!({ "error": { "code": code, "message": "x", "status": "X", "details": details } });
    let delay = |text: &str| {
        let info = "type.googleapis.com/google.rpc.RetryInfo";
        serde_json::json!([{ "@type": "y" }, { "@type": info, "retryDelay": text }])
    };
    let retry = |code, details: Value| {
        let error = error(code, details);
        let as_status = failures(None).status(code, error.to_string().as_bytes(), None).retry;
        assert_eq!(failures(None).reported(&error["error"]).retry, as_status, "{error}");
        as_status
    };
    assert_eq!(retry(429, delay("45.8s")), Retry::After(Duration::from_millis(45_800)));
    assert_eq!(retry(503, delay("0s")), Retry::After(Duration::ZERO));
    assert_eq!(retry(400, delay("3s")), Retry::Never);
    for odd in ["", "s", "-1s", "soon", "3"] {
        assert_eq!(retry(429, delay(odd)), Retry::Backoff, "{odd}");
    }
    let in_list = serde_json::json!([error(429, delay("3s"))]).to_string();
    let failure = failures(None).status(429, in_list.as_bytes(), None);
    assert_eq!(failure.retry, Retry::After(Duration::from_secs(3)));
    let after = Some(Duration::from_secs(9));
    let failure = failures(None).status(429, in_list.as_bytes(), after);
    assert_eq!(failure.retry, Retry::After(Duration::from_secs(9)), "the header has precedence");
    let wrong_key = error(400, serde_json::json!([{ "reason": "API_KEY_INVALID" }]));
    check(400, &wrong_key.to_string(), ErrorClass::Auth, &["refuses the key"]);
}

/// Where no header has the wait, as in a stream.
#[test]
fn a_wait_in_the_words_of_an_error_is_waited_for() {
    let retry = |message: &str| {
        let error = serde_json::json!({ "message": message, "code": "rate_limit_exceeded" });
        let body = serde_json::json!({ "error": error }).to_string();
        let as_status = failures(None).status(429, body.as_bytes(), None).retry;
        assert_eq!(failures(None).reported_as(&error, Some(429)).retry, as_status, "{message}");
        let as_text = failures(None).status(429, message.as_bytes(), None).retry;
        assert_eq!(as_text, as_status, "{message}");
        let after = failures(None).status(429, body.as_bytes(), Some(Duration::from_secs(9)));
        assert_eq!(after.retry, Retry::After(Duration::from_secs(9)), "the header has precedence");
        as_status
    };
    for (message, wait_ms) in [
        ("Rate limit reached for m. Please try again in 6s. Visit the pages.", 6_000),
        ("Please try again in 20ms.", 20),
        ("Please try again in 0m59.5s", 59_500),
        ("Please retry after 7 seconds.", 7_000),
        ("Please retry in 45.5s.", 45_500),
        ("Too many requests, try again after 1 minute", 60_000),
    ] {
        assert_eq!(retry(message), Retry::After(Duration::from_millis(wait_ms)), "{message}");
    }
    for odd in [
        "Please try again later",
        "try again in a while",
        "retry after 5 requests",
        "try again in 6",
    ] {
        assert_eq!(retry(odd), Retry::Backoff, "{odd}");
    }
    assert_eq!(retry("Please try again in 24h0m0s."), Retry::Never);
    let day = failures(None).reported_as(&"try again in 1 hour".into(), Some(429));
    assert!(day.message.ends_with("; it requests a wait of 3600 s"), "{day:?}");
    let refusal = failures(None).status(400, b"try again in 6s", None);
    assert_eq!(refusal.retry, Retry::Never);
}

#[test]
fn the_advice_of_a_provider_wins_over_its_status() {
    let retry = |status, should_retry| {
        failures(None).status(status, b"", None).advised(should_retry, None).retry
    };
    assert_eq!(retry(429, Some(false)), Retry::Never);
    assert_eq!(retry(500, Some(false)), Retry::Never);
    assert_eq!(retry(400, Some(true)), Retry::Backoff);
    assert_eq!(retry(429, Some(true)), Retry::Backoff);
    assert_eq!(retry(401, Some(true)), Retry::OtherKey);
    assert_eq!(retry(402, Some(true)), Retry::Never);
    assert_eq!(retry(400, None), Retry::Never);
    let wait = Some(Duration::from_secs(3));
    let refusal = failures(None).status(400, b"", wait).advised(Some(true), wait);
    assert_eq!(refusal.retry, Retry::After(Duration::from_secs(3)));
}

#[test]
fn a_missing_key_is_distinguished_from_a_wrong_one() {
    let error = failures(None).status(401, b"", None).into_error();
    assert!(error.message.contains("requires a key"), "{}", error.message);
}

#[test]
fn a_header_is_hidden_with_and_without_its_scheme() {
    for (header, credentials) in [
        ("Bearer GWSECRET-1", "GWSECRET-1"),
        ("Basic  dXNlcjpHV1NFQ1JFVA==", "dXNlcjpHV1NFQ1JFVA=="),
        ("Token a b-GWSECRET", "a b-GWSECRET"),
        ("GWSECRET-alone", "GWSECRET-alone"),
    ] {
        let headers = [("x-gateway".to_owned(), Secret::new(header).expect("a header"))];
        let failures = failures(None).hiding(headers.iter().map(|(name, value)| (name, value)));
        for said in [header, credentials] {
            let body = format!(r#"{{"error":{{"message":"header {said} is wrong"}}}}"#);
            let error = failures.status(401, body.as_bytes(), None).into_error();
            for shown in [&error.message, &error.detail] {
                assert!(!shown.contains(credentials), "{shown}");
                assert!(shown.contains("header [redacted]"), "{shown}");
            }
        }
    }
}

/// An error about one of them has to say what it is about.
#[test]
fn a_header_that_holds_no_credentials_is_not_hidden() {
    let said = "Unexpected value `my-beta-2026` for the `anthropic-beta` header";
    let message = |name: &str, value: &str| {
        let header = (name.to_owned(), Secret::new(value).expect("a header"));
        let failures = failures(None).hiding([(&header.0, &header.1)].into_iter());
        failures.status(400, said.as_bytes(), None).message
    };
    for public in ["anthropic-beta", "x-title", "http-referer"] {
        for value in ["my-beta-2026", "no my-beta-2026"] {
            assert!(message(public, value).ends_with(said), "{public} {value}");
        }
    }
    for other in ["authorization", "cookie", "x-api-key", "x-team"] {
        assert!(!message(other, "my-beta-2026").contains("my-beta-2026"), "{other}");
    }
}

#[test]
fn a_refused_schema_has_a_hint_and_a_refused_key_may_have_changed() {
    let said = r#"{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' \
                   is not supported with this model."}}"#;
    let answered = |has_schema: bool, status: u16, body: &str| {
        let failures = failures(Some("sk-abcdef")).with_schema(has_schema);
        let failure = failures.status(status, body.as_bytes(), None);
        (failure.message().to_owned(), failure.retry)
    };
    let said = said.replace("\\\n", "");
    let hint = "`-O structured=prompt`";
    assert!(answered(true, 400, &said).0.contains(hint), "{}", answered(true, 400, &said).0);
    // Servers say so of the parameters of tools, too.
    for said in [&said, "failed to parse grammar"] {
        assert!(!answered(false, 400, said).0.contains(hint), "{said}");
    }
    let message = |status: u16, body: &str| answered(true, status, body);
    assert!(!message(400, "no such thing").0.contains("structured"));
    assert!(!message(500, "response_format").0.contains("structured"));
    assert_eq!(message(401, "").1, Retry::OtherKey);
    assert_eq!(message(403, "").1, Retry::Never);
}
