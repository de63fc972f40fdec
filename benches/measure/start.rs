//! From nothing to the first frame, and to the answer of a first request.

use crate::child::{Child, Program, SNAPSHOT};
use crate::table::{Aim, Unit, least, median, row};
use std::io;
use std::time::Instant;

const ROUNDS: usize = 300;

/// How much longer than the minimal loop's a start may take.
const START_MAX: f64 = 1.3;

pub(crate) fn measure() -> io::Result<()> {
    let (mut ours, mut minimal, mut empty) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(millis_to_first_line(Program::Duologue, &["rpc", "--engine", "echo"])?);
        minimal.push(millis_to_first_line(Program::MinimalLoop, &[])?);
        empty.push(millis_to_first_line(Program::Empty, &[])?);
    }
    answer_of_snapshot()?;
    let [ours, minimal, empty] = [&ours, &minimal, &empty].map(|times| median(times));
    row(
        "start to hello, against the minimal loop",
        Unit::Millis,
        ours,
        Some(minimal),
        Aim::Ratio(START_MAX),
    );
    row("start to hello, against an empty program", Unit::Millis, ours, Some(empty), Aim::None);
    Ok(())
}

fn answer_of_snapshot() -> io::Result<()> {
    let (mut ours, mut minimal) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(millis_to_snapshot(Program::Duologue, &["rpc", "--engine", "echo"])?);
        minimal.push(millis_to_snapshot(Program::MinimalLoop, &[])?);
    }
    let what = "start to the answer of a first snapshot";
    let aim = Aim::Ratio(START_MAX);
    row(what, Unit::Millis, median(&ours), Some(median(&minimal)), aim);
    let what = format!("{what}, least");
    row(&what, Unit::Millis, least(&ours), Some(least(&minimal)), Aim::None);
    Ok(())
}

fn millis_to_snapshot(program: Program, args: &[&str]) -> io::Result<f64> {
    let start = Instant::now();
    let mut child = Child::start(program, args)?;
    child.send(SNAPSHOT)?;
    child.line_with("\"done\":{")?;
    Ok(start.elapsed().as_secs_f64() * 1000.0)
}

fn millis_to_first_line(program: Program, args: &[&str]) -> io::Result<f64> {
    let start = Instant::now();
    let child = Child::greeted(program, args)?;
    let time = start.elapsed();
    drop(child);
    Ok(time.as_secs_f64() * 1000.0)
}
