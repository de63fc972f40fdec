//! Redirects of a server: what is sent to it, keys included, goes to no other one.

use super::faults::shown;
use reqwest::StatusCode;
use reqwest::redirect::Policy;

/// Redirects of one request that are followed.
const REDIRECTS_MAX: usize = 3;

/// Follows redirects that keep the message and lead to the same scheme, host and port. Any other one is an error that
/// says where it leads.
pub(super) fn within_origin() -> Policy {
    Policy::custom(|attempt| {
        let (status, from) = (attempt.status(), attempt.previous());
        // With another status a message is sent as a GET without its body.
        let keeps_message =
            matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let is_within = from.last().is_some_and(|from| from.origin() == attempt.url().origin());
        if keeps_message && is_within && from.len() <= REDIRECTS_MAX {
            return attempt.follow();
        }
        let why = format!(
            "it redirects to {}, which is not followed; if that is the server, use that address",
            shown(attempt.url())
        );
        attempt.error(why)
    })
}
