//! Checks the attachments of a prompt. Their files are regular ones, which is all that can be read
//! without waiting for another program.

use super::FilePolicy;
use crate::protocol::attachment::{
    ATTACHMENT_BYTES_MAX, ATTACHMENTS_MAX, Attachment, CONVERSATION_BYTES_MAX, Content,
    PROMPT_BYTES_MAX,
};
use crate::protocol::command::CommandFault;
use crate::protocol::wire::{BadLine, Request, RequestFault};
use crate::support::shorten::first_chars;
use std::fs::File;
use std::io::{self, Read};
use std::iter::repeat_n;
use std::path::Path;
use std::sync::Arc;

const MEBIBYTE: u64 = 1024 * 1024;

/// Characters of a name that a message repeats.
const NAME_CHARS_MAX: usize = 120;

/// Reads the attachments of one prompt.
#[derive(Debug)]
pub(crate) struct Reading<'p> {
    policy: &'p FilePolicy,
    count: usize,
    /// Bytes of those that were read.
    bytes: u64,
    /// Bytes of those that the conversation holds already.
    held_bytes: u64,
}

/// The request with its attachments checked; one that names resources, or files that may be read, has still to have
/// them read. `held_bytes` are those of other attachments in the conversation.
///
/// # Errors
/// If one of them can't be used: its request is answered with that, and nothing is sent.
pub(super) fn check(
    mut request: Request,
    policy: &FilePolicy,
    held_bytes: impl FnOnce() -> u64,
) -> Result<Request, BadLine> {
    let Some(place) = request.command.attachments_mut() else { return Ok(request) };
    let has_resource = place.iter().any(|attachment| attachment.as_resource().is_some());
    let is_to_be_read =
        has_resource || policy.allows_any() && place.iter().any(Attachment::is_file);
    if place.is_empty() || is_to_be_read {
        return Ok(request);
    }
    match read(std::mem::take(place), policy, held_bytes()) {
        Ok(attachments) => *place = attachments,
        Err(why) => {
            let fault = RequestFault::Command(CommandFault::InvalidAttachment(why));
            return Err(BadLine { id: Some(request.id), fault });
        }
    }
    Ok(request)
}

/// All attachments of a prompt, with their content.
///
/// # Errors
/// If one of them can't be used: which, why, and what to do.
pub(super) fn read(
    attachments: Vec<Attachment>,
    policy: &FilePolicy,
    held_bytes: u64,
) -> Result<Vec<Attachment>, String> {
    let mut reading = Reading::new(policy, held_bytes);
    let numbered = (1..).zip(attachments);
    numbered.map(|(number, attachment)| reading.read_numbered(number, attachment)).collect()
}

/// Checks the read files against a conversation that holds so many bytes now.
///
/// # Errors
/// If there is no room for it.
pub(super) fn check_sizes(attachments: &[Attachment], held_bytes: u64) -> Result<(), String> {
    let mut reading = Reading::new(&FilePolicy::None, held_bytes);
    attachments.iter().try_for_each(|attachment| reading.add(attachment.len_bytes()))
}

impl<'p> Reading<'p> {
    /// Begins with a prompt of a conversation that holds so many bytes of attachments.
    pub(crate) fn new(policy: &'p FilePolicy, held_bytes: u64) -> Self {
        Self { policy, count: 0, bytes: 0, held_bytes }
    }

    /// The next attachment, with its content unless a URL names it, and with all that is known of
    /// it.
    ///
    /// # Errors
    /// If it can't be used: why, and what to do.
    pub(crate) fn read(&mut self, mut attachment: Attachment) -> Result<Attachment, String> {
        self.count += 1;
        if self.count > ATTACHMENTS_MAX {
            return Err(format!("a prompt can have {ATTACHMENTS_MAX} attachments; leave some out"));
        }
        match &attachment.content {
            Content::File(path) => {
                let data = self.read_file(path)?;
                if attachment.shown.filename.is_empty() {
                    let last = path.file_name().unwrap_or_default();
                    attachment.shown.filename = last.to_string_lossy().into_owned();
                }
                self.bytes += data.len() as u64;
                attachment.content = Content::Data(data);
            }
            Content::Data(data) => self.add(data.len() as u64)?,
            // A resource has been read by now.
            Content::Url(_) | Content::Resource(_) | Content::Lost { .. } => {}
        }
        attachment.described()
    }

    fn read_numbered(&mut self, number: u32, attachment: Attachment) -> Result<Attachment, String> {
        let name = match &attachment.content {
            Content::File(path) => path.to_string_lossy().into_owned(),
            Content::Data(_) | Content::Url(_) | Content::Resource(_) | Content::Lost { .. } => {
                attachment.shown.filename.clone()
            }
        };
        self.read(attachment).map_err(|why| match name.as_str() {
            "" => format!("attachment {number}: {why}"),
            name => format!("attachment {number} ({:?}): {why}", first_chars(name, NAME_CHARS_MAX)),
        })
    }

    fn read_file(&self, path: &Path) -> Result<Arc<[u8]>, String> {
        let (file, bytes) = self.policy.open(path)?;
        self.check_size(bytes)?;
        contents(&file, bytes).map_err(|error| self.policy.unreadable(&error))
    }

    /// Counts one of this size, if there is room for it.
    fn add(&mut self, bytes: u64) -> Result<(), String> {
        self.check_size(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Whether there is room for one more of this size.
    fn check_size(&self, bytes: u64) -> Result<(), String> {
        let prompt_bytes = self.bytes.saturating_add(bytes);
        let all_bytes = self.held_bytes.saturating_add(prompt_bytes);
        if bytes > ATTACHMENT_BYTES_MAX {
            let most = ATTACHMENT_BYTES_MAX / MEBIBYTE;
            return Err(format!(
                "it has {bytes} bytes, and {most} MiB is the limit; make it smaller, or name a URL \
                 that the provider can read"
            ));
        }
        if prompt_bytes > PROMPT_BYTES_MAX {
            let most = PROMPT_BYTES_MAX / MEBIBYTE;
            return Err(format!(
                "with it the attachments of the prompt have {prompt_bytes} bytes, and {most} MiB is \
                 the limit; divide them among several prompts"
            ));
        }
        if all_bytes > CONVERSATION_BYTES_MAX {
            let most = CONVERSATION_BYTES_MAX / MEBIBYTE;
            return Err(format!(
                "with it the attachments of the conversation have {all_bytes} bytes, and {most} MiB \
                 is the limit; start another conversation"
            ));
        }
        Ok(())
    }
}

/// Reads `file` into the memory where it stays: a copy would double it.
fn contents(mut file: &File, bytes: u64) -> io::Result<Arc<[u8]>> {
    let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
    let mut data: Arc<[u8]> = repeat_n(0, bytes).collect();
    if let Some(data) = Arc::get_mut(&mut data) {
        file.read_exact(data)?;
    }
    match file.read(&mut [0])? {
        0 => Ok(data),
        _ => Err(io::Error::other("it grew while it was read, or has no size")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::chat::ChatAttachment;

    fn attachment(content: Content) -> Attachment {
        Attachment { shown: ChatAttachment::default(), content }
    }

    fn data(bytes: u64) -> Attachment {
        attachment(Content::Data(repeat_n(b'a', usize::try_from(bytes).expect("few")).collect()))
    }

    #[test]
    fn each_limit_is_the_last_size_that_is_taken() {
        let mut one = Reading::new(&FilePolicy::Any, 0);
        assert!(one.read(data(ATTACHMENT_BYTES_MAX)).is_ok());
        let why = Reading::new(&FilePolicy::Any, 0)
            .read(data(ATTACHMENT_BYTES_MAX + 1))
            .expect_err("too large");
        assert!(why.starts_with("it has 20971521 bytes, and 20 MiB is the limit"), "{why}");

        assert!(one.read(data(ATTACHMENT_BYTES_MAX)).is_ok());
        let rest = PROMPT_BYTES_MAX - 2 * ATTACHMENT_BYTES_MAX;
        let why = one.read(data(rest + 1)).expect_err("too much for a prompt");
        assert!(why.contains("the prompt have 52428801 bytes, and 50 MiB is"), "{why}");
        assert!(one.read(data(rest)).is_ok());

        let mut last = Reading::new(&FilePolicy::Any, CONVERSATION_BYTES_MAX - 3);
        assert!(last.read(data(3)).is_ok());
        let why = last.read(data(1)).expect_err("too much for a conversation");
        assert!(why.contains("conversation have 268435457 bytes, and 256 MiB is"), "{why}");

        let mut many = Reading::new(&FilePolicy::Any, 0);
        for _ in 0..ATTACHMENTS_MAX {
            assert!(many.read(data(1)).is_ok());
        }
        assert!(many.read(data(1)).is_err_and(|why| why.contains("32 attachments")));
    }

    /// Files of the system that have no size although they have content, and devices.
    #[test]
    fn what_is_no_file_with_a_size_is_refused() {
        let check = |path: &str, expected: &str| {
            let why =
                Reading::new(&FilePolicy::Any, 0).read(attachment(Content::File(path.into())));
            let why = why.expect_err(path);
            assert!(why.contains(expected), "{path}: {why}");
        };
        check("/dev/null", "it is a device");
        check("/dev/zero", "it is a device");
        check("/", "it is a folder");
        check("/proc/self/status", "has no size");
        check("/no/such/file", "relative to the folder");
        check("", "it can't be read");
    }
}
