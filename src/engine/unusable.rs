//! In the place of an engine whose settings can't be used: every call fails with the reason, and a
//! request can choose another engine. No other provider answers in its place.

use super::{CallEnd, CallSettings, CallSpec, Engine, Listing, RunError, Running, Sink};
use std::future::ready;

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
    fn error(&self) -> RunError {
        RunError::of_settings(self.why.clone(), self.why.clone())
    }
}

impl Engine for Unusable {
    fn name(&self) -> &str {
        "none"
    }

    fn model(&self) -> &str {
        ""
    }

    fn provider(&self) -> String {
        String::new()
    }

    fn fault(&self) -> Option<RunError> {
        Some(self.error())
    }

    fn start(&self, _spec: CallSpec, _sink: Sink) -> Running {
        Box::pin(ready(CallEnd::Failed(self.error())))
    }

    fn models<'a>(&'a self, _settings: &'a CallSettings) -> Listing<'a> {
        Box::pin(ready(Err(self.error())))
    }
}
