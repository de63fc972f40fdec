//! Memory: the proportional set size, as the kernel counts it.

use crate::child::{Child, Program, submit};
use crate::provider::{LONG_DELTA_BYTES, Manner, Provider};
use crate::table::{Aim, Unit, row};
use std::io;
use std::thread::sleep;
use std::time::Duration;

const PROCESSES: usize = 20;

/// What one idle process may take, and all of these together, in MB (2^20 bytes).
const ONE_MEBIBYTES_MAX: f64 = 4.0;
const ALL_MEBIBYTES_MAX: f64 = 15.0;

/// Time for a process to get ready behind its `hello`.
const SETTLED: Duration = Duration::from_millis(200);

/// Text of a long answer, in bytes, and the memory that it may take, in MB (2^20 bytes).
const LONG_BYTES: usize = 200_000_000;
const LONG_MEBIBYTES_MAX: f64 = 450.0;

const OURS: &[&str] = &["rpc", "--engine", "echo"];

pub(crate) fn measure() -> io::Result<()> {
    let (ours, reference) = (one(Program::Duologue, OURS)?, one(Program::MinimalLoop, &[])?);
    row(
        "memory idle (PSS)",
        Unit::Mebibytes,
        ours.0,
        Some(reference.0),
        Aim::Value(ONE_MEBIBYTES_MAX),
    );
    let what = "memory after an answer of 20000 deltas";
    row(what, Unit::Mebibytes, ours.1, Some(reference.1), Aim::None);
    let (ours, reference) = (many(Program::Duologue, OURS)?, many(Program::MinimalLoop, &[])?);
    let what = format!("memory of {PROCESSES} processes idle, together");
    row(&what, Unit::Mebibytes, ours, Some(reference), Aim::Value(ALL_MEBIBYTES_MAX));
    let what = format!("peak memory for an answer of {} MB", LONG_BYTES / 1_000_000);
    row(&what, Unit::Mebibytes, long()?, None, Aim::Value(LONG_MEBIBYTES_MAX));
    Ok(())
}

/// The most memory of a process whose provider gives a long answer.
fn long() -> io::Result<f64> {
    let provider = Provider::start(Manner::Long { deltas: LONG_BYTES / LONG_DELTA_BYTES })?;
    let base_url = provider.base_url();
    let args = ["rpc", "--engine", "openai", "--model", "m", "--base-url", &base_url];
    let mut child = Child::greeted(Program::Duologue, &args)?;
    child.send(&submit("hi"))?;
    child.count()?;
    child.peak()
}

/// Memory of one process, idle and after a long answer.
fn one(program: Program, args: &[&str]) -> io::Result<(f64, f64)> {
    let mut child = Child::greeted(program, args)?;
    sleep(SETTLED);
    let idle = child.pss()?;
    child.warm_up()?;
    child.answer(20_000)?;
    sleep(SETTLED);
    Ok((idle, child.pss()?))
}

fn many(program: Program, args: &[&str]) -> io::Result<f64> {
    let children =
        (0..PROCESSES).map(|_| Child::greeted(program, args)).collect::<io::Result<Vec<_>>>()?;
    sleep(SETTLED);
    children.iter().map(Child::pss).sum()
}
