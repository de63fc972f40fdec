//! Output that is read slowly, late or not at all.

use crate::frames::{
    cancel, ends, errors, finished_text, patched_text, shutdown, snapshot, submit,
};
use crate::process::settled;
use crate::provider::{Provider, Step};
use crate::server::{Reading, echo, openai};

/// The smallest pipe there is.
const SMALL_PIPE_BYTES: usize = 4096;

/// Memory that a server may take while nobody reads what it says: several times its limits.
const MEMORY_BYTES_MAX: u64 = 100 * 1024 * 1024;

/// Far more than may wait in the server and in all pipes.
const FLOOD_BYTES: usize = 500 * 1024 * 1024;

#[test]
fn every_byte_of_a_large_last_frame_arrives_at_a_slow_reader() {
    let reading = Reading::Pieces(61);
    let server = echo(&["--final-snapshot", "none"]).stdout(reading).pipe_bytes(SMALL_PIPE_BYTES);
    let mut server = server.start();
    let prompt = "x".repeat(256 * 1024);
    server.send_together(&[submit("r", &prompt), shutdown("q")]);
    let frames = server.finish().frames;
    assert_eq!(finished_text(&frames, "r"), format!("Turn 1. You said: {prompt}"));
    assert!(frames.last().expect("frames").ends("q"));
}

#[test]
fn a_snapshot_before_the_end_arrives_whole_byte_by_byte() {
    let server = echo(&[]).stdout(Reading::Pieces(1)).pipe_bytes(SMALL_PIPE_BYTES);
    let mut server = server.start();
    let prompt = "x".repeat(32 * 1024);
    server.send_together(&[submit("r", &prompt), shutdown("q")]);
    let frames = server.finish().frames;
    let shown = frames.iter().find(|frame| frame.is_snapshot()).expect("a snapshot");
    assert_eq!(shown.messages()[0], ("user", prompt.as_str()));
}

/// The client stops reading while the provider floods, and cancels meanwhile.
#[test]
fn a_client_that_stops_reading_costs_bounded_memory_and_can_cancel() {
    let provider = Provider::start(vec![vec![Step::Flood(FLOOD_BYTES)]]);
    let server = openai(&provider, &["--final-snapshot", "turn"]).stdout(Reading::Held);
    let mut server = server.pipe_bytes(SMALL_PIPE_BYTES).start();
    server.send(submit("r", "hello"));
    let sent_bytes = provider.wait_blocked();
    assert!(sent_bytes < FLOOD_BYTES / 2, "the server reads on: {sent_bytes}");
    let process = server.process();
    settled("memory is flat", || process.memory_bytes());
    server.send(cancel("c"));
    provider.wait_disconnect();
    server.send(snapshot("s"));
    let peak_bytes = process.peak_memory_bytes();
    assert!(peak_bytes < MEMORY_BYTES_MAX, "{peak_bytes}");

    server.read_on(Reading::Eager);
    assert_eq!(server.wait_done("r"), "stopped");
    assert_eq!(server.wait_done("s"), "ok");
    let frames = server.finish().frames;
    let text = patched_text(&frames, "r");
    assert!(text.len() > SMALL_PIPE_BYTES && "flood ".repeat(text.len()).starts_with(&text));
    assert!(text == finished_text(&frames, "r"), "the text is not whole");
    assert!(errors(&frames, "r").is_empty());
}

/// The reader resumes after a pause: the text is complete.
#[test]
fn a_client_that_reads_on_gets_the_whole_answer() {
    let server = echo(&["--final-snapshot", "none"]).stdout(Reading::Held);
    let mut server = server.pipe_bytes(SMALL_PIPE_BYTES).start();
    let prompt = "many words ".repeat(10_000);
    server.send(submit("r", &prompt));
    let process = server.process();
    settled("the server waits", || process.cpu_time());
    server.read_on(Reading::Pieces(1000));
    assert_eq!(server.wait_done("r"), "ok");
    let frames = server.finish().frames;
    let answer = format!("Turn 1. You said: {prompt}");
    assert!(patched_text(&frames, "r") == answer && finished_text(&frames, "r") == answer);
    let patches = frames.iter().filter(|frame| frame.is_event("ChatTextPatch")).count();
    assert!(patches < 20_000, "patches that wait are merged: {patches}");
}

/// Offsets and sequences of merged patches say what they hold.
#[test]
fn merged_patches_lie_end_to_end() {
    let server = echo(&["--final-snapshot", "none"]).stdout(Reading::Held);
    let mut server = server.pipe_bytes(SMALL_PIPE_BYTES).start();
    server.send(submit("r", &"\u{e9} \u{1F600} ".repeat(10_000)));
    settled("the server waits", || server.process().cpu_time());
    server.read_on(Reading::Eager);
    let frames = server.finish().frames;
    let (mut bytes, mut sequence) = (0, 0);
    for patch in frames.iter().filter(|frame| frame.is_event("ChatTextPatch")) {
        assert_eq!(patch.payload("offset").parse::<usize>().unwrap_or(0), bytes);
        bytes += patch.payload("text").len();
        let last = patch.payload("sequence").parse::<u64>().expect("a sequence");
        assert!(last > sequence);
        sequence = last;
    }
    assert_eq!(bytes, finished_text(&frames, "r").len());
}

/// stderr is never read, at log level trace.
#[test]
fn a_log_that_nobody_reads_holds_up_nothing() {
    const TURNS: usize = 3_000;
    let args = ["--log-level", "trace", "--final-snapshot", "none"];
    let server = echo(&args).stderr(Reading::Held).pipe_bytes(SMALL_PIPE_BYTES);
    let mut server = server.start();
    for turn in 0..TURNS {
        server.send_together(&[submit(&format!("r{turn}"), "x"), cancel(&format!("c{turn}"))]);
        assert_eq!(server.wait_done(&format!("r{turn}")), "stopped");
    }
    let logged = rustix::io::ioctl_fionread(server.held_stderr()).expect("a pipe");
    assert!(logged > SMALL_PIPE_BYTES as u64 / 2, "the pipe is not full: {logged}");
    assert_eq!(ends(&server.finish().frames).len(), 2 * TURNS);
}

/// A reader that is gone is noticed while nothing is written.
#[test]
fn a_reader_that_leaves_while_nothing_is_said_ends_the_process() {
    let mut server = echo(&[]).stdout(Reading::Until("hello")).start();
    server.wait_hello();
    server.wait_end();
    server.finish();
}
