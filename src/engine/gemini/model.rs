//! Properties of a model by its name. Unknown names are taken for those of new models.

/// How a model reasons, which decides what requests may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reasoning {
    /// Not at all, or not as requests ask for.
    None,
    /// With so many tokens as a request allows (Gemini 2.5).
    Budget,
    /// At a level (Gemini 3 and later). Calls in a request have to carry their signatures.
    Level,
}

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

/// How `model` reasons.
pub(super) fn reasoning(model: &str) -> Reasoning {
    const NONE: [&str; 5] = ["gemini-1", "gemini-2.0", "gemini-pro-vision", "gemma", "learnlm"];
    let model = model.trim().to_ascii_lowercase();
    let model = model.rsplit('/').next().unwrap_or_default();
    let is_for_speech = ["-tts", "-transcribe"].iter().any(|word| model.contains(word));
    if is_for_speech || NONE.iter().any(|start| model.starts_with(start)) {
        Reasoning::None
    } else if !model.starts_with("gemini-2.5") {
        Reasoning::Level
    } else if model.contains("-image") {
        Reasoning::None
    } else {
        Reasoning::Budget
    }
}

/// The lowest level at which `model` reasons, if it has levels: it always does.
pub(super) fn lowest_level(model: &str) -> &'static str {
    if model.to_ascii_lowercase().contains("flash") { "minimal" } else { "low" }
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
    fn models_reason_as_their_names_say() {
        let check = |model: &str, expected| assert_eq!(reasoning(model), expected, "{model}");
        for new in ["gemini-3.8-flash", "gemini-3-pro-image", "gemini-flash-latest", "m", ""] {
            check(new, Reasoning::Level);
        }
        check("gemini-2.5-flash", Reasoning::Budget);
        check(" models/Gemini-2.5-pro", Reasoning::Budget);
        for old in [
            "gemini-2.0-flash",
            "gemini-1.5-pro",
            "gemma-3-27b-it",
            "gemini-2.5-flash-image",
            "gemini-3.1-flash-tts-preview",
        ] {
            check(old, Reasoning::None);
        }
    }

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
