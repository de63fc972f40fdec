//! Builds the provider calls of a run: each has the model and the messages of its purpose.

use super::compaction::CallCompaction;
use super::model::Selection;
use super::prices::PricedModel;
use crate::conversation::tool::ToolSpec;
use crate::conversation::transcript::Transcript;
use crate::task::call::{CallSpec, Purpose, ResponseSchema};
use std::sync::Arc;

/// The state of a session from which provider calls are built.
pub(super) struct Available<'a> {
    pub(super) transcript: &'a Transcript,
    pub(super) tools: Arc<[ToolSpec]>,
    /// The schema of the run's answer.
    pub(super) schema: Option<Arc<ResponseSchema>>,
    /// What a summary is to be of.
    pub(super) summary: Option<&'a SummaryWanted>,
    /// What can be made of it if it is known how much the model can be sent.
    pub(super) asks_for_context: bool,
}

/// A summary that the model is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SummaryWanted {
    /// Number of the last turn that it stands for.
    pub(super) through: u32,
    /// The prompt that asks for it.
    pub(super) prompt: String,
    /// Tokens that its call may be sent, by the estimate: of what has no room, results of tools are left out, and
    /// then texts are shortened. `None`: nothing is.
    pub(super) room: Option<u64>,
}

/// What answers in a run.
#[derive(Clone, Debug, Default)]
pub(super) struct CallModel {
    pub(super) selection: Selection,
    /// The names of engine, provider's host and model, for the price.
    pub(super) engine: Arc<str>,
    pub(super) host: String,
    pub(super) name: String,
    /// How its conversation is compacted.
    pub(super) compaction: CallCompaction,
    /// The names of engine, provider's host and model of the call that makes the summary.
    pub(super) of_summary: (Arc<str>, String, String),
}

impl CallModel {
    pub(super) fn priced(&self) -> PricedModel<'_> {
        PricedModel { engine: &self.engine, host: &self.host, name: &self.name }
    }

    /// What makes a call for that purpose.
    pub(super) fn priced_for(&self, purpose: Purpose) -> PricedModel<'_> {
        let (engine, host, name) = &self.of_summary;
        match purpose {
            Purpose::Answer => self.priced(),
            Purpose::Summary => PricedModel { engine, host, name },
        }
    }

    /// Has the model that answers write the summaries. Returns the model that wrote them, if that was another one.
    pub(super) fn summarize_with_answering_model(&mut self) -> Option<String> {
        let answering = (Arc::clone(&self.engine), self.host.clone(), self.name.clone());
        self.compaction.selection.model.clone_from(&self.selection.model);
        let before = std::mem::replace(&mut self.of_summary, answering);
        (before != self.of_summary).then_some(before.2)
    }
}

/// Builds the call for `purpose`, made by the engine and model of `selection`.
pub(super) fn spec(purpose: Purpose, available: Available<'_>, selection: &Selection) -> CallSpec {
    let Available { transcript, tools, schema, summary, asks_for_context } = available;
    let (transcript, tools, schema) = match purpose {
        // The whole conversation: its last turn is the one to answer.
        Purpose::Answer => (transcript.sent(), tools, schema),
        // The turns that the summary stands for, as the calls before have sent them, which a provider's cache
        // has; and with the tools, which some providers require where calls of them are in it.
        Purpose::Summary => {
            let SummaryWanted { through, prompt, room } = summary.cloned().unwrap_or_default();
            (transcript.asking(&prompt, through, room), tools, None)
        }
    };
    let Selection { engine, model, settings } = selection.clone();
    CallSpec { purpose, transcript, tools, engine, model, settings, schema, asks_for_context }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::{HistoryMessage, Message, Preamble};
    use crate::task::call::EngineRef;
    use serde_json::Map;

    #[test]
    fn an_answer_is_sent_the_whole_conversation_with_tools_and_schema() {
        let history = vec![HistoryMessage::ByUser("hi".to_owned())];
        let transcript = Transcript::new(Preamble { system: Some("be brief".to_owned()), history });
        let tool = ToolSpec {
            name: "look".to_owned(),
            description: String::new(),
            input_schema: Arc::default(),
        };
        let schema = ResponseSchema { name: "answer".to_owned(), schema: Map::new() };
        let available = Available {
            transcript: &transcript,
            tools: Arc::new([tool.clone()]),
            schema: Some(Arc::new(schema.clone())),
            summary: None,
            asks_for_context: false,
        };
        let (engine, model) = (EngineRef::Named("gemini".to_owned()), Some("m".to_owned()));
        let selection = Selection { engine: engine.clone(), model, settings: Arc::default() };
        let spec = spec(Purpose::Answer, available, &selection);
        let expected = [Message::System("be brief"), Message::user("hi", &[])];
        assert_eq!(spec.transcript.messages(), expected);
        assert_eq!((spec.purpose, spec.engine), (Purpose::Answer, engine));
        assert_eq!((&*spec.tools, spec.model.as_deref()), (&[tool][..], Some("m")));
        assert_eq!(spec.schema.as_deref(), Some(&schema));
    }
}
