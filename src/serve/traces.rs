//! Traces by OpenTelemetry: a span for each run, and below it one for each of its provider calls and tool calls. Spans
//! have ids, names, counts and errors in a word, and no text of the conversation.

use crate::engine::provider::http::client;
use crate::host::{Observation, Observed};
use crate::protocol::id::TaskId;
use anyhow::{Result, anyhow};
use bytes::Bytes;
use http::HeaderMap;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt, TracerProvider,
};
use opentelemetry::{Context, Key, KeyValue};
use opentelemetry_http::{HeaderExtractor, HeaderInjector, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};
use std::collections::HashMap;
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle;
use url::Url;

/// Time for a connection to the collector, and for its answer.
const CONNECT_MAX: Duration = Duration::from_secs(5);
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Bytes of an answer that are read; what it says does not matter.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The name of the service, as collectors show it.
const SERVICE: &str = "duologue";

/// Attributes of a resource (OpenTelemetry's semantic conventions, Service).
const SERVICE_NAME: &str = "service.name";
const SERVICE_VERSION: &str = "service.version";

/// The span of a caller, of which a run is a part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parent(SpanContext);

impl Parent {
    /// The span that the headers name, if they do (W3C Trace Context, 3.2 and 3.3).
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let named = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
        Self(named.span().span_context().clone())
    }

    /// The headers that name the span.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let context = Context::new().with_remote_span_context(self.0.clone());
        TraceContextPropagator::new().inject_context(&context, &mut HeaderInjector(&mut headers));
        headers
    }
}

/// Sends spans to a collector.
#[derive(Debug)]
pub(super) struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Traces {
    /// Sends to the collector at `endpoint`, by the OTLP over HTTP. Needs a runtime.
    ///
    /// # Errors
    /// If the address can't be used.
    pub(super) fn new(endpoint: &Url) -> Result<Self> {
        let client = client(endpoint, CONNECT_MAX, None).map_err(|why| anyhow!("{why}"))?;
        let address = below(endpoint).ok_or_else(|| anyhow!("it is no address of HTTP"))?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Collector { client, runtime: Handle::current() })
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(address.as_str())
            .build()?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource())
            .build();
        let tracer = provider.tracer(SERVICE);
        Ok(Self { provider, tracer })
    }

    /// The spans of a conversation.
    pub(super) fn spans_for(&self, session: &str, tenant: &str) -> Spans {
        let (session, tenant) = (session.to_owned(), tenant.to_owned());
        let (tracer, run) = (self.tracer.clone(), None);
        Spans { tracer, session, tenant, parents: HashMap::new(), run, tasks: HashMap::new() }
    }

    /// Sends what has not been sent. Blocks for some seconds at most.
    pub(super) fn finish(&self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

/// The address for traces of a collector (OpenTelemetry Protocol Exporter, Endpoint URLs for OTLP/HTTP).
fn below(endpoint: &Url) -> Option<Url> {
    let mut address = endpoint.clone();
    address.path_segments_mut().ok()?.pop_if_empty().extend(["v1", "traces"]);
    Some(address)
}

/// The resource that the spans belong to: as the variables of OpenTelemetry say, or else this program.
fn resource() -> Resource {
    let found = Resource::builder().build();
    let value = |key| found.get(&Key::from_static_str(key));
    let mut builder = Resource::builder();
    // The name that the library gives a service without one.
    if value(SERVICE_NAME).is_none_or(|name| name.as_str().starts_with("unknown_service")) {
        builder = builder.with_service_name(SERVICE);
    }
    if value(SERVICE_VERSION).is_none() {
        builder = builder.with_attribute(KeyValue::new(SERVICE_VERSION, env!("CARGO_PKG_VERSION")));
    }
    builder.build()
}

/// The spans of a conversation that are open.
#[derive(Debug)]
pub(super) struct Spans {
    tracer: SdkTracer,
    session: String,
    tenant: String,
    /// Spans of the callers of requests whose runs have no span yet.
    parents: HashMap<String, Parent>,
    run: Option<Span>,
    tasks: HashMap<TaskId, Span>,
}

impl Spans {
    /// Notes a request that may run, for a caller with this span.
    pub(super) fn asked(&mut self, request: &str, parent: &Parent) {
        if parent.0.is_valid() {
            self.parents.insert(request.to_owned(), parent.clone());
        }
    }

    /// Notes that a request has its done.
    pub(super) fn answered(&mut self, request: &str) {
        self.parents.remove(request);
    }

    /// Begins the span of the run of this request.
    pub(super) fn begin(&mut self, request: &str) {
        self.end("");
        let parent = match self.parents.remove(request) {
            Some(Parent(parent)) => Context::new().with_remote_span_context(parent),
            None => Context::new(),
        };
        let mut attributes = vec![
            KeyValue::new("gen_ai.conversation.id", self.session.clone()),
            KeyValue::new("duologue.request.id", request.to_owned()),
        ];
        if !self.tenant.is_empty() {
            attributes.push(KeyValue::new("duologue.tenant", self.tenant.clone()));
        }
        let span = SpanBuilder::from_name("run").with_kind(SpanKind::Server);
        let span = span.with_attributes(attributes).with_start_time(SystemTime::now());
        self.run = Some(span.start_with_context(&self.tracer, &parent));
    }

    /// Ends the span of the run, with the status of its done.
    pub(super) fn end(&mut self, status: &str) {
        let Some(mut run) = self.run.take() else { return };
        run.set_attribute(KeyValue::new("duologue.status", status.to_owned()));
        if status == "failed" {
            run.set_status(Status::error("failed"));
        }
        run.end();
    }

    /// Notes what a task has done.
    pub(super) fn note(&mut self, observation: &Observation) {
        let Observation { task, time, what, .. } = observation;
        match what {
            Observed::CallStarted { facts, model } => {
                let attributes = [
                    KeyValue::new("gen_ai.operation.name", "chat"),
                    KeyValue::new("gen_ai.provider.name", facts.engine.to_string()),
                    KeyValue::new("gen_ai.request.model", model.clone()),
                    KeyValue::new("server.address", facts.provider.clone()),
                ];
                self.start(*task, *time, "provider call", attributes);
            }
            Observed::ToolStarted { server, tool } => {
                let attributes = [
                    KeyValue::new("gen_ai.operation.name", "execute_tool"),
                    KeyValue::new("gen_ai.tool.name", tool.clone()),
                    KeyValue::new("duologue.tool.server", server.clone()),
                ];
                self.start(*task, *time, "tool call", attributes);
            }
            Observed::FirstDelta => {
                if let Some(span) = self.tasks.get_mut(task) {
                    span.add_event_with_timestamp("first delta", *time, Vec::new());
                }
            }
            Observed::CallEnded { error, counts } => {
                let count = |name, tokens: u64| {
                    KeyValue::new(name, i64::try_from(tokens).unwrap_or(i64::MAX))
                };
                let attributes = [
                    count("gen_ai.usage.input_tokens", counts.input_tokens),
                    count("gen_ai.usage.output_tokens", counts.output_tokens),
                ];
                self.stop(*task, *time, attributes, *error);
            }
            Observed::ToolEnded { is_error } => {
                self.stop(*task, *time, [], is_error.then_some("tool_error"));
            }
            Observed::Cancelled => self.stop(*task, *time, [], Some("cancelled")),
        }
    }

    fn start<const N: usize>(
        &mut self,
        task: TaskId,
        time: SystemTime,
        name: &'static str,
        attributes: [KeyValue; N],
    ) {
        let run = self
            .run
            .as_ref()
            .map_or(SpanContext::empty_context(), |run| run.span_context().clone());
        let parent = Context::new().with_remote_span_context(run);
        let span = SpanBuilder::from_name(name).with_kind(SpanKind::Client);
        let span = span.with_attributes(attributes).with_start_time(time);
        self.tasks.insert(task, span.start_with_context(&self.tracer, &parent));
    }

    fn stop<const N: usize>(
        &mut self,
        task: TaskId,
        time: SystemTime,
        attributes: [KeyValue; N],
        error: Option<&'static str>,
    ) {
        let Some(mut span) = self.tasks.remove(&task) else { return };
        span.set_attributes(attributes);
        if let Some(error) = error {
            span.set_attribute(KeyValue::new("error.type", error));
            span.set_status(Status::error(error));
        }
        span.end_with_timestamp(time);
    }
}

/// The HTTP client of the program, which works in its runtime; spans are sent from a thread of their own.
#[derive(Debug)]
struct Collector {
    client: reqwest::Client,
    runtime: Handle,
}

#[async_trait::async_trait]
impl HttpClient for Collector {
    async fn send_bytes(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, HttpError> {
        let mut request = reqwest::Request::try_from(request)?;
        *request.timeout_mut() = Some(ANSWER_MAX);
        let client = self.client.clone();
        let answer = self.runtime.spawn(async move {
            let mut response = client.execute(request).await?;
            let (status, mut body) = (response.status(), Vec::new());
            while body.len() < ANSWER_BYTES_MAX
                && let Some(chunk) = response.chunk().await?
            {
                body.extend_from_slice(&chunk);
            }
            Ok::<_, reqwest::Error>((status, body))
        });
        let (status, body) = answer.await??;
        Ok(http::Response::builder().status(status).body(body.into())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_have_an_address_below_that_of_the_collector() {
        for (endpoint, expected) in [
            ("http://collector:4318", "http://collector:4318/v1/traces"),
            ("http://collector/otlp/", "http://collector/otlp/v1/traces"),
            ("https://collector/otlp?key=a/b", "https://collector/otlp/v1/traces?key=a/b"),
        ] {
            let endpoint = Url::parse(endpoint).expect("an address");
            assert_eq!(below(&endpoint).as_ref().map(Url::as_str), Some(expected));
        }
        assert_eq!(below(&Url::parse("mailto:a@b").expect("an address")), None);
    }
}
