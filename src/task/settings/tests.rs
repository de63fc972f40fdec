//! Reading settings, and laying some over others.

use super::*;
use serde_json::json;

fn settings(all: &Value) -> Result<CallSettings, String> {
    let mut settings = CallSettings::default();
    for (name, value) in all.as_object().expect("an object") {
        settings.set(name, value)?;
    }
    Ok(settings)
}

#[test]
fn every_setting_is_read_in_every_spelling() {
    let read = settings(&json!({
        "temperature": 0.5, "topP": 1, "max-tokens": 100.0, "stop": "END", "seed": -7,
        "reasoning_effort": "low", "reasoningBudget": 1024, "structured": "prompt",
        "extra_body": { "a": { "b": 1 } }, "extra_headers": { "X-Team": "blue" },
    }));
    let read = read.expect("good settings");
    assert_eq!((read.temperature, read.top_p, read.max_tokens), (Some(0.5), Some(1.0), Some(100)));
    assert_eq!((read.stop.as_deref(), read.seed), (Some(&["END".to_owned()][..]), Some(-7)));
    assert_eq!(
        (read.reasoning_effort.as_deref(), read.reasoning_budget),
        (Some("low"), Some(1024))
    );
    assert_eq!(read.structured, Some(StructuredMode::Prompt));
    assert_eq!(read.extra_headers["x-team"].expose(), "blue");
    for name in CallSettings::NAMES {
        assert!(CallSettings::is_name(name), "{name}");
        assert_eq!(read.clone().set(name, &Value::Null), Ok(()), "{name}");
    }
}

#[test]
fn a_wrong_value_is_refused_and_a_header_is_not_shown() {
    for (name, value) in [
        ("temperature", json!(2.1)),
        ("temperature", json!("warm")),
        ("top_p", json!(-0.1)),
        ("max_tokens", json!(0)),
        ("max_tokens", json!(1.5)),
        ("stop", json!([""])),
        ("stop", json!(vec!["x"; 17])),
        ("seed", json!(0.5)),
        ("reasoning_effort", json!("very high")),
        ("reasoning_budget", json!(-1)),
        ("structured", json!("maybe")),
        ("extra_body", json!([])),
        ("extra_headers", json!({ "a b": "hunter2" })),
        ("temprature", json!(1)),
    ] {
        let why = settings(&json!({ name: value })).expect_err(name);
        assert!(why.contains(name) && !why.contains("hunter2"), "{why}");
    }
}

#[test]
fn later_settings_replace_earlier_ones_and_objects_are_merged() {
    let base = json!({ "temperature": 0.5, "seed": 1, "extra_body": { "a": { "b": 1, "c": 2 } } });
    let over = json!({ "seed": 2, "extra_body": { "a": { "c": 3 }, "d": 4 } });
    let merged = settings(&base).expect("base").overlay(&settings(&over).expect("over"));
    assert_eq!((merged.temperature, merged.seed), (Some(0.5), Some(2)));
    assert_eq!(Value::Object(merged.extra_body), json!({ "a": { "b": 1, "c": 3 }, "d": 4 }));
    let cleared = json!({ "temperature": null, "extra_body": null, "stop": "a" });
    let cleared = settings(&base).expect("base").overlay(&settings(&cleared).expect("over"));
    assert_eq!((cleared.temperature, cleared.seed), (None, Some(1)));
    assert!(cleared.extra_body.is_empty() && cleared.stop.is_some());
    let stopless = cleared.overlay(&settings(&json!({ "stop": [] })).expect("an empty list"));
    assert_eq!(stopless.stop, None, "as with null");
    let again = cleared.overlay(&settings(&json!({ "temperature": 1 })).expect("again"));
    assert_eq!(again.temperature, Some(1.0));
}
