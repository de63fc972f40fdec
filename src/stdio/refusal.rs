//! The output of a process that can't start its loop: the usual frames, in the usual
//! form, as from one that refuses its command line.

use super::Settings;
use super::printed::Printed;
use crate::host::{Effect, Host};
use crate::protocol::wire::{ClientError, Code};
use crate::session::{ExitCode, Input, Uptime};
use crate::support::fail_point::FailPoint;
use crate::support::threads::NoThread;
use crate::transport::Outbox;
use rustix::io::Errno;
use std::io;

/// Errors of the system for a resource that has run out.
const SHORTAGES: [Errno; 3] = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];

/// Whether `error` says that the system is out of threads, descriptors or memory.
pub(crate) fn is_shortage(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let number = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        cause.is::<NoThread>() || SHORTAGES.iter().any(|errno| number == Some(errno.raw_os_error()))
    })
}

/// The client's error for a process that could not start because of `error`.
pub(crate) fn unable(error: &anyhow::Error) -> ClientError {
    ClientError {
        code: Code::Internal,
        message: format!(
            "the process could not start, so nothing was sent to a model: {error:#}; raise its limits \
             (`ulimit -n`, `ulimit -u`, `ulimit -v`), or end other programs"
        ),
        detail: error.root_cause().to_string(),
        terminal: true,
    }
}

/// The error if the thread that reads the prompt has ended without a result.
pub(super) fn unread_prompt() -> ClientError {
    ClientError {
        code: Code::Internal,
        message: "reading the prompt met a defect of this program, so nothing was asked; please report it"
            .to_owned(),
        detail: String::new(),
        terminal: true,
    }
}

/// The whole output of a process that ends with `client_error` before it has begun, and its exit
/// status. Pure.
pub(crate) fn refusal(settings: Settings, client_error: ClientError) -> (Vec<u8>, u8) {
    let now = Uptime::default();
    let (mut host, greeting) = Host::new(settings.host);
    let printed = Printed { drawing: None, format: settings.format, is_shown: false };
    let mut outbox = Outbox::new(printed, FailPoint::default());
    for frame in greeting {
        outbox.push(now, frame);
    }
    let mut status = ExitCode::Internal;
    for effect in host.handle(Input::Refused(client_error)).list {
        match effect {
            Effect::Frame(frame) => outbox.push(now, frame),
            Effect::Exit(code) | Effect::Abort(code) => {
                status = code;
                outbox.end(now, code);
            }
            // No run, so no token counts, and no store.
            Effect::Usage(_) | Effect::ToolImages(_) | Effect::Warning(_) => {}
        }
    }
    let status = outbox.codec.format.status(status);
    (outbox.take(Vec::new()), status)
}
