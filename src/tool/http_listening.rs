//! Whether a server may send answers over its stream of notifications. Some do, and answer what was posted with a
//! status alone.

use tokio::sync::watch;

/// The streams of notifications of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Listeners(watch::Sender<Streams>);

/// How many there are.
#[derive(Clone, Copy, Debug, Default)]
struct Streams {
    opening: u32,
    open: u32,
}

/// A stream of notifications, until it is dropped.
#[derive(Debug)]
pub(super) struct Listening {
    listeners: Listeners,
    is_open: bool,
}

impl Listeners {
    /// A stream that is being opened.
    pub(super) fn opening(&self) -> Listening {
        self.0.send_modify(|streams| streams.opening += 1);
        Listening { listeners: self.clone(), is_open: false }
    }

    /// Whether there is a stream, once those that are being opened are open or have failed.
    pub(super) async fn are_there(&self) -> bool {
        let mut streams = self.0.subscribe();
        let settled = streams.wait_for(|it| it.open > 0 || it.opening == 0).await;
        settled.is_ok_and(|it| it.open > 0)
    }
}

impl Listening {
    /// It is open.
    pub(super) fn opened(&mut self) {
        self.end();
        self.listeners.0.send_modify(|streams| streams.open += 1);
        self.is_open = true;
    }

    fn end(&self) {
        let end = |count: &mut u32| *count = count.saturating_sub(1);
        self.listeners.0.send_modify(|streams| match self.is_open {
            true => end(&mut streams.open),
            false => end(&mut streams.opening),
        });
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_stream_counts_once_it_is_open_until_it_ends() {
        let listeners = Listeners::default();
        let are_there = || listeners.are_there().now_or_never();
        assert_eq!(are_there(), Some(false));
        let mut first = listeners.opening();
        assert_eq!(are_there(), None);
        first.opened();
        let second = listeners.opening();
        assert_eq!(are_there(), Some(true));
        drop(first);
        assert_eq!(are_there(), None);
        drop(second);
        assert_eq!(are_there(), Some(false));
    }
}
