//! Which process on which machine holds a lease, so that another process of the same machine can see
//! that it has ended. Where that can't be known the lease ends by itself.

use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};
use std::fs;

/// The machine since its start, the group of processes whose numbers mean the same, the number of this
/// process, and when it was started; empty if the system does not say.
pub(super) fn own() -> String {
    let pid = getpid();
    let started = started(pid);
    match (here(), started) {
        (Some(here), Some(started)) => format!("{here} {} {started}", pid.as_raw_nonzero()),
        (_, _) => String::new(),
    }
}

/// Whether the process of [`own`] text `of` ran on this machine and has ended.
pub(super) fn has_ended(of: &str) -> bool {
    let Some(here) = here() else { return false };
    let Some(process) = of.strip_prefix(&here) else { return false };
    let mut words = process.split_whitespace();
    let (Some(pid), Some(start)) = (words.next(), words.next()) else { return false };
    let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) else { return false };
    match test_kill_process(pid) {
        Err(Errno::SRCH) => true,
        // Its number may be that of another process by now.
        Ok(()) | Err(_) => {
            state_and_start(pid).is_some_and(|(state, now)| now != start || state == 'Z')
        }
    }
}

fn here() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let group = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), group.display()))
}

fn started(pid: Pid) -> Option<String> {
    state_and_start(pid).map(|(_, start)| start)
}

/// The state of a process, and the time of its start in ticks of the machine (proc(5), `stat`).
fn state_and_start(pid: Pid) -> Option<(char, String)> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name before may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_ended_only_if_that_is_certain() {
        let own = own();
        assert!(!own.is_empty() && !has_ended(&own), "{own}");
        assert!(!has_ended("") && !has_ended("another machine 1 2"));
        let here = here().expect("a machine");
        assert!(has_ended(&format!("{here} {} 1", getpid().as_raw_nonzero())), "another start");
        assert!(has_ended(&format!("{here} {} 1", i32::MAX)), "no such process");
        assert!(!has_ended(&format!("{here} x 1")) && !has_ended(&here));
    }
}
