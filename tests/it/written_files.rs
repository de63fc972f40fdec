//! Files that the process writes: a refused command line leaves them alone, others can't read them,
//! and nobody else's link leads to them.

use crate::once::{Once, duologue, run};
use crate::server::Folder;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};

const RECORDING: &str = "an earlier recording\n";

/// A user who is not the one that runs the tests.
const OTHER_USER: u32 = 65_534;

const COMMAND_FILE: &str = r#"
name: own
flags:
  - name: debug-events-jsonl
    type: stringFromFile
    required: true
prompt: '{{ index . "debug-events-jsonl" }}'
"#;

/// Nothing is opened for writing before the command line is accepted.
#[test]
fn a_refused_command_line_leaves_files_alone() {
    let folder = Folder::new();
    fs::write(folder.path("own.yaml"), COMMAND_FILE).expect("a file");
    fs::write(folder.path("empty.yaml"), "name: empty\nprompt: ' '\n").expect("a file");
    let refused: [&[&str]; 9] = [
        &["check", "--debug-events-jsonl", "run.jsonl"],
        &["dance", "--debug-events-jsonl", "run.jsonl"],
        &["exec", "hello", "--dance", "--debug-events-jsonl", "run.jsonl"],
        &["exec", "hello", "--dance", "--debug-events-jsonl=run.jsonl"],
        &["exec", "a", "b", "--", "--debug-events-jsonl", "run.jsonl"],
        &["rpc", "--session-id", " ", "--debug-events-jsonl", "run.jsonl"],
        &["exec", " ", "--debug-events-jsonl", "run.jsonl"],
        &["run-command", "empty.yaml", "--debug-events-jsonl", "run.jsonl"],
        &["run-command", "own.yaml", "--dance", "--debug-events-jsonl", "run.jsonl"],
    ];
    for words in refused {
        fs::write(folder.path("run.jsonl"), RECORDING).expect("a file");
        let ended = run(&folder, words);
        assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
        let left = fs::read_to_string(folder.path("run.jsonl")).expect("the file");
        assert_eq!(left, RECORDING, "{words:?}");
        let mut by_variable = duologue(&folder, &words[..words.len() - 2]);
        by_variable.env("DUOLOGUE_DEBUG_EVENTS_JSONL", "run.jsonl").arg("--dance");
        assert_eq!(Once::start(by_variable).finish().status, 2);
        let left = fs::read_to_string(folder.path("run.jsonl")).expect("the file");
        assert_eq!(left, RECORDING, "by variable: {words:?}");
    }
    let own = ["run-command", "own.yaml", "--debug-events-jsonl", "run.jsonl", "--engine", "echo"];
    let ended = run(&folder, &own);
    assert_eq!(ended.stdout, format!("Turn 1. You said: {RECORDING}"), "{ended:?}");
    let left = fs::read_to_string(folder.path("run.jsonl")).expect("the file");
    assert_eq!(left, RECORDING, "the command file's own flag");
}

#[test]
fn a_forgotten_value_makes_no_file() {
    let folder = Folder::new();
    for option in ["--debug-events-jsonl", "--log-file"] {
        let ended = run(&folder, &["exec", "hello", option, "--no-stream"]);
        assert_eq!(ended.status, 2, "{ended:?}");
        assert_eq!(fs::read_dir(folder.path("")).expect("a folder").count(), 0, "{option}");
    }
}

/// `exec` with both files at the path.
const OPTIONS: [&str; 2] = ["--debug-events-jsonl", "--log-file"];

fn exec(folder: &Folder, option: &str, path: &str) -> crate::once::Ended {
    run(folder, &["exec", "hello", "--engine", "echo", "--log-level", "info", option, path])
}

#[test]
fn a_new_file_is_the_users_own_and_an_old_one_keeps_its_mode() {
    let folder = Folder::new();
    let mode = |name: &str| folder.path(name).metadata().expect("a file").mode() & 0o777;
    for option in OPTIONS {
        let new = format!("deep{option}/new");
        assert_eq!(exec(&folder, option, &new).status, 0);
        assert_eq!(mode(&new), 0o600, "{option}");
        let old = format!("old{option}");
        fs::write(folder.path(&old), RECORDING).expect("a file");
        fs::set_permissions(folder.path(&old), PermissionsExt::from_mode(0o644)).expect("ours");
        assert_eq!(exec(&folder, option, &old).status, 0);
        assert_eq!(mode(&old), 0o644, "{option}");
        let written = fs::read_to_string(folder.path(&old)).expect("a file");
        assert_eq!(written.starts_with(RECORDING), option == "--log-file", "{written}");
        assert!(written.len() > RECORDING.len());
    }
}

#[test]
fn a_link_is_followed_only_where_others_could_not_have_put_it() {
    let folder = Folder::new();
    let shared = folder.path("shared");
    fs::create_dir(&shared).expect("a folder");
    fs::set_permissions(&shared, PermissionsExt::from_mode(0o1777)).expect("ours");
    for option in OPTIONS {
        fs::write(folder.path("target"), RECORDING).expect("a file");
        let link = folder.path("shared/link");
        symlink(folder.path("target"), &link).expect("a link");
        let own = exec(&folder, option, "shared/link");
        assert_eq!(own.status, 0, "our own link: {own:?}");
        fs::write(folder.path("target"), RECORDING).expect("a file");
        // Only root can give a link away.
        if lchown(&link, Some(OTHER_USER), None).is_ok() {
            let refused = exec(&folder, option, "shared/link");
            assert_eq!(refused.status, 2, "{refused:?}");
            assert!(refused.stderr.contains("symbolic link"), "{refused:?}");
            assert!(refused.stderr.contains("shared/link"), "{refused:?}");
            let left = fs::read_to_string(folder.path("target")).expect("a file");
            assert_eq!(left, RECORDING);
            fs::set_permissions(&shared, PermissionsExt::from_mode(0o755)).expect("ours");
            assert_eq!(exec(&folder, option, "shared/link").status, 0, "nobody else writes there");
            fs::set_permissions(&shared, PermissionsExt::from_mode(0o1777)).expect("ours");
        }
        fs::remove_file(link).expect("a link");
    }
}

/// The end of a segment holds its text twice.
#[test]
fn a_debug_file_takes_frames_of_any_size() {
    const ANSWER_BYTES: usize = 33 * 1024 * 1024;
    let folder = Folder::new();
    let line = format!("{}\n", "x".repeat(1024 * 1024 - 1));
    fs::write(folder.path("answer"), line.repeat(ANSWER_BYTES / line.len())).expect("a file");
    let words = ["exec", "hello", "--engine", "echo", "--echo-answer", "answer"];
    let copying = ["--final-snapshot", "none", "--debug-events-jsonl", "copy"];
    let ended = run(&folder, &[&words[..], &copying].concat());
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let copy = fs::read(folder.path("copy")).expect("the debug file");
    let lines: Vec<_> = copy.split_inclusive(|byte| *byte == b'\n').collect();
    let large = lines.iter().filter(|line| line.len() > 2 * ANSWER_BYTES).count();
    assert_eq!(large, 1, "the end of the segment");
    assert!(lines.last().expect("a line").ends_with(b"\"done\":{\"status\":\"ok\"}}\n"));
}
