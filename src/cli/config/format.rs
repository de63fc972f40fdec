//! The output format, chosen by options and the command file.

use crate::cli::Mode;
use crate::engine::Engine;
use crate::extract::ResponseType;
use crate::host::CodedWarning;
use crate::output::{
    Beginning, Envelope, EnvelopeData, Format, JsonStream, Layout, Objects, Shown, Text,
};
use crate::support::millis;
use serde_json::{Map, Value};
use std::time::{SystemTime, UNIX_EPOCH};

/// The facts about a run before it begins.
pub(super) struct RunFacts<'a> {
    command: &'static str,
    name: String,
    /// The engine that will answer, if it is known.
    engine: Option<&'a dyn Engine>,
    warnings: Vec<CodedWarning>,
}

impl<'a> RunFacts<'a> {
    /// For a run of `command`, whose values are called `name`, with the engine that will answer.
    pub(super) fn new(command: &'static str, name: String, engine: &'a dyn Engine) -> Self {
        Self { command, name, engine: Some(engine), warnings: Vec::new() }
    }

    /// Adds warnings that the reader sees before the answer.
    pub(super) fn with_warnings(self, warnings: Vec<CodedWarning>) -> Self {
        Self { warnings, ..self }
    }

    /// For a run whose engine is not known yet.
    pub(super) fn of_nobody(command: &'static str) -> Self {
        Self { command, name: command.to_owned(), engine: None, warnings: Vec::new() }
    }

    fn beginning(&self) -> Beginning {
        let folder = std::env::current_dir().unwrap_or_default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Beginning {
            command: self.command,
            model: self.engine.map_or_else(String::new, |engine| engine.model().to_owned()),
            provider: self.engine.map_or_else(String::new, |engine| engine.provider()),
            folder: folder.to_string_lossy().into_owned(),
            epoch_ms: millis(now),
            warnings: self.warnings.clone(),
        }
    }

    fn meta(&self) -> Map<String, Value> {
        let of_engine = self.engine.map(|it| [("engine", it.name()), ("model", it.model())]);
        [("command", self.command)]
            .into_iter()
            .chain(of_engine.into_iter().flatten())
            .map(|(key, value)| (key.to_owned(), value.into()))
            .collect()
    }
}

/// The format for a prompt that `command` prints without running it.
pub(crate) fn format_of_prompt(command: &'static str, mode: Mode) -> Format {
    format(mode, (ResponseType::Json, Shown::Pieces), RunFacts::of_nobody(command))
}

/// The format of a mode, for answers of this type. A format of text prints what `shown` says.
pub(super) fn format(
    mode: Mode,
    (response, shown): (ResponseType, Shown),
    known: RunFacts<'_>,
) -> Format {
    let answer = match response {
        ResponseType::Text => EnvelopeData::Text(String::new()),
        ResponseType::Json => EnvelopeData::Document(None, String::new()),
        ResponseType::Jsonl => EnvelopeData::Objects(Vec::new()),
    };
    let envelope = |layout, answer| {
        let envelope = Envelope::new(layout, answer, known.meta());
        Format::Envelope(Box::new(envelope.with_warnings(&known.warnings)))
    };
    match mode {
        Mode::Server | Mode::OneShot => Format::default(),
        Mode::Text => Format::Text(Text::new(shown)),
        Mode::Json => envelope(Layout::Json, answer),
        Mode::Yaml => envelope(Layout::Yaml, answer),
        Mode::Frames => envelope(Layout::Json, EnvelopeData::Frames(Vec::new())),
        Mode::Objects { has_preamble } => {
            Format::Objects(Objects { schema: known.name, has_preamble })
        }
        Mode::JsonStream => {
            let has_document = response == ResponseType::Json;
            Format::JsonStream(Box::new(JsonStream::new(known.beginning(), has_document)))
        }
    }
}
