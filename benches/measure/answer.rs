//! What a delta costs, in answers of all lengths.

use crate::child::{Child, Counted, Program, prompt, submit_as};
use crate::table::{Aim, Unit, least, median, row};
use std::io;
use std::time::Instant;

/// Deltas, how often that is measured, and the aim against the minimal loop.
const SIZES: [(usize, usize, Aim); 6] = [
    (200, 40, Aim::None),
    (1_000, 30, Aim::Ratio(1.2)),
    (2_000, 30, Aim::None),
    (20_000, 15, Aim::Ratio(1.2)),
    (200_000, 5, Aim::None),
    (1_000_000, 3, Aim::None),
];

/// Lines of a run that are no patches: seven events, the snapshot and the `done`.
const OTHER_LINES: u64 = 9;

/// Cost per delta of the longest answer, against the one of this many deltas.
const FLAT_FROM: usize = 20_000;

/// How much it may rise.
const FLAT: f64 = 1.25;

pub(crate) fn measure() -> io::Result<()> {
    let mut flat_from = f64::NAN;
    for (deltas, rounds, aim) in SIZES {
        let (mut ours, mut minimal) = (Vec::new(), Vec::new());
        let mut counted = Counted::default();
        for _ in 0..rounds {
            let (time, count) = micros_per_delta(Program::Duologue, OURS, deltas)?;
            counted = count;
            ours.push(time);
            minimal.push(micros_per_delta(Program::MinimalLoop, &[], deltas)?.0);
        }
        let (ours, minimal) = (least(&ours), least(&minimal));
        let patches = counted.lines - OTHER_LINES;
        let merged = deltas as u64 - patches;
        let megabytes = counted.bytes as f64 / 1e6;
        let what = format!(
            "per delta, answer of {deltas} deltas ({} lines, {megabytes:.1} MB, {merged} merged)",
            counted.lines
        );
        row(&what, Unit::Micros, ours, Some(minimal), aim);
        if deltas == FLAT_FROM {
            flat_from = ours;
        }
        if deltas > FLAT_FROM {
            let what = format!("per delta, {deltas} deltas against {FLAT_FROM}");
            row(&what, Unit::Micros, ours, Some(flat_from), Aim::Ratio(FLAT));
        }
    }
    measure_lean()
}

const OURS: &[&str] = &["rpc", "--engine", "echo"];

/// The same with lean patches, which are shorter than the minimal loop's.
const LEAN: &[&str] = &["rpc", "--engine", "echo", "--patch-fields", "lean"];

/// Deltas of the answer in lean patches, and how often that is measured.
const LEAN_DELTAS: usize = 20_000;
const LEAN_ROUNDS: usize = 15;

/// Words of the answer whose lean patches are counted, and what one may take, in bytes.
const LEAN_WORDS: usize = 1_000;
const LEAN_BYTES_MAX: f64 = 285.0;

fn measure_lean() -> io::Result<()> {
    let (mut ours, mut minimal) = (Vec::new(), Vec::new());
    let mut counted = Counted::default();
    for _ in 0..LEAN_ROUNDS {
        let (time, count) = micros_per_delta(Program::Duologue, LEAN, LEAN_DELTAS)?;
        counted = count;
        ours.push(time);
        minimal.push(micros_per_delta(Program::MinimalLoop, &[], LEAN_DELTAS)?.0);
    }
    let what =
        format!("per delta, --patch-fields lean, {LEAN_DELTAS} deltas ({} lines)", counted.lines);
    row(&what, Unit::Micros, least(&ours), Some(least(&minimal)), Aim::Ratio(1.1));
    let what = format!("lean patches, bytes a word of {LEAN_WORDS}");
    row(&what, Unit::Bytes, lean_bytes()?, None, Aim::Value(LEAN_BYTES_MAX));
    Ok(())
}

/// Bytes of a line with a lean patch, in the middle of all; the id of its request has two.
fn lean_bytes() -> io::Result<f64> {
    let mut child = Child::greeted(Program::Duologue, LEAN)?;
    child.warm_up()?;
    child.send(&submit_as("r1", &prompt(LEAN_WORDS)))?;
    let mut bytes = Vec::new();
    loop {
        let line = child.line()?;
        if line.contains("\"name\":\"ChatTextPatch\"") {
            bytes.push(line.len() as f64);
        }
        if line.contains("\"done\":{") {
            return Ok(median(&bytes));
        }
    }
}

fn micros_per_delta(program: Program, args: &[&str], deltas: usize) -> io::Result<(f64, Counted)> {
    let mut child = Child::greeted(program, args)?;
    child.warm_up()?;
    let start = Instant::now();
    let counted = child.answer(deltas)?;
    Ok((start.elapsed().as_secs_f64() * 1_000_000.0 / deltas as f64, counted))
}
