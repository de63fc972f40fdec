//! Commands for working with the protocol. Each parses its arguments, does one thing and returns
//! the exit status. Results go to standard output, messages for people to standard error.

pub(crate) mod args;
mod check;
mod complete;
mod descriptions;
mod doctor;
mod document;
mod envelope;
mod lines;
mod list_events;
mod mcp;
mod models;
mod offers;
mod output;
mod profiles;
mod prompts;
mod readiness;
mod schema;
pub(crate) mod sessions;
mod tools;
mod topics;

use crate::session::ExitCode;
pub use check::check;
pub use complete::complete;
pub use descriptions::{completions, man, manifest};
pub use doctor::doctor;
pub use list_events::list_events;
pub use mcp::mcp;
pub use models::models;
pub(crate) use models::names as model_names;
pub use profiles::profiles;
pub use prompts::prompts;
pub use schema::schema;
pub use sessions::sessions;
pub use tools::tools;
pub(crate) use topics::{Helped, helped};
pub use topics::{page, topic};

/// Longest accepted line of a stream, in bytes; a longer one is skipped. The longest frame that
/// this program writes is the end of a segment, which contains the answer twice, plus ids and
/// escapes. A snapshot of several such answers is longer. Whole lines are held in memory.
const LINE_BYTES_MAX: usize = 2 * crate::task::limits::ANSWER_BYTES_MAX + 128 * 1024 * 1024;

/// Exit status if contract violations, lines that are not frames, servers that don't run, or settings
/// that can't work were found, or a session was not.
const FOUND: u8 = ExitCode::RunFailed.number();

/// Exit status if a file can't be read or written, or the command line is wrong.
const USAGE: u8 = ExitCode::Usage.number();

/// Exit status if standard output can't be written.
const OUTPUT: u8 = ExitCode::OutputFailed.number();

/// Exit status if the same may succeed later.
const LATER: u8 = ExitCode::TryLater.number();
