//! Connects to a server without a proxy, with TLS where its address says so.

use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use reqwest::Url;
use rustls::ClientConfig;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;
use url::Position;

/// Silence of a connection after which the system asks the server for a sign of life, the time between such
/// questions, and how many of them may stay unanswered. They are what reqwest has for proxies.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(15), Duration::from_secs(15), 3);

/// A connection's bytes.
pub(super) type Io = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Makes connections.
#[derive(Clone, Debug)]
pub(super) struct Connect {
    service: HttpsConnector<HttpConnector>,
    time_max: Duration,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum ConnectError {
    #[error("it took longer than {0:?}")]
    TimedOut(Duration),
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl Connect {
    /// Connections with `tls`, each made within `time_max`.
    pub(super) fn new(tls: Arc<ClientConfig>, time_max: Duration) -> Self {
        let (idle, interval, retries) = KEEPALIVE;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(idle));
        tcp.set_keepalive_interval(Some(interval));
        tcp.set_keepalive_retries(Some(retries));
        tcp.set_connect_timeout(Some(time_max));
        // No TCP_USER_TIMEOUT: Linux ends a connection by it, too, whose server is alive and has not read a large
        // request yet (tcp(7)). The idle timeout ends a request that is not taken.
        Self { service: HttpsConnector::from((tcp, tls)), time_max }
    }

    /// Connects to the server that `url` names.
    pub(super) async fn to(&self, url: &Url) -> Result<Io, ConnectError> {
        let host = &url[Position::BeforeHost..Position::AfterPort];
        let server = format!("{}://{host}/", url.scheme());
        let server = server.parse().map_err(|error| ConnectError::Failed(Box::from(error)))?;
        let connecting = timeout(self.time_max, self.service.clone().call(server)).await;
        let connected = connecting.map_err(|_| ConnectError::TimedOut(self.time_max))?;
        connected.map_err(ConnectError::Failed)
    }
}
