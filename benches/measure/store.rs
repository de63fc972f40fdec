//! Conversations that are stored: what a delta and a turn cost, and how long a session takes to go on.

use crate::child::{Child, Program, submit};
use crate::table::{Aim, Unit, least, row};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

/// Deltas of an answer.
const DELTAS: usize = 20_000;

/// Answers that are measured of each kind.
const ANSWERS: usize = 21;

/// How often each session goes on.
const ROUNDS: usize = 7;

/// How much longer a delta may take with a store.
const STORED_RATIO: f64 = 1.35;

/// Turns of the sessions that go on.
const TURNS: [usize; 3] = [10, 1_000, 10_000];

/// How long the longest of them may take from the start of the process to the end of its snapshot.
const RESUME_MILLIS_MAX: f64 = 100.0;

/// What is asked in each turn; the engine repeats it, and the prompt before it.
const PROMPT: &str = "What is the next thing that I should know of locks and stores?";

/// A folder that is removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> io::Result<Self> {
        Self::named("store")
    }

    pub(crate) fn named(name: &str) -> io::Result<Self> {
        let name = format!("duologue-bench-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn store(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

pub(crate) fn measure() -> io::Result<()> {
    let folder = Folder::new()?;
    deltas(&folder)?;
    for turns in TURNS {
        session(&folder, turns)?;
    }
    Ok(())
}

fn deltas(folder: &Folder) -> io::Result<()> {
    let place = folder.store("deltas");
    let plain = ["rpc", "--engine", "echo", "--final-snapshot", "none"];
    let stored = [&plain[..], &["--store", &place]].concat();
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let mut both = [(&mut with, begun(&stored)?), (&mut without, begun(&plain)?)];
    for _ in 0..ANSWERS {
        for (micros, child) in &mut both {
            let start = Instant::now();
            child.answer(DELTAS)?;
            micros.push(start.elapsed().as_secs_f64() * 1_000_000.0 / DELTAS as f64);
        }
    }
    let what = format!("per delta with a store, answer of {DELTAS} deltas, against none");
    row(&what, Unit::Micros, least(&with), Some(least(&without)), Aim::Ratio(STORED_RATIO));
    Ok(())
}

fn begun(args: &[&str]) -> io::Result<Child> {
    let mut child = Child::greeted(Program::Duologue, args)?;
    child.warm_up()?;
    Ok(child)
}

fn session(folder: &Folder, turns: usize) -> io::Result<()> {
    let place = folder.store(&turns.to_string());
    let session = ["rpc", "--engine", "echo", "--store", &place, "--session-id", "s"];
    let mut child =
        Child::greeted(Program::Duologue, &[&session[..], &["--final-snapshot", "none"]].concat())?;
    let start = Instant::now();
    for _ in 0..turns {
        child.send(&submit(PROMPT))?;
        child.count()?;
    }
    let micros = start.elapsed().as_secs_f64() * 1_000_000.0 / turns as f64;
    // Its end leaves one file, without a log.
    drop(child.take_stdin()?);
    child.count_all()?;
    let bytes = fs::metadata(&place)?.len() as f64;
    let resumed = [&session[..], &["--resume"]].concat();
    let (mut millis, mut memory) = (Vec::new(), 0.0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut child = Child::greeted(Program::Duologue, &resumed)?;
        child.line()?;
        millis.push(start.elapsed().as_secs_f64() * 1_000.0);
        memory = child.pss()?;
    }
    let longest = turns == TURNS[TURNS.len() - 1];
    let aim = if longest { Aim::Value(RESUME_MILLIS_MAX) } else { Aim::None };
    row(
        &format!("resume {turns} turns: start to the end of the snapshot"),
        Unit::Millis,
        least(&millis),
        None,
        aim,
    );
    row(
        &format!("memory after that, {turns} turns (PSS)"),
        Unit::Mebibytes,
        memory,
        None,
        Aim::None,
    );
    let what = format!("bytes per turn in the file, {turns} turns");
    row(&what, Unit::Kibibytes, bytes / turns as f64 / 1024.0, None, Aim::None);
    row(
        &format!("a stored turn, of {turns}, with its sync"),
        Unit::Micros,
        micros,
        None,
        Aim::None,
    );
    Ok(())
}
