//! Holds conversations inside this program, with no process and no pipes: one with the built-in engine,
//! and one with an engine that this program brings.
//!
//! `cargo run --example embed`

use duologue::conversation::event::FinishClass;
use duologue::conversation::transcript::Message;
use duologue::engine::echo::Echo;
use duologue::engine::{CallEnd, CallSpec, Engine, EngineEvent, Engines, Running, Sink};
use duologue::host::{HostSettings, memory::Conversation};
use duologue::protocol::any::Any;
use duologue::protocol::wire::Body;
use std::error::Error;
use std::io::{self, Write};

const PROMPTS: [&str; 2] = ["What is a duologue?", "And what is it good for?"];

/// Counts words: in the place of a model that runs in this program, or of a provider that it knows.
#[derive(Clone, Debug)]
pub(crate) struct WordCount;

impl Engine for WordCount {
    fn name(&self) -> &str {
        "word-count"
    }

    fn model(&self) -> &str {
        "one"
    }

    fn start(&self, spec: CallSpec, sink: Sink) -> Running {
        Box::pin(answer(spec, sink))
    }
}

/// Answers with the number of words of each prompt so far.
async fn answer(spec: CallSpec, sink: Sink) -> CallEnd {
    sink.send(EngineEvent::CallStarted).await;
    for message in spec.transcript.messages() {
        if let Message::User { text, .. } = message {
            let words = text.split_whitespace().count();
            sink.send(EngineEvent::Text(format!("{words} words. "))).await;
        }
    }
    let (stop_reason, class) = ("stop".to_owned(), FinishClass::Completed);
    sink.send(EngineEvent::CallFinished { stop_reason, class, provider_data: None }).await;
    CallEnd::Finished
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    converse(Echo::default(), &mut io::stdout()).await?;
    converse(WordCount, &mut io::stdout()).await
}

/// Asks every prompt and writes the answers as they come.
pub(crate) async fn converse(
    engine: impl Into<Engines>,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let mut conversation = Conversation::start(HostSettings::new(engine));
    for prompt in PROMPTS {
        writeln!(out, "you: {prompt}")?;
        let request = conversation.submit(prompt)?;
        write!(out, "it: ")?;
        while let Some(frame) = conversation.next_frame().await {
            match frame.frame {
                Some(Body::UiEvent(event)) => {
                    if let Some(Any::ChatTextPatch(patch)) = event.payload {
                        write!(out, "{}", patch.text)?;
                    }
                }
                Some(Body::Error(error)) => return Err(error.message.into()),
                // The last frame of a request.
                Some(Body::Done(_)) if frame.request_id == request.as_str() => break,
                Some(
                    Body::Hello(_) | Body::Snapshot(_) | Body::BackendEvent(_) | Body::Done(_),
                )
                | None => {}
            }
        }
        writeln!(out)?;
    }
    Ok(())
}
