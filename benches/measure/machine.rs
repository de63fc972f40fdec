//! Whether the machine has anything else to do.

use std::io;
use std::thread::{available_parallelism, sleep};
use std::time::Duration;

/// Rest before anything is measured, in which the machine can show what else it does.
const REST: Duration = Duration::from_secs(30);

/// Processors that others may use on an idle machine.
const IDLE_MAX: f64 = 0.2;

/// Waits, and says how many processors were busy meanwhile.
pub(crate) fn state() -> io::Result<String> {
    let before = Ticks::read()?;
    sleep(REST);
    let after = Ticks::read()?;
    let processors = available_parallelism()?.get();
    let busy = (after.busy - before.busy) / (after.all - before.all) * processors as f64;
    let verdict = if busy <= IDLE_MAX { "An idle machine" } else { "A **busy** machine" };
    let rest = REST.as_secs();
    Ok(format!(
        "{verdict}: others used {busy:.2} of {processors} processors in the {rest} s before."
    ))
}

/// What all processors did since the machine started, in ticks.
struct Ticks {
    busy: f64,
    all: f64,
}

impl Ticks {
    fn read() -> io::Result<Self> {
        let stat = std::fs::read_to_string("/proc/stat")?;
        let first = stat.lines().next().unwrap_or_default();
        let ticks: Vec<f64> =
            first.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
        let all = ticks.iter().sum();
        // The fourth and the fifth: nothing to do, and nothing but waiting for a disk.
        let idle: f64 = ticks.iter().skip(3).take(2).sum();
        Ok(Self { busy: all - idle, all })
    }
}
