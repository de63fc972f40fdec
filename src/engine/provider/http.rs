//! The HTTP client: HTTP/1.1, TLS by rustls with ring, Mozilla's root certificates and the user's.

mod connector;
mod direct;
mod exchange;
mod proxies;
mod woken;

use super::roots;
use crate::support::secret::Secret;
use data_encoding::BASE64;
use percent_encoding::percent_decode_str;
use proxies::Proxies;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, Url, redirect};
use rustls::{ClientConfig, RootCertStore, crypto};
use std::error::Error;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) use exchange::proxy;
pub(in crate::engine) use exchange::{HttpError, ProviderClient, Response};

const USER_AGENT: &str = concat!("duologue/", env!("CARGO_PKG_VERSION"));

/// Idle connections of a client of reqwest's: what one asks for comes one after the other.
const IDLE_CONNECTIONS_MAX: usize = 1;

/// TLS with Mozilla's root certificates, for all conversations of the process: with its certificates and the sessions
/// that it can resume it takes more memory than one of them.
static MOZILLA_TLS: OnceLock<ClientConfig> = OnceLock::new();

/// Builds the client, which trusts `roots`, or Mozilla's if there are none; reads the proxies from the environment.
pub(crate) fn client(
    url: &Url,
    connect_timeout: Duration,
    roots: Option<RootCertStore>,
) -> Result<Client, Box<dyn Error>> {
    redirected_client(url, connect_timeout, roots, redirect::Policy::none())
}

/// Like [`client`], but follows `redirects`.
pub(crate) fn redirected_client(
    url: &Url,
    connect_timeout: Duration,
    roots: Option<RootCertStore>,
    redirects: redirect::Policy,
) -> Result<Client, Box<dyn Error>> {
    Ok(builder(url, connect_timeout, roots)?.redirect(redirects).build()?)
}

/// The HTTP client for provider calls through a proxy.
fn provider_client(
    url: &Url,
    connect_timeout: Duration,
    roots: Option<RootCertStore>,
) -> Result<Client, Box<dyn Error>> {
    let builder = builder(url, connect_timeout, roots)?;
    // As without a proxy (`connector`); reqwest would set one.
    #[cfg(target_os = "linux")]
    let builder = builder.tcp_user_timeout(None);
    Ok(builder.build()?)
}

fn builder(
    url: &Url,
    connect_timeout: Duration,
    roots: Option<RootCertStore>,
) -> Result<ClientBuilder, Box<dyn Error>> {
    let builder = Client::builder()
        .tls_backend_preconfigured(tls_of(roots)?)
        .http1_only()
        .user_agent(USER_AGENT)
        .connect_timeout(connect_timeout)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        // The key goes to the address that the user named and to no other.
        .redirect(redirect::Policy::none())
        .referer(false)
        // Retries are decided in `retry` alone.
        .retry(reqwest::retry::never());
    Ok(match is_this_machine(url) {
        // A proxy's loopback is another machine.
        true => builder.no_proxy(),
        false => builder.proxy(Proxies::from_environment().into_choice()),
    })
}

/// TLS that trusts `roots`, or Mozilla's if there are none.
fn tls_of(roots: Option<RootCertStore>) -> Result<ClientConfig, rustls::Error> {
    Ok(match (roots, MOZILLA_TLS.get()) {
        (Some(roots), _) => tls(roots)?,
        (None, Some(shared)) => shared.clone(),
        (None, None) => {
            let made = tls(roots::mozilla())?;
            MOZILLA_TLS.get_or_init(|| made).clone()
        }
    })
}

fn tls(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The headers of a request for a streamed answer, with the key in the header `name` after `prefix`;
/// `None` if the key has characters that a header
/// can't hold, or that are no ASCII: no provider gives such keys.
pub(in crate::engine) fn headers(
    key: Option<&Secret>,
    name: &HeaderName,
    prefix: &str,
) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = key {
        if !key.expose().is_ascii() {
            return None;
        }
        let mut value = HeaderValue::try_from(format!("{prefix}{}", key.expose())).ok()?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Some(headers)
}

/// Whether `url` has a login in it.
pub(in crate::engine) fn has_login(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// The login in `url` as servers are sent it after `Basic` (RFC 7617).
pub(in crate::engine) fn login_token(url: &Url) -> String {
    let mut login: Vec<u8> = percent_decode_str(url.username()).collect();
    login.push(b':');
    login.extend(percent_decode_str(url.password().unwrap_or_default()));
    BASE64.encode(&login)
}

/// Whether `url` leads to this machine, by a name or address that leads nowhere else.
pub(crate) fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    // RFC 6761, section 6.3.
    let is_named = host == "localhost" || host.ends_with(".localhost");
    let is_local = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    is_named || host.parse().is_ok_and(is_local)
}
