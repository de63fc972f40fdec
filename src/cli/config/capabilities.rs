//! The capabilities that `hello` announces.

use super::EXTRACT;
use crate::cli::{Mode, OnBusy, PatchFields, SessionArgs};
use crate::engine::Engine;
use crate::protocol::wire::LEAN_PATCHES;
use crate::session::{Extraction, ExtractionReport, SessionMode};

/// Capabilities of a process that reads requests, by their protocol names.
const CAPABILITIES: [&str; 7] =
    ["ui-events", "snapshot", "done", "stdin-rpc", "single-session", "multi-turn", "cancel"];

/// How many of them a single run has.
const ONE_SHOT_CAPABILITIES: usize = 3;

/// The extension that lets submits wait.
const QUEUE: &str = "queue";

/// Capabilities of a process of this mode with this engine.
pub(super) fn capabilities(
    mode: Mode,
    args: &SessionArgs,
    engine: &Engine,
    extraction: Option<&Extraction>,
) -> Vec<String> {
    let queue = match args.on_busy {
        OnBusy::Reject => None,
        OnBusy::Queue => Some(QUEUE.to_owned()),
    };
    let lean = match args.patch_fields {
        PatchFields::Full => None,
        PatchFields::Lean => Some(LEAN_PATCHES.to_owned()),
    };
    let is_told =
        extraction.is_some_and(|command_mode| command_mode.telling != ExtractionReport::Nothing);
    let settings = [
        format!("engine={}", engine.name()),
        format!("model={}", engine.model()),
        format!("max-request-bytes={}", args.max_request_bytes),
    ];
    let extract = is_told.then(|| EXTRACT.to_owned());
    let extensions = queue.into_iter().chain(lean).chain(extract);
    capabilities_of_nobody(mode).into_iter().chain(settings).chain(extensions).collect()
}

/// Capabilities of a process of this mode before its engine is known.
pub(super) fn capabilities_of_nobody(mode: Mode) -> Vec<String> {
    let version = format!("server-version={}", env!("CARGO_PKG_VERSION"));
    words(mode).iter().copied().map(str::to_owned).chain([version]).collect()
}

/// Capabilities by their protocol names.
fn words(mode: Mode) -> &'static [&'static str] {
    match mode.life() {
        SessionMode::Conversation => &CAPABILITIES,
        SessionMode::OneShot => &CAPABILITIES[..ONE_SHOT_CAPABILITIES],
    }
}
