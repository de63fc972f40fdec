//! Where logs go: standard error or a file, from a thread of its own. A log that nobody reads loses
//! lines; it never holds up the conversation.

mod lines;

pub use lines::Flush;

use crate::cli::LogLevel;
use crate::{files, terminal};
use anyhow::{Context, Result};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::panic::PanicHookInfo;
use std::path::Path;
use tracing::level_filters::LevelFilter;

/// Begins to log.
pub fn start(level: LogLevel, file: Option<&Path>) -> Result<Option<Flush>> {
    if level == LogLevel::Off {
        return Ok(None);
    }
    let is_terminal = file.is_none() && io::stderr().is_terminal();
    let has_colour = is_terminal && terminal::has_colour();
    let to = match file {
        None => io::stderr().as_fd().try_clone_to_owned().map(File::from)?,
        Some(path) => files::open(path, OpenOptions::new().append(true))
            .with_context(|| format!("--log-file: {} can't be written", path.display()))?,
    };
    // A line that shows progress may stand where the next line of the log is to come.
    let clear = if is_terminal && !terminal::is_dumb() { terminal::CLEAR_LINE } else { "" };
    let (lines, flush) = lines::to(Box::new(Patient { file: to, clear }));
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

/// A file that is waited for where it takes nothing more: what was begun is written whole.
struct Patient {
    file: File,
    /// Written before each batch of lines.
    clear: &'static str,
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        files::write_all(&self.file, self.clear.as_bytes())?;
        files::write_all(&self.file, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
