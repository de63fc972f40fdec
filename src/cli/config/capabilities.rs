//! What `hello` says a process can do.

use super::EXTRACT;
use crate::cli::{Mode, OnBusy, PatchFields, SessionArgs};
use crate::engine::Engine;
use crate::protocol::wire::LEAN_PATCHES;
use crate::session::{Extraction, ExtractionReport, SessionMode};

/// What a process that reads requests can do, in the protocol's words.
const CAPABILITIES: [&str; 7] =
    ["ui-events", "snapshot", "done", "stdin-rpc", "single-session", "multi-turn", "cancel"];

/// How many of them a single run can do.
const ONE_SHOT_CAPABILITIES: usize = 3;

/// The extension that lets submits wait.
const QUEUE: &str = "queue";

/// What a process of this mode can do with this engine.
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

/// What a process of this mode can do before it is known who answers.
pub(super) fn capabilities_of_nobody(mode: Mode) -> Vec<String> {
    let version = format!("server-version={}", env!("CARGO_PKG_VERSION"));
    words(mode).iter().copied().map(str::to_owned).chain([version]).collect()
}

/// What a process can do, in the protocol's words.
fn words(mode: Mode) -> &'static [&'static str] {
    match mode.life() {
        SessionMode::Conversation => &CAPABILITIES,
        SessionMode::OneShot => &CAPABILITIES[..ONE_SHOT_CAPABILITIES],
    }
}
