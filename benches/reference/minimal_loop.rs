//! The protocol in as few lines as it takes: one blocking loop, structs written by hand, one write
//! per frame. No cancel, no bounds, no errors: what the server costs beyond this is the price of
//! those.
//!
//! A request without a submit is one for a snapshot. `minimal_loop [DELAY_MS]` answers as the echo engine does. `minimal_loop --provider HOST:PORT`
//! passes on the answer of a provider with OpenAI's chat completions.

mod frames;

use frames::{SESSION, patch_line, snapshot_line};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, StdoutLock, Write};
use std::net::TcpStream;
use std::time::Duration;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    request_id: String,
    submit: Option<Submit>,
}

#[derive(Deserialize)]
struct Submit {
    prompt: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HelloLine<'a> {
    version: u32,
    session_id: &'a str,
    hello: Hello<'a>,
}

#[derive(Serialize)]
struct Hello<'a> {
    protocol: &'a str,
    server: &'a str,
    capabilities: [&'a str; 3],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DoneLine<'a> {
    version: u32,
    session_id: &'a str,
    request_id: &'a str,
    done: Done<'a>,
}

#[derive(Serialize)]
struct Done<'a> {
    status: &'a str,
}

/// A chunk of the provider's answer.
#[derive(Deserialize)]
struct Chunk {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Delta,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
}

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (first, second) = (args.next(), args.next());
    let delay_ms = first.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut output = Output { stdout: io::stdout().lock(), line: Vec::new() };
    output.hello()?;
    let mut before = None;
    for (turn, line) in (1..).zip(io::stdin().lock().lines()) {
        let Request { request_id, submit } = serde_json::from_str(&line?)?;
        let mut answer = Answer::new(&request_id, &mut output);
        let Some(Submit { prompt }) = submit else {
            answer.finish()?;
            continue;
        };
        match &second {
            Some(provider) => pass_on(provider, &mut answer)?,
            None => echo(
                turn,
                &prompt,
                before.as_deref(),
                Duration::from_millis(delay_ms),
                &mut answer,
            )?,
        }
        answer.finish()?;
        before = Some(prompt);
    }
    Ok(())
}

fn echo(
    turn: u32,
    prompt: &str,
    before: Option<&str>,
    delay: Duration,
    answer: &mut Answer<'_>,
) -> io::Result<()> {
    let mut reply = format!("Turn {turn}. You said: {prompt}");
    if let Some(before) = before {
        reply += "\nBefore that you said: ";
        reply += before;
    }
    for text in reply.split_inclusive(char::is_whitespace) {
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
        answer.delta(text)?;
    }
    Ok(())
}

fn pass_on(provider: &str, answer: &mut Answer<'_>) -> io::Result<()> {
    let mut connection = TcpStream::connect(provider)?;
    connection.write_all(
        b"POST /paced/v1/chat/completions HTTP/1.1\r\nhost: provider\r\ncontent-length: 2\r\n\r\n{}",
    )?;
    // The sizes between the chunks are lines that do not begin with `data: `.
    for line in BufReader::new(connection).lines() {
        let line = line?;
        match line.strip_prefix("data: ") {
            Some("[DONE]") => break,
            Some(json) => {
                let Chunk { choices } = serde_json::from_str(json)?;
                for text in choices.into_iter().filter_map(|choice| choice.delta.content) {
                    answer.delta(&text)?;
                }
            }
            None => {}
        }
    }
    Ok(())
}

struct Output {
    stdout: StdoutLock<'static>,
    line: Vec<u8>,
}

impl Output {
    fn hello(&mut self) -> io::Result<()> {
        let hello = Hello {
            protocol: "pinocchio.chatapp.rpc.v1",
            server: "minimal",
            capabilities: ["ui-events", "snapshot", "done"],
        };
        self.write(&HelloLine { version: 1, session_id: SESSION, hello })
    }

    fn write(&mut self, frame: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, frame)?;
        self.line.push(b'\n');
        self.stdout.write_all(&self.line)?;
        self.stdout.flush()
    }
}

struct Answer<'a> {
    request_id: &'a str,
    output: &'a mut Output,
    deltas: u64,
    text: String,
}

impl<'a> Answer<'a> {
    fn new(request_id: &'a str, output: &'a mut Output) -> Self {
        Self { request_id, output, deltas: 0, text: String::new() }
    }

    fn delta(&mut self, text: &str) -> io::Result<()> {
        self.deltas += 1;
        let place = (self.deltas, self.deltas, self.text.len() as u64);
        self.output.write(&patch_line(self.request_id, place, text))?;
        self.text += text;
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
        let Self { request_id, output, text, .. } = self;
        output.write(&snapshot_line(request_id, 1, &text))?;
        let done = Done { status: "ok" };
        output.write(&DoneLine { version: 1, session_id: SESSION, request_id, done })
    }
}
