//! The client of an engine: its requests go to the provider over a connection of their own, or through a
//! proxy.

use super::connector::{Connect, ConnectError};
use super::direct::{self, Direct};
use super::proxies::Proxies;
use super::{provider_client, tls_of};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Version};
use reqwest::Url;
use rustls::RootCertStore;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// The words of the HTTP library for a head that is too large; its clients have no type for it.
const HEAD_TOO_LARGE: &str = "message head is too large";

/// A client whose requests go to one provider.
#[derive(Debug)]
pub(in crate::engine) enum ProviderClient {
    Direct(Box<Direct>),
    /// Its library knows every kind of proxy.
    Proxied(reqwest::Client),
}

/// A response whose body is being read.
#[derive(Debug)]
pub(in crate::engine) enum Response {
    Direct(Box<direct::Exchange>),
    Proxied(Box<reqwest::Response>),
}

/// Why a request has no response, or a response no further part.
#[derive(Debug)]
pub(in crate::engine) enum HttpError {
    Direct(direct::Error),
    Proxied(reqwest::Error),
}

impl ProviderClient {
    /// A client for `url`, which trusts `roots`, or Mozilla's if there are none; reads the proxies from the
    /// environment.
    pub(in crate::engine) fn new(
        url: &Url,
        connect_timeout: Duration,
        roots: Option<RootCertStore>,
    ) -> Result<Self, Box<dyn Error>> {
        if proxy(url).is_some() {
            return provider_client(url, connect_timeout, roots).map(Self::Proxied);
        }
        let connect = Connect::new(Arc::new(tls_of(roots)?), connect_timeout);
        Ok(Self::Direct(Box::new(Direct::new(connect))))
    }

    /// Sends a request; returns the head of the response.
    pub(in crate::engine) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Response, HttpError> {
        match self {
            Self::Direct(direct) => {
                let sent = direct.send(method, url, headers, body.into()).await;
                sent.map(Box::new).map(Response::Direct).map_err(HttpError::Direct)
            }
            Self::Proxied(client) => {
                let request = client.request(method, url.clone()).headers(headers).body(body);
                let sent = request.send().await;
                sent.map(Box::new).map(Response::Proxied).map_err(HttpError::Proxied)
            }
        }
    }
}

/// The proxy that requests to `url` go through, without its login.
pub(crate) fn proxy(url: &Url) -> Option<String> {
    let proxy = Proxies::from_environment().of(url)?;
    Some(proxy.uri().to_string())
}

impl Response {
    pub(in crate::engine) fn status(&self) -> StatusCode {
        match self {
            Self::Direct(exchange) => exchange.response.status(),
            Self::Proxied(response) => response.status(),
        }
    }

    pub(in crate::engine) fn version(&self) -> Version {
        match self {
            Self::Direct(exchange) => exchange.response.version(),
            Self::Proxied(response) => response.version(),
        }
    }

    pub(in crate::engine) fn headers(&self) -> &HeaderMap {
        match self {
            Self::Direct(exchange) => exchange.response.headers(),
            Self::Proxied(response) => response.headers(),
        }
    }

    /// The next part of the body; `None` at its end.
    pub(in crate::engine) async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        match self {
            Self::Direct(exchange) => exchange.chunk().await.map_err(HttpError::Direct),
            Self::Proxied(response) => response.chunk().await.map_err(HttpError::Proxied),
        }
    }
}

impl HttpError {
    /// No connection could be made.
    pub(in crate::engine) fn is_connect(&self) -> bool {
        match self {
            Self::Direct(error) => matches!(error, direct::Error::Connect(_)),
            Self::Proxied(error) => error.is_connect(),
        }
    }

    /// It took too long.
    pub(in crate::engine) fn is_timeout(&self) -> bool {
        match self {
            Self::Direct(direct::Error::Connect(ConnectError::TimedOut(_))) => true,
            Self::Direct(_) => is_of_time(self.cause()),
            Self::Proxied(error) => error.is_timeout(),
        }
    }

    /// The head of the response has more headers, or longer ones, than the client takes.
    pub(in crate::engine) fn is_head_too_large(&self) -> bool {
        let mut cause = self.cause();
        while let Some(error) = cause {
            let parsed = error.downcast_ref::<hyper::Error>().filter(|error| error.is_parse());
            if parsed.is_some_and(|error| error.to_string().contains(HEAD_TOO_LARGE)) {
                return true;
            }
            cause = error.source();
        }
        false
    }

    /// What is the matter, in the words of the library.
    pub(in crate::engine) fn cause(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Direct(error) => Some(error.cause()),
            // It repeats the URL.
            Self::Proxied(error) => error.source(),
        }
    }
}

/// Whether the system ended a wait.
fn is_of_time(mut cause: Option<&(dyn Error + 'static)>) -> bool {
    while let Some(error) = cause {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::TimedOut) {
            return true;
        }
        cause = error.source();
    }
    false
}
