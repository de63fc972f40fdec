//! Checks the provider calls of a run: retries before an answer, what is reported after the end of a
//! call, and answers that are asked for again.

use super::names::{Namer, shown};
use super::rule::{Report, Rule};
use super::run_event::RunEnd;
use super::usage::{CallUsage, Totals};
use crate::protocol::constants::{capability, finish};
use crate::protocol::proto::session::UsageTotals;

/// What the calls of all runs have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionCalls {
    /// Every retry, and every answer that is shown and cut off, has its event: `hello` announces them, or
    /// there was one before.
    reports_retries: bool,
    /// Every call has its times.
    reports_timing: bool,
    /// Every call has its token counts.
    reports_usage: bool,
    /// The counts of all calls.
    totals: Totals,
    /// The hash of the currency of all costs.
    currency: Option<u64>,
}

/// The provider calls of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    open: Option<OpenCall>,
    /// The last call that has ended, until the next one starts.
    ended: Option<EndedCall>,
    /// The counts of the run's calls.
    totals: Totals,
    repairs: u32,
    repairs_max: Option<u32>,
    /// The last answer was rejected, and no other call has started.
    is_rejected: bool,
}

#[derive(Clone, Debug)]
struct OpenCall {
    has_answer: bool,
    /// The attempt that was made or scheduled last, if it is known.
    attempt: Option<u32>,
    attempts_max: Option<u32>,
    is_scheduled: bool,
}

#[derive(Clone, Debug)]
struct EndedCall {
    class: u64,
    reason: u64,
    is_cut_off: bool,
    usage: CallUsage,
    /// A part of an answer was shown in it.
    has_answer: bool,
    /// CallTiming has come.
    is_timing_reported: bool,
    /// AnswerTruncated has come.
    is_truncation_reported: bool,
    /// UsageTotals has come.
    is_usage_reported: bool,
    /// What reports on the call can't come any more.
    is_settled: bool,
}

/// An event of a retry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    pub(super) attempt: u32,
    pub(super) attempts_max: u32,
    /// It is started, not only scheduled.
    pub(super) is_started: bool,
}

impl SessionCalls {
    /// Takes the reports that `hello` announces.
    pub(super) fn announced(&mut self, has: impl Fn(&str) -> bool) {
        self.reports_retries |= has(capability::RETRIES);
        self.reports_timing |= has(capability::TIMING);
        self.reports_usage |= has(capability::USAGE);
    }

    /// A call was not counted: the next counts are taken as they come.
    pub(super) fn forget_totals(&mut self) {
        self.totals.is_unknown = true;
    }
}

impl Calls {
    /// Whether the last call ended without its token counts.
    pub(super) fn is_uncounted(&self) -> bool {
        self.ended.as_ref().is_some_and(|ended| !ended.is_usage_reported)
    }

    pub(super) fn start(&mut self, session: &SessionCalls) {
        self.ended = None;
        self.is_rejected = false;
        // If retries were not reported so far, the first ones of the call may be missing.
        let attempt = session.reports_retries.then_some(1);
        let open = OpenCall { has_answer: false, attempt, attempts_max: None, is_scheduled: false };
        self.open = Some(open);
    }

    /// A part of an answer.
    pub(super) fn answer(&mut self, report: &mut Report) {
        let Some(open) = &mut self.open else { return };
        open.has_answer = true;
        if std::mem::take(&mut open.is_scheduled) {
            let message = "an answer before the RetryStarted of the retry that was scheduled";
            report.add(Rule::EventOrder, message);
        }
    }

    pub(super) fn retry(&mut self, retry: Retry, session: &mut SessionCalls, report: &mut Report) {
        session.reports_retries = true;
        match &mut self.open {
            None => report.add(Rule::EventOrder, "a retry outside of a provider call"),
            Some(open) => open.retry(retry, report),
        }
    }

    pub(super) fn finish(&mut self, class: &str, reason: &str, usage: CallUsage, namer: &Namer) {
        let open = self.open.take();
        self.ended = Some(EndedCall {
            class: namer.key(class),
            reason: namer.key(reason),
            is_cut_off: matches!(class, finish::MAX_TOKENS | finish::CONTENT_FILTER),
            usage,
            has_answer: open.is_some_and(|open| open.has_answer),
            is_timing_reported: false,
            is_truncation_reported: false,
            is_usage_reported: false,
            is_settled: false,
        });
    }

    /// AnswerTruncated.
    pub(super) fn truncated(
        &mut self,
        (class, reason): (&str, &str),
        session: &mut SessionCalls,
        namer: &Namer,
        report: &mut Report,
    ) {
        session.reports_retries = true;
        let Some(ended) = self.reported_call().filter(|ended| !ended.is_truncation_reported) else {
            return report.stray("AnswerTruncated");
        };
        ended.is_truncation_reported = true;
        if !ended.is_cut_off {
            let message = "AnswerTruncated after a provider call that was not cut off";
            report.add(Rule::CutOff, message);
        }
        if (ended.class, ended.reason) != (namer.key(class), namer.key(reason)) {
            let (class, reason) = (shown(class), shown(reason));
            let message = format!(
                "AnswerTruncated has the class {class:?} and the reason {reason:?}; its provider \
                 call has others"
            );
            report.add(Rule::FieldChanged, message);
        }
    }

    /// CallTiming: milliseconds to the first byte and to the first token.
    pub(super) fn timed(
        &mut self,
        (first_byte_ms, first_token_ms): (Option<u64>, Option<u64>),
        session: &mut SessionCalls,
        report: &mut Report,
    ) {
        session.reports_timing = true;
        let Some(ended) = self.reported_call().filter(|ended| !ended.is_timing_reported) else {
            return report.stray("CallTiming");
        };
        ended.is_timing_reported = true;
        if ended.has_answer != first_token_ms.is_some() {
            let message = match ended.has_answer {
                true => "CallTiming has no firstTokenMs, but the call has an answer",
                false => "CallTiming has a firstTokenMs, but the call has no answer",
            };
            report.add(Rule::CallTiming, message);
        }
        if let (Some(byte), Some(token)) = (first_byte_ms, first_token_ms)
            && byte > token
        {
            let message = format!("firstByteMs is {byte}, after firstTokenMs, which is {token}");
            report.add(Rule::CallTiming, message);
        }
    }

    /// UsageTotals.
    pub(super) fn counted(
        &mut self,
        totals: &UsageTotals,
        session: &mut SessionCalls,
        namer: &Namer,
        report: &mut Report,
    ) {
        session.reports_usage = true;
        let Some(ended) = self.reported_call().filter(|ended| !ended.is_usage_reported) else {
            return report.stray("UsageTotals");
        };
        ended.is_usage_reported = true;
        let at_end = (ended.usage, ended.class == namer.key(finish::FAILED));
        let mut read = |what: &'static str, counts: &Option<_>| {
            let currency = &mut session.currency;
            Totals::read(what, counts.as_ref(), (currency, namer), report)
        };
        let call = read("call", &totals.call);
        let (run, all) = (read("run", &totals.run), read("session", &totals.session));
        call.check_call(at_end, report);
        run.check_sum("run", self.totals.and(call), report);
        all.check_sum("session", session.totals.and(call), report);
        (self.totals, session.totals) = (run, all);
    }

    /// AnswerRejected; `is_between`: no tool call is open.
    pub(super) fn rejected(
        &mut self,
        (repair, repairs_max): (u32, u32),
        is_between: bool,
        report: &mut Report,
    ) {
        let has_answer = self.ended.as_ref().is_some_and(|ended| !ended.is_cut_off);
        if !has_answer || !is_between || std::mem::replace(&mut self.is_rejected, true) {
            let message = "AnswerRejected does not follow a provider call whose answer is complete";
            report.add(Rule::EventOrder, message);
        }
        let expected = self.repairs.saturating_add(1);
        if repair != expected || repair > repairs_max {
            let message = format!("repair {repair} of {repairs_max}, where {expected} is expected");
            report.add(Rule::AttemptNumber, message);
        }
        let known_max = self.repairs_max.replace(repairs_max);
        check_max("repairsMax", known_max, repairs_max, report);
        self.repairs = repair;
    }

    /// Another step follows, before which everything about the last call must have been reported; `is_answer`: it is
    /// one that only follows a call that was to answer.
    pub(super) fn settle(
        &mut self,
        is_answer: bool,
        session: &mut SessionCalls,
        report: &mut Report,
    ) {
        let Some(ended) = self.reported_call() else { return };
        ended.is_settled = true;
        // A call of which nothing was shown may have made a summary, which is no answer. Another call follows that.
        let is_answer = is_answer || ended.has_answer;
        let is_truncation_missing = ended.is_cut_off && is_answer && !ended.is_truncation_reported;
        let is_timing_missing = !ended.is_timing_reported;
        let is_usage_missing = !ended.is_usage_reported;
        let missing = [
            (is_truncation_missing && session.reports_retries, "was cut off", "AnswerTruncated"),
            (is_timing_missing && session.reports_timing, "has ended", "CallTiming"),
            (is_usage_missing && session.reports_usage, "has ended", "UsageTotals"),
        ];
        for (_, how, event) in missing.into_iter().filter(|(is_missing, ..)| *is_missing) {
            let message = format!("a provider call {how}, but its {event} does not follow");
            report.add(Rule::EventOrder, message);
        }
        if is_usage_missing {
            self.totals.is_unknown = true;
            session.totals.is_unknown = true;
        }
    }

    pub(super) fn run_ended(&mut self, end: RunEnd, error: &str, report: &mut Report) {
        if end != RunEnd::Finished {
            return;
        }
        if self.is_rejected {
            let message = "the answer was rejected, but the run is finished without another one";
            report.add(Rule::EventOrder, message);
        }
        let wrong = match (self.ended.as_ref().is_some_and(|it| it.is_cut_off), error.is_empty()) {
            (true, true) => "the run's answer was cut off, but ChatRunFinished has no error",
            (false, false) => "ChatRunFinished has an error, but the answer was not cut off",
            (true, false) | (false, true) => return,
        };
        report.add(Rule::CutOff, wrong);
    }

    /// The call that has just ended, on which reports may come.
    fn reported_call(&mut self) -> Option<&mut EndedCall> {
        self.ended.as_mut().filter(|ended| !ended.is_settled)
    }
}

impl OpenCall {
    fn retry(&mut self, retry: Retry, report: &mut Report) {
        let Retry { attempt, attempts_max, is_started } = retry;
        if self.has_answer {
            let message = "a retry after a part of the answer has been shown";
            report.add(Rule::EventOrder, message);
        }
        if self.attempt.is_some() && is_started != self.is_scheduled {
            let message = match is_started {
                true => "RetryStarted of a retry that was not scheduled",
                false => "RetryScheduled while another retry is scheduled",
            };
            report.add(Rule::EventOrder, message);
        }
        let next = |made: u32| if is_started { made } else { made.saturating_add(1) };
        let is_expected = self.attempt.is_none_or(|made| attempt == next(made));
        if !is_expected || attempt < 2 || attempt > attempts_max {
            let message =
                format!("attempt {attempt} of {attempts_max} is not the one that follows");
            report.add(Rule::AttemptNumber, message);
        }
        check_max("attemptsMax", self.attempts_max.replace(attempts_max), attempts_max, report);
        (self.attempt, self.is_scheduled) = (Some(attempt), !is_started);
    }
}

impl Report {
    /// Adds that a report on a provider call is in a wrong place.
    fn stray(&mut self, event: &str) {
        let message = format!("{event} does not follow the end of a provider call, or comes twice");
        self.add(Rule::EventOrder, message);
    }
}

fn check_max(what: &str, known: Option<u32>, given: u32, report: &mut Report) {
    if let Some(known) = known.filter(|known| *known != given) {
        report.add(Rule::AttemptNumber, format!("{what} is {given}; it was {known}"));
    }
}
