//! The common part of engines for remote providers: the connection, the
//! time that a provider may take, bytes into events, retries, addresses, and errors in words without
//! secrets. The modules stand in reading order; each uses only those above it.
//!
//! `remote` is an engine over an `interface`; `call` is one call with its retries, over `connection`,
//! `post`, `clock` and `roots`; `http` is the client, of which `connector` makes connections, `direct` sends requests over
//! them, `woken` says when one is to be polled, and `exchange` chooses between that and a
//! proxy; `key` gets a key from a program or a file. The others are pure.

pub(crate) mod address;
pub(super) mod gemini_model;
pub(crate) mod http;
pub(super) mod join;
pub(super) mod json;
mod opening;
pub(super) mod schema;
pub(super) mod sse;
mod subset;
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
