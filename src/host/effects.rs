//! The effects of an input, for the front end.

use crate::conversation::event::Usage;
use crate::protocol::attachment::Attachment;
use crate::protocol::wire::Frame;
use crate::session::{ExitCode, Uptime};
use std::sync::Arc;

/// The effects of an input, which the front end performs in this order.
#[must_use]
#[derive(Debug, Default)]
pub struct Effects {
    /// When the effects were decided.
    pub at: Uptime,
    /// The effects, in order.
    pub list: Vec<Effect>,
}

/// Something that a front end must do.
#[derive(Debug)]
pub enum Effect {
    /// Write this frame.
    Frame(Frame),
    /// Note the token counts of the active run. Frames have no field for some of them.
    Usage(Usage),
    /// Note the images of the tool result that the next frame reports. Frames have its text alone.
    ToolImages(Arc<[Attachment]>),
    /// Report what is missing, though the conversation goes on: the frames of a single run have no
    /// place for it.
    Warning(CodedWarning),
    /// End once the reader has all frames. No frame follows.
    Exit(ExitCode),
    /// End now, whether the reader has all frames or not.
    Abort(ExitCode),
}

/// A warning about a conversation that continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodedWarning {
    /// `store_failed`: nothing more is stored. `store_degraded`: not everything could be read.
    /// `tool_server_unavailable`: the tools of a server can't be called. `provider_changed`: another
    /// provider gets a stored conversation. `model_changed`: another model goes on with it. Front ends have more of
    /// their own.
    pub code: &'static str,
    /// The message for people.
    pub message: String,
}
