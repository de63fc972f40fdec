//! What the program says of itself to other programs: schemas, the manifest, completions, manuals.

use crate::server::Folder;
use crate::tools::{json, run, streams, text};
use clap::CommandFactory;
use data_encoding::BASE64;
use duologue::cli::Cli;
use duologue::protocol::proto::DESCRIPTORS;
use duologue::protocol::schema::PROTO_FILES;
use jsonschema::Validator;
use serde_json::Value;
use std::fs;
use std::process::Command;

fn schema(of: &str) -> Validator {
    let output = run(&["schema", "json", "--for", of], b"");
    assert!(output.status.success(), "{of}");
    jsonschema::draft202012::new(&json(&output)).expect("a schema")
}

#[track_caller]
fn check(schema: &Validator, value: &Value) {
    let errors: Vec<_> = schema.iter_errors(value).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0], "{value}");
}

#[test]
fn every_frame_of_live_streams_fits_the_schema() {
    let frames = schema("frame");
    let mut count = 0;
    for stream in streams() {
        for line in text(&stream).lines() {
            check(&frames, &serde_json::from_str(line).expect("JSON"));
            count += 1;
        }
    }
    assert!(count > 150, "only {count} frames");
}

#[test]
fn events_fit_their_schema() {
    let events = schema("json-stream");
    for words in [
        &["exec", "hello", "--echo-reasoning"][..],
        &["exec", " "],
        &["exec", "--bogus"],
        &["exec", "hello", "--print-prompt"],
    ] {
        let words = [words, &["--engine", "echo", "--json-stream"]].concat();
        let stdout = run(&words, b"").stdout;
        let lines: Vec<_> = stdout.split_inclusive(|byte| *byte == b'\n').collect();
        assert!(lines.len() >= 3, "{words:?}");
        for line in lines {
            check(&events, &serde_json::from_slice(line).expect("JSON"));
        }
    }
    assert!(!events.is_valid(&serde_json::json!({ "protocol": 1, "type": "start" })));
}

#[test]
fn listed_events_fit_their_schema() {
    let entries = schema("list-events");
    for stream in crate::tools::streams() {
        let listing = json(&run(&["list-events", "--no-stream"], &stream));
        listing["data"].as_array().expect("a list").iter().for_each(|entry| check(&entries, entry));
    }
    let without_time = serde_json::json!({ "id": "e1", "type": "ChatTextPatch", "line": 1 });
    assert!(!entries.is_valid(&without_time));
}

#[test]
fn envelopes_fit_their_schema() {
    let envelopes = schema("envelope");
    for input in [&b""[..], b"no JSON\n", &crate::tools::turn()] {
        for command in ["check", "list-events"] {
            check(&envelopes, &json(&run(&[command, "--no-stream"], input)));
        }
    }
    for words in [&["exec", "hello"][..], &["exec", " "], &["exec", "hello", "--bogus"]] {
        let words = [words, &["--engine", "echo", "--no-stream"]].concat();
        check(&envelopes, &json(&run(&words, b"")));
    }
    check(&envelopes, &json(&run(&["rpc", "--engine", "echo", "--no-stream"], b"nonsense\n")));
    for words in
        [&["schema"][..], &["man"], &["completions", "fish"], &["schema", "--for", "frame"]]
    {
        check(&envelopes, &json(&run(&[words, &["--no-stream"]].concat(), b"")));
    }
    assert!(!envelopes.is_valid(&serde_json::json!({ "ok": true, "data": [] })));
}

/// A program that starts this one asks in whatever environment it has.
#[test]
fn the_manifest_is_printed_whatever_variables_are_set() {
    let expected = run(&["--manifest"], b"").stdout;
    for more in [&["--no-stream"][..], &["--output", "json"]] {
        assert_eq!(run(&[&["--manifest"], more].concat(), b"").stdout, expected, "{more:?}");
    }
    for (name, value) in [("DUOLOGUE_ENGINE", "echo"), ("DUOLOGUE_ON_BUSY", "bogus")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
        let output = command.arg("--manifest").env(name, value).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
        assert_eq!(output.stdout, expected, "{name}");
    }
}

#[test]
fn the_manifest_has_every_command_and_flag() {
    let output = run(&["--manifest"], b"");
    assert!(output.status.success());
    let manifest = json(&output);
    check(&schema("manifest"), &manifest);
    let commands = manifest["commands"].as_array().expect("a list");
    for command in Cli::command().get_subcommands() {
        let described = commands.iter().find(|listed| listed["name"] == command.get_name());
        let described = described.unwrap_or_else(|| panic!("{} is missing", command.get_name()));
        assert!(described["about"].as_str().is_some_and(|about| !about.is_empty()), "{described}");
        let flags = described["flags"].as_array().expect("a list");
        let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
        for long in shown.filter_map(|arg| arg.get_long()) {
            let flag = flags.iter().find(|flag| flag["name"] == long);
            let flag = flag.unwrap_or_else(|| panic!("--{long} is missing"));
            assert!(flag["help"].is_string(), "{flag}");
        }
        assert!(flags.iter().any(|flag| flag["name"] == "help"));
    }
    let streaming = |name: &str| {
        let command = commands.iter().find(|command| command["name"] == name);
        command.expect("the command")["streaming_default"].clone()
    };
    assert_eq!((streaming("rpc"), streaming("list-events")), (true.into(), true.into()));
    assert_eq!((streaming("check"), streaming("chat")), (false.into(), false.into()));
    // The program without a command.
    assert_eq!(manifest["default_command"], "rpc");
    for fact in ["streaming_default", "supports_streaming", "output_formats", "exit_codes"] {
        assert_eq!(manifest[fact], commands[0][fact], "{fact}");
    }
    let flags = manifest["flags"].as_array().expect("a list");
    for name in ["on-busy", "output", "no-stream", "manifest", "version"] {
        assert!(flags.iter().any(|flag| flag["name"] == name), "--{name} is missing");
    }
    let engine = commands[0]["flags"].as_array().expect("flags").iter();
    let engine = engine.clone().find(|flag| flag["name"] == "engine").expect("--engine");
    assert_eq!(engine["env"], "DUOLOGUE_ENGINE");
    assert_eq!(
        engine["possible_values"],
        serde_json::json!(["echo", "openai", "responses", "anthropic", "gemini", "ollama"])
    );
    assert_eq!(run(&["--manifest", "rpc"], b"").status.code(), Some(2));
}

/// One list of statuses for each command: the manifest, help and the documents have the same.
#[test]
fn exit_statuses_are_the_same_wherever_they_are_listed() {
    let manifest: serde_json::Value =
        serde_json::from_slice(&run(&["--manifest"], b"").stdout).expect("JSON");
    let commands = manifest["commands"].as_array().expect("a list");
    let codes = |command: &serde_json::Value| -> Vec<(u64, String)> {
        let codes = command["exit_codes"].as_array().expect("a list").iter();
        let meaning =
            |code: &serde_json::Value| code["meaning"].as_str().expect("words").to_owned();
        codes.map(|code| (code["code"].as_u64().expect("a number"), meaning(code))).collect()
    };
    for command in commands {
        let name = command["name"].as_str().expect("a name");
        let help = run(&[name, "--help"], b"").stdout;
        let (_, table) = text(&help).split_once("Exit status:\n").expect("a table");
        let expected: String =
            codes(command).iter().map(|(code, words)| format!("  {code:<4} {words}\n")).collect();
        // A meaning of several lines is one that hangs.
        assert_eq!(table.replace("\n       ", " "), expected, "{name}");
        for below in command["commands"].as_array().into_iter().flatten() {
            assert_eq!(below["exit_codes"], command["exit_codes"], "{name} {}", below["name"]);
        }
    }
    let of = |name: &str| commands.iter().find(|command| command["name"] == name).expect("it");
    let numbers =
        |name: &str| codes(of(name)).into_iter().map(|(code, _)| code).collect::<Vec<_>>();
    let document = include_str!("../../docs/protocol.md");
    let (_, table) = document.split_once("\n| exit status | of `rpc` |").expect("a table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split('|').map(str::trim).collect()).collect();
    for (column, name) in [(2, "rpc"), (3, "exec"), (3, "run-command")] {
        let listed = rows.iter().filter(|row| !row[column].is_empty());
        let listed =
            listed.flat_map(|row| row[1].split(", ").map(|code| code.parse().expect("a number")));
        let mut listed: Vec<u64> = listed.collect();
        listed.dedup();
        assert_eq!(listed, numbers(name), "{name}");
    }
    assert!(numbers("exec").contains(&75) && numbers("rpc").contains(&75));
}

#[test]
fn proto_files_are_printed_and_written() {
    let folder = Folder::new();
    let out = folder.name("made/proto");
    assert!(run(&["schema", "proto", "--out", &out], b"").status.success());
    let printed = run(&["schema"], b"").stdout;
    for (name, file) in PROTO_FILES {
        let written = fs::read_to_string(format!("{out}/{name}")).expect("a file");
        assert_eq!(written, file);
        assert!(text(&printed).contains(file), "{name}");
    }
    assert_eq!(run(&["schema", "--out", "/proc/nowhere"], b"").status.code(), Some(2));
    assert_eq!(run(&["schema", "json", "--out", &out], b"").status.code(), Some(2));
}

/// An option that would do nothing is refused.
#[test]
fn what_a_schema_is_for_is_of_json_schemas_alone() {
    for form in [&["schema"][..], &["schema", "proto"], &["schema", "descriptors"]] {
        for of in ["frame", "request"] {
            let output = run(&[form, &["--for", of]].concat(), b"");
            assert_eq!(output.status.code(), Some(2), "{form:?} {of}");
            assert!(output.stdout.is_empty());
            assert!(text(&output.stderr).contains("--for is for JSON Schema"));
        }
    }
    let frame = run(&["schema", "json"], b"").stdout;
    assert_eq!(frame, run(&["schema", "json", "--for", "frame"], b"").stdout);
}

#[test]
fn descriptors_are_printed_as_they_are() {
    assert_eq!(run(&["schema", "descriptors"], b"").stdout, DESCRIPTORS);
}

#[test]
fn there_are_completions_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = run(&["completions", shell], b"");
        let script = text(&output.stdout);
        assert!(output.status.success() && script.contains("duologue"), "{shell}");
    }
    assert_eq!(run(&["completions", "abacus"], b"").status.code(), Some(2));
}

/// The names of the pages of a command and of those below it, in their order.
fn pages_of(command: &clap::Command, name: &str) -> Vec<String> {
    let below = command.get_subcommands();
    let below = below.flat_map(|each| pages_of(each, &format!("{name}-{}", each.get_name())));
    std::iter::once(name.to_owned()).chain(below).collect()
}

#[test]
fn manuals_have_a_page_for_each_command() {
    let folder = Folder::new();
    let out = folder.name("made/man");
    let printed = run(&["man"], b"").stdout;
    assert!(run(&["man", "--out", &out], b"").status.success());
    let names = pages_of(&Cli::command(), "duologue");
    assert!(names.iter().any(|name| name == "duologue-sessions-list"), "{names:?}");
    let version = env!("CARGO_PKG_VERSION");
    for name in &names {
        let page = fs::read_to_string(format!("{out}/{name}.1")).expect("a page");
        let title = format!(".TH {name} 1 \"\" \"duologue {version}\" \"duologue\"\n");
        assert!(page.contains(&title), "{page}");
        assert!(text(&printed).contains(&title), "{name}");
    }
    for name in ["duologue-rpc", "duologue-exec", "duologue-run-command"] {
        let page = fs::read_to_string(format!("{out}/{name}.1")).expect("a page");
        for variable in ["DUOLOGUE_ENGINE", "DUOLOGUE_BASE_URL", "DUOLOGUE_FINAL_SNAPSHOT"] {
            assert!(page.contains(&format!("\\fB{variable}\\fR environment variable")), "{name}");
        }
    }
    assert_eq!(text(&printed).matches(".TH ").count(), names.len());
}

/// What is printed as text is the same in one JSON object.
#[test]
fn texts_stand_in_a_document_as_they_are_printed() {
    let printed = |words: &[&str]| run(words, b"").stdout;
    let data =
        |words: &[&str]| json(&run(&[words, &["--no-stream"]].concat(), b""))["data"].clone();
    assert_eq!(data(&["completions", "bash"]), text(&printed(&["completions", "bash"])));
    let schema: Value = serde_json::from_slice(&printed(&["schema", "json"])).expect("JSON");
    assert_eq!(data(&["schema", "json"]), schema);
    let descriptors = data(&["schema", "descriptors"]);
    let descriptors =
        BASE64.decode(descriptors.as_str().expect("base64").as_bytes()).expect("base64");
    assert_eq!(descriptors, DESCRIPTORS);
    let pages = data(&["man"]);
    let pages = pages.as_array().expect("a list").iter();
    let pages = pages.map(|page| page["text"].as_str().expect("a page")).collect::<String>();
    assert_eq!(pages, text(&printed(&["man"])));
    let files = data(&["schema"]);
    for ((name, file), described) in PROTO_FILES.iter().zip(files.as_array().expect("a list")) {
        assert_eq!(
            (described["name"].as_str(), described["text"].as_str()),
            (Some(*name), Some(*file))
        );
    }
}

/// The files that are written are listed.
#[test]
fn files_that_are_written_are_listed_in_a_document() {
    let folder = Folder::new();
    let out = folder.name("made");
    for command in ["schema", "man"] {
        let envelope = json(&run(&[command, "--out", &out, "--no-stream"], b""));
        let files = envelope["data"].as_array().expect("a list");
        assert!(files.len() > 3 && envelope["meta"]["total"] == files.len(), "{envelope}");
        for file in files {
            let length = fs::metadata(file.as_str().expect("a path")).expect("a file").len();
            assert!(length > 0, "{file}");
        }
    }
}

/// Tables in the text after the options stay tables, in every page.
#[test]
fn manual_pages_keep_their_tables() {
    let is_kept = |page: &str| {
        let (_, after) =
            page.split_once("\n.SH \"EXIT STATUS\"\n.nf\n").expect("lines as they are");
        let table = after.split_once("\n.fi\n").map(|(table, _)| table).expect("its end");
        table.starts_with("  0    ") && table.lines().all(|line| line.starts_with("  "))
    };
    let folder = crate::server::Folder::new();
    let ended = crate::once::run(&folder, &["man", "--out", "pages", "--output", "json"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    let written: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let paths = written["data"].as_array().expect("the paths");
    let files = std::fs::read_dir(folder.path("pages")).expect("a folder").count();
    assert_eq!(paths.len(), files, "each page that was written is named");
    let page = std::fs::read_to_string(folder.path("pages/duologue-sessions.1")).expect("a page");
    assert!(is_kept(&page), "{page}");
    let printed = crate::once::run(&folder, &["man", "--output", "json"]);
    let printed: serde_json::Value = serde_json::from_str(&printed.stdout).expect("JSON");
    let mut pages = printed["data"].as_array().expect("the pages").iter();
    let page = pages.find(|page| page["name"] == "duologue-sessions.1").expect("a page");
    assert!(is_kept(page["text"].as_str().expect("its text")), "{page}");
}

#[test]
fn the_module_for_jq_is_that_of_the_repository() {
    let output = Command::new(env!("CARGO_BIN_EXE_duologue")).args(["schema", "jq"]).output();
    let output = output.expect("the program runs");
    let module = include_str!("../../clients/jq/duologue.jq");
    assert_eq!(String::from_utf8_lossy(&output.stdout), module);
    assert!(output.status.success());
}
