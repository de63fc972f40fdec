//! The file of `--save`: what it may not replace, and that it is written once the answer is there.

use crate::once::{Once, duologue, run};
use crate::process::eventually;
use crate::provider::{Provider, Step};
use crate::server::{Folder, KEY};
use rustix::process::Signal;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A store has all sessions in it, and a file that is read is needed by the next run.
#[test]
fn the_last_message_replaces_no_store_and_no_file_that_is_no_prompt() {
    let folder = Folder::new();
    let exec = |options: &[&str]| {
        let words = ["exec", "hi", "--engine", "echo", "--session-id", "s"];
        run(&folder, &[&words[..], options].concat())
    };
    let begun = run(&folder, &["exec", "one", "--engine", "echo", "--session", "s"]);
    assert_eq!(begun.status, 0, "{begun:?}");
    assert_eq!(exec(&["--store", "own.db"]).status, 0);
    fs::create_dir(folder.path("deep")).expect("a folder");
    for file in ["key", "prices", "system", "schema", "deep/reads.yaml"] {
        fs::write(folder.path(file), "{}").expect("a file");
    }
    let default = folder.name("data/duologue/sessions.db");
    let refused: [(&[&str], &str); 9] = [
        (&["--save", &default], "(the default store)"),
        (&["--resume", "--save", &default], "(the default store)"),
        (&["--resume", "--store", "own.db", "--save", "own.db"], "(--store)"),
        (&["--resume", "--timeline-db", "own.db", "--save", "own.db"], "(--timeline-db)"),
        (&["--key-file", "key", "--save", "key"], "(--key-file)"),
        (&["--prices", "prices", "--save", "prices"], "(--prices)"),
        (&["--system-file", "system", "--save", "deep/../system"], "(--system-file)"),
        (&["--schema", "schema", "--save", "schema"], "(--schema)"),
        (&["--debug-events-jsonl", "out", "--save", "./out"], "the file of --debug-events-jsonl"),
    ];
    for (options, part) in refused {
        let ended = exec(options);
        assert_eq!((ended.status, &*ended.stdout), (2, ""), "{options:?}: {ended:?}");
        assert!(ended.stderr.contains("--save: ") && ended.stderr.contains(part), "{ended:?}");
    }
    let mut by_variable =
        duologue(&folder, &["exec", "hi", "--engine", "echo", "--save", "own.db"]);
    by_variable.env("DUOLOGUE_STORE", "own.db");
    let by_variable = Once::start(by_variable).finish();
    assert_eq!(by_variable.status, 2, "{by_variable:?}");
    assert!(by_variable.stderr.contains("(DUOLOGUE_STORE)"), "{by_variable:?}");
    for store in [&[][..], &["--store", "own.db"]] {
        let ended = exec(&[store, &["--resume"]].concat());
        assert_eq!(ended.status, 0, "{ended:?}");
    }
    let command_file =
        "name: reads\nflags: [{name: notes, type: stringFromFile}]\nprompt: '{{ .notes }}'\n";
    fs::write(folder.path("deep/reads.yaml"), command_file).expect("a file");
    let words = ["run-command", "deep/reads.yaml", "--engine", "echo", "--save", "deep/reads.yaml"];
    let own = run(&folder, &words);
    assert!(own.status == 2 && own.stderr.contains("(the command file)"), "{own:?}");
    // What the prompt is made of may be replaced by the answer.
    fs::write(folder.path("text"), "text").expect("a file");
    let prompts: [&[&str]; 4] = [
        &["exec", "hi", "--file", "text"],
        &["exec", "--prompt-file", "text"],
        &["exec", "hi", "--attach", "text"],
        &["run-command", "deep/reads.yaml", "--notes", "text"],
    ];
    for words in prompts {
        let ended = run(&folder, &[words, &["--engine", "echo", "--save", "text"]].concat());
        assert_eq!(ended.status, 0, "{ended:?}");
        assert_eq!(fs::read_to_string(folder.path("text")).expect("a file"), ended.stdout);
    }
}

/// A server that ends long after its input, and says when that has ended.
const SLOW_SERVER: &str = r#"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[]}' ;;
    *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
trap '' TERM
: > ended
exec sleep 600
"#;

#[test]
fn a_signal_while_servers_end_does_not_take_the_saved_message_away() {
    let folder = Folder::new();
    fs::write(folder.path("server"), SLOW_SERVER).expect("a file");
    let words = ["exec", "hi", "--engine", "echo", "--mcp", "sh server", "--save", "saved"];
    let once = Once::start(duologue(&folder, &words));
    eventually("the server is to end", || folder.path("ended").exists().then_some(()));
    once.signal(Signal::INT);
    let ended = once.finish();
    assert_eq!(ended.stdout, "Turn 1. You said: hi\n", "{ended:?}");
    let saved = fs::read_to_string(folder.path("saved")).expect("the last message");
    assert_eq!(saved, ended.stdout, "{ended:?}");
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    let folder = Folder::new();
    for kept in [0o644, 0o600, 0o640] {
        fs::write(folder.path("saved"), "old").expect("a file");
        fs::set_permissions(folder.path("saved"), PermissionsExt::from_mode(kept)).expect("ours");
        let ended = run(&folder, &["exec", "hi", "--engine", "echo", "--save", "saved"]);
        assert_eq!(ended.status, 0, "{ended:?}");
        let mode = fs::metadata(folder.path("saved")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, kept);
    }
}

/// What is in memory is a file like another, though its folder is one of devices.
#[test]
fn a_file_in_shared_memory_is_saved_to() {
    if !Path::new("/dev/shm").is_dir() {
        return;
    }
    let folder = Folder::new();
    let path = format!("/dev/shm/duologue-saved-{}", std::process::id());
    let ended = run(&folder, &["exec", "hi", "--engine", "echo", "--save", &path]);
    let saved = fs::read_to_string(&path);
    fs::remove_file(&path).ok();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{ended:?}");
    assert_eq!(saved.expect("a file"), ended.stdout);
}

/// The new file has the name of no other, also not of one that a process of the same id has left.
#[test]
fn a_file_beside_the_saved_one_stays() {
    let folder = Folder::new();
    let script = "echo other > saved.new-$$; exec \"$0\" exec hi --engine echo --save saved";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_duologue")]).current_dir(folder.path(""));
    let ended = Once::start(shell).finish();
    assert_eq!(ended.status, 0, "{ended:?}");
    let names =
        fs::read_dir(folder.path("")).expect("a folder").map(|it| it.expect("a file").path());
    let left: Vec<_> = names.filter(|path| !path.ends_with("saved")).collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(fs::read_to_string(&left[0]).expect("a file"), "other\n");
}

/// A run that is stopped has no message, although the process ends well, as others whose reader leaves.
#[test]
fn an_answer_whose_reader_leaves_replaces_nothing() {
    let folder = Folder::new();
    let long: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    fs::write(folder.path("long"), long).expect("a file");
    fs::write(folder.path("saved"), "old").expect("a file");
    let words = ["exec", "hi", "--engine", "echo", "--echo-answer", "long", "--save", "saved"];
    let (once, mut stdout) = Once::start_unread(duologue(&folder, &words));
    stdout.read_exact(&mut [0; 10]).expect("the beginning of the answer");
    drop(stdout);
    let ended = once.finish();
    assert_eq!(ended.status, 0, "{ended:?}");
    assert_eq!(fs::read_to_string(folder.path("saved")).expect("a file"), "old", "{ended:?}");
}

/// Which events are written, and in which form, is of no importance to the file.
#[test]
fn the_last_message_is_the_same_whatever_is_printed() {
    let folder = Folder::new();
    fs::write(folder.path("any.json"), "{}").expect("a file");
    fs::write(folder.path("answer"), "Here:\n```json\n{\"a\": 1}\n```\n").expect("a file");
    let saved = |options: &[&str]| {
        let words =
            ["exec", "hi", "--engine", "echo", "--echo-answer", "answer", "--save", "saved"];
        let ended = run(&folder, &[&words[..], options].concat());
        assert_eq!(ended.status, 0, "{options:?}: {ended:?}");
        fs::read_to_string(folder.path("saved")).expect("a file")
    };
    let whole = fs::read_to_string(folder.path("answer")).expect("a file");
    for events in ["!ChatTextPatch", "ChatRun*"] {
        assert_eq!(saved(&["-o", "jsonl", "--events", events]), whole, "{events}");
    }
    for options in [&[][..], &["--extensions", "structured", "--events", "Chat*"]] {
        let options = [&["-o", "jsonl", "--schema", "any.json"], options].concat();
        assert_eq!(saved(&options), "{\"a\": 1}\n", "{options:?}");
    }
}

/// The file may be the one that the prompt is made of.
#[test]
fn an_answer_without_text_replaces_nothing() {
    let folder = Folder::new();
    fs::write(folder.path("saved"), "old").expect("a file");
    let withheld = vec![Step::Finish("content_filter", None), Step::Done];
    let thought = Step::Reasoning("hm".to_owned());
    for script in [withheld, vec![thought, Step::Finish("length", None), Step::Done]] {
        let provider = Provider::start(vec![script]);
        let base_url = provider.base_url();
        let words = ["exec", "--prompt-file", "saved", "--save", "saved", "--engine", "openai"];
        let options = ["--model", "m", "--base-url", &base_url];
        let mut command = duologue(&folder, &[&words[..], &options].concat());
        command.env("DUOLOGUE_API_KEY", KEY);
        let ended = Once::start(command).finish();
        assert_eq!(ended.status, 3, "{ended:?}");
        assert_eq!(fs::read_to_string(folder.path("saved")).expect("a file"), "old", "{ended:?}");
        assert!(ended.stderr.contains("saved is left as it is"), "{ended:?}");
    }
}
