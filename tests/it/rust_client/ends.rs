//! How processes are found, and how they end.

use super::{
    BINARY, Scratch, WITHOUT_PROVIDER, difficult, endless, kill, process_of, read_to, real, rest,
    run, start, texts_and_statuses, unreachable, until, wait_until_gone,
};
use crate::process::{Process, eventually};
use duologue::client::{Answer, Builder, Duologue, Error};
use rustix::process::{Pid, getpgid};
use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Write, stdout};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::spawn_blocking;

/// Lines of a run of the difficult server.
const RUN_LINES: usize = 10;

/// Processes that are started at once.
const STARTS_AT_ONCE: usize = 16;

/// Says what a program that a test starts does; without it the program does nothing.
const PROGRAM_VARIABLE: &str = "DUOLOGUE_TEST_PROGRAM";

/// What its lines begin with, among those of the harness.
const PREFIX: &str = "program: ";

/// A program with a conversation: this test binary, started again with this test.
#[tokio::test]
#[ignore = "a program that other tests start"]
async fn program() {
    let Ok(named) = env::var(PROGRAM_VARIABLE) else { return };
    let say = |text: &str| {
        writeln!(stdout(), "\n{PREFIX}{text}").expect("standard output");
    };
    if let Some(folder) = named.strip_prefix("wanders from ") {
        return say(&wander(folder).await);
    }
    let builder = endless();
    let unnamed = || Duologue::builder().engine("echo").args(["--echo-delay-ms=1"]);
    let builder = if named == "unnamed" { unnamed() } else { builder };
    match builder.start().await {
        Err(error) => say(&format!("{error:?}")),
        Ok(chat) if named == "unnamed" => say(&rest(&mut chat.stream("x")).await.0.concat()),
        Ok(chat) => {
            let mut stream = chat.stream("x");
            read_to(&mut stream, "ChatProviderCallStarted").await;
            say(&process_of(&chat).to_string());
            rest(&mut stream).await;
        }
    }
}

/// Goes to another folder, and on in another process; gives how many messages that has, and a copy.
async fn wander(folder: &str) -> String {
    env::set_current_dir(folder).expect("a folder");
    let chat = start(real().binary("./program").store("chat.db").session("ada")).await;
    run(&chat, "one").await;
    env::set_current_dir("/").expect("a folder");
    kill(process_of(&chat));
    assert!(chat.run("lost").await.is_err());
    chat.reconnect().await.expect("another process");
    let copy = start(chat.fork(None).await.expect("a copy")).await;
    format!("{} {}", texts_and_statuses(&chat).await.len(), texts_and_statuses(&copy).await.len())
}

#[test]
fn a_program_that_changes_its_folder() {
    let scratch = Scratch::new("wanders");
    symlink(BINARY, scratch.0.join("program")).expect("a link");
    let named = format!("wanders from {}", scratch.0.display());
    let (mut program, said) = start_program(&named, &[]);
    assert!(program.wait().expect("an end").success());
    assert_eq!(said, "2 2");
    assert!(scratch.0.join("chat.db").exists());
}

/// Starts the program; gives what it says, too.
pub(super) fn start_program(named: &str, variables: &[(&str, &str)]) -> (Child, String) {
    let mut command = Command::new(env::current_exe().expect("a path"));
    command.args(["--exact", "rust_client::ends::program", "--ignored", "--nocapture"]);
    command.env_remove("DUOLOGUE_BIN").env(PROGRAM_VARIABLE, named);
    command.envs(variables.iter().copied()).stdout(Stdio::piped());
    let mut program = command.spawn().expect("the tests run");
    // The pipe stays open, for what the harness writes after it.
    let lines = BufReader::new(program.stdout.as_mut().expect("a pipe")).lines();
    let said = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix(PREFIX)?.to_owned()))
        .expect("a line");
    (program, said)
}

#[test]
fn not_installed() {
    let folder = Path::new(BINARY).parent().and_then(Path::to_str).expect("a folder");
    let nowhere = ("PATH", "/nowhere");
    let answer = "Turn 1. You said: x";
    let cases = [
        (vec![nowhere], "not on the PATH"),
        (vec![nowhere, ("DUOLOGUE_BIN", "")], "not on the PATH"),
        (vec![("DUOLOGUE_BIN", "/nowhere/duologue")], "which the variable DUOLOGUE_BIN names"),
        (vec![nowhere, ("DUOLOGUE_BIN", BINARY)], answer),
        (vec![("PATH", folder)], answer),
    ];
    for (variables, expected) in cases {
        let (mut program, said) = start_program("unnamed", &variables);
        assert!(program.wait().expect("an end").success());
        assert!(said.contains(expected), "{variables:?}: {said}");
        assert_eq!(said.starts_with("NotInstalled"), expected != answer, "{said}");
    }
}

#[tokio::test]
async fn a_program_that_is_named_and_not_there() {
    match Duologue::builder().binary("/nowhere/duologue").start().await {
        Err(Error::NotInstalled(text)) => {
            assert!(text.contains("which the option `binary` names"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_folder_that_is_not_there() {
    match real().folder("/nowhere").start().await {
        Err(Error::NoFolder(text)) => {
            assert!(
                text.ends_with("can't be run in /nowhere, which is no folder that can be used"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_error_of_a_copy_is_that_of_what_failed() {
    let scratch = Scratch::new("copies");
    let [program, folder, store] =
        ["program", "folder", "chat.db"].map(|name| scratch.0.join(name));
    symlink(BINARY, &program).expect("a link");
    fs::create_dir(&folder).expect("a folder");
    let chat = start(scratch.stored().binary(&program).folder(&folder)).await;
    run(&chat, "x").await;
    fs::remove_file(&store).expect("it was there");
    assert!(matches!(chat.fork(None).await, Err(Error::Store(_))));
    fs::remove_dir(&folder).expect("it was there");
    assert!(matches!(chat.fork(None).await, Err(Error::NoFolder(_))));
    fs::create_dir(&folder).expect("a folder");
    // It is there, and can't be started.
    fs::remove_file(&program).expect("it was there");
    let script = OpenOptions::new().write(true).create_new(true).mode(0o755).open(&program);
    script.and_then(|mut file| file.write_all(b"#!/nowhere/sh\n")).expect("it is written");
    assert!(matches!(chat.fork(None).await, Err(Error::NotInstalled(_))));
    fs::remove_file(&program).expect("it was there");
    assert!(matches!(chat.fork(None).await, Err(Error::NotInstalled(_))));
}

#[tokio::test]
async fn a_relative_path_to_the_program_and_another_folder() {
    let from = env::current_dir().expect("a folder");
    let up = from.components().skip(1).map(|_| "..").collect::<Vec<_>>().join("/");
    let relative = format!("{up}{BINARY}");
    let builder = Duologue::builder().binary(&relative).engine("echo").folder("/");
    assert!(run(&start(builder).await, "x").await.text.ends_with("You said: x"), "{relative}");
}

/// What is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("no panic")).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn an_echo_nobody_asked_for_is_a_warning() {
    let log = Log::default();
    let written = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || log.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());
    let builder = Duologue::builder().binary(WITHOUT_PROVIDER).env("DUOLOGUE_BIN", BINARY);
    let chat = start(builder.clone()).await;
    assert_eq!(run(&chat, "x").await.text, "Turn 1. You said: x");
    until(|| written.text().contains("the built-in echo engine of duologue answers")).await;
    chat.close().await;
    for builder in [builder.clone(), builder.clone().engine("echo")] {
        let other = start(builder).await;
        run(&other, "x").await;
        other.close().await;
    }
    assert_eq!(written.text().matches("--require-provider").count(), 1, "{}", written.text());
    let required = builder.args(["--require-provider"]).start().await;
    assert!(matches!(required, Err(Error::Config(_))), "{required:?}");
}

#[tokio::test]
async fn a_wrong_command_line_is_said() {
    // Many at once, so that some processes have ended before their first frame is read: the request that comes after it
    // is then sent to a process whose end is known.
    let starts = (0..STARTS_AT_ONCE).map(|_| tokio::spawn(real().args(["--nonsense"]).start()));
    for start in starts.collect::<Vec<_>>() {
        match start.await.expect("no panic") {
            Err(error @ Error::Config(_)) => {
                assert!(error.to_string().contains("--nonsense"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_end_at_every_point() {
    needs!(Python);
    for lines in 0..RUN_LINES + 2 {
        for how in ["die", "die-half"] {
            let failure = failure_of(difficult(&format!("{how}:{lines}"))).await;
            let Error::ProcessEnded { status, stderr } = &failure else {
                panic!("{how}:{lines}: {failure:?}")
            };
            assert_eq!(status.and_then(|it| it.code()), Some(9), "{how}:{lines}");
            assert_eq!(stderr, "the difficult server has died", "{how}:{lines}");
            assert!(failure.to_string().contains("the difficult server has died"), "{failure}");
        }
    }
}

/// What goes wrong in two runs.
async fn failure_of(builder: Builder) -> Error {
    let two = async {
        let chat = builder.start().await?;
        chat.run("x").await?;
        chat.run("y").await
    };
    two.await.expect_err("it ends")
}

#[tokio::test]
async fn closing_goes_as_far_as_it_has_to() {
    needs!(Python);
    let chat = start(real()).await;
    chat.clone().close().await;
    assert!(matches!(chat.run("x").await, Err(Error::Closed)));
    for how in ["normal", "endless", "stubborn", "deaf"] {
        let (name, value) = ("DUOLOGUE_TEST_CLOSING", format!("{how}-{}", std::process::id()));
        let builder = difficult(how).env(name, &value).close_time(Duration::from_millis(50));
        // Only one that never begins is waited for so long.
        let start_time = Duration::from_secs(if how == "deaf" { 2 } else { 60 });
        match builder.start_time(start_time).start().await {
            Ok(chat) => {
                let mut stream = chat.stream("x");
                assert!(stream.next().await.is_some(), "{how}");
                drop(stream);
                match how {
                    "endless" => drop(chat),
                    _ => chat.close().await,
                }
            }
            // It hears neither the shutdown, nor the end of its input, nor SIGTERM.
            Err(error) => assert_eq!(how, "deaf", "{error}"),
        }
        let mark = format!("{name}={value}");
        let is_gone = move || Process::marked(&mark).is_empty().then_some(());
        let wait = move || eventually("nothing is left running", is_gone);
        spawn_blocking(wait).await.expect("it ends");
    }
}

#[tokio::test]
async fn closing_stops_what_runs() {
    let chat = start(endless()).await;
    let process = process_of(&chat);
    let mut stream = chat.stream("x");
    read_to(&mut stream, "ChatProviderCallStarted").await;
    chat.close().await;
    assert_eq!(rest(&mut stream).await.1, None);
    assert!(stream.answer().is_some_and(Answer::is_stopped));
    wait_until_gone(process).await;
}

#[test]
fn the_process_ends_with_a_program_that_is_killed() {
    let (mut program, said) = start_program("held", &[]);
    let process = Process(said.parse().expect("a process"));
    assert!(!process.command_line().is_empty(), "it runs");
    kill(program.id());
    program.wait().expect("an end");
    eventually("the process has ended", || process.command_line().is_empty().then_some(()));
}

#[test]
fn the_process_ends_with_the_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let chat = runtime.block_on(start(unreachable()));
    let process = Process(process_of(&chat));
    drop(runtime);
    eventually("the process has ended", || process.command_line().is_empty().then_some(()));
}

#[tokio::test]
async fn a_signal_to_the_group_of_the_program_does_not_reach_the_process() {
    let chat = start(real()).await;
    let process = Pid::from_raw(process_of(&chat).cast_signed()).expect("a process");
    let own = getpgid(None).expect("a group");
    assert_ne!(getpgid(Some(process)).expect("a group"), own);
}
