//! Standard error. Everything that the process writes there goes through one queue, so that a
//! reader that does not read, or a stopped terminal, never blocks the process.

use crate::support::line_queue::{Kind, LineQueue, Target};
use std::sync::{Arc, LazyLock};

static QUEUE: LazyLock<Arc<LineQueue>> = LazyLock::new(|| Arc::new(LineQueue::new(Target::Stderr)));

/// The queue of the lines that go to standard error.
pub(crate) fn queue() -> Arc<LineQueue> {
    Arc::clone(&QUEUE)
}

/// Writes a message.
pub(crate) fn message(text: &str) {
    QUEUE.push(text.as_bytes(), Kind::Message);
}

/// Draws a state of the progress line, unless an earlier one is still queued.
pub(crate) fn picture(text: &str) {
    QUEUE.push(text.as_bytes(), Kind::Picture);
}

/// Waits for a limited time until everything is written. Called at the end of the process.
pub fn flush() {
    QUEUE.flush();
}
