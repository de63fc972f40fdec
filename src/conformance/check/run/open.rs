//! Checks what is open in a run: its segments and tool calls.

use super::tool::Tool;
use super::{Run, Segment};
use crate::conformance::check::names::{Name, Namer};
use crate::conformance::check::rule::{Report, Rule};
use crate::conformance::check::run_event::{RunEnd, SegmentEvent, ToolEvent};
use crate::conformance::check::text::Text;

/// Most open segments, or tool calls, of one run that are tracked. A run with more of them is not
/// tracked any further.
const OPEN_MAX: usize = 1024;

/// Most bytes of open text of a run that are buffered for comparison with the complete text at its end;
/// beyond that only lengths are compared. Equal to this server's limit for an answer.
const TEXT_BYTES_MAX: usize = crate::task::limits::ANSWER_BYTES_MAX;

impl Run {
    pub(super) fn close_segments(&mut self, what: &str, report: &mut Report) {
        for segment in self.segments.drain(..) {
            let message = format!("{what} ends but segment {} is open", segment.name.shown);
            report.add(Rule::LeftOpen, message);
        }
    }

    /// Whether a call waits for the client's approval, as far as it is tracked.
    pub(in crate::conformance::check) fn awaits_approval(&self, call: &Name) -> bool {
        let is_it = |tool: &Tool| tool.name == *call && tool.awaits_approval();
        self.is_too_wide || self.tools.iter().any(is_it)
    }

    pub(super) fn segment(&mut self, name: Name, event: SegmentEvent<'_>, report: &mut Report) {
        let at = self.segments.iter().position(|open| open.name == name);
        let shown = format!("segment {}", name.shown);
        match (event, at) {
            (SegmentEvent::Started, Some(_)) => {
                report.add(Rule::EventOrder, format!("{shown} starts twice"));
            }
            (SegmentEvent::Started, None) => {
                self.need_call("a segment", report);
                if self.has_room_for(self.segments.len()) {
                    self.segments.push(Segment { name, text: Text::default() });
                }
            }
            (SegmentEvent::Patched(patch), Some(at)) => {
                self.segments[at].text.patch(&shown, patch, report);
                self.limit_text();
            }
            (SegmentEvent::Finished { text, status, .. }, Some(at)) => {
                let open = self.segments.remove(at);
                open.text.finish(&shown, text, report);
                if let Some(end) = RunEnd::of_cut(status) {
                    self.segment_end = Some(end);
                    self.expected_end = Some(end);
                }
            }
            (SegmentEvent::Patched(_) | SegmentEvent::Finished { .. }, None) => {
                self.not_open(&shown, report);
            }
        }
    }

    pub(super) fn tool(
        &mut self,
        name: Name,
        event: ToolEvent<'_>,
        namer: &Namer,
        report: &mut Report,
    ) {
        let at = self.tools.iter().position(|open| open.name == name);
        let shown = format!("tool call {}", name.shown);
        match (event, at) {
            (ToolEvent::Started, Some(_)) => {
                report.add(Rule::EventOrder, format!("{shown} starts twice"));
            }
            (ToolEvent::Started, None) => {
                self.need_call("a tool call", report);
                if self.has_room_for(self.tools.len()) {
                    self.tools.push(Tool::begin(name));
                }
            }
            (ToolEvent::Finished, Some(at)) => {
                let open = self.tools.remove(at);
                if !open.may_finish() {
                    let message = format!("{shown} finishes without a result");
                    report.add(Rule::EventOrder, message);
                }
            }
            (event, Some(at)) => {
                self.tools[at].event(&shown, event, namer, report);
                self.limit_text();
            }
            (_, None) => self.not_open(&shown, report),
        }
    }

    fn limit_text(&mut self) {
        let texts = || self.segments.iter().map(|open| &open.text);
        let inputs = || self.tools.iter().map(|open| &open.input);
        let bytes: usize = texts().chain(inputs()).map(Text::buffered_bytes).sum();
        if bytes > TEXT_BYTES_MAX {
            self.segments.iter_mut().for_each(|open| open.text.forget());
            self.tools.iter_mut().for_each(|open| open.input.forget());
        }
    }

    fn not_open(&self, shown: &str, report: &mut Report) {
        if !self.is_too_wide {
            report.add(Rule::EventOrder, format!("{shown} is not open"));
        }
    }

    fn has_room_for(&mut self, open: usize) -> bool {
        self.is_too_wide |= open >= OPEN_MAX;
        !self.is_too_wide
    }
}
