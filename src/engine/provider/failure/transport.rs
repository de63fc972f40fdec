//! The causes of an error of the HTTP client, and whether TLS is among them.

use rustls::InvalidMessage;
use std::error::Error;

/// The error and what lies below it, without the URL.
pub(super) fn causes(error: &reqwest::Error) -> String {
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
pub(super) enum TlsFault {
    /// Its answer is not TLS.
    Plain,
    /// Its certificate was refused, or it violates TLS.
    Other,
}

/// What is wrong with the provider's TLS, if that is what failed.
pub(super) fn tls_fault(error: &reqwest::Error) -> Option<TlsFault> {
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
