//! A provider that can't be reached, a connection that breaks, and whether TLS is the cause.

use super::{DETAIL_CHARS_MAX, Failure, Failures, QUOTE_CHARS_MAX, SettingNames};
use crate::engine::ErrorClass;
use crate::engine::provider::address;
use crate::engine::provider::http::{HttpError, proxy};
use crate::engine::provider::retry::Retry;
use crate::support::files::{DESCRIPTORS_ADVICE, is_out_of_descriptors};
use reqwest::Url;
use rustls::InvalidMessage;
use std::error::Error;
use std::io;
use std::iter::successors;

impl Failures {
    /// The provider redirects to another address.
    pub(in crate::engine) fn redirected(&self, status: u16, location: Option<&Url>) -> Failure {
        let SettingNames { base_url: base_url_source, .. } = self.names;
        let location = location.map(address::shown_url);
        let location = location.as_deref().unwrap_or("nowhere that can be read");
        let location = self.quote(location, QUOTE_CHARS_MAX);
        let message = format!(
            "{} redirects to {location} (status {status}), and the key is not sent there \
             without your consent: if that is the right address, name it with {base_url_source}",
            self.base()
        );
        Failure::new(ErrorClass::Config, message, format!("status {status}, location {location}"))
    }

    /// The provider could not be reached, or the connection broke.
    pub(in crate::engine) fn network(&self, error: &HttpError) -> Failure {
        let SettingNames { base_url: base_url_source, .. } = self.names;
        let detail = self.quote(&causes(error), DETAIL_CHARS_MAX);
        let base = self.base();
        let mut of_system = chain(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
        if error.is_connect() && of_system.any(is_out_of_descriptors) {
            let message = format!(
                "no connection to {base} could be made, as this program may open no more files: \
                 {DESCRIPTORS_ADVICE}"
            );
            return Failure::new(ErrorClass::Network, message, detail).or(Retry::Backoff);
        }
        let fault = proxy_fault(error);
        if let Some(proxy) = fault.and_then(|_| self.proxy()) {
            return self.through(&proxy, fault, error.is_timeout(), detail);
        }
        if error.is_connect() && error.is_timeout() {
            let message = format!(
                "connecting to {base} took too long: check your network and {base_url_source}, or raise \
                 {}",
                self.names.connect_timeout
            );
            return Failure::new(ErrorClass::Timeout, message, detail);
        }
        if error.is_head_too_large() {
            let what = format!(
                "sent more headers, or longer ones, than this program takes, and would send them again: check \
                 {base_url_source}, and any gateway there"
            );
            return self.malformed(&what, detail);
        }
        let tls = tls_fault(error);
        if tls == Some(TlsFault::Plain) {
            let message = format!(
                "{base} answers without TLS, as a server for plain http does: name it with http:// \
                 in place of https:// ({base_url_source})"
            );
            return Failure::new(ErrorClass::Network, message, detail);
        }
        if tls == Some(TlsFault::Other) {
            let message = format!(
                "no secure connection to {base} could be made, because of its certificate or its TLS: \
                 check {base_url_source} and the clock of this computer, and name the provider's \
                 own root certificates, if it has some, with SSL_CERT_FILE"
            );
            return Failure::new(ErrorClass::Network, message, detail);
        }
        let message = match error.is_connect() {
            true => {
                format!(
                    "{base} can't be reached: check that it runs, your network, and {base_url_source}"
                )
            }
            false => format!(
                "the connection to {base} broke: send the prompt again, and check your network if \
                 it breaks again"
            ),
        };
        Failure::new(ErrorClass::Network, message, detail).or(Retry::Backoff)
    }
}

impl Failures {
    /// The proxy that requests to the provider go through, without its login.
    pub(super) fn proxy(&self) -> Option<String> {
        let proxy = proxy(&Url::parse(&self.base_url).ok()?)?;
        Some(address::shown(&proxy))
    }

    /// No connection could be made by way of `proxy`.
    fn through(
        &self,
        proxy: &str,
        fault: Option<ProxyFault>,
        is_timeout: bool,
        detail: String,
    ) -> Failure {
        let (base, proxy) = (self.base(), self.quote(proxy, QUOTE_CHARS_MAX));
        match fault {
            Some(ProxyFault::Login) => {
                Failure::new(ErrorClass::Config, login_needed(&proxy, &base), detail)
            }
            Some(ProxyFault::Unresolved) => {
                let message = format!(
                    "the name of the host of {base} can't be looked up here, as the proxy {proxy} \
                     requires: have the proxy look it up, with socks5h:// (or socks4a://) before \
                     its address"
                );
                Failure::new(ErrorClass::Network, message, detail).or(Retry::Backoff)
            }
            Some(ProxyFault::Refused) => {
                let message = format!(
                    "the proxy {proxy} makes no connection to {base}: check that the proxy can \
                     reach it and may, or exempt its host with NO_PROXY"
                );
                Failure::new(ErrorClass::Network, message, detail).or(Retry::Backoff)
            }
            Some(ProxyFault::Unreached) | None => {
                let class = if is_timeout { ErrorClass::Timeout } else { ErrorClass::Network };
                let message = format!(
                    "the proxy {proxy}, through which {base} is asked, can't be reached: check \
                     HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or exempt the host of the provider with \
                     NO_PROXY"
                );
                let retry = if is_timeout { Retry::Never } else { Retry::Backoff };
                Failure::new(class, message, detail).or(retry)
            }
        }
    }
}

/// A proxy asks for a login, or for another one.
pub(super) fn login_needed(proxy: &str, base: &str) -> String {
    let scheme = proxy.split_once("://").map_or("http", |(scheme, _)| scheme);
    format!(
        "the proxy {proxy}, through which {base} is asked, requires a login: put name and password \
         into the address of the proxy, as in {scheme}://NAME:PASSWORD@HOST:PORT"
    )
}

/// The fault of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProxyFault {
    /// The proxy requires a login.
    Login,
    /// The proxy does not connect to the provider.
    Refused,
    /// There is no connection to it, if there is one in the way.
    Unreached,
    /// It takes no names, and the provider's has no address here.
    Unresolved,
}

/// The fault of a proxy in a connection that failed. The HTTP client has no types for
/// these errors, only their words.
fn proxy_fault(error: &HttpError) -> Option<ProxyFault> {
    if !error.is_connect() || tls_fault(error).is_some() {
        return None;
    }
    let words = causes(error);
    if words.contains("error resolving for socks proxy") {
        return Some(ProxyFault::Unresolved);
    }
    let fault = |(_, words): (&str, &str)| words.to_owned();
    let of_tunnel = words.split_once("tunnel error: ").map(fault);
    let Some(words) = of_tunnel.or_else(|| words.split_once("SOCKS error: ").map(fault)) else {
        return Some(ProxyFault::Unreached);
    };
    let begins = |starts: &[&str]| starts.iter().any(|start| words.starts_with(start));
    Some(if begins(&LOGIN_WORDS) {
        ProxyFault::Login
    } else if begins(&["failed to create underlying connection"]) {
        ProxyFault::Unreached
    } else {
        ProxyFault::Refused
    })
}

/// The words of the HTTP client for a proxy that wants a login, or another one.
const LOGIN_WORDS: [&str; 3] = [
    "proxy authorization required",
    "credentials not accepted",
    "server does not support user/pass authentication",
];

/// The error and its causes, without the URL.
fn causes(error: &HttpError) -> String {
    let mut text = match error.is_connect() {
        true => "connecting".to_owned(),
        false => "the connection".to_owned(),
    };
    let mut cause = error.cause();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// The fault of the provider's TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsFault {
    /// Its answer is not TLS.
    Plain,
    /// Its certificate was refused, or it violates TLS.
    Other,
}

/// The fault of the provider's TLS, if TLS failed.
fn tls_fault(error: &HttpError) -> Option<TlsFault> {
    let fault = chain(error).find_map(|cause| cause.downcast_ref::<rustls::Error>())?;
    let plain = rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType);
    Some(if *fault == plain { TlsFault::Plain } else { TlsFault::Other })
}

/// The causes of an error, from the outermost.
fn chain(error: &HttpError) -> impl Iterator<Item = &(dyn Error + 'static)> {
    successors(error.cause(), |&cause| {
        // An `io::Error` leaves the error it wraps out of its sources.
        match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => cause.source(),
        }
    })
}
