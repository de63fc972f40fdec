//! What `exec` asks: what is typed, what is piped in, and files; and what becomes of standard input
//! that is not asked for.

use crate::once::{Ended, Once, duologue, run};
use crate::process::eventually;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, Launch};
use rustix::io::ioctl_fionread;
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// What begins every line about standard input that is not read.
const UNREAD: &str = "standard input has data";

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("a.txt"), "one\ntwo\n").expect("a file");
    fs::write(folder.path("b c.txt"), "three").expect("a file");
    fs::write(folder.path("bytes"), [b'a', 0xff]).expect("a file");
    folder
}

/// What is asked by `words` with `piped` on standard input.
#[track_caller]
fn asked(folder: &Folder, words: &[&str], piped: &str) -> String {
    let words = [&["exec"][..], words, &["--print-prompt"]].concat();
    let mut once = Once::start(duologue(folder, &words));
    once.write(piped);
    let ended = once.finish();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{words:?}: {ended:?}");
    ended.stdout
}

#[test]
fn piped_text_comes_after_the_prompt() {
    let folder = folder();
    assert_eq!(asked(&folder, &["Review this", "-"], "-a\n+b\n"), "Review this\n\n-a\n+b\n");
    assert_eq!(asked(&folder, &["Review this", "-", "--allow-empty"], ""), "Review this\n");
    assert_eq!(asked(&folder, &["-"], "-a\n"), "-a\n");
    let from_file = ["--prompt-file", "a.txt", "-"];
    assert_eq!(asked(&folder, &from_file, "-a\n+b\n"), "one\ntwo\n\n-a\n+b\n");
    let both = run(&folder, &["exec", "Review this", "--prompt-file", "a.txt", "--print-prompt"]);
    assert_eq!((both.status, both.stdout.as_str()), (2, ""), "{both:?}");
    assert!(both.stderr.contains("--prompt-file can't be used with another prompt"), "{both:?}");
    // The whole way to the answer, too.
    let words = ["exec", "Review this", "-", "--engine", "echo"];
    let mut once = Once::start(duologue(&folder, &words));
    once.write("the diff\n");
    assert_eq!(once.finish().stdout, "Turn 1. You said: Review this\n\nthe diff\n");
}

/// The mark is how an editor has written the file, and no text of it.
#[test]
fn a_byte_order_mark_is_no_part_of_the_prompt() {
    let folder = folder();
    fs::write(folder.path("marked"), "\u{feff}one").expect("a file");
    assert_eq!(asked(&folder, &["-"], "\u{feff}one\n"), "one\n");
    assert_eq!(asked(&folder, &["--prompt-file", "marked"], ""), "one\n");
    let element = "<file name=\"marked\">\none\n</file>\n";
    assert_eq!(asked(&folder, &["--file", "marked"], ""), element);
    let with_system = asked(&folder, &["hello", "--system-file", "marked"], "");
    assert!(with_system.starts_with("[system]\none\n"), "{with_system:?}");
}

#[test]
fn empty_text_that_was_requested_is_an_error() {
    let folder = folder();
    fs::write(folder.path("blank"), " \n").expect("a file");
    let ask = |words: &[&str], piped: &str| {
        let words = [&["exec", "--engine", "echo"][..], words].concat();
        let mut once = Once::start(duologue(&folder, &words));
        once.write(piped);
        once.finish()
    };
    let from_file = ["--prompt-file", "blank", "--file", "a.txt"];
    for (words, piped, part) in [
        (&["Review.", "-"][..], "", "standard input is empty"),
        (&["Review.", "-"], " \n\n", "standard input is empty"),
        (&["-", "--file", "a.txt"], "", "standard input is empty"),
        (&["--prompt-file", "-", "--file", "a.txt"], "", "standard input is empty"),
        (&["Review.", "-", "--print-prompt"], "", "standard input is empty"),
        (&from_file, "", "--prompt-file: blank is empty"),
    ] {
        let ended = ask(words, piped);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(part), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains("--allow-empty"), "{words:?}: {ended:?}");
        let document = ask(&[words, &["--output", "json"]].concat(), piped).stdout;
        assert!(document.contains("\"code\": \"empty_prompt\""), "{words:?}: {document}");
        let permitted = ask(&[words, &["--allow-empty"]].concat(), piped);
        assert_eq!(permitted.status, 0, "{words:?}: {permitted:?}");
    }
    // Without anything to ask there is nothing to permit.
    assert_eq!(ask(&["-", "--allow-empty"], "").status, 2);
}

/// The same where a flag of a command file names standard input.
#[test]
fn a_flag_that_reads_empty_standard_input_is_an_error() {
    let folder = folder();
    let file = "name: c\nshort: c\nflags:\n  - {name: text, type: stringFromFile, help: h}\nprompt: \"Sum \
                up: {{ .text }}\"\n";
    fs::write(folder.path("c.yaml"), file).expect("a file");
    fs::write(folder.path("blank"), "").expect("a file");
    let ask = |words: &[&str], piped: &str| {
        let words = [&["run-command", "c.yaml", "--engine", "echo"][..], words].concat();
        let mut once = Once::start(duologue(&folder, &words));
        once.write(piped);
        once.finish()
    };
    for (more, piped) in [(&[][..], ""), (&[], " \n"), (&["--print-prompt"], "")] {
        let words = [&["--text", "-"], more].concat();
        let ended = ask(&words, piped);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains("standard input is empty"), "{words:?}: {ended:?}");
        let document = ask(&[&words[..], &["--output", "json"]].concat(), piped).stdout;
        assert!(document.contains("\"code\": \"empty_prompt\""), "{words:?}: {document}");
        let permitted = ask(&[&words[..], &["--allow-empty"]].concat(), piped);
        assert_eq!(permitted.status, 0, "{words:?}: {permitted:?}");
    }
    assert!(ask(&["--text", "-"], "words").stdout.ends_with("Sum up: words\n"));
    // A file is read, and nobody failed to write it just now.
    assert_eq!(ask(&["--text", "blank"], "").status, 0);
}

#[test]
fn files_come_after_the_prompt_with_their_names() {
    let folder = folder();
    let a = "<file name=\"a.txt\">\none\ntwo\n</file>";
    let b = "<file name=\"b c.txt\">\nthree\n</file>";
    let both = ["--file", "a.txt", "-f", "b c.txt"];
    let check = |words: &[&str], piped, expected: String| {
        assert_eq!(asked(&folder, &[words, &both].concat(), piped), expected, "{words:?}");
    };
    check(&["Compare"], "", format!("Compare\n\n{a}\n\n{b}\n"));
    check(&["Compare", "-"], "piped\n", format!("Compare\n\npiped\n\n{a}\n\n{b}\n"));
    check(&["-"], "piped\n", format!("piped\n\n{a}\n\n{b}\n"));
    check(&["--prompt-file", "a.txt"], "", format!("one\ntwo\n\n{a}\n\n{b}\n"));
    check(&[], "", format!("{a}\n\n{b}\n"));
    check(&["-s", "Compare."], "", format!("[system]\nCompare.\n\n[user]\n{a}\n\n{b}\n"));
}

#[test]
fn a_file_that_can_not_be_asked_about_is_named() {
    let folder = folder();
    let check = |path: &str, part: &str| {
        let ended = run(&folder, &["exec", "hello", "--file", path, "--output", "json"]);
        assert_eq!(ended.status, 2, "{path}: {ended:?}");
        assert!(ended.stderr.contains(part), "{path}: {ended:?}");
        assert!(ended.stdout.contains("\"ok\": false"), "{path}: {ended:?}");
    };
    check("nothing", "--file: nothing can't be opened");
    check("bytes", "it is not UTF-8");
    check(".", "it is a folder");
    check("-", "write - after the prompt");
    check("/dev/zero", "it has more than");
}

/// Runs `command`, whose engine is the built-in one, with this standard input.
fn end(mut command: Command, stdin: impl Into<Stdio>) -> Ended {
    let output = command.env("DUOLOGUE_ENGINE", "echo").stdin(stdin).output();
    let output = output.expect("it runs");
    Ended {
        status: output.status.code().expect("a status"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// What bash does with `script`.
fn in_bash(folder: &Folder, script: &str, stdin: impl Into<Stdio>) -> Ended {
    let mut command = Command::new("bash");
    // Without a file of the user, which it reads where standard input is a socket.
    command.args(["--norc", "-c", script]).current_dir(folder.path("")).env_clear();
    let program = Path::new(env!("CARGO_BIN_EXE_duologue")).parent().expect("a folder");
    let others = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{others}", program.display()));
    end(command, stdin)
}

/// The reader of a pipe with `data` and its end.
fn piped(data: &str) -> OwnedFd {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    File::from(writer).write_all(data.as_bytes()).expect("there is room");
    reader
}

#[test]
fn what_is_piped_in_is_added_to_the_prompt() {
    let folder = folder();
    fs::write(folder.path("ask.yaml"), "prompt: Review this\n").expect("a file");
    fs::write(folder.path("ask.txt"), "Review this\n").expect("a file");
    for words in [
        &["exec", "Review this"][..],
        &["exec", "--prompt-file", "ask.txt"],
        &["run-command", "ask.yaml"],
    ] {
        for (text, expected) in [
            ("-a\n+b\n", "Review this\n\n-a\n+b\n"),
            ("", "Review this\n"),
            (" \n", "Review this\n"),
        ] {
            let quiet = |ended: Ended| {
                assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{words:?} {text:?}");
                ended.stdout
            };
            let shown = [words, &["--print-prompt"]].concat();
            assert_eq!(quiet(end(duologue(&folder, &shown), piped(text))), expected, "{words:?}");
            // The whole way to the answer, too.
            let answered = quiet(end(duologue(&folder, words), piped(text)));
            assert_eq!(answered, format!("Turn 1. You said: {expected}"), "{words:?}");
        }
    }
    let asked = |words: &[&str], text| end(duologue(&folder, words), piped(text)).stdout;
    let with_file = asked(&["exec", "Compare", "-f", "b c.txt", "--print-prompt"], "piped\n");
    assert_eq!(with_file, "Compare\n\npiped\n\n<file name=\"b c.txt\">\nthree\n</file>\n");
    // Messages before the prompt are enough, and what is piped in is more.
    fs::write(folder.path("system.yaml"), "system-prompt: Be brief.\nprompt: ''\n")
        .expect("a file");
    assert_eq!(asked(&["run-command", "system.yaml"], "hi\n"), "Turn 1. You said: hi\n");
    assert_eq!(end(duologue(&folder, &["run-command", "system.yaml"]), piped("")).status, 0);
    let bytes = end(
        duologue(&folder, &["exec", "hello"]),
        File::open(folder.path("bytes")).expect("a file"),
    );
    assert!(bytes.status == 2 && bytes.stderr.contains("it is not UTF-8"), "{bytes:?}");
}

/// What `words` say where the first of `parts` is read from `stdin` before the second is written.
fn fed(
    folder: &Folder,
    words: &[&str],
    (stdin, writer): (OwnedFd, OwnedFd),
    parts: [&str; 2],
) -> Ended {
    let same = stdin.try_clone().expect("a descriptor");
    thread::scope(|scope| {
        let mut writer = File::from(writer);
        let ending = scope.spawn(|| end(duologue(folder, words), stdin));
        let [first, second] = parts.map(str::as_bytes);
        writer.write_all(first).expect("there is room");
        eventually("it is read", || (ioctl_fionread(&same) == Ok(0)).then_some(()));
        writer.write_all(second).expect("there is room");
        drop(writer);
        ending.join().expect("no panic")
    })
}

/// A program that waits for events makes its standard input non-blocking, for what it starts as well.
#[test]
fn standard_input_that_does_not_block_is_waited_for() {
    let folder = folder();
    let file = "flags:\n  - {name: text, type: stringFromFile}\nprompt: 'hello {{ .text }}'\n";
    fs::write(folder.path("text.yaml"), file).expect("a file");
    let text = ["one ", "two"];
    let forms: [(&[&str], [&str; 2], &str); 6] = [
        (&["exec"], text, "one two"),
        (&["exec", "-"], text, "one two"),
        (&["exec", "hello"], text, "hello\n\none two"),
        (&["exec", "hello", "-"], text, "hello\n\none two"),
        (&["run-command", "text.yaml", "--text", "-"], text, "hello one two"),
        (&["run-command", "-"], ["prompt: one ", "two\n"], "one two"),
    ];
    for (words, parts, expected) in forms {
        let sockets = UnixStream::pair().expect("sockets");
        sockets.0.set_nonblocking(true).expect("our own");
        let sockets = (OwnedFd::from(sockets.0), OwnedFd::from(sockets.1));
        let pipe = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("a pipe");
        for ends in [pipe, sockets] {
            let ended = fed(&folder, words, ends, parts);
            let answer = format!("Turn 1. You said: {expected}\n");
            assert_eq!((ended.stdout, ended.stderr.as_str()), (answer, ""), "{words:?}");
        }
    }
}

#[test]
fn files_and_sockets_are_read_like_pipes() {
    let folder = folder();
    let check = |stdin: Stdio| {
        let ended = end(duologue(&folder, &["exec", "hello"]), stdin);
        let expected = "Turn 1. You said: hello\n\none\ntwo\n";
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (expected, ""), "{ended:?}");
    };
    check(File::open(folder.path("a.txt")).expect("a file").into());
    let (mut near, far) = UnixStream::pair().expect("sockets");
    near.write_all(b"one\ntwo\n").expect("there is room");
    drop(near);
    check(OwnedFd::from(far).into());
}

#[test]
fn a_shell_pipes_into_the_prompt() {
    let folder = folder();
    let expected = "Turn 1. You said: hello\n\none\ntwo\n";
    for script in [
        "cat a.txt | duologue exec hello",
        "cat a.txt | timeout 600 duologue exec hello",
        "cat a.txt | (exec duologue exec hello)",
        "duologue exec hello < a.txt; true",
        "duologue exec hello < <(cat a.txt); true",
        "duologue exec hello <<< $'one\\ntwo'; true",
        "duologue exec hello - < a.txt",
    ] {
        let ended = in_bash(&folder, script, Stdio::null());
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (expected, ""), "{script}");
    }
}

/// The first process of a container only waits for the program that it starts.
#[test]
fn what_is_piped_into_a_container_is_part_of_the_prompt() {
    let folder = folder();
    for wrapper in ["docker-init", "tini", "dumb-init", "catatonit", "podman-init", "uv"] {
        // A process has the name by which its program was started.
        let script = format!(
            "ln -s \"$BASH\" {wrapper}; cat a.txt | ./{wrapper} -c 'duologue exec hello; exit $?'"
        );
        let ended = in_bash(&folder, &script, Stdio::null());
        let expected = "Turn 1. You said: hello\n\none\ntwo\n";
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (expected, ""), "{wrapper}");
    }
}

/// A function of a shell gets what is piped into it, however slowly it comes; a file that nobody has read from is
/// for whoever reads it first.
#[test]
fn what_is_piped_into_a_function_or_a_script_is_part_of_the_prompt() {
    let folder = folder();
    fs::write(folder.path("ask.yaml"), "prompt: hello\n").expect("a file");
    fs::write(folder.path("ask.sh"), "duologue exec hello\ntrue\n").expect("a file");
    let expected = "Turn 1. You said: hello\n\none\ntwo\n";
    for script in [
        "review() { duologue exec hello; true; }; cat a.txt | review",
        "cat a.txt | { timeout 600 duologue exec hello; cat; }",
        "cat a.txt | { duologue run-command ask.yaml; cat; }",
        "bash ask.sh < a.txt",
        "review() { duologue exec hello; }; review < a.txt; true",
        "review() { x=$(echo hello); duologue exec \"$x\" -; true; }; cat a.txt | review",
        // It is not in doubt either way.
        "cat a.txt | bash -c 'duologue exec hello -; true'",
        "cat a.txt | bash -c 'cat | duologue run-command ask.yaml; true'",
    ] {
        let ended = in_bash(&folder, script, Stdio::null());
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (expected, ""), "{script}");
    }
    // The first byte comes after the first frame, so long after the start.
    folder.fifo("go");
    let script =
        "review() { duologue exec hello --rpc; true; }; { read -r _ < go; cat a.txt; } | review |
        { read -r hello; echo > go; cat; }";
    let ended = in_bash(&folder, script, Stdio::null());
    assert!(ended.stdout.contains(r#""prompt":"hello\n\none\ntwo\n""#), "{ended:?}");
    assert_eq!(ended.stderr, "");
}

/// A loop, a script or a git hook may read its own standard input, or leave it to the commands that it starts. A pipe
/// does not say which: nothing of it is taken away, and nothing is asked without it.
#[test]
fn input_of_which_it_is_in_doubt_whose_it_is_is_an_error() {
    let folder = folder();
    fs::write(folder.path("ask.yaml"), "prompt: hello\n").expect("a file");
    fs::write(folder.path("ask.sh"), "duologue exec hello\nstatus=$?\necho > go\nexit $status\n")
        .expect("a file");
    folder.fifo("go");
    let script = "printf 'duologue exec one\nduologue exec two --output json\n:'";
    let write_dash = "write - after the prompt";
    for (script, left, claim) in [
        (
            "cat a.txt | while read -r line; do duologue exec \"$line\"; break; done".to_owned(),
            "",
            write_dash,
        ),
        (
            "cat a.txt | while read -r line; do timeout 600 duologue exec \"$line\"; cat; done"
                .to_owned(),
            "two\n",
            write_dash,
        ),
        (
            "review() { x=$(echo hello); duologue exec \"$x\"; cat; }; cat a.txt | review"
                .to_owned(),
            "one\ntwo\n",
            write_dash,
        ),
        (format!("{script} | bash"), "engine_init_failed", write_dash),
        ("cat a.txt | bash -c 'duologue exec hello; cat'".to_owned(), "one\ntwo\n", write_dash),
        (
            "cat a.txt | bash -c 'duologue run-command ask.yaml; cat'".to_owned(),
            "one\ntwo\n",
            "write cat |",
        ),
        // Nothing has come yet.
        (
            "{ read -r _ < go; cat a.txt; } | { bash ask.sh; test $? = 2 && cat; }".to_owned(),
            "one\ntwo\n",
            write_dash,
        ),
    ] {
        let ended = in_bash(&folder, &script, Stdio::null());
        assert!(
            ended.stdout.contains(left) && !ended.stdout.contains("You said"),
            "{script}: {ended:?}"
        );
        for part in ["for bash (process", claim, "input of a loop, write </dev/null"] {
            assert!(ended.stderr.contains(part), "{script}: {ended:?}");
        }
    }
    let (mut near, far) = UnixStream::pair().expect("sockets");
    near.write_all(b"one").expect("there is room");
    let ended = in_bash(&folder, "duologue exec hello; exit", OwnedFd::from(far));
    assert!(ended.status == 2 && ended.stderr.contains(write_dash), "{ended:?}");
}

/// While a command runs, dash has the here-document of it as its own standard input.
#[test]
fn a_here_document_of_dash_is_read_where_it_is_claimed() {
    needs!(Dash);
    let folder = folder();
    fs::write(folder.path("ask.yaml"), "prompt: hello\n").expect("a file");
    let in_dash = |command: &str| {
        fs::write(folder.path("here.sh"), format!("{command}\none\ntwo\nEND\n")).expect("a file");
        in_bash(&folder, "dash here.sh", Stdio::null())
    };
    for (command, advice) in [
        ("duologue exec hello <<END", "write - after the prompt"),
        ("duologue run-command ask.yaml <<END", "<< with the here-document right after cat"),
    ] {
        let ended = in_dash(command);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{command}: {ended:?}");
        for part in ["as a here-document of this command", advice] {
            assert!(ended.stderr.contains(part), "{command}: {ended:?}");
        }
    }
    let expected = "Turn 1. You said: hello\n\none\ntwo\n";
    for command in ["duologue exec hello - <<END", "cat <<END | duologue run-command ask.yaml"] {
        let ended = in_dash(command);
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (expected, ""), "{command}");
    }
}

/// Lines of a loop may be anything, and so may what is after `--`.
#[test]
fn a_dash_after_two_dashes_is_text() {
    let folder = folder();
    for (words, stdin, expected) in [
        (&["exec", "--", "-"][..], "", "-"),
        (&["exec", "--raw", "--", "-"], "", "-"),
        (&["exec", "--", "-hello", "-"], "piped", "-hello\n\npiped"),
        (&["exec", "hello", "--", "-"], "piped", "hello\n\npiped"),
        (&["exec", "-"], "piped", "piped"),
    ] {
        let ended = end(duologue(&folder, words), piped(stdin));
        let expected = format!("Turn 1. You said: {expected}\n");
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (&*expected, ""), "{words:?}");
    }
}

/// Nothing is left for a flag where the command file is read from it.
#[test]
fn standard_input_that_held_the_command_file_is_read_once() {
    let folder = folder();
    let file = "flags: [{name: t, type: stringFromFile}]\nprompt: 'T {{ .t }}'\n";
    for empty in [&[][..], &["--allow-empty"]] {
        let words = [&["run-command", "-", "--t", "-", "--print-prompt"], empty].concat();
        let mut once = Once::start(duologue(&folder, &words));
        once.write(file);
        let ended = once.finish();
        assert_eq!((ended.status, &*ended.stdout), (2, ""), "{ended:?}");
        assert!(ended.stderr.contains("it can be read once"), "{ended:?}");
    }
}

/// A shell's `<(command)` is a pipe, and what is in it can be read once.
#[test]
fn pipes_are_read_where_files_are_named() {
    let folder = folder();
    let image = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/squares.png"));
    fs::write(folder.path("a.png"), image.expect("an image")).expect("a file");
    let script = "duologue exec hello --image <(sleep 0; cat a.png) --attach <(cat a.txt) \
                  --schema <(echo '{\"type\": \"object\"}') --prices <(printf 'currency: USD\\nmodels: {}\\n') \
                  --mcp-config <(echo '{\"mcpServers\": {}}') --system-file <(echo Be brief.) \
                  --echo-answer answer.json </dev/null";
    fs::write(folder.path("answer.json"), "{\"n\": 1}").expect("a file");
    let ended = in_bash(&folder, script, Stdio::null());
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("{\"n\": 1}\n", ""), "{ended:?}");
    let ended = in_bash(
        &folder,
        "duologue exec hello --image <(cat a.png) --attach <(cat a.txt) </dev/null",
        Stdio::null(),
    );
    let expected = "Turn 1. You said: hello\nAttached: image (image/png, 8x8, 82 bytes)\n\
                    Attached: text (text/plain, 8 bytes)\n";
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (expected, ""), "{ended:?}");
    for (option, writes, part) in [
        ("--schema", "true", "--schema: "),
        ("--schema", "cat /dev/zero", "it is larger than"),
        ("--prices", "cat /dev/zero", "it is larger than"),
        ("--mcp-config", "cat /dev/zero", "it is larger than"),
        ("--image", "cat /dev/zero", "it is larger than"),
        ("--image", "cat a.txt", "not an image"),
    ] {
        let script = format!("duologue exec hello {option} <({writes}) </dev/null");
        let ended = in_bash(&folder, &script, Stdio::null());
        assert!(ended.status == 2 && ended.stderr.contains(part), "{script}: {ended:?}");
    }
    // A key is not in a file that others could read, either.
    let provider = Provider::start(vec![says("well")]);
    let script = format!(
        "duologue exec hello --engine openai --model m --base-url {} --key-file <(echo sk-piped) </dev/null",
        provider.base_url()
    );
    let ended = in_bash(&folder, &script, Stdio::null());
    assert_eq!(ended.stdout, "well\n", "{ended:?}");
    assert_eq!(provider.wait_request(1).header("authorization"), Some("Bearer sk-piped"));
}

#[test]
fn a_loop_keeps_its_input() {
    let folder = folder();
    let answers = "Turn 1. You said: one\nTurn 1. You said: two\n";
    for script in [
        "while read -r line; do duologue exec \"$line\"; done < a.txt",
        "cat a.txt | while read -r line; do duologue exec \"$line\" </dev/null; done",
    ] {
        let ended = in_bash(&folder, script, Stdio::null());
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (answers, ""), "{script}");
    }
}

/// Input that comes too late to be part of the prompt is reported, in every output.
#[test]
fn input_that_comes_after_the_prompt_was_sent_is_reported() {
    let folder = folder();
    let gated =
        || vec![Step::Gate, Step::Text("well".to_owned()), Step::Finish("stop", None), Step::Done];
    for output in ["--output text", "--output json", "--json-stream"] {
        let provider = Provider::start(vec![gated()]);
        let script = format!(
            "duologue exec hello --engine openai --model m --base-url {} {output}; exit",
            provider.base_url()
        );
        let (input, writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let ended = thread::scope(|scope| {
            let ending = scope.spawn(|| in_bash(&folder, &script, input));
            let asked = provider.wait_request(1).body;
            assert_eq!(asked["messages"][0]["content"], "hello");
            File::from(writer).write_all(b"late").expect("there is room");
            provider.open_gate();
            ending.join().expect("no panic")
        });
        assert!(ended.status == 0 && ended.stderr.contains(UNREAD), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        let part = match output {
            "--output json" => "\"code\": \"input_unread\"",
            "--json-stream" => "\"status\":\"warning\"",
            _ => "well",
        };
        assert!(ended.stdout.contains(part), "{ended:?}");
    }
}

/// A job of cron or CI has nothing on its standard input, or something open that nobody writes to.
#[test]
fn standard_input_that_has_nothing_is_not_waited_for() {
    let folder = folder();
    let quiet = |ended: Ended| {
        let expected = (0, "Turn 1. You said: hello\n", "");
        assert_eq!((ended.status, ended.stdout.as_str(), ended.stderr.as_str()), expected);
    };
    quiet(end(duologue(&folder, &["exec", "hello"]), Stdio::null()));
    quiet(in_bash(&folder, "duologue exec hello <&-; true", Stdio::null()));
    quiet(in_bash(&folder, "duologue exec hello < /dev/zero; true", Stdio::null()));
    let (open, _writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    quiet(in_bash(&folder, "duologue exec hello; true", open));
    let (_near, far) = UnixStream::pair().expect("sockets");
    quiet(in_bash(&folder, "duologue exec hello; true", OwnedFd::from(far)));
}

/// What a program that starts this one leaves open, as many do, and what comes from another machine.
#[test]
fn a_pipe_or_a_socket_without_data_delays_the_prompt_for_a_limited_time() {
    let folder = folder();
    fs::write(folder.path("ask.yaml"), "prompt: hello\n").expect("a file");
    let open = || pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    let ((first, _writer), (second, _other_writer)) = (open(), open());
    let sockets = UnixStream::pair().expect("sockets");
    let cases: [(&[&str], OwnedFd); 3] = [
        (&["exec", "hello"], first),
        (&["run-command", "ask.yaml"], second),
        (&["exec", "hello", "-o", "json"], sockets.1.into()),
    ];
    let ends = thread::scope(|scope| {
        let started =
            cases.map(|(words, stdin)| scope.spawn(|| end(duologue(&folder, words), stdin)));
        started.map(|ending| ending.join().expect("no panic"))
    });
    let ways =
        ["write - after the prompt to", "write cat | before the command to", "write - after"];
    for (ended, way) in ends.into_iter().zip(ways) {
        assert_eq!(ended.status, 0, "{ended:?}");
        assert!(ended.stderr.contains(way), "{ended:?}");
        let is_document = ended.stdout.contains("\"code\": \"input_unread\"");
        assert!(is_document || ended.stdout == "Turn 1. You said: hello\n", "{ended:?}");
        let expected = "nothing came on standard input within 3 s";
        assert!(ended.stderr.contains(expected) && ended.stderr.lines().count() == 1, "{ended:?}");
    }
}

#[test]
fn options_have_short_forms() {
    let provider = Provider::start(vec![says("hello")]);
    let url = provider.base_url();
    let words = ["rpc", "--base-url", &url, "-m", "the-model", "-s", "Be brief."];
    let mut server = Launch::new(&words).secret("OPENAI_API_KEY", "sk-short").start();
    assert_eq!(server.turn("r", "hello"), "ok");
    server.finish();
    let body = provider.wait_request(1).body;
    assert_eq!(body["model"], "the-model");
    assert_eq!(body["messages"][0]["content"], "Be brief.");
    let folder = folder();
    let ended = run(&folder, &["exec", "hello", "-f", "a.txt", "-o", "json", "--engine", "echo"]);
    assert!(ended.stdout.contains("a.txt") && ended.stdout.starts_with('{'), "{ended:?}");
}
