//! What a person should know of a single run whose output has no place for it.

use super::{Requests, Settings};
use crate::any::Any;
use crate::output;
use crate::proto::rpc::rpc_line::Frame as Body;
use crate::session::Life;
use crate::terminal::harmless;
use crate::wire::Frame;

/// Warnings that are told one by one: an answer may have any number of lines.
const WARNINGS_MAX: usize = 20;

#[derive(Debug)]
pub(super) enum Notes {
    /// The output tells everything.
    None,
    /// Collected here.
    Taken { tells_warnings: bool, warnings: usize, complaint: Option<String> },
}

impl Notes {
    pub(super) fn new(settings: &Settings) -> Self {
        match (settings.rules.life, &settings.requests) {
            (Life::OneShot, Requests::Once(_) | Requests::Awaited(_)) => {
                let tells_warnings = settings.format.tells_warnings();
                Self::Taken { tells_warnings, warnings: 0, complaint: None }
            }
            // Whoever has nothing to ask was told why; in a conversation the client is.
            (Life::OneShot | Life::Conversation, _) => Self::None,
        }
    }

    /// Notes what `frame` tells of.
    pub(super) fn take(&mut self, frame: &Frame) {
        let Self::Taken { tells_warnings, warnings, complaint } = self else { return };
        match &frame.frame {
            Some(Body::Error(error)) => {
                // A detail that ends in the message says nothing more.
                let detail = Some(&error.detail).filter(|text| !text.ends_with(&error.message));
                let detail = detail.map(|text| format!(" ({text})")).unwrap_or_default();
                *complaint = Some(harmless(&format!("{}{detail}", error.message)));
            }
            Some(Body::UiEvent(event)) if !*tells_warnings => {
                if let Some(warning) = event.payload.as_ref().and_then(warning) {
                    *warnings += 1;
                    if *warnings <= WARNINGS_MAX {
                        tracing::warn!("{}", harmless(&warning));
                    }
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
            Self::Taken { warnings, complaint, .. } => {
                if let Some(untold @ 1..) = warnings.checked_sub(WARNINGS_MAX) {
                    tracing::warn!("and {untold} more warnings");
                }
                complaint
            }
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
