//! Opens and writes files and pipes, with control over blocking.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, FileType, OFlags, access, fstat};
#[cfg(target_os = "linux")]
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{SendFlags, send};
use rustix::pipe::PIPE_BUF;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Mode of a created file: prompts and answers are private to the user.
const PRIVATE_MODE: u32 = 0o600;

/// Mode of a created folder.
const PRIVATE_FOLDER_MODE: u32 = 0o700;

/// Mode bits of a file that say who may read, write and run it.
const ALL_MODES: u32 = 0o777;

/// Mode bits of a file that are for its group.
const GROUP_MODES: u32 = 0o070;

/// Mode bits of a file that users other than its owner can read, write or run.
const OPEN_TO_OTHERS: u32 = 0o077;

/// Mode bits of a folder in which users other than its owner can create files.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Longest time in which nothing is written to a pipe that is read in place of a file.
const PIPE_IDLE_MAX: Duration = Duration::from_secs(30);

/// How long the lock on a folder is waited for: who changes a file in it has the lock for a moment.
const FOLDER_LOCK_WAIT_MAX: Duration = Duration::from_secs(5);

/// Time between two attempts to get a lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Longest name of a file, in bytes: `NAME_MAX` of Linux and macOS.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// Links that are followed from one name to a file (`MAXSYMLINKS` of Linux).
const LINKS_MAX: usize = 40;

/// Where the pipe of a shell's `<(command)` is: in bash and fish, and in zsh on Linux.
const SHELL_PIPE_FOLDERS: [&str; 2] = ["/dev/fd", "/proc/self/fd"];

/// What a person can do about an error of the system that it has no descriptor left.
pub(crate) const DESCRIPTORS_ADVICE: &str =
    "raise the limit on open files (`ulimit -n`), or end other programs";

/// Whether the process, or the system, may open no more files.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE].iter().any(|it| error.raw_os_error() == Some(it.raw_os_error()))
}

/// The identity of a file, whatever path leads to it: a link, or another spelling of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

/// Where a regular file is, or would be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FilePlace {
    /// The file is there.
    Present(FileId),
    /// There is none yet; its path, without links as far as its folder exists.
    Missing(PathBuf),
}

/// The folder that a command works in, or a conversation belongs to; by default the folder of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkFolder(Option<PathBuf>);

impl WorkFolder {
    /// The folder at this absolute path.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(Some(path))
    }

    /// Its path.
    ///
    /// # Errors
    /// If the folder of this process can't be found.
    pub(crate) fn path(&self) -> io::Result<PathBuf> {
        self.0.clone().map_or_else(std::env::current_dir, Ok)
    }

    /// `path` as it is from this process, if it is relative to the folder.
    pub(crate) fn join(&self, path: &Path) -> PathBuf {
        self.0.as_ref().map_or_else(|| path.to_owned(), |folder| folder.join(path))
    }

    /// The folder, if it is another one than that of this process.
    pub(crate) fn other(&self) -> Option<&Path> {
        self.0.as_deref()
    }
}

impl FileId {
    /// The file that `about` describes, if it is a regular one. Devices and pipes may be read and
    /// written by one process at the same time.
    pub(crate) fn of(about: &Metadata) -> Option<Self> {
        about.is_file().then(|| Self { device: about.dev(), inode: about.ino() })
    }
}

impl FilePlace {
    /// The place that `path` names; `None` if something else than a regular file is there.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        match path.metadata() {
            Ok(about) => FileId::of(&about).map(Self::Present),
            Err(_) => {
                let target = target_of(path).unwrap_or_else(|_| path.to_owned());
                let path = std::path::absolute(target).ok()?;
                let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
                Some(Self::Missing(match (folder, path.file_name()) {
                    (Some(folder), Some(name)) => folder.join(name),
                    (_, _) => path,
                }))
            }
        }
    }
}

/// The path without links, also where they lead to a file that is not there yet.
///
/// # Errors
/// If one is a link of another user in a folder that others can write to, which is not followed, as in [`open`]; or
/// if there are too many.
pub(crate) fn target_of(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..=LINKS_MAX {
        let Ok(link) = target.read_link() else {
            return Ok(target.canonicalize().unwrap_or(target));
        };
        let folder = folder_of(&target);
        if !is_own_link(&target) && is_shared(folder)? {
            return Err(others_link());
        }
        target = folder.join(link);
    }
    // The links are a ring.
    Err(Errno::LOOP.into())
}

/// The folder that `path` is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Opens the file at `path` for writing, as `options` say, in a folder that exists. Never waits: a
/// named pipe must have a reader. In a folder that others can write to, follows a symbolic link only
/// if it belongs to the user: another user's would choose the file that is overwritten.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let folder = folder_of(path);
    let is_shared = is_shared(folder).map_err(|error| without_folder(error, folder))?;
    let follows_links = !is_shared || is_own_link(path);
    let flags = if follows_links { OFlags::NONBLOCK } else { OFlags::NONBLOCK | OFlags::NOFOLLOW };
    let bits = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let opened = options.create(true).mode(PRIVATE_MODE).custom_flags(bits).open(path);
    opened.map_err(|error| explained(error, path, follows_links))
}

/// The text of the regular file at `path`, and what is known about the file.
///
/// # Errors
/// If it can't be read, is larger than `bytes_max`, or is not UTF-8.
pub(crate) fn read_limited(path: &Path, bytes_max: usize) -> io::Result<(String, Metadata)> {
    let (file, about) = open_regular(path)?;
    let mut bytes = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(io::Error::other(format!("it is larger than {bytes_max} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))?;
    Ok((text, about))
}

/// The last `bytes_max` bytes of the regular file at `path`, and whether they are all that it has.
///
/// # Errors
/// If it can't be read.
pub(crate) fn read_end(path: &Path, bytes_max: usize) -> io::Result<(Vec<u8>, bool)> {
    let (mut file, about) = open_regular(path)?;
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    let before = about.len().saturating_sub(limit);
    file.seek(SeekFrom::Start(before))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok((bytes, before == 0))
}

fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    let file = open_nonblocking(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok((file, about))
}

/// Opens a file for reading; a named pipe without waiting for its writer.
fn open_nonblocking(path: &Path) -> io::Result<File> {
    let bits = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    OpenOptions::new().read(true).custom_flags(bits).open(path)
}

/// Like [`read_limited`], of a file that a person names: it may also be a pipe, as a shell's `<(command)` is one.
///
/// # Errors
/// As there, and if a pipe has nothing for [`PIPE_IDLE_MAX`].
pub(crate) fn read_named(path: &Path, bytes_max: usize) -> io::Result<(String, Metadata)> {
    let (bytes, about) = read_named_bytes(path, bytes_max)?;
    let text = String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))?;
    Ok((text, about))
}

/// Whether only the user, or the administrator, owns and can read the file.
pub(crate) fn is_private(about: &Metadata) -> bool {
    let user = rustix::process::geteuid().as_raw();
    about.mode() & OPEN_TO_OTHERS == 0 && (about.uid() == user || about.uid() == 0)
}

/// The bytes of the regular file or pipe at `path`, and what is known about it.
///
/// # Errors
/// As [`read_named`], but for the encoding.
pub(crate) fn read_named_bytes(path: &Path, bytes_max: usize) -> io::Result<(Vec<u8>, Metadata)> {
    // Looked at first: opening a device can set it going.
    let kind = path.metadata()?.file_type();
    if !kind.is_file() && !kind.is_fifo() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = open_nonblocking(path)?;
    let about = file.metadata()?;
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    match about.file_type().is_fifo() {
        true => {
            // A shell's `<(command)` has had a writer, though that may have ended without a byte.
            let has_writer = SHELL_PIPE_FOLDERS.iter().any(|folder| path.starts_with(folder));
            Piped { file, has_writer }.take(limit).read_to_end(&mut bytes)?;
        }
        false => drop(file.take(limit).read_to_end(&mut bytes)?),
    }
    if bytes.len() > bytes_max {
        return Err(io::Error::other(format!("it is larger than {bytes_max} bytes")));
    }
    Ok((bytes, about))
}

/// The end of a non-blocking pipe from which is read.
struct Piped {
    file: File,
    /// A pipe that nobody has opened for writing reads like one that has ended.
    has_writer: bool,
}

impl Read for Piped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.file.read(buffer);
            let must_wait =
                read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
            if matches!(read, Ok(0)) && !self.has_writer {
                return Err(io::Error::other("it is a pipe that nobody writes to"));
            }
            self.has_writer = true;
            if !must_wait {
                return read;
            }
            if !wait_until(&self.file, PollFlags::IN, Instant::now() + PIPE_IDLE_MAX) {
                let seconds = PIPE_IDLE_MAX.as_secs();
                let why = format!("nothing was written to this pipe for {seconds} s");
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
        }
    }
}

/// Reads a file blocking, also where another process that shares its pipe has made that non-blocking.
#[derive(Debug)]
pub(crate) struct Blocking<'f>(pub(crate) &'f File);

impl Read for Blocking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait_for(self.0, PollFlags::IN);
                }
                read => return read,
            }
        }
    }
}

/// Checks that `path` is not in a folder `~` that would be made for it: whoever removes that again may remove
/// their home.
///
/// # Errors
/// If it is.
pub(crate) fn check_home(path: &Path) -> io::Result<()> {
    if path.starts_with("~") && !Path::new("~").exists() {
        let why = "the path begins with ~, which no shell has replaced; write the whole path (a folder of \
                   that name is ./~)";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(())
}

/// Makes the folders that `path` is in and that are missing, for their user alone.
///
/// # Errors
/// If one can't be made.
pub(crate) fn make_folders_of(path: &Path) -> io::Result<()> {
    check_home(path)?;
    match path.parent() {
        Some(folder) if folder != Path::new("") && !folder.exists() => {
            DirBuilder::new().recursive(true).mode(PRIVATE_FOLDER_MODE).create(folder)
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks that [`replace`] could write the file at `path` now, without making anything.
///
/// # Errors
/// If it could not.
pub(crate) fn check_replaceable(path: &Path) -> io::Result<()> {
    check_home(path)?;
    // Written in place.
    if is_mount_point(path) {
        return Ok(access(path, Access::WRITE_OK)?);
    }
    // Fails if the current folder was removed: nothing can be made in it.
    let path = std::path::absolute(path)?;
    for folder in path.ancestors().skip(1) {
        let is_missing =
            |error: &io::Error| error.kind() == io::ErrorKind::NotFound && !folder.is_symlink();
        match folder.metadata() {
            Ok(about) if about.is_dir() => {
                return Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?);
            }
            Ok(_) => return Err(Errno::NOTDIR.into()),
            // It is made, in the folder that it is in.
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(error),
        }
        if folder.file_name().is_some_and(|name| name.len() > NAME_BYTES_MAX) {
            return Err(Errno::NAMETOOLONG.into());
        }
    }
    Ok(())
}

/// Locks the folder that `path` is in, for the time from reading that file to replacing it: another process that does
/// so waits until the lock is dropped. Makes the folder. `None`: the folder can't be locked, and the file is as good
/// without.
///
/// # Errors
/// If the folder can't be made or opened, or another process keeps it locked.
pub(crate) fn lock_folder_of(path: &Path) -> io::Result<Option<File>> {
    make_folders_of(path)?;
    lock_folder(folder_of(path), FOLDER_LOCK_WAIT_MAX)
}

fn lock_folder(folder: &Path, wait_max: Duration) -> io::Result<Option<File>> {
    // A lock on the file itself would be one on a file that is replaced.
    let file = match File::open(folder) {
        // Files in a folder that can't be listed can be replaced.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        opened => opened?,
    };
    match lock_within(&file, wait_max) {
        Ok(()) => Ok(Some(file)),
        // Some file systems have no locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
        Err(TryLockError::WouldBlock) => {
            let (folder, seconds) = (folder.display(), wait_max.as_secs());
            let why = format!(
                "another process keeps the folder {folder} locked, for more than {seconds} s; end it, or \
                 have it go on if it is stopped"
            );
            Err(io::Error::new(io::ErrorKind::TimedOut, why))
        }
    }
}

/// Locks `file`, which another process may have locked for up to `wait_max`.
pub(crate) fn lock_within(file: &File, wait_max: Duration) -> Result<(), TryLockError> {
    let until = Instant::now() + wait_max;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => sleep(LOCK_POLL_INTERVAL),
            locked => return locked,
        }
    }
}

/// Puts a file with `bytes` in the place of the one at `path`, at once; makes the folders that it is in. It has
/// the permissions of that file; a new one can be read by its user alone. A mount point, as the file of a container may
/// be, can't be replaced: its content is, and not at once.
///
/// # Errors
/// If it can't be written; then the old file is still there, but for a mount point.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    make_folders_of(path)?;
    // Its folder may be one that can't be written to.
    if is_mount_point(path) {
        return overwrite(path, bytes);
    }
    let (new, mut file) = make_beside(path)?;
    let written = file.write_all(bytes).and_then(|()| keep_mode(path, &file));
    let replaced =
        written.and_then(|()| file.sync_all()).and_then(|()| std::fs::rename(&new, path));
    if replaced.is_err() {
        // The error is the one of the write.
        std::fs::remove_file(&new).ok();
    }
    match replaced {
        // A mount point on a system that does not tell.
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => overwrite(path, bytes),
        replaced => replaced,
    }
}

/// Whether another file is mounted at `path`, as far as the system tells.
#[cfg(target_os = "linux")]
pub(crate) fn is_mount_point(path: &Path) -> bool {
    let about = statx(CWD, path, AtFlags::empty(), StatxFlags::empty());
    about.is_ok_and(|about| about.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_mount_point(_path: &Path) -> bool {
    false
}

fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes a file for what is to replace the one at `path`. Its name is no other process's, also not of one that has
/// the same id on another machine or was killed.
fn make_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let ending = format!(".new-{:08x}", uuid::Uuid::new_v4().as_fields().0);
    let mut name = beginning_of(name, NAME_BYTES_MAX - ending.len()).to_owned();
    name.push(ending);
    let new = path.with_file_name(name);
    let file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE_MODE).open(&new)?;
    Ok((new, file))
}

/// The first `bytes_max` bytes of `name`, or fewer, so that no character of UTF-8 is cut.
fn beginning_of(name: &OsStr, bytes_max: usize) -> &OsStr {
    const MARK: u8 = 0b1100_0000;
    const CONTINUES: u8 = 0b1000_0000;
    let bytes = name.as_bytes();
    let is_cut = |end: &usize| bytes.get(*end).is_some_and(|byte| byte & MARK == CONTINUES);
    let end = (0..=bytes.len().min(bytes_max)).rev().find(|end| !is_cut(end));
    OsStr::from_bytes(&bytes[..end.unwrap_or(0)])
}

/// Gives `new` the permissions of the regular file at `path`, if there is one; those of its group only to the same
/// group.
fn keep_mode(path: &Path, new: &File) -> io::Result<()> {
    let Some(old) = path.symlink_metadata().ok().filter(Metadata::is_file) else { return Ok(()) };
    let made = new.metadata()?;
    let kept = if old.gid() == made.gid() { ALL_MODES } else { ALL_MODES & !GROUP_MODES };
    let mode = old.mode() & kept;
    // Some file systems have one mode for all files, and can't set another.
    if made.mode() & ALL_MODES == mode {
        return Ok(());
    }
    new.set_permissions(PermissionsExt::from_mode(mode))
}

/// The user's folder of the kind that `variable` names (XDG Base Directory Specification), else
/// `fallback` in the user's own folder.
pub(crate) fn user_folder(
    variable: &str,
    fallback: &str,
    read: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    // The specification has relative paths ignored.
    let absolute = |name: &str| read(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable).or_else(|| Some(absolute("HOME")?.join(fallback)))
}

fn is_shared(folder: &Path) -> io::Result<bool> {
    Ok(folder.metadata()?.mode() & WRITABLE_BY_OTHERS != 0)
}

/// A mistyped folder must not become a new one, so a missing folder is an error.
fn without_folder(error: io::Error, folder: &Path) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound {
        return error;
    }
    let folder = folder.display();
    io::Error::other(format!("the folder {folder} does not exist; create it, or check its name"))
}

fn is_own_link(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    path.symlink_metadata().is_ok_and(|link| link.is_symlink() && link.uid() == user)
}

fn explained(error: io::Error, path: &Path, follows_links: bool) -> io::Error {
    let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    if is(Errno::NXIO) && path.metadata().is_ok_and(|file| file.file_type().is_fifo()) {
        return io::Error::other("it is a named pipe without a reader; start its reader first");
    }
    // Some systems refuse to follow such a link themselves.
    if (is(Errno::LOOP) || is(Errno::ACCESS)) && !follows_links && path.is_symlink() {
        return others_link();
    }
    error
}

fn others_link() -> io::Error {
    io::Error::other(
        "it is a symbolic link that belongs to another user, in a folder that other users can \
         write to; name the file itself, or a file in a folder of your own",
    )
}

/// Writes all of `bytes`, even if the file is non-blocking.
pub(crate) fn write_all(file: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    let file = file.as_fd();
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            // The file was opened so, or another process that shares the pipe has made it so;
            // so wait here.
            Err(Errno::AGAIN) => wait_for(file, PollFlags::OUT),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Writes `bytes` until `deadline`; returns whether all were written.
pub(crate) fn write_until(
    file: impl AsFd,
    mut bytes: &[u8],
    deadline: Instant,
) -> io::Result<bool> {
    let file = file.as_fd();
    while !bytes.is_empty() {
        let written = write_at_once(file, bytes)?;
        bytes = &bytes[written..];
        if written == 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            poll_for(file, PollFlags::OUT, left);
        }
    }
    Ok(true)
}

/// Writes the beginning of `bytes` as far as possible without blocking; returns how much.
pub(crate) fn write_at_once(file: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    let file = file.as_fd();
    let kind = FileType::from_raw_mode(fstat(file)?.st_mode);
    if !poll_for(file, PollFlags::OUT, Duration::ZERO) {
        return Ok(0);
    }
    let written = match kind {
        FileType::Socket => send(file, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
        // A descriptor that polls as writable accepts this much at once (POSIX, `write`).
        FileType::Fifo => rustix::io::write(file, whole_lines(bytes)),
        // A terminal accepts one character, and may block on the next.
        FileType::CharacterDevice => rustix::io::write(file, &bytes[..bytes.len().min(1)]),
        FileType::RegularFile
        | FileType::Directory
        | FileType::Symlink
        | FileType::BlockDevice
        | FileType::Unknown => rustix::io::write(file, bytes),
    };
    match written {
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        written => Ok(written?),
    }
}

/// Writes all of `bytes`; into a pipe no line of up to `PIPE_BUF` bytes in two parts, between which another process
/// that writes into the same pipe could write.
pub(crate) fn write_lines(file: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    let file = file.as_fd();
    if FileType::from_raw_mode(fstat(file)?.st_mode) != FileType::Fifo {
        return write_all(file, bytes);
    }
    while !bytes.is_empty() {
        let lines = whole_lines(bytes);
        write_all(file, lines)?;
        bytes = &bytes[lines.len()..];
    }
    Ok(())
}

/// The beginning of `bytes` that a pipe takes as one: as many whole lines as there is room for, or a part of one that
/// is longer.
pub(crate) fn whole_lines(bytes: &[u8]) -> &[u8] {
    let Some(most) = bytes.get(..PIPE_BUF) else { return bytes };
    if bytes.len() == PIPE_BUF {
        return bytes;
    }
    let end = most.iter().rposition(|byte| *byte == b'\n').map_or(PIPE_BUF, |at| at + 1);
    &most[..end]
}

/// Waits until `file` is as `flags` describe, or broken.
pub(crate) fn wait_for(file: impl AsFd, flags: PollFlags) {
    // An error will recur, and is handled, when the file is read or written.
    poll(&mut [PollFd::new(&file, flags)], None).ok();
}

/// Like [`wait_for`], until `deadline`; returns whether the file is ready or broken.
pub(crate) fn wait_until(file: impl AsFd, flags: PollFlags, deadline: Instant) -> bool {
    let file = file.as_fd();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // A signal may have ended the wait early.
        if left.is_zero() || poll_for(file, flags, left) {
            return !left.is_zero();
        }
    }
}

/// Whether bytes wait in `file`, a pipe or a socket.
pub(crate) fn has_data(file: impl AsFd) -> bool {
    ioctl_fionread(file).is_ok_and(|bytes| bytes > 0)
}

/// Polls for at most `time`; returns whether the file is ready.
fn poll_for(file: impl AsFd, flags: PollFlags, time: Duration) -> bool {
    let time = Timespec::try_from(time).ok();
    poll(&mut [PollFd::new(&file, flags)], time.as_ref()).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::test_folder::TestFolder;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_pipe_of_a_shell_whose_writer_wrote_nothing_is_empty() {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(writer);
        for folder in SHELL_PIPE_FOLDERS.iter().filter(|folder| Path::new(folder).exists()) {
            let path = format!("{folder}/{}", reader.as_raw_fd());
            let (text, _) = read_named(Path::new(&path), 10).expect("it is read");
            assert_eq!(text, "", "{path}");
        }
    }

    #[test]
    fn a_file_that_is_overwritten_stays_the_same_file() {
        let folder = TestFolder::new();
        let path = folder.file("saved", "an earlier and longer text");
        let id = || FileId::of(&path.metadata().expect("a file"));
        let before = id();
        overwrite(&path, b"new").expect("it is ours");
        assert_eq!(std::fs::read(&path).expect("a file"), b"new");
        assert_eq!(id(), before);
        let missing = folder.path("missing");
        let error = overwrite(&missing, b"new").expect_err("nothing is mounted there");
        assert_eq!((error.kind(), missing.exists()), (io::ErrorKind::NotFound, false));
    }

    #[test]
    fn a_folder_that_stays_locked_is_named() {
        let folder = TestFolder::new();
        let path = folder.path("");
        let lock = || lock_folder(&path, Duration::from_millis(20));
        let held = lock().expect("a lock");
        assert!(held.is_some());
        let why = lock().expect_err("it is locked");
        assert_eq!(why.kind(), io::ErrorKind::TimedOut);
        assert!(why.to_string().contains(&path.display().to_string()), "{why}");
        drop(held);
        assert!(lock().expect("a lock").is_some());
    }

    /// Root may read every folder.
    #[test]
    fn a_file_in_a_folder_that_can_not_be_listed_is_replaced() {
        let folder = TestFolder::new();
        let inner = folder.path("inner");
        std::fs::create_dir(&inner).expect("a folder");
        let file = folder.file("inner/list", "old");
        let mode = |mode| PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&inner, mode(0o300)).expect("our own folder");
        let replaced = lock_folder_of(&file).and_then(|_lock| replace(&file, b"new"));
        std::fs::set_permissions(&inner, mode(0o700)).expect("our own folder");
        replaced.expect("it is replaced");
        assert_eq!(std::fs::read(&file).expect("a file"), b"new");
    }

    #[test]
    fn a_name_is_cut_between_characters() {
        let check = |name: &str, bytes_max, expected: &str| {
            assert_eq!(beginning_of(OsStr::new(name), bytes_max), expected, "{name} {bytes_max}");
        };
        check("abc", 5, "abc");
        check("abc", 3, "abc");
        check("abc", 2, "ab");
        check("a\u{e9}b", 3, "a\u{e9}");
        check("a\u{e9}b", 2, "a");
        check("\u{1f600}", 3, "");
    }

    #[test]
    fn a_pipe_gets_whole_lines() {
        let check = |lines: &[usize], expected: usize| {
            let line = |bytes: &usize| [vec![b'x'; bytes - 1], b"\n".to_vec()].concat();
            let bytes: Vec<u8> = lines.iter().flat_map(line).collect();
            assert_eq!(whole_lines(&bytes).len(), expected, "{lines:?}");
        };
        check(&[1000, 1000], 2000);
        check(&[1000; 5], 4000);
        check(&[PIPE_BUF], PIPE_BUF);
        check(&[PIPE_BUF - 1, 2], PIPE_BUF - 1);
        check(&[PIPE_BUF, 1], PIPE_BUF);
        check(&[PIPE_BUF + 1, 1], PIPE_BUF);
        check(&[3 * PIPE_BUF], PIPE_BUF);
        assert!(whole_lines(b"").is_empty());
    }
}
