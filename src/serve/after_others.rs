//! A task that goes on after the others. The frames of many conversations go over one connection: if it were polled
//! whenever one of them has a frame, each frame would be a write of its own.

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

    /// Notes the frames that are there whenever it is polled.
    #[tokio::test]
    async fn what_several_tasks_have_is_written_at_once() {
        let (wake, frames) = (Arc::new(Notify::new()), Arc::new(Mutex::new(Vec::new())));
        let writes = Arc::new(Mutex::new(Vec::new()));
        let writing = {
            let (wake, frames, writes) = (wake.clone(), frames.clone(), writes.clone());
            async move {
                loop {
                    wake.notified().await;
                    let written = std::mem::take(&mut *frames.lock().expect("frames"));
                    // It is woken once more by those that came before it went on.
                    if !written.is_empty() {
                        writes.lock().expect("writes").push(written);
                    }
                }
            }
        };
        let writer = tokio::spawn(AfterOthers::new(writing));
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        let tasks = (0..8).map(|number| {
            let (wake, frames) = (wake.clone(), frames.clone());
            tokio::spawn(async move {
                frames.lock().expect("frames").push(number);
                wake.notify_one();
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("no panic");
        }
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        writer.abort();
        assert_eq!(*writes.lock().expect("writes"), [(0..8).collect::<Vec<_>>()]);
    }
}
