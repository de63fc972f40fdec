//! Encodes frames for the reader of standard output, in the chosen format.

use crate::host::CodedWarning;
use crate::output::Format;
use crate::protocol::json;
use crate::protocol::wire::Frame;
use crate::session::{ExitCode, Uptime};
use crate::support::terminal;
use crate::transport::{Codec, Unencodable};

/// Draws the answer of a single run on a terminal, in place of its text.
pub(crate) trait Drawing: std::fmt::Debug + Send {
    /// Appends what can be drawn once `frame` has come.
    fn frame(&mut self, frame: &Frame, out: &mut Vec<u8>);

    /// Appends what is left at the end.
    fn end(&mut self, out: &mut Vec<u8>);
}

/// The frames in a format. What a terminal shows must not control it.
pub(super) struct Printed {
    pub(super) format: Format,
    /// A terminal shows it.
    pub(super) is_shown: bool,
    /// Draws the answer, in place of `format`.
    pub(super) drawing: Option<Box<dyn Drawing>>,
}

impl Printed {
    /// Appends a warning, as a single run has no frame for it.
    pub(super) fn warn(
        &mut self,
        now: Uptime,
        warning: &CodedWarning,
        out: &mut Vec<u8>,
    ) -> Result<(), Unencodable> {
        self.print(out, |format, out| format.warn(now, warning, out).map_err(|_| Unencodable))
    }

    fn print(
        &mut self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Format, &mut Vec<u8>) -> Result<(), Unencodable>,
    ) -> Result<(), Unencodable> {
        let before = out.len();
        write(&mut self.format, out)?;
        if self.is_shown {
            terminal::make_visible(out, before, self.format.escapes());
        }
        Ok(())
    }
}

impl Codec for Printed {
    fn frame(&mut self, now: Uptime, frame: &Frame, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        if let Some(drawing) = &mut self.drawing {
            drawing.frame(frame, out);
            return Ok(());
        }
        self.print(out, |format, out| format.frame(now, frame, out).map_err(|_| Unencodable))
    }

    fn end(&mut self, now: Uptime, code: ExitCode, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        if let Some(drawing) = &mut self.drawing {
            drawing.end(out);
            return Ok(());
        }
        self.print(out, |format, out| format.end(now, code, out).map_err(|_| Unencodable))
    }

    fn is_stateless(&self) -> bool {
        // The other formats write each frame according to those before it.
        matches!(self.format, Format::Protocol(_))
    }

    fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        let before = out.len();
        json::write_escaped(piece, out);
        if self.is_shown {
            terminal::make_visible(out, before, self.format.escapes());
        }
    }
}
