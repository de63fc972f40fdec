//! Measures how long 1,000 deltas take, against reading and parsing the same lines alone.
//!
//! `cargo run --release --example client_bench`

use duologue::client::{Any, Duologue};
use serde_json::Value;
use std::error::Error;
use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/difficult_server.py");
const BURST: (&str, &str) = ("DIFFICULT", "burst:1000");
const RUNS: usize = 30;

/// Bytes that are read at once, as by the client.
const READ_BYTES: usize = 256 * 1024;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (alone, client) = (alone()?, client().await?);
    let ratio = client.as_secs_f64() / alone.as_secs_f64();
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let mut out = io::stdout();
    writeln!(out, "reading and parsing alone: {:.2} ms", ms(alone))?;
    writeln!(out, "client: {:.2} ms, {ratio:.2} times as long", ms(client))?;
    Ok(())
}

/// The least of all runs: what else the machine does only adds to a time.
fn alone() -> Result<Duration, Box<dyn Error>> {
    let mut command = Command::new(SERVER);
    command.env(BURST.0, BURST.1).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.spawn()?;
    let (stdin, stdout) = (server.stdin.take(), server.stdout.take());
    let (mut stdin, stdout) = (stdin.ok_or("no pipe")?, stdout.ok_or("no pipe")?);
    let mut lines = BufReader::with_capacity(READ_BYTES, stdout);
    let mut line = Vec::new();
    lines.read_until(b'\n', &mut line)?;
    let mut least = Duration::MAX;
    for run in 0..RUNS {
        writeln!(stdin, r#"{{"requestId":"r{run}","submit":{{"prompt":"x"}}}}"#)?;
        line.clear();
        lines.read_until(b'\n', &mut line)?;
        let begin = Instant::now();
        while serde_json::from_slice::<Value>(&line)?.get("done").is_none() {
            line.clear();
            lines.read_until(b'\n', &mut line)?;
        }
        least = least.min(begin.elapsed());
    }
    drop(stdin);
    server.wait()?;
    Ok(least)
}

async fn client() -> Result<Duration, Box<dyn Error>> {
    let chat = Duologue::builder().binary(SERVER).env(BURST.0, BURST.1).start().await?;
    let mut least = Duration::MAX;
    for _ in 0..RUNS {
        let mut events = chat.stream("x");
        let mut begin: Option<Instant> = None;
        while let Some(event) = events.next().await {
            begin.get_or_insert_with(Instant::now);
            if let Some(Any::ChatTextPatch(patch)) = event?.payload {
                black_box(patch.text);
            }
        }
        least = begin.map_or(least, |begin| least.min(begin.elapsed()));
    }
    chat.close().await;
    Ok(least)
}
