//! The HTTP client: HTTP/1.1, TLS by rustls with ring, Mozilla's root certificates and the user's.

use crate::secret::Secret;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Url, redirect};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, crypto};
use std::error::Error;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const USER_AGENT: &str = concat!("duologue/", env!("CARGO_PKG_VERSION"));

/// Runs follow one another: one kept connection serves them all.
const IDLE_CONNECTIONS_MAX: usize = 1;

/// Why there is no client.
#[derive(Debug)]
pub(super) enum NoClient {
    /// The file of root certificates can't be used.
    Roots(Box<dyn Error>),
    /// Anything else.
    Other(Box<dyn Error>),
}

/// Builds the client; reads the certificates, and from the environment the proxies. `roots_file`
/// holds root certificates (PEM) beside Mozilla's; it is read only for a provider with TLS.
pub(super) fn client(
    url: &Url,
    connect_timeout: Duration,
    roots_file: Option<&Path>,
) -> Result<Client, NoClient> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(file) = roots_file.filter(|_| url.scheme() == "https") {
        add_roots(&mut roots, file)
            .map_err(|why| NoClient::Roots(format!("{}: {why}", file.display()).into()))?;
    }
    build(url, connect_timeout, roots).map_err(NoClient::Other)
}

/// Adds the certificates in `file`. One that can't be used is passed over, as in any other such
/// file of a system; if all are, the file isn't what it should be.
fn add_roots(roots: &mut RootCertStore, file: &Path) -> Result<(), Box<dyn Error>> {
    let certificates = CertificateDer::pem_file_iter(file)?.collect::<Result<Vec<_>, _>>()?;
    let (added, passed_over) = roots.add_parsable_certificates(certificates);
    match added {
        0 => Err(format!("it has no usable certificate, and {passed_over} others").into()),
        _ => Ok(()),
    }
}

fn build(
    url: &Url,
    connect_timeout: Duration,
    roots: RootCertStore,
) -> Result<Client, Box<dyn Error>> {
    let tls = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .http1_only()
        .user_agent(USER_AGENT)
        .connect_timeout(connect_timeout)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        // The key goes to the address that the user named and to no other.
        .redirect(redirect::Policy::none())
        .referer(false)
        // What is sent again, and when, is decided in one place: here it isn't.
        .retry(reqwest::retry::never());
    if is_loopback(url) {
        // A proxy's loopback is another machine.
        builder = builder.no_proxy();
    }
    Ok(builder.build()?)
}

/// The headers of a request for a streamed answer; `None` if the key has characters that a header
/// can't hold, or that are no ASCII: no provider gives such keys.
pub(super) fn headers(key: Option<&Secret>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = key {
        if !key.expose().is_ascii() {
            return None;
        }
        let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose())).ok()?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Some(headers)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
