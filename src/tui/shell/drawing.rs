//! When the screen is drawn.

use super::Shell;
use super::screen::is_moving;
use std::time::{Duration, Instant};

/// Time between two pictures while something streams.
const PICTURE_TIME: Duration = Duration::from_millis(33);

/// Time between two pictures of the spinner.
const SPINNER_TIME: Duration = Duration::from_millis(100);

impl Shell<'_> {
    /// When something changes by itself.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        // A picture waits as long as another program has the terminal: that it is due is no reason to wake.
        let draws = self.takes_input();
        let picture = (self.needs_picture && draws).then(|| self.picture_at());
        let moves = is_moving(&self.state) && draws && !self.state.is_plain();
        let spinner = moves.then(|| self.picture_at().max(self.drawn + SPINNER_TIME));
        let change = self.state.next_change().map(|at| self.started + at);
        let suspended = self.suspended;
        let times = [picture, spinner, change, suspended, self.leaves_at, self.source.wake_at()];
        times.into_iter().flatten().min()
    }

    /// Draws if something has changed and the last picture was seen for a while.
    pub(super) fn draw_if_due(&mut self) {
        if self.needs_picture && self.picture_at() <= Instant::now() {
            self.draw();
        }
    }

    /// When the next picture is due.
    fn picture_at(&self) -> Instant {
        let due = if self.is_urgent { self.drawn } else { self.drawn + PICTURE_TIME };
        self.waits_until.map_or(due, |until| until.max(due))
    }

    pub(super) fn draw(&mut self) {
        if !self.takes_input() {
            return;
        }
        // The terminal may have wrapped its lines again before the signal is heard.
        if self.screen.size() != self.state.size {
            self.resized();
        }
        let now = Instant::now();
        let drawn = match self.screen.waits(&self.state, now) {
            Ok(Some(until)) => {
                self.waits_until = Some(until);
                return;
            }
            Ok(None) => {
                (self.drawn, self.waits_until, self.is_urgent) = (now, None, false);
                self.draw_fault.step();
                self.screen.draw(&mut self.state, now)
            }
            Err(error) => Err(error),
        };
        match drawn {
            Ok(is_drawn) => {
                self.needs_picture = !is_drawn;
                if is_drawn {
                    let shows_question = self.screen.shows_question(&self.state);
                    self.state.was_drawn(self.started.elapsed(), shows_question);
                }
            }
            Err(error) => {
                self.needs_picture = false;
                self.gone(&error);
            }
        }
    }
}
