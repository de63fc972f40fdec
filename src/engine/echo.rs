//! The built-in engine: answers with the words of the prompt and the number of the turn, so that a
//! person sees that the conversation is kept. Needs no key, account or server.

use super::{EngineEvent, RunEnd, Sink};
use crate::chat::event::FinishClass;
use crate::chat::transcript::{Transcript, Turn, TurnState};
use std::time::Duration;

/// Characters of an earlier prompt that an answer quotes.
const QUOTE_CHARS_MAX: usize = 60;

/// Settings of the built-in engine.
#[derive(Clone, Debug, Default)]
pub struct Echo {
    /// Wait before each piece of the answer.
    pub delay: Duration,
    /// Reason before answering.
    pub reasoning: bool,
}

impl Echo {
    /// Answers the last turn of `transcript`, a word at a time.
    pub async fn answer(self, transcript: Transcript, sink: Sink) -> RunEnd {
        let turns = transcript.turns();
        sink.send(EngineEvent::CallStarted).await;
        if self.reasoning {
            for text in pieces(&reasoning(turns)) {
                self.pace().await;
                sink.send(EngineEvent::Reasoning { source: "echo", text }).await;
            }
        }
        for text in pieces(&reply(turns)) {
            self.pace().await;
            sink.send(EngineEvent::Text(text)).await;
        }
        let [stop_reason, class] = [String::from("stop"), FinishClass::Completed];
        sink.send(EngineEvent::CallFinished { stop_reason, class }).await;
        RunEnd::Finished
    }

    async fn pace(&self) {
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
    }
}
