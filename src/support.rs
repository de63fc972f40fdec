//! Utilities for all layers: fail points, files, threads, standard error,
//! secrets, terminals, shared text.

pub mod fail_point;

pub(crate) mod text;

pub(crate) mod hidden;
pub(crate) mod shell_words;

pub(crate) mod defect;

pub(crate) mod log_targets;

pub(crate) mod threads;

pub(crate) mod files;
pub(crate) mod line_queue;
pub mod stderr;

pub mod secret;
pub(crate) mod terminal;
