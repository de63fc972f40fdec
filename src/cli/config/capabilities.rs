//! The capabilities that `hello` announces.

use crate::cli::{Mode, OnBusy, PatchFields, SessionArgs};
use crate::engine::Engine;
use crate::protocol::command::Extension;
use crate::protocol::words::capability::{
    ALWAYS, EXTRACT, LEAN_PATCHES, OF_STDIN, QUEUE, REQUEST_BYTES,
};
use crate::session::{Extraction, ExtractionReport, SessionMode};

/// What a process of this mode can do with this engine.
pub(super) fn capabilities(
    mode: Mode,
    args: &SessionArgs,
    engine: &dyn Engine,
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
    let is_reported =
        extraction.is_some_and(|extraction| extraction.report != ExtractionReport::Nothing);
    let host = Some(engine.provider()).filter(|host| !host.is_empty() && engine.name() != host);
    let host = host.map(|host| format!("host={host}"));
    let fault = engine.fault().map(|fault| format!("config-error={}", fault.message));
    let request_bytes = format!("{REQUEST_BYTES}{}", args.max_request_bytes);
    let extract = is_reported.then(|| EXTRACT.to_owned());
    let on = Extension::ALL.into_iter().filter(|extension| args.extensions.contains(extension));
    let on = on.map(|extension| extension.as_str().to_owned());
    let extensions = queue.into_iter().chain(lean).chain(extract).chain(on);
    let names = [format!("engine={}", engine.name()), format!("model={}", engine.model())];
    let settings = names.into_iter().chain(host).chain([request_bytes]).chain(fault);
    capabilities_of_nobody(mode).into_iter().chain(settings).chain(extensions).collect()
}

/// Capabilities of a process of this mode before its engine is known.
pub(super) fn capabilities_of_nobody(mode: Mode) -> Vec<String> {
    let version = format!("server-version={}", env!("CARGO_PKG_VERSION"));
    let of_stdin: &[&str] = match mode.session_mode() {
        SessionMode::Conversation => &OF_STDIN,
        SessionMode::OneShot => &[],
    };
    let words = ALWAYS.iter().chain(of_stdin).copied().map(str::to_owned);
    words.chain([version]).collect()
}
