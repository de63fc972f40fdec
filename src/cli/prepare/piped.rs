//! Standard input beside a prompt that is given elsewhere: whether it is part of the prompt, and how long its first
//! byte is waited for. Standard input that was not meant for this command is neither read nor waited for.

use super::text;
use crate::support::files;
use anyhow::{Result, ensure};
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

/// The same for a pipeline of a shell, whose other commands end: they may have to build a project first.
const PIPELINE_MAX: Duration = Duration::from_secs(10 * 60);

/// Programs that run one other program and leave standard input to it.
const WRAPPERS: [&str; 6] = ["timeout", "time", "setsid", "flock", "nice", "strace"];

/// Descriptors of the process that started this one that are looked at.
const DESCRIPTORS_MAX: usize = 4096;

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
    /// It is that process's standard input, too: lines of a loop, refs of a git hook, the script itself.
    Reads,
    /// The other end of the pipe.
    Writes,
    Nothing,
    /// The system does not say.
    Unknown,
}

impl Piped {
    /// What `input` is; `None` if it is not to be read.
    pub(super) fn of(input: &File) -> Option<Self> {
        let about = input.metadata().ok()?;
        let kind = match about.file_type() {
            kind if kind.is_file() => Kind::File { is_at_start: tell(input) == Ok(0) },
            kind if kind.is_fifo() => Kind::Pipe,
            kind if kind.is_socket() => Kind::Socket,
            // A terminal, /dev/null (also where it was closed), another device, a folder.
            _ => return None,
        };
        decide(kind, starter(&about, std::os::unix::process::parent_id()))
    }

    /// Its text. Empty if nothing came in time.
    ///
    /// # Errors
    /// If it is not text, or too long; if nothing comes from a pipeline for very long.
    pub(super) fn read(self, input: File) -> Result<String> {
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
                tracing::warn!(
                    "nothing came on standard input within {} s, so the prompt goes without it; write - \
                     after the prompt to wait for it, or redirect it from /dev/null",
                    FIRST_BYTE_MAX.as_secs()
                );
                return Ok(String::new());
            }
        }
        text::from_stdin(input)
    }
}

fn decide(kind: Kind, starter: Starter) -> Option<Piped> {
    match (kind, starter) {
        (_, Starter::Reads) => None,
        (Kind::File { .. }, Starter::Writes | Starter::Nothing) => Some(Piped::File),
        // One that was read from before is read line by line by a loop.
        (Kind::File { is_at_start }, Starter::Unknown) => is_at_start.then_some(Piped::File),
        (Kind::Pipe, Starter::Nothing) => Some(Piped::Pipeline),
        (Kind::Pipe, Starter::Writes | Starter::Unknown) | (Kind::Socket, _) => Some(Piped::Open),
    }
}

/// What the process `pid`, or the one that started it where that is a wrapper, has of `input`; on Linux, and of
/// processes that may be looked at.
fn starter(input: &Metadata, pid: u32) -> Starter {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let is_input = |path: &Path| {
        path.metadata().map(|about| (about.dev(), about.ino()) == (input.dev(), input.ino()))
    };
    match is_input(&process.join("fd/0")) {
        Ok(true) if is_wrapper(&process) => match parent(&process) {
            Some(pid) => starter(input, pid),
            None => Starter::Unknown,
        },
        Ok(true) => Starter::Reads,
        Err(error) if error.kind() != io::ErrorKind::NotFound => Starter::Unknown,
        Ok(false) | Err(_) => match process.join("fd").read_dir() {
            Ok(entries) => {
                let mut paths = entries.take(DESCRIPTORS_MAX).flatten().map(|entry| entry.path());
                let writes =
                    paths.any(|path| is_for_writing(&path) && is_input(&path).is_ok_and(|is| is));
                if writes { Starter::Writes } else { Starter::Nothing }
            }
            Err(_) => Starter::Unknown,
        },
    }
}

/// Whether the descriptor that `link` stands for was opened for writing (proc_pid_fd(5)).
fn is_for_writing(link: &Path) -> bool {
    const OWNER_WRITES: u32 = 0o200;
    link.symlink_metadata().is_ok_and(|about| about.mode() & OWNER_WRITES != 0)
}

fn is_wrapper(process: &Path) -> bool {
    let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
    WRAPPERS.contains(&name.trim_end())
}

/// The process that has started this one (proc_pid_stat(5): after the name in parentheses, the second field).
fn parent(process: &Path) -> Option<u32> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_belongs_to_another_process_is_not_read() {
        use Starter::{Nothing, Reads, Unknown, Writes};
        let file = |is_at_start| Kind::File { is_at_start };
        for kind in [file(true), file(false), Kind::Pipe, Kind::Socket] {
            assert_eq!(decide(kind, Reads), None, "{kind:?}");
        }
        let cases = [
            (file(true), Nothing, Some(Piped::File)),
            (file(false), Nothing, Some(Piped::File)),
            (file(true), Unknown, Some(Piped::File)),
            (file(false), Unknown, None),
            (Kind::Pipe, Nothing, Some(Piped::Pipeline)),
            (Kind::Pipe, Writes, Some(Piped::Open)),
            (Kind::Pipe, Unknown, Some(Piped::Open)),
            (Kind::Socket, Nothing, Some(Piped::Open)),
            (Kind::Socket, Unknown, Some(Piped::Open)),
        ];
        for (kind, starter, expected) in cases {
            assert_eq!(decide(kind, starter), expected, "{kind:?} {starter:?}");
        }
    }

    #[test]
    fn devices_and_folders_are_not_read() {
        for path in ["/dev/null", "/dev/zero", "/"] {
            assert_eq!(Piped::of(&File::open(path).expect("it is there")), None, "{path}");
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
        assert_eq!(Piped::Open.read(reader).expect("a text"), "text");
        assert_eq!(starter(&about, 0), Starter::Unknown);
        assert_eq!(parent(Path::new("/proc/self")), Some(std::os::unix::process::parent_id()));
    }
}
