//! Output formats: each is one way to write the same frames to standard output. A format is given
//! every frame, in order, and then the end of the process; it appends bytes. `words` says what a run does
//! at the moment, for whatever shows it; `approval` reads what a person types about a tool call. Pure.

pub(crate) mod approval;
mod digits;
mod envelope;
mod lines;
mod objects;
mod stream;
mod text;
mod view;
mod words;

#[cfg(test)]
mod tests;

pub(crate) use envelope::{Envelope, EnvelopeData, Layout};
pub(crate) use lines::Lines;
pub(crate) use objects::Objects;
pub(crate) use stream::{Beginning, JsonStream};
pub(crate) use text::{Shown, Text};
pub(crate) use view::{cut_off, nothing_found, rejected};
pub(crate) use words::{how_far, waiting_text};

use crate::conversation::event::Usage;
use crate::host::CodedWarning;
use crate::protocol::json::{self, Error};
use crate::protocol::wire::Frame;
use crate::session::{ExitCode, Uptime};
use crate::support::terminal::Escapes;
use serde_json::Value;

/// A format of standard output.
#[derive(Clone, Debug)]
pub(crate) enum Format {
    /// The protocol itself: protobuf JSON, one frame a line.
    Protocol(Lines),
    /// The answer, as the model writes it.
    Text(Text),
    /// The values extracted from the answer, one JSON value a line.
    Objects(Objects),
    /// One document with everything, at the end.
    Envelope(Box<Envelope>),
    /// Events for programs that don't know the protocol, one JSON object a line.
    JsonStream(Box<JsonStream>),
}

impl Default for Format {
    fn default() -> Self {
        Self::Protocol(Lines::default())
    }
}

impl Format {
    /// Appends the output for `frame`, made at `now`; appends nothing on an error.
    ///
    /// # Errors
    /// If it has no JSON form.
    pub(crate) fn frame(
        &mut self,
        now: Uptime,
        frame: &Frame,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match self {
            Self::Protocol(lines) => lines.frame(frame, out),
            Self::Text(text) => {
                text.frame(frame, out);
                Ok(())
            }
            Self::Objects(objects) => objects.frame(frame, out),
            Self::Envelope(envelope) => envelope.frame(frame),
            Self::JsonStream(stream) => stream.frame(now, frame, out),
        }
    }

    /// Appends a prompt that is printed instead of run: its `text` for readers of text, its parts,
    /// `data`, for readers of JSON. [`Format::end`] completes it.
    ///
    /// # Errors
    /// If it has no JSON form.
    pub(crate) fn prompt(
        &mut self,
        session: &str,
        text: &str,
        data: &Value,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match self {
            Self::Protocol(_) | Self::Objects(_) => json::write_line(data, out),
            Self::Text(to) => {
                to.prompt(text, out);
                Ok(())
            }
            Self::Envelope(envelope) => envelope.prompt(session, data),
            Self::JsonStream(stream) => stream.prompt(session, text, out),
        }
    }

    /// Records token counts that frames have no field for.
    pub(crate) fn usage(&mut self, usage: Usage) {
        match self {
            Self::Protocol(_) | Self::Text(_) | Self::Objects(_) => {}
            Self::Envelope(envelope) => envelope.usage(usage),
            Self::JsonStream(stream) => stream.usage(usage),
        }
    }

    /// Adds a warning at `now`, in formats that report warnings and are not the protocol.
    ///
    /// # Errors
    /// If it has no JSON form.
    pub(crate) fn warn(
        &mut self,
        now: Uptime,
        warning: &CodedWarning,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match self {
            Self::Protocol(_) | Self::Text(_) | Self::Objects(_) => Ok(()),
            Self::Envelope(envelope) => {
                envelope.coded_warning(warning);
                Ok(())
            }
            Self::JsonStream(stream) => stream.warning(now, warning, out),
        }
    }

    /// Appends the end of the output for a session that ends with `code`.
    ///
    /// # Errors
    /// If it has no JSON form.
    pub(crate) fn end(
        &mut self,
        now: Uptime,
        code: ExitCode,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match self {
            Self::Protocol(_) => Ok(()),
            Self::Text(text) => {
                text.end(out);
                Ok(())
            }
            Self::Objects(_) => Ok(()),
            Self::Envelope(envelope) => envelope.end(now, code, out),
            Self::JsonStream(stream) => stream.end(now, code, out),
        }
    }

    /// Escapes control characters in what is written to a terminal.
    pub(crate) fn escapes(&self) -> Escapes {
        match self {
            Self::Protocol(_) | Self::Objects(_) | Self::JsonStream(_) => Escapes::Json,
            Self::Text(_) => Escapes::Text,
            Self::Envelope(envelope) => envelope.escapes(),
        }
    }

    /// The exit status of the process in the terms of this format.
    pub(crate) fn status(&self, code: ExitCode) -> u8 {
        match self {
            Self::JsonStream(_) => stream::status(code),
            Self::Protocol(_) | Self::Text(_) | Self::Objects(_) | Self::Envelope(_) => {
                code.number()
            }
        }
    }

    /// Whether the end of the output contains the status, so that it can't change any more.
    pub(crate) fn reports_status(&self) -> bool {
        match self {
            Self::Envelope(_) | Self::JsonStream(_) => true,
            Self::Protocol(_) | Self::Text(_) | Self::Objects(_) => false,
        }
    }

    /// Whether warnings are part of the output, so that they need not be logged.
    pub(crate) fn reports_warnings(&self) -> bool {
        match self {
            Self::Protocol(_) | Self::Envelope(_) | Self::JsonStream(_) => true,
            Self::Text(_) | Self::Objects(_) => false,
        }
    }
}
