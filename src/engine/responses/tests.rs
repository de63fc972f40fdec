//! Settings and addresses of the engine; what it does over real connections is tested with the binary.

use super::*;
use crate::engine::Engine;

#[test]
fn the_path_is_in_the_address_once() {
    let check = |base_url: &str, expected: &str| {
        let url = ResponsesApi::url(base_url, "m", true).expect("an address");
        assert_eq!(url.as_str(), expected);
    };
    check(DEFAULT_BASE_URL, "https://api.openai.com/v1/responses");
    check("https://h/v1/", "https://h/v1/responses");
    check("https://h/v1/responses", "https://h/v1/responses");
    check("https://h/openai?api-version=1", "https://h/openai/responses?api-version=1");
    assert!(ResponsesApi::url("nonsense", "m", true).is_err());
}

#[test]
fn model_and_host_have_defaults_at_openai_alone() {
    let engine = |base_url: Option<&str>, model: Option<&str>| {
        let (base_url, model) = (base_url.map(str::to_owned), model.map(str::to_owned));
        Responses::new(Settings { base_url, model, ..Settings::default() })
    };
    for own in [None, Some("https://api.openai.com/v1/")] {
        assert_eq!(engine(own, None).model(), DEFAULT_MODEL, "{own:?}");
        assert_eq!(engine(own, Some("m")).model(), "m");
        assert_eq!(engine(own, None).provider(), "api.openai.com");
    }
    let other = engine(Some("http://localhost:1234/v1"), None);
    assert_eq!((other.model(), other.provider().as_str()), ("", "localhost:1234"));
    assert_eq!(other.name(), "responses");
}
