//! Holds a conversation in a process of its own, which answers with the built-in engine unless a provider is configured.
//!
//! `DUOLOGUE_BIN=target/debug/duologue cargo run --example client`

use duologue::client::{Any, Duologue};
use std::error::Error;
use std::io::{self, Write};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    converse(Duologue::start().await?, &mut io::stdout()).await
}

/// Asks twice: for the whole answer, and for its text as it comes.
pub(crate) async fn converse(chat: Duologue, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    writeln!(out, "{}", chat.run("What is a duologue?").await?.text)?;
    let mut events = chat.stream("Explain it to a child.");
    while let Some(event) = events.next().await {
        if let Some(Any::ChatTextPatch(patch)) = event?.payload {
            write!(out, "{}", patch.text)?;
            out.flush()?;
        }
    }
    writeln!(out)?;
    chat.close().await;
    Ok(())
}
