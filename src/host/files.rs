//! The files that requests name: which of them may be read, and the threads that read them, once the resources
//! of the same request have come.

use super::attachments;
use crate::protocol::attachment::Attachment;
use crate::protocol::id::TaskId;
use crate::session::panic_text;
use crate::support::files::{DESCRIPTORS_ADVICE, is_out_of_descriptors};
use crate::support::threads;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode, fstat, openat, stat, statat};
use rustix::io::Errno;
use std::any::Any;
use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Component, Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long what comes after a request waits for the files of the request, so that requests take effect in
/// their order unless a file system or a tool server is slow.
const HOLD_UP_MAX: Duration = Duration::from_millis(200);

/// Threads that read files. One that a file system holds up counts until it ends, also after its request
/// was withdrawn.
const THREADS_MAX: usize = 4;

/// How a file is opened: should it have become a pipe or a terminal meanwhile, nothing waits for it.
const OPENED: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Which files of this machine a request may name, to attach them to a prompt. Only regular files are ever
/// read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FilePolicy {
    /// None, so that no request can read anything of this machine.
    #[default]
    None,
    /// Those in this folder and in the folders below it. A path is relative to the folder, or begins with
    /// it. It may have no `..`, and nothing below the folder that it leads through may be a symbolic link.
    Below(PathBuf),
    /// Every file that this process can read: for clients that can read them anyway. A path is
    /// relative to the current folder.
    Any,
}

impl FilePolicy {
    pub(super) fn allows_any(&self) -> bool {
        match self {
            Self::None => false,
            Self::Below(_) | Self::Any => true,
        }
    }

    /// Opens a regular file; returns it with its size in bytes.
    ///
    /// # Errors
    /// If it may not be read, or can't be: why, and what to do.
    pub(super) fn open(&self, path: &Path) -> Result<(File, u64), String> {
        let unreadable = |error: Errno| self.unreadable(&error.into());
        let file = match self {
            Self::None => {
                let why = "no files of this machine can be attached here; send its content as a data: \
                           URL, or name a URL that the provider can read";
                return Err(why.to_owned());
            }
            Self::Any => {
                // Looked at first: opening a device can set it going.
                check_type(stat(path).map_err(unreadable)?.st_mode)?;
                openat(CWD, path, OPENED, Mode::empty()).map_err(unreadable)?
            }
            Self::Below(folder) => {
                let (folders, name) = below(folder, path)?;
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let mut inside = openat(CWD, folder, flags, Mode::empty()).map_err(unreadable)?;
                for folder in folders {
                    check_link(&inside, folder).map_err(unreadable)??;
                    let flags = flags | OFlags::NOFOLLOW;
                    inside = openat(&inside, folder, flags, Mode::empty()).map_err(unreadable)?;
                }
                check_link(&inside, name).map_err(unreadable)??;
                let about = statat(&inside, name, AtFlags::SYMLINK_NOFOLLOW).map_err(unreadable)?;
                check_type(about.st_mode)?;
                let flags = OPENED | OFlags::NOFOLLOW;
                openat(&inside, name, flags, Mode::empty()).map_err(unreadable)?
            }
        };
        // The path may lead elsewhere by now.
        let about = fstat(&file).map_err(unreadable)?;
        check_type(about.st_mode)?;
        Ok((file.into(), u64::try_from(about.st_size).unwrap_or(0)))
    }

    pub(super) fn unreadable(&self, error: &io::Error) -> String {
        let hint = match (error.kind(), self) {
            (io::ErrorKind::NotFound, Self::Below(_)) => {
                "check the path, which is relative to the folder that files can be attached from"
            }
            (io::ErrorKind::NotFound, Self::None | Self::Any) => {
                "check the path, which is relative to the folder that duologue runs in"
            }
            _ if is_out_of_descriptors(error) => DESCRIPTORS_ADVICE,
            _ => "check the file and who may read it",
        };
        format!("it can't be read: {error}; {hint}")
    }
}

/// The folders below `folder` that `path` leads through, and the name of the file.
fn below<'p>(folder: &Path, path: &'p Path) -> Result<(Vec<&'p Path>, &'p Path), String> {
    const OUTSIDE: &str = "it is outside of the folder that files can be attached from; name a file in \
                           that folder, or send its content as a data: URL";
    let inside = if path.is_absolute() { path.strip_prefix(folder) } else { Ok(path) };
    let mut names = Vec::new();
    for component in inside.map_err(|_| OUTSIDE)?.components() {
        match component {
            Component::Normal(name) => names.push(Path::new(name)),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(OUTSIDE.to_owned());
            }
        }
    }
    let name = names.pop().ok_or("it is a folder; name a file in it")?;
    Ok((names, name))
}

/// Whether `name` leads elsewhere.
fn check_link(folder: impl AsFd, name: &Path) -> Result<Result<(), String>, Errno> {
    let about = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_link = FileType::from_raw_mode(about.st_mode) == FileType::Symlink;
    let why = || {
        format!(
            "{:?} is a symbolic link, which can't be followed here; name the file itself",
            name.display().to_string()
        )
    };
    Ok(if is_link { Err(why()) } else { Ok(()) })
}

/// Whether a file of this type can be attached.
fn check_type(mode: RawMode) -> Result<(), String> {
    let what = match FileType::from_raw_mode(mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a folder; name a file in it",
        FileType::Fifo => "a named pipe; write its data to a file and attach that",
        FileType::Socket => "a socket; only files can be attached",
        FileType::Symlink
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => "a device; write its data to a file and attach that",
    };
    Err(format!("it is {what}"))
}

/// All attachments of a prompt; or why one of them can't be used.
type Outcome = Result<Vec<Attachment>, String>;

/// The attachments of a prompt without resources; they are waited for.
pub(super) type Resources = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// The files that are being read. Dropped reads are not waited for; what they find is dropped.
#[derive(Debug)]
pub(super) struct FileReads {
    policy: Arc<FilePolicy>,
    going_on: Vec<FileRead>,
    /// Each thread that reads holds another reference.
    threads: Arc<()>,
}

/// The read of the files of one request.
#[derive(Debug)]
struct FileRead {
    task: TaskId,
    since: Instant,
    /// Bytes of the attachments that the conversation held when it was asked.
    held_bytes: u64,
    step: Step,
}

/// How far a read is.
enum Step {
    /// Servers send the resources; what follows is in files.
    Resources(Resources),
    /// A thread reads the files.
    Files(oneshot::Receiver<Outcome>),
}

impl FileReads {
    pub(super) fn new(policy: FilePolicy) -> Self {
        Self { policy: Arc::new(policy), going_on: Vec::new(), threads: Arc::new(()) }
    }

    pub(super) fn policy(&self) -> &FilePolicy {
        &self.policy
    }

    /// Begins to read what a request names: first its resources, if it has some, and then the files.
    pub(super) fn start(
        &mut self,
        task: TaskId,
        resources: Result<Resources, Vec<Attachment>>,
        held_bytes: u64,
    ) {
        let step = match resources {
            Ok(resources) => Step::Resources(resources),
            Err(attachments) => Step::Files(self.read(attachments, held_bytes)),
        };
        self.going_on.push(FileRead { task, since: Instant::now(), held_bytes, step });
    }

    /// Has a thread read the files among `attachments`.
    fn read(&self, attachments: Vec<Attachment>, held_bytes: u64) -> oneshot::Receiver<Outcome> {
        let (sender, outcome) = oneshot::channel();
        if Arc::strong_count(&self.threads) > THREADS_MAX {
            let why = format!(
                "the files of {THREADS_MAX} prompts are still being read, as from a network file \
                 system that does not answer; see why, and send this prompt again"
            );
            // The receiver of a cancelled read is gone.
            sender.send(Err(why)).ok();
            return outcome;
        }
        let (policy, thread) = (Arc::clone(&self.policy), Arc::clone(&self.threads));
        let read = move || {
            planted_wait();
            let read = checked(attachments, &policy, held_bytes);
            drop(thread);
            sender.send(read).ok();
        };
        if let Err(error) = threads::spawn("attachments", read) {
            // The sender is gone, which is all that is ever said of it.
            tracing::warn!(%error, "the files of a prompt can't be read");
        }
        outcome
    }

    /// Until when everything else waits for files, if it still does. Nothing waits once any read has taken longer: the
    /// waits for one slow request after another would add up.
    pub(super) fn holds_until(&self) -> Option<Instant> {
        let until = self.going_on.iter().map(|read| read.since + HOLD_UP_MAX).min();
        until.filter(|until| Instant::now() < *until)
    }

    pub(super) fn hold_up(&self) -> bool {
        self.holds_until().is_some()
    }

    /// Waits for the files of a request; for ever if none are being read. Cancel-safe.
    pub(super) async fn next(&mut self) -> (TaskId, Outcome) {
        poll_fn(|context| {
            for at in 0..self.going_on.len() {
                if let Poll::Ready(outcome) = self.poll_read(at, context) {
                    return Poll::Ready((self.going_on.remove(at).task, outcome));
                }
            }
            Poll::Pending
        })
        .await
    }

    fn poll_read(&mut self, at: usize, context: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            let read = &mut self.going_on[at];
            let attachments = match &mut read.step {
                Step::Resources(resources) => {
                    let polling = AssertUnwindSafe(|| resources.as_mut().poll(context));
                    let polled = catch_unwind(polling);
                    match ready!(
                        polled.unwrap_or_else(|panic| Poll::Ready(Err(defect(panic.as_ref()))))
                    ) {
                        Ok(attachments) => attachments,
                        Err(why) => return Poll::Ready(Err(why)),
                    }
                }
                Step::Files(outcome) => {
                    let no_thread = "the system has no thread to read it; raise the limit on them \
                                     (`ulimit -u`), or end other programs, and send it again";
                    let outcome = ready!(Pin::new(outcome).poll(context));
                    return Poll::Ready(outcome.unwrap_or_else(|_| Err(no_thread.to_owned())));
                }
            };
            let held_bytes = read.held_bytes;
            if !attachments.iter().any(Attachment::is_file) {
                return Poll::Ready(checked(attachments, &self.policy, held_bytes));
            }
            self.going_on[at].step = Step::Files(self.read(attachments, held_bytes));
        }
    }

    pub(super) fn cancel(&mut self, task: TaskId) {
        self.going_on.retain(|read| read.task != task);
    }

    pub(super) fn cancel_all(&mut self) {
        self.going_on.clear();
    }
}

/// The attachments with their content; a defect of the program in reading them is an error, too.
fn checked(attachments: Vec<Attachment>, policy: &FilePolicy, held_bytes: u64) -> Outcome {
    let reading = AssertUnwindSafe(|| attachments::read(attachments, policy, held_bytes));
    catch_unwind(reading).unwrap_or_else(|panic| Err(defect(panic.as_ref())))
}

fn defect(panic: &(dyn Any + Send)) -> String {
    let defect = panic_text(panic);
    format!("reading it met a defect of this program ({defect}); please report it")
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Resources(_) => "Resources",
            Self::Files(_) => "Files",
        })
    }
}

/// Waits for the end of the named pipe of `DUOLOGUE_FAULT=file:<pipe>`, as a file system that does not
/// answer would. Set by tests.
#[cfg(debug_assertions)]
fn planted_wait() {
    let plan = std::env::var("DUOLOGUE_FAULT").unwrap_or_default();
    if let Some(pipe) = plan.strip_prefix("file:") {
        std::fs::read(pipe).ok();
    }
}

/// A release build has no planted failures.
#[cfg(not(debug_assertions))]
fn planted_wait() {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::test_folder::TestFolder;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_path_stays_below_the_folder() {
        let folder = TestFolder::new();
        let (inside, outside) = (folder.path("inside"), folder.path("outside"));
        for path in [&inside.join("deep"), &outside] {
            fs::create_dir_all(path).expect("a folder");
        }
        for path in [inside.join("a"), inside.join("deep/b"), outside.join("secret")] {
            fs::write(path, "text").expect("a file");
        }
        symlink(outside.join("secret"), inside.join("link")).expect("a link");
        symlink("a", inside.join("near")).expect("a link");
        symlink(&outside, inside.join("way")).expect("a link");
        let policy = FilePolicy::Below(inside.clone());
        let full = |name: &str| inside.join(name).display().to_string();
        for path in ["a", "./a", "deep/b", "deep//b", &full("a"), &full("deep/b")] {
            assert_eq!(policy.open(Path::new(path)).map(|it| it.1), Ok(4), "{path}");
        }
        let secret = outside.join("secret").display().to_string();
        let check = |path: &str, expected: &str| {
            let why = policy.open(Path::new(path)).map(|_| ()).expect_err(path);
            assert!(why.contains(expected), "{path}: {why}");
            assert!(!why.contains(&full("")), "a path of this machine: {why}");
        };
        for path in [&*secret, "../outside/secret", "deep/../a", &full("../outside/secret"), "/"] {
            check(path, "outside of the folder");
        }
        for path in ["link", "near", "way/secret", &full("way/secret")] {
            check(path, "is a symbolic link");
        }
        check("none", "relative to the folder that files can be attached from");
        check("a/b", "can't be read");
        for path in [".", "deep", &full("")] {
            check(path, "it is a folder");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_waits_for_slow_requests_do_not_add_up() {
        let mut reads = FileReads::new(FilePolicy::None);
        let never = || -> Resources { Box::pin(std::future::pending()) };
        reads.start(TaskId(1), Ok(never()), 0);
        assert!(reads.hold_up());
        tokio::time::advance(HOLD_UP_MAX).await;
        reads.start(TaskId(2), Ok(never()), 0);
        assert!(!reads.hold_up());
        reads.cancel(TaskId(1));
        assert!(reads.hold_up());
    }

    #[tokio::test]
    async fn resources_without_files_need_no_thread() {
        let mut reads = FileReads::new(FilePolicy::None);
        let _busy = [(); THREADS_MAX].map(|()| Arc::clone(&reads.threads));
        let content = crate::protocol::attachment::Content::Data(b"text".as_slice().into());
        let resource = Attachment { shown: Default::default(), content };
        reads.start(TaskId(1), Ok(Box::pin(std::future::ready(Ok(vec![resource])))), 0);
        let (task, outcome) = reads.next().await;
        assert_eq!((task, outcome.map(|them| them.len())), (TaskId(1), Ok(1)));
    }

    #[test]
    fn without_files_none_is_looked_for() {
        let why = FilePolicy::default().open(Path::new("/no/such/file")).expect_err("no files");
        assert!(why.starts_with("no files of this machine can be attached"), "{why}");
    }
}
