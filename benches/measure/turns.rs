//! A long conversation: what its last turns cost, against its first.

use crate::child::{Child, Program, submit};
use crate::table::{Aim, Unit, least, row};
use std::io;
use std::time::Instant;

const TURNS: usize = 1_000;

/// Turns that are compared, at each end.
const COMPARED: usize = 100;

/// How much more a late turn may cost than an early one, if its snapshot leaves out the turns before it.
const FLAT: f64 = 1.25;

pub(crate) fn measure() -> io::Result<()> {
    // A snapshot of the whole conversation grows with the conversation.
    for (mode, aim) in [("full", Aim::None), ("turn", Aim::Ratio(FLAT)), ("none", Aim::Ratio(FLAT))]
    {
        let args = ["rpc", "--engine", "echo", "--final-snapshot", mode];
        let mut child = Child::greeted(Program::Duologue, &args)?;
        child.warm_up()?;
        let mut micros = Vec::new();
        for _ in 0..TURNS {
            let start = Instant::now();
            child.send(&submit("what did I say before that"))?;
            child.count()?;
            micros.push(start.elapsed().as_secs_f64() * 1_000_000.0);
        }
        let (first, last) = (least(&micros[..COMPARED]), least(&micros[TURNS - COMPARED..]));
        let what = format!(
            "a turn, --final-snapshot {mode}: the last {COMPARED} of {TURNS} against the first"
        );
        row(&what, Unit::Micros, last, Some(first), aim);
    }
    Ok(())
}
