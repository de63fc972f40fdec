//! The reader of standard output, and whether it is still there.

use super::streams;
use crate::support::threads::NoThread;
use std::fs::File;
use std::future::pending;
use std::sync::Arc;
use tokio::sync::oneshot;

pub(super) enum Reader {
    Watched(oneshot::Receiver<()>),
    /// Only a failed write shows that it is gone.
    Unwatched,
    Gone,
}

impl Reader {
    /// The reader of `output`; watched, unless the system has no thread for that.
    pub(super) fn of(output: Arc<File>) -> (Self, Option<NoThread>) {
        match streams::watch(output) {
            Ok(gone) => (Self::Watched(gone), None),
            Err(error) => (Self::Unwatched, Some(error)),
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }

    /// Waits until nobody reads any more; reported once.
    pub(super) async fn gone(&mut self) {
        if let Self::Watched(watch) = self {
            let is_gone = watch.await.is_ok();
            *self = Self::Unwatched;
            if is_gone {
                return;
            }
        }
        pending().await
    }
}
