//! Errors and warnings of a single run, for a person, if its output has no place for them.

use super::{Requests, Settings};
use crate::output;
use crate::protocol::any::Any;
use crate::protocol::error_text::with_detail;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use crate::session::SessionMode;
use crate::support::terminal::escape_control;

/// Warnings that are logged one by one; the rest is counted. An answer may have any number of lines.
const WARNINGS_MAX: usize = 20;

#[derive(Debug)]
pub(super) enum Diagnostics {
    /// The output reports everything.
    None,
    /// Errors and warnings are collected here.
    Taken { reports_warnings: bool, warnings: usize, complaint: Option<String> },
}

impl Diagnostics {
    pub(super) fn new(settings: &Settings) -> Self {
        match (settings.host.rules.mode, &settings.requests) {
            (SessionMode::OneShot, Requests::Once(_) | Requests::Awaited(_)) => {
                let reports_warnings = settings.format.reports_warnings();
                Self::Taken { reports_warnings, warnings: 0, complaint: None }
            }
            // A refusal was reported before; in a conversation the client gets all errors.
            (SessionMode::OneShot | SessionMode::Conversation, _) => Self::None,
        }
    }

    /// Collects the errors and warnings of `frame`.
    pub(super) fn take(&mut self, frame: &Frame) {
        let Self::Taken { reports_warnings, warnings, complaint } = self else { return };
        if let Some(Body::Error(error)) = &frame.frame {
            *complaint = Some(escape_control(&with_detail(&error.message, &error.detail)));
        } else if let Some(Body::UiEvent(event)) = &frame.frame
            && !*reports_warnings
            && let Some(warning) = event.payload.as_ref().and_then(warning)
        {
            *warnings += 1;
            if *warnings <= WARNINGS_MAX {
                tracing::warn!("{}", escape_control(&warning));
            }
        }
    }

    pub(super) fn into_complaint(self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Taken { warnings, complaint, .. } => {
                if let Some(more @ 1..) = warnings.checked_sub(WARNINGS_MAX) {
                    tracing::warn!("and {more} more warnings");
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
    if let Any::AnswerRejected(rejected) = payload {
        return Some(format!("the answer is asked for again: {}", rejected.reason));
    }
    if let Any::ExtractionFinished(tally) = payload {
        return output::nothing_found(tally.objects, tally).map(str::to_owned);
    }
    None
}
