//! How messages of gRPC are encoded: as prost does it, with buffers for the frames of an answer. Each stream has two
//! of them for as long as it is open, and a node has thousands of streams.

use prost::Message;
use std::marker::PhantomData;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::{ProstDecoder, ProstEncoder};

/// Bytes of memory for the messages of a stream in one direction. A longer message takes more while it is there.
const BUFFER_BYTES: usize = 1024;

/// Bytes of messages that are ready, after which they are sent.
const READY_BYTES: usize = 32 * 1024;

/// Messages of `T` are sent, and those of `U` received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for FrameCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for FrameCodec<T, U>
where
    T: Message + 'static,
    U: Message + Default + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = ProstDecoder<U>;

    fn encoder(&mut self) -> ProstEncoder<T> {
        ProstEncoder::new(BufferSettings::new(BUFFER_BYTES, READY_BYTES))
    }

    fn decoder(&mut self) -> ProstDecoder<U> {
        ProstDecoder::new(BufferSettings::new(BUFFER_BYTES, READY_BYTES))
    }
}
