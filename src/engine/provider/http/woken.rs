//! Whether a future asks to be polled again, for a task that polls it more often than that.

use futures_util::task::AtomicWaker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake};

/// A waker that remembers that it was woken. It wakes a task only if one has called [`Woken::wait`] since.
#[derive(Debug)]
pub(super) struct Woken {
    is_woken: AtomicBool,
    task: AtomicWaker,
}

impl Woken {
    /// One that was woken already: its future has not been polled yet.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { is_woken: AtomicBool::new(true), task: AtomicWaker::new() })
    }

    /// Whether it was woken since this was asked last.
    pub(super) fn take(&self) -> bool {
        self.is_woken.swap(false, Ordering::AcqRel)
    }

    /// Wakes the task of `context` once it is woken; at once if it is already.
    pub(super) fn wait(&self, context: &Context<'_>) {
        self.task.register(context.waker());
        if self.is_woken.load(Ordering::Acquire) {
            context.waker().wake_by_ref();
        }
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::task::Waker;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn task() -> (Arc<Count>, Waker) {
        let count = Arc::new(Count::default());
        (Arc::clone(&count), count.into())
    }

    #[test]
    fn a_future_is_polled_first_and_then_when_it_asks_for_it() {
        let woken = Woken::new();
        assert!(woken.take());
        assert!(!woken.take());
        Waker::from(Arc::clone(&woken)).wake();
        assert!(woken.take());
    }

    #[test]
    fn a_task_is_woken_once_and_only_while_it_waits() {
        let (count, waker) = task();
        let woken = Woken::new();
        let own = Waker::from(Arc::clone(&woken));
        assert!(woken.take());
        own.wake_by_ref();
        assert_eq!(count.0.load(Ordering::Relaxed), 0, "no task waits");

        assert!(woken.take());
        woken.wait(&Context::from_waker(&waker));
        own.wake_by_ref();
        own.wake_by_ref();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_was_woken_before_a_task_waits_wakes_it_at_once() {
        let (count, waker) = task();
        let woken = Woken::new();
        woken.wait(&Context::from_waker(&waker));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }
}
