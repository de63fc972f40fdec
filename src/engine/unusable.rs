//! In the place of an engine whose settings can't be used: every call fails with the reason, and a
//! request can choose another engine. No other provider answers in its place.

use super::{CallEnd, ErrorClass, RunError, Stage};

/// The reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    why: String,
}

impl Unusable {
    /// For settings that can't be used because of `why`, which holds no secret.
    pub fn new(why: &str) -> Self {
        Self { why: why.to_owned() }
    }

    /// The error of every call.
    pub(super) fn error(&self) -> RunError {
        RunError {
            stage: Stage::Init,
            class: ErrorClass::Config,
            message: self.why.clone(),
            detail: self.why.clone(),
        }
    }

    pub(super) async fn answer(self) -> CallEnd {
        CallEnd::Failed(self.error())
    }
}
