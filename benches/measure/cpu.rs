//! Processor time of an answer, of all threads together: as fast as it comes, and at the pace of a
//! model, where each delta is a wake-up.

use crate::child::{Child, Program, submit};
use crate::provider::{Manner, Provider};
use crate::table::{Aim, Unit, least, median, row};
use std::io;
use std::time::Duration;

/// Deltas of the answers at full speed, and how often they are measured.
const SHORT_DELTAS: usize = 1_000;
const FAST_DELTAS: usize = 20_000;
const FAST_ROUNDS: usize = 15;

/// Deltas of the answer at a pace, and how often that is measured.
const PACED_DELTAS: usize = 200;
const PACED_ROUNDS: usize = 9;

const PACE_MILLIS: u64 = 5;

const SHORT_MAX: f64 = 1.3;
const FAST_MAX: f64 = 1.5;
const FAST_PROVIDER_MAX: f64 = 1.5;
const PACED_MAX: f64 = 1.5;

const OURS: &[&str] = &["rpc", "--engine", "echo"];

pub(crate) fn measure() -> io::Result<()> {
    echo_at_full_speed(SHORT_DELTAS, SHORT_MAX)?;
    echo_at_full_speed(FAST_DELTAS, FAST_MAX)?;
    provider_at_full_speed()?;
    echo_at_a_pace()?;
    provider_at_a_pace()
}

fn echo_at_full_speed(deltas: usize, most: f64) -> io::Result<()> {
    let (mut ours, mut minimal) = (Vec::new(), Vec::new());
    for _ in 0..FAST_ROUNDS {
        ours.push(of_answer(Program::Duologue, OURS, deltas)?);
        minimal.push(of_answer(Program::MinimalLoop, &[], deltas)?);
    }
    let what = format!("processor time of {deltas} deltas");
    row(&what, Unit::Millis, least(&ours), Some(least(&minimal)), Aim::Ratio(most));
    Ok(())
}

fn provider_at_full_speed() -> io::Result<()> {
    let provider = Provider::start(Manner::AtOnce { deltas: FAST_DELTAS })?;
    let (ours, minimal) = of_provider(&provider, FAST_ROUNDS)?;
    let what = format!("processor time of {FAST_DELTAS} deltas of a provider");
    let aim = Aim::Ratio(FAST_PROVIDER_MAX);
    row(&what, Unit::Millis, least(&ours), Some(least(&minimal)), aim);
    Ok(())
}

fn echo_at_a_pace() -> io::Result<()> {
    let pace = PACE_MILLIS.to_string();
    let args = [OURS, &["--echo-delay-ms", &pace]].concat();
    let (mut ours, mut minimal) = (Vec::new(), Vec::new());
    for _ in 0..PACED_ROUNDS {
        ours.push(of_answer(Program::Duologue, &args, PACED_DELTAS)?);
        minimal.push(of_answer(Program::MinimalLoop, &[&pace], PACED_DELTAS)?);
    }
    let what = format!("processor time of {PACED_DELTAS} deltas at a {PACE_MILLIS} ms pace");
    paced_rows(&what, &ours, &minimal);
    Ok(())
}

fn provider_at_a_pace() -> io::Result<()> {
    let pace = Duration::from_millis(PACE_MILLIS);
    let provider = Provider::start(Manner::Paced { deltas: PACED_DELTAS, pace })?;
    let (ours, minimal) = of_provider(&provider, PACED_ROUNDS)?;
    let what =
        format!("processor time of {PACED_DELTAS} deltas of a provider at a {PACE_MILLIS} ms pace");
    paced_rows(&what, &ours, &minimal);
    Ok(())
}

fn paced_rows(what: &str, ours: &[f64], minimal: &[f64]) {
    row(what, Unit::Millis, median(ours), Some(median(minimal)), Aim::Ratio(PACED_MAX));
    let what = format!("{what}, least");
    row(&what, Unit::Millis, least(ours), Some(least(minimal)), Aim::None);
}

/// Of `rounds` answers of `provider`, of both programs in turns.
fn of_provider(provider: &Provider, rounds: usize) -> io::Result<(Vec<f64>, Vec<f64>)> {
    let (base_url, address) = (provider.base_url(), provider.address());
    let our_args = ["rpc", "--engine", "openai", "--base-url", &base_url, "--model", "model"];
    let (mut ours, mut minimal) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ours.push(of_second_run(provider, Program::Duologue, &our_args)?);
        minimal.push(of_second_run(provider, Program::MinimalLoop, &["--provider", &address])?);
    }
    Ok((ours, minimal))
}

fn of_answer(program: Program, args: &[&str], deltas: usize) -> io::Result<f64> {
    let mut child = Child::greeted(program, args)?;
    child.warm_up()?;
    let before = child.cpu_millis()?;
    child.answer(deltas)?;
    Ok(child.cpu_millis()? - before)
}

/// Of the second answer of `provider`: the first needs what is made once.
fn of_second_run(provider: &Provider, program: Program, args: &[&str]) -> io::Result<f64> {
    let mut child = Child::greeted(program, args)?;
    child.send(&submit("hi"))?;
    child.count()?;
    provider.said()?;
    let before = child.cpu_millis()?;
    child.send(&submit("again"))?;
    child.count()?;
    provider.said()?;
    Ok(child.cpu_millis()? - before)
}
