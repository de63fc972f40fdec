//! What a person should know of a single run whose output has no place for it.

use super::{Requests, Settings};
use crate::any::Any;
use crate::output;
use crate::proto::rpc::rpc_line::Frame as Body;
use crate::session::Life;
use crate::wire::Frame;

#[derive(Debug)]
pub(super) enum Notes {
    /// The output tells everything.
    None,
    /// Collected here.
    Taken { tells_warnings: bool, complaint: Option<String> },
}

impl Notes {
    pub(super) fn new(settings: &Settings) -> Self {
        match (settings.rules.life, &settings.requests) {
            (Life::OneShot, Requests::Once(_) | Requests::Awaited(_)) => {
                Self::Taken { tells_warnings: settings.format.tells_warnings(), complaint: None }
            }
            // Whoever has nothing to ask was told why; in a conversation the client is.
            (Life::OneShot | Life::Conversation, _) => Self::None,
        }
    }

    /// Notes what `frame` tells of.
    pub(super) fn take(&mut self, frame: &Frame) {
        let Self::Taken { tells_warnings, complaint } = self else { return };
        match &frame.frame {
            Some(Body::Error(error)) => {
                // A class with nothing behind it tells a person nothing.
                let detail =
                    Some(&error.detail).filter(|text| !text.is_empty() && !text.ends_with(':'));
                let detail = detail.map(|text| format!(" ({text})")).unwrap_or_default();
                *complaint = Some(format!("{}{detail}", error.message));
            }
            Some(Body::UiEvent(event)) if !*tells_warnings => {
                if let Some(warning) = event.payload.as_ref().and_then(warning) {
                    tracing::warn!("{warning}");
                }
            }
            Some(
                Body::Hello(_)
                | Body::Snapshot(_)
                | Body::UiEvent(_)
                | Body::BackendEvent(_)
                | Body::Done(_),
            )
            | None => {}
        }
    }

    pub(super) fn into_complaint(self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Taken { complaint, .. } => complaint,
        }
    }
}

fn warning(payload: &Any) -> Option<String> {
    if let Any::ChatProviderCallFinished(call) = payload {
        return output::cut_off(call).map(str::to_owned);
    }
    if let Any::LineRejected(line) = payload {
        return Some(output::rejected(line));
    }
    if let Any::ExtractionFinished(tally) = payload {
        return output::nothing_found(tally).map(str::to_owned);
    }
    None
}
