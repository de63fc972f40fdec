//! The counters of a node, in the text format of Prometheus
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>). No metric tells of a single conversation or
//! tenant.

use super::calls::{ProviderCalls, TOKENS, ToolCalls};
use super::node::Node;
use crate::store::COUNTS;
use crate::support::histogram::Histogram;
use crate::support::lock;
use axum::response::{IntoResponse, Response};
use http::header;
use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of a node.
pub(super) fn text(node: &Node) -> Response {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics(node)).into_response()
}

#[derive(Clone, Copy)]
enum Kind {
    Gauge,
    Counter,
    Histogram,
}

/// The text so far. Writing to it can't fail.
#[derive(Default)]
struct Text(String);

impl Text {
    fn begin(&mut self, name: &str, about: &str, kind: Kind) {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        writeln!(self.0, "# HELP duologue_{name} {about}\n# TYPE duologue_{name} {kind}").ok();
    }

    fn value(&mut self, name: &str, labels: &str, value: impl Display) {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        writeln!(self.0, "duologue_{name}{labels} {value}").ok();
    }

    fn one(&mut self, name: &str, about: &str, kind: Kind, value: u64) {
        self.begin(name, about, kind);
        self.value(name, "", value);
    }

    fn histogram(&mut self, name: &str, labels: &str, histogram: &Histogram) {
        let comma = if labels.is_empty() { "" } else { "," };
        let bucket = format!("{name}_bucket");
        for (limit, within) in histogram.within() {
            self.value(&bucket, &format!("{labels}{comma}le=\"{limit}\""), within);
        }
        let count = histogram.count();
        self.value(&bucket, &format!("{labels}{comma}le=\"+Inf\""), count);
        self.value(&format!("{name}_sum"), labels, histogram.sum());
        self.value(&format!("{name}_count"), labels, count);
    }
}

fn metrics(node: &Node) -> String {
    let mut text = Text::default();
    of_node(node, &mut text);
    of_store(&mut text);
    of_calls(node, &mut text);
    text.0
}

fn now(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn of_node(node: &Node, text: &mut Text) {
    use Kind::{Counter, Gauge};
    let counts = &node.counts;
    let waiting = node.waiting();
    let all = [
        ("conversations", "Conversations in memory.", Gauge, node.conversations() as u64),
        ("runs", "Runs that go on.", Gauge, now(&counts.runs)),
        ("clients", "Clients that are attached.", Gauge, now(&counts.clients)),
        ("clients_behind", "Clients whose streams are full.", Gauge, now(&counts.behind)),
        ("requests_waiting", "Requests that wait for their conversations.", Gauge, waiting),
        (
            "turns_waiting",
            "Conversations that wait for the turn of their tenant.",
            Gauge,
            node.turns.waiting() as u64,
        ),
        ("draining", "1 if the node is about to end.", Gauge, u64::from(node.is_draining())),
        ("runs_total", "Runs that have begun.", Counter, now(&counts.runs_total)),
        (
            "frames_total",
            "Frames that conversations have shown.",
            Counter,
            now(&counts.frames_total),
        ),
        (
            "deltas_total",
            "Patches that conversations have shown.",
            Counter,
            now(&counts.deltas_total),
        ),
        ("attached_total", "Clients that were attached.", Counter, now(&counts.attached_total)),
        ("refused_total", "Clients that were refused.", Counter, now(&counts.refused_total)),
        (
            "limited_total",
            "Calls and requests that were refused because of a limit.",
            Counter,
            now(&counts.limited_total),
        ),
        (
            "unauthenticated_total",
            "Calls without a token that the node knows.",
            Counter,
            now(&counts.unauthenticated_total),
        ),
        (
            "unread_total",
            "Streams that were ended because nobody read them.",
            Counter,
            now(&counts.unread_total),
        ),
        (
            "forwarded_total",
            "Clients that another node serves.",
            Counter,
            now(&counts.forwarded_total),
        ),
    ];
    for (name, about, kind, value) in all {
        text.one(name, about, kind, value);
    }
}

fn of_store(text: &mut Text) {
    use Kind::{Counter, Gauge};
    let all = [
        ("store_waiting", "Commands that wait for the store.", Gauge, &COUNTS.waiting),
        (
            "store_batches_total",
            "Batches of conversations that were written.",
            Counter,
            &COUNTS.batches,
        ),
        (
            "store_transactions_total",
            "Transactions that wrote them.",
            Counter,
            &COUNTS.transactions,
        ),
        ("store_failed_total", "Batches that could not be written.", Counter, &COUNTS.failed),
        (
            "lease_takeovers_total",
            "Conversations that were taken from processes that had ended.",
            Counter,
            &COUNTS.takeovers,
        ),
    ];
    for (name, about, kind, count) in all {
        text.one(name, about, kind, now(count));
    }
    let name = "store_transaction_seconds";
    text.begin(name, "How long transactions took.", Kind::Histogram);
    text.histogram(name, "", &COUNTS.times);
}

/// A metric of each provider: its name, what it is, and how the calls of one provider are written.
type OfProvider = (&'static str, &'static str, Kind, fn(&mut Text, &str, &str, &ProviderCalls));

const OF_PROVIDERS: [OfProvider; 5] = [
    ("provider_calls_total", "Provider calls that have ended.", Kind::Counter, ends),
    (
        "provider_first_delta_seconds",
        "From the beginning of a call to its first delta.",
        Kind::Histogram,
        |text, name, labels, calls| text.histogram(name, labels, &calls.first_delta),
    ),
    (
        "provider_call_seconds",
        "How long calls took that were not cancelled.",
        Kind::Histogram,
        |text, name, labels, calls| text.histogram(name, labels, &calls.whole),
    ),
    ("tokens_total", "Tokens as providers count them.", Kind::Counter, tokens),
    ("cost_total", "What calls have cost, where prices are known.", Kind::Counter, costs),
];

fn ends(text: &mut Text, name: &str, labels: &str, calls: &ProviderCalls) {
    let ends =
        [("finished", &calls.finished), ("failed", &calls.failed), ("cancelled", &calls.cancelled)];
    for (end, count) in ends {
        text.value(name, &format!("{labels},end=\"{end}\""), now(count));
    }
}

fn tokens(text: &mut Text, name: &str, labels: &str, calls: &ProviderCalls) {
    for (kind, count) in TOKENS.iter().zip(&calls.tokens) {
        text.value(name, &format!("{labels},kind=\"{kind}\""), now(count));
    }
}

fn costs(text: &mut Text, name: &str, labels: &str, calls: &ProviderCalls) {
    for (currency, cost) in lock(&calls.costs).iter() {
        text.value(name, &format!("{labels},currency={currency:?}"), cost);
    }
}

fn of_calls(node: &Node, text: &mut Text) {
    let calls = &node.counts.calls;
    let providers = calls.providers();
    for (name, about, kind, show) in OF_PROVIDERS {
        text.begin(name, about, kind);
        for (provider, calls) in &providers {
            let labels = format!("engine={:?},provider={:?}", provider.engine, provider.host);
            show(text, name, &labels, calls);
        }
    }
    let ToolCalls { succeeded, failed, times } = &calls.tools;
    let name = "tool_calls_total";
    text.begin(name, "Calls of tools of servers that have ended.", Kind::Counter);
    text.value(name, "end=\"succeeded\"", now(succeeded));
    text.value(name, "end=\"failed\"", now(failed));
    let name = "tool_call_seconds";
    text.begin(name, "How long they took.", Kind::Histogram);
    text.histogram(name, "", times);
}
