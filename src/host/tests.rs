//! What a host does while its front end has no room.

mod valid_requests;

use super::*;
use crate::engine::echo::Echo;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use std::time::Duration;
use tokio::time::timeout;

/// Longer than any limit of a run.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const DECLARE: &[u8] = br#"{"declareTools":{"tools":[{"name":"get_time","available":true,
    "mode":"TOOL_EXECUTION_MODE_FRONTEND_AUTO"}]}}"#;

fn has_event(effects: &Effects, name: &str) -> bool {
    effects.list.iter().any(|effect| match effect {
        Effect::Frame(frame) => {
            matches!(&frame.frame, Some(Body::UiEvent(event)) if event.name == name)
        }
        Effect::Usage(_) | Effect::Warning(_) | Effect::Exit(_) | Effect::Abort(_) => false,
    })
}

/// The time of a reader is not that of the client's tool: the deadline of the call comes when there is
/// room again.
#[tokio::test(start_paused = true)]
async fn without_room_no_deadline_is_reached() {
    let script = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/tool.jsonl").into());
    let (mut host, _) = Host::new(HostSettings::new(Echo { script, ..Echo::default() }));
    let declared = host.line(DECLARE);
    assert!(has_event(&declared, "FrontendToolManifestUpdated"), "{declared:?}");
    drop(host.line(br#"{"requestId":"r","submit":{"prompt":"What time is it?"}}"#));
    while !has_event(&host.next(true).await, "FrontendToolCallRequested") {}
    let waited = timeout(DAY, host.next(false)).await;
    assert!(waited.is_err(), "{waited:?}");
    let late = host.next(true).await;
    assert!(has_event(&late, "ChatToolResultReady"), "{late:?}");
}
