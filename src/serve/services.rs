//! Settings from the command line for this front end: those of each conversation, and the rules of the node.

use super::auth::Authority;
use super::peers::PeerRules;
use super::tls::Certificates;
use crate::host::HostSettings;
use crate::protocol::id::SessionId;
use crate::store::Namespace;
use crate::store::{Library, OpenMode, StorePlace};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Makes the settings of a conversation. May read files and stores.
pub(crate) type Opener = Arc<dyn Fn(Opening) -> anyhow::Result<HostSettings> + Send + Sync>;

/// All that this front end is started with.
pub(crate) struct Services {
    pub(crate) listen: SocketAddr,
    pub(crate) opener: Opener,
    /// Lists and reads the stored conversations, if there is a store.
    pub(crate) library: Option<Library>,
    /// The stores of the conversations; without any they are in memory alone.
    pub(crate) places: Vec<StorePlace>,
    pub(crate) times: Times,
    /// Bytes that a request may have.
    pub(crate) request_bytes_max: usize,
    pub(crate) limits: Limits,
    pub(crate) authority: Authority,
    /// `None`: without TLS.
    pub(crate) certificates: Option<Certificates>,
    pub(crate) peers: PeerRules,
    /// The collector of traces, if there is one.
    pub(crate) collector: Option<Url>,
}

/// How much a node, and each tenant of it, may hold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) conversations: usize,
    pub(crate) runs: usize,
    pub(crate) tenant_conversations: usize,
    pub(crate) tenant_runs: usize,
    /// Requests of a tenant in a second; `None`: any number.
    pub(crate) tenant_rate: Option<u32>,
    /// Bytes in memory of a tenant's conversations and requests; `None`: any number.
    pub(crate) tenant_bytes: Option<u64>,
}

/// A conversation that is to be opened.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) namespace: Namespace,
    pub(crate) session: SessionId,
    pub(crate) mode: OpenMode,
}

/// How long a node waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// For clients of a conversation that nobody uses, before it leaves memory.
    pub(crate) idle: Duration,
    /// For clients of a run, before that is stopped.
    pub(crate) detached: Duration,
    /// For a run to end; `None`: any time.
    pub(crate) run: Option<Duration>,
    /// For a client that takes nothing of its stream.
    pub(crate) unread: Duration,
    /// For runs when the node ends.
    pub(crate) drain: Duration,
    /// For clients that are given their last frames.
    pub(crate) flush: Duration,
}
