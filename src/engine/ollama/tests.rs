//! Settings and addresses of the engine; what it does over real connections is tested with the binary.

use super::*;
use crate::engine::Engine;

const KEY: &str = "ollama-0123456789";

#[test]
fn the_path_is_added_once() {
    let check = |base_url: &str, expected: &str| {
        let url = Chat::url(base_url, "m", true).expect("an address");
        assert_eq!(url.as_str(), expected);
    };
    check(DEFAULT_BASE_URL, "http://127.0.0.1:11434/api/chat");
    for base_url in
        ["https://h", "https://h/", "https://h/api", "https://h/api/", "https://h/api/chat"]
    {
        check(base_url, "https://h/api/chat");
    }
    check("https://h/ollama", "https://h/ollama/api/chat");
    assert!(Chat::url("nonsense", "m", true).is_err());
}

#[test]
fn a_key_is_sent_if_there_is_one() {
    let headers = Chat::headers(Secret::new(KEY).as_ref()).expect("a key");
    assert_eq!(headers[&AUTHORIZATION], format!("Bearer {KEY}"));
    assert!(!Chat::headers(None).expect("no key").contains_key(&AUTHORIZATION));
}

#[test]
fn there_is_no_default_model_anywhere() {
    let engine = |base_url: Option<&str>, model: Option<&str>| {
        let (base_url, model) = (base_url.map(str::to_owned), model.map(str::to_owned));
        Ollama::new(Settings { base_url, model, ..Settings::default() })
    };
    assert_eq!(engine(None, None).model(), "");
    assert_eq!(engine(None, None).provider(), "127.0.0.1:11434");
    assert_eq!(engine(Some("https://ollama.com"), Some("m")).model(), "m");
    assert_eq!(engine(None, None).name(), "ollama");
}

#[test]
fn settings_without_a_place_are_named() {
    let mut settings = CallSettings { seed: Some(1), ..CallSettings::default() };
    assert!(Chat::ignored_settings("m", &settings).is_empty());
    settings.reasoning_budget = Some(1);
    settings.reasoning_summary = Some("auto".to_owned());
    assert_eq!(Chat::ignored_settings("m", &settings), ["reasoning_budget", "reasoning_summary"]);
}
