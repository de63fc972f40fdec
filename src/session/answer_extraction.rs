//! Finds JSON in the answers of a session: a projection of the events, like the timeline.

use super::client_error::invalid_answer;
use crate::conversation::event::{Event, Recorded, SegmentKind};
use crate::conversation::ui::correlation;
use crate::extract::{self, Extractor, Found, Reason, ResponseType, Schema};
use crate::protocol::any::Any;
use crate::protocol::id::SessionId;
use crate::protocol::wire::ClientError;
use crate::task::call::ResponseSchema;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The requirements on an answer.
#[derive(Clone, Debug)]
pub struct Extraction {
    /// The form of the answer.
    pub response: ResponseType,
    /// The schema of each value.
    pub schema: Option<Schema>,
    /// How it is reported.
    pub report: ExtractionReport,
    /// The schema for the provider, if it is that of the whole answer.
    pub response_schema: Option<Arc<ResponseSchema>>,
    /// How often the model is asked again for an answer that matches.
    pub repairs: u32,
}

/// The name of a schema that has none.
const SCHEMA_NAME: &str = "answer";

impl Extraction {
    /// The extraction for a request with a schema for its answer.
    ///
    /// # Errors
    /// If the schema can't be used: why, for a message.
    pub(super) fn of_request(schema: Map<String, Value>, repairs: u32) -> Result<Self, String> {
        let compiled = Schema::compile(&Value::Object(schema.clone()));
        let compiled = compiled.map_err(|error| format!("responseSchema: {error}"))?;
        let response_schema = ResponseSchema { name: SCHEMA_NAME.to_owned(), schema };
        Ok(Self {
            response: ResponseType::Json,
            schema: Some(compiled),
            report: ExtractionReport::Messages,
            response_schema: Some(Arc::new(response_schema)),
            repairs,
        })
    }
}

/// An answer that does not match its schema.
#[derive(Clone, Debug)]
pub(super) struct RejectedAnswer {
    pub(super) reason: String,
    pub(super) repairs_max: u32,
}

/// How frames report found values. They are an extension, which a client must turn on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtractionReport {
    /// Not at all.
    Nothing,
    /// As JSON text.
    Text,
    /// As messages, too.
    Messages,
}

#[derive(Clone, Debug)]
pub(super) struct AnswerExtraction {
    wanted: Extraction,
    extractor: Extractor,
    is_cut_off: bool,
    invalid: Option<ClientError>,
}

impl AnswerExtraction {
    pub(super) fn new(wanted: Extraction) -> Self {
        let extractor = Extractor::new(wanted.response, wanted.schema.clone());
        Self { wanted, extractor, is_cut_off: false, invalid: None }
    }

    /// Applies an event; returns the values that it completed.
    pub(super) fn apply(&mut self, session: &SessionId, recorded: &Recorded) -> Vec<Any> {
        let event = &recorded.event;
        if let Event::RunStarted { .. } = event {
            *self = Self::new(self.wanted.clone());
        } else if let Event::CallStarted = event {
            // The answer is what the model writes last, and not its words before a tool call.
            self.extractor.begin_again();
            self.invalid = None;
        } else if let Event::SegmentPatched { segment, text, .. } = event
            && segment.kind == SegmentKind::Text
        {
            let found = self.extractor.push(text);
            return self.report(session, recorded, found);
        } else if let Event::CallFinished { class, has_tool_calls, .. } = event {
            self.is_cut_off = class.cuts_off();
            if *has_tool_calls {
                let found = self.extractor.finish_line(self.is_cut_off);
                return self.report(session, recorded, found.into_iter().collect());
            }
        } else if event.ends_run() {
            let is_finished = matches!(event, Event::RunFinished { .. });
            return self.finish(session, recorded, self.is_cut_off || !is_finished);
        }
        Vec::new()
    }

    /// The schema that the provider gets.
    pub(super) fn response_schema(&self) -> Option<Arc<ResponseSchema>> {
        self.wanted.response_schema.clone()
    }

    /// Whether frames report found values.
    pub(super) fn is_reported(&self) -> bool {
        self.wanted.report != ExtractionReport::Nothing
    }

    /// Why the answer, if it ends here, does not match; `None` if it does, or was cut off.
    pub(super) fn rejected(&self) -> Option<RejectedAnswer> {
        if self.is_cut_off || self.wanted.response != ResponseType::Json {
            return None;
        }
        let found = self.extractor.clone().finish(false);
        let reason = found.into_iter().find_map(|found| match found {
            Found::Invalid { line, reason } => Some(reason_in(line, &reason)),
            Found::Value { .. } | Found::Rejected { .. } => None,
        })?;
        Some(RejectedAnswer { reason, repairs_max: self.wanted.repairs })
    }

    /// The document of the answer, if the answer ends here and is one.
    pub(super) fn document(&self) -> Option<String> {
        if self.wanted.response != ResponseType::Json {
            return None;
        }
        let found = self.extractor.clone().finish(self.is_cut_off);
        found.into_iter().find_map(|found| match found {
            Found::Value { json, .. } => Some(json),
            Found::Rejected { .. } | Found::Invalid { .. } => None,
        })
    }

    /// The error of the answer as a whole.
    pub(super) fn take_invalid(&mut self) -> Option<ClientError> {
        self.invalid.take()
    }

    /// Whether the answer has ended in the middle of a value, independent of the provider's stop reason.
    pub(super) fn is_cut_off(&self) -> bool {
        self.extractor.is_cut_off()
    }

    fn finish(&mut self, session: &SessionId, recorded: &Recorded, is_cut_off: bool) -> Vec<Any> {
        let found = self.extractor.finish(is_cut_off);
        let is_cut_off = is_cut_off || self.extractor.is_cut_off();
        let mut reported = self.report(session, recorded, found);
        // A document that is not valid is reported by an error.
        let is_reported_else =
            self.invalid.is_some() && self.wanted.report == ExtractionReport::Text;
        if self.wanted.report != ExtractionReport::Nothing && !is_reported_else {
            let ids = correlation(session, recorded.scope);
            let root = recorded.scope.run.root();
            reported.push(extract::finished(&root, self.extractor.tally(), is_cut_off, Some(ids)));
        }
        reported
    }

    fn report(&mut self, session: &SessionId, recorded: &Recorded, found: Vec<Found>) -> Vec<Any> {
        let has_schema = self.wanted.schema.is_some();
        for found in &found {
            if let Found::Invalid { line, reason } = found {
                self.invalid = Some(invalid_answer(*line, reason, has_schema));
            }
        }
        let with_object = match self.wanted.report {
            ExtractionReport::Nothing => return Vec::new(),
            ExtractionReport::Text => false,
            ExtractionReport::Messages => true,
        };
        let is_reported_else =
            |found: &Found| !with_object && matches!(found, Found::Invalid { .. });
        let found = found.into_iter().filter(|found| !is_reported_else(found));
        let root = recorded.scope.run.root();
        let ids = || Some(correlation(session, recorded.scope));
        found.map(|found| found.into_payload(&root, ids(), with_object)).collect()
    }
}

/// Why an answer is rejected. The bytes of a place are counted from the beginning of its line, so the line comes with
/// them.
fn reason_in(line: u64, reason: &Reason) -> String {
    match reason {
        Reason::NotJson { .. } => format!("line {line}: {reason}"),
        Reason::CutOff
        | Reason::TooLong { .. }
        | Reason::Schema { .. }
        | Reason::Prose
        | Reason::Empty => reason.to_string(),
    }
}
