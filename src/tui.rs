//! A chat at a terminal: text that is safe to print, and Markdown that is shown while it streams.

#[cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "the view of the chat is their only user")
)]
pub(crate) mod markdown;
#[cfg_attr(not(test), expect(unused_imports, reason = "the view of the chat is their only user"))]
pub(crate) mod text;
