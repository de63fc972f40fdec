//! Waits for connections in a thread that is not async otherwise.

use super::error::PostgresError;
use tokio::runtime::{Builder, Runtime};

/// A runtime for one thread. Connections are only read while something is awaited.
#[derive(Debug)]
pub(super) struct Reactor(Option<Runtime>);

impl Reactor {
    pub(super) fn new() -> Result<Self, PostgresError> {
        let built = Builder::new_current_thread().enable_io().enable_time().build();
        Ok(Self(Some(built.map_err(PostgresError::Runtime)?)))
    }

    /// Waits for `work`.
    pub(super) fn run<T>(
        &self,
        work: impl Future<Output = Result<T, PostgresError>>,
    ) -> Result<T, PostgresError> {
        match &self.0 {
            Some(runtime) => runtime.block_on(work),
            None => Err(PostgresError::Runtime(std::io::ErrorKind::NotConnected.into())),
        }
    }
}

impl Drop for Reactor {
    /// A look-up of a name that goes on must not hold up the end of the process.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
