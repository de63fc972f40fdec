//! How a terminal tells the person that something waits.

use crate::tui::model::Notice;

/// What a terminal is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bell {
    Nothing,
    /// BEL (ECMA-48): a sound, or a mark at the window.
    Sound,
    /// A notification of the desktop (OSC 9 of iTerm2).
    Notification,
}

/// Values of `TERM_PROGRAM` of terminals that have such notifications.
const WITH_NOTIFICATIONS: [&str; 3] = ["iTerm.app", "WezTerm", "ghostty"];

impl Bell {
    /// The best that the terminal has, as far as its variables say it. Others take OSC 9 for another thing.
    pub(crate) fn of_terminal(term: &str, term_program: &str) -> Self {
        let is_known = WITH_NOTIFICATIONS.contains(&term_program) || term == "xterm-kitty";
        if is_known { Self::Notification } else { Self::Sound }
    }

    pub(super) fn sequence(self, notice: Notice) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Sound => "\x07".to_owned(),
            Self::Notification => format!("\x1b]9;{}\x07", notice.text()),
        }
    }
}
