//! Runs the program that prints a key, and ends it with all that it started.

use super::{KEY_BYTES_MAX, NoKey, SettingNames, first_line};
use crate::support::secret::Secret;
use crate::support::terminal::escape_control;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

/// Time limit for the program. It may wait for a person: for a password, or a touch of a device.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// Time limit for the outputs after the program has ended: its child processes may hold them open.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of the program's standard error that are shown.
const SHOWN_BYTES_MAX: usize = 2 * 1024;

/// A shorter line that the program printed may be any word, and is left where standard error has it.
const SECRET_BYTES_MIN: usize = 6;

/// The key that a program prints.
pub(super) async fn printed(
    words: &[String],
    limit: Duration,
    names: &SettingNames,
) -> Result<Secret, NoKey> {
    let program = words.first().map_or("", String::as_str);
    let fail = |why: &str| {
        NoKey::new(format!(
            "the key can't be had: the key command `{}` {why}; nothing was sent to the provider. \
             Run the command in a terminal, and correct it or {}",
            escape_control(program),
            names.key_command
        ))
    };
    let mut running = Running::start(words).map_err(|error| {
        match error.kind() == std::io::ErrorKind::NotFound {
            true => fail("was not found"),
            false => fail(&format!("could not be started ({error})")),
        }
    })?;
    let Ok(ended) = timeout(limit, running.end()).await else {
        return Err(fail(&format!("printed no key within {} s", limit.as_secs())));
    };
    let Ended { status, stdout, stderr } =
        ended.map_err(|error| fail(&format!("could not be read ({error})")))?;
    if !status.success() {
        return Err(fail(&format!("failed ({status}){}", complaint(&stdout, &stderr))));
    }
    if stdout.len() > KEY_BYTES_MAX {
        return Err(fail(&format!("printed more than {KEY_BYTES_MAX} bytes")));
    }
    first_line(&stdout).map_err(|()| fail(&format!("printed no key{}", complaint(&[], &stderr))))
}

/// A program that prints a key. Dropped, it ends with all of its process group.
pub(super) struct Running {
    child: Child,
    group: Option<Pid>,
}

/// The outputs and the status of a program.
pub(super) struct Ended {
    pub(super) status: std::process::ExitStatus,
    pub(super) stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Running {
    pub(super) fn start(words: &[String]) -> std::io::Result<Self> {
        let (program, args) = words.split_first().ok_or(std::io::ErrorKind::NotFound)?;
        let mut command = Command::new(program);
        command.args(args).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Self { child, group })
    }

    /// Waits for its end, and for the end of its outputs, which what it started may delay: then what
    /// has come counts. Its process group is ended in any case.
    pub(super) async fn end(&mut self) -> std::io::Result<Ended> {
        let (out, err) = (self.child.stdout.take(), self.child.stderr.take());
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        {
            let reading = async {
                tokio::try_join!(
                    collect(out, KEY_BYTES_MAX + 1, &mut stdout),
                    collect(err, SHOWN_BYTES_MAX, &mut stderr)
                )
            };
            let mut reading = pin!(reading);
            let read = tokio::select! {
                read = &mut reading => Some(read),
                exited = self.exited() => {
                    exited?;
                    timeout(OUTPUT_TIMEOUT, &mut reading).await.ok()
                }
            };
            read.transpose()?;
        }
        self.exited().await?;
        // Before the program is waited for, so that its number is still that of its group.
        self.end_group();
        Ok(Ended { status: self.child.wait().await?, stdout, stderr })
    }

    /// Waits until the program has ended, and leaves its number with it.
    async fn exited(&self) -> std::io::Result<()> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let mut signals = signal(SignalKind::child())?;
        while let Some(group) = self.group
            && waitid(WaitId::Pid(group), options)?.is_none()
        {
            signals.recv().await;
        }
        Ok(())
    }

    fn end_group(&self) {
        // The number may belong to another process once the program has been waited for.
        if let (Some(group), Some(_)) = (self.group, self.child.id()) {
            // The group may have ended by itself.
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end_group();
    }
}

/// Reads the first `bytes_max` bytes of `pipe` into `bytes`; the rest is read and dropped, so that its
/// writer can end.
async fn collect(
    pipe: Option<impl AsyncRead + Unpin>,
    bytes_max: usize,
    bytes: &mut Vec<u8>,
) -> std::io::Result<()> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    (&mut pipe).take(u64::try_from(bytes_max).unwrap_or(u64::MAX)).read_to_end(bytes).await?;
    tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    Ok(())
}

/// The text of `stderr` in one line, without the lines that it printed.
fn complaint(stdout: &[u8], stderr: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(stderr).trim().to_owned();
    let printed = String::from_utf8_lossy(stdout).into_owned();
    let lines = printed.lines().map(str::trim).filter(|line| line.len() >= SECRET_BYTES_MIN);
    for secret in lines.filter_map(Secret::new) {
        text = secret.redact_cut(&text);
    }
    if text.is_empty() { text } else { format!(": {}", escape_control(&text)) }
}
