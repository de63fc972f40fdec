//! Settings and addresses of the engine; what it does over real connections is tested with the binary.

use super::*;
use crate::engine::Engine;

const KEY: &str = "sk-ant-0123456789";

#[test]
fn the_version_is_in_the_path_once() {
    let check = |base_url: &str, expected: &str| {
        let url = Messages::url(base_url, "m", true).expect("an address");
        assert_eq!(url.as_str(), expected);
    };
    check(DEFAULT_BASE_URL, "https://api.anthropic.com/v1/messages");
    check("https://h/", "https://h/v1/messages");
    check("https://h/v1", "https://h/v1/messages");
    check("https://h/v1/", "https://h/v1/messages");
    check("https://h/v1/messages", "https://h/v1/messages");
    check("https://h/anthropic", "https://h/anthropic/v1/messages");
    check("https://h/anthropic/v1?a=1", "https://h/anthropic/v1/messages?a=1");
    assert!(Messages::url("nonsense", "m", true).is_err());
}

#[test]
fn the_key_is_in_the_header_of_the_interface() {
    let headers = Messages::headers(Secret::new(KEY).as_ref()).expect("a key");
    assert_eq!(headers[&KEY_HEADER], KEY);
    assert!(headers[&KEY_HEADER].is_sensitive());
    assert_eq!(headers[&VERSION_HEADER], "2023-06-01");
    assert!(!headers.contains_key("authorization"));
    assert!(!Messages::headers(None).expect("no key").contains_key(&KEY_HEADER));
    assert!(Messages::headers(Secret::new("a\nb").as_ref()).is_none());
}

#[test]
fn model_and_host_have_defaults_at_anthropic_alone() {
    let engine = |base_url: Option<&str>, model: Option<&str>| {
        let (base_url, model) = (base_url.map(str::to_owned), model.map(str::to_owned));
        Anthropic::new(Settings { base_url, model, ..Settings::default() })
    };
    for own in [None, Some("https://api.anthropic.com/"), Some("https://api.anthropic.com/v1")] {
        assert_eq!(engine(own, None).model(), DEFAULT_MODEL, "{own:?}");
        assert_eq!(engine(own, Some("m")).model(), "m");
        assert_eq!(engine(own, None).provider(), "api.anthropic.com");
    }
    let other = engine(Some("http://localhost:8080"), None);
    assert_eq!((other.model(), other.provider().as_str()), ("", "localhost:8080"));
    assert_eq!(other.name(), "anthropic");
}
