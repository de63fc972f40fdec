//! The front end for fleets: many conversations in one process, over gRPC and HTTP.
//!
//! `conversation` is the task that owns the host of one conversation. It appends what the host shows to a
//! `frame_log`, from which each client gets its frames at its own pace: `client` is one of them, and `stream` the
//! way to its connection. `requests` are those that were seen, so that one that is sent again is not run again;
//! `visible` is what a client may see of a frame, and `refusal` why a client is not served. `frame_log`, `requests`,
//! `visible` and `rate` are pure, and so is `client`, but for the channel to its stream. `node` has the conversations that are open; `rpc` and `http` bring clients to
//! them; `listener` accepts connections and ends the node; `after_others` has a connection write what many conversations
//! have shown. `tenants` is what each tenant has and may have, `rate` how
//! many requests a second, and `turns` has conversations go on in the turns of their tenants. `services` is what the command line gives, `auth`, `jwt` and
//! `tls` say whom a node serves, `peers` reaches the other nodes, `forwarded` are the clients that are passed on to them, and `metrics` shows what `counts` and `calls` have; `traces` are for
//! OpenTelemetry.

mod after_others;
mod attached;
mod auth;
mod calls;
mod client;
mod conversation;
mod counts;
mod forwarded;
mod frame_log;
mod http;
mod jwt;
mod listener;
mod metrics;
mod node;
mod peers;
mod rate;
mod refusal;
mod requests;
mod rpc;
mod services;
mod stored;
mod stream;
mod tenants;
mod tls;
mod traces;
mod turns;
mod visible;

pub(crate) use auth::Authority;
pub(crate) use jwt::JwtRules;
pub(crate) use listener::serve;
pub(crate) use peers::PeerRules;
pub(crate) use services::{Limits, Opening, Services, Times};
pub(crate) use tls::Certificates;
