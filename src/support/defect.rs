//! What the panic hook knows of a defect, for the part of the program that reports it to a person.

use std::cell::RefCell;

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Notes what a panic in this thread said, and where it was.
pub(crate) fn note(what: String) {
    LAST.with_borrow_mut(|last| *last = Some(what));
}

/// What the last panic in this thread said, and where it was.
pub(crate) fn take() -> Option<String> {
    LAST.take()
}
