//! Faults that are put between the program and its world, to show that the world sees them.

use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;

/// A fault of a kind that such programs had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    /// The store reports batches as written that it has not written.
    ForgetsBatches,
    /// The end of what was written is gone after the process was killed.
    LosesTheTail,
    /// The process that follows opens another store.
    OpensAnotherStore,
    /// A tool is called again after its call was sent.
    CallsToolsTwice,
    /// What a cancelled provider call holds is not released.
    LeaksCalls,
    /// The `done` of a request is not written.
    DropsDones,
    /// Two frames change places.
    SwapsFrames,
    /// What `Host::next` returns is lost where another event comes first.
    LosesEffects,
    /// Some bytes are lost where the pipe has no room for a whole line.
    LosesBytes,
    /// A line whose end came in another read is not handled.
    LosesSplitLines,
    /// Nobody reports the end of input.
    MissesTheEndOfInput,
    /// Deadlines are never reached.
    StopsTheClock,
}

impl Planted {
    pub(super) const ALL: [Self; 12] = [
        Self::ForgetsBatches,
        Self::LosesTheTail,
        Self::OpensAnotherStore,
        Self::CallsToolsTwice,
        Self::LeaksCalls,
        Self::DropsDones,
        Self::SwapsFrames,
        Self::LosesEffects,
        Self::LosesBytes,
        Self::LosesSplitLines,
        Self::MissesTheEndOfInput,
        Self::StopsTheClock,
    ];
}

/// Does to frames what the fault does to them.
pub(super) fn spoil(planted: Option<Planted>, frames: &mut Vec<Frame>) {
    let is_done = |frame: &Frame| matches!(frame.frame, Some(Body::Done(_)));
    match planted {
        Some(Planted::DropsDones) => frames.retain(|frame| !is_done(frame)),
        Some(Planted::SwapsFrames) => {
            if let [.., one, other] = frames.as_mut_slice() {
                std::mem::swap(one, other);
            }
        }
        Some(_) | None => {}
    }
}
