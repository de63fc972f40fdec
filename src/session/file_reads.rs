//! Requests that name files, or resources of tool servers. They are handled once these have been read, as if they
//! had arrived only then; everything else continues meanwhile.

use super::client_error::{reads_full, shut_down_unread, slow_files};
use super::closing::ExitCause;
use super::waiting::{QUEUED_BYTES_MAX, QUEUED_SUBMITS_MAX, attached_bytes};
use super::{Output, Phase, Session, Uptime};
use crate::protocol::attachment::Attachment;
use crate::protocol::command::{CommandFault, Extension};
use crate::protocol::id::{RequestId, TaskId};
use crate::protocol::wire::{BadLine, ClientError, Request, RequestFault};

/// Milliseconds that the files of a request may take to be read.
const READ_MS_MAX: u64 = 60_000;

/// Milliseconds for resources before that. Whoever reads them has a limit for each, and says which is late.
const RESOURCES_MS_MAX: u64 = 70_000;

/// A request whose files are being read, by a task.
#[derive(Clone, Debug)]
pub(super) struct FileRead {
    task: TaskId,
    /// The request, without its attachments.
    pub(super) request: Request,
    /// Bytes of its prompt and of the attachments that are no files.
    len_bytes: usize,
    deadline: Uptime,
}

/// The requests whose files are being read, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct FileReads {
    going_on: Vec<FileRead>,
    /// The input has ended: the session drains once the last file has been read.
    then_drain: Option<ExitCause>,
}

impl FileReads {
    /// Whether another request can wait. Input is read on past that, as a run may wait for an answer in it.
    fn has_room(&self) -> bool {
        let bytes: usize = self.going_on.iter().map(|read| read.len_bytes).sum();
        self.going_on.len() < QUEUED_SUBMITS_MAX && bytes < QUEUED_BYTES_MAX
    }

    pub(super) fn deadline(&self) -> Option<Uptime> {
        self.going_on.iter().map(|read| read.deadline).min()
    }
}

impl Session {
    /// Handles a request, or has its files read first. A session that drains reads none: it refuses every
    /// prompt.
    pub(super) fn arrived(&mut self, now: Uptime, mut request: Request) {
        // Before its files are read: a request that comes meanwhile must not name the session.
        if let Err(client_error) = self.bind(request.session.take()) {
            return self.recorder.refuse(Some(&request.id), client_error);
        }
        let attachments = match (&self.phase, request.command.attachments_mut()) {
            (Phase::Idle | Phase::Running(_), Some(attachments))
                if attachments.iter().any(|it| it.is_file() || it.as_resource().is_some()) =>
            {
                std::mem::take(attachments)
            }
            (Phase::Idle | Phase::Running(_) | Phase::Draining(..) | Phase::Closed, _) => {
                return self.request(now, request);
            }
        };
        if !self.file_reads.has_room() {
            return self.recorder.refuse(Some(&request.id), reads_full());
        }
        let has_resource = attachments.iter().any(|it| it.as_resource().is_some());
        let wait_ms = if has_resource { RESOURCES_MS_MAX + READ_MS_MAX } else { READ_MS_MAX };
        if has_resource {
            self.recorder.turn_on(Extension::Resources);
        }
        let len_bytes = request.command.prompt_bytes() + attached_bytes(&attachments);
        let task = self.recorder.read_files(attachments);
        let deadline = Uptime(now.0 + wait_ms);
        self.file_reads.going_on.push(FileRead { task, request, len_bytes, deadline });
    }

    /// The files of a request have been read, or can't be used. A request that was withdrawn meanwhile has
    /// its answer.
    pub(super) fn files_read(
        &mut self,
        now: Uptime,
        task: TaskId,
        outcome: Result<Vec<Attachment>, String>,
    ) {
        let Some(at) = self.file_reads.going_on.iter().position(|read| read.task == task) else {
            return;
        };
        let FileRead { mut request, .. } = self.file_reads.going_on.remove(at);
        match (outcome, request.command.attachments_mut()) {
            (Ok(attachments), Some(place)) => {
                *place = attachments;
                self.request(now, request);
            }
            (Ok(_), None) => self.request(now, request),
            (Err(why), _) => {
                self.recorder.fail();
                let fault = RequestFault::Command(CommandFault::InvalidAttachment(why));
                self.bad_line(BadLine { id: Some(request.id), fault });
            }
        }
    }

    /// Refuses the requests whose files have taken too long.
    pub(super) fn expire_file_reads(&mut self, now: Uptime) {
        let late = self.drop_file_reads(|read| read.deadline <= now);
        self.refuse_each(late, &slow_files(READ_MS_MAX));
    }

    /// Refuses all requests whose files are being read.
    pub(super) fn refuse_file_reads(&mut self) {
        let refused = self.drop_file_reads(|_| true);
        self.refuse_each(refused, &shut_down_unread());
    }

    /// Has the reads dropped that `is_dropped` finds; returns their requests.
    pub(super) fn drop_file_reads(
        &mut self,
        mut is_dropped: impl FnMut(&FileRead) -> bool,
    ) -> Vec<RequestId> {
        let reads = &mut self.file_reads.going_on;
        let dropped = reads.extract_if(.., |read| is_dropped(read));
        let dropped = dropped.map(|read| {
            self.recorder.push(Output::CancelTask(read.task));
            read.request.id
        });
        dropped.collect()
    }

    /// The input has ended: drains once the requests whose files are being read have been handled.
    pub(super) fn drain_after_reads(&mut self, farewell: ExitCause) {
        self.file_reads.then_drain = Some(farewell);
        self.drain_if_read();
    }

    pub(super) fn drain_if_read(&mut self) {
        if self.file_reads.going_on.is_empty()
            && let Some(farewell) = self.file_reads.then_drain.take()
        {
            self.drain(None, farewell);
        }
    }

    fn refuse_each(&mut self, requests: Vec<RequestId>, client_error: &ClientError) {
        for id in requests {
            self.recorder.fail();
            self.recorder.refuse(Some(&id), client_error.clone());
        }
    }
}
