//! The client library of this crate: with the program itself, and with a server that makes it difficult.
//!
//! The rules of `clients/README.md` have tests that are called by the words of its table.

mod conversation;
mod difficult;
mod ends;
mod tools;

use crate::process::{DEADLINE, Process, eventually};
use duologue::client::{Answer, Any, Builder, Duologue, Entity, Error, Stream};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

#[path = "../../examples/client.rs"]
#[expect(dead_code, reason = "its `main` is not called")]
mod client;

const BINARY: &str = env!("CARGO_BIN_EXE_duologue");
const DIFFICULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/difficult_server.py");
const WITHOUT_PROVIDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/without_provider");
const CHECK_README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/check_readme.py");

fn real() -> Builder {
    Duologue::builder().binary(BINARY).engine("echo")
}

/// A run of it goes on until it is stopped.
fn endless() -> Builder {
    real().args(["--echo-delay-ms=60000"])
}

fn difficult(how: &str) -> Builder {
    Duologue::builder().binary(DIFFICULT).env("DIFFICULT", how)
}

/// Its provider can't be reached.
fn unreachable() -> Builder {
    let builder = Duologue::builder().binary(BINARY).engine("openai").model("m");
    builder.args(["--base-url=http://127.0.0.1:9", "--retries=0"])
}

async fn start(builder: Builder) -> Duologue {
    builder.start().await.expect("a process")
}

async fn run(chat: &Duologue, prompt: &str) -> Answer {
    chat.run(prompt).await.expect("an answer")
}

/// Reads events up to the first of this name.
async fn read_to(stream: &mut Stream, name: &str) {
    while let Some(event) = stream.next().await {
        if event.expect("an event").name == name {
            return;
        }
    }
    panic!("there is no {name}")
}

/// The texts and the error of what is left of a stream.
async fn rest(stream: &mut Stream) -> (Vec<String>, Option<Error>) {
    let mut texts = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                if let Some(Any::ChatTextPatch(patch)) = event.payload {
                    texts.push(patch.text);
                }
            }
            Err(error) => return (texts, Some(error)),
        }
    }
    (texts, None)
}

async fn texts_and_statuses(chat: &Duologue) -> Vec<(String, String)> {
    let of = |entity: Entity| match entity.payload {
        Some(Any::ChatMessageEntity(message)) => (message.text, message.status),
        other => panic!("{other:?}"),
    };
    chat.history().await.expect("a history").into_iter().map(of).collect()
}

/// Lets the client work until there is something to see.
async fn until(mut is_there: impl FnMut() -> bool) {
    let looks = async {
        while !is_there() {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, looks).await.expect("there is something to see");
}

async fn wait_until_gone(process: u32) {
    let is_gone = move || Process(process).command_line().is_empty().then_some(());
    let wait = move || eventually("the process has ended", is_gone);
    spawn_blocking(wait).await.expect("it ends");
}

fn process_of(chat: &Duologue) -> u32 {
    chat.process_id().expect("a process")
}

fn kill(process: u32) {
    Process(process).send(rustix::process::Signal::KILL);
}

/// The built-in engine plays these calls of a model.
fn played(name: &str, calls: &[Value]) -> (Builder, Scratch) {
    let scratch = Scratch::new(name);
    let path = scratch.0.join("calls.jsonl");
    let mut file = std::fs::File::create(&path).expect("a file");
    for call in calls {
        writeln!(file, "{call}").expect("room");
    }
    (real().args([format!("--echo-script={}", path.display())]), scratch)
}

fn calls_of(names: &[&str]) -> Vec<Value> {
    let tools: Vec<_> =
        names.iter().map(|name| json!({"name": name, "arguments": {"city": "Berlin"}})).collect();
    vec![json!({"text": "Let me look.", "tools": tools}), json!({"text": "It is noon."})]
}

/// A folder that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("duologue-client-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// A conversation that is stored here.
    fn stored(&self) -> Builder {
        real().store(self.0.join("chat.db")).session("ada")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn each_rule_has_its_test_in_each_language() {
    needs!(Python);
    let output = Command::new("python3").arg(CHECK_README).output().expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn the_example_prints_both_answers() {
    let mut out = Vec::new();
    client::converse(start(real()).await, &mut out).await.expect("two answers");
    let out = String::from_utf8(out).expect("text");
    assert!(
        out.starts_with("Turn 1. You said: What is a duologue?\nTurn 2. You said: Explain it"),
        "{out}"
    );
}
