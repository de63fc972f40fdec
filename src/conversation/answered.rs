//! The requests that have started runs, and how these ended: a fold of the log, by which a request that is
//! sent again starts no second run. Only where the log has the ids of requests. Pure.

use super::event::Event;
use crate::protocol::wire::Done;
use crate::support::text::Text;
use std::collections::VecDeque;

/// Requests that are remembered, the newest ones.
pub(crate) const ANSWERED_MAX: usize = 64;

/// The newest requests that have started runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered {
    requests: VecDeque<(Text, Done)>,
    /// The newest of them has started the run that goes on.
    is_open: bool,
}

impl Answered {
    /// Folds in an event.
    pub(crate) fn apply(&mut self, event: &Event) {
        let ended = if let Event::RunStarted { request, .. } = event {
            self.is_open = !request.is_empty();
            if self.is_open {
                if self.requests.len() == ANSWERED_MAX {
                    self.requests.pop_front();
                }
                // Until the end of the run is known.
                self.requests.push_back((request.clone(), Done::Stopped));
            }
            return;
        } else if let Event::RunFinished { .. } = event {
            Done::Ok
        } else if let Event::RunStopped { .. } = event {
            Done::Stopped
        } else if let Event::RunFailed { .. } = event {
            Done::Failed
        } else {
            return;
        };
        if std::mem::take(&mut self.is_open)
            && let Some((_, status)) = self.requests.back_mut()
        {
            *status = ended;
        }
    }

    /// The status of the run of a request; `None` if none is known.
    pub(crate) fn status(&self, request: &str) -> Option<Done> {
        self.requests.iter().rev().find(|(id, _)| &**id == request).map(|(_, status)| *status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::event::Answerer;

    fn started(request: &str) -> Event {
        let (prompt, answerer) = (Text::default(), Answerer::default());
        Event::RunStarted { prompt, choices: None, answerer, request: request.into() }
    }

    #[test]
    fn the_newest_requests_are_known_with_the_ends_of_their_runs() {
        let mut answered = Answered::default();
        for number in 0..=ANSWERED_MAX {
            answered.apply(&started(&format!("r{number}")));
            let failed = Event::RunFailed { error: String::new() };
            let stopped = Event::RunStopped { reason: String::new() };
            answered.apply(if number % 2 == 0 { &failed } else { &stopped });
        }
        assert_eq!(answered.status("r0"), None, "older than the limit");
        assert_eq!(answered.status("r1"), Some(Done::Stopped));
        assert_eq!(answered.status("r64"), Some(Done::Failed));
        answered.apply(&started(""));
        answered.apply(&Event::RunFinished { duration_ms: 1, cut_off: None });
        assert_eq!(answered.status(""), None, "a run of which no request is known");
        assert_eq!(answered.status("r64"), Some(Done::Failed), "that run is another one");
    }
}
