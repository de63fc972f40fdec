//! A task that goes on after the others. The frames of many conversations go over one connection: if the connection
//! were polled whenever one of them has a frame, each frame would be a write of its own.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Goes on after the tasks that are ready when it is woken.
#[derive(Debug)]
pub(super) struct AfterOthers<F> {
    future: Pin<Box<F>>,
    has_waited: bool,
}

impl<F> AfterOthers<F> {
    pub(super) fn new(future: F) -> Self {
        Self { future: Box::pin(future), has_waited: false }
    }
}

impl<F: Future> Future for AfterOthers<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.has_waited = !self.has_waited;
        if self.has_waited {
            // A task that wakes itself is put behind all that are ready.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.future.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tokio::sync::Notify;
    use tokio::task::yield_now;

    const TASKS: usize = 8;

    /// Sizes of the writes of a task that each of the others wakes, all of which are ready at once.
    async fn writes() -> Vec<usize> {
        let (wake, frames) = (Arc::new(Notify::new()), Arc::new(Mutex::new(0)));
        let writes = Arc::new(Mutex::new(Vec::new()));
        let writing = {
            let (wake, frames, writes) = (wake.clone(), frames.clone(), writes.clone());
            async move {
                loop {
                    wake.notified().await;
                    let written = std::mem::take(&mut *frames.lock().expect("frames"));
                    // The task is woken once more by those that came before it went on.
                    if written > 0 {
                        writes.lock().expect("writes").push(written);
                    }
                }
            }
        };
        let writer = tokio::spawn(AfterOthers::new(writing));
        yield_now().await;
        yield_now().await;
        for _ in 0..TASKS {
            let (wake, frames) = (wake.clone(), frames.clone());
            tokio::spawn(async move {
                *frames.lock().expect("frames") += 1;
                wake.notify_one();
            });
        }
        while writes.lock().expect("writes").iter().sum::<usize>() < TASKS {
            yield_now().await;
        }
        writer.abort();
        writes.lock().expect("writes").clone()
    }

    /// A worker of the runtime goes on with a task that was just woken before those that have waited longer.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_several_tasks_have_is_written_at_once() {
        assert_eq!(tokio::spawn(writes()).await.expect("no panic"), [TASKS]);
    }
}
