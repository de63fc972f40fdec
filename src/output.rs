//! What standard output is made of: one format for each way a reader may want the same frames. A
//! format is told every frame, in order, and then the end of the process; it appends bytes. Pure.

mod envelope;
mod objects;
mod stream;
mod text;
mod view;

#[cfg(test)]
mod tests;

pub use envelope::{Answer, Envelope, Layout};
pub use objects::Objects;
pub use stream::{Beginning, JsonStream};
pub use text::Text;
pub(crate) use view::{cut_off, nothing_found, rejected};

use crate::chat::event::Usage;
use crate::protocol::json::{self, Error};
use crate::protocol::wire::Frame;
use crate::session::{ExitCode, Uptime};
use crate::support::terminal::Escapes;
use serde_json::Value;

/// The form that frames take on standard output.
#[derive(Clone, Debug, Default)]
pub enum Format {
    /// The protocol itself: protobuf JSON, one frame a line.
    #[default]
    Protocol,
    /// The answer, as the model writes it.
    Text(Text),
    /// What was extracted from the answer, one JSON value a line.
    Objects(Objects),
    /// One document that tells everything, at the end.
    Envelope(Box<Envelope>),
    /// Events for programs that know nothing of the protocol, one JSON object a line.
    JsonStream(Box<JsonStream>),
}

impl Format {
    /// Appends what `frame`, made at `now`, comes to; nothing of it on an error.
    ///
    /// # Errors
    /// If it has no JSON form.
    pub fn frame(&mut self, now: Uptime, frame: &Frame, out: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Self::Protocol => json::write_line(frame, out),
            Self::Text(text) => {
                text.frame(frame, out);
                Ok(())
            }
            Self::Objects(objects) => objects.frame(frame, out),
            Self::Envelope(envelope) => envelope.frame(frame),
            Self::JsonStream(stream) => stream.frame(now, frame, out),
        }
    }

    /// Appends a prompt that is printed and not asked: its `text` to those who read text, its parts,
    /// `data`, to those who read JSON. [`Format::end`] completes it.
    ///
    /// # Errors
    /// If it has no JSON form.
    pub fn prompt(
        &mut self,
        session: &str,
        text: &str,
        data: &Value,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match self {
            Self::Protocol | Self::Objects(_) => json::write_line(data, out),
            Self::Text(to) => {
                to.prompt(text, out);
                Ok(())
            }
            Self::Envelope(envelope) => envelope.prompt(session, data),
            Self::JsonStream(stream) => stream.prompt(session, text, out),
        }
    }

    /// Takes note of token counts that frames have no field for.
    pub fn usage(&mut self, usage: Usage) {
        match self {
            Self::Protocol | Self::Text(_) | Self::Objects(_) => {}
            Self::Envelope(envelope) => envelope.usage(usage),
            Self::JsonStream(stream) => stream.usage(usage),
        }
    }

    /// Appends what is to be told at the end of a process whose session ends with `code`.
    ///
    /// # Errors
    /// If it has no JSON form.
    pub fn end(&mut self, now: Uptime, code: ExitCode, out: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Self::Protocol => Ok(()),
            Self::Text(text) => {
                text.end(out);
                Ok(())
            }
            Self::Objects(_) => Ok(()),
            Self::Envelope(envelope) => envelope.end(now, code, out),
            Self::JsonStream(stream) => stream.end(now, code, out),
        }
    }

    /// How control characters are written for a terminal.
    pub(crate) fn escapes(&self) -> Escapes {
        match self {
            Self::Protocol | Self::Objects(_) | Self::JsonStream(_) => Escapes::Json,
            Self::Text(_) => Escapes::Text,
            Self::Envelope(envelope) => envelope.escapes(),
        }
    }

    /// The status of the process, as the readers of this format know it.
    pub fn status(&self, code: ExitCode) -> u8 {
        match self {
            Self::JsonStream(_) => stream::status(code),
            Self::Protocol | Self::Text(_) | Self::Objects(_) | Self::Envelope(_) => code.number(),
        }
    }

    /// Whether the end of the output tells the status, which then stands.
    pub fn reports_status(&self) -> bool {
        match self {
            Self::Envelope(_) | Self::JsonStream(_) => true,
            Self::Protocol | Self::Text(_) | Self::Objects(_) => false,
        }
    }

    /// Whether warnings have a place in the output, so that they need not be logged.
    pub fn reports_warnings(&self) -> bool {
        match self {
            Self::Protocol | Self::Envelope(_) | Self::JsonStream(_) => true,
            Self::Text(_) | Self::Objects(_) => false,
        }
    }
}
