//! What a host does while its front end has no room, and while files are read.

mod valid_requests;

use super::*;
use crate::engine::echo::Echo;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::store::{Namespace, StorePlace};
use crate::support::test_folder::TestFolder;
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
        Effect::Usage(_)
        | Effect::ToolImages(_)
        | Effect::Warning(_)
        | Effect::Exit(_)
        | Effect::Abort(_) => false,
    })
}

/// The ends of requests among effects.
fn ends(list: &[Effect]) -> Vec<(&str, &str)> {
    let ends = list.iter().filter_map(|effect| match effect {
        Effect::Frame(frame) => match &frame.frame {
            Some(Body::Done(done)) => Some((frame.request_id.as_str(), done.status.as_str())),
            Some(_) | None => None,
        },
        Effect::Usage(_)
        | Effect::ToolImages(_)
        | Effect::Warning(_)
        | Effect::Exit(_)
        | Effect::Abort(_) => None,
    });
    ends.collect()
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

/// As after Ctrl-Z and `fg`: when the deadline is due, the result that the client wrote in time is still in its pipe.
#[tokio::test(start_paused = true)]
async fn a_result_that_came_while_the_process_stood_still_is_taken() {
    let script = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/tool.jsonl").into());
    let (mut host, _) = Host::new(HostSettings::new(Echo { script, ..Echo::default() }));
    drop(host.line(DECLARE));
    drop(host.line(br#"{"requestId":"r","submit":{"prompt":"What time is it?"}}"#));
    while !has_event(&host.next(true).await, "FrontendToolCallRequested") {}
    tokio::time::advance(DAY).await;
    let waited = timeout(Duration::ZERO, host.next(true)).await;
    assert!(waited.is_err(), "{waited:?}");
    let result = br#"{"requestId":"t","toolResult":{"toolCallId":"call_1","result":{}}}"#;
    let taken = host.line(result);
    assert!(has_event(&taken, "ChatToolResultReady"), "{taken:?}");
    assert_eq!(ends(&taken.list), [("t", "ok")]);
}

/// A request that waits while the store is being opened: nothing is done for it, and it has an answer.
#[tokio::test]
async fn a_signal_finds_requests_answered_that_wait_for_the_store() {
    let folder = TestFolder::new();
    let store = StoreSettings {
        places: vec![StorePlace::Sqlite(folder.path("store"))],
        mode: OpenMode::Either,
        folder: String::new(),
        lock_wait: Duration::ZERO,
        namespace: Namespace::default(),
    };
    let settings = HostSettings { store: Some(store), ..HostSettings::new(Echo::default()) };
    let (mut host, _) = Host::new(settings);
    let mut list = host.line(br#"{"requestId":"r","submit":{"prompt":"hello"}}"#).list;
    list.extend(host.line(br#"{"requestId":"bad","submit":"#).list);
    assert!(list.is_empty(), "{list:?}");
    list.extend(host.handle(Input::Interrupted(Signal::Terminate)).list);
    assert_eq!(ends(&list), [("r", "failed"), ("", "failed"), ("", "stopped")]);
}

/// A request that waits for the files of the one before it was read: a signal does not lose it.
#[tokio::test]
async fn a_signal_finds_every_request_answered() {
    let folder = TestFolder::new();
    let file = folder.file("notes.md", "# Notes");
    let settings = HostSettings { files: FilePolicy::Any, ..HostSettings::new(Echo::default()) };
    let (mut host, _) = Host::new(settings);
    let attach = serde_json::json!({
        "requestId": "r",
        "submit": { "prompt": "what?", "attachments": [{ "url": file }] },
    });
    let mut list = host.line(attach.to_string().as_bytes()).list;
    list.extend(host.line(br#"{"requestId":"s","snapshot":{}}"#).list);
    list.extend(host.handle(Input::Interrupted(Signal::Terminate)).list);
    assert_eq!(ends(&list), [("s", "ok"), ("r", "failed"), ("", "stopped")]);
}
