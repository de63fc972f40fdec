//! Completions, as a shell asks for them.

use crate::once::{Once, duologue, run};
use crate::server::Folder;
use crate::terminal::{in_session, read_until, with_terminal};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// What bash does when its user presses the tab key after the words `$@`.
const PRESS_TAB: &str = r#"
    source <(duologue completions bash)
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
    completer=$(complete -p duologue)
    completer=${completer##*-F } completer=${completer%% *}
    "$completer" duologue "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    printf '%s\n' "${COMPREPLY[@]}"
"#;

fn folder() -> Folder {
    let folder = Folder::new();
    let flags = "flags:\n  - {name: who, type: string, help: Whom to greet}\n  \
                 - {name: which, type: choice, choices: [red, green]}\n  \
                 - {name: color, type: choice, choices: [light blue, dark red]}\n  \
                 - {name: page, type: stringFromFile}\n";
    fs::write(folder.path("ask.yaml"), format!("{flags}prompt: hello\n")).expect("a file");
    fs::write(folder.path("wrong.yaml"), "prompt: [1\n").expect("a file");
    fs::write(folder.path("page.txt"), "").expect("a file");
    folder.fifo("pipe.yaml");
    fs::create_dir(folder.path("home")).expect("a folder");
    fs::copy(folder.path("ask.yaml"), folder.path("home/ask.yaml")).expect("a file");
    fs::create_dir(folder.path(".duologue")).expect("a folder");
    let profiles = "profiles: {work: {engine: openai, model: the-model}, home: {}}\n";
    fs::write(folder.path(".duologue/profiles.yaml"), profiles).expect("a file");
    folder
}

/// The folders of the program and of all others.
fn path() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_duologue")).parent().expect("a folder");
    format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default())
}

/// What bash offers after `words`, the last of which is being typed.
#[track_caller]
fn offered(words: &[&str]) -> Vec<String> {
    offered_in(&folder(), words)
}

/// The same in this folder, which has the default store.
#[track_caller]
fn offered_in(folder: &Folder, words: &[&str]) -> Vec<String> {
    let mut command = Command::new("bash");
    command.args(["--norc", "--noprofile", "-c", PRESS_TAB, "bash", "duologue"]).args(words);
    command.current_dir(folder.path("")).env_clear().env("PATH", path());
    command.env("XDG_DATA_HOME", folder.path("data")).env("HOME", folder.path("home"));
    let ended = Once::start(command).finish();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{words:?}: {ended:?}");
    ended.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[track_caller]
fn check(words: &[&str], expected: &[&str]) {
    let offered = offered(words);
    for word in expected {
        assert!(offered.iter().any(|offer| offer == word), "{words:?}: {word} of {offered:?}");
    }
}

#[test]
fn bash_offers_commands_options_and_values() {
    check(&[""], &["rpc", "exec", "run-command", "list-events"]);
    check(&["rpc", "--on"], &["--on-busy"]);
    check(&["sessions", ""], &["list", "show", "export", "search", "delete"]);
    check(&["sessions", "export", "--format", ""], &["jsonl", "markdown", "json", "html"]);
    check(&["rpc", "--on-busy", ""], &["reject", "queue"]);
    check(&["exec", "hello", "--f"], &["--file", "--final-snapshot"]);
    check(&["exec", "hello", "--file", "pa"], &["page.txt"]);
    check(&["exec", "hello", "--profile", ""], &["work", "home"]);
    check(&["exec", "hello", "--model", ""], &["the-model"]);
    check(&["profiles", "show", "w"], &["work"]);
    check(&["profiles", ""], &["show", "trust", "untrust"]);
    check(&["help", ""], &["exec", "doctor", "providers", "chat-guide"]);
    check(&["help", "sessions", ""], &["list", "export"]);
    check(&["rpc", "--extensions", "swi"], &["switch-model"]);
    check(&["rpc", "--extensions", "usage,swi"], &["usage,switch-model"]);
}

/// Also those of files that the line names.
#[test]
fn bash_offers_profiles_and_models_of_the_files_on_the_line() {
    let folder = folder();
    let profiles = "profiles: {far: {engine: openai, model: of-the-file}}\n";
    fs::write(folder.path("more.yaml"), profiles).expect("a file");
    let named = ["exec", "hello", "--profile-registries", "more.yaml"];
    for (words, expected) in [(["--profile", ""], "far"), (["--model", "of"], "of-the-file")] {
        let offered = offered_in(&folder, &[&named[..], &words].concat());
        assert!(offered.iter().any(|offer| offer == expected), "{expected}: {offered:?}");
    }
    let offered = offered_in(&folder, &["profiles", "show", "--profile-registries=more.yaml", "f"]);
    assert_eq!(offered, ["far"]);
}

/// In a fresh account the folder is not there yet.
#[test]
fn a_script_is_written_with_the_folders_that_it_needs() {
    let folder = folder();
    let printed = run(&folder, &["completions", "bash"]).stdout;
    let path = "share/bash-completion/completions/duologue";
    for _ in 0..2 {
        let written = run(&folder, &["completions", "bash", "--out", path]);
        assert_eq!((written.status, written.stdout.as_str()), (0, ""), "{written:?}");
        assert_eq!(fs::read_to_string(folder.path(path)).expect("a file"), printed);
    }
    let refused = run(&folder, &["completions", "bash", "--out", "page.txt/duologue"]);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stderr.contains("--out: page.txt/duologue can't be written"), "{refused:?}");
}

#[test]
fn bash_offers_command_files_and_their_flags() {
    check(&["run-command", ""], &["ask.yaml"]);
    assert!(!offered(&["run-command", ""]).iter().any(|offer| offer == "page.txt"));
    check(&["run-command", "as"], &["ask.yaml"]);
    check(&["run-command", "ask.yaml", "--wh"], &["--who", "--which"]);
    check(&["run-command", "ask.yaml", "--"], &["--who", "--page", "--output", "--help"]);
    check(&["run-command", "ask.yaml", "--which", ""], &["red", "green"]);
    check(&["run-command", "ask.yaml", "--page", "pag"], &["page.txt"]);
    check(&["run-command", "-o", "json", "ask.yaml", "--wh"], &["--who"]);
    check(&["run-command", "~/ask.yaml", "--wh"], &["--who", "--which"]);
}

#[test]
fn files_that_can_not_be_read_offer_the_options_that_every_file_has() {
    for file in ["wrong.yaml", "pipe.yaml", "nothing.yaml", "-", "."] {
        let offered = offered(&["run-command", file, "--o"]);
        assert_eq!(offered, ["--output", "--on-busy", "--option"], "{file}");
    }
}

#[test]
fn bash_offers_the_sessions_of_the_store() {
    let folder = folder();
    for (id, more) in [
        ("plan", &[][..]),
        ("play", &[]),
        // A shell would have to quote it.
        ("pl; x", &[]),
        ("place", &["--store", "chat.db"]),
        ("at-home", &["--store", "home/own.db"]),
    ] {
        let words = [&["exec", "--engine", "echo", "hello", "--session", id], more].concat();
        let mut command = duologue(&folder, &words);
        command.env_remove("DUOLOGUE_NO_STORE");
        assert_eq!(Once::start(command).finish().status, 0, "{id}");
    }
    for words in [
        &["exec", "--session", "pl"][..],
        &["chat", "--resume", "--session-id", "pl"],
        &["sessions", "show", "pl"],
        &["sessions", "delete", "plan", "pl"],
    ] {
        let mut offered = offered_in(&folder, words);
        offered.sort();
        assert_eq!(offered, ["plan", "play"], "{words:?}");
    }
    for (named, expected) in [
        (&["--store", "chat.db"][..], "place"),
        (&["--store=chat.db"], "place"),
        (&["--turns-db", "chat.db"], "place"),
        (&["--timeline-db=chat.db"], "place"),
        (&["--store", "~/own.db"], "at-home"),
    ] {
        let words = [&["rpc"], named, &["--session", ""]].concat();
        assert_eq!(offered_in(&folder, &words), [expected], "{words:?}");
    }
    assert_eq!(offered_in(&folder, &["rpc", "--store", "page.txt", "--session", ""]), [""; 0]);
}

/// The whole way: a person at a terminal types, and presses the tab key.
#[test]
fn bash_completes_what_a_person_types() {
    let folder = folder();
    let mut command = in_session(&folder, &["bash", "--norc", "--noprofile", "-i"]);
    command.env("PATH", path()).env("PS1", "ready> ").env("HISTFILE", "/dev/null");
    let (status, seen) = with_terminal(80, &mut command, |shown| {
        let mut seen = read_until(shown, "ready> ");
        shown.write_all(b"source <(duologue completions bash)\n").expect("it is typed");
        seen += &read_until(shown, "ready> ");
        shown.write_all(b"duologue run-command as\t --whi\tred --print-prompt\n").expect("typed");
        seen += &read_until(shown, "hello");
        shown.write_all(b"exit 7\n").expect("it is typed");
        seen
    });
    assert!(seen.contains("duologue run-command ask.yaml"), "{seen:?}");
    assert!(seen.contains("--which red"), "{seen:?}");
    assert_eq!(status, Some(7), "{seen:?}");
}

/// Bash takes `=` and `:` for words of their own.
#[test]
fn bash_completes_words_with_signs_and_values_with_spaces() {
    let folder = folder();
    let profiles = "profiles: {local: {engine: openai, model: 'llama3.2:latest'}}\n";
    fs::write(folder.path(".duologue/profiles.yaml"), profiles).expect("a file");
    fs::create_dir(folder.path("my prompts")).expect("a folder");
    fs::copy(folder.path("ask.yaml"), folder.path("my prompts/ask.yaml")).expect("a file");
    fs::create_dir(folder.path("home/ex dir")).expect("a folder");
    let mut command = in_session(&folder, &["bash", "--norc", "--noprofile", "-i"]);
    command.env("PATH", path()).env("PS1", "ready> ").env("HISTFILE", "/dev/null");
    let home = folder.name("home");
    command.env("HOME", &home);
    // The cursor goes back to the end of the third word.
    let back =
        format!("exec --engine=ec --strict\x01{}", "\x06".repeat("show exec --engine=ec".len()));
    let (of_home, file) = (format!("<check><{home}/ex dir/>"), format!("<check><{home}/ask.yaml>"));
    let attached = format!("<exec><--file><{home}/ask.yaml>");
    let typed = [
        ("check ~/ex", &*of_home),
        ("check ~/as", &file),
        ("check $HOME/as", &file),
        ("exec --file $HOME/as", &attached),
        // Not the file of this name, which is no model.
        ("exec --model pag", "<exec><--model><pag>"),
        ("exec --engine=ec", "<exec><--engine=echo>"),
        ("exec --model llama3.2:", "<exec><--model><llama3.2:latest>"),
        ("exec --model llama3.2:l", "<exec><--model><llama3.2:latest>"),
        ("exec --model=llama3.2:l", "<exec><--model=llama3.2:latest>"),
        ("run-command ask.yaml --color l", "<--color><light blue>"),
        ("run-command ask.yaml --color=l", "<--color=light blue>"),
        ("run-command ask.yaml --color \"l", "<--color><light blue>"),
        ("run-command ask.yaml --color='l", "<--color=light blue>"),
        ("run-command my\\ prompts/as", "<run-command><my prompts/ask.yaml>"),
        ("run-command 'my prompts/ask.yaml' --whi", "<my prompts/ask.yaml><--which>"),
        ("exec 'a=b: c' --engine=ec", "<exec><a=b: c><--engine=echo>"),
        (&back, "<exec><--engine=echo><--strict>"),
    ];
    let (status, seen) = with_terminal(200, &mut command, |shown| {
        let mut seen = read_until(shown, "ready> ");
        // The words as a command gets them, and a last one that is not typed.
        let show =
            "source <(duologue completions bash); show() { printf '<%s>' \"$@\" $((40 + 2)); }\n";
        let setting = "$(complete -p duologue) show\n";
        shown.write_all(format!("{show}{setting}").as_bytes()).expect("it is typed");
        for (line, expected) in typed {
            shown.write_all(format!("show {line}\t\n").as_bytes()).expect("it is typed");
            let answer = read_until(shown, "<42>");
            assert!(answer.contains(&format!("{expected}<42>")), "{line}: {answer:?}");
            seen += &answer;
        }
        shown.write_all(b"exit 7\n").expect("it is typed");
        seen
    });
    assert_eq!(status, Some(7), "{seen:?}");
}

/// What `shell` completes with one tab for each line that is typed; `setting` has it complete `show` as `duologue`.
#[track_caller]
fn check_typed(shell: &[&str], setting: &str) {
    let folder = folder();
    let home = folder.name("home");
    fs::create_dir(folder.path("home/ex dir")).expect("a folder");
    fs::write(folder.path("home/ex dir/page.txt"), "").expect("a file");
    let mut command = in_session(&folder, shell);
    command.env("PATH", path()).env("HOME", &home).current_dir(&home);
    let at_home = format!("<check><{home}/ask.yaml>");
    let typed = [
        ("sess", "<sessions>"),
        ("check ~/as", &*at_home),
        ("check ex\\ d", "<check><ex dir/>"),
        ("check ex\\ dir/", "<check><ex dir/page.txt>"),
        ("check 'ex dir/", "<check><ex dir/page.txt>"),
        ("exec --engine=ec", "<exec><--engine=echo>"),
        ("run-command ask.yaml --whi", "<run-command><ask.yaml><--which>"),
    ];
    let (status, seen) = with_terminal(200, &mut command, |shown| {
        shown.write_all(format!("{setting}; show\n").as_bytes()).expect("it is typed");
        let mut seen = read_until(shown, "<42>");
        for (line, expected) in typed {
            shown.write_all(format!("show {line}\t\n").as_bytes()).expect("it is typed");
            let answer = read_until(shown, "<42>");
            assert!(answer.contains(&format!("{expected}<42>")), "{line}: {answer:?}");
            seen += &answer;
        }
        shown.write_all(b"exit 7\n").expect("it is typed");
        seen
    });
    assert_eq!(status, Some(7), "{seen:?}");
}

/// The script is loaded as a function, at the first tab.
#[test]
fn zsh_completes_what_a_person_types() {
    needs!(Zsh);
    let folder = Folder::new();
    let written = run(&folder, &["completions", "zsh", "--out", "functions/_duologue"]);
    assert_eq!(written.status, 0, "{written:?}");
    let setting = format!(
        "fpath=('{}' $fpath); autoload -U compinit; compinit -u -D; compdef _duologue show; \
         show() {{ printf '<%s>' \"$@\" $((40 + 2)); }}",
        folder.name("functions")
    );
    check_typed(&["zsh", "-f", "-i"], &setting);
}

#[test]
fn fish_completes_what_a_person_types() {
    needs!(Fish);
    let setting = "duologue completions fish | source; complete --command show --wraps duologue; \
                   function show; printf '<%s>' $argv (math 40 + 2); end";
    check_typed(&["fish", "--no-config", "-i"], setting);
}

/// Also behind options, which a prompt takes before its name, too.
#[test]
fn bash_offers_prompts_by_name() {
    let folder = folder();
    fs::create_dir_all(folder.path(".duologue/commands")).expect("a folder");
    fs::copy(folder.path("ask.yaml"), folder.path(".duologue/commands/greet.yaml"))
        .expect("a file");
    for words in [
        &["run", "gr"][..],
        &["run", "--engine", "echo", "gr"],
        &["run", "--engine=echo", "--strict", "gr"],
    ] {
        assert_eq!(offered_in(&folder, words), ["greet"], "{words:?}");
    }
    assert_eq!(offered_in(&folder, &["run", "--on-b"]), ["--on-busy"]);
}

#[test]
fn other_shells_ask_in_the_same_way() {
    let folder = folder();
    for (shell, offer) in [("zsh", "--who:Whom to greet"), ("fish", "--who\tWhom to greet")] {
        let script = run(&folder, &["completions", shell]).stdout;
        assert!(script.contains("DUOLOGUE_COMPLETE"), "{script}");
        assert!(script.contains("duologue -- ") || script.contains("\"duologue\" -- "), "{script}");
        let words = ["--", "duologue", "run-command", "ask.yaml", "--wh"];
        let mut command = duologue(&folder, &words);
        command.env("DUOLOGUE_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "3");
        command.env("_CLAP_IFS", "\n");
        let ended = Once::start(command).finish();
        assert_eq!(ended.status, 0, "{shell}: {ended:?}");
        assert!(ended.stdout.lines().any(|line| line == offer), "{shell}: {ended:?}");
    }
}

#[test]
fn the_variable_alone_changes_nothing() {
    let folder = folder();
    for shell in ["bash", "", "abacus"] {
        let mut command = duologue(&folder, &["exec", "hello", "--engine", "echo"]);
        command.env("DUOLOGUE_COMPLETE", shell);
        let ended = Once::start(command).finish();
        assert_eq!(ended.stdout, "Turn 1. You said: hello\n", "{ended:?}");
    }
}
