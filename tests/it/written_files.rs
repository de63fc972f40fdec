//! Files that the process writes: a refused command line leaves them alone, others can't read them,
//! and nobody else's link leads to them.

use crate::once::{Once, duologue, duologue_of_nobody, run};
use crate::server::Folder;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::process::{Command, Stdio};

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

/// Folders that a recording is in are made, for its user alone.
#[test]
fn folders_of_a_recording_are_made() {
    let folder = Folder::new();
    let words = ["exec", "hello", "--engine", "echo", "--debug-events-jsonl", "a/b/run.jsonl"];
    let ended = run(&folder, &words);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{ended:?}");
    let recorded = fs::read_to_string(folder.path("a/b/run.jsonl")).expect("a recording");
    assert!(recorded.starts_with('{') && recorded.contains("\"hello\""), "{recorded}");
    for made in ["a", "a/b"] {
        let mode = fs::metadata(folder.path(made)).expect("a folder").mode();
        assert_eq!(mode & 0o777, 0o700, "{made}");
    }
    // Not in the place of a file.
    let words = ["exec", "hello", "--engine", "echo", "--debug-events-jsonl", "a/b/run.jsonl/c/d"];
    let ended = run(&folder, &words);
    assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{ended:?}");
    assert!(ended.stderr.contains("--debug-events-jsonl: a/b/run.jsonl/c/d"), "{ended:?}");
}

/// A prompt is read after the first frames are written; if it can't be asked, the old recording stays.
#[test]
fn a_prompt_that_can_not_be_asked_leaves_the_recording_alone() {
    let folder = Folder::new();
    fs::write(folder.path("bytes"), [b'a', 0xff]).expect("a file");
    fs::write(folder.path("blank"), " \n").expect("a file");
    fs::write(folder.path("run.jsonl"), RECORDING).expect("a file");
    let prompts: [&[&str]; 5] = [
        &["exec", "hi", "-f", "no/such"],
        &["exec", "--prompt-file", "no/such"],
        &["exec", "--prompt-file", "bytes"],
        &["exec", "--prompt-file", "blank"],
        &["exec"],
    ];
    for words in prompts {
        for output in ["text", "json", "jsonl"] {
            let options = ["--engine", "echo", "--output", output];
            let mut command = duologue(&folder, &[words, &options].concat());
            command.env("DUOLOGUE_DEBUG_EVENTS_JSONL", "run.jsonl");
            let mut once = Once::start(command);
            once.close_stdin();
            let ended = once.finish();
            assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
            let left = fs::read_to_string(folder.path("run.jsonl")).expect("the file");
            assert_eq!(left, RECORDING, "{words:?}");
        }
    }
}

/// The frames before a prompt that is waited for are in the copy as well.
#[test]
fn a_copy_begins_with_the_frames_before_the_prompt() {
    let folder = Folder::new();
    fs::write(folder.path("run.jsonl"), RECORDING).expect("a file");
    let words = ["exec", "--rpc", "--engine", "echo", "--debug-events-jsonl", "run.jsonl"];
    let mut once = Once::start(duologue(&folder, &words));
    once.write("hello");
    let ended = once.finish();
    assert_eq!(ended.status, 0, "{ended:?}");
    assert_eq!(fs::read_to_string(folder.path("run.jsonl")).expect("the copy"), ended.stdout);
}

const TAKES_A_FILE: &str = "
name: reads
flags:
  - {name: notes, type: stringFromFile}
  - {name: pairs, type: keyValue}
prompt: '{{ .notes }}'
";

/// A file that a command reads is not one that it may write.
#[test]
fn a_file_that_is_read_is_not_written() {
    const INPUT: &str = "{\"role\": \"user\", \"text\": \"hi\"}\n";
    let folder = Folder::new();
    fs::write(folder.path("reads.yaml"), TAKES_A_FILE).expect("a file");
    fs::write(folder.path("input.json"), INPUT).expect("a file");
    symlink(folder.path("input.json"), folder.path("link")).expect("a link");
    fs::hard_link(folder.path("input.json"), folder.path("same")).expect("a link");
    let reading: [(&[&str], &str); 12] = [
        (&["exec", "--prompt-file", "input.json"], "--prompt-file"),
        (&["exec", "hi", "--file", "reads.yaml", "-f", "input.json"], "--file"),
        (&["exec", "hi", "--history", "input.json"], "--history"),
        (&["rpc", "--history", "input.json"], "--history"),
        (&["rpc", "--echo-answer", "input.json"], "--echo-answer"),
        (&["rpc", "--key-file", "input.json"], "--key-file"),
        (&["rpc", "--prices", "input.json"], "--prices"),
        (&["rpc", "--mcp-config", "input.json"], "--mcp-config"),
        (&["rpc", "--profile-registries", "no,input.json"], "--profile-registries"),
        (&["run-command", "reads.yaml", "--notes", "input.json"], "input.json (a flag"),
        (&["run-command", "reads.yaml", "--pairs", "@input.json"], "input.json (a flag"),
        (&["run-command", "reads.yaml", "--history", "input.json"], "--history"),
    ];
    for option in OPTIONS {
        for (words, named) in reading {
            for path in ["input.json", "./input.json", "link", "same"] {
                let ended = run(&folder, &[words, &["--engine", "echo", option, path]].concat());
                assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
                for part in [option, path, named, "which this command reads"] {
                    assert!(ended.stderr.contains(part), "{words:?} {part}: {ended:?}");
                }
                assert_eq!(fs::read_to_string(folder.path("input.json")).expect("a file"), INPUT);
            }
        }
        let own = run(&folder, &["run-command", "reads.yaml", option, "reads.yaml"]);
        assert_eq!(own.status, 2, "{own:?}");
        assert!(own.stderr.contains("reads.yaml (the command file)"), "{own:?}");
        assert_eq!(fs::read_to_string(folder.path("reads.yaml")).expect("a file"), TAKES_A_FILE);
        let mut roots = duologue(&folder, &["rpc", option, "link"]);
        roots.env("SSL_CERT_FILE", "input.json");
        let roots = Once::start(roots).finish();
        assert_eq!(roots.status, 2, "{roots:?}");
        assert!(roots.stderr.contains("input.json (SSL_CERT_FILE)"), "{roots:?}");
    }
    assert_eq!(fs::read_to_string(folder.path("input.json")).expect("a file"), INPUT);
}

/// Lines of a log between frames, or over them, would spoil both.
#[test]
fn a_file_that_is_written_already_is_not_written_twice() {
    let folder = Folder::new();
    let commands = [&["rpc"][..], &["exec", "hi"], &["run-command", "ask.yaml"]];
    fs::write(folder.path("ask.yaml"), "name: ask\nprompt: hello\n").expect("a file");
    for command in commands {
        for option in OPTIONS {
            let words = [command, &["--engine", "echo", option, "./out"]].concat();
            let output = fs::File::create(folder.path("out")).expect("a file");
            let mut command = duologue(&folder, &words);
            let ended = command.stdin(Stdio::null()).stdout(output).output().expect("it runs");
            let said = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(2), "{words:?}: {said}");
            let expected = format!("{option}: standard output goes to ./out, too");
            assert!(said.contains(&expected), "{words:?}: {said}");
        }
        let both = ["--engine", "echo", "--log-file", "same", "--debug-events-jsonl", "./same"];
        let ended = run(&folder, &[command, &both].concat());
        assert_eq!(ended.status, 2, "{ended:?}");
        let expected = "--log-file: same is the file of --debug-events-jsonl, too";
        assert!(ended.stderr.contains(expected), "{ended:?}");
        assert!(!folder.path("same").exists());
    }
}

/// Files of profiles are found without being named, and stores may not be made yet.
#[test]
fn a_file_of_profiles_and_a_store_are_not_written() {
    const PROFILES: &str = "profiles: {}\n";
    let folder = Folder::new();
    fs::create_dir_all(folder.path("config/duologue")).expect("a folder");
    fs::create_dir(folder.path(".duologue")).expect("a folder");
    let files = ["config/duologue/profiles.yaml", ".duologue/profiles.yaml"];
    for option in [&OPTIONS[..], &["--save"]].concat() {
        for path in files {
            fs::write(folder.path(path), PROFILES).expect("a file");
            let mut command = duologue(&folder, &["exec", "hi", "--engine", "echo", option, path]);
            command.env("XDG_CONFIG_HOME", folder.path("config"));
            let ended = Once::start(command).finish();
            assert_eq!(ended.status, 2, "{option} {path}: {ended:?}");
            assert!(ended.stderr.contains("(a file of profiles)"), "{ended:?}");
            assert_eq!(fs::read_to_string(folder.path(path)).expect("a file"), PROFILES);
        }
        let words = ["exec", "hi", "--engine", "echo", "--store", "new.db", option, "./new.db"];
        let ended = run(&folder, &words);
        assert_eq!(ended.status, 2, "{option}: {ended:?}");
        assert!(ended.stderr.contains("which holds conversations"), "{ended:?}");
        assert!(!folder.path("new.db").exists(), "{option}");
    }
}

/// The same for standard input; but a device may be both.
#[test]
fn a_file_that_is_standard_input_is_not_written() {
    let folder = Folder::new();
    fs::write(folder.path("input"), "hello").expect("a file");
    let run_from = |stdin: &str, command: &str, options: [&str; 2]| {
        let stdin = fs::File::open(folder.path(stdin)).expect("a file");
        let words = [&[command, "--engine", "echo"][..], &options].concat();
        duologue(&folder, &words).stdin(stdin).output().expect("the binary runs")
    };
    for option in OPTIONS {
        for command in ["rpc", "exec"] {
            let ended = run_from("input", command, [option, "input"]);
            assert_eq!(ended.status.code(), Some(2), "{command} {option}: {ended:?}");
            let stderr = String::from_utf8_lossy(&ended.stderr);
            assert!(stderr.contains("standard input"), "{command} {option}: {stderr}");
            assert_eq!(fs::read_to_string(folder.path("input")).expect("a file"), "hello");
        }
        let device = run_from("/dev/null", "rpc", [option, "/dev/null"]);
        assert_eq!(device.status.code(), Some(0), "{option}: {device:?}");
    }
}

/// A mistyped path of a log, which is kept for long, is an error and no new folder.
#[test]
fn a_folder_of_a_log_that_does_not_exist_is_not_made() {
    let folder = Folder::new();
    let ended = exec(&folder, "--log-file", "new/deep/file");
    assert_eq!(ended.status, 2, "{ended:?}");
    for part in ["--log-file", "new/deep/file", "the folder new/deep does not exist"] {
        assert!(ended.stderr.contains(part), "{ended:?}");
    }
    assert!(!folder.path("new").exists());
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
        fs::create_dir(folder.path(&format!("deep{option}"))).expect("a folder");
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

/// A link into another folder stays, whether or not its file is there.
#[test]
fn a_link_to_a_file_that_is_saved_for_the_first_time_stays() {
    let folder = Folder::new();
    fs::create_dir(folder.path("deep")).expect("a folder");
    symlink("../linked", folder.path("deep/first")).expect("a link");
    symlink("first", folder.path("deep/second")).expect("a link");
    for prompt in ["one", "two"] {
        let words = ["exec", prompt, "--engine", "echo", "--save", "deep/second"];
        let ended = run(&folder, &words);
        assert_eq!(ended.status, 0, "{ended:?}");
        for link in ["deep/first", "deep/second"] {
            assert!(folder.path(link).is_symlink(), "{link}");
        }
        assert_eq!(fs::read_to_string(folder.path("linked")).expect("a file"), ended.stdout);
    }
    // Nor does the name of a link hide what it leads to.
    symlink("new.db", folder.path("store")).expect("a link");
    let words = ["exec", "hi", "--engine", "echo", "--store", "new.db", "--save", "store"];
    let ended = run(&folder, &words);
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stderr.contains("which holds conversations"), "{ended:?}");
}

/// The file that is written first, and then put in its place, has a longer name than the one at the place.
#[test]
fn a_saved_file_may_have_the_longest_name() {
    let folder = Folder::new();
    for name in ["a".repeat(255), "\u{e9}".repeat(127)] {
        let ended = run(&folder, &["exec", "hi", "--engine", "echo", "--save", &name]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{ended:?}");
        assert_eq!(fs::read_to_string(folder.path(&name)).expect("a file"), ended.stdout);
    }
    let ended = run(&folder, &["exec", "hi", "--engine", "echo", "--save", &"a".repeat(256)]);
    assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{ended:?}");
    assert!(ended.stderr.contains("--save: no file can have a name of 256 bytes"), "{ended:?}");
}

/// The model is paid for an answer, so what can be known is known before.
#[test]
fn a_name_that_nothing_can_be_saved_to_is_refused_before_anything_is_asked() {
    let folder = Folder::new();
    fs::write(folder.path("file"), "text").expect("a file");
    symlink("second", folder.path("first")).expect("a link");
    symlink("first", folder.path("second")).expect("a link");
    symlink("nowhere", folder.path("dangling")).expect("a link");
    let long = format!("new/{}/out", "a".repeat(256));
    let refused = [
        ("file/out", "Not a directory"),
        ("file/new/out", "Not a directory"),
        ("new/", "is no regular file"),
        ("new/.", "is no regular file"),
        ("file/", "is no regular file"),
        ("first", "can't be written: "),
        ("first/out", "can't be written: "),
        ("dangling/out", "No such file or directory"),
        (&long, "File name too long"),
    ];
    for (name, part) in refused {
        let ended = run(&folder, &["exec", "hi", "--engine", "echo", "--save", name]);
        assert_eq!((ended.status, &*ended.stdout), (2, ""), "{name}: {ended:?}");
        assert!(ended.stderr.contains("--save: ") && ended.stderr.contains(part), "{ended:?}");
    }
    assert!(folder.path("first").is_symlink() && folder.path("second").is_symlink());
    assert!(!folder.path("new").exists());
    let script = "mkdir gone; cd gone; rmdir ../gone
                  exec \"$0\" exec hi --engine echo --save out </dev/null";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_duologue")]).current_dir(folder.path(""));
    let ended = Once::start(shell).finish();
    assert_eq!((ended.status, &*ended.stdout), (2, ""), "{ended:?}");
    // Root may write everywhere.
    if rustix::process::geteuid().is_root() {
        let folder = Folder::for_all();
        fs::create_dir(folder.path("ours")).expect("a folder");
        fs::set_permissions(folder.path("ours"), PermissionsExt::from_mode(0o700)).expect("ours");
        for name in ["ours/out", "ours/new/out"] {
            let words = ["exec", "hi", "--engine", "echo", "--save", name];
            let ended = Once::start(duologue_of_nobody(&folder, &words)).finish();
            assert_eq!((ended.status, &*ended.stdout), (2, ""), "{name}: {ended:?}");
            assert!(ended.stderr.contains("Permission denied"), "{ended:?}");
        }
    }
}

/// The link would choose the file that is replaced, or made.
#[test]
fn another_users_link_in_a_shared_folder_is_not_saved_to() {
    let folder = Folder::new();
    fs::create_dir(folder.path("shared")).expect("a folder");
    fs::set_permissions(folder.path("shared"), PermissionsExt::from_mode(0o1777)).expect("ours");
    let link = folder.path("shared/link");
    symlink(folder.path("target"), &link).expect("a link");
    let save = || run(&folder, &["exec", "hi", "--engine", "echo", "--save", "shared/link"]);
    let own = save();
    assert_eq!(own.status, 0, "our own link: {own:?}");
    assert_eq!(fs::read_to_string(folder.path("target")).expect("a file"), own.stdout);
    // Only root can give a link away.
    if lchown(&link, Some(OTHER_USER), None).is_err() {
        return;
    }
    let refused = || {
        let ended = save();
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{ended:?}");
        let expected = "--save: shared/link can't be written: it is a symbolic link that belongs";
        assert!(ended.stderr.contains(expected), "{ended:?}");
        assert!(link.is_symlink());
    };
    fs::write(folder.path("target"), RECORDING).expect("a file");
    refused();
    assert_eq!(fs::read_to_string(folder.path("target")).expect("a file"), RECORDING);
    fs::remove_file(folder.path("target")).expect("a file");
    refused();
    assert!(!folder.path("target").exists());
}

/// As a container has a file of its host, perhaps in a folder that can't be written to. Only a user who may mount
/// something can see that.
#[test]
fn a_mount_point_is_saved_to() {
    const NOT_MOUNTED: i32 = 77;
    let in_fixed = "mount --bind fixed fixed && mount -o remount,bind,ro fixed && \
                    mount --bind host fixed/saved";
    for (saved, mounting) in [("saved", "mount --bind host saved"), ("fixed/saved", in_fixed)] {
        let folder = Folder::new();
        let old = "an earlier and longer answer than this one";
        fs::write(folder.path("host"), old).expect("a file");
        fs::create_dir(folder.path("fixed")).expect("a folder");
        fs::write(folder.path(saved), "").expect("a file");
        let apart = format!(
            "unshare -m true 2>/dev/null || exit {NOT_MOUNTED}
            exec unshare -m sh -c \"$1\" \"$0\""
        );
        let saving = format!(
            "{{ {mounting}; }} 2>/dev/null || exit {NOT_MOUNTED}
            exec \"$0\" exec hi --engine echo --save {saved} </dev/null"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &apart, env!("CARGO_BIN_EXE_duologue"), &saving]);
        command.current_dir(folder.path(""));
        let ended = Once::start(command).finish();
        if ended.status == NOT_MOUNTED {
            return;
        }
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{saved}: {ended:?}");
        assert_eq!(fs::read_to_string(folder.path("host")).expect("a file"), ended.stdout);
        let beside = folder.path(saved);
        let beside = beside.parent().expect("a folder").read_dir().expect("a folder").count();
        assert_eq!(beside, if saved == "saved" { 3 } else { 1 });
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
