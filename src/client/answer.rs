//! What a run came to, put together from its events. Pure.

use super::error::{Error, Refused};
use super::tools::HasSchema;
use crate::protocol::any::Any;
use crate::protocol::constants::{code, done, finish};
use crate::protocol::proto::chat::CorrelationInfo;
use crate::protocol::proto::session::TokenCounts;
use indexmap::IndexMap;
use serde_json::Value;

/// Classes of the end of an answer that is not whole.
const CUT_OFF: [&str; 2] = [finish::MAX_TOKENS, finish::CONTENT_FILTER];

/// A call that the model made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, as JSON.
    pub input: String,
    /// Its result; empty until it has returned.
    pub result: String,
    /// How it ended, as `success`; empty until it has returned.
    pub status: String,
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// `ok`, or `stopped` where it was cancelled.
    pub status: String,
    /// The answer: what the last call of the model said.
    pub text: String,
    /// What each call of the model said.
    pub texts: Vec<String>,
    /// Its reasoning, as far as the provider shows it.
    pub reasoning: String,
    /// The calls of tools, in order.
    pub tool_calls: Vec<ToolCall>,
    /// The values that were found in the answer of the last call.
    pub values: Vec<Value>,
    /// The token counts of the run, if the provider reports them; with its cost, if prices are known.
    pub usage: Option<TokenCounts>,
    /// Why the last call of the model ended, as `completed`.
    pub finish_class: String,
    /// The id of the prompt's message.
    pub message_id: String,
    /// The prompt has joined a run that was active.
    pub has_joined: bool,
}

/// An answer with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed<T> {
    /// The value.
    pub value: T,
    /// The answer that it was found in.
    pub answer: Answer,
}

impl Answer {
    /// The run was cancelled.
    pub fn is_stopped(&self) -> bool {
        self.status == done::STOPPED
    }

    /// The answer was cut off, at a limit of tokens or by a filter of the provider.
    pub fn is_cut_off(&self) -> bool {
        CUT_OFF.contains(&self.finish_class.as_str())
    }

    /// The last value that was found, as a value of `T`.
    pub(super) fn typed<T: HasSchema>(self) -> Result<Typed<T>, Error> {
        if self.is_stopped() {
            return Err(Error::Stopped { text: self.text });
        }
        let read = match self.values.last() {
            Some(value) => serde_json::from_value(value.clone()).map_err(|why| why.to_string()),
            None => Err("no value was found in the answer".to_owned()),
        };
        match read {
            Ok(value) => Ok(Typed { value, answer: self }),
            Err(message) => {
                let error = Refused {
                    code: code::INVALID_ANSWER.to_owned(),
                    message,
                    ..Refused::default()
                };
                Err(Error::Answer { error, text: self.text })
            }
        }
    }
}

/// The fold of a run's events.
#[derive(Debug, Default)]
pub(super) struct Summary {
    answer: Answer,
    /// What each call of the model said, by the id of the call.
    texts: IndexMap<String, String>,
    calls: IndexMap<String, ToolCall>,
}

impl Summary {
    pub(super) fn apply(&mut self, payload: &Any) {
        let answer = &mut self.answer;
        if let Any::ChatTextSegmentFinished(it) = payload {
            self.texts.entry(call_of(it.correlation.as_ref())).or_default().push_str(&it.text);
        } else if let Any::ChatReasoningSegmentFinished(it) = payload {
            answer.reasoning.push_str(&it.text);
        } else if let Any::ChatToolCallRequested(it) = payload {
            let call = self.call(&it.tool_call_id, &it.tool_name);
            call.input.clone_from(&it.input);
        } else if let Any::ChatToolResultReady(it) = payload {
            let call = self.call(&it.tool_call_id, &it.tool_name);
            (call.result, call.status) = (it.result.clone(), it.status.clone());
        } else if let Any::UsageTotals(it) = payload {
            answer.usage.clone_from(&it.run);
        } else if let Any::ObjectExtracted(it) = payload {
            // The text has all digits, and the order of members.
            answer.values.extend(serde_json::from_str::<Value>(&it.json).ok());
        } else if let Any::AnswerRejected(_) | Any::ChatProviderCallStarted(_) = payload {
            // What was found in it does not count; nor does what was found before the last call.
            answer.values.clear();
        } else if let Any::ChatProviderCallFinished(it) = payload {
            answer.finish_class.clone_from(&it.finish_class);
        } else if let Any::ChatUserMessageAccepted(it) = payload {
            // Those that join the run have ids of their own.
            if answer.message_id.is_empty() {
                answer.message_id.clone_from(&it.message_id);
            }
        } else if let Any::SteeringAccepted(it) = payload {
            answer.has_joined = true;
            answer.message_id.clone_from(&it.message_id);
        }
    }

    fn call(&mut self, id: &str, name: &str) -> &mut ToolCall {
        self.calls.entry(id.to_owned()).or_insert_with(|| ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            ..ToolCall::default()
        })
    }

    /// The answer of a run that has ended with this status.
    pub(super) fn finish(self, status: String) -> Answer {
        let Self { answer, texts, calls } = self;
        let texts: Vec<_> = texts.into_values().collect();
        let text = texts.last().cloned().unwrap_or_default();
        Answer { status, text, texts, tool_calls: calls.into_values().collect(), ..answer }
    }
}

fn call_of(ids: Option<&CorrelationInfo>) -> String {
    ids.map_or(String::new(), |ids| ids.provider_call_id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::chat::ChatUserMessageAccepted;

    #[test]
    fn the_prompt_of_a_run_is_its_first() {
        let mut summary = Summary::default();
        for message_id in ["own", "joined"].map(str::to_owned) {
            summary.apply(&ChatUserMessageAccepted { message_id, ..Default::default() }.into());
        }
        assert_eq!(summary.finish("ok".to_owned()).message_id, "own");
    }
}
