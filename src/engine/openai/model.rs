//! What OpenAI's models don't take, by their names. OpenAI refuses a request with a setting that its
//! model has no use for, so it is left out. Every other model is taken to know all settings.

use crate::engine::CallSettings;

/// Beginnings of the names of models that don't reason; every later family does.
const WITHOUT_REASONING: [&str; 4] = ["gpt-3.5", "gpt-4", "chatgpt-", "gpt-5-chat"];

/// Families whose sampling is fixed.
const WITHOUT_SAMPLING: [&str; 4] = ["o1", "o3", "o4", "gpt-5"];

/// Families that know no stop sequences.
const WITHOUT_STOP: [&str; 3] = ["o3", "o4", "gpt-5"];

/// Beginnings of the names of models that take no schema, beside `gpt-4` itself.
const WITHOUT_SCHEMAS: [&str; 5] =
    ["gpt-3.5", "gpt-4-", "gpt-4o-2024-05-13", "o1-mini", "o1-preview"];

/// Whether `model` takes a schema for its answer.
pub(in crate::engine) fn takes_schemas(model: &str) -> bool {
    let name = own_name(model);
    // A model made from another has its name up to a colon.
    let name = name.split(':').next().unwrap_or_default();
    name != "gpt-4" && !WITHOUT_SCHEMAS.iter().any(|start| name.starts_with(start))
}

/// Whether `model` may reason.
pub(in crate::engine) fn reasons(model: &str) -> bool {
    let name = own_name(model);
    !WITHOUT_REASONING.iter().any(|start| name.starts_with(start))
}

/// `settings` without those that `model` refuses, and the names of these.
pub(in crate::engine) fn taken(
    model: &str,
    settings: &CallSettings,
) -> (CallSettings, Vec<&'static str>) {
    let name = own_name(model);
    let is_of =
        |families: &[&str]| reasons(model) && families.iter().any(|it| is_family(&name, it));
    let mut taken = settings.clone();
    let mut refused = Vec::new();
    if is_of(&WITHOUT_SAMPLING) {
        refused.extend(taken.temperature.take().map(|_| "temperature"));
        refused.extend(taken.top_p.take().map(|_| "top_p"));
    }
    if is_of(&WITHOUT_STOP) {
        refused.extend(taken.stop.take().map(|_| "stop"));
    }
    if !reasons(model) {
        refused.extend(taken.reasoning_effort.take().map(|_| "reasoning_effort"));
        refused.extend(taken.reasoning_summary.take().map(|_| "reasoning_summary"));
    }
    (taken, refused)
}

/// Whether a deployment of that name at Azure reasons as OpenAI's models do. A deployment has the name
/// of its model, often with words of its owner around it.
pub(super) fn is_reasoning_deployment(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_o_series = name
        .split(|it: char| !it.is_ascii_alphanumeric())
        .any(|word| matches!(word, "o1" | "o3" | "o4"));
    let is_gpt_5 = ["gpt-5", "gpt5"].iter().any(|it| name.contains(it));
    is_o_series || name.contains("codex") || (is_gpt_5 && !name.contains("chat"))
}

/// Whether `model` has the name of one of OpenAI's that takes its limit of tokens as `max_completion_tokens`
/// alone. Models of others have such words elsewhere in their names, and their servers may know only `max_tokens`.
pub(super) fn refuses_max_tokens(model: &str) -> bool {
    let name = own_name(model);
    let is_o_series = ["o1", "o3", "o4"].iter().any(|family| is_family(&name, family));
    (is_o_series || name.starts_with("gpt-5")) && is_reasoning_deployment(&name)
}

/// The name without the provider that a router has before it, and without the mark of a model made
/// from another.
fn own_name(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model);
    name.strip_prefix("ft:").unwrap_or(name).to_ascii_lowercase()
}

/// `o3` and `o3-mini` are of the family `o3`; `gpt-5.1` is not of `gpt-5`.
fn is_family(name: &str, family: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_model_is_known_by_the_beginning_of_its_name() {
        for model in ["gpt-5.1", "o3", "gpt-oss-20b", "codex-mini-latest", "openai/gpt-5", "m"] {
            assert!(reasons(model), "{model}");
        }
        for model in
            ["gpt-4o-mini", "gpt-4.1", "GPT-4", "ft:gpt-4o:x", "openai/gpt-4o", "gpt-5-chat-latest"]
        {
            assert!(!reasons(model), "{model}");
        }
    }

    #[test]
    fn a_deployment_is_known_by_the_words_of_its_name() {
        for reasons in ["o3-mini", "o1", "team-o4-mini", "gpt-5.1", "my_GPT5", "codex-mini"] {
            assert!(is_reasoning_deployment(reasons), "{reasons}");
        }
        for other in ["gpt-4o", "gpt-35-turbo", "gpt-5-chat", "Mistral-large", "prod", "pro1"] {
            assert!(!is_reasoning_deployment(other), "{other}");
        }
    }

    #[test]
    fn a_model_with_the_limit_of_openai_is_known_by_its_whole_name() {
        for own in
            ["o3-mini", "openai/o1", "gpt-5.1", "openai/gpt-5-mini", "ft:gpt-5:mine", "GPT-5"]
        {
            assert!(refuses_max_tokens(own), "{own}");
        }
        for other in ["gpt-4o", "gpt-5-chat", "marco-o1", "my-gpt-5", "gpt-oss-20b", "o300", "m"] {
            assert!(!refuses_max_tokens(other), "{other}");
        }
    }

    #[test]
    fn old_models_take_no_schema() {
        for old in [
            "gpt-3.5-turbo",
            "gpt-4",
            "openai/gpt-4-turbo",
            "GPT-4-0613",
            "ft:gpt-4:mine",
            "o1-mini-2024-09-12",
        ] {
            assert!(!takes_schemas(old), "{old}");
        }
        for new in ["gpt-4o-mini", "gpt-4.1", "gpt-5", "o1", "o3-mini", "ft:gpt-4o-mini:x", "m"] {
            assert!(takes_schemas(new), "{new}");
        }
    }

    #[test]
    fn settings_that_a_model_refuses_are_left_out_and_named() {
        let mut settings = CallSettings::default();
        let all = json!({ "temperature": 0.5, "top_p": 0.5, "stop": "END", "reasoning_effort": "low",
            "seed": 1, "max_tokens": 9 });
        for (name, value) in all.as_object().expect("an object") {
            settings.set(name, value).expect("a setting");
        }
        let check = |model: &str, expected: &[&str]| {
            let (left, refused) = taken(model, &settings);
            assert_eq!(refused, expected, "{model}");
            assert_eq!((left.seed, left.max_tokens), (Some(1), Some(9)));
            assert_eq!(left.temperature.is_none(), expected.contains(&"temperature"), "{model}");
            assert_eq!(left.stop.is_none(), expected.contains(&"stop"), "{model}");
            assert!(taken(model, &left).1.is_empty(), "{model}");
        };
        for model in ["gpt-5", "gpt-5-mini", "o3", "o4-mini", "openai/o3-pro"] {
            check(model, &["temperature", "top_p", "stop"]);
        }
        check("o1-preview", &["temperature", "top_p"]);
        for model in ["gpt-4o-mini", "gpt-4.1", "gpt-5-chat-latest"] {
            check(model, &["reasoning_effort"]);
        }
        for model in ["gpt-5.1", "gpt-5.6", "deepseek-chat", "m", "o3000", ""] {
            check(model, &[]);
        }
    }
}
