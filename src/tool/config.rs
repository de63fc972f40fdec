//! What starts a server, or where it is.

use crate::support::secret::Secret;
use crate::tool::catalogue::ServerName;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// Default limit on the time in which a server starts, initializes and lists its tools. Programs
/// like `npx` download the server first.
pub const START_LIMIT: Duration = Duration::from_secs(60);

/// An MCP server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Its name.
    pub name: ServerName,
    /// How it is reached.
    pub transport: Transport,
    /// Longest time for start, initialization and the first list of its tools.
    pub start_limit: Duration,
    /// The protocol version that it is offered, if not the latest one that begins with
    /// `initialize`.
    pub protocol_version: Option<String>,
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A child process, over its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables beside the few that every server gets. Values may be keys.
        env: BTreeMap<String, Secret>,
        /// Its working directory, if not ours.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// The address of its MCP endpoint.
        url: Url,
        /// Headers of every request.
        headers: BTreeMap<String, Secret>,
    },
}
