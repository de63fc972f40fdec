//! A program under measurement, held by its pipes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{self, ChildStdin, ChildStdout, Command, Stdio};

/// Bytes read at a time where lines are only counted.
const CHUNK_BYTES: usize = 256 * 1024;

/// What is started.
#[derive(Clone, Copy)]
pub(crate) enum Program {
    Duologue,
    MinimalLoop,
    Empty,
    #[cfg(feature = "serve")]
    EchoDeltas,
}

/// A running program.
pub(crate) struct Child {
    process: process::Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    line: String,
}

/// What was counted up to a `done`.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted {
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
}

/// What was counted up to the end of the output.
#[derive(Clone, Copy, Default)]
pub(crate) struct CountedAll {
    pub(crate) lines: u64,
    /// The most memory that was seen resident, in MB (2^20 bytes).
    pub(crate) peak: f64,
}

impl Program {
    /// Where the build puts it. `DUOLOGUE` names another server to measure.
    pub(crate) fn path(self) -> io::Result<PathBuf> {
        let beside = |name: &str| -> io::Result<PathBuf> {
            // This program is `release/deps/measure-…`.
            let built = std::env::current_exe()?.with_file_name("../examples").join(name);
            Ok(built)
        };
        match self {
            Self::Duologue => Ok(std::env::var_os("DUOLOGUE")
                .map_or_else(|| env!("CARGO_BIN_EXE_duologue").into(), PathBuf::from)),
            Self::MinimalLoop => beside("minimal_loop"),
            Self::Empty => beside("empty"),
            #[cfg(feature = "serve")]
            Self::EchoDeltas => beside("echo_deltas"),
        }
    }
}

impl Child {
    /// Starts `program` with nothing in its environment.
    pub(crate) fn start(program: Program, args: &[&str]) -> io::Result<Self> {
        let path = program.path()?;
        let spawned = Command::new(&path)
            .args(args)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut process = spawned.map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        let stdin = process.stdin.take();
        let stdout = process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { process, stdin, stdout: BufReader::new(stdout), line: String::new() })
    }

    /// Starts `program` and reads its first frame.
    pub(crate) fn greeted(program: Program, args: &[&str]) -> io::Result<Self> {
        let mut child = Self::start(program, args)?;
        child.line()?;
        Ok(child)
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Writes `requests`, in one call.
    pub(crate) fn send(&mut self, requests: &str) -> io::Result<()> {
        self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(requests.as_bytes())
    }

    /// The pipe that requests go into, for a thread of its own.
    pub(crate) fn take_stdin(&mut self) -> io::Result<ChildStdin> {
        self.stdin.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// The next line.
    pub(crate) fn line(&mut self) -> io::Result<&str> {
        self.line.clear();
        match self.stdout.read_line(&mut self.line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(&self.line),
        }
    }

    /// Reads on to the line that has `mark` in it.
    pub(crate) fn line_with(&mut self, mark: &str) -> io::Result<()> {
        while !self.line()?.contains(mark) {}
        Ok(())
    }

    /// Reads on to a `done` behind which nothing comes, and only counts: a reader that is never the
    /// one to wait for.
    pub(crate) fn count(&mut self) -> io::Result<Counted> {
        let mut counted = Counted::default();
        let mut chunk = vec![0; CHUNK_BYTES];
        // The end of what was read, long enough for any `done`.
        let mut tail = Vec::new();
        loop {
            let bytes = self.stdout.read(&mut chunk)?;
            if bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let read = &chunk[..bytes];
            counted.bytes += bytes as u64;
            counted.lines += read.iter().filter(|&&byte| byte == b'\n').count() as u64;
            tail.extend_from_slice(&read[bytes.saturating_sub(1024)..]);
            tail.drain(..tail.len().saturating_sub(1024));
            if is_done(&tail) {
                return Ok(counted);
            }
        }
    }

    /// Reads on to the end of the output, and only counts.
    pub(crate) fn count_all(&mut self) -> io::Result<CountedAll> {
        let mut counted = CountedAll::default();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            // While it still has something to write, and so is there to be asked.
            let peak = self.peak()?;
            let bytes = self.stdout.read(&mut chunk)?;
            if bytes == 0 {
                return Ok(counted);
            }
            counted.peak = counted.peak.max(peak);
            counted.lines += chunk[..bytes].iter().filter(|&&byte| byte == b'\n').count() as u64;
        }
    }

    /// The most memory that was resident, in MB (2^20 bytes); nothing of a process that has ended.
    pub(crate) fn peak(&self) -> io::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        Ok(megabytes(&status, "VmHWM:").unwrap_or_default())
    }

    /// Asks for an answer of `deltas` deltas (ten or more, after a first turn that said "hi"), and
    /// counts what comes.
    pub(crate) fn answer(&mut self, deltas: usize) -> io::Result<Counted> {
        self.send(&submit(&prompt(deltas)))?;
        self.count()
    }

    /// Says "hi", so that what is needed only once is done.
    pub(crate) fn warm_up(&mut self) -> io::Result<()> {
        self.send(&submit("hi"))?;
        self.count()?;
        Ok(())
    }

    /// The processor time that its threads have used, in milliseconds. None of them must have ended.
    pub(crate) fn cpu_millis(&self) -> io::Result<f64> {
        let mut nanos = 0.0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.id()))? {
            let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
            let used = text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
            nanos += used.ok_or(io::ErrorKind::InvalidData)?;
        }
        Ok(nanos / 1_000_000.0)
    }

    /// How often its threads have waited, or had to.
    pub(crate) fn context_switches(&self) -> io::Result<f64> {
        let mut switches = 0.0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.id()))? {
            let status = std::fs::read_to_string(thread?.path().join("status"))?;
            let counts = status.lines().filter(|line| line.contains("ctxt_switches:"));
            switches += counts.filter_map(last_number).sum::<f64>();
        }
        Ok(switches)
    }

    /// The page faults that needed no disk.
    pub(crate) fn page_faults(&self) -> io::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id()))?;
        // The name, in parentheses, may have spaces.
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let faults = fields.split(' ').nth(MINOR_FAULTS).and_then(|number| number.parse().ok());
        faults.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// What `smaps_rollup` says of `key`, in MB (2^20 bytes).
    pub(crate) fn memory(&self, key: &str) -> io::Result<f64> {
        memory_of(&self.id().to_string(), key)
    }

    /// The pages of its program file that are in its memory, in MB (2^20 bytes).
    pub(crate) fn of_program(&self, program: Program) -> io::Result<f64> {
        let path = std::fs::canonicalize(program.path()?)?;
        let path = path.to_string_lossy();
        let mappings = std::fs::read_to_string(format!("/proc/{}/smaps", self.id()))?;
        let (mut is_program, mut resident) = (false, 0.0);
        for line in mappings.lines() {
            // The head of a mapping begins with its addresses, a line of it with its key.
            if line.split(' ').next().is_some_and(|word| !word.ends_with(':')) {
                is_program = line.ends_with(&*path);
            } else if is_program && line.starts_with("Rss:") {
                resident += megabytes(line, "Rss:").unwrap_or_default();
            }
        }
        Ok(resident)
    }

    /// The share of memory that is this process's, in MB (2^20 bytes).
    pub(crate) fn pss(&self) -> io::Result<f64> {
        pss_of(&self.id().to_string())
    }
}

/// The share of memory that is this program's own, in MB (2^20 bytes).
pub(crate) fn own_pss() -> io::Result<f64> {
    pss_of("self")
}

pub(crate) fn pss_of(process: &str) -> io::Result<f64> {
    memory_of(process, "Pss:")
}

fn memory_of(process: &str, key: &str) -> io::Result<f64> {
    let rollup = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    Ok(megabytes(&rollup, key).unwrap_or(f64::NAN))
}

/// Index of the minor page faults among the fields of `/proc/PID/stat` that follow the name.
const MINOR_FAULTS: usize = 7;

fn last_number(line: &str) -> Option<f64> {
    line.split_whitespace().last()?.parse().ok()
}

/// What a file of proc(5) says of `key`.
fn megabytes(text: &str, key: &str) -> Option<f64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kilobytes: f64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}

impl Drop for Child {
    fn drop(&mut self) {
        // One that has ended already is all the better.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A request for a snapshot, as a line.
pub(crate) const SNAPSHOT: &str = "{\"requestId\":\"first\",\"snapshot\":{}}\n";

/// A submit, as a line.
pub(crate) fn submit(prompt: &str) -> String {
    submit_as("req-0f6c1e2d-1b2a-4c3d-8e9f-a0b1c2d3e4f5", prompt)
}

/// A submit with this request id.
pub(crate) fn submit_as(id: &str, prompt: &str) -> String {
    format!("{{\"requestId\":\"{id}\",\"submit\":{{\"prompt\":\"{prompt}\"}}}}\n")
}

/// What the second turn is to say so that the answer has `deltas` words: nine are the frame.
pub(crate) fn prompt(deltas: usize) -> String {
    let mut prompt = "model ".repeat(deltas.saturating_sub(FRAMING_DELTAS));
    prompt.pop();
    prompt
}

/// "Turn 2. You said:", and "Before that you said: hi" behind the prompt.
const FRAMING_DELTAS: usize = 9;

fn is_done(tail: &[u8]) -> bool {
    let Some(line) = tail.strip_suffix(b"\n") else { return false };
    let start = line.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    line[start..].windows(b"\"done\":{".len()).any(|bytes| bytes == b"\"done\":{")
}
