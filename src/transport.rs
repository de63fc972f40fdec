//! What every front end on file descriptors needs, without a codec: private descriptors (`streams`),
//! lines that are read (`incoming`, `framer`), frames that are written (`outgoing`, by a bounded `outbox`
//! and a `writer`), `signals`, how far the process is from its end (`ending`), and a file that frames
//! are copied to (`debug_file`). A front end says by its [`Codec`] what a frame's bytes are.

mod debug_file;
mod ending;
mod framer;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod incoming;
mod outbox;
mod outgoing;
mod signals;
mod streams;
mod writer;

pub(crate) use debug_file::{DebugFile, ToLine};
pub(crate) use ending::{Ending, status_after};
#[cfg(test)]
pub(crate) use framer::Framer;
pub(crate) use framer::RawLine;
pub(crate) use incoming::{Incoming, Received};
pub(crate) use outbox::Outbox;
pub(crate) use outgoing::Outgoing;
pub(crate) use signals::{Signals, take_signals_of_system};
pub(crate) use streams::{Stdio, reader_gone};

use crate::protocol::wire::Frame;
use crate::session::{ExitCode, Uptime};

/// Encodes the frames of one conversation for its reader.
pub(crate) trait Codec {
    /// Appends the bytes of `frame`, made at `now`: whole messages, or nothing.
    ///
    /// # Errors
    /// If it has no encoding.
    fn frame(&mut self, now: Uptime, frame: &Frame, out: &mut Vec<u8>) -> Result<(), Unencodable>;

    /// Appends what follows the last frame of a session that ends with `code`.
    ///
    /// # Errors
    /// If it has no encoding.
    fn end(&mut self, now: Uptime, code: ExitCode, out: &mut Vec<u8>) -> Result<(), Unencodable>;

    /// Whether the bytes of a frame depend on that frame alone. Then a long frame is encoded only when
    /// the reader takes it, and its long texts piece by piece.
    fn is_stateless(&self) -> bool;

    /// Appends a piece of a text as the bytes of a frame have it; only of a codec that is stateless.
    fn text(&mut self, piece: &str, out: &mut Vec<u8>);
}

/// A frame has no encoding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unencodable;

/// How a front end ends.
#[derive(Debug)]
pub(crate) struct Finish {
    /// The exit status of the process.
    pub status: u8,
    /// The error of the only request, for a person.
    pub complaint: Option<String>,
}
