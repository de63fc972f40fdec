//! From nothing to the first frame.

use crate::child::{Child, Program};
use crate::table::{Aim, Unit, median, row};
use std::io;
use std::time::Instant;

const ROUNDS: usize = 300;

pub(crate) fn measure() -> io::Result<()> {
    let (mut ours, mut minimal, mut empty) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(millis_to_first_line(Program::Duologue, &["rpc", "--engine", "echo"])?);
        minimal.push(millis_to_first_line(Program::MinimalLoop, &[])?);
        empty.push(millis_to_first_line(Program::Empty, &[])?);
    }
    let [ours, minimal, empty] = [&ours, &minimal, &empty].map(|times| median(times));
    row(
        "start to hello, against the minimal loop",
        Unit::Millis,
        ours,
        Some(minimal),
        Aim::Ratio(1.5),
    );
    row("start to hello, against an empty program", Unit::Millis, ours, Some(empty), Aim::None);
    Ok(())
}

fn millis_to_first_line(program: Program, args: &[&str]) -> io::Result<f64> {
    let start = Instant::now();
    let child = Child::greeted(program, args)?;
    let time = start.elapsed();
    drop(child);
    Ok(time.as_secs_f64() * 1000.0)
}
