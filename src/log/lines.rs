//! Lines of the log on their way to a thread that writes them. The thread may wait for a reader;
//! nobody ever waits for the thread, but for a moment at the end of the process.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Lines that wait for whoever reads the log; more are lost.
const LINES_MAX: usize = 1024;

/// At the end of the process, the longest wait for a reader of what is left.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// Where the log is written to, a line at a time.
#[derive(Clone)]
pub(super) struct Lines(Arc<Queue>);

/// Writes out what was logged when it is dropped, as far as somebody reads it.
pub struct Flush(Arc<Queue>);

impl fmt::Debug for Flush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flush")
    }
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    lost: u64,
    is_writing: bool,
    /// Until the first line comes, which starts the thread.
    output: Option<Box<dyn Write + Send>>,
}

/// Lines that go to `output`.
pub(super) fn to(output: Box<dyn Write + Send>) -> (Lines, Flush) {
    let queue = Arc::<Queue>::default();
    queue.lock().output = Some(output);
    (Lines(Arc::clone(&queue)), Flush(queue))
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        if state.lines.len() < LINES_MAX {
            state.lines.push_back(line.to_vec());
        } else {
            state.lost += 1;
        }
        let output = state.output.take();
        drop(state);
        match output {
            None => self.0.changed.notify_all(),
            Some(output) => {
                let queue = Arc::clone(&self.0);
                let write = move || queue.write_to(output);
                thread::Builder::new().name("log".to_owned()).spawn(write)?;
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        let is_busy = |state: &mut State| state.is_writing || !state.lines.is_empty();
        // What nobody has read by then is lost.
        drop(self.0.changed.wait_timeout_while(self.0.lock(), FLUSH_MAX, is_busy));
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_to(&self, mut output: impl Write) {
        loop {
            let batch = self.next_batch();
            // There is no one to tell that the log can't be written.
            output.write_all(&batch).ok();
            self.lock().is_writing = false;
            self.changed.notify_all();
        }
    }

    /// All that waits, once there is something.
    fn next_batch(&self) -> Vec<u8> {
        let is_empty = |state: &mut State| state.lines.is_empty();
        let state = self.changed.wait_while(self.lock(), is_empty);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.is_writing = true;
        let lost = std::mem::take(&mut state.lost);
        let mut batch = std::mem::take(&mut state.lines).into_iter().flatten().collect::<Vec<_>>();
        drop(state);
        if lost > 0 {
            let note = format!("{lost} more lines were lost: the log was not read in time\n");
            batch.extend_from_slice(note.as_bytes());
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// An output that takes what is asked for, when it is asked for.
    struct Gate(mpsc::Receiver<()>, mpsc::Sender<String>);

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)?;
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.1.send(text).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_nobody_reads_is_lost_and_counted_and_holds_up_nothing() {
        let (open, gate) = mpsc::channel();
        let (write, written) = mpsc::channel();
        let (mut lines, flush) = to(Box::new(Gate(gate, write)));
        for _ in 0..LINES_MAX * 3 {
            lines.write_all(b"line\n").expect("never fails");
        }
        open.send(()).expect("the thread lives");
        open.send(()).expect("the thread lives");
        drop(flush);
        let texts: Vec<String> = written.try_iter().collect();
        let kept: usize = texts.iter().map(|text| text.matches("line\n").count()).sum();
        assert!((LINES_MAX..=LINES_MAX * 2).contains(&kept), "{kept}");
        let notes = texts.iter().flat_map(|text| text.lines()).filter(|line| line.contains("lost"));
        let counts = notes.filter_map(|note| note.split(' ').next()?.parse::<usize>().ok());
        assert_eq!(kept + counts.sum::<usize>(), LINES_MAX * 3);
    }

    #[test]
    fn the_end_waits_for_a_moment_only() {
        let (_open, gate) = mpsc::channel();
        let (write, _written) = mpsc::channel();
        let (mut lines, flush) = to(Box::new(Gate(gate, write)));
        lines.write_all(b"line\n").expect("never fails");
        drop(flush);
    }
}
