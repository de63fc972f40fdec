//! Streamable HTTP: the SDK's transport over the HTTP client of this program.

mod faults;
mod redirects;

pub(super) use faults::{Access, HttpFault};

use crate::engine::TlsRoots;
use crate::engine::provider::http;
use crate::engine::provider::roots::RootsReader;
use crate::tool::config::Protected;
use crate::tool::connection::{Closed, Closing};
use crate::tool::http_answers;
use crate::tool::http_streams::{PacedClient, RECONNECT_DELAY_MAX, RECONNECTS_MAX};
use crate::tool::login::{self, LoginFile};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Url};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::auth::AuthClient;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use rustls::RootCertStore;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Longest time to connect, and to read the file of root certificates.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Names a file of root certificates, here as in other programs that use TLS.
const ROOTS_VARIABLE: &str = "SSL_CERT_FILE";

/// Requests that wait for a response at once. All calls of an answer run at the same time, and the time of one that
/// is not sent yet counts already.
const REQUESTS_AT_ONCE_MAX: usize = 1_000;

/// A connection over HTTP.
pub(super) struct HttpTransport {
    inner: StreamableHttpClientTransport<AuthClient<PacedClient>>,
    closed: Closed,
    access: Arc<Access>,
    /// Nothing has been sent yet.
    is_new: bool,
}

impl HttpTransport {
    /// A connection to `url`; nothing is sent yet. Needs a runtime.
    ///
    /// # Errors
    /// If certificates can't be read, a header can't be sent, or the `login` can't be used.
    pub(super) async fn new(
        url: &Url,
        headers: &BTreeMap<String, Protected>,
        login: Option<&LoginFile>,
        closed: Closed,
    ) -> Result<Self, String> {
        let roots = roots(url).await?;
        let redirects = redirects::within_origin();
        let client = http::redirected_client(url, CONNECT_TIMEOUT, roots.clone(), redirects);
        let client = client.map_err(|why| why.to_string())?;
        let tokens = login::tokens(url, login, without_redirects(url, roots)?).await?;
        let names = headers.keys().map(String::as_str);
        let access = Arc::new(Access::new(url, names, closed.clone()));
        let headers = headers.iter().map(|(name, value)| header(name, value));
        let mut retry = ExponentialBackoff::default();
        retry.max_times = usize::try_from(RECONNECTS_MAX).ok();
        retry.max_delay = Some(RECONNECT_DELAY_MAX);
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
            .custom_headers(headers.collect::<Result<HashMap<_, _>, _>>()?);
        config.retry_config = Arc::new(retry);
        config.max_concurrent_requests = REQUESTS_AT_ONCE_MAX;
        // The SDK would send a call again in the new session, though the server may have run it.
        config.reinit_on_expired_session = false;
        let client = AuthClient::new(PacedClient::new(client, Arc::clone(&access)), tokens);
        let inner = StreamableHttpClientTransport::with_client(client, config);
        Ok(Self { inner, closed, access, is_new: true })
    }
}

/// The HTTP client for the login at `url`, which follows no redirect. Needs a runtime.
///
/// # Errors
/// If certificates can't be read.
pub(super) async fn login_client(url: &Url) -> Result<Client, String> {
    without_redirects(url, roots(url).await?)
}

fn without_redirects(url: &Url, roots: Option<RootCertStore>) -> Result<Client, String> {
    http::client(url, CONNECT_TIMEOUT, roots).map_err(|why| why.to_string())
}

/// The root certificates that the environment names.
async fn roots(url: &Url) -> Result<Option<RootCertStore>, String> {
    match std::env::var_os(ROOTS_VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) if url.scheme() == "https" => {
            let file = Some(PathBuf::from(path));
            Ok(Some(RootsReader::new(TlsRoots::Builtin, file).roots(CONNECT_TIMEOUT).await?))
        }
        Some(_) | None => Ok(None),
    }
}

fn header(name: &str, value: &Protected) -> Result<(HeaderName, HeaderValue), String> {
    let unusable = |what| format!("its header {name:?} can't be sent: {what}");
    let name = HeaderName::try_from(name).map_err(|_| unusable("that is no header name"))?;
    let mut value = HeaderValue::try_from(value.expose())
        .map_err(|_| unusable("its value has characters that a header can't hold"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

impl Transport<RoleClient> for HttpTransport {
    type Error = HttpFault;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), HttpFault>> + Send + 'static {
        let sent = self.inner.send(item);
        let access = Arc::clone(&self.access);
        let is_first = std::mem::take(&mut self.is_new);
        async move { sent.await.map_err(|error| access.fault(&error, is_first)) }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let mut message = self.inner.receive().await;
        match &mut message {
            Some(message) => http_answers::unwrap_result(message),
            None => {
                self.closed.send_replace(Some(Closing::Remote));
            }
        }
        message
    }

    async fn close(&mut self) -> Result<(), HttpFault> {
        self.inner.close().await.map_err(|error| self.access.fault(&error, false))
    }
}
