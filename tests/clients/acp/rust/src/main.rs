//! The scenarios of ../README.md, driven by the official library for Rust.
//!
//!     scenarios DUOLOGUE REPOSITORY [NAME...]

mod agent;
mod scenarios;

use agent::{Agent, Start};
use agent_client_protocol::v1::schema::{McpServer, McpServerStdio};
use scenarios::SCENARIOS;
use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a scenario may take.
const TIME_MAX: Duration = Duration::from_secs(60);

/// A folder for a scenario, and what it needs to start processes there.
pub struct Stage {
    binary: String,
    repository: String,
    pub folder: String,
}

impl Stage {
    pub fn start(&self, arguments: Vec<String>) -> Agent {
        self.start_with(Start { arguments, ..Start::default() })
    }

    pub fn start_with(&self, start: Start<'_>) -> Agent {
        Agent::start(&self.binary, Start { folder: &self.folder, ..start })
    }

    pub fn echo(&self, more: &[&str]) -> Vec<String> {
        ["--engine", "echo"].iter().chain(more).map(|it| (*it).to_owned()).collect()
    }

    pub fn slow(&self) -> Vec<String> {
        self.echo(&["--echo-delay-ms", "20"])
    }

    pub fn tools(&self) -> Vec<String> {
        let script = format!("{}/examples/tool_calls.jsonl", self.repository);
        let clock = format!("python3 {}/examples/clock.py", self.repository);
        self.echo(&["--echo-script", &script, "--mcp", &clock])
    }

    /// Plays a script, without asking about tool calls.
    pub fn script(&self, name: &str, more: &[&str]) -> Vec<String> {
        let script = self.fixture(name);
        let arguments = [&["--echo-script", &script, "--approval", "auto"], more].concat();
        self.echo(&arguments)
    }

    pub fn fixture(&self, name: &str) -> String {
        format!("{}/tests/clients/acp/fixtures/{name}", self.repository)
    }

    pub fn server(&self, name: &str) -> Vec<McpServer> {
        server(name, &self.fixture("server.py"))
    }
}

pub fn server(name: &str, path: &str) -> Vec<McpServer> {
    let arguments = vec![path.to_owned(), name.to_owned()];
    vec![McpServer::Stdio(McpServerStdio::new(name, "python3").args(arguments))]
}

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let (Some(binary), Some(repository)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: scenarios DUOLOGUE REPOSITORY [NAME...]");
        return ExitCode::from(2);
    };
    let named: Vec<_> = arguments.collect();
    let mut status = ExitCode::SUCCESS;
    for (name, play) in SCENARIOS {
        if !named.is_empty() && !named.iter().any(|it| it == name) {
            continue;
        }
        let folder = folder(name);
        let stage = Stage { binary: binary.clone(), repository: repository.clone(), folder };
        if run(stage, play) {
            println!("ok {name}");
        } else {
            println!("FAILED {name}: standard error says why");
            status = ExitCode::FAILURE;
        }
    }
    status
}

/// An empty folder, by its real path.
fn folder(name: &str) -> String {
    let path: PathBuf = env::temp_dir().join(format!("acp-{}-{name}", std::process::id()));
    fs::create_dir_all(&path).expect("a folder");
    path.canonicalize().expect("a path").to_string_lossy().into_owned()
}

/// Whether the scenario succeeds in time. One that hangs is left behind: its processes end with this one.
fn run(stage: Stage, play: fn(&Stage)) -> bool {
    let (tell, ended) = mpsc::channel();
    thread::spawn(move || {
        let is_well = catch_unwind(AssertUnwindSafe(|| play(&stage))).is_ok();
        fs::remove_dir_all(&stage.folder).ok();
        tell.send(is_well).ok();
    });
    ended.recv_timeout(TIME_MAX).unwrap_or(false)
}
