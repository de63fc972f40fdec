//! How a Gemini model reasons, by its name, and what it refuses: over its own interface and over others that it has.

/// How a model reasons, which decides what requests may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Reasoning {
    /// Not at all, or not as requests ask for.
    None,
    /// With so many tokens as a request allows (Gemini 2.5).
    Budget,
    /// At a level (Gemini 3 and later). Calls in a request have to carry their signatures.
    Level,
}

/// Stands for a signature that is not known, as in calls that another engine's model has made
/// (<https://ai.google.dev/gemini-api/docs/thought-signatures>).
pub(in crate::engine) const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// How `model` reasons.
pub(in crate::engine) fn reasoning(model: &str) -> Reasoning {
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

/// Whether `model` refuses calls in which the first of an answer has no signature.
pub(in crate::engine) fn needs_signatures(model: &str) -> bool {
    reasoning(model) == Reasoning::Level
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
}
