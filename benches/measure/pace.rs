//! What the server adds to each delta of a provider that speaks at the pace of a model.

use crate::child::{Child, Program, submit};
use crate::provider::{Manner, Provider};
use crate::table::{Aim, Unit, quantile, row};
use std::io;
use std::time::{Duration, Instant};

const DELTAS: usize = 400;

const PACE: Duration = Duration::from_millis(5);

const ROUNDS: usize = 4;

/// How many times as long as through the minimal loop a delta may take, in the middle.
const MEDIAN_MAX: f64 = 1.1;

/// How much longer than through the minimal loop a delta may take, in the middle.
const ADDED_MILLIS_MAX: f64 = 0.2;

pub(crate) fn measure() -> io::Result<()> {
    let (mut ours, mut minimal) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let provider = Provider::start(Manner::Paced { deltas: DELTAS, pace: PACE })?;
        let base_url = provider.base_url();
        let args =
            ["rpc", "--engine", "openai", "--base-url", base_url.as_str(), "--model", "model"];
        ours.extend(delays(&provider, Program::Duologue, &args)?);
        let args = ["--provider", &provider.address()];
        minimal.extend(delays(&provider, Program::MinimalLoop, &args)?);
    }
    for (name, part) in [("median", 0.5), ("p99", 0.99)] {
        let what = format!("provider to client at a 5 ms pace, {name}");
        let (ours, minimal) = (quantile(&ours, part), quantile(&minimal, part));
        let aim = if part == 0.5 { Aim::Ratio(MEDIAN_MAX) } else { Aim::None };
        row(&what, Unit::Millis, ours, Some(minimal), aim);
        if part == 0.5 {
            let what = "of which the minimal loop has no part";
            row(what, Unit::Millis, ours - minimal, None, Aim::Value(ADDED_MILLIS_MAX));
        }
    }
    Ok(())
}

/// Milliseconds of each delta from the provider's write to our having its patch.
fn delays(provider: &Provider, program: Program, args: &[&str]) -> io::Result<Vec<f64>> {
    let mut child = Child::greeted(program, args)?;
    child.send(&submit("hi"))?;
    let mut heard = Vec::new();
    loop {
        let line = child.line()?;
        let now = Instant::now();
        if line.contains("\"name\":\"ChatTextPatch\"") {
            heard.push(now);
        }
        if line.contains("\"done\":{") {
            break;
        }
    }
    let said = provider.said()?;
    if heard.len() != said.len() {
        return Err(io::Error::other(format!("{} deltas, {} patches", said.len(), heard.len())));
    }
    let delay =
        |(heard, said): (Instant, Instant)| heard.duration_since(said).as_secs_f64() * 1000.0;
    Ok(heard.into_iter().zip(said).map(delay).collect())
}
