//! Targets of log lines, for what a log leaves out.

/// Lines that say what an event says as well. A front end that shows the event leaves them out.
pub(crate) const EVENT: &str = "duologue::event";
