//! What must be survived whatever the engine: a silent provider, a cancel in its submit's own write, many
//! cancels, and a partial answer that the next request has to hold.

use crate::frames::{cancel, submit};
use crate::provider::{Provider, Step};
use crate::server::{KEY, Launch};

/// An engine, and the part of a stream in its interface that says `partial words`.
const ENGINES: [(&str, &str); 5] = [
    ("openai", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"partial words\"}}]}\n\n"),
    (
        "responses",
        "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"delta\":\"partial words\"}\n\n",
    ),
    (
        "anthropic",
        "data: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{}}}\n\n\
         data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
         data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"partial words\"}}\n\n",
    ),
    (
        "gemini",
        "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"partial words\"}]}}]}\n\n",
    ),
    (
        "ollama",
        "{\"message\":{\"role\":\"assistant\",\"content\":\"partial words\"},\"done\":false}\n",
    ),
];

fn launch(engine: &str, provider: &Provider) -> Launch {
    let base_url = provider.base_url();
    let args = ["rpc", "--engine", engine, "--model", "m", "--base-url", &base_url];
    Launch::new(&args).secret("DUOLOGUE_API_KEY", KEY)
}

#[test]
fn a_silent_provider_is_cancelled_with_every_engine() {
    for (engine, _) in ENGINES {
        let provider = Provider::start(vec![vec![Step::Stall]]);
        let mut server = launch(engine, &provider).start();
        server.send(submit("r1", "hi"));
        provider.wait_request(1);
        server.send(cancel("c1"));
        assert_eq!(server.wait_done("c1"), "ok", "{engine}");
        assert_eq!(server.wait_done("r1"), "stopped", "{engine}");
        provider.wait_disconnect();
        for id in ["c2", "c3", "c4", "c5", "c6"] {
            server.send(cancel(id));
            assert_eq!(server.wait_done(id), "ok", "{engine}");
        }
        server.finish();
    }
}

#[test]
fn a_cancel_in_its_submits_own_write_stops_it_with_every_engine() {
    for (engine, _) in ENGINES {
        let provider = Provider::start(vec![vec![Step::Stall]]);
        let mut server = launch(engine, &provider).start();
        let cancels = ["c1", "c2", "c3", "c4", "c5"].map(cancel);
        server.send_together(&[&[submit("r1", "hi")][..], &cancels].concat());
        assert_eq!(server.wait_done("c1"), "ok", "{engine}");
        assert_eq!(server.wait_done("r1"), "stopped", "{engine}");
        for id in ["c2", "c3", "c4", "c5"] {
            assert_eq!(server.wait_done(id), "ok", "{engine}");
        }
        server.finish();
    }
}

#[test]
fn a_stopped_answer_is_in_the_next_request_with_every_engine() {
    for (engine, partial) in ENGINES {
        let begun = vec![Step::Bytes(partial.as_bytes().to_vec()), Step::Stall];
        let provider = Provider::start(vec![begun, vec![Step::Stall]]);
        let mut server = launch(engine, &provider).start();
        server.send(submit("r1", "say something long"));
        server.wait_event("ChatTextPatch");
        server.send(cancel("c1"));
        assert_eq!(server.wait_done("r1"), "stopped", "{engine}");
        server.send(submit("r2", "what did you say?"));
        let body = provider.wait_request(2).body.to_string();
        for part in ["say something long", "partial words", "was interrupted", "what did you say?"]
        {
            assert!(body.contains(part), "{engine}: {part} is not in {body}");
        }
        server.send(cancel("c2"));
        assert_eq!(server.wait_done("r2"), "stopped", "{engine}");
        server.finish();
    }
}
