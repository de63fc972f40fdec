//! Where logs go: standard error or a file, from a thread of its own. A log that nobody reads loses
//! lines; it never holds up the conversation.

mod lines;

pub use lines::Flush;

use crate::cli::LogLevel;
use anyhow::{Context, Result};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::PanicHookInfo;
use std::path::Path;
use tracing::level_filters::LevelFilter;

/// Begins to log.
pub fn start(level: LogLevel, file: Option<&Path>) -> Result<Option<Flush>> {
    if level == LogLevel::Off {
        return Ok(None);
    }
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let has_colour = file.is_none() && io::stderr().is_terminal() && !is_plain;
    let to: Box<dyn io::Write + Send> = match file {
        None => Box::new(io::stderr()),
        Some(path) => {
            let file = open(path);
            Box::new(
                file.with_context(|| format!("--log-file: {} can't be written", path.display()))?,
            )
        }
    };
    let (lines, flush) = lines::to(to);
    let log = tracing_subscriber::fmt()
        .with_max_level(filter(level))
        .with_target(false)
        .with_ansi(has_colour)
        .with_writer(move || lines.clone());
    match file {
        // Whoever reads a terminal knows what time it is.
        None => log.without_time().init(),
        Some(_) => log.init(),
    }
    Ok(Some(flush))
}

/// Opens a log file, and makes the folders it is in.
fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // Not to wait for the reader of a named pipe: without one, opening is an error.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    OpenOptions::new().create(true).append(true).custom_flags(flags).open(path)
}

/// Logs a panic in the words of this program: it costs what it was about, not the process.
pub fn defect(info: &PanicHookInfo<'_>) {
    let what = info.payload_as_str().unwrap_or("no description");
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(what, place, "met a defect of this program; please report it");
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}
