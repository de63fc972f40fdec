//! A prompt that a person names instead of writing it.

/// The prompt of a command file, with values for its flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedPrompt {
    /// The text.
    pub text: String,
    /// Notices for the person: another file was used, or a value is missing.
    pub warnings: Vec<String>,
    /// The paths after `@` that a flag has read, so that they name no attachments.
    pub read: Vec<String>,
}
