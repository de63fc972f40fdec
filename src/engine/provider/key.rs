//! A key that is not in a variable: a program prints it, or a file holds it. It is got when the first
//! call needs it, off the loop, in bounded time and memory. Nothing that is read or printed here is
//! shown but what the program writes to standard error, without the lines that may be keys.

use crate::support::files::read_limited;
use crate::support::secret::Secret;
use crate::support::terminal::escape_control;
use crate::support::threads;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time limit for the program. It may wait for a person: for a password, or a touch of a device.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// Time limit for the outputs after the program has ended: what it started may hold them open.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// Time limit for reading the file.
const FILE_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of a file with a key, and of what a program prints.
const KEY_BYTES_MAX: usize = 64 * 1024;

/// Bytes of what the program writes to standard error that are shown.
const SHOWN_BYTES_MAX: usize = 2 * 1024;

/// A shorter line that the program printed may be any word, and is left where standard error has it.
const SECRET_BYTES_MIN: usize = 6;

/// Mode bits of a file that users other than its owner can read or write.
const OPEN_TO_OTHERS: u32 = 0o077;

/// Mode bits of a file that somebody can execute.
const EXECUTABLE: u32 = 0o111;

/// Where the C library looks for programs if `PATH` is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Where a key comes from when a call needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The first line that a program prints: its name and its arguments. It is run without a shell.
    Command(Vec<String>),
    /// The first line of a file that its owner alone can read.
    File(PathBuf),
}

impl KeySource {
    /// Looks for what a call will need, without running or reading it.
    ///
    /// # Errors
    /// If the program is not found, or the file is missing or is not private: what and what to do.
    pub(in crate::engine) fn look(&self) -> Result<(), NoKey> {
        match self {
            Self::Command(words) => {
                let program = words.first().map_or("", String::as_str);
                match is_program(program, std::env::var_os("PATH").as_deref()) {
                    true => Ok(()),
                    false => Err(NoKey::new(format!(
                        "the program of the key command, `{}`, is not found, so no call gets a key; \
                         install it, or correct --key-command or the profile's key-command",
                        escape_control(program)
                    ))),
                }
            }
            Self::File(path) => {
                let about = path.metadata();
                checked(path, &about.map_err(|error| unreadable(path, &error.to_string()))?)
            }
        }
    }

    /// The same, for people.
    ///
    /// # Errors
    /// As [`KeySource::look`].
    pub(crate) fn check(&self) -> Result<(), String> {
        self.look().map_err(|NoKey { message, .. }| message)
    }
}

/// Whether a program of that name is found as the system finds it: by its path, or in `folders`.
fn is_program(name: &str, folders: Option<&OsStr>) -> bool {
    let is_executable =
        |path: &Path| path.metadata().is_ok_and(|it| it.is_file() && it.mode() & EXECUTABLE != 0);
    if name.contains('/') {
        return is_executable(Path::new(name));
    }
    std::env::split_paths(folders.unwrap_or(OsStr::new(DEFAULT_PATH)))
        .any(|folder| is_executable(&folder.join(name)))
}

/// The key of an engine, which is got when it is needed and then kept.
#[derive(Debug, Default)]
pub(in crate::engine) struct Key {
    source: Option<KeySource>,
    kept: Mutex<Option<Secret>>,
    /// Held while the key is got, so that it is got once for all who wait.
    getting: tokio::sync::Mutex<()>,
}

/// Why there is no key. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct NoKey {
    /// What happened and what to do.
    pub(in crate::engine) message: String,
    /// Details.
    pub(in crate::engine) detail: String,
}

impl NoKey {
    fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        Self { detail: message.clone(), message }
    }
}

impl Key {
    /// The key `known`, or one that is got from `source`, which has precedence.
    pub(in crate::engine) fn new(known: Option<Secret>, source: Option<KeySource>) -> Self {
        let kept = Mutex::new(known.filter(|_| source.is_none()));
        Self { source, kept, getting: tokio::sync::Mutex::default() }
    }

    /// Whether there is a key, as far as is known without getting it.
    pub(in crate::engine) fn is_configured(&self) -> bool {
        self.source.is_some() || self.kept().is_some()
    }

    /// The key, if it has been got.
    pub(in crate::engine) fn known(&self) -> Option<Secret> {
        self.kept().clone()
    }

    /// The key, which is got if it was not yet; `None` if there is none. Dropped, it ends the program.
    ///
    /// # Errors
    /// If it can't be got. The next call tries again.
    pub(in crate::engine) async fn get(&self) -> Result<Option<Secret>, NoKey> {
        let Some(source) = &self.source else { return Ok(self.known()) };
        let _getting = self.getting.lock().await;
        if let Some(key) = self.known() {
            return Ok(Some(key));
        }
        let key = match source {
            KeySource::Command(words) => printed(words, COMMAND_TIMEOUT).await?,
            KeySource::File(path) => in_file(path).await?,
        };
        *self.kept() = Some(key.clone());
        Ok(Some(key))
    }

    /// Another key in the place of `refused`, which the provider no longer takes: it may have been
    /// changed since it was got. `None` if there is no other.
    pub(in crate::engine) async fn renewed(&self, refused: &Secret) -> Option<Secret> {
        self.source.as_ref()?;
        self.kept().take_if(|kept| kept == refused);
        let got = self.get().await.inspect_err(|why| tracing::warn!("{}", why.message));
        got.ok().flatten().filter(|key| key != refused)
    }

    fn kept(&self) -> MutexGuard<'_, Option<Secret>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key that a program prints.
async fn printed(words: &[String], limit: Duration) -> Result<Secret, NoKey> {
    let program = words.first().map_or("", String::as_str);
    let fail = |why: &str| {
        NoKey::new(format!(
            "the key can't be had: the key command `{}` {why}; nothing was sent to the provider. \
             Run the command in a terminal, and correct it or --key-command or the profile's \
             key-command",
            escape_control(program)
        ))
    };
    let mut running = Running::start(words).map_err(|error| {
        match error.kind() == std::io::ErrorKind::NotFound {
            true => fail("was not found"),
            false => fail(&format!("could not be started ({error})")),
        }
    })?;
    let Ok(ended) = timeout(limit, running.end()).await else {
        return Err(fail(&format!("printed no key within {} s", limit.as_secs())));
    };
    let Ended { status, stdout, stderr } =
        ended.map_err(|error| fail(&format!("could not be read ({error})")))?;
    if !status.success() {
        return Err(fail(&format!("failed ({status}){}", complaint(&stdout, &stderr))));
    }
    if stdout.len() > KEY_BYTES_MAX {
        return Err(fail(&format!("printed more than {KEY_BYTES_MAX} bytes")));
    }
    first_line(&stdout).map_err(|()| fail(&format!("printed no key{}", complaint(&[], &stderr))))
}

/// A program that prints a key. Dropped, it ends with all of its process group.
struct Running {
    child: Child,
    group: Option<Pid>,
}

/// What a program left behind.
struct Ended {
    status: std::process::ExitStatus,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Running {
    fn start(words: &[String]) -> std::io::Result<Self> {
        let (program, args) = words.split_first().ok_or(std::io::ErrorKind::NotFound)?;
        let mut command = Command::new(program);
        command.args(args).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Self { child, group })
    }

    /// Waits for its end, and for the end of its outputs, which what it started may delay: then what
    /// has come counts. Its process group is ended in any case.
    async fn end(&mut self) -> std::io::Result<Ended> {
        let (out, err) = (self.child.stdout.take(), self.child.stderr.take());
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        {
            let reading = async {
                tokio::try_join!(
                    collect(out, KEY_BYTES_MAX + 1, &mut stdout),
                    collect(err, SHOWN_BYTES_MAX, &mut stderr)
                )
            };
            let mut reading = pin!(reading);
            let read = tokio::select! {
                read = &mut reading => Some(read),
                exited = self.exited() => {
                    exited?;
                    timeout(OUTPUT_TIMEOUT, &mut reading).await.ok()
                }
            };
            read.transpose()?;
        }
        self.exited().await?;
        // Before the program is waited for, so that its number is still that of its group.
        self.end_group();
        Ok(Ended { status: self.child.wait().await?, stdout, stderr })
    }

    /// Waits until the program has ended, and leaves its number with it.
    async fn exited(&self) -> std::io::Result<()> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let mut signals = signal(SignalKind::child())?;
        while let Some(group) = self.group
            && waitid(WaitId::Pid(group), options)?.is_none()
        {
            signals.recv().await;
        }
        Ok(())
    }

    fn end_group(&self) {
        // The number may belong to another process once the program has been waited for.
        if let (Some(group), Some(_)) = (self.group, self.child.id()) {
            // It may have ended by itself.
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end_group();
    }
}

/// Reads the first `bytes_max` bytes of `pipe` into `bytes`; the rest is read and dropped, so that its
/// writer can end.
async fn collect(
    pipe: Option<impl AsyncRead + Unpin>,
    bytes_max: usize,
    bytes: &mut Vec<u8>,
) -> std::io::Result<()> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    (&mut pipe).take(u64::try_from(bytes_max).unwrap_or(u64::MAX)).read_to_end(bytes).await?;
    tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    Ok(())
}

/// What the program wrote to `stderr`, in one line, without the lines that it printed.
fn complaint(stdout: &[u8], stderr: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(stderr).trim().to_owned();
    let printed = String::from_utf8_lossy(stdout).into_owned();
    let lines = printed.lines().map(str::trim).filter(|line| line.len() >= SECRET_BYTES_MIN);
    for secret in lines.filter_map(Secret::new) {
        text = secret.redact_cut(&text);
    }
    if text.is_empty() { text } else { format!(": {}", escape_control(&text)) }
}

/// The key in a file.
async fn in_file(path: &Path) -> Result<Secret, NoKey> {
    let (done, read) = oneshot::channel();
    let owned = path.to_owned();
    let work = move || drop(done.send(read_limited(&owned, KEY_BYTES_MAX)));
    threads::spawn("key-file", work)
        .map_err(|error| no_key_in(path, &format!("could not be read ({error})")))?;
    let read = match timeout(FILE_TIMEOUT, read).await {
        Ok(Ok(read)) => read,
        Ok(Err(_)) => return Err(no_key_in(path, "could not be read")),
        Err(_) => return Err(no_key_in(path, "could not be read in time")),
    };
    let (text, about) = read.map_err(|error| unreadable(path, &error.to_string()))?;
    checked(path, &about)?;
    first_line(text.as_bytes()).map_err(|()| no_key_in(path, "holds no key in its first line"))
}

fn no_key_in(path: &Path, why: &str) -> NoKey {
    let shown = escape_control(&path.display().to_string());
    NoKey::new(format!(
        "the key can't be had: the key file {shown} {why}; nothing was sent to the provider"
    ))
}

fn unreadable(path: &Path, error: &str) -> NoKey {
    no_key_in(path, &format!("can't be read ({error}); check --key-file or the profile's key-file"))
}

/// Checks that the key in the file is known to its owner alone.
fn checked(path: &Path, about: &Metadata) -> Result<(), NoKey> {
    if !about.is_file() {
        return Err(unreadable(path, "it is not a regular file"));
    }
    if is_private(about) {
        return Ok(());
    }
    let shown = escape_control(&path.display().to_string());
    let why = format!(
        "can be read by other users, so its key may be known to them; run `chmod 600 {shown}`, and \
         think of getting a new key"
    );
    Err(no_key_in(path, &why))
}

/// Whether only the user, or the administrator, owns and can read the file.
fn is_private(about: &Metadata) -> bool {
    let user = rustix::process::geteuid().as_raw();
    about.mode() & OPEN_TO_OTHERS == 0 && (about.uid() == user || about.uid() == 0)
}

/// The key in the first line. Password managers print a password first, and notes after it.
fn first_line(bytes: &[u8]) -> Result<Secret, ()> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().next().and_then(Secret::new).ok_or(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    async fn error(script: &str, limit: Duration) -> String {
        printed(&words(script), limit).await.expect_err(script).message
    }

    #[tokio::test]
    async fn the_first_line_is_the_key() {
        let check = async |script: &str| {
            let key = printed(&words(script), COMMAND_TIMEOUT).await.expect("a key");
            assert_eq!(key.expose(), "sk-one", "{script}");
        };
        check("echo sk-one").await;
        check("printf sk-one").await;
        check("printf ' sk-one \\r\\nuser: me\\n'").await;
        check("echo working >&2; echo sk-one").await;
    }

    #[tokio::test]
    async fn a_program_that_prints_no_key_is_an_error_without_secrets() {
        let check = async |script: &str, expected: &str| {
            let error = error(script, COMMAND_TIMEOUT).await;
            assert!(error.contains("the key command `sh`") && error.contains(expected), "{error}");
            assert!(!error.contains("sk-one") && !error.contains(script), "{error}");
        };
        check("exit 3", "failed (exit status: 3);").await;
        check("echo sk-one-two; echo locked: sk-one-two >&2; exit 1", "): locked: [redacted];")
            .await;
        check("printf '\\033[31mlocked\\n' >&2; exit 1", "\\x1b[31mlocked").await;
        check("true", "printed no key;").await;
        check("echo; echo sk-one", "printed no key;").await;
        check("head -c 100000 /dev/zero | tr '\\0' x", "printed more than 65536 bytes").await;
        let missing = printed(&["no-such-program".to_owned()], COMMAND_TIMEOUT).await;
        assert!(missing.expect_err("none").message.contains("`no-such-program` was not found"));
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_ended_with_its_children() {
        let folder = std::env::temp_dir().join(format!("key-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let pid_file = folder.join("pid");
        let script = format!("sleep 1000 & echo $! > {}; wait", pid_file.display());
        let reported = error(&script, Duration::from_millis(300)).await;
        assert!(reported.contains("printed no key within"), "{reported}");
        let pid = std::fs::read_to_string(&pid_file).expect("it has run");
        let pid = Pid::from_raw(pid.trim().parse().expect("a number")).expect("a process");
        std::fs::remove_dir_all(&folder).ok();
        let begin = std::time::Instant::now();
        while is_running(pid) {
            assert!(begin.elapsed() < Duration::from_secs(60), "the child is still there");
            tokio::task::yield_now().await;
        }
    }

    /// A program may leave a process behind that holds its outputs.
    #[tokio::test]
    async fn a_key_is_taken_when_the_program_has_ended_and_what_it_started_is_ended() {
        let script = "echo sk-one; sleep 4321 & echo $!";
        let words = words(script);
        let mut running = Running::start(&words).expect("it starts");
        let ended = timeout(COMMAND_TIMEOUT, running.end()).await.expect("in time").expect("read");
        assert!(ended.status.success());
        let text = String::from_utf8(ended.stdout).expect("text");
        let (key, pid) = text.trim().split_once('\n').expect("two lines");
        assert_eq!(key, "sk-one");
        let pid = Pid::from_raw(pid.parse().expect("a number")).expect("a process");
        let begin = std::time::Instant::now();
        while is_running(pid) {
            assert!(begin.elapsed() < Duration::from_secs(60), "the child is still there");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_refused_key_is_got_again_and_another_one_counts() {
        let folder = std::env::temp_dir().join(format!("renewed-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("key");
        let script = format!("cat {}", file.display());
        let key = Key::new(None, Some(KeySource::Command(words(&script))));
        std::fs::write(&file, "sk-old").expect("a file");
        let old = key.get().await.expect("a key").expect("one");
        assert_eq!(key.renewed(&old).await, None);
        std::fs::write(&file, "sk-new").expect("a file");
        let new = key.renewed(&old).await.expect("another");
        assert_eq!(new.expose(), "sk-new");
        // Somebody else has got it meanwhile.
        std::fs::remove_dir_all(&folder).expect("our own folder");
        assert_eq!(key.renewed(&old).await, Some(new.clone()));
        assert_eq!(key.renewed(&new).await, None);
        let fixed = Key::new(Some(new.clone()), None);
        assert_eq!((fixed.renewed(&new).await, fixed.known()), (None, Some(new)));
    }

    /// A process that has ended and was not waited for yet does not run.
    fn is_running(pid: Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[tokio::test]
    async fn a_key_is_got_once_and_again_after_an_error() {
        let folder = std::env::temp_dir().join(format!("keys-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let count = folder.join("count");
        let script =
            format!("echo x >> {0}; test $(wc -l < {0}) -ge 2 && echo sk-one", count.display());
        let key = Key::new(None, Some(KeySource::Command(words(&script))));
        assert!(key.is_configured() && key.known().is_none());
        assert!(key.get().await.is_err());
        for _ in 0..3 {
            let got = key.get().await.expect("a key");
            assert_eq!(got.as_ref().map(Secret::expose), Some("sk-one"));
        }
        let runs = std::fs::read_to_string(&count).expect("it has run").lines().count();
        std::fs::remove_dir_all(&folder).ok();
        assert_eq!(runs, 2);
    }

    #[test]
    fn what_a_call_will_need_is_looked_for() {
        let command = |word: &str| KeySource::Command(vec![word.to_owned()]).check();
        assert_eq!((command("sh"), command("/bin/sh")), (Ok(()), Ok(())));
        for missing in ["no-such-program", "/no/such/program", "/etc", ""] {
            let error = command(missing).expect_err(missing);
            assert!(error.contains("is not found") && error.contains(missing), "{error}");
        }
        let file = KeySource::File(PathBuf::from("/no/such/file")).check();
        assert!(file.expect_err("missing").contains("/no/such/file can't be read"));
    }

    #[tokio::test]
    async fn a_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("key-file-{}", std::process::id()));
        std::fs::write(&path, "sk-one\n# a note\n").expect("a file");
        let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode));
        mode(0o640).expect("our own file");
        let open = in_file(&path).await.expect_err("open").message;
        assert!(
            open.contains("can be read by other users") && open.contains("chmod 600"),
            "{open}"
        );
        assert_eq!(KeySource::File(path.clone()).check(), Err(open));
        mode(0o600).expect("our own file");
        assert_eq!(in_file(&path).await.expect("a key").expose(), "sk-one");
        std::fs::remove_file(&path).expect("our own file");
        let missing = in_file(&path).await.expect_err("gone").message;
        assert!(missing.contains("can't be read") && missing.contains("key-file"), "{missing}");
        let folder = in_file(&std::env::temp_dir()).await.expect_err("no file").message;
        assert!(folder.contains("not a regular file"), "{folder}");
    }
}
