//! The progress of calls, as servers report it. Of each call only the newest report is held, and the caller
//! takes it at its own pace, so that a server that reports without end costs no memory and wakes nobody.

use crate::conversation::event::CallProgress;
use crate::support::lock;
use crate::tool::listing::cut;
use rmcp::model::{NumberOrString, ProgressNotificationParam, ProgressToken};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// Longest message of a report, in bytes; the rest is cut.
const MESSAGE_BYTES_MAX: usize = 512;

/// Reports that are held of calls that are not known yet: a server may be faster than whoever called it.
const EARLY_MAX: usize = 16;

/// Where the newest progress of a call is.
pub(super) type Newest = watch::Sender<Option<CallProgress>>;

/// The reports on the calls of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    calls: HashMap<i64, Newest>,
    early: VecDeque<(i64, CallProgress)>,
}

/// A call whose progress is taken, until this is dropped.
#[derive(Debug)]
pub(super) struct Followed {
    reports: Reports,
    token: i64,
}

impl Reports {
    /// Has the progress of the call with this token put into `newest`.
    pub(super) fn follow(&self, token: &ProgressToken, newest: Newest) -> Option<Followed> {
        let token = number(token)?;
        let mut held = self.held();
        let known = held.early.iter().rposition(|(early, _)| *early == token);
        if let Some((_, progress)) = known.and_then(|at| held.early.remove(at)) {
            newest.send_replace(Some(progress));
        }
        held.calls.insert(token, newest);
        Some(Followed { reports: self.clone(), token })
    }

    /// Takes a report; one on a call that has ended is of no use.
    pub(super) fn add(&self, report: ProgressNotificationParam) {
        let Some(token) = number(&report.progress_token) else { return };
        let message = report.message.unwrap_or_default();
        let progress = CallProgress {
            progress: report.progress,
            total: report.total.filter(|total| total.is_finite()),
            message: cut(&message, MESSAGE_BYTES_MAX).to_owned(),
        };
        if !progress.progress.is_finite() {
            return;
        }
        let mut held = self.held();
        if let Some(newest) = held.calls.get(&token) {
            newest.send_replace(Some(progress));
            return;
        }
        if held.early.len() == EARLY_MAX {
            held.early.pop_front();
        }
        held.early.push_back((token, progress));
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        lock(&self.0)
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.reports.held().calls.remove(&self.token);
    }
}

/// The number of a token: ours are numbers, which some servers return as text.
fn number(token: &ProgressToken) -> Option<i64> {
    match &token.0 {
        NumberOrString::Number(number) => Some(*number),
        NumberOrString::String(text) => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: i64) -> ProgressToken {
        ProgressToken(NumberOrString::Number(number))
    }

    fn report(token: ProgressToken, progress: f64) -> ProgressNotificationParam {
        ProgressNotificationParam::new(token, progress)
    }

    fn newest(receiver: &watch::Receiver<Option<CallProgress>>) -> Option<f64> {
        receiver.borrow().as_ref().map(|progress| progress.progress)
    }

    #[test]
    fn the_newest_report_of_each_call_is_held_and_no_other() {
        let reports = Reports::default();
        let (sender, of_one) = watch::channel(None);
        let one = reports.follow(&token(1), sender);
        let (sender, of_two) = watch::channel(None);
        let _two = reports.follow(&token(2), sender);
        for progress in 0..100_000 {
            reports.add(report(token(1), f64::from(progress)));
        }
        reports.add(report(ProgressToken(NumberOrString::String("2".into())), 7.0));
        assert_eq!((newest(&of_one), newest(&of_two)), (Some(99_999.0), Some(7.0)));
        reports.add(report(token(1), f64::INFINITY));
        assert_eq!(newest(&of_one), Some(99_999.0));
        drop(one);
        reports.add(report(token(1), 1.0));
        assert_eq!((newest(&of_one), reports.held().calls.len()), (Some(99_999.0), 1));
    }

    #[test]
    fn a_report_may_come_before_its_call_is_known() {
        let reports = Reports::default();
        for call in 0..100 {
            reports.add(report(token(call), 1.0));
            reports.add(report(token(call), 2.0));
        }
        assert_eq!(reports.held().early.len(), EARLY_MAX);
        let (sender, receiver) = watch::channel(None);
        let _call = reports.follow(&token(99), sender);
        assert_eq!(newest(&receiver), Some(2.0));
    }

    #[test]
    fn a_long_message_is_cut() {
        let reports = Reports::default();
        let (sender, receiver) = watch::channel(None);
        let _call = reports.follow(&token(1), sender);
        reports.add(report(token(1), 1.0).with_message("é".repeat(1000)));
        let bytes = receiver.borrow().as_ref().map(|progress| progress.message.len());
        assert_eq!(bytes, Some(MESSAGE_BYTES_MAX));
    }
}
