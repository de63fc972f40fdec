//! The types of tasks: the provider calls and tool calls that a session orders, and the reports that come back.
//! Engines and tool servers use these types; the session knows neither of the two.
//! Pure.
//!
//! | module | what it is |
//! |---|---|
//! | [`call`], [`settings`] | what a provider call is given: its purpose, the conversation, the tools, the engine, model and settings |
//! | [`report`] | what happens in a provider call, and how it ends |
//! | [`prompt`] | the prompt of a command file that a person has named |
//! | [`server`], [`limits`] | the tools of servers, a call of one, and what servers report; limits on tool calls |

pub mod call;
pub mod limits;
pub mod prompt;
pub mod report;
pub mod server;
pub mod settings;
