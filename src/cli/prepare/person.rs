//! A person at the terminal of a single run: what the answer looks like there, who is asked about tool calls, and
//! the file that gets the last message.

use super::Terminal;
use crate::cli::{Background, BackgroundArgs, Mode, OutputArgs};
use crate::stdio::{Drawing, TerminalApprovals};
use crate::support::files::{NAME_BYTES_MAX, check_replaceable, target_of};
use crate::support::terminal::{has_colour, has_links, is_dumb};
use crate::tui::{AnswerLines, Colours, Look, Theme, Tone};
use anyhow::{Result, anyhow, ensure};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The folder below `/dev` that has files: `tmpfs` of Linux.
const SHARED_MEMORY: &str = "/dev/shm";

/// What a single run has of a person, beside what its output is.
#[derive(Debug, Default)]
pub(crate) struct Person {
    /// Standard output is a terminal.
    pub(crate) is_shown: bool,
    /// Standard output is a pipe, whose reader may write to the person's terminal.
    pub(crate) is_piped: bool,
    /// A person is at a terminal, and sees what is logged.
    pub(crate) is_attended: bool,
    /// Draws the answer as a chat does.
    pub(crate) drawing: Option<Box<dyn Drawing>>,
    /// Asks about tool calls.
    pub(crate) asking: Option<TerminalApprovals>,
    /// The file for the last message.
    pub(crate) saved: Option<PathBuf>,
}

impl Person {
    /// The person at `terminal`, whose standard output is `output`.
    ///
    /// # Errors
    /// If the last message can't be saved.
    pub(super) fn of(
        args: &OutputArgs,
        background: BackgroundArgs,
        terminal: &Terminal,
        output: &File,
    ) -> Result<Self> {
        let mode = args.mode()?;
        let (is_shown, is_attended) = (terminal.is_shown, terminal.is_attended());
        let is_drawn = mode == Mode::Text && is_shown && !args.raw && !is_dumb();
        let drawing = is_drawn.then(|| output.try_clone()).transpose()?;
        let (tone, colours) = (tone(background.background), colours());
        let look = || Look::new(Theme { tone, colours, has_links: has_links() });
        let drawing = drawing.map(|output| Box::new(AnswerLines::new(output, look())) as Box<_>);
        let is_piped = output.metadata().is_ok_and(|about| {
            let kind = about.file_type();
            kind.is_fifo() || kind.is_socket()
        });
        let asking = if mode.is_protocol() { None } else { asking(terminal, output, mode)? };
        let saved = args.save.as_deref().map(|path| savable(path, mode)).transpose()?;
        Ok(Self { is_shown, is_piped, is_attended, drawing, asking, saved })
    }
}

/// Who is asked: somebody who types at a terminal and reads one.
fn asking(terminal: &Terminal, output: &File, mode: Mode) -> Result<Option<TerminalApprovals>> {
    if !terminal.is_typed {
        return Ok(None);
    }
    let reads = match (io::stderr().is_terminal(), terminal.is_shown) {
        (true, _) => File::from(io::stderr().as_fd().try_clone_to_owned()?),
        (false, true) => output.try_clone()?,
        (false, false) => return Ok(None),
    };
    let is_answer_shown = mode == Mode::Text && terminal.is_shown;
    Ok(Some(TerminalApprovals::new(terminal.stdin.try_clone()?, reads, is_answer_shown)))
}

/// The file that `--save` names. Looked at before the model is asked.
fn savable(path: &Path, mode: Mode) -> Result<PathBuf> {
    let shown = path.display();
    ensure!(
        !mode.reads_stdin(),
        "--save is for a single run, and this is a conversation; a client has the text in its frames"
    );
    ensure!(
        path != Path::new("-"),
        "--save: {shown} is no regular file; the answer is on standard output without --save, and ./- is a \
         file of that name"
    );
    let is_of_devices = path.starts_with("/dev") && !path.starts_with(SHARED_MEMORY);
    ensure!(
        !is_of_devices && !path.starts_with("/proc"),
        "--save: {shown} is no regular file; the answer is on standard output without --save"
    );
    let unwritable = |error: io::Error| anyhow!("--save: {shown} can't be written: {error}");
    // A link stays, and what it names is replaced.
    let path = target_of(path).map_err(unwritable)?;
    let ends_as_folder =
        [&b"/"[..], b"/."].iter().any(|it| path.as_os_str().as_bytes().ends_with(it));
    let may_be_file = path.file_name().is_some() && !ends_as_folder;
    ensure!(
        may_be_file && path.metadata().map_or(true, |about| about.is_file()),
        "--save: {shown} is no regular file; name one, or redirect standard output"
    );
    let bytes = path.file_name().map_or(0, |name| name.len());
    ensure!(
        bytes <= NAME_BYTES_MAX,
        "--save: no file can have a name of {bytes} bytes; choose one of at most {NAME_BYTES_MAX}"
    );
    check_replaceable(&path).map_err(unwritable)?;
    Ok(path)
}

/// The colours that the terminal has, as far as its variables say it.
pub(super) fn colours() -> Colours {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    Colours::of_terminal(&variable("TERM"), &variable("COLORTERM"), !has_colour())
}

/// What the background of the terminal is.
pub(super) fn tone(background: Background) -> Tone {
    match background {
        Background::Dark => Tone::Dark,
        Background::Light => Tone::Light,
        Background::Auto => {
            // The text's colour and the background's, as rxvt and others set it: 7 and 15 are light.
            let colours = std::env::var("COLORFGBG").unwrap_or_default();
            match colours.rsplit(';').next() {
                Some("7" | "15") => Tone::Light,
                Some(_) | None => Tone::Dark,
            }
        }
    }
}
