//! Decoding a submit with a long prompt, against `serde_json` with a struct written by hand, which
//! checks nothing else. Nothing else runs.

use crate::table::{Aim, Unit, least, row};
use duologue::protocol::command::Command;
use duologue::protocol::id::RequestId;
use duologue::protocol::wire::decode;
use serde::Deserialize;
use std::hint::black_box;
use std::io;
use std::time::Instant;

/// Bytes of the prompt, decoded: the default limit on a line, with room for the rest of it.
const PROMPT_BYTES: usize = 10 * 1024 * 1024 - 1024;

const ROUNDS: usize = 15;

/// Prompts without an escape, and as source code is: a line end every 40 bytes.
const TEXTS: [(&str, &str); 2] =
    [("without escapes", "model "), ("of lines", "a line of a file that is in the prompt.\n")];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    request_id: String,
    submit: Submit,
}

#[derive(Deserialize)]
struct Submit {
    prompt: String,
}

pub(crate) fn measure() -> io::Result<()> {
    for (name, text) in TEXTS {
        let prompt = text.repeat(PROMPT_BYTES / text.len());
        let prompt = serde_json::to_string(&prompt)?;
        let line = format!("{{\"requestId\":\"request-1\",\"submit\":{{\"prompt\":{prompt}}}}}");
        compare(name, &line)?;
    }
    Ok(())
}

fn compare(name: &str, line: &str) -> io::Result<()> {
    let (mut ours, mut by_hand) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(millis(|| prompt_bytes(line))?);
        by_hand.push(millis(|| by_hand_bytes(line))?);
    }
    let [ours, by_hand] = [&ours, &by_hand].map(|times| least(times));
    let what = format!("decode a submit of 10 MiB {name}, against serde_json");
    row(&what, Unit::Millis, ours, Some(by_hand), Aim::None);
    Ok(())
}

fn prompt_bytes(line: &str) -> io::Result<usize> {
    let id = RequestId::new("fresh").ok_or_else(|| io::Error::other("a blank id"))?;
    match decode(line.as_bytes(), || id) {
        Ok(request) => match request.command {
            Command::Submit(submit) => Ok(submit.prompt.len_bytes()),
            Command::Cancel(_)
            | Command::Snapshot(_)
            | Command::Shutdown
            | Command::Enable(_)
            | Command::DeclareTools(_)
            | Command::ToolResult(_)
            | Command::Approve(_)
            | Command::SwitchModel(_)
            | Command::Edit(_)
            | Command::Compact(_)
            | Command::Rename(_)
            | Command::NoteApproval(_) => Ok(0),
        },
        Err(bad) => Err(io::Error::other(format!("{:?}", bad.fault))),
    }
}

fn by_hand_bytes(line: &str) -> io::Result<usize> {
    let request: Request = serde_json::from_slice(line.as_bytes())?;
    Ok(black_box(request.request_id).len() + black_box(request.submit.prompt).len())
}

fn millis(work: impl Fn() -> io::Result<usize>) -> io::Result<f64> {
    let start = Instant::now();
    black_box(work()?);
    Ok(start.elapsed().as_secs_f64() * 1000.0)
}
