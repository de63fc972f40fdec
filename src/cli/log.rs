//! Sends logs to standard error or a file. If nothing reads the log, lines are dropped; logging
//! never blocks the conversation.

use crate::cli::{LogLevel, variables};
use crate::support::defect;
use crate::support::files;
use crate::support::line_queue::{Kind, LineQueue, Target};
use crate::support::log_targets::{EVENT, PROVIDER_WORDS};
use crate::support::stderr;
use crate::support::terminal;
use anyhow::{Context, Result};
use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::panic::PanicHookInfo;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use tokio::sync::mpsc;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::NoSubscriber;
use tracing::{Event, Metadata, Subscriber};

/// Lines that wait to be shown on a screen.
const SCREEN_LINES_MAX: usize = 256;

/// Begins to log. The log is flushed when the returned guard is dropped, if it has a file of its own.
///
/// # Errors
/// If the log file can't be opened, or the process logs already.
pub(crate) fn start(level: LogLevel, file: Option<&Path>) -> Result<Option<Flush>> {
    begin(level, file, LeftOut::Nothing)
}

/// Like [`start`], for a chat that prints lines: these say what events say. A log file has everything.
///
/// # Errors
/// As of [`start`].
pub(crate) fn start_for_lines(level: LogLevel, file: Option<&Path>) -> Result<Option<Flush>> {
    begin(level, file, if file.is_none() { LeftOut::Events } else { LeftOut::Nothing })
}

/// Like [`start`], for a node: the log has nothing of what its clients say.
///
/// # Errors
/// As of [`start`].
#[cfg(feature = "serve")]
pub(crate) fn start_without_words(level: LogLevel, file: Option<&Path>) -> Result<Option<Flush>> {
    begin(level, file, LeftOut::ProviderWords)
}

fn begin(level: LogLevel, file: Option<&Path>, left_out: LeftOut) -> Result<Option<Flush>> {
    if level == LogLevel::Off {
        tracing::subscriber::set_global_default(NoSubscriber::new())?;
        return Ok(None);
    }
    let is_terminal = file.is_none() && io::stderr().is_terminal();
    let has_colour = is_terminal && terminal::has_colour();
    let (queue, flush) = queue(file)?;
    // The progress line may occupy the line that the log is about to use.
    let clear = if is_terminal && !terminal::is_dumb() { terminal::CLEAR_LINE } else { "" };
    let lines = LogWriter { queue, clear };
    let level = filter(level);
    // Timestamps are of no use on a terminal.
    let has_time = file.is_some();
    let make = move || -> Log {
        let log = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_target(false)
            .with_ansi(has_colour)
            .with_writer(move || lines.clone());
        match has_time {
            true => Box::new(log.finish()),
            false => Box::new(log.without_time().finish()),
        }
    };
    let log = LazyLock::new(Box::new(make) as Box<dyn FnOnce() -> Log + Send>);
    tracing::subscriber::set_global_default(Late { level, left_out, log })?;
    variables::warn_of_misspelt();
    Ok(flush)
}

/// Begins to log for a chat, whose screen shows the lines. Lines that it can't take are lost.
///
/// # Errors
/// If the process logs already.
pub(crate) fn start_for_screen(level: LogLevel) -> Result<mpsc::Receiver<String>> {
    let (sender, lines) = mpsc::channel(SCREEN_LINES_MAX);
    if level == LogLevel::Off {
        tracing::subscriber::set_global_default(NoSubscriber::new())?;
        return Ok(lines);
    }
    let level = filter(level);
    let lines_for_screen = ScreenWriter(sender);
    let make = move || -> Log {
        let log = tracing_subscriber::fmt().with_max_level(level).with_target(false);
        let log = log.with_level(false).with_ansi(false).without_time();
        Box::new(log.with_writer(move || lines_for_screen.clone()).finish())
    };
    let log = LazyLock::new(Box::new(make) as Box<dyn FnOnce() -> Log + Send>);
    tracing::subscriber::set_global_default(Late { level, left_out: LeftOut::Events, log })?;
    variables::warn_of_misspelt();
    Ok(lines)
}

/// Sends log lines to a screen.
#[derive(Clone)]
struct ScreenWriter(mpsc::Sender<String>);

impl Write for ScreenWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line).trim_end().to_owned();
        // The log never holds up the chat.
        self.0.try_send(text).ok();
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The queue of the log. One of its own is flushed at the end of the process; standard error's is
/// flushed there in any case, and waiting for it twice would take twice the time.
fn queue(file: Option<&Path>) -> Result<(Arc<LineQueue>, Option<Flush>)> {
    let Some(path) = file else { return Ok((stderr::queue(), None)) };
    let file = files::open(path, OpenOptions::new().append(true))
        .with_context(|| format!("--log-file: {} can't be written", path.display()))?;
    let queue = Arc::new(LineQueue::new(Target::File(file)));
    Ok((Arc::clone(&queue), Some(Flush(queue))))
}

type Log = Box<dyn Subscriber + Send + Sync>;

/// Lines that a log does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftOut {
    Nothing,
    /// Those that only repeat an event, as events are shown elsewhere.
    Events,
    /// Those with messages of providers, which may repeat a prompt.
    #[cfg(feature = "serve")]
    ProviderWords,
}

impl LeftOut {
    fn has_provider_words(self) -> bool {
        match self {
            Self::Nothing | Self::Events => false,
            #[cfg(feature = "serve")]
            Self::ProviderWords => true,
        }
    }
}

/// The log, made when its first line comes: most runs log nothing, and its tables would be filled
/// before `hello`.
struct Late {
    level: LevelFilter,
    left_out: LeftOut,
    log: LazyLock<Log, Box<dyn FnOnce() -> Log + Send>>,
}

impl Subscriber for Late {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_left_out = match metadata.target() {
            EVENT => self.left_out == LeftOut::Events,
            PROVIDER_WORDS => self.left_out.has_provider_words(),
            // The SDK for MCP logs what servers send and their URLs, in which keys may be.
            target => target.starts_with("rmcp"),
        };
        *metadata.level() <= self.level && !is_left_out
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.log.new_span(span)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.log.record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.log.record_follows_from(span, follows);
    }

    fn event(&self, event: &Event<'_>) {
        self.log.event(event);
    }

    fn enter(&self, span: &Id) {
        self.log.enter(span);
    }

    fn exit(&self, span: &Id) {
        self.log.exit(span);
    }

    fn clone_span(&self, span: &Id) -> Id {
        self.log.clone_span(span)
    }

    fn try_close(&self, span: Id) -> bool {
        self.log.try_close(span)
    }
}

/// Writes log lines to a queue.
#[derive(Clone)]
struct LogWriter {
    queue: Arc<LineQueue>,
    /// Written before each line.
    clear: &'static str,
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.clear.is_empty() {
            self.queue.push(line, Kind::Log);
        } else {
            self.queue.push(&[self.clear.as_bytes(), line].concat(), Kind::Log);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Flushes the log when it is dropped, as far as it is being read.
#[derive(Debug)]
pub(crate) struct Flush(Arc<LineQueue>);

impl Flush {
    /// Waits, for a limited time, until everything that was logged is written.
    pub(crate) async fn flushed(&self) {
        self.0.flushed().await;
    }

    /// Gives up waiting.
    pub(crate) fn abandon(&self) {
        self.0.abandon();
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        self.0.flush();
    }
}

/// Logs a panic: it ends the task or conversation in which it happened, not the process.
pub fn defect(info: &PanicHookInfo<'_>) {
    let what = info.payload_as_str().unwrap_or("no description");
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    defect::note(format!("{what} ({place})"));
    if tracing::dispatcher::has_been_set() {
        tracing::error!(what, place, "internal error; please report it");
    } else {
        // Logging was not started.
        stderr::message(&format!("duologue: internal error; please report it: {what} ({place})\n"));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_error_is_not_waited_for_twice() {
        assert!(queue(None).expect("standard error").1.is_none());
        assert!(queue(Some(Path::new("/dev/null"))).expect("a file").1.is_some());
    }
}
