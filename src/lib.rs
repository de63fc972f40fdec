//! duologue holds a conversation with a language model for another program.
//!
//! The program `duologue` does so over standard input and output: it reads JSON requests and writes
//! JSON frames, one per line. This library holds the same conversation inside a Rust program, with
//! the same frames and no process:
//!
//! ```
//! use duologue::engine::echo::Echo;
//! use duologue::host::{HostSettings, memory::Conversation};
//! use duologue::protocol::wire::Body;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut conversation = Conversation::start(HostSettings::new(Echo::default()));
//! let request = conversation.submit("Hello")?;
//! while let Some(frame) = conversation.next_frame().await {
//!     match frame.frame {
//!         Some(Body::UiEvent(event)) => println!("{}", event.name),
//!         Some(Body::Error(error)) => return Err(error.message.into()),
//!         // The last frame of a request.
//!         Some(Body::Done(_)) if frame.request_id == request.as_str() => break,
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | to | use |
//! |---|---|
//! | hold a conversation | [`host::memory::Conversation`] |
//! | read requests or write frames in a way of your own | [`host::Host`] |
//! | choose what answers: the built-in engine, a provider, or an engine of your own | [`engine::Engine`] |
//! | write an engine: what it is given, and what it reports (the same types as in [`task`]) | [`engine::CallSpec`], [`engine::EngineEvent`] |
//! | read the messages that an engine is sent | [`conversation::transcript`] |
//! | set how a conversation behaves | [`session::Rules`] |
//! | store conversations | [`store::StoreSettings`] |
//! | let the model call tools of MCP servers | [`tool::servers::ToolServers`], [`tool::config`] |
//! | say which files a request may name (none, without a word) | [`host::FilePolicy`] |
//! | read and write the messages of the protocol | [`protocol::proto`], [`protocol::json`] |
//! | find JSON in an answer while it streams | [`extract::Extractor`] |
//! | read a command file and render its prompt | [`command_file::CommandFile`] |
//! | hold a conversation in a process of its own | [`client::Duologue`] |
//! | check a stream of the protocol | [`conformance::check::Checker`] |
//!
//! The requests, frames, events and error codes are described in `docs/protocol.md`. `docs/compatibility.md` says what
//! is promised: [`client`] is stable from 1.0.0 on, and any other module may change in a minor version.
//! [`conformance::check::Checker`] is for you; the rest of [`conformance`], [`template`], [`support`], [`tui`] and
//! [`cli`] is public for the program, its tests and its measurements: expect it to change.

// In reading order: each module uses only those above it.

pub mod support;

pub mod protocol;

pub(crate) mod yaml;

pub mod conversation;
pub mod extract;
pub mod template;

pub mod task;

pub mod client;

pub mod conformance;

pub mod session;

pub mod engine;

pub mod tool;

pub(crate) mod profile;
pub mod store;

pub mod host;

pub(crate) mod transport;

pub(crate) mod output;

pub(crate) mod stdio;

pub(crate) mod acp;

#[cfg(feature = "serve")]
pub(crate) mod serve;

pub mod tui;

pub mod command_file;

pub mod cli;

// All of it as one deterministic world, for tests.
#[cfg(test)]
mod world;

#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
