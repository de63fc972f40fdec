//! What the tool loop adds to a conversation, through the in-memory front end: rounds with a tool
//! that answers at once, many calls in one answer, and a large result. The built-in engine plays a
//! script, so neither a provider nor a tool takes any time.

use crate::table::{Aim, Unit, least, row};
use duologue::engine::echo::Echo;
use duologue::host::HostSettings;
use duologue::host::memory::Conversation;
use duologue::protocol::any::{Any, Kind, Struct, Value};
use duologue::protocol::command::{
    ClientTool, ClientToolResult, Command, ReturnedObject, ToolManifest,
};
use duologue::protocol::id::ToolCallId;
use duologue::protocol::proto::rpc::rpc_line::Frame as Body;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Builder;

/// Rounds of the run that is measured, and of the one that it is compared with.
const ROUNDS: usize = 40;

/// Calls of one answer.
const CALLS: usize = 100;

/// Bytes of a large result.
const RESULT_BYTES: usize = 100 * 1024 * 1024;

/// Runs of which the least counts.
const RUNS: usize = 15;

pub(crate) fn measure() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let time = |rounds: usize, calls: usize, bytes: usize| -> io::Result<f64> {
        let script = script(rounds, calls)?;
        let runs = if bytes > 1024 * 1024 { 3 } else { RUNS };
        let times: io::Result<Vec<f64>> =
            (0..runs).map(|_| runtime.block_on(run(&script, calls, bytes))).collect();
        Ok(least(&times?))
    };
    let (none, all) = (time(0, 1, 8)?, time(ROUNDS, 1, 8)?);
    let each = (all - none) / ROUNDS as f64;
    row("a round with an instant tool", Unit::Millis, each, None, Aim::Value(1.0));
    let many = time(1, CALLS, 8)? - none;
    let what = format!("a round of {CALLS} parallel calls");
    row(&what, Unit::Millis, many, None, Aim::None);
    let large = time(1, 1, RESULT_BYTES)? - none;
    row("a result of 100 MiB, which is cut", Unit::Millis, large, None, Aim::None);
    Ok(())
}

/// A script of so many answers that each call the tool so often.
fn script(rounds: usize, calls: usize) -> io::Result<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tools-{rounds}-{calls}"));
    let call = r#"{"name":"tool","arguments":{"a":1}}"#;
    let line = format!("{{\"tools\":[{}]}}\n", vec![call; calls].join(","));
    std::fs::write(&path, line.repeat(rounds))?;
    Ok(path)
}

/// Milliseconds of a run in which each call is answered at once with so many bytes.
async fn run(script: &Path, calls: usize, bytes: usize) -> io::Result<f64> {
    let echo = Echo { script: Some(script.to_owned()), ..Echo::default() };
    let mut settings = HostSettings::new(echo);
    settings.rules.tools.calls_per_round_max = calls;
    let mut conversation = Conversation::start(settings);
    let result = ReturnedObject::try_from(result(bytes))?;
    let tool = ClientTool {
        name: "tool".to_owned(),
        description: String::new(),
        input_schema: Arc::default(),
        is_human: false,
    };
    let manifest = ToolManifest { tools: vec![tool], ..ToolManifest::default() };
    conversation.request(Command::DeclareTools(manifest)).map_err(io::Error::other)?;
    let begin = Instant::now();
    conversation.submit("go").map_err(io::Error::other)?;
    conversation.shutdown().map_err(io::Error::other)?;
    while let Some(frame) = conversation.next_frame().await {
        let Some(Body::UiEvent(event)) = frame.frame else { continue };
        if let Some(Any::FrontendToolCallRequested(asked)) = event.payload {
            let call = ToolCallId(asked.tool_call_id);
            let result = Some(result.clone());
            let answer = ClientToolResult { call, tool_name: None, result, error: None };
            conversation.request(Command::ToolResult(answer)).map_err(io::Error::other)?;
        }
    }
    Ok(begin.elapsed().as_secs_f64() * 1000.0)
}

fn result(bytes: usize) -> Struct {
    let text = Value { kind: Some(Kind::String("x".repeat(bytes))) };
    Struct { fields: Box::new([("text".to_owned(), text)].into()) }
}
