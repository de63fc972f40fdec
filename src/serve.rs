//! The front end for fleets: many conversations in one process, over gRPC and HTTP.
//!
//! | module | what it is |
//! |---|---|
//! | `conversation` | the task that owns the host of one conversation and appends its frames to the log |
//! | `frame_log`, `visible` | the newest frames of a conversation; what a client may see of a frame (pure) |
//! | `request_log` | the requests that were seen, so that one that is sent again is not run again (pure) |
//! | `client`, `stream`, `attached` | a client of a conversation, which gets frames at its own pace (pure, but for the channel); its stream to the connection; both as `rpc` and `http` see them |
//! | `node`, `stored` | the conversations that are open; the stored ones, for lists, exports, copies and deletions |
//! | `peers`, `credentials`, `forwarded` | reaches the other nodes; the credentials of nodes; the clients that are passed on to them |
//! | `listener`, `rpc`, `http`, `after_others` | accepts connections and ends the node; brings clients to conversations; lets a connection write the frames of many conversations at once |
//! | `auth`, `jwt`, `tls`, `refusal` | which tenant a caller is of; the certificates; why a client is not served |
//! | `tenants`, `rate`, `turns` | what each tenant has and may have; requests a second (pure); conversations go on in the turns of their tenants |
//! | `metrics`, `counts`, `calls`, `traces` | the metrics, and the counts that they show; traces for OpenTelemetry |
//! | `services` | the settings from the command line |

mod after_others;
mod attached;
mod auth;
mod calls;
mod client;
mod conversation;
mod counts;
mod credentials;
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
mod request_log;
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
pub(crate) use credentials::Credentials;
pub(crate) use jwt::JwtRules;
pub(crate) use listener::serve;
pub(crate) use peers::PeerRules;
pub(crate) use services::{Limits, Opening, Services, Times};
pub(crate) use tls::Certificates;
