//! Command lines that are wrong, and the tips that say what to write instead.

use crate::once::{Ended, Once, duologue, run};
use crate::server::Folder;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("ask.yaml"), "flags: [{name: who, type: string}]\nprompt: hello\n")
        .expect("a file");
    folder
}

#[track_caller]
fn wrong(words: &[&str]) -> Ended {
    let ended = run(&folder(), words);
    assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
    ended
}

/// The tips of `words`, which are wrong.
#[track_caller]
fn tips(words: &[&str]) -> Vec<String> {
    let ended = wrong(words);
    let tips = ended.stderr.lines().filter_map(|line| line.strip_prefix("  tip: "));
    tips.map(str::to_owned).collect()
}

#[track_caller]
fn check(words: &[&str], part: &str) {
    let tips = tips(words);
    assert!(tips.len() == 1 && tips[0].contains(part), "{words:?}: {tips:?}");
}

#[test]
fn a_key_is_never_an_option_and_never_repeated() {
    for words in [
        &["exec", "hi", "--api-key", "sk-secret"][..],
        &["exec", "hi", "--api-key=sk-secret", "--output", "json"],
        &["rpc", "--api-key", "sk-secret"],
        &["run-command", "ask.yaml", "--api-key", "sk-secret", "--json-stream"],
        &["--api-key", "sk-secret"],
    ] {
        check(words, "DUOLOGUE_API_KEY, OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY");
        let ended = wrong(words);
        assert!(!format!("{ended:?}").contains("secret"), "{ended:?}");
    }
}

#[test]
fn a_password_in_an_address_is_never_repeated() {
    let address = "postgres://ada:pw-secret@db.example/chat";
    for words in [
        &["rpc", address][..],
        &["sessions", address],
        &["sessions", "show", "s", address],
        &["exec", "hi", "--output", "json", "--log-level", address],
    ] {
        let ended = wrong(words);
        assert!(format!("{ended:?}").contains("postgres://db.example/chat"), "{ended:?}");
        assert!(!format!("{ended:?}").contains("secret"), "{ended:?}");
    }
}

#[test]
fn options_of_other_programs_name_ours() {
    check(&["exec", "hi", "--json"], "--output json prints one JSON document");
    check(&["run-command", "ask.yaml", "--json"], "--output json prints one JSON document");
    check(&["rpc", "--json"], "--no-stream prints one JSON document");
    check(&["check", "--json"], "--output json");
    check(&["exec", "hi", "--yaml"], "--output yaml");
    check(&["exec", "hi", "--jsonl"], "--output jsonl");
    check(&["exec", "hi", "--modle", "x"], "'--model'");
}

#[test]
fn first_guesses_have_their_equivalents() {
    for words in [&["init"][..], &["init", "--force"], &["keys", "set", "openai"], &["auth"]] {
        check(words, "'duologue profiles init' asks for provider, key and model");
    }
    check(&["login"], "'duologue mcp login'");
    check(&["login"], "'duologue profiles init'");
    check(&["config"], "'duologue doctor' reports what is configured");
    check(&["version"], "'duologue --version'");
    check(&["keys", "are", "made", "of", "what"], "duologue exec \"keys are made of what\"");
    for words in [
        &["exec", "--output-format", "stream-json", "hi"][..],
        &["exec", "hi", "--output-format=json"],
    ] {
        check(words, "--json-stream prints events");
        check(words, "--output json prints one JSON document");
    }
    check(&["rpc", "--output-format", "json"], "what `rpc` prints is JSON");
    for words in [&["exec", "-t", "0.2", "hi"][..], &["chat", "-t", "0.2"], &["rpc", "-t", "0.2"]] {
        check(words, "--temperature 0.2");
    }
    check(&["exec", "-t is an option of what?"], "exec -- \"-t is an option of what?\"");
}

/// Clients append the option; the one that is most like it would lose a conversation.
#[test]
fn a_command_that_prints_no_document_has_no_option_for_it() {
    for words in [&["chat"][..], &["acp"], &["mcp", "login", "files"], &["mcp", "logout", "files"]]
    {
        check(&[words, &["--no-stream"]].concat(), "it prints no document");
    }
}

#[test]
fn a_question_without_a_command_is_for_exec() {
    check(&["What is a duologue?"], "duologue exec \"What is a duologue?\"");
    check(&["What", "is", "it", "--engine", "echo"], "duologue exec \"What is it\"");
    check(&["Why?"], "duologue exec \"Why?\"");
    check(&["rpc", "hello", "there"], "duologue exec \"hello there\"");
    check(&["Say \"$HOME\" now"], "duologue exec \"…\"");
    check(&["exce"], "'exec'");
    let long = "word ".repeat(100);
    assert!(tips(&[&long])[0].len() < 200);
}

/// Who follows such a tip sends a command to a provider.
#[test]
fn a_wrong_command_of_a_command_is_no_question() {
    for (words, part) in [
        (&["profiles", "delete", "work"][..], "/duologue/profiles.yaml; edit that file"),
        (&["profiles", "use", "work"], "`default: NAME` names the one that is used"),
        (&["profiles", "list"], "'duologue profiles' lists them"),
        (&["profiles", "work"], "'duologue profiles' are init, show, trust and untrust"),
        (&["profiles", "shwo", "work"], "a similar command exists: 'duologue profiles show'"),
        (&["sessions", "rm", "s"], "'duologue sessions delete ID'"),
        (&["sessions", "ls"], "'duologue sessions list'"),
        (&["sessions", "resume", "ada"], "'duologue chat --session ID'"),
        (&["sessions", "frobnicate"], "'duologue sessions' are list, show, export, "),
        (&["mcp", "list"], "'duologue tools' lists the tools"),
        (&["mcp", "add", "x"], "--mcp or --mcp-config"),
        (&["profile", "list"], "'profiles'"),
    ] {
        check(words, part);
        let tips = tips(words);
        assert!(!tips[0].contains("to ask the model"), "{words:?}: {tips:?}");
    }
}

/// By the measure of letters alone, `--no-store` is like `--no-color`, and loses a conversation.
#[test]
fn options_that_many_programs_have_lead_to_what_there_is() {
    for (words, part) in [
        (&["exec", "--provider", "openai", "hi"][..], "use --engine NAME"),
        (&["exec", "--no-color", "hi"], "NO_COLOR=1"),
        (&["sessions", "list", "--no-color"], "NO_COLOR=1"),
        (&["exec", "--verbose", "hi"], "--log-level debug"),
        (&["chat", "-v"], "--log-level debug"),
        (&["-v"], "--log-level debug"),
        (&["exec", "--quiet", "hi"], "--log-level error"),
        (&["exec", "--insecure", "hi"], "SSL_CERT_FILE"),
        (&["exec", "--host", "U", "hi"], "--base-url URL"),
        (&["exec", "--endpoint=U", "hi"], "--base-url URL"),
        (&["exec", "--proxy", "U", "hi"], "HTTPS_PROXY"),
        (&["exec", "--prompt", "hi"], "the prompt stands alone"),
        (&["chat", "-p", "hi"], "the prompt stands alone"),
        (&["chat", "--file", "F", "hi"], "--attach FILE"),
        (&["exec", "--format", "json"], "--output FORMAT"),
        (&["exec", "--stream", "hi"], "leave it out"),
        (&["exec", "--system-prompt", "Be brief.", "hi"], "--system TEXT"),
        (&["completions", "--shell", "bash"], "the name of the shell stands alone"),
        (&["sessions", "delete", "--all"], "--older-than 30d"),
        (&["sessions", "export", "s", "-o", "markdown"], "--format markdown"),
        (&["sessions", "export", "s", "--output=html"], "--format html"),
    ] {
        check(words, part);
    }
    for words in [["sessions", "list", "--limit", "3"], ["models", "--prompt", "hi", "x"]] {
        assert_eq!(tips(&words), [""; 0], "{words:?}");
    }
    check(&["exec", "--sesion", "s", "hi"], "'--session'");
    check(&["exec", "--temp", "0.2", "hi"], "'--temperature'");
}

#[test]
fn a_prompt_of_several_words_needs_quotes() {
    check(&["chat", "hello", "world"], "quotes: duologue chat \"hello world\"");
    let model = ["exec", "-m", "gpt-5", "hello", "world"];
    check(&model, "quotes: duologue exec -m gpt-5 \"hello world\"");
    let header = ["exec", "--header", "X-Key: s3cret", "hello", "world"];
    check(&header, "quotes: duologue exec … \"hello world\"");
    assert!(!wrong(&header).stderr.contains("s3cret"));
    for name in ["--openai-api-key", "--claude-api-key", "--gemini-api-key"] {
        for (command, output) in [("exec", "json"), ("exec", "jsonl"), ("chat", "text")] {
            let key = [command, name, "sk-s3cret", "hello", "world", "--output", output];
            let ended = wrong(&key);
            let has_tip = ended.stderr.contains("put the prompt in quotes");
            let all = ended.stdout + &ended.stderr;
            assert!(has_tip && !all.contains("s3cret"), "{key:?}: {all}");
        }
    }
    check(&["exec", "--resume", "ada", "hi"], "--session ada resumes the session");
    check(&["exec", "What", "is", "it"], "quotes: duologue exec \"What is it\"");
    check(&["exec", "What", "is", "--engine", "echo"], "quotes: duologue exec \"What is\" …");
    let ended = wrong(&["exec", "What", "is", "--output", "json"]);
    assert!(ended.stderr.starts_with("error: unexpected argument 'is' found"), "{ended:?}");
    assert!(ended.stdout.contains("duologue exec"), "{ended:?}");
}

#[test]
fn a_prompt_that_begins_with_a_dash_needs_two_dashes() {
    let folder = folder();
    for prompt in ["- is this a list?", "-what is it", "--- a/main.rs is a diff", "-1 is a number"]
    {
        check(&["exec", prompt], &format!("exec -- \"{prompt}\""));
        let ended = run(&folder, &["exec", "--engine", "echo", "--", prompt]);
        assert_eq!(ended.stdout, format!("Turn 1. You said: {prompt}\n"));
    }
    check(&["exec", "--output", "json", "-x \"$HOME\""], "exec -- \"…\"");
}

#[test]
fn a_flag_that_a_command_file_lacks_can_be_declared() {
    check(&["run-command", "ask.yaml", "--zeal", "x"], "ask.yaml declares no such flag");
    check(&["run-command", "ask.yaml", "--zeal=x"], "- {name: zeal, type: string}");
    check(&["run-command", "ask.yaml", "x"], "ask.yaml takes no more arguments");
    // A flag that is misspelt has both.
    let tips = tips(&["run-command", "ask.yaml", "--wh", "x"]);
    assert!(tips.len() == 2 && tips[0].contains("'--who'"), "{tips:?}");
    assert!(tips[1].contains("declares no such flag"), "{tips:?}");
}

/// What would move a cursor on a terminal can't be in what a person typed either.
#[test]
fn what_was_typed_can_not_control_a_terminal_in_a_tip() {
    let tips = tips(&["a question \u{1b}[2J \u{9b}31m"]);
    assert!(!tips[0].contains(char::is_control), "{tips:?}");
}

#[test]
fn numbers_are_explained_in_plain_words() {
    let check = |words: &[&str], expected: &str| {
        let words = [&["exec", "hi"], words].concat();
        let ended = wrong(&words);
        let first = ended.stderr.lines().next().unwrap_or_default();
        assert!(first.ends_with(expected), "{words:?}: {ended:?}");
    };
    check(
        &["--echo-delay-ms", "many"],
        "'--echo-delay-ms <MS>': it is not an integer, such as 500",
    );
    check(&["--retries", "11"], "it is not an integer from 0 to 10");
    check(&["--idle-timeout-ms", "0"], "it is not an integer from 1 up");
    check(&["--max-request-bytes", "0"], "it is not an integer from 1 to 1073741824");
}

#[test]
fn a_value_is_named_once() {
    let folder = Folder::new();
    let flags = "flags: [{name: times, type: int}, {name: is, type: bool}]\nprompt: a\n";
    fs::write(folder.path("typed.yaml"), flags).expect("a file");
    for words in [["--times", "lots"], ["--is=lots", "--times=1"]] {
        let ended = run(&folder, &[&["run-command", "typed.yaml"], &words[..]].concat());
        assert_eq!(ended.stderr.matches("lots").count(), 1, "{ended:?}");
    }
}

#[test]
fn a_word_after_help_is_no_question() {
    check(&["help", "chat-guid"], "'chat-guide'");
    check(&["help", "comand-file"], "'command-files'");
    check(&["help", "modles"], "'models'");
    check(&["help", "docter"], "a similar command exists: 'doctor'");
    for words in [&["help", "--help"][..], &["help", "-h"], &["help", "exec", "--help"]] {
        check(words, "duologue --help lists the commands");
    }
    check(&["help", "zzz", "at", "all"], "duologue --help lists the commands");
    check(&["help", "protocol", "--no-stream"], "'help protocol' takes nothing more");
}

/// A file that is named on the command line is looked for before anything is asked.
#[test]
fn an_answer_that_is_not_there_is_a_wrong_command_line() {
    for words in [&["exec", "hi"][..], &["run-command", "ask.yaml"], &["rpc"]] {
        let ended = wrong(&[words, &["--engine", "echo", "--echo-answer", "nothing"]].concat());
        assert!(ended.stderr.contains("--echo-answer: nothing can't be read"), "{ended:?}");
    }
}

/// A person who typed no such option is shown where its value comes from.
#[test]
fn a_wrong_value_of_a_variable_names_the_variable() {
    let folder = folder();
    for (words, variable, value) in [
        (&["exec", "hi", "--engine", "echo"][..], "DUOLOGUE_OUTPUT", "bad"),
        (&["exec", "hi", "--engine", "echo"], "DUOLOGUE_RETRIES", "many"),
        (&["rpc", "--engine", "echo"], "DUOLOGUE_LOG_LEVEL", "loud"),
        (&["run-command", "ask.yaml"], "DUOLOGUE_ENGINE", "none"),
    ] {
        let mut command = duologue(&folder, words);
        command.env(variable, value);
        let mut once = Once::start(command);
        once.close_stdin();
        let ended = once.finish();
        let tip = format!("  tip: the value comes from the variable {variable}; ");
        assert!(ended.status == 2 && ended.stderr.contains(&tip), "{variable}: {ended:?}");
    }
    let mut command = duologue(&folder, &["exec", "hi", "--output=worse"]);
    command.env("DUOLOGUE_OUTPUT", "bad");
    let mut once = Once::start(command);
    once.close_stdin();
    let typed = once.finish();
    assert!(typed.stderr.contains("worse") && !typed.stderr.contains("variable"), "{typed:?}");
}

/// Whoever typed no `--history` is told where it comes from, and of no store that is not made after all.
#[test]
fn a_history_that_a_variable_names_is_refused_by_that_name_for_a_session() {
    let folder = folder();
    let history = "{\"role\": \"user\", \"text\": \"hi\"}\n";
    fs::write(folder.path("history.jsonl"), history).expect("a file");
    let mut command = duologue(&folder, &["exec", "hi", "--engine", "echo", "--session", "s"]);
    command.env("DUOLOGUE_HISTORY", "history.jsonl");
    let ended = Once::start(command).finish();
    assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{ended:?}");
    for part in ["with which --session goes on", "the variable DUOLOGUE_HISTORY"] {
        assert!(ended.stderr.contains(part), "{ended:?}");
    }
    assert!(!ended.stderr.contains("made now"), "{ended:?}");
}

/// Who typed no option does not know what an error about one is about.
#[test]
fn an_error_about_the_value_of_a_variable_names_the_variable() {
    let folder = folder();
    let check = |variable: &str, value: &OsStr, words: &[&str]| {
        let mut command = duologue(&folder, &[words, &["--engine", "echo"]].concat());
        command.env(variable, value);
        let mut once = Once::start(command);
        once.close_stdin();
        let ended = once.finish();
        assert_eq!(ended.status, 2, "{variable}: {ended:?}");
        assert!(!ended.stderr.contains("s3cret"), "{variable}: {ended:?}");
        ended.stderr.contains(&format!("variable {variable}"))
    };
    for (variable, value) in [
        ("DUOLOGUE_TEMPERATURE", "0,5"),
        ("DUOLOGUE_TOP_P", "2"),
        ("DUOLOGUE_MAX_TOKENS", "-1"),
        ("DUOLOGUE_SEED", "x"),
        ("DUOLOGUE_REASONING_BUDGET", "x"),
        ("DUOLOGUE_EXTRA_BODY", "{"),
        ("DUOLOGUE_HEADER", "s3cret"),
        ("DUOLOGUE_HISTORY", "none.jsonl"),
        ("DUOLOGUE_PRICES", "none.yaml"),
        ("DUOLOGUE_MCP_CONFIG", "none.json"),
        ("DUOLOGUE_ECHO_ANSWER", "none.txt"),
        ("DUOLOGUE_ECHO_SCRIPT", "none.jsonl"),
        ("DUOLOGUE_SESSION_ID", " "),
        ("DUOLOGUE_LOG_FILE", "none/log"),
        ("DUOLOGUE_DEBUG_EVENTS_JSONL", "."),
        ("DUOLOGUE_RETRIES", "many"),
    ] {
        let value = OsStr::new(value);
        assert!(check(variable, value, &["exec", "hi"]), "{variable}");
        assert!(check(variable, value, &["run-command", "ask.yaml"]), "{variable}");
        assert!(check(variable, value, &["rpc"]), "{variable}");
    }
    // What was typed is wrong here, and not the variable.
    let typed = ["exec", "hi", "--inference-temperature", "warm"];
    assert!(!check("DUOLOGUE_TEMPERATURE", OsStr::new("0.5"), &typed));
    let bytes = OsStr::from_bytes(b"s3cret\xff");
    assert!(check("DUOLOGUE_MODEL", bytes, &["exec", "hi"]));
    assert!(check("DUOLOGUE_SYSTEM", bytes, &["rpc"]));
}
