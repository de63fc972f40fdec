//! Failures of a response that began with success: it stalls, ends too early, or can't be decoded.

use super::{DETAIL_CHARS_MAX, Elapsed, Failure, Failures, QUOTE_CHARS_MAX, SettingNames};
use crate::engine::ErrorClass;
use crate::engine::provider::body::{BodyEnd, Ignored, TooLong, WHOLE_BYTES_MAX};
use crate::engine::provider::retry::Retry;
use crate::engine::provider::sse::EVENT_BYTES_MAX;

/// The name of no encoding (RFC 9110, section 12.5.3).
pub(in crate::engine) const IDENTITY: &str = "identity";

/// Bytes of ignored data that an error quotes.
const IGNORED_BYTES_MAX: usize = 200;

impl Failures {
    /// A time limit ran out.
    pub(in crate::engine) fn timeout(&self, elapsed: Elapsed) -> Failure {
        let base = self.base();
        let (message, detail) = match elapsed {
            Elapsed::Idle(limit) => (
                format!(
                    "{base} sent nothing for {limit:?}: send the prompt again, or raise {}",
                    self.names.idle_timeout
                ),
                format!("no byte for {limit:?}"),
            ),
            Elapsed::Total(limit) => (
                format!(
                    "the answer of {base} was not complete after {limit:?}: ask for less, or raise {}",
                    self.names.total_timeout
                ),
                format!("the call took {limit:?}"),
            ),
        };
        Failure::new(ErrorClass::Timeout, message, detail)
    }

    /// The answer has a status of success and no content.
    pub(in crate::engine) fn empty(&self) -> Failure {
        let SettingNames { base_url: base_url_source, .. } = self.names;
        let what = format!("sent an empty answer: check {base_url_source}");
        self.malformed(&what, "the body is empty")
    }

    /// The answer has content, but none that belongs to the provider's `interface`.
    pub(in crate::engine) fn not_an_answer(
        &self,
        interface: &str,
        content_type: &str,
        ignored: &Ignored,
    ) -> Failure {
        let SettingNames { base_url: base_url_source, .. } = self.names;
        let content_type = self.quote(content_type, QUOTE_CHARS_MAX);
        let detail = format!("no event in a body of type {content_type:?}");
        let what = format!(
            "sent something that is no answer of a {interface} server: check {base_url_source}{}",
            self.path_hint()
        );
        self.malformed(&what, detail + &self.ignored(ignored))
    }

    /// `failure` of an answer whose header says that it is in `encoding`, which this program does not ask for.
    pub(in crate::engine) fn encoded(&self, failure: Failure, encoding: &str) -> Failure {
        if failure.class != ErrorClass::MalformedStream || encoding == IDENTITY {
            return failure;
        }
        self.compressed(failure, encoding)
    }

    /// `failure` of an answer in `encoding`, of which nothing could be read.
    pub(in crate::engine) fn compressed(&self, failure: Failure, encoding: &str) -> Failure {
        let encoding = self.quote(encoding, QUOTE_CHARS_MAX);
        let message = format!(
            "{}; the answer is compressed ({encoding}), which was not asked for: have the server, or the \
             proxy before it, send it uncompressed",
            failure.message
        );
        Failure { message, ..failure }
    }

    /// The answer ended too early: `missing` did not come.
    pub(in crate::engine) fn cut_off(&self, missing: &str, ignored: &Ignored) -> Failure {
        let detail = format!("the stream ended without {missing}") + &self.ignored(ignored);
        self.malformed("cut off its answer: send the prompt again", detail)
    }

    /// Like [`Self::cut_off`], where only the end of the connection delimits the body.
    pub(in crate::engine) fn closed_early(&self, ignored: &Ignored) -> Failure {
        let message = format!(
            "the connection to {} was closed before the answer was complete: send the prompt again, \
             and check your network if it happens again",
            self.base()
        );
        let detail = "the connection was closed before the answer's end";
        let detail = detail.to_owned() + &self.ignored(ignored);
        Failure::new(ErrorClass::Network, message, detail).or(Retry::Backoff)
    }

    /// The answer is complete and has no text.
    pub(in crate::engine) fn no_answer(&self, stop_reason: &str, has_reasoning: bool) -> Failure {
        let SettingNames { model: model_source, .. } = self.names;
        let what = match has_reasoning {
            true => "ended the answer after the reasoning, without any text",
            false => "ended the answer without any text",
        };
        let message = format!(
            "{} {what}: send the prompt again, or choose another model with {model_source}",
            self.base()
        );
        Failure::new(ErrorClass::Provider, message, format!("finish reason {stop_reason:?}"))
    }

    /// The answer is complete and holds nothing but parts that this program can't show.
    pub(in crate::engine) fn answer_unshown(&self, stop_reason: &str) -> Failure {
        let SettingNames { model: model_source, .. } = self.names;
        let message = format!(
            "{} answered with something that this program can't show, as a picture, and without any text: choose \
             another model with {model_source}",
            self.base()
        );
        Failure::new(ErrorClass::Provider, message, format!("finish reason {stop_reason:?}"))
    }

    fn ignored(&self, Ignored { count, first }: &Ignored) -> String {
        if *count == 0 {
            return String::new();
        }
        let first = self.quote(&String::from_utf8_lossy(first), QUOTE_CHARS_MAX);
        format!("; events that were not understood: {count}, the first: {first:?}")
    }

    /// An event can't be read.
    pub(in crate::engine) fn unreadable(&self, why: &serde_json::Error, data: &[u8]) -> Failure {
        let SettingNames { base_url: base_url_source, .. } = self.names;
        // `why` may quote the data too.
        let detail = format!("not what it should be ({why}): {}", String::from_utf8_lossy(data));
        let detail = self.quote(&detail, DETAIL_CHARS_MAX);
        let what = format!(
            "sent something that can't be read: send the prompt again, and check {base_url_source} if it \
             keeps happening"
        );
        self.malformed(&what, detail)
    }

    /// Something is longer than its limit.
    pub(in crate::engine) fn too_long(&self, detail: String) -> Failure {
        let SettingNames { model: model_source, .. } = self.names;
        let what = format!(
            "sent more than this program takes ({detail}), so the rest is lost: ask for a shorter \
             answer, or choose another model with {model_source}"
        );
        self.malformed(&what, detail)
    }

    /// A part of the body is longer than its limit.
    pub(in crate::engine) fn too_long_part(&self, part: TooLong) -> Failure {
        let (what, limit_bytes) = match part {
            TooLong::Event => ("an event", EVENT_BYTES_MAX),
            TooLong::Whole => ("the answer", WHOLE_BYTES_MAX),
        };
        self.too_long(format!("{what} is longer than {limit_bytes} bytes"))
    }

    /// The failure of an answer that ends too early, at this end of its body.
    pub(in crate::engine) fn at_end(
        &self,
        failure: Failure,
        end: BodyEnd,
        ignored: &Ignored,
    ) -> Failure {
        match (end, failure.class) {
            (BodyEnd::Connection, ErrorClass::MalformedStream) => self.closed_early(ignored),
            (BodyEnd::Connection | BodyEnd::Marked, _) => failure,
        }
    }

    /// Counts an event that is no part of an answer, and copies the beginning of the first.
    pub(in crate::engine) fn ignore(&self, data: &[u8], ignored: &mut Ignored) {
        if ignored.count == 0 {
            let end = data.len().min(IGNORED_BYTES_MAX);
            ignored.first = self.broken_off(&data[..end]);
        }
        ignored.count += 1;
    }

    /// A tool call has no name.
    pub(in crate::engine) fn nameless_tool(&self) -> Failure {
        let SettingNames { model: model_source, .. } = self.names;
        let what = format!(
            "called a tool without naming it: send the prompt again, or choose another model with \
             {model_source}"
        );
        self.malformed(&what, "a tool call has no name")
    }

    /// Like [`Self::no_answer`], of an answer without reasoning that the model may well have by the next request.
    pub(in crate::engine) fn no_answer_by_chance(&self, stop_reason: &str) -> Failure {
        self.no_answer(stop_reason, false).or(Retry::Backoff)
    }

    /// Like [`Self::gave_up`], for a finish reason and what the provider says about it, which may be nothing.
    pub(in crate::engine) fn gave_up_because(&self, reason: &str, words: &str) -> Failure {
        let words = self.quote(words, DETAIL_CHARS_MAX);
        let gap = if words.is_empty() { "" } else { ": " };
        self.gave_up(&format!("finish reason {reason:?}{gap}{words}"))
    }

    /// The provider stopped in the middle of its answer, for a reason that may have passed by the next
    /// request.
    pub(in crate::engine) fn gave_up(&self, detail: &str) -> Failure {
        let message =
            format!("{} stopped in the middle of its answer: send the prompt again", self.base());
        Failure::new(ErrorClass::Provider, message, detail).or(Retry::Backoff)
    }
}
