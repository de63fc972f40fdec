//! Standard input beside a prompt that is given elsewhere: whether it is part of the prompt, and how long its first
//! byte is waited for. Standard input that was not meant for this command is neither read nor waited for, and where
//! that can't be known, the command is refused: neither a loop nor a prompt loses its input silently.

use super::text;
use crate::stdio::Unread;
use crate::support::files;
use crate::support::terminal::escape_control;
use anyhow::{Result, bail, ensure};
use rustix::event::PollFlags;
use rustix::fs::tell;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest wait for the first byte of an input, or its end, where the program that started this one holds the
/// other end, or it is not known who does: such a program may leave it open without a word.
const FIRST_BYTE_MAX: Duration = Duration::from_secs(3);

/// Longest wait for the first byte in a pipeline of a shell, whose other commands end: they may have to build a
/// project first.
const PIPELINE_MAX: Duration = Duration::from_secs(10 * 60);

/// Programs that run one other program and leave standard input to it: those of a shell, the first processes of
/// containers, and what gives a program its environment.
const WRAPPERS: [&str; 16] = [
    "timeout",
    "time",
    "setsid",
    "flock",
    "nice",
    "strace",
    "docker-init",
    "podman-init",
    "tini",
    "tini-static",
    "dumb-init",
    "catatonit",
    "bwrap",
    "unshare",
    "uv",
    "uvx",
];

/// Descriptors of a process that are looked at.
const DESCRIPTORS_MAX: usize = 4096;

/// Processes that are looked at, to find the one that writes a pipe.
const PROCESSES_MAX: usize = 32 * 1024;

/// Processes above this one that are looked at.
const ANCESTORS_MAX: usize = 64;

/// Standard input that is part of the prompt, if there is any text on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piped {
    /// A file, from its present place to its end.
    File,
    /// The output of other commands of a pipeline.
    Pipeline,
    /// A pipe or a socket that may stay open without data.
    Open,
}

/// How a person makes standard input a part of the prompt of a command that is not in doubt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) way: &'static str,
    /// What follows where it is a here-document.
    pub(super) of_here_document: &'static str,
}

/// The kinds of standard input that could have text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File { is_at_start: bool },
    Pipe,
    Socket,
}

/// What the process that started this one has of standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starter {
    /// It is that process's standard input, too: lines of a loop, refs of a git hook, the script itself, or what is
    /// piped into a function of a shell.
    Shares(Sharer),
    /// The other end of the pipe.
    Writes,
    Nothing,
    /// The system does not say.
    Unknown,
}

/// A process with the same standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sharer {
    pid: u32,
    /// Whether it has read anything from anywhere since it began, which a shell that runs a function or a group of a
    /// pipeline has not, and a loop has.
    has_read: bool,
}

/// What becomes of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Read(Piped),
    Left,
    /// Read, if another command of the pipeline writes it or it has data. It may stay open without data, if not.
    ReadAsFlows,
    /// Refused under the same condition, as both this command and that process may be meant. Else it is left.
    RefusedIfFlows(Sharer),
}

impl Piped {
    /// What `input` is; `None` if it is not to be read.
    ///
    /// # Errors
    /// If it has data, or is about to, and it can't be known whose it is.
    pub(super) fn of(input: &File, claim: Claim) -> Result<Option<Self>> {
        let Ok(about) = input.metadata() else { return Ok(None) };
        let kind = match about.file_type() {
            kind if kind.is_file() => Kind::File { is_at_start: tell(input) == Ok(0) },
            kind if kind.is_fifo() => Kind::Pipe,
            kind if kind.is_socket() => Kind::Socket,
            // A terminal, /dev/null (also where it was closed), another device, a folder.
            _ => return Ok(None),
        };
        let flows = || files::has_data(input) || (kind == Kind::Pipe && is_of_pipeline(&about));
        Ok(match decide(kind, starter(&about, std::os::unix::process::parent_id())) {
            Fate::Read(piped) => Some(piped),
            Fate::ReadAsFlows if flows() => Some(Self::Pipeline),
            Fate::ReadAsFlows => Some(Self::Open),
            Fate::RefusedIfFlows(sharer) if flows() => bail!(
                "something is piped in, and it can't be known whether it is for this command or for {}, which \
                 started it and has the same standard input, so nothing was read or asked: if it is part of the \
                 prompt, as a here-document of this command or what is piped into a function or a script, \
                 {}{}; if it is the input of a loop, write </dev/null after the command",
                name(sharer.pid),
                claim.way,
                claim.of_here_document
            ),
            Fate::RefusedIfFlows(_) | Fate::Left => None,
        })
    }

    /// Reads the text of `input`. It is empty if nothing came in time; then `unread` gets a warning with a way to wait.
    ///
    /// # Errors
    /// If it is not text, or too long; if nothing comes from a pipeline for very long.
    pub(super) fn read(self, input: File, claim: Claim, unread: &Unread) -> Result<String> {
        let came = |max| files::wait_until(&input, PollFlags::IN, Instant::now() + max);
        match self {
            Self::File => {}
            Self::Pipeline => ensure!(
                came(PIPELINE_MAX),
                "nothing came on standard input within {} s, so nothing was asked; see why the command \
                 that writes it printed nothing, or redirect standard input from /dev/null",
                PIPELINE_MAX.as_secs()
            ),
            Self::Open if came(FIRST_BYTE_MAX) => {}
            Self::Open => {
                unread.given_up(format!(
                    "nothing came on standard input within {} s, so the prompt goes without it; {} to wait for \
                     it, or redirect it from /dev/null",
                    FIRST_BYTE_MAX.as_secs(),
                    claim.way
                ));
                return Ok(String::new());
            }
        }
        text::from_stdin(input)
    }
}

fn decide(kind: Kind, starter: Starter) -> Fate {
    match (kind, starter) {
        // One that was read from before is read line by line by a loop.
        (Kind::File { is_at_start }, Starter::Shares(_) | Starter::Unknown) => match is_at_start {
            true => Fate::Read(Piped::File),
            false => Fate::Left,
        },
        (Kind::File { .. }, Starter::Writes | Starter::Nothing) => Fate::Read(Piped::File),
        (Kind::Pipe | Kind::Socket, Starter::Shares(sharer)) => match sharer.has_read {
            true => Fate::RefusedIfFlows(sharer),
            false => Fate::ReadAsFlows,
        },
        (Kind::Pipe, Starter::Nothing) => Fate::Read(Piped::Pipeline),
        (Kind::Pipe, Starter::Writes | Starter::Unknown) => Fate::Read(Piped::Open),
        (Kind::Socket, Starter::Writes | Starter::Nothing | Starter::Unknown) => {
            Fate::Read(Piped::Open)
        }
    }
}

/// What the process `pid`, or the one that started it where that is a wrapper, has of `input`; on Linux, and of
/// processes that may be looked at.
fn starter(input: &Metadata, pid: u32) -> Starter {
    let process = process(pid);
    match is_input(&process.join("fd/0"), input) {
        Ok(true) if is_wrapper(&process) => match parent(&process) {
            Some(pid) => starter(input, pid),
            None => Starter::Unknown,
        },
        Ok(true) => Starter::Shares(Sharer { pid, has_read: has_read(&process) }),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Starter::Unknown,
        Ok(false) | Err(_) => match writes(&process, input) {
            Some(true) => Starter::Writes,
            Some(false) => Starter::Nothing,
            None => Starter::Unknown,
        },
    }
}

/// Whether a process of this terminal's session writes `input`, a pipe, and is none that this one descends from: a
/// program that has started this one may hold a pipe open and never write to it.
fn is_of_pipeline(input: &Metadata) -> bool {
    let own = Path::new("/proc/self");
    let ancestors: Vec<_> = std::iter::successors(parent(own), |pid| parent(&process(*pid)))
        .take(ANCESTORS_MAX)
        .collect();
    let writes = |pid: &u32| writes(&process(*pid), input) == Some(true);
    if ancestors.iter().any(writes) {
        return false;
    }
    let session = session(own);
    let pids = Path::new("/proc").read_dir().into_iter().flatten().take(PROCESSES_MAX).flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != std::process::id() && session == self::session(&process(*pid)))
        .any(|pid| writes(&pid))
}

fn process(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

/// Whether what `path` leads to is `input`.
fn is_input(path: &Path, input: &Metadata) -> io::Result<bool> {
    path.metadata().map(|about| (about.dev(), about.ino()) == (input.dev(), input.ino()))
}

/// Whether `process` has a descriptor that writes `input`; `None` if it may not be looked at.
fn writes(process: &Path, input: &Metadata) -> Option<bool> {
    let entries = process.join("fd").read_dir().ok()?;
    let mut paths = entries.take(DESCRIPTORS_MAX).flatten().map(|entry| entry.path());
    Some(paths.any(|path| is_for_writing(&path) && is_input(&path, input).is_ok_and(|is| is)))
}

/// Whether the descriptor that `link` stands for was opened for writing (proc_pid_fd(5)).
fn is_for_writing(link: &Path) -> bool {
    const OWNER_WRITES: u32 = 0o200;
    link.symlink_metadata().is_ok_and(|about| about.mode() & OWNER_WRITES != 0)
}

/// Whether `process`, or one that it has waited for, has read anything (`rchar` of proc_pid_io(5)).
fn has_read(process: &Path) -> bool {
    let counts = std::fs::read_to_string(process.join("io")).unwrap_or_default();
    let read = counts.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.is_none_or(|bytes| bytes.trim() != "0")
}

fn is_wrapper(process: &Path) -> bool {
    WRAPPERS.contains(&command(process).as_str())
}

/// The name of the program of `process`.
fn command(process: &Path) -> String {
    let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// The process `pid`, for people.
fn name(pid: u32) -> String {
    format!("{} (process {pid})", escape_control(&command(&process(pid))))
}

/// The process that has started this one.
fn parent(process: &Path) -> Option<u32> {
    status(process, 1)
}

fn session(process: &Path) -> Option<u32> {
    status(process, 3)
}

/// The number in the field `at` after the name in parentheses (proc_pid_stat(5)).
fn status(process: &Path, at: usize) -> Option<u32> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::prepare::CLAIM;
    use std::io::Write;

    #[test]
    fn what_belongs_to_another_process_is_not_read() {
        use Starter::{Nothing, Shares, Unknown, Writes};
        let file = |is_at_start| Kind::File { is_at_start };
        let loops = Sharer { pid: 1, has_read: true };
        let function = Sharer { pid: 1, has_read: false };
        let cases = [
            (file(true), Shares(loops), Fate::Read(Piped::File)),
            (file(false), Shares(function), Fate::Left),
            (file(true), Nothing, Fate::Read(Piped::File)),
            (file(false), Nothing, Fate::Read(Piped::File)),
            (file(true), Unknown, Fate::Read(Piped::File)),
            (file(false), Unknown, Fate::Left),
            (Kind::Pipe, Shares(loops), Fate::RefusedIfFlows(loops)),
            (Kind::Pipe, Shares(function), Fate::ReadAsFlows),
            (Kind::Pipe, Nothing, Fate::Read(Piped::Pipeline)),
            (Kind::Pipe, Writes, Fate::Read(Piped::Open)),
            (Kind::Pipe, Unknown, Fate::Read(Piped::Open)),
            (Kind::Socket, Shares(loops), Fate::RefusedIfFlows(loops)),
            (Kind::Socket, Shares(function), Fate::ReadAsFlows),
            (Kind::Socket, Nothing, Fate::Read(Piped::Open)),
            (Kind::Socket, Unknown, Fate::Read(Piped::Open)),
        ];
        for (kind, starter, expected) in cases {
            assert_eq!(decide(kind, starter), expected, "{kind:?} {starter:?}");
        }
    }

    #[test]
    fn devices_and_folders_are_not_read() {
        for path in ["/dev/null", "/dev/zero", "/"] {
            let input = File::open(path).expect("it is there");
            assert_eq!(Piped::of(&input, CLAIM).expect("it is clear"), None, "{path}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_process_that_holds_the_other_end_is_known() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let reader = File::from(std::os::fd::OwnedFd::from(reader));
        let about = reader.metadata().expect("a pipe");
        let own = std::process::id();
        assert_eq!(starter(&about, own), Starter::Writes);
        writer.write_all(b"text").expect("there is room");
        drop(writer);
        assert_eq!(starter(&about, own), Starter::Nothing);
        assert_eq!(Piped::Open.read(reader, CLAIM, &Unread::default()).expect("a text"), "text");
        assert_eq!(starter(&about, 0), Starter::Unknown);
        assert_eq!(parent(Path::new("/proc/self")), Some(std::os::unix::process::parent_id()));
    }
}
