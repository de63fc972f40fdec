//! What a person at a terminal waits for, and what a long conversation costs there.

use crate::pseudo_terminal::PseudoTerminal;
use crate::table::{Aim, Unit, least, quantile, row};
use duologue::tui::DetachedChat;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const INLINE: &[&str] = &["chat", "--engine", "echo"];
const FULL: &[&str] = &["chat", "--engine", "echo", "--fullscreen"];

/// Where the chat is shown.
const PLACES: [(&str, &[&str]); 2] = [("inline", INLINE), ("--fullscreen", FULL)];

/// Keys, and the time between two of them.
const KEYS: usize = 400;
const KEY_PACE: Duration = Duration::from_millis(23);

/// Keys until the line is cleared.
const KEYS_IN_LINE: usize = 20;

/// How long a key may take to the screen while deltas stream in.
const KEY_MILLIS_MAX: f64 = 10.0;

/// Lines of the conversations that are compared.
const LINES: [usize; 2] = [100, 100_000];

/// Pictures of a round, and rounds.
const PICTURES: usize = 400;
const ROUNDS: usize = 7;

/// How much more a picture of the longer one may cost.
const FLAT: f64 = 1.25;

/// Bytes of the transcripts whose memory is measured.
const MEGABYTES: [usize; 2] = [1, 10];

/// Time for a chat to draw what has come last.
const SETTLED: Duration = Duration::from_millis(300);

/// A file that is removed at the end.
struct AnswerFile(PathBuf);

impl AnswerFile {
    fn new(name: &str, text: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("duologue-{}-{name}", std::process::id()));
        fs::write(&path, text)?;
        Ok(Self(path))
    }
}

impl Drop for AnswerFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

pub(crate) fn measure() -> io::Result<()> {
    for (place, args) in PLACES {
        keys(place, args)?;
    }
    for (place, is_fullscreen) in [("inline", false), ("--fullscreen", true)] {
        pictures(place, is_fullscreen)?;
    }
    for (place, args) in PLACES {
        memory(place, args)?;
    }
    Ok(())
}

/// Lines as a model writes them, in paragraphs of three; each is a delta of the built-in engine.
fn text(lines: usize) -> String {
    let line = |number: usize| {
        let end = if number % 3 == 2 { "\n\n" } else { "\n" };
        format!("{number} *10101* 0101 0101 `01010101` 01 01 01010101{end}")
    };
    (0..lines).map(line).collect()
}

/// From a key to its character on the screen, while 1,000 deltas a second stream in.
fn keys(place: &str, args: &[&str]) -> io::Result<()> {
    // More than the keys take.
    let lines = 3 * KEYS * usize::try_from(KEY_PACE.as_millis()).map_err(io::Error::other)?;
    let answer = AnswerFile::new("keys", &text(lines))?;
    let path = answer.0.display().to_string();
    let delay = ["--echo-delay-ms", "1", "--echo-answer", &path];
    let mut chat = PseudoTerminal::start(&[args, &delay].concat())?;
    chat.shows("/help")?;
    chat.types("go\r")?;
    chat.shows("answering")?;
    let mut millis = Vec::new();
    let mut written = String::new();
    for number in 0..KEYS {
        if number % KEYS_IN_LINE == 0 {
            chat.types("\u{15}")?;
            written.clear();
        }
        chat.look_on(KEY_PACE)?;
        written.push(char::from(b'g' + u8::try_from(number % KEYS_IN_LINE).unwrap_or(0)));
        let start = Instant::now();
        chat.types(&written[written.len() - 1..])?;
        chat.shows(&written)?;
        millis.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    for (name, part) in [("median", 0.5), ("p99", 0.99)] {
        let what = format!("key to screen, {place}, while 1,000 deltas a second stream in, {name}");
        row(&what, Unit::Millis, quantile(&millis, part), None, Aim::Value(KEY_MILLIS_MAX));
    }
    Ok(())
}

/// A delta and a key, from the event to the bytes for the terminal.
fn pictures(place: &str, is_fullscreen: bool) -> io::Result<()> {
    let chat = |lines| long_chat(lines, is_fullscreen).ok_or(io::ErrorKind::InvalidInput);
    let mut chats = [chat(LINES[0])?, chat(LINES[1])?];
    let (mut deltas, mut keys) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for _ in 0..ROUNDS {
        for (number, chat) in chats.iter_mut().enumerate() {
            deltas[number].push(micros(|| {
                chat.text("word ");
                chat.picture().len()
            }));
            // What was written is the same in each round.
            chat.next_answer();
            chat.picture();
            let mut count = 0;
            keys[number].push(micros(|| {
                count += 1;
                chat.key((count % 2 == 1).then_some('x'));
                chat.picture().len()
            }));
        }
    }
    for (what, [short, long]) in [("a delta", deltas), ("a key", keys)] {
        let [few, many] = LINES;
        let what = format!("{what} to its bytes, {place}, {many} lines against {few}");
        row(&what, Unit::Micros, least(&long), Some(least(&short)), Aim::Ratio(FLAT));
    }
    Ok(())
}

/// A chat that has said so many lines and begins another answer.
fn long_chat(lines: usize, is_fullscreen: bool) -> Option<DetachedChat> {
    let mut chat = DetachedChat::answering(80, 24, is_fullscreen)?;
    for line in text(lines).split_inclusive('\n') {
        chat.text(line);
    }
    chat.next_answer();
    chat.picture();
    Some(chat)
}

/// Microseconds of one of [`PICTURES`]; each has something to write.
fn micros(mut picture: impl FnMut() -> usize) -> f64 {
    let start = Instant::now();
    let written = (0..PICTURES).map(|_| picture()).filter(|bytes| *bytes > 0).count();
    let micros = start.elapsed().as_secs_f64() * 1_000_000.0 / PICTURES as f64;
    if written == PICTURES { micros } else { f64::NAN }
}

/// What a chat keeps of a transcript, beyond what it needs empty.
fn memory(place: &str, args: &[&str]) -> io::Result<()> {
    for megabytes in MEGABYTES {
        let bytes = megabytes * 1_000_000;
        let mut answer = text(bytes / 45);
        answer.push_str("\n\nend of the answer\n");
        let file = AnswerFile::new("memory", &answer)?;
        let path = file.0.display().to_string();
        let mut chat = PseudoTerminal::start(&[args, &["--echo-answer", &path]].concat())?;
        chat.shows("/help")?;
        chat.look_on(SETTLED)?;
        let before = chat.memory()?;
        chat.types("go\r")?;
        chat.shows("end of the answer")?;
        chat.look_on(SETTLED)?;
        let kept = (chat.memory()? - before) / answer.len() as f64;
        let what = format!("memory by byte of the transcript, {place}, {megabytes} MB");
        row(&what, Unit::Bytes, kept, None, Aim::None);
    }
    Ok(())
}
