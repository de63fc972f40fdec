//! What an error of the HTTP client says: its causes, and whether TLS is among them.

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

/// True if the provider's TLS certificate was refused, or it doesn't speak TLS as it should.
pub(super) fn is_tls(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<rustls::Error>() {
            return true;
        }
        // An `io::Error` leaves the error it wraps out of its sources.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}
