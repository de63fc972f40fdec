//! Holds a conversation inside this program: no process, no pipes.
//!
//! `cargo run --example embed`

use duologue::engine::{Engine, echo::Echo};
use duologue::host::{HostSettings, memory::Conversation};
use duologue::protocol::any::Any;
use duologue::protocol::proto::rpc::rpc_line::Frame;
use std::error::Error;
use std::io::{self, Write};

const PROMPTS: [&str; 2] = ["What is a duologue?", "And what is it good for?"];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    converse(&mut io::stdout()).await
}

/// Asks every prompt and writes the answers as they come.
pub(crate) async fn converse(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut conversation = Conversation::start(HostSettings::new(Engine::Echo(Echo::default())));
    for prompt in PROMPTS {
        writeln!(out, "you: {prompt}")?;
        let request = conversation.submit(prompt)?;
        write!(out, "it: ")?;
        while let Some(line) = conversation.next_frame().await {
            match line.frame {
                Some(Frame::UiEvent(event)) => {
                    if let Some(Any::ChatTextPatch(patch)) = event.payload {
                        write!(out, "{}", patch.text)?;
                    }
                }
                Some(Frame::Error(error)) => return Err(error.message.into()),
                // The last frame of a request.
                Some(Frame::Done(_)) if line.request_id == request.as_str() => break,
                Some(
                    Frame::Hello(_) | Frame::Snapshot(_) | Frame::BackendEvent(_) | Frame::Done(_),
                )
                | None => {}
            }
        }
        writeln!(out)?;
    }
    Ok(())
}
