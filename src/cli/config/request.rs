//! The prompt of a single run, with its attachments, history and schema.

use crate::cli::Mode;
use crate::cli::answer_options::AnswerSchema;
use crate::cli::prepare::Person;
use crate::conversation::transcript::Preamble;
use crate::extract::ResponseType;
use crate::host::CodedWarning;
use crate::protocol::attachment::Attachment;
use crate::protocol::command::Prompt;
use crate::protocol::wire::ClientError;
use crate::stdio::UnreadInput;
use tokio::sync::oneshot;

/// A prompt, or where it will come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// The prompt is known.
    Text(String),
    /// The prompt is still being read; what to report instead if that fails.
    Awaited(oneshot::Receiver<Result<Prompt, ClientError>>),
    /// There is no prompt: the model is called with the preceding messages alone.
    Nothing,
}

impl Default for Source {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// The request of a single run.
#[derive(Debug, Default)]
pub(crate) struct PromptRequest {
    /// The messages before the prompt.
    pub preamble: Preamble,
    /// The prompt.
    pub prompt: Source,
    /// Images and files that go with it, read already.
    pub attachments: Vec<Attachment>,
    /// The extraction from the answer.
    pub response: ResponseType,
    /// The schema that extracted values must match.
    pub schema: Option<AnswerSchema>,
    /// Extracted values are also reported in protocol frames.
    pub reports_values: bool,
    /// Warnings about the prompt.
    pub warnings: Vec<CodedWarning>,
    /// The name of the command, for the line that names the format of its objects.
    pub name: String,
}

/// A command that runs one prompt.
#[derive(Debug)]
pub(crate) struct Once {
    /// Its name on the command line.
    pub command: &'static str,
    /// The output mode.
    pub mode: Mode,
    /// Who is at the terminal, and what is for that person.
    pub person: Person,
    /// The request.
    pub request: PromptRequest,
    /// Standard input, if nothing was read from it and nothing will be.
    pub unread: Option<UnreadInput>,
}
