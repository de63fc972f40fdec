//! Settings and addresses of the engine; what it does over real connections is tested with the binary.

use super::*;
use crate::engine::Engine;
use serde_json::json;

const KEY: &str = "AIza-0123456789";

#[test]
fn the_model_is_in_the_path_and_the_version_once() {
    let check = |base_url: &str, model: &str, expected: &str| {
        let url = GenerateContent::url(base_url, model, true).expect("an address");
        assert_eq!(url.as_str(), expected);
    };
    let own =
        "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse";
    check(DEFAULT_BASE_URL, "m", own);
    let v1beta = "https://h/v1beta/models/m:streamGenerateContent?alt=sse";
    for base_url in [
        "https://h",
        "https://h/",
        "https://h/v1beta",
        "https://h/v1beta/",
        "https://h/v1beta/models",
    ] {
        check(base_url, "m", v1beta);
        check(base_url, "models/m", v1beta);
    }
    check("https://h/v1", "m", "https://h/v1/models/m:streamGenerateContent?alt=sse");
    check("https://h/v1beta/models/m:streamGenerateContent", "m", v1beta);
    check("https://h/v1/models/", "m", "https://h/v1/models/m:streamGenerateContent?alt=sse");
    check("https://h/a", "m", "https://h/a/v1beta/models/m:streamGenerateContent?alt=sse");
    check(
        "https://h/v1/publishers/google",
        "m",
        "https://h/v1/publishers/google/models/m:streamGenerateContent?alt=sse",
    );
    check("https://h?a=1", "m", "https://h/v1beta/models/m:streamGenerateContent?a=1&alt=sse");
    check("https://h?alt=json", "m", "https://h/v1beta/models/m:streamGenerateContent?alt=json");
    assert!(GenerateContent::url("nonsense", "m", true).is_err());
}

#[test]
fn the_key_is_in_the_header_of_the_interface() {
    let headers = GenerateContent::headers(Secret::new(KEY).as_ref()).expect("a key");
    assert_eq!(headers[&KEY_HEADER], KEY);
    assert!(headers[&KEY_HEADER].is_sensitive());
    assert!(!headers.contains_key("authorization"));
    assert!(!GenerateContent::headers(None).expect("no key").contains_key(&KEY_HEADER));
}

#[test]
fn model_and_host_have_defaults_at_google_alone() {
    let engine = |base_url: Option<&str>, model: Option<&str>| {
        let (base_url, model) = (base_url.map(str::to_owned), model.map(str::to_owned));
        Gemini::new(Settings { base_url, model, ..Settings::default() })
    };
    let host = "generativelanguage.googleapis.com";
    for own in [None, Some(DEFAULT_BASE_URL), Some(&format!("https://{host}/v1beta/"))] {
        assert_eq!(engine(own, None).model(), DEFAULT_MODEL, "{own:?}");
        assert_eq!(engine(own, Some("m")).model(), "m");
        assert_eq!(engine(own, None).provider(), host);
    }
    let other = engine(Some("http://localhost:8080"), None);
    assert_eq!((other.model(), other.provider().as_str()), ("", "localhost:8080"));
    assert_eq!(other.name(), "gemini");
}

#[test]
fn settings_without_a_place_are_named() {
    let mut settings = CallSettings::default();
    for (name, value) in [
        ("temperature", json!(1)),
        ("seed", json!(7)),
        ("reasoning_effort", json!("low")),
        ("reasoning_budget", json!(100)),
        ("reasoning_summary", json!("none")),
    ] {
        settings.set(name, &value).expect("a setting");
    }
    let ignored = |model: &str| GenerateContent::ignored_settings(model, &settings);
    assert_eq!(ignored("gemini-3.8-flash"), ["reasoning_effort"]);
    assert_eq!(ignored("gemini-2.5-pro"), ["reasoning_effort"]);
    assert_eq!(ignored("gemma-3"), ["reasoning_budget", "reasoning_effort", "reasoning_summary"]);
    assert!(GenerateContent::ignored_settings("m", &CallSettings::default()).is_empty());
}
