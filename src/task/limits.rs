//! Limits on what a run may bring, and on what tools may do in it.

use std::time::Duration;

/// Bytes of text, reasoning, tool arguments and results of a run: a conversation is held in memory.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Limits on tool calls. What exceeds one is an error that the model is given, except for the number
/// of rounds, which ends the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolLimits {
    /// Rounds of tool calls in a run: answers that request some.
    pub rounds: u32,
    /// Calls in a round.
    pub calls: u32,
    /// Time of a call, without the time in which a person decides on it.
    pub call_time: Duration,
    /// Time of a person: to approve a call, or to answer one.
    pub ask_time: Duration,
    /// Time for which the first provider call waits for servers that are being started.
    pub start_wait: Duration,
    /// Bytes of the text of a result; the rest is cut, with a note to the model.
    pub result_bytes: usize,
    /// Bytes of the arguments of a call.
    pub argument_bytes: usize,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            rounds: 50,
            calls: 100,
            call_time: Duration::from_secs(10 * 60),
            ask_time: Duration::from_secs(60 * 60),
            start_wait: Duration::from_secs(10),
            result_bytes: 256 * 1024,
            argument_bytes: 1024 * 1024,
        }
    }
}
