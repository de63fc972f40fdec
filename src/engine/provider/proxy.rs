//! The proxy on the way to a provider, for errors.

use super::address;
use super::http::is_this_machine;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Url;

/// The proxy that the HTTP client takes for `url`, by the same rules, without its login.
pub(super) fn of(url: &Url) -> Option<String> {
    if is_this_machine(url) {
        return None;
    }
    let intercept = Matcher::from_system().intercept(&url.as_str().parse().ok()?)?;
    Some(address::shown(&intercept.uri().to_string()))
}
