//! A shell command of the person. It runs under a guard, which ends it with all that it has started when it is
//! stopped or the chat has ended, however that is.

use crate::tool::guard;
use crate::tui::model::CommandOutput;
use crate::tui::text::clean;
use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Bytes of the beginning of the output, and as many of its end, that are kept.
const KEPT_BYTES: usize = 32 * 1024;

/// How long the guard may take to end a command when the chat ends.
const END_TIME: Duration = Duration::from_secs(5);

/// A command that runs.
pub(super) struct Running {
    command: String,
    process: Child,
    output: ChildStdout,
    /// The guard ends the command when this is closed.
    input: Option<ChildStdin>,
    kept: Kept,
}

/// The beginning and the end of an output.
#[derive(Debug, Default)]
struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: usize,
}

impl Running {
    /// Starts `command` in a shell, without a terminal and without input. `guard` is an executable of this program.
    ///
    /// # Errors
    /// If it can't be started.
    pub(super) fn start(command: String, guard: &Path) -> io::Result<Self> {
        let mut process = Command::new(guard);
        process.arg0("duologue").args([guard::COMMAND, "/bin/sh", "-c"]);
        process.arg(format!("exec </dev/null 2>&1\n{command}"));
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = process.spawn()?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self { command, process, output, input: Some(input), kept: Kept::default() })
    }

    /// Has the command ended; its output comes all the same.
    pub(super) fn stop(&mut self) {
        self.input = None;
    }

    /// The chat ends.
    pub(super) async fn end(mut self) {
        self.stop();
        timeout(END_TIME, self.process.wait()).await.ok();
    }
}

/// Waits until the command, if there is one, has ended. Cancel-safe.
pub(super) async fn ended(running: &mut Option<Running>) -> CommandOutput {
    let Some(it) = running else { return pending().await };
    let mut bytes = [0; 8 * 1024];
    while let Ok(count @ 1..) = it.output.read(&mut bytes).await {
        it.kept.push(&bytes[..count]);
    }
    let status = it.process.wait().await;
    match running.take() {
        Some(Running { command, kept, .. }) => {
            CommandOutput { command, text: kept.text(), failure: failure(status) }
        }
        None => pending().await,
    }
}

/// How a command has ended that has not succeeded. The guard returns the number of a signal in the form of shells.
fn failure(status: io::Result<ExitStatus>) -> Option<String> {
    match status.map(|status| status.code()) {
        Ok(Some(0)) => None,
        Ok(Some(code @ 129..)) => Some(format!("ended by signal {}", code - 128)),
        Ok(Some(code)) => Some(format!("status {code}")),
        Ok(None) => Some("ended by a signal".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

impl Kept {
    fn push(&mut self, bytes: &[u8]) {
        let room = KEPT_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend(&bytes[room..]);
        let more = self.tail.len().saturating_sub(KEPT_BYTES);
        self.tail.drain(..more);
        self.left_out += more;
    }

    /// As text that does nothing to a terminal.
    fn text(mut self) -> String {
        let tail = self.tail.make_contiguous();
        let text = match self.left_out {
            0 => String::from_utf8_lossy(&[&self.head, &*tail].concat()).into_owned(),
            count => format!(
                "{}\n… {count} bytes left out …\n{}",
                String::from_utf8_lossy(&self.head),
                String::from_utf8_lossy(tail)
            ),
        };
        clean(text.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_output_both_ends_are_kept() {
        let text = |pieces: &[&[u8]]| {
            let mut kept = Kept::default();
            pieces.iter().for_each(|piece| kept.push(piece));
            kept.text()
        };
        assert_eq!(text(&[b"a\x1b[31mb", b"\x1b[2J\n\n"]), "ab␛[2J");
        let long = vec![b'x'; KEPT_BYTES];
        assert_eq!(text(&[&long, &long]).len(), 2 * KEPT_BYTES);
        let cut = text(&[b"first ", &long, &long, b" last"]);
        assert!(cut.starts_with("first x") && cut.ends_with("x last"), "{}", cut.len());
        assert!(cut.contains("\n… 11 bytes left out …\n"));
    }
}
