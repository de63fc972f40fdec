//! Starts threads. If the system can't start another one, that is an error, never a panic.

#[cfg(debug_assertions)]
use std::sync::LazyLock;
#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU32, Ordering};
use std::{io, thread};

/// The system could not start a thread.
#[derive(Debug, thiserror::Error)]
#[error("the system could not start the thread `{name}`")]
pub(crate) struct NoThread {
    name: &'static str,
    source: io::Error,
}

/// Starts a thread of this name that does `work`.
pub(crate) fn spawn(
    name: &'static str,
    work: impl FnOnce() + Send + 'static,
) -> Result<(), NoThread> {
    let spawned = planted_fault()
        .and_then(|()| thread::Builder::new().name(name.to_owned()).spawn(work).map(drop));
    spawned.map_err(|source| NoThread { name, source })
}

/// Fails from the nth thread on if a test sets `DUOLOGUE_FAULT=thread:<nth>`. Read
/// here because threads are needed before there are settings.
#[cfg(debug_assertions)]
fn planted_fault() -> io::Result<()> {
    static FIRST_TO_FAIL: LazyLock<Option<u32>> = LazyLock::new(|| {
        let plan = std::env::var("DUOLOGUE_FAULT").ok()?;
        plan.strip_prefix("thread:")?.parse().ok()
    });
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed) + 1;
    match *FIRST_TO_FAIL {
        Some(first) if number >= first => Err(rustix::io::Errno::AGAIN.into()),
        Some(_) | None => Ok(()),
    }
}

/// A release build has no planted failures.
#[cfg(not(debug_assertions))]
fn planted_fault() -> io::Result<()> {
    Ok(())
}
