//! Thousands of turns, and answers of many pieces: nothing grows but the conversation itself.

use crate::frames::{cancel, ends, finished_text, patched_text, snapshot, submit};
use crate::provider::{Provider, Step};
use crate::server::{Server, openai};

/// Turns of the long conversation.
const TURNS: u64 = 3_000;

/// Turns after which everything that is made once is there.
const WARM_TURNS: u64 = 500;

/// What a turn of a few words may cost: it is kept, for the model and for snapshots.
const TURN_BYTES_MAX: u64 = 4 * 1024;

/// Memory that the system may add on its own.
const SLACK_BYTES: u64 = 8 * 1024 * 1024;

/// Output for each byte of an answer that comes byte by byte: at most a frame of its own.
const OUTPUT_PER_BYTE_MAX: f64 = 900.0;

#[test]
fn thousands_of_turns_leave_files_and_memory_flat() {
    let mut server = Server::start(&["--final-snapshot", "none"]);
    let process = server.process();
    let mut chance = Chance(27);
    let mut warm = (0, 0);
    for turn in 0..TURNS {
        if turn == WARM_TURNS {
            warm = (process.files().len(), process.memory_bytes());
        }
        take_turn(&mut server, turn, &mut chance);
    }
    let (files, memory_bytes) = (process.files().len(), process.memory_bytes());
    assert_eq!(files, warm.0, "file descriptors");
    let grown_bytes = memory_bytes.saturating_sub(warm.1);
    assert!(grown_bytes < TURNS * TURN_BYTES_MAX + SLACK_BYTES, "grown by {grown_bytes}");
    let ended = ends(&server.finish().frames);
    let stopped = ended.iter().filter(|(_, status)| status == "stopped").count();
    assert!(stopped > 150, "only {stopped} runs were stopped");
}

/// A turn, perhaps with a cancel in the same write or the next one, or with a snapshot.
fn take_turn(server: &mut Server, turn: u64, chance: &mut Chance) {
    let (run, other) = (format!("r{turn}"), format!("o{turn}"));
    let ask = submit(&run, "x");
    // A snapshot holds the whole conversation, so they grow rarer as they grow longer.
    if chance.below(turn + 1) < 2 {
        server.send_together(&[ask, snapshot(&other)]);
    } else {
        match chance.below(10) {
            0..7 => server.send_together(&[ask, cancel(&other)]),
            7 => {
                server.send(ask);
                server.send(cancel(&other));
            }
            _ => server.send(ask),
        }
    }
    server.wait_done(&run);
}

/// Chance that is the same in each run (xorshift64).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

#[test]
fn output_is_linear_in_an_answer_of_one_character_deltas() {
    let per_byte = [4_000, 8_000].map(|bytes| stream_bytes(bytes) / bytes as f64);
    assert!(per_byte[1] < OUTPUT_PER_BYTE_MAX, "{per_byte:?} bytes of output for each of text");
    // How many patches merge depends on who is faster.
    assert!(per_byte[1] < per_byte[0] * 1.5, "{per_byte:?} bytes of output for each of text");
}

/// Bytes of output for an answer of `bytes` one-character deltas.
fn stream_bytes(bytes: usize) -> f64 {
    let delta = r#"data: {"choices":[{"index":0,"delta":{"content":"x"}}]}"#;
    let stream = format!("{delta}\n\n").repeat(bytes);
    let end = [Step::Finish("stop", None), Step::Done];
    let steps = [Step::Bytes(stream.into_bytes())].into_iter().chain(end);
    let provider = Provider::start(vec![steps.collect()]);
    let mut server = openai(&provider, &[]).start();
    assert_eq!(server.turn("r", "hello"), "ok");
    let transcript = server.finish();
    assert_eq!(patched_text(&transcript.frames, "r").len(), bytes);
    assert_eq!(finished_text(&transcript.frames, "r").len(), bytes);
    transcript.stdout_bytes as f64
}

/// With `--final-snapshot turn`, the second fifty turns cost no more than the first.
#[test]
fn output_is_linear_in_the_turns_of_a_conversation() {
    for option in ["turn", "none"] {
        let (half, whole) = (conversation_bytes(50, option), conversation_bytes(100, option));
        assert!(whole < half * 2.1, "{option}: {half} bytes for 50 turns, {whole} for 100");
    }
    assert!(conversation_bytes(50, "full") > conversation_bytes(50, "turn") * 2.0);
}

fn conversation_bytes(turns: usize, final_snapshot: &str) -> f64 {
    let mut server = Server::start(&["--final-snapshot", final_snapshot]);
    for turn in 0..turns {
        assert_eq!(server.turn(&format!("r{turn}"), "say a few words"), "ok");
    }
    server.finish().stdout_bytes as f64
}
