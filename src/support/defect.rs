//! The message and the place of the last panic, from the panic hook to the part of the program that reports it.

use std::cell::RefCell;

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Records the message and the place of a panic in this thread.
pub(crate) fn note(what: String) {
    LAST.with_borrow_mut(|last| *last = Some(what));
}

/// Takes the message and the place of the last panic in this thread.
pub(crate) fn take() -> Option<String> {
    LAST.take()
}
