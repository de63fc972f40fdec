//! The client: writes request lines, and reads frames as any other one would, by the checker of the contract.

use crate::conformance::check::Checker;
use crate::support::dice::Dice;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};

/// Bytes that a line may have.
pub(super) const LINE_BYTES_MAX: usize = 2048;

#[derive(Debug, Default)]
pub(super) struct Client {
    /// Requests of the world so far, for their ids.
    asked: u32,
    checker: Checker,
    /// What was read and is no whole line yet.
    rest: Vec<u8>,
    has_read: bool,
    /// Calls that wait for an answer, and for a decision.
    tools: VecDeque<String>,
    approvals: VecDeque<String>,
    /// The request that was submitted last, and the message that the last prompt is.
    run: String,
    prompt: String,
    /// How often each request had its end.
    ends: BTreeMap<String, u32>,
}

impl Client {
    /// The client of the next process.
    pub(super) fn next(&self) -> Self {
        Self { asked: self.asked, prompt: self.prompt.clone(), ..Self::default() }
    }

    pub(super) fn ends(&self, request: &str) -> u32 {
        self.ends.get(request).copied().unwrap_or_default()
    }

    /// Reads bytes of the output.
    pub(super) fn read(&mut self, bytes: impl Iterator<Item = u8>) -> Result<(), String> {
        for byte in bytes {
            if byte != b'\n' {
                self.rest.push(byte);
                continue;
            }
            let line = std::mem::take(&mut self.rest);
            self.line(&line)?;
        }
        Ok(())
    }

    /// The output has ended; `is_whole`: by itself.
    pub(super) fn end(&mut self, is_whole: bool) -> Result<(), String> {
        // A line that lacks its line feed alone is whole: the process was killed before it could write that.
        if !is_whole && serde_json::from_slice::<Value>(&self.rest).is_ok() {
            let line = std::mem::take(&mut self.rest);
            self.line(&line)?;
        }
        if !is_whole && !self.has_read {
            return Ok(());
        }
        let cut_off: &[u8] = if self.rest.is_empty() { b"{" } else { &self.rest };
        let tail = if is_whole { self.rest.as_slice() } else { cut_off };
        violation(&self.checker.finish(Some(tail)), tail)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        self.has_read = true;
        violation(&self.checker.line(line), line)?;
        let text = String::from_utf8_lossy(line);
        let is_noted = [
            "\"done\":",
            "ChatUserMessageAccepted",
            "FrontendToolCallRequested",
            "ToolApprovalRequested",
        ];
        if is_noted.iter().any(|it| text.contains(it)) {
            self.note(&serde_json::from_str(&text).unwrap_or_default());
        }
        Ok(())
    }

    fn note(&mut self, frame: &Value) {
        let payload = &frame["uiEvent"]["payload"];
        let call = payload["toolCallId"].as_str().unwrap_or_default().to_owned();
        match frame["uiEvent"]["name"].as_str() {
            Some("FrontendToolCallRequested") => self.tools.push_back(call),
            Some("ToolApprovalRequested") => self.approvals.push_back(call),
            Some("ChatUserMessageAccepted") => {
                payload["messageId"].as_str().unwrap_or_default().clone_into(&mut self.prompt);
            }
            Some(_) | None => {}
        }
        if frame.get("done").is_some() {
            let id = frame["requestId"].as_str().unwrap_or_default();
            *self.ends.entry(id.to_owned()).or_default() += 1;
        }
    }

    /// A request line, with its line feed.
    pub(super) fn request(&mut self, dice: &mut Dice) -> String {
        self.asked += 1;
        let id = format!("r{}", self.asked);
        let (member, value) = match dice.below(40) {
            0..14 => {
                self.run.clone_from(&id);
                ("submit", json!({ "prompt": format!("prompt {}", self.asked) }))
            }
            14 => ("submit", json!({ "prompt": " \n" })),
            15 => ("submit", json!({ "prompt": "and?", "targetRequestId": self.run })),
            16..20 => ("cancel", json!({})),
            20 => ("cancel", json!({ "targetRequestId": self.run })),
            21 => ("cancel", json!({ "waiting": true })),
            22 => ("snapshot", json!({})),
            23 => ("snapshot", json!({ "sinceOrdinal": "5", "limit": 3 })),
            24 => ("edit", json!({ "dropLastTurn": {} })),
            25 => ("edit", json!({ "regenerate": {} })),
            26 => ("edit", json!({ "replace": { "messageId": self.prompt, "prompt": "other" } })),
            27 => ("compact", json!({ "keepTurns": 1 })),
            28 => ("compact", json!({ "decline": true })),
            29 => {
                let tools = [
                    json!({ "name": "get_time" }),
                    json!({ "name": "human_pick", "mode": "TOOL_EXECUTION_MODE_FRONTEND_HUMAN" }),
                ];
                ("declareTools", json!({ "tools": tools[..dice.below(3)], "revision": 1 }))
            }
            30 => {
                let extension =
                    dice.pick(&["heartbeats", "tool-progress", "usage", "approvals", "nothing"]);
                ("enable", json!({ "extensions": [extension] }))
            }
            31 => ("switchModel", json!({ "model": "other" })),
            32 => return format!("{{\"requestId\":\"{id}\",\"submit\":\n"),
            33 => {
                let prompt = "x".repeat(LINE_BYTES_MAX);
                return json!({ "requestId": id, "submit": { "prompt": prompt } }).to_string()
                    + "\n";
            }
            34 => {
                let line = json!({ "requestId": id, "sessionId": "other", "snapshot": {} });
                return line.to_string() + "\n";
            }
            _ => self.decision(dice),
        };
        json!({ "requestId": id, member: value }).to_string() + "\n"
    }

    /// An answer to what the program has asked, or to what it has not.
    fn decision(&mut self, dice: &mut Dice) -> (&'static str, Value) {
        if dice.once_in(2) {
            let decision = dice.pick(&["ALLOW_ONCE", "ALLOW_SESSION", "DENY"]);
            let call = self.approvals.pop_front().unwrap_or_else(|| "call_a".to_owned());
            return ("approve", json!({ "toolCallId": call, "decision": decision }));
        }
        let call = self.tools.pop_front().unwrap_or_else(|| "call_a".to_owned());
        match dice.once_in(3) {
            true => ("toolResult", json!({ "toolCallId": call, "error": "I can't" })),
            false => ("toolResult", json!({ "toolCallId": call, "result": { "n": 1 } })),
        }
    }
}

fn violation(all: &[crate::conformance::check::Violation], line: &[u8]) -> Result<(), String> {
    match all.first() {
        None => Ok(()),
        Some(violation) => {
            let line = String::from_utf8_lossy(line);
            Err(format!("the stream breaks {}: {} in {line}", violation.rule, violation.message))
        }
    }
}
