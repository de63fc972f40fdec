//! Traces of a node, as a collector of OpenTelemetry gets them.

use crate::frames::submit;
use crate::provider::{Provider, Step, says};
use crate::serve_node::{LISTEN, Node, attach, http, wait, with_provider};
use crate::server::Launch;
use data_encoding::HEXLOWER;
use prost::Message;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

// The parts of opentelemetry/proto/collector/trace/v1 and its imports that are looked at.

#[derive(Clone, PartialEq, Message)]
struct Export {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(fixed64, tag = "7")]
    start: u64,
    #[prost(fixed64, tag = "8")]
    end: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    string: Option<String>,
    #[prost(int64, optional, tag = "3")]
    int: Option<i64>,
}

fn attributes(all: &[KeyValue]) -> BTreeMap<&str, String> {
    let value = |it: &AnyValue| it.string.clone().or(it.int.map(|it| it.to_string()));
    let pair = |it: &'_ KeyValue| it.value.as_ref().and_then(value).unwrap_or_default();
    all.iter().map(|it| (it.key.as_str(), pair(it))).collect()
}

/// The spans that a collector was sent, and the bytes of all.
fn collected(bodies: &Receiver<Vec<u8>>) -> (Vec<Span>, Vec<u8>) {
    collected_of("duologue", bodies)
}

/// The same, of a service of this name.
fn collected_of(service: &str, bodies: &Receiver<Vec<u8>>) -> (Vec<Span>, Vec<u8>) {
    let (mut spans, mut raw) = (Vec::new(), Vec::new());
    while let Ok(body) = bodies.try_recv() {
        let export = Export::decode(&body[..]).expect("an export");
        for of_resource in export.resource_spans {
            let resource = of_resource.resource.expect("a resource");
            assert_eq!(attributes(&resource.attributes)["service.name"], service);
            spans.extend(of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
        raw.extend(body);
    }
    (spans, raw)
}

/// The span of the run of a request.
fn run_of<'a>(spans: &'a [Span], request: &str) -> &'a Span {
    let is_it = |span: &&Span| {
        attributes(&span.attributes).get("duologue.request.id").is_some_and(|it| it == request)
    };
    spans.iter().find(is_it).unwrap_or_else(|| panic!("{request} in {spans:#?}"))
}

/// Takes what is sent to it, request after request.
fn collect(listener: &TcpListener, to: &Sender<Vec<u8>>) {
    while let Ok((stream, _)) = listener.accept() {
        while let Some(body) = body(&stream) {
            if to.send(body).is_err() {
                return;
            }
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            (&stream).write_all(answer).expect("an answer");
        }
    }
}

fn body(stream: &TcpStream) -> Option<Vec<u8>> {
    let (mut reader, mut length, mut line) = (BufReader::new(stream), 0, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let header = line.trim_end().to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length: ") {
            length = value.parse().ok()?;
        }
        if header.is_empty() {
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            return Some(body);
        }
    }
}

fn collector() -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (to, bodies) = channel();
    thread::spawn(move || collect(&listener, &to));
    (format!("http://{address}"), bodies)
}

#[test]
fn a_run_and_its_calls_are_a_trace() {
    const PROMPT: &str = "correct horse battery staple";
    let failing = vec![Step::Status(400, Vec::new(), "{}".to_owned())];
    let provider = Provider::start(vec![says("purple monkey dishwasher"), failing]);
    let (address, bodies) = collector();
    let mut node = with_provider(&provider, &["--otlp-endpoint", &address]);
    let mut talk = node.attach("the-session");
    talk.send(submit("first", PROMPT));
    assert_eq!(talk.wait_done("first"), "ok");
    talk.send(submit("second", PROMPT));
    assert_eq!(talk.wait_done("second"), "failed");
    talk.finish();
    // What was not sent yet is sent at the end.
    node.server.signal(Signal::TERM);
    node.server.wait_end();
    let (spans, raw) = collected(&bodies);
    for (request, status, code) in [("first", "ok", 0), ("second", "failed", 2)] {
        let run = run_of(&spans, request);
        assert_eq!((run.name.as_str(), run.parent_span_id.len()), ("run", 0));
        let attributes_of_run = attributes(&run.attributes);
        assert_eq!(attributes_of_run["gen_ai.conversation.id"], "the-session");
        assert_eq!(attributes_of_run["duologue.status"], status);
        assert_eq!(run.status.as_ref().map_or(0, |it| it.code), code);
        let calls: Vec<_> =
            spans.iter().filter(|span| span.parent_span_id == run.span_id).collect();
        assert_eq!(calls.len(), 1, "{spans:#?}");
        let call = calls[0];
        assert_eq!((call.name.as_str(), &call.trace_id), ("provider call", &run.trace_id));
        assert!(run.start <= call.start && call.start <= call.end && call.end <= run.end);
        let of_call = attributes(&call.attributes);
        assert_eq!(of_call["gen_ai.request.model"], "scripted");
        assert_eq!(of_call["gen_ai.provider.name"], "openai");
        match status {
            "ok" => assert_eq!(of_call["gen_ai.usage.input_tokens"], "3"),
            _ => assert_eq!(call.status.as_ref().map(|it| it.code), Some(2)),
        }
    }
    assert_eq!(spans.len(), 4);
    let raw = String::from_utf8_lossy(&raw);
    assert!(!raw.contains(PROMPT) && !raw.contains("monkey"));
}

#[test]
fn a_run_is_a_part_of_the_span_of_its_caller() {
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    let provider = Provider::start(vec![says("one"), says("two"), says("three"), says("four")]);
    let (address, bodies) = collector();
    let mut node = with_provider(&provider, &["--otlp-endpoint", &address, "--on-busy", "queue"]);
    let named = |span: &str| format!("00-{TRACE}-{span}-01");
    // Over gRPC, a run and one that waits for it; and without a span.
    let mut talk = node.attach_in_trace(&named("b7ad6b7169203331"), attach("s"));
    for id in ["first", "second"] {
        talk.send(submit(id, "hello"));
    }
    assert_eq!(talk.wait_done("second"), "ok");
    let mut beside = node.attach("s");
    beside.send(submit("alone", "hello"));
    assert_eq!(beside.wait_done("alone"), "ok");
    // Over HTTP; what is no span counts as none.
    let url = format!("http://{}/v1/sessions/s/requests", node.address);
    let post = http().post(url).header("traceparent", named("00f067aa0ba902b7"));
    let answer = post.body(submit("posted", "hello")).send();
    let answer = wait(async { answer.await.expect("an answer").text().await.expect("a text") });
    assert!(answer.contains(r#""done":{"status":"ok"}"#), "{answer}");
    drop((talk, beside));
    node.server.signal(Signal::TERM);
    node.server.wait_end();
    let (spans, _) = collected(&bodies);
    let of_caller = |request| {
        let run = run_of(&spans, request);
        (HEXLOWER.encode(&run.trace_id) == TRACE).then(|| HEXLOWER.encode(&run.parent_span_id))
    };
    for (request, span) in [
        ("first", Some("b7ad6b7169203331")),
        ("second", Some("b7ad6b7169203331")),
        ("alone", None),
        ("posted", Some("00f067aa0ba902b7")),
    ] {
        assert_eq!(of_caller(request).as_deref(), span, "{request}");
    }
}

/// Also below the path of a collector that has a query.
#[test]
fn a_service_has_the_name_that_its_variables_give_it() {
    for (variable, value) in
        [("OTEL_SERVICE_NAME", "chat"), ("OTEL_RESOURCE_ATTRIBUTES", "a=b,service.name=chat")]
    {
        let (address, bodies) = collector();
        let endpoint = format!("{address}/otlp/?key=1");
        let args = ["serve", "--engine", "echo", "--otlp-endpoint", &endpoint];
        let launch = Launch::new(&[&args, LISTEN].concat()).env(variable, value);
        let mut node = Node::launch(launch);
        let mut talk = node.attach("s");
        talk.send(submit("r", "hello"));
        assert_eq!(talk.wait_done("r"), "ok");
        talk.finish();
        node.server.signal(Signal::TERM);
        node.server.wait_end();
        let (spans, _) = collected_of("chat", &bodies);
        assert_eq!(run_of(&spans, "r").name, "run");
    }
}

#[test]
fn a_collector_that_is_away_holds_up_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let provider = Provider::start(vec![says("hello")]);
    let mut node = with_provider(&provider, &["--otlp-endpoint", &address]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    talk.finish();
    node.server.signal(Signal::TERM);
    assert_eq!(node.server.exit_status().code(), Some(0));
}
