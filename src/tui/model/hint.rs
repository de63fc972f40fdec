//! Hints, which the last row shows for a moment.

use super::{Note, State};
use std::time::Duration;

/// How long a hint is shown.
const HINT_TIME: Duration = Duration::from_secs(4);

/// A hint.
#[derive(Clone, Debug)]
pub(super) struct Hint {
    about: About,
    text: String,
    until: Duration,
}

/// The topic of a hint that ends with its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    Anything,
    /// The run is being stopped.
    Stopping,
    /// A paste whose end has not come.
    Paste,
}

impl State {
    /// The text of the hint.
    pub(crate) fn shown_hint(&self) -> Option<&str> {
        self.hint.as_ref().map(|hint| hint.text.as_str())
    }

    /// When the screen changes although nothing happens.
    pub(crate) fn next_change(&self) -> Option<Duration> {
        let hint = self.hint.as_ref().map(|hint| hint.until);
        // The keys that answer are shown once they count.
        let answers = self.answers_from().into_iter().chain(self.offer_is_taken_from());
        hint.into_iter().chain(answers.filter(|from| *from > self.now)).min()
    }

    pub(super) fn hint(&mut self, text: impl Into<String>) {
        self.hint_about(About::Anything, text.into());
    }

    /// Shows a hint until its time is over or what it is about has ended. Lines have no place for what
    /// disappears, so it is printed there.
    pub(super) fn hint_about(&mut self, about: About, text: String) {
        if self.is_plain() {
            return self.note(Note::Information, text);
        }
        self.hint = Some(Hint { about, text, until: self.now + HINT_TIME });
    }

    pub(super) fn forget_hint(&mut self) {
        let now = self.now;
        self.hint.take_if(|hint| hint.until <= now);
        self.leave_until.take_if(|until| *until <= now);
    }

    /// What such a hint was about has ended.
    pub(super) fn forget_hint_about(&mut self, about: About) {
        self.hint.take_if(|hint| hint.about == about);
    }

    /// Shows the bytes of an open paste: until its end, all keys are part of it.
    pub(super) fn paste_goes_on(&mut self, bytes: Option<usize>) {
        match bytes {
            None => self.forget_hint_about(About::Paste),
            Some(bytes) => {
                let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
                let text = format!("pasting… {} so far · Esc ends it", size(bytes));
                self.hint_about(About::Paste, text);
            }
        }
    }
}

/// A number of bytes for people.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}
