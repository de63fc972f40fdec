//! Memory stays bounded whatever a client and a provider send while nobody reads what is said.

use crate::frames::{Frame, cancel, ends, finished_text, patched_text, shutdown, submit};
use crate::once::{Once, duologue};
use crate::oracle::Answers;
use crate::process::{eventually, settled};
use crate::provider::{Provider, Step};
use crate::server::{Folder, Launch, Reading, Server, echo, openai};
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Memory that a server may take beyond what it has when it is idle: several times its limits.
const GROWTH_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A piece of the echo engine's answer never comes.
const NEVER_MS: &str = "3600000";

const MEGABYTE: usize = 1024 * 1024;

/// Bytes of a request id that is nearly as long as it may be.
const LONG_ID_BYTES: usize = 1_000;

/// Lines that a server has read once it is at work.
const LINES_MIN: usize = 4;

/// A server that nobody reads, and the memory it has while it is idle.
struct Unread {
    server: Server,
    idle_bytes: u64,
    /// The lines that were fed to it so far, if any are.
    fed: Option<Arc<AtomicUsize>>,
}

impl Unread {
    fn start(launch: Launch) -> Self {
        let server = launch.stdout(Reading::Held).start();
        let idle_bytes = settled("the server waits", || server.process().memory_bytes());
        Self { server, idle_bytes, fed: None }
    }

    /// Has a thread write these lines, as far as the server reads them.
    fn feed(&mut self, lines: usize, line: impl Fn(usize) -> String + Send + 'static) {
        let fed = Arc::<AtomicUsize>::default();
        self.fed = Some(Arc::clone(&fed));
        self.server.feed(lines, move |stdin| {
            (0..lines).try_for_each(|number| {
                writeln!(stdin, "{}", line(number))?;
                fed.store(number + 1, Ordering::Relaxed);
                Ok(())
            })
        });
    }

    /// Waits until nothing more happens, and checks what it took to get there.
    #[track_caller]
    fn check_memory(&self) {
        let process = self.server.process();
        let fed = || self.fed.as_ref().map(|fed| fed.load(Ordering::Relaxed));
        let is_at_work = || fed().is_none_or(|lines| lines >= LINES_MIN);
        eventually("the first lines are read", || is_at_work().then_some(()));
        eventually("the server waits", || {
            settled("nothing happens", || (process.cpu_time(), process.memory_bytes(), fed()));
            process.is_asleep().then_some(())
        });
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
fn shutdowns_with_long_ids_wait_in_bounded_memory() {
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
    // What does not fit is refused; the run, whose answer has no end, fails too.
    let failed = ends.iter().filter(|(_, status)| status == "failed").count();
    assert_eq!(ends.len(), shutdowns + failed);
}

#[test]
fn submits_with_long_ids_wait_in_bounded_memory() {
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
fn a_run_with_a_long_id_has_few_frames() {
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

/// Has a server answer one submit; gives the most memory it took for that, beyond what it had when it
/// was idle, and the lines that end the run: those that are no patches.
fn growth_of_a_turn(words: &[&str], folder: &Folder) -> (u64, Vec<String>) {
    let (mut once, stdout) = Once::start_server(duologue(folder, words));
    let mut stdout = BufReader::new(stdout);
    let mut line = String::new();
    stdout.read_line(&mut line).expect("hello");
    let process = once.process();
    let idle_bytes = settled("the server waits", || process.memory_bytes());
    let request = submit("r", "hello") + "\n";
    once.stdin().write_all(request.as_bytes()).expect("it is read");
    let mut others = Vec::new();
    while !line.starts_with("{\"version\":1,") || !line.contains("\"done\":{") {
        line.clear();
        assert!(stdout.read_line(&mut line).expect("UTF-8") > 0, "no done");
        if !line.contains("Patch\"") {
            others.push(line.clone());
        }
    }
    let grown_bytes = process.peak_memory_bytes().saturating_sub(idle_bytes);
    once.close_stdin();
    drop(stdout);
    once.finish();
    (grown_bytes, others)
}

/// The answer's text is kept once; the events and the snapshot that repeat it are encoded one at a time.
#[test]
fn an_answer_is_held_a_few_times_and_no_more() {
    const ANSWER_BYTES: usize = 24 * MEGABYTE;
    let folder = Folder::new();
    let line = "word ".repeat(799) + "end.\n";
    fs::write(folder.path("answer.txt"), line.repeat(ANSWER_BYTES / line.len())).expect("a file");
    let path = folder.name("answer.txt");
    let words = ["rpc", "--engine", "echo", "--echo-answer", &path];
    let (grown_bytes, lines) = growth_of_a_turn(&words, &folder);
    let whole = lines.iter().filter(|line| line.len() > 2 * ANSWER_BYTES * 99 / 100).count();
    assert_eq!(whole, 2, "the segment's end and the snapshot hold the text twice each");
    assert!(grown_bytes < 4 * ANSWER_BYTES as u64, "grown by {grown_bytes}");
}

#[test]
fn an_answer_that_alternates_between_reasoning_and_text_is_ended() {
    let folder = Folder::new();
    let pair = [Step::Reasoning("r".to_owned()), Step::Text("t".to_owned())];
    let provider = Provider::start(vec![pair.iter().cloned().cycle().take(20_000).collect()]);
    let base_url = provider.base_url();
    let words = ["rpc", "--engine", "openai", "--model", "m", "--base-url", &base_url];
    let (grown_bytes, lines) = growth_of_a_turn(&words, &folder);
    let [.., snapshot, error, done] = lines.as_slice() else { panic!("{} lines", lines.len()) };
    let [snapshot, error, done] =
        [snapshot, error, done].map(|line| Frame::parse(line.trim_end().as_bytes()));
    assert_eq!(snapshot.messages().len(), 10_002);
    assert_eq!(error.error(), Some("run_failed"));
    assert!(error.text("/error/detail").starts_with("provider: "), "{error:?}");
    assert_eq!(done.done(), Some("failed"));
    assert!(grown_bytes < GROWTH_BYTES_MAX, "grown by {grown_bytes}");
}
