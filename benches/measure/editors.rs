//! What the front end for editors costs, against the same conversation over `rpc`.

use crate::child::{Child, Program, submit};
use crate::table::{Aim, Unit, least, median, quantile, row};
use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

const STARTS: usize = 200;
const TURNS: usize = 200;

/// Deltas of a long answer, and how often it is measured.
const DELTAS: usize = 20_000;
const ROUNDS: usize = 15;

/// Sessions of one process that all stream, and the words of each answer.
const SESSIONS: usize = 100;
const WORDS: usize = 200;

const ACP: &[&str] = &["acp", "--engine", "echo", "--no-store"];
const RPC: &[&str] = &["rpc", "--engine", "echo", "--final-snapshot", "none"];

const INITIALIZE: &str =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n";

pub(crate) fn measure() -> io::Result<()> {
    let (mut acp, mut rpc) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        acp.push(seconds(|| initialized(ACP))? * 1e3);
        rpc.push(seconds(|| Child::greeted(Program::Duologue, RPC))? * 1e3);
    }
    let (acp, rpc) = (median(&acp), median(&rpc));
    row(
        "acp: start to the answer to initialize, against rpc's hello",
        Unit::Millis,
        acp,
        Some(rpc),
        Aim::Ratio(1.5),
    );

    let (mut editor, session) = open(ACP)?;
    let mut client = Child::greeted(Program::Duologue, RPC)?;
    let (mut acp, mut rpc) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        acp.push(first_chunk(&mut editor, &prompt(&session, "hi"), "_chunk", "stopReason")?);
        rpc.push(first_chunk(&mut client, &submit("hi"), "ChatTextPatch", "\"done\":")?);
    }
    let (acp, rpc) = (median(&acp), median(&rpc));
    row(
        "acp: prompt to first chunk, against rpc's patch",
        Unit::Micros,
        acp,
        Some(rpc),
        Aim::Ratio(1.2),
    );

    let (mut acp, mut rpc) = (Vec::new(), Vec::new());
    let words = "model ".repeat(DELTAS);
    for _ in 0..ROUNDS {
        let (mut editor, session) = open(ACP)?;
        acp.push(per_delta(&mut editor, &prompt(&session, &words), "stopReason")?);
        let mut client = Child::greeted(Program::Duologue, RPC)?;
        rpc.push(per_delta(&mut client, &submit(&words), "\"done\":")?);
    }
    let what = format!("acp: per delta of {DELTAS}, against rpc");
    row(&what, Unit::Micros, least(&acp), Some(least(&rpc)), Aim::Ratio(1.2));
    shares("at full speed", ACP)?;
    shares("at a 5 ms pace", &[ACP, &["--echo-delay-ms", "5"]].concat())
}

/// How far the other sessions are when the first one has its whole answer.
fn shares(pace: &str, args: &[&str]) -> io::Result<()> {
    let (mut child, first) = open(args)?;
    let mut sessions = vec![first];
    while sessions.len() < SESSIONS {
        sessions.push(session(&mut child)?);
    }
    let words = "model ".repeat(WORDS);
    let prompts: String = sessions.iter().map(|session| prompt(session, &words)).collect();
    child.send(&prompts)?;
    let mut taken: BTreeMap<&str, usize> = sessions.iter().map(|id| (id.as_str(), 0)).collect();
    loop {
        let line = child.line()?;
        if line.contains("stopReason") {
            break;
        }
        if line.contains("agent_message_chunk")
            && let Some(taken) = session_in(line).and_then(|id| taken.get_mut(id))
        {
            *taken += line.matches("model").count();
        }
    }
    let taken: Vec<_> = taken.values().map(|&words| words as f64).collect();
    for (name, part) in [("fewest", 0.0), ("median", 0.5)] {
        let what =
            format!("acp: words of {SESSIONS} sessions when the first has {WORDS} {pace}, {name}");
        row(&what, Unit::Count, quantile(&taken, part), Some(WORDS as f64), Aim::None);
    }
    Ok(())
}

/// How long `work` takes; what it gives is dropped after that.
fn seconds<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<f64> {
    let start = Instant::now();
    let done = work()?;
    let time = start.elapsed();
    drop(done);
    Ok(time.as_secs_f64())
}

fn initialized(args: &[&str]) -> io::Result<Child> {
    let mut child = Child::start(Program::Duologue, args)?;
    child.send(INITIALIZE)?;
    child.line()?;
    Ok(child)
}

/// An editor with a session that has answered once, and the id of that.
fn open(args: &[&str]) -> io::Result<(Child, String)> {
    let mut child = initialized(args)?;
    let session = session(&mut child)?;
    child.send(&prompt(&session, "hi"))?;
    child.line_with("stopReason")?;
    Ok((child, session))
}

/// The id of a new session.
fn session(child: &mut Child) -> io::Result<String> {
    child.send(
        "{\"id\":2,\"method\":\"session/new\",\"params\":{\"cwd\":\"/\",\"mcpServers\":[]}}\n",
    )?;
    loop {
        let line = child.line()?;
        if line.contains("\"result\"") {
            return session_in(line).map(str::to_owned).ok_or(io::ErrorKind::InvalidData.into());
        }
    }
}

/// The session that a line is about.
fn session_in(line: &str) -> Option<&str> {
    line.split("\"sessionId\":\"").nth(1)?.split('"').next()
}

fn prompt(session: &str, text: &str) -> String {
    format!(
        "{{\"id\":3,\"method\":\"session/prompt\",\"params\":{{\"sessionId\":\"{session}\",\"prompt\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
    )
}

/// Microseconds to the first line with `chunk`; reads on to `end`.
fn first_chunk(child: &mut Child, prompt: &str, chunk: &str, end: &str) -> io::Result<f64> {
    let start = Instant::now();
    child.send(prompt)?;
    child.line_with(chunk)?;
    let micros = start.elapsed().as_secs_f64() * 1e6;
    child.line_with(end)?;
    Ok(micros)
}

fn per_delta(child: &mut Child, prompt: &str, end: &str) -> io::Result<f64> {
    let start = Instant::now();
    child.send(prompt)?;
    child.line_with(end)?;
    Ok(start.elapsed().as_secs_f64() * 1e6 / DELTAS as f64)
}
