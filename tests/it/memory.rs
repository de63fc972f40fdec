//! Memory stays bounded whatever a client and a provider send while nobody reads what is said.

use crate::frames::{cancel, ends, finished_text, patched_text, shutdown, submit};
use crate::oracle::Answers;
use crate::process::settled;
use crate::provider::{Provider, Step};
use crate::server::{Launch, Reading, Server, echo, openai};
use rustix::process::Signal;
use std::io::Write;
use std::time::Duration;

/// Memory that a server may take beyond what it has when it is idle: several times its limits.
const GROWTH_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A piece of the echo engine's answer never comes.
const NEVER_MS: &str = "3600000";

const MEGABYTE: usize = 1024 * 1024;

/// Bytes of a request id that is nearly as long as it may be.
const LONG_ID_BYTES: usize = 1_000;

/// A server that nobody reads, and the memory it has while it is idle.
struct Unread {
    server: Server,
    idle_bytes: u64,
}

impl Unread {
    fn start(launch: Launch) -> Self {
        let server = launch.stdout(Reading::Held).start();
        let idle_bytes = settled("the server waits", || server.process().memory_bytes());
        Self { server, idle_bytes }
    }

    /// Has a thread write these lines, as far as the server reads them.
    fn feed(&mut self, lines: usize, line: impl Fn(usize) -> String + Send + 'static) {
        self.server.feed(lines, move |stdin| {
            (0..lines).try_for_each(|number| writeln!(stdin, "{}", line(number)))
        });
    }

    /// Waits until nothing more happens, and checks what it took to get there.
    #[track_caller]
    fn check_memory(&self) {
        let process = self.server.process();
        settled("nothing happens", || (process.cpu_time(), process.memory_bytes()));
        let grown_bytes = process.peak_memory_bytes().saturating_sub(self.idle_bytes);
        assert!(grown_bytes < GROWTH_BYTES_MAX, "grown by {grown_bytes}");
    }
}

#[test]
fn deltas_of_a_megabyte_are_left_with_the_provider() {
    let piece = "x".repeat(MEGABYTE);
    let drip = Step::Drip { text: piece.clone(), times: 200, pause: Duration::ZERO };
    let provider = Provider::start(vec![vec![drip]]);
    let mut unread = Unread::start(openai(&provider, &["--final-snapshot", "none"]));
    unread.server.send(submit("r", "hello"));
    provider.wait_blocked();
    unread.check_memory();
    let mut server = unread.server;
    server.send(cancel("c"));
    provider.wait_disconnect();
    server.read_on(Reading::Eager);
    assert_eq!(server.wait_done("r"), "stopped");
    let frames = server.finish().frames;
    let text = patched_text(&frames, "r");
    assert!(!text.is_empty() && text.len().is_multiple_of(MEGABYTE), "{}", text.len());
    assert!(text == finished_text(&frames, "r"), "the text is not whole");
}

#[test]
fn prompts_of_a_megabyte_that_are_cancelled_are_left_unread() {
    const TURNS: usize = 60;
    let args = ["--final-snapshot", "none", "--echo-delay-ms", NEVER_MS];
    let mut unread = Unread::start(echo(&args));
    unread.feed(TURNS * 2, |number| match number % 2 {
        0 => submit(&format!("r{number}"), &"x".repeat(MEGABYTE)),
        _ => cancel(&format!("c{number}")),
    });
    unread.check_memory();
    unread.server.signal(Signal::TERM);
    unread.server.read_on(Reading::Eager);
    let ends = ends(&unread.server.finish_with(143, Answers::Some).frames);
    let stopped = ends.iter().filter(|(id, status)| id.starts_with('r') && status == "stopped");
    assert!((2..TURNS).contains(&stopped.count()), "{ends:?}");
}

#[test]
fn shutdowns_with_long_ids_are_left_unread() {
    const SENT: usize = 40_000;
    let provider = Provider::start(vec![vec![Step::Stall, Step::Done]]);
    let mut unread = Unread::start(openai(&provider, &[]));
    unread.server.send(submit("r", "hello"));
    provider.wait_request(1);
    unread.feed(SENT, |number| shutdown(&format!("{number}-{}", "i".repeat(LONG_ID_BYTES))));
    unread.check_memory();
    provider.release();
    unread.server.read_on(Reading::Eager);
    let ends = ends(&unread.server.finish_with(0, Answers::Some).frames);
    let shutdowns = ends.iter().filter(|(_, status)| status == "shutdown").count();
    assert!((2..SENT).contains(&shutdowns), "{shutdowns}");
    assert_eq!(ends.len(), shutdowns + 1);
}

#[test]
fn submits_with_long_ids_that_wait_are_left_unread() {
    const SENT: usize = 40_000;
    let args = ["--on-busy", "queue", "--echo-delay-ms", NEVER_MS, "--final-snapshot", "none"];
    let mut unread = Unread::start(echo(&args));
    unread.feed(SENT, |number| submit(&format!("{number}-{}", "i".repeat(LONG_ID_BYTES)), "hello"));
    unread.check_memory();
    unread.server.signal(Signal::KILL);
    unread.server.finish_with(137, Answers::Some);
}

/// Each frame of the run carries its id.
#[test]
fn a_run_with_a_long_id_is_told_in_few_frames() {
    let mut unread = Unread::start(echo(&["--final-snapshot", "none"]));
    let id = "i".repeat(LONG_ID_BYTES);
    unread.server.send(submit(&id, &"word ".repeat(20_000)));
    unread.check_memory();
    let mut server = unread.server;
    server.read_on(Reading::Eager);
    assert_eq!(server.wait_done(&id), "ok");
    let frames = server.finish().frames;
    assert!(patched_text(&frames, &id) == finished_text(&frames, &id));
}
