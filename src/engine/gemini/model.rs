//! Properties of a model by its name. Unknown names are taken for those of new models.

use crate::engine::provider::gemini_model::{Reasoning, reasoning};

/// The model in the path of a request: of a collection, or of Google's own.
pub(super) fn path(model: &str) -> String {
    const COLLECTIONS: [&str; 2] = ["models/", "tunedModels/"];
    let model = model.trim().trim_start_matches('/');
    match COLLECTIONS.iter().any(|collection| model.starts_with(collection)) {
        true => model.to_owned(),
        false => format!("models/{model}"),
    }
}

/// Whether `model` can be a name: it is a part of the address, and must not make another of it.
pub(super) fn is_name(model: &str) -> bool {
    let is_odd =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#' | '%' | '\\');
    let is_step = |part: &str| matches!(part, "." | "..");
    !model.trim().contains(is_odd) && !model.trim().split('/').any(is_step)
}

/// In the names of the models that have the level "minimal": Flash up to 3.6, and Flash-Lite
/// (<https://ai.google.dev/gemini-api/docs/generate-content/thinking#thinking-levels>). All others refuse a request
/// with it and take "low", which is right for a name without a version, too.
const WITH_MINIMAL: [&str; 5] =
    ["flash-lite", "gemini-3-flash", "gemini-3.1-flash", "gemini-3.5-flash", "gemini-3.6-flash"];

/// The lowest level at which `model` reasons, if it has levels: it always does.
pub(super) fn lowest_level(model: &str) -> &'static str {
    let model = model.to_ascii_lowercase();
    let has_minimal = WITH_MINIMAL.iter().any(|name| model.contains(name));
    if has_minimal { "minimal" } else { "low" }
}

/// The smallest budget for reasoning that `model` takes, if it has budgets: Gemini 2.5 Pro always reasons, and refuses
/// less than this.
pub(super) fn lowest_budget(model: &str) -> u32 {
    const PRO_TOKENS_MIN: u32 = 128;
    if model.to_ascii_lowercase().contains("gemini-2.5-pro") { PRO_TOKENS_MIN } else { 0 }
}

/// `model` takes a schema together with tools.
pub(super) fn takes_schema_with_tools(model: &str) -> bool {
    reasoning(model) == Reasoning::Level
}

/// `model` takes images as parts of a result (Gemini 3 and later).
pub(super) fn takes_images_in_results(model: &str) -> bool {
    match reasoning(model) {
        Reasoning::Level => true,
        Reasoning::None | Reasoning::Budget => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_makes_no_other_address() {
        for name in ["gemini-2.5-pro", "models/x", "tunedModels/mine", "a/b:c", " m ", "a..b"] {
            assert!(is_name(name), "{name}");
        }
        for odd in ["a/../b", "../b", "a/..", "./a", "a?key=1", "a#b", "a%2e%2e", "a b", "a\\..\\b"]
        {
            assert!(!is_name(odd), "{odd}");
        }
    }

    #[test]
    fn a_model_may_name_its_collection() {
        assert_eq!(path("gemini-flash-latest"), "models/gemini-flash-latest");
        assert_eq!(path("models/gemini-flash-latest"), "models/gemini-flash-latest");
        assert_eq!(path("tunedModels/mine"), "tunedModels/mine");
    }
}
