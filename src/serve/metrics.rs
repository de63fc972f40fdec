//! What a node counts, in the text format of Prometheus
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>). Nothing in it is of one conversation or tenant.

use super::node::Node;
use axum::response::{IntoResponse, Response};
use http::header;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of a node.
pub(super) fn text(node: &Node) -> Response {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics(node)).into_response()
}

fn metrics(node: &Node) -> String {
    let counts = &node.counts;
    let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let gauges = [
        ("conversations", "Conversations in memory.", node.conversations() as u64),
        ("runs", "Runs that go on.", now(&counts.runs)),
        ("clients", "Clients that are attached.", now(&counts.clients)),
        ("draining", "1 if the node is about to end.", u64::from(node.is_draining())),
    ];
    let counters = [
        ("runs_total", "Runs that have begun.", now(&counts.runs_total)),
        ("frames_total", "Frames that conversations have shown.", now(&counts.frames_total)),
        ("attached_total", "Clients that were attached.", now(&counts.attached_total)),
        ("refused_total", "Clients that were refused.", now(&counts.refused_total)),
        ("forwarded_total", "Clients that another node serves.", now(&counts.forwarded_total)),
    ];
    let mut text = String::new();
    let all = gauges.map(|it| (it, "gauge")).into_iter().chain(counters.map(|it| (it, "counter")));
    for ((name, about, value), kind) in all {
        // Writing to a text can't fail.
        writeln!(
            text,
            "# HELP duologue_{name} {about}\n# TYPE duologue_{name} {kind}\nduologue_{name} {value}"
        )
        .ok();
    }
    text
}
