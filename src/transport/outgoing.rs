//! The output: the outbox queues frames, the writer writes batches of them, and
//! a thread watches whether the reader is still there.

use super::streams::Reader;
use super::writer::Writer;
use super::{Codec, Outbox, Unencodable};
use crate::protocol::wire::Frame;
use crate::session::Uptime;
use crate::support::fail_point::{Faults, Place};
use crate::support::threads::NoThread;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Instant;

pub(crate) struct Outgoing<C> {
    pub(crate) outbox: Outbox<C>,
    writer: Writer,
    reader: Reader,
}

impl<C: Codec> Outgoing<C> {
    /// Writes the first frames to `output`, and only then begins to watch its reader. Returns why the
    /// reader can't be watched, if it can't.
    pub(crate) fn start(
        output: File,
        codec: C,
        greeting: Vec<Frame>,
        faults: &Faults,
    ) -> (Self, Option<NoThread>) {
        let output = Arc::new(output);
        let mut outbox = Outbox::new(codec, faults.at(Place::Encode));
        for frame in greeting {
            outbox.push(Uptime::default(), frame);
        }
        let mut writer = Writer::new(Arc::clone(&output), faults.at(Place::Write));
        writer.write(outbox.take(Vec::new()));
        let (reader, unwatched) = Reader::of(output);
        (Self { outbox, writer, reader }, unwatched)
    }

    /// Queues a frame, made at `made`, if there is still a reader.
    pub(crate) fn push(&mut self, made: Uptime, frame: Frame) {
        if !self.reader.is_gone() {
            self.outbox.push(made, frame);
        }
    }

    /// Queues what `encode` has the codec write beside the frames, if there is still a reader.
    pub(crate) fn append(
        &mut self,
        encode: impl FnOnce(&mut C, &mut Vec<u8>) -> Result<(), Unencodable>,
    ) {
        if !self.reader.is_gone() {
            self.outbox.append(encode);
        }
    }

    /// Passes queued frames to the writer, as far as it is ready.
    pub(crate) fn flush(&mut self) {
        // Frames with long texts are taken one by one.
        while !self.outbox.is_empty()
            && let Some(buffer) = self.writer.ready()
        {
            let batch = self.outbox.take(buffer);
            self.writer.write(batch);
        }
    }

    /// Whether everything is written, or the reader is gone.
    pub(crate) fn is_flushed(&self) -> bool {
        let is_written = self.outbox.is_empty() && !self.writer.is_busy();
        is_written || self.reader.is_gone()
    }

    /// The deadline until which a reader with queued frames is awaited. After that it is slow: the engine is
    /// polled again, and patches are coalesced.
    pub(crate) fn awaits_reader(&self) -> Option<Instant> {
        let slow_at = self.writer.slow_at().filter(|_| self.outbox.is_behind());
        slow_at.filter(|slow_at| Instant::now() < *slow_at)
    }

    /// There is room for more events of the engine.
    pub(crate) fn has_room_for_engine(&self) -> bool {
        self.outbox.has_room_for_engine() && self.awaits_reader().is_none()
    }

    /// Waits until a batch is written; for ever if none is being written. Cancel-safe.
    ///
    /// # Errors
    /// Once the reader is gone (`BrokenPipe`), or the output can't be written. Frames are dropped
    /// from then on.
    pub(crate) async fn written(&mut self) -> io::Result<()> {
        let written = tokio::select! {
            biased;
            () = self.reader.gone() => Err(io::ErrorKind::BrokenPipe.into()),
            written = self.writer.written(), if self.writer.is_busy() => written,
        };
        if written.is_err() {
            self.reader = Reader::Gone;
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::super::Unencodable;
    use super::*;
    use crate::protocol::id::SessionId;
    use crate::protocol::wire;
    use crate::session::ExitCode;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    /// Numbers the frames, as a codec of another protocol might.
    #[derive(Default)]
    struct Numbered(u32);

    impl Codec for Numbered {
        fn frame(&mut self, _: Uptime, _: &Frame, out: &mut Vec<u8>) -> Result<(), Unencodable> {
            self.0 += 1;
            out.extend(self.0.to_be_bytes());
            Ok(())
        }

        fn end(&mut self, _: Uptime, _: ExitCode, out: &mut Vec<u8>) -> Result<(), Unencodable> {
            out.extend(b"end");
            Ok(())
        }

        fn is_stateless(&self) -> bool {
            false
        }

        fn text(&mut self, _: &str, _: &mut Vec<u8>) {}
    }

    fn frame() -> Frame {
        wire::frame(&SessionId::new("s").expect("an id"), None, wire::hello(Vec::new()))
    }

    /// Frames arrive as the codec writes them, over a socket as over a pipe, and are dropped once the reader
    /// is gone.
    #[tokio::test]
    async fn frames_have_the_form_of_the_codec() {
        let (mut input, output) = UnixStream::pair().expect("sockets");
        let output = File::from(OwnedFd::from(output));
        let greeting = vec![frame()];
        let (mut outgoing, unwatched) =
            Outgoing::start(output, Numbered::default(), greeting, &Faults::default());
        assert!(unwatched.is_none());
        outgoing.push(Uptime(1), frame());
        outgoing.outbox.end(Uptime(2), ExitCode::Ok);
        assert!(!outgoing.is_flushed());
        outgoing.flush();
        assert!(outgoing.is_flushed());
        let mut read = [0; 11];
        input.read_exact(&mut read).expect("all was written");
        assert_eq!(&read, b"\0\0\0\x01\0\0\0\x02end");
        drop(input);
        let gone = outgoing.written().await.expect_err("nobody reads");
        assert_eq!(gone.kind(), io::ErrorKind::BrokenPipe);
        outgoing.push(Uptime(3), frame());
        assert!(outgoing.is_flushed() && outgoing.outbox.is_empty());
    }
}
