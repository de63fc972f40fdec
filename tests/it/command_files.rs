//! Command files, as a user runs them: what they render to, and what comes of the examples.

use crate::once::{self, Once};
use crate::server::Folder;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Command files with renderings that were worked out by hand; there are at least this many.
const RENDERINGS_MIN: usize = 30;

fn duologue(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).env_clear();
    command.output().expect("the binary runs")
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> =
        paths.filter(|path| path.extension() == Some(OsStr::new(extension))).collect();
    files.sort();
    files
}

#[test]
fn prompts_are_rendered_as_go_renders_them() {
    let files = files("tests/templates", "yaml");
    assert!(files.len() >= RENDERINGS_MIN, "only {} files", files.len());
    for file in files {
        let path = file.to_str().expect("a name in UTF-8");
        // What has no default is typed, a word a line.
        let typed = fs::read_to_string(file.with_extension("args")).unwrap_or_default();
        let args = ["run-command", path, "--print-prompt", "--output", "json"];
        let args = args.into_iter().chain(typed.lines());
        let output = duologue(&args.collect::<Vec<_>>());
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stdout = String::from_utf8_lossy(&output.stdout);
        // A value that is missing is what Go prints, and what a person reads.
        let is_missing =
            stdout.contains("<no value>") && stderr.contains("WARN the prompt contains");
        assert!(stderr.is_empty() || is_missing, "{path}: {stderr}");
        let expected = fs::read_to_string(file.with_extension("txt")).expect("its rendering");
        let shown: Value = serde_json::from_str(&stdout).expect("JSON");
        assert_eq!(shown["data"]["prompt"], expected, "{path}");
        assert_eq!(shown["warnings"][0]["code"] == "no_value", is_missing, "{path}: {shown}");
        assert_eq!(output.status.code(), Some(0), "{path}");
    }
}

#[test]
fn a_missing_value_is_among_the_warnings_of_an_answer() {
    let (_folder, path) = written("prompt: Hello {{ .whom }}.\n");
    let output = duologue(&["run-command", &path, "--engine", "echo", "--no-stream"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["warnings"][0]["code"], "no_value", "{document}");
    assert_eq!(document["ok"], true, "{document}");
}

/// The messages of the warnings about missing values: on stderr, and in the document.
fn missing_values(text: &str, options: &[&str], input: &str) -> [Vec<String>; 2] {
    let (folder, path) = written(text);
    let words = ["run-command", &path, "--engine", "echo", "--output", "json"];
    let mut once = Once::start(once::duologue(&folder, &[&words[..], options].concat()));
    once.offer(input);
    let ended = once.finish();
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let warnings = document["warnings"].as_array().expect("a list").iter();
    let warnings = warnings.filter(|warning| warning["code"] == "no_value");
    let message = |warning: &Value| warning["message"].as_str().expect("a text").to_owned();
    let lines = ended.stderr.lines().filter_map(|line| line.split_once("WARN "));
    let lines = lines.map(|(_, line)| line.to_owned()).filter(|line| line.contains("<no value>"));
    [lines.collect(), warnings.map(message).collect()]
}

#[test]
fn a_missing_value_is_reported_of_each_template_that_has_it() {
    let all = "system-prompt: Be {{ .how }}.\nprompt: Hello {{ .whom }}.\n\
               messages: ['Hi {{ .who }}.']\n";
    let plain =
        "system-prompt: Be brief.\nmessages: [{text: Is <no value> a text?}]\nprompt: Well?\n";
    for options in [&[][..], &["--print-prompt"]] {
        let check = |text: &str, more: &[&str], expected: &[&str]| {
            let reported = missing_values(text, &[options, more].concat(), "");
            for messages in reported {
                assert_eq!(messages.len(), expected.len(), "{messages:?}");
                for (message, expected) in messages.iter().zip(expected) {
                    assert!(message.starts_with(expected), "{messages:?}");
                }
            }
        };
        let [system, earlier, prompt] = [
            "the system prompt contains <no value>: ",
            "an earlier message contains <no value>: ",
            "the prompt contains <no value>: ",
        ];
        check(all, &[], &[system, earlier, prompt]);
        // What is sent in its place has no flags, and neither has what is no template.
        check(all, &["--system", "Say <no value>."], &[earlier, prompt]);
        check(plain, &[], &[]);
    }
}

/// Its words are no flags.
#[test]
fn what_is_piped_in_and_a_history_are_not_said_to_have_a_missing_value() {
    let (_folder, history) = written(r#"{"role": "user", "text": "What is <no value>?"}"#);
    for options in [&[][..], &["--print-prompt"]] {
        let options = [options, &["--history", &history]].concat();
        let reported = missing_values("prompt: Explain.\n", &options, "text <no value> here\n");
        assert_eq!(reported, [[""; 0]; 2], "{options:?}");
    }
}

#[test]
fn a_missing_value_of_the_first_prompt_of_a_chat_is_reported() {
    let (folder, path) = written("system-prompt: Be {{ .how }}.\nprompt: Hello {{ .whom }}.\n");
    let words = ["run-command", &path, "--engine", "echo", "--chat"];
    let ended = once::run(&folder, &words);
    assert_eq!(ended.status, 0, "{ended:?}");
    for part in ["the system prompt", "the prompt"] {
        let line = format!("WARN {part} contains <no value>: ");
        assert_eq!(ended.stderr.matches(&line).count(), 1, "{ended:?}");
    }
}

/// A command file in a folder of its own.
fn written(text: &str) -> (Folder, String) {
    let folder = Folder::new();
    let path = folder.name("file.yaml");
    fs::write(&path, text).expect("a file");
    (folder, path)
}

/// People's files come first: where both have a name, ours moves out of the way, however far.
#[test]
fn flags_of_a_file_may_have_any_name() {
    let text = "
prompt: \"{{ .output }} {{ .rpc }} {{ .help }}\"
flags:
  - {name: output, type: string, shortFlag: o}
  - {name: duologue-output, type: string}
  - {name: rpc, type: string}
  - {name: help, type: string, shortFlag: h}
";
    let (_folder, file) = written(text);
    let run = ["run-command", &file, "--rpc", "a", "-h", "b", "-o", "c"];
    let text = duologue(&[&run[..], &["--print-prompt"]].concat());
    assert_eq!(String::from_utf8_lossy(&text.stdout), "c a b\n", "{text:?}");
    let ours = ["--print-prompt", "--duologue-duologue-output", "json"];
    let json = duologue(&[&run[..], &ours].concat());
    let shown: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(shown["data"]["prompt"], "c a b");
    // An error is reported as text: nobody has asked for anything else.
    let wrong = duologue(&[&run[..], &["--bogus"]].concat());
    assert_eq!((wrong.status.code(), wrong.stdout.len()), (Some(2), 0), "{wrong:?}");
    let help = duologue(&["run-command", &file, "--duologue-help"]);
    assert!(String::from_utf8_lossy(&help.stdout).contains("--duologue-rpc"), "{help:?}");
}

#[test]
fn a_typed_system_prompt_takes_the_place_of_one_that_can_not_be_rendered() {
    let text = "system-prompt: '{{ index .who 5 }}'\nflags: [{name: who, type: string, default: me}]\n\
                prompt: Hi.\n";
    let (_folder, file) = written(text);
    let run = ["run-command", &file, "--print-prompt"];
    assert_eq!(duologue(&run).status.code(), Some(2));
    let typed = duologue(&[&run[..], &["--system", "Be brief."]].concat());
    let shown = String::from_utf8_lossy(&typed.stdout);
    assert_eq!((typed.status.code(), &*shown), (Some(0), "[system]\nBe brief.\n\n[user]\nHi.\n"));
}

/// The file may be another's, and what is printed goes to a terminal.
#[test]
fn what_is_shown_of_a_file_has_no_control_characters() {
    let text = r#"
short: "short \e]0;title\a end"
long: "long \e[31m red\nsecond"
flags:
  - {name: x, type: string, help: "help \e[2J clear", default: "d\e[1m"}
  - {name: c, type: choice, choices: ["a\e[5mb", "z"]}
prompt: "p {{ .c }}"
"#;
    let (_folder, file) = written(text);
    for words in [&["--help"][..], &["-h"], &["--c", "other"], &["--bogus"]] {
        let Output { stdout, stderr, .. } =
            duologue(&[&["run-command", &file][..], words].concat());
        let shown = String::from_utf8([stdout, stderr].concat()).expect("UTF-8");
        assert!(!shown.contains(['\x1b', '\x07']), "{words:?}: {shown:?}");
        assert!(shown.contains(r"\x1b") || words == ["--bogus"], "{words:?}: {shown}");
    }
    let chosen = duologue(&["run-command", &file, "--c", "a\x1b[5mb", "--print-prompt"]);
    assert_eq!(chosen.status.code(), Some(0), "{chosen:?}");
    let unknown = duologue(&["run-command", &file, "--c", r"a\x1b[5mb", "--print-prompt"]);
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
}

#[test]
fn warnings_of_a_long_answer_are_reported_in_part() {
    let (folder, file) = written("prompt: a\nresponse-type: jsonl\n");
    let answer = folder.name("answer");
    fs::write(&answer, "x\n".repeat(5_000)).expect("a file");
    let run = ["run-command", &file, "--engine", "echo", "--echo-answer", &answer];
    let json = duologue(&[&run[..], &["--no-stream"]].concat());
    let envelope: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let warnings = envelope["warnings"].as_array().expect("a list");
    assert_eq!(warnings.len(), 101, "{envelope}");
    // One of the others says that nothing was found.
    assert_eq!(warnings[100]["message"], "and 4901 more warnings");
    let text = duologue(&run);
    let stderr = String::from_utf8_lossy(&text.stderr);
    assert_eq!(stderr.lines().count(), 21, "{stderr}");
    assert!(stderr.contains("and 4981 more warnings"), "{stderr}");
}

#[test]
fn what_a_file_asks_for_in_vain_is_reported() {
    let (_folder, file) = written("prompt: \"{{ .who }}\"\nextensions: [extrakt]\n");
    let output = duologue(&["run-command", &file, "--print-prompt"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("`extrakt` is unknown"), "{stderr}");
    assert!(stderr.contains("<no value>"), "{stderr}");
    let early = duologue(&["run-command", "--print-prompt", "--who", "x", &file]);
    let stderr = String::from_utf8_lossy(&early.stderr);
    assert!(stderr.contains("the file comes first, its flags after it"), "{stderr}");
}

/// Runs `examples/extract/<name>.yaml` with the model answering what is in `answers/<answer>`.
fn extract(name: &str, answer: &str, output: &str) -> Output {
    let file = format!("examples/extract/{name}.yaml");
    let answer = format!("examples/extract/answers/{answer}");
    let run = ["run-command", &file, "--text", "examples/jsonl.txt", "--output", output];
    let more: &[&str] = match name {
        "ontology-extract" => &["--ontology", "examples/extract/food-ontology.txt"],
        _ => &[],
    };
    duologue(&[&run[..], more, &["--engine", "echo", "--echo-answer", &answer]].concat())
}

#[test]
fn every_extraction_gives_each_line_of_its_answer() {
    let files = files("examples/extract", "yaml");
    assert!(files.len() >= 6, "only {} files", files.len());
    for file in files {
        let name = file.file_stem().and_then(OsStr::to_str).expect("a name in UTF-8");
        let answer = format!("{name}.jsonl");
        let output = extract(name, &answer, "objects");
        assert_eq!(output.status.code(), Some(0), "{name}");
        let stdout = String::from_utf8(output.stdout).expect("UTF-8");
        let (preamble, objects) = stdout.split_once('\n').expect("a first line");
        assert_eq!(
            preamble,
            format!(r#"{{"_format": "jsonl", "_schema": "{name}", "_version": 1}}"#)
        );
        let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/extract/answers");
        let whole = fs::read_to_string(whole.join(&answer)).expect("the answer");
        assert_eq!(objects.trim_end(), whole.trim_end(), "{name}");
    }
}

#[test]
fn an_answer_that_breaks_off_gives_every_whole_object() {
    let output = extract("extract-definitions", "extract-definitions-truncated.txt", "json");
    // The engine says that this is all; the last line shows that it is not.
    assert_eq!(output.status.code(), Some(3));
    let envelope: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(envelope["ok"], true);
    let data = envelope["data"].as_array().expect("a list");
    assert_eq!(data.len(), 2, "{envelope}");
    assert!(data.iter().all(|object| object["entity"].is_string()), "{envelope}");
    assert_eq!(envelope["warnings"][0]["code"], "line_rejected", "{envelope}");
    assert_eq!(envelope["warnings"][0]["line"], 3, "{envelope}");
}

#[test]
fn code_fences_cost_nothing() {
    let output = extract("extract-definitions", "extract-definitions-fenced.txt", "json");
    let envelope: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(envelope["warnings"], Value::Array(Vec::new()), "{envelope}");
    assert_eq!(envelope["data"].as_array().map(Vec::len), Some(3), "{envelope}");
}

#[test]
fn an_error_does_not_show_a_secret() {
    let calls = [
        "date \"2006\" .s",
        "dateInZone \"2006\" now .s",
        "dateModify .s now",
        "semver .s",
        "semverCompare .s \"1.0\"",
        "regexMatch .s \"x\"",
        "fromYaml .s",
        "urlParse .s",
        "padLeft \"x\" .s",
        "fail .s",
        "fail (print \"not \" .s)",
    ];
    for call in calls {
        let (_folder, path) = written(&format!(
            "flags: [{{name: s, type: secret}}]\nprompt: |\n  {{{{ {call} }}}}\n"
        ));
        for value in ["hun\"ter2 %zz, *'é: [", " a\\b\nhunter2:hunter2 % [x: y: z\n"] {
            let output = duologue(&["run-command", &path, "--print-prompt", "--s", value]);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{call}: {stderr}");
            assert!(!stderr.contains("ter2"), "{call}: {stderr}");
        }
    }
}
