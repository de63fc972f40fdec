//! What a session orders, and what it is given in return: the types of provider calls and of tool calls,
//! and of their reports. Engines and tool servers use these types; the session knows neither of the two.
//! Pure.
//!
//! | module | what it is |
//! |---|---|
//! | [`call`], [`settings`] | what a provider call is given: its purpose, the conversation, the tools, the engine, model and settings |
//! | [`report`] | what happens in a provider call, and how it ends |
//! | [`server`], [`limits`] | the tools of servers, a call of one, and what servers report; limits on tool calls |

pub mod call;
pub mod limits;
pub mod report;
pub mod server;
pub mod settings;
