//! A provider that can't be reached, a connection that breaks, and whether TLS is the cause.

use super::{DETAIL_CHARS_MAX, Failure, Failures, QUOTE_CHARS_MAX, SettingSources};
use crate::engine::ErrorClass;
use crate::engine::provider::address;
use crate::engine::provider::retry::Retry;
use reqwest::Url;
use rustls::InvalidMessage;
use std::error::Error;

impl Failures {
    /// The provider redirects to another address.
    pub(in crate::engine) fn redirected(&self, status: u16, location: Option<&Url>) -> Failure {
        let SettingSources { base_url_source, .. } = self.sources;
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
    pub(in crate::engine) fn network(&self, error: &reqwest::Error) -> Failure {
        let SettingSources { base_url_source, .. } = self.sources;
        let detail = self.quote(&causes(error), DETAIL_CHARS_MAX);
        let base = self.base();
        if error.is_connect() && error.is_timeout() {
            let message = format!(
                "connecting to {base} took too long: check your network and {base_url_source}, or raise \
                 --connect-timeout-ms"
            );
            return Failure::new(ErrorClass::Timeout, message, detail);
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

/// The error and what lies below it, without the URL.
fn causes(error: &reqwest::Error) -> String {
    let mut text = match error.is_connect() {
        true => "connecting".to_owned(),
        false => "the connection".to_owned(),
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// What is wrong with the provider's TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsFault {
    /// Its answer is not TLS.
    Plain,
    /// Its certificate was refused, or it violates TLS.
    Other,
}

/// What is wrong with the provider's TLS, if that is what failed.
fn tls_fault(error: &reqwest::Error) -> Option<TlsFault> {
    let mut cause = error.source();
    while let Some(error) = cause {
        match error.downcast_ref::<rustls::Error>() {
            Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
                return Some(TlsFault::Plain);
            }
            Some(_) => return Some(TlsFault::Other),
            None => {}
        }
        // An `io::Error` leaves the error it wraps out of its sources.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}
