//! What the host wants shown, and what the model wants done because of it, each in its order.

use super::Shell;
use crate::host::{Effect, Effects};
use crate::protocol::wire::Frame;
use crate::tui::model::{Event, Note};
use tokio::task::yield_now;

/// Engine events that are handled before keys are looked at again.
const EVENTS_AT_ONCE_MAX: usize = 64;

impl Shell<'_> {
    pub(super) async fn engine_went_on(&mut self, effects: Effects) {
        self.perform(effects);
        for _ in 0..EVENTS_AT_ONCE_MAX {
            match self.host.try_next() {
                Some(effects) => self.perform(effects),
                None => return,
            }
        }
        // Keys and signals are looked at by the runtime.
        yield_now().await;
    }

    pub(super) fn perform(&mut self, effects: Effects) {
        self.together(|shell| {
            for effect in effects.list {
                match effect {
                    Effect::Frame(frame) => shell.frame(frame),
                    // The events UsageTotals and StoreDegraded say it.
                    Effect::Usage(_) | Effect::Warning(_) => {}
                    Effect::Exit(code) | Effect::Abort(code) => shell.exit = Some(code),
                }
            }
        });
    }

    /// Does `work`, and only then what the model wants because of it: a request that a frame leads to has
    /// frames of its own, which come after all that were given with the first.
    pub(super) fn together(&mut self, work: impl FnOnce(&mut Self)) {
        let is_inside = std::mem::replace(&mut self.defers, true);
        work(self);
        self.defers = is_inside;
        while !self.defers
            && let Some(action) = self.deferred.pop_front()
        {
            self.act(action);
        }
    }

    pub(super) fn frame(&mut self, frame: Frame) {
        if let Some(file) = &mut self.debug_file {
            file.record(&frame);
        }
        self.update(Event::Frame(Box::new(frame)));
    }

    pub(super) fn update(&mut self, event: Event) {
        let actions = self.state.update(self.started.elapsed(), event);
        self.needs_picture = true;
        self.deferred.extend(actions);
        self.together(|_| {});
    }

    pub(super) fn note(&mut self, note: Note, text: String) {
        self.state.note(note, text);
        self.needs_picture = true;
    }
}
