//! The common part of engines for remote providers: the connection, the
//! time that a provider may take, bytes into events, retries, addresses, and errors in words without
//! secrets. The modules stand in reading order; each uses only those above it.
//!
//! | module | what it is |
//! |---|---|
//! | `address`, `settings`, `key`, `roots`, `caution` | where requests go; the settings; a key from a program or a file; root certificates; warnings about the connection |
//! | `http` | the HTTP client: `connector` makes connections, `direct` sends requests over them, `woken` says when one is to be polled, `exchange` chooses between that and a proxy |
//! | `connection`, `clock`, `post` | one HTTP client for all calls; the time that a provider takes; a request, up to the head of its response |
//! | `body`, `sse`, `lines`, `json`, `join`, `halves`, `opening`, `think` | bytes that arrive in any pieces become events, objects and texts (pure) |
//! | `parameters`, `tool`, `calls`, `schema`, `subset`, `media`, `gemini_model`, `optional` | the parts of requests and answers that several interfaces have (pure, but for the list of `optional`) |
//! | `failure`, `error_words`, `retry` | failures for people and programs; when a request is sent again (pure) |
//! | `response`, `provider_data`, `models` | decoders of responses; the data that a provider must be sent back; its list of models (pure) |
//! | `interface`, `call`, `remote` | what each provider implements; one call with its retries; the engine over an `interface` |

pub(crate) mod address;
pub(super) mod gemini_model;
pub(crate) mod http;
pub(super) mod join;
pub(super) mod json;
mod opening;
pub(super) mod parameters;
pub(super) mod schema;
pub(super) mod sse;
mod subset;
pub(super) mod think;
pub(super) mod tool;

pub(super) mod calls;
pub(super) mod halves;
pub(super) mod lines;

pub(super) mod body;
pub(super) mod models;
pub(super) mod optional;
pub(super) mod retry;

pub(super) mod key;

mod caution;
pub(super) mod error_words;
pub(super) mod failure;
pub(crate) mod roots;

pub(super) mod clock;
pub(super) mod connection;
pub(super) mod post;
pub(super) mod settings;

pub(super) mod provider_data;
pub(super) mod response;

pub(super) mod interface;

pub(super) mod call;
pub(super) mod media;
pub(super) mod remote;

#[cfg(test)]
pub(super) mod testing;
