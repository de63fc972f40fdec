//! The built-in engine: answers with the words of the prompt and the number of the turn, so that a
//! person sees that the conversation is remembered. Needs no key, account or server.

mod pace;
mod script;

use super::provider::calls::CallIds;
use super::{
    CallEnd, CallSpec, Engine, EngineEvent, Purpose, RunError, Running, SettingNames, Sink,
};
use crate::conversation::event::{FinishClass, ToolCall, ToolResult};
use crate::conversation::transcript::{Turn, TurnItem, TurnState};
use crate::protocol::attachment::Attachment;
use crate::support::shorten::first_chars;
use pace::Pace;
use script::ScriptedCall;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Characters of an earlier prompt that an answer quotes.
const QUOTE_CHARS_MAX: usize = 60;

/// Bytes of a file that are sent at a time.
const PIECE_BYTES_MAX: u64 = 8 * 1024;

/// Settings of the built-in engine.
#[derive(Clone, Debug)]
pub struct Echo {
    /// Wait before each piece of the answer.
    pub delay: Duration,
    /// Reason before answering.
    pub reasoning: bool,
    /// A file to read the answer from.
    pub answer: Option<PathBuf>,
    /// A file with what each provider call of a run brings: texts and tool calls.
    pub script: Option<PathBuf>,
    /// The names of these settings in errors.
    pub names: &'static SettingNames,
}

impl Default for Echo {
    fn default() -> Self {
        let (delay, reasoning, answer, script) = (Duration::ZERO, false, None, None);
        Self { delay, reasoning, answer, script, names: &SettingNames::FIELDS }
    }
}

impl Engine for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn model(&self) -> &str {
        "echo"
    }

    fn start(&self, spec: CallSpec, sink: Sink) -> Running {
        Box::pin(self.clone().answer(spec, sink))
    }
}

impl Echo {
    /// Answers the last turn of the transcript, a word at a time.
    async fn answer(self, spec: CallSpec, sink: Sink) -> CallEnd {
        match self.call(&spec, &sink).await {
            Ok(()) => CallEnd::Finished,
            Err(error) => CallEnd::Failed(error),
        }
    }

    async fn call(&self, spec: &CallSpec, sink: &Sink) -> Result<(), RunError> {
        let (turns, count) = (spec.transcript.turns(), spec.transcript.turn_count());
        let scripted = self.scripted(turns)?;
        sink.send(EngineEvent::CallStarted).await;
        // A summary has no tool calls, and one without text would be none: the conversation would not be compacted.
        let is_summary = spec.purpose == Purpose::Summary;
        let scripted = scripted.filter(|call| !is_summary || !call.text.trim().is_empty());
        if let Some(mut call) = scripted {
            if is_summary {
                call.tools.clear();
            }
            return self.play(call, sink).await;
        }
        if self.reasoning {
            self.reason(&reasoning(count), sink).await;
        }
        match &self.answer {
            None => self.say(&reply(turns, count), sink).await,
            Some(path) => {
                self.recite(path, sink)
                    .await
                    .map_err(|error| unreadable(path, &error, self.names))?;
            }
        }
        finish(FinishClass::Completed, sink).await;
        Ok(())
    }

    /// The script of this call; `None` after the last one.
    fn scripted(&self, turns: &[Arc<Turn>]) -> Result<Option<ScriptedCall>, RunError> {
        let Some(path) = &self.script else { return Ok(None) };
        let rounds = turns.last().map_or(0, |turn| rounds(turn));
        let mut calls =
            script::read(path).map_err(|error| script::unreadable(path, &error, self.names))?;
        Ok((rounds < calls.len()).then(|| calls.swap_remove(rounds)))
    }

    async fn play(&self, call: ScriptedCall, sink: &Sink) -> Result<(), RunError> {
        self.reason(&call.reasoning, sink).await;
        self.say(&call.text, sink).await;
        let calls_tools = !call.tools.is_empty();
        let tools: Vec<_> = call.tools.into_iter().enumerate().collect();
        let mut pace = Pace::new(self.delay);
        let mut ids = CallIds::default();
        for (at, tool) in tools {
            let (call, arguments) = tool.into_call(at);
            let id = ids.next(call.id.0);
            let call = ToolCall { id: id.clone(), name: call.name };
            sink.send(EngineEvent::ToolCallStarted(call)).await;
            for text in pieces(&arguments) {
                pace.wait().await;
                sink.send(EngineEvent::ToolArguments { id: id.clone(), text }).await;
            }
            sink.send(EngineEvent::ToolCallRequested { id }).await;
        }
        let class = if calls_tools { FinishClass::ToolCalls } else { FinishClass::Completed };
        finish(class, sink).await;
        Ok(())
    }

    async fn reason(&self, text: &str, sink: &Sink) {
        self.send(text, sink, |text| EngineEvent::Reasoning { source: "echo", text }).await;
    }

    async fn say(&self, text: &str, sink: &Sink) {
        self.send(text, sink, EngineEvent::Text).await;
    }

    async fn send(&self, text: &str, sink: &Sink, event: impl Fn(String) -> EngineEvent) {
        let mut pace = Pace::new(self.delay);
        for piece in pieces(text) {
            pace.wait().await;
            sink.send(event(piece)).await;
        }
    }

    /// Answers with the text of the file at `path`, line by line; long lines are sent in pieces.
    async fn recite(&self, path: &Path, sink: &Sink) -> io::Result<()> {
        let mut file = BufReader::new(open(path)?);
        let mut pace = Pace::new(self.delay);
        let mut piece = Vec::new();
        let mut is_empty = true;
        loop {
            let more = (&mut file).take(PIECE_BYTES_MAX).read_until(b'\n', &mut piece)?;
            if more == 0 && piece.is_empty() {
                // With a provider, too, an answer of nothing is an error.
                return if is_empty { Err(io::Error::other("it is empty")) } else { Ok(()) };
            }
            is_empty = false;
            let text = whole_text(&mut piece, more == 0)?;
            if !text.is_empty() {
                pace.wait().await;
                sink.send(EngineEvent::Text(text)).await;
            }
        }
    }
}

async fn finish(class: FinishClass, sink: &Sink) {
    let stop_reason = if class == FinishClass::ToolCalls { "tool_calls" } else { "stop" };
    let stop_reason = stop_reason.to_owned();
    sink.send(EngineEvent::CallFinished { stop_reason, class, provider_data: None }).await;
}

/// The provider calls that have answered in this turn: each brought text, tool calls, or both.
fn rounds(turn: &Turn) -> usize {
    let mut rounds: Vec<u32> = turn.items.iter().filter_map(TurnItem::round).collect();
    rounds.dedup();
    rounds.len()
}

/// Takes the text out of `piece`, but for a character that is cut off at its end unless `is_last`.
fn whole_text(piece: &mut Vec<u8>, is_last: bool) -> io::Result<String> {
    let whole = match std::str::from_utf8(piece) {
        Ok(text) => text.len(),
        Err(error) if error.error_len().is_none() && !is_last => error.valid_up_to(),
        Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    };
    let rest = piece.split_off(whole);
    String::from_utf8(std::mem::replace(piece, rest)).map_err(io::Error::other)
}

/// Opens a file that is no pipe, which would hold up the loop, and with it every signal.
fn open(path: &Path) -> io::Result<File> {
    match path.metadata()?.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("it is no regular file")),
    }
}

fn unreadable(path: &Path, error: &io::Error, names: &SettingNames) -> RunError {
    let message = format!(
        "{} can't be read, so the echo engine has no answer; name a text file with {}",
        path.display(),
        names.echo_answer
    );
    RunError::of_settings(message, error.to_string())
}

/// The reasoning of the engine about the last turn.
fn reasoning(turn: usize) -> String {
    format!("This is turn {turn}. I repeat what I was told.")
}

/// The answer to the last turn: a sentence about it, and one about the turn before.
fn reply(turns: &[Arc<Turn>], count: usize) -> String {
    let Some((turn, earlier)) = turns.split_last() else { return String::new() };
    let mut reply = format!("Turn {count}. You said: {}", turn.prompt.as_str());
    reply += &attached(&turn.attachments);
    for item in &turn.items {
        match item {
            TurnItem::Prompt(prompt, attachments) => {
                reply += "\nThen you said: ";
                reply += &quote(prompt);
                reply += &attached(attachments);
            }
            TurnItem::Called { tool, result, .. } => {
                reply += &format!("\nThe tool {} returned: ", tool.name);
                reply += &quote(result.as_deref().map_or("nothing", ToolResult::text));
            }
            TurnItem::Text { .. } | TurnItem::ProviderData(_) => {}
        }
    }
    if let Some(before) = earlier.last() {
        reply += "\nBefore that you said: ";
        reply += &quote(before.prompt.as_str());
        if before.state == TurnState::Interrupted {
            reply += " (and my answer was interrupted)";
        }
    }
    reply
}

/// Lists the attachments of a prompt, a line each, so that they can be tried without a provider.
fn attached(attachments: &[Attachment]) -> String {
    attachments.iter().map(|attachment| format!("\nAttached: {attachment}")).collect()
}

fn quote(prompt: &str) -> Cow<'_, str> {
    first_chars(prompt, QUOTE_CHARS_MAX)
}

/// `text` in words, each with the white space after it; together they are `text` again.
fn pieces(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split_inclusive(char::is_whitespace).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(prompt: &str, state: TurnState) -> Arc<Turn> {
        Arc::new(Turn {
            number: 1,
            prompt: prompt.into(),
            attachments: Arc::new([]),
            items: Vec::new(),
            state,
        })
    }

    #[test]
    fn a_reply_tells_the_turn_and_what_went_before() {
        let first = [turn("hi there", TurnState::Open)];
        assert_eq!(reply(&first, 1), "Turn 1. You said: hi there");
        let second = [turn("hi there", TurnState::Interrupted), turn("again", TurnState::Open)];
        let expected = "Turn 2. You said: again\n\
                        Before that you said: hi there (and my answer was interrupted)";
        assert_eq!(reply(&second, 2), expected);
    }

    #[test]
    fn pieces_lose_nothing() {
        let text = " a  b\n\u{2028}c\u{0}\r\u{1F600} ";
        assert_eq!(pieces(text).collect::<String>(), text);
    }

    #[test]
    fn a_long_prompt_is_quoted_in_part() {
        let long = "\u{e9}".repeat(QUOTE_CHARS_MAX + 1);
        assert_eq!(quote(&long).chars().count(), QUOTE_CHARS_MAX + 1);
        assert_eq!(quote("short"), "short");
    }
}
