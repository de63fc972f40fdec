//! Keys of programs and of files.

use super::program::Running;
use super::*;
use crate::support::test_folder::TestFolder;
use rustix::process::Pid;

const NAMES: &SettingNames = &SettingNames::FIELDS;

fn words(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

async fn error(script: &str, limit: Duration) -> String {
    printed(&words(script), limit, NAMES).await.expect_err(script).message
}

#[tokio::test]
async fn the_first_line_is_the_key() {
    let check = async |script: &str| {
        let key = printed(&words(script), COMMAND_TIMEOUT, NAMES).await.expect("a key");
        assert_eq!(key.expose(), "sk-one", "{script}");
    };
    check("echo sk-one").await;
    check("printf sk-one").await;
    check("printf ' sk-one \\r\\nuser: me\\n'").await;
    check("echo working >&2; echo sk-one").await;
    check("printf '\\357\\273\\277sk-one\\n'").await;
}

#[tokio::test]
async fn a_program_that_prints_no_key_is_an_error_without_secrets() {
    let check = async |script: &str, expected: &str| {
        let error = error(script, COMMAND_TIMEOUT).await;
        assert!(error.contains("the key command `sh`") && error.contains(expected), "{error}");
        assert!(!error.contains("sk-one") && !error.contains(script), "{error}");
    };
    check("exit 3", "failed (exit status: 3);").await;
    check("echo sk-one-two; echo locked: sk-one-two >&2; exit 1", "): locked: [redacted];").await;
    check("printf '\\033[31mlocked\\n' >&2; exit 1", "\\x1b[31mlocked").await;
    check("true", "printed no key;").await;
    check("echo; echo sk-one", "printed no key;").await;
    check("head -c 100000 /dev/zero | tr '\\0' x", "printed more than 65536 bytes").await;
    let missing = printed(&["no-such-program".to_owned()], COMMAND_TIMEOUT, NAMES).await;
    assert!(missing.expect_err("none").message.contains("`no-such-program` was not found"));
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_with_its_children() {
    let folder = TestFolder::new();
    let pid_file = folder.path("pid");
    let script = format!("sleep 1000 & echo $! > {}; wait", pid_file.display());
    let reported = error(&script, Duration::from_millis(300)).await;
    assert!(reported.contains("printed no key within"), "{reported}");
    let pid = std::fs::read_to_string(&pid_file).expect("it has run");
    let pid = Pid::from_raw(pid.trim().parse().expect("a number")).expect("a process");
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
    let folder = TestFolder::new();
    let file = folder.path("key");
    let script = format!("cat {}", file.display());
    let key = Key::new(None, Some(KeySource::Command(words(&script))), NAMES);
    std::fs::write(&file, "sk-old").expect("a file");
    let old = key.get().await.expect("a key").expect("one");
    assert_eq!(key.renewed(&old).await, None);
    std::fs::write(&file, "sk-new").expect("a file");
    let new = key.renewed(&old).await.expect("another");
    assert_eq!(new.expose(), "sk-new");
    // Somebody else has got it meanwhile.
    drop(folder);
    assert_eq!(key.renewed(&old).await, Some(new.clone()));
    assert_eq!(key.renewed(&new).await, None);
    let fixed = Key::new(Some(new.clone()), None, NAMES);
    assert_eq!((fixed.renewed(&new).await, fixed.known()), (None, Some(new)));
}

/// A process that has ended and was not waited for yet does not run.
fn is_running(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn a_key_is_got_once_and_again_after_an_error() {
    let folder = TestFolder::new();
    let count = folder.path("count");
    let script =
        format!("echo x >> {0}; test $(wc -l < {0}) -ge 2 && echo sk-one", count.display());
    let key = Key::new(None, Some(KeySource::Command(words(&script))), NAMES);
    assert!(key.is_configured() && key.known().is_none());
    assert!(key.get().await.is_err());
    for _ in 0..3 {
        let got = key.get().await.expect("a key");
        assert_eq!(got.as_ref().map(Secret::expose), Some("sk-one"));
    }
    let runs = std::fs::read_to_string(&count).expect("it has run").lines().count();
    assert_eq!(runs, 2);
}

#[test]
fn what_a_call_will_need_is_looked_for() {
    let command = |word: &str| KeySource::Command(vec![word.to_owned()]).check(NAMES);
    assert_eq!((command("sh"), command("/bin/sh")), (Ok(()), Ok(())));
    for missing in ["no-such-program", "/no/such/program", "/etc", ""] {
        let error = command(missing).expect_err(missing);
        assert!(error.contains("is not found") && error.contains(missing), "{error}");
    }
    let file = KeySource::File(PathBuf::from("/no/such/file")).check(NAMES);
    assert!(file.expect_err("missing").contains("/no/such/file can't be read"));
}

#[tokio::test]
async fn a_file_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TestFolder::new();
    let path = folder.path("key-file");
    std::fs::write(&path, "sk-one\n# a note\n").expect("a file");
    let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode));
    mode(0o640).expect("our own file");
    let open = in_file(&path, NAMES).await.expect_err("open").message;
    assert!(open.contains("can be read by other users") && open.contains("chmod 600"), "{open}");
    assert_eq!(KeySource::File(path.clone()).check(NAMES), Err(open));
    mode(0o600).expect("our own file");
    assert_eq!(in_file(&path, NAMES).await.expect("a key").expose(), "sk-one");
    std::fs::remove_file(&path).expect("our own file");
    let missing = in_file(&path, NAMES).await.expect_err("gone").message;
    assert!(missing.contains("can't be read") && missing.contains("key-file"), "{missing}");
    let other = in_file(&folder.path(""), NAMES).await.expect_err("no file").message;
    assert!(other.contains("not a regular file"), "{other}");
}
