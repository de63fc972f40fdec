//! The messages of patches, which are removed when their run ends.

/// Their full names.
pub(super) static PATCHES: &[&str] = &[
    "pinocchio.chatapp.v1.ChatTextPatch",
    "pinocchio.chatapp.v1.ChatReasoningPatch",
    "pinocchio.chatapp.v1.ChatToolArgumentsPatch",
];
