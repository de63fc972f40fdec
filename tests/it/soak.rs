//! Soak: very many turns with tools, cancels, edits and compactions in one process with a store. The last turns cost
//! what the first ones did, and leave as much behind.
//!
//! `DUOLOGUE_SOAK_TURNS` is the number of turns, and `DUOLOGUE` another program to soak, as an optimized one:
//! `DUOLOGUE_SOAK_TURNS=1000000 DUOLOGUE=target/release/duologue cargo test --test it soak -- --ignored --nocapture`.

mod links;

use crate::long::Chance;
use crate::process::{Process, eventually};
use crate::server::{Folder, Launch, report};
use links::{Link, Piped};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Turns in the form that takes less than a minute.
const TURNS: u64 = 1_000;

/// Stretches of turns that are compared.
const TENTHS: u64 = 10;

/// How much more the last stretch may cost than the first one.
const FLAT: f64 = 1.25;

/// What a turn may leave in memory: it is kept, for the model and for snapshots.
const TURN_BYTES_MAX: f64 = 16.0 * 1024.0;

/// What a node keeps of the frames of a conversation, for clients that come back.
const FRAMES_BYTES_MAX: f64 = 1024.0 * 1024.0;

/// Memory and pages of the store that come and go.
const SLACK_BYTES: f64 = 8.0 * 1024.0 * 1024.0;

/// Turns between two compactions.
const COMPACTED_AFTER: u64 = 20;

/// Each run calls this tool of the client.
const SCRIPT: &str = concat!(
    r#"{"reasoning":"I need the time.","text":"Let me look.","tools":[{"name":"get_time","arguments":{"city":"Lima"}}]}"#,
    "\n",
    r#"{"text":"It is noon in Lima, as far as I was told."}"#,
    "\n"
);

#[test]
#[ignore = "takes minutes"]
fn the_turns_of_one_conversation_cost_the_same_in_the_end() {
    one_conversation("turn");
}

#[test]
#[ignore = "takes minutes"]
fn turns_without_snapshots_cost_the_same_in_the_end() {
    one_conversation("none");
}

/// With this mode of the final snapshots.
fn one_conversation(mode: &str) {
    let place = Place::new();
    let args = ["rpc", "--session-id", "s", "--final-snapshot", mode];
    let link = Piped::start(place.launch(&args));
    let process = link.server().process();
    let mut soak = Soak::new(link, 1);
    soak.run(&format!("one conversation, --final-snapshot {mode}"), process, &place);
    soak.link.end();
}

/// Conversations of one process, and in the short form.
#[cfg(feature = "serve")]
const CONVERSATIONS: u64 = 1_000;
#[cfg(feature = "serve")]
const FEW_CONVERSATIONS: u64 = 100;

#[cfg(feature = "serve")]
#[test]
#[ignore = "takes minutes"]
fn the_turns_of_many_conversations_cost_the_same_in_the_end() {
    use crate::serve_node::{LISTEN, Node};
    let place = Place::new();
    let launch = place.launch(&[&["serve", "--final-snapshot", "none"], LISTEN].concat());
    let mut node = Node::launch(launch);
    let conversations = wanted().map_or(FEW_CONVERSATIONS, |_| CONVERSATIONS);
    let mut soak = Soak::new(links::Posted::new(&node.address), conversations);
    soak.run(&format!("{conversations} conversations"), node.server.process(), &place);
    assert_eq!(node.info().conversations, conversations);
    node.server.signal(rustix::process::Signal::TERM);
    node.server.wait_end();
}

/// The turns that somebody wants.
fn wanted() -> Option<u64> {
    std::env::var("DUOLOGUE_SOAK_TURNS").ok()?.parse().ok()
}

/// The files of a process under test.
struct Place {
    folder: Folder,
}

impl Place {
    fn new() -> Self {
        let folder = Folder::new();
        fs::write(folder.path("script"), SCRIPT).expect("a file");
        Self { folder }
    }

    fn launch(&self, args: &[&str]) -> Launch {
        let program = std::env::var_os("DUOLOGUE")
            .map_or_else(|| env!("CARGO_BIN_EXE_duologue").into(), PathBuf::from);
        let (script, store) = (self.folder.name("script"), self.folder.name("store"));
        let mut command = Command::new(program);
        command.args(args).args(["--engine", "echo", "--echo-script", &script, "--store", &store]);
        Launch::of(command)
    }

    fn store(&self) -> PathBuf {
        self.folder.path("store")
    }
}

/// What a process has used so far, and holds.
struct Sample {
    turns: u64,
    cpu: Duration,
    memory_bytes: f64,
    stored_bytes: f64,
    files: usize,
    threads: usize,
}

impl Sample {
    fn new(turns: u64, process: Process, store: &Path) -> Self {
        // The threads that load sessions end when there is nothing to load.
        let threads = eventually("no session is loaded", || {
            let names = process.thread_names();
            (!names.iter().any(|name| name == "store-loader")).then_some(names.len())
        });
        Self {
            turns,
            cpu: process.cpu_time(),
            memory_bytes: process.memory_bytes() as f64,
            stored_bytes: fs::metadata(store).map_or(0, |about| about.len()) as f64,
            files: process.files().len(),
            threads,
        }
    }
}

/// Has turns made in conversations, one after the other.
struct Soak<L> {
    link: L,
    conversations: u64,
    chance: Chance,
    /// Requests so far, for their ids.
    requests: u64,
    /// The next call of a tool is not answered, but its run cancelled.
    cancels: bool,
    /// Requests by their ends.
    ok: u64,
    stopped: u64,
    /// Compactions, without which a turn costs more the more were before it.
    compacted: u64,
}

impl<L: Link> Soak<L> {
    fn new(link: L, conversations: u64) -> Self {
        let chance = Chance(25);
        Self {
            link,
            conversations,
            chance,
            requests: 0,
            cancels: false,
            ok: 0,
            stopped: 0,
            compacted: 0,
        }
    }

    fn run(&mut self, what: &str, process: Process, place: &Place) {
        let turns = wanted().unwrap_or(TURNS).max(TENTHS * self.conversations);
        let declare = r#""declareTools":{"tools":[{"name":"get_time"}],"revision":1}"#;
        for conversation in 0..self.conversations {
            self.ask(conversation, &[declare]);
            // What is made once is there.
            self.ask(conversation, &[SUBMIT]);
        }
        let mut samples = vec![Sample::new(0, process, &place.store())];
        for turn in 1..=turns {
            self.turn(turn);
            if turn % (turns / TENTHS) == 0 {
                samples.push(Sample::new(turn, process, &place.store()));
            }
        }
        report(&format!("{what}: {turns} turns, {} requests\n", self.requests));
        check(&samples, self.conversations);
        assert!(self.ok > turns && self.stopped > turns / 20, "{} {}", self.ok, self.stopped);
        // In the short form no conversation has turns enough to be compacted.
        let due = turns / self.conversations / COMPACTED_AFTER * self.conversations;
        assert!(self.compacted >= due / 2, "{} of {due} compactions", self.compacted);
    }

    /// A turn, and perhaps what is done about it.
    fn turn(&mut self, turn: u64) {
        let conversation = turn % self.conversations;
        match self.chance.below(16) {
            0 => self.ask(conversation, &[SUBMIT, CANCEL]),
            1 => {
                self.cancels = true;
                self.ask(conversation, &[SUBMIT]);
                self.cancels = false;
            }
            2 => {
                self.ask(conversation, &[SUBMIT]);
                self.ask(conversation, &[r#""edit":{"dropLastTurn":{}}"#]);
            }
            3 => {
                self.ask(conversation, &[SUBMIT]);
                self.ask(conversation, &[r#""edit":{"regenerate":{}}"#]);
            }
            _ => self.ask(conversation, &[SUBMIT]),
        }
        if (turn / self.conversations).is_multiple_of(COMPACTED_AFTER) {
            self.ask(conversation, &[r#""compact":{"keepTurns":2}"#]);
        }
    }

    /// Sends requests, and reads on until each has its `done`. Calls of tools are answered meanwhile.
    fn ask(&mut self, conversation: u64, members: &[&str]) {
        let lines: String = members.iter().map(|member| self.request(member)).collect();
        self.link.send(conversation, &lines);
        let mut open = members.len();
        while open > 0 {
            let line = self.link.line();
            if line.contains(r#""done":{"#) {
                open -= 1;
                self.ok += u64::from(line.contains(r#""status":"ok""#));
                self.stopped += u64::from(line.contains(r#""status":"stopped""#));
            } else if line.contains(r#""name":"Compacted""#) {
                self.compacted += 1;
            } else if line.contains(r#""name":"FrontendToolCallRequested""#) {
                let answer = if self.cancels { CANCEL.to_owned() } else { result_of(&line) };
                let answer = self.request(&answer);
                open += self.link.answer(conversation, &answer);
            }
        }
        self.link.settle();
    }

    fn request(&mut self, member: &str) -> String {
        self.requests += 1;
        format!("{{\"requestId\":\"r{}\",{member}}}\n", self.requests)
    }
}

const SUBMIT: &str = r#""submit":{"prompt":"What time is it in Lima?"}"#;

const CANCEL: &str = r#""cancel":{}"#;

/// The result of the tool call of this frame.
fn result_of(line: &str) -> String {
    let frame = crate::frames::Frame::parse(line.as_bytes());
    let result =
        json!({ "toolCallId": frame.payload("toolCallId"), "result": { "time": "12:00" } });
    format!("\"toolResult\":{result}")
}

/// Checks that the last stretch cost what the first one did, and prints what was measured.
fn check(samples: &[Sample], conversations: u64) {
    let mut costs = Vec::new();
    for pair in samples.windows(2) {
        let [before, after] = pair else { unreachable!("two of them") };
        let turns = (after.turns - before.turns) as f64;
        let micros = (after.cpu - before.cpu).as_secs_f64() * 1e6 / turns;
        let grown = (after.memory_bytes - before.memory_bytes) / turns;
        let stored = (after.stored_bytes - before.stored_bytes) / turns;
        let Sample { turns, files, threads, memory_bytes, stored_bytes, .. } = after;
        let (memory, file) = (memory_bytes / 1048576.0, stored_bytes / 1048576.0);
        report(&format!(
            "  {turns:>8} turns: {micros:6.0} us and {grown:6.0} bytes of memory a turn, {stored:6.0} bytes of file; \
             {memory:7.1} MB, file {file:7.1} MB, {files} descriptors, {threads} threads\n"
        ));
        costs.push(micros);
    }
    // Of few turns it says nothing.
    if wanted().is_some() {
        let (first, last) = (costs[0], costs[costs.len() - 1]);
        assert!(last <= first * FLAT, "a turn cost {first} us, and {last} us in the end");
    }
    let [begin, half, end] =
        [&samples[0], &samples[samples.len() / 2], &samples[samples.len() - 1]];
    for (what, bytes) in [
        ("memory", &(|it: &Sample| it.memory_bytes) as &dyn Fn(&Sample) -> f64),
        ("the file", &|it| it.stored_bytes),
    ] {
        let (before, after) = (bytes(half) - bytes(begin), bytes(end) - bytes(half));
        assert!(after <= before * FLAT + SLACK_BYTES, "{what} grew by {before}, and then {after}");
    }
    let grown = end.memory_bytes - begin.memory_bytes;
    let most =
        end.turns as f64 * TURN_BYTES_MAX + conversations as f64 * FRAMES_BYTES_MAX + SLACK_BYTES;
    assert!(grown <= most, "memory grew by {grown} bytes");
    let earlier = &samples[..=samples.len() / 2];
    let most = |of: fn(&Sample) -> usize| earlier.iter().map(of).max().unwrap_or_default();
    assert!(end.files <= most(|it| it.files), "{} descriptors", end.files);
    assert!(end.threads <= most(|it| it.threads), "{} threads", end.threads);
}
