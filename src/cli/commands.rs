//! Commands around the protocol: each reads its arguments, does one thing and gives back the exit
//! status. Standard output is theirs; what people must know goes to standard error.

pub mod args;
mod check;
mod complete;
mod descriptions;
mod document;
mod envelope;
mod lines;
mod list_events;
mod output;
mod schema;

pub use check::check;
pub use complete::complete;
pub use descriptions::{completions, man, manifest};
pub use list_events::list_events;
pub use schema::schema;

/// Bytes of a line of a stream; a longer one is passed over. The longest frame that this program
/// writes is the end of a segment: an answer, which stands in it twice, and room for ids and
/// escapes. A snapshot of several such answers is longer. Whole lines are held in memory.
const LINE_BYTES_MAX: usize = 2 * crate::session::ANSWER_BYTES_MAX + 128 * 1024 * 1024;

/// Status of a tool that has found what it looks for: breaches, lines that are no frames.
const FOUND: u8 = 1;

/// Status if a file can't be read or written, or the command line is wrong.
const USAGE: u8 = 2;

/// Status if standard output can't be written.
const OUTPUT: u8 = 74;
