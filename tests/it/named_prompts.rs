//! Prompts by name: found in folders, listed, completed, run, and used in a chat; and the parts of a
//! system prompt.

use crate::chat::Person;
use crate::once::{Ended, Once};
use crate::profiles::Scene;
use crate::provider::{Provider, says};
use serde_json::Value;
use std::fs;

const GREET: &str = "short: Greet somebody\nflags:\n  - {name: who, type: string, default: world, \
                     shortFlag: w}\n  - {name: page, type: stringFromFile}\nsystem-prompt: Be \
                     polite.\nprompt: 'Greet {{ .who }}.{{ if .page }} {{ .page }}{{ end }}'\n";

/// A user with a prompt `greet`, in a project with a prompt `review`.
fn scene(user: &str, project: &str) -> Scene {
    let scene = Scene::new(user, "");
    for (path, text) in [
        ("config/duologue/commands/greet.yaml", GREET),
        ("config/duologue/commands/notes.txt", "no prompt"),
        ("project/.duologue/commands/review.yml", project),
    ] {
        let path = scene.folder.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        if !text.is_empty() {
            fs::write(path, text).expect("a file");
        }
    }
    scene
}

const REVIEW: &str = "short: \"Review \\e[2J a change\"\nprompt: Review it.\n";

fn review(scene: &Scene) -> String {
    scene.folder.name("project/.duologue/commands/review.yml")
}

#[track_caller]
fn prompt(ended: &Ended) -> Value {
    assert_eq!(ended.status, 0, "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    document["data"].clone()
}

#[test]
fn prompts_are_listed_and_run_by_their_names() {
    let scene = scene("", REVIEW);
    let listed = scene.run(&["run"]);
    assert_eq!(listed.status, 0, "{listed:?}");
    let lines: Vec<_> = listed.stdout.lines().collect();
    assert_eq!(lines[..2], ["NAME    LAYER    WHAT IT IS", "greet   user     Greet somebody"]);
    let not_trusted = format!("run `duologue profiles trust {}`", review(&scene));
    assert!(lines[2].starts_with("review  project  can't be run: "), "{listed:?}");
    assert!(lines[2].ends_with(&not_trusted) && lines.len() == 3, "{listed:?}");

    let shown = scene.run(&["run", "greet", "-w", "Ann", "--print-prompt", "--output", "json"]);
    let shown = prompt(&shown);
    assert_eq!((&shown["prompt"], &shown["system"]), (&"Greet Ann.".into(), &"Be polite.".into()));
    let ended = scene.run(&["run", "greet", "--engine", "echo"]);
    assert!(ended.status == 0 && ended.stdout.contains("You said: Greet world."), "{ended:?}");
    let help = scene.run(&["run", "greet", "--help"]);
    assert!(help.stdout.starts_with("Greet somebody"), "{help:?}");
    assert!(help.stdout.contains("Usage: duologue run greet [OPTIONS]"), "{help:?}");
    assert!(help.stdout.contains("<NAME>") && !help.stdout.contains("FILE.yaml>"), "{help:?}");
    let wrong = scene.run(&["run", "greet", "--whom", "x"]);
    assert!(wrong.status == 2 && wrong.stderr.contains("--who"), "{wrong:?}");

    let unknown = scene.run(&["run", "grete"]);
    let says =
        "there is no prompt `grete`; did you mean `greet`? `duologue run` lists those there are";
    assert!(unknown.status == 2 && unknown.stderr.contains(says), "{unknown:?}");
    let path = scene.run(&["run", "./greet.yaml"]);
    assert!(path.status == 2 && path.stderr.contains("duologue run-command ./greet.yaml"));
    let json = scene.run(&["run", "grete", "--output", "json"]);
    let document: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((json.status, &document["ok"]), (2, &false.into()), "{json:?}");

    let empty = Scene::new("", "");
    let nothing = empty.run(&["run"]).stdout;
    assert!(nothing.contains("config/duologue/commands"), "{nothing}");
    // Both folders, also where the project has none yet.
    let unknown = empty.run(&["run", "greet"]).stderr;
    assert!(unknown.contains("to make one, write greet.yaml into .duologue/commands of "));
    assert!(unknown.contains(" or /") && unknown.contains("/duologue/commands\n"), "{unknown}");
    assert!(!unknown.contains("did you mean"), "{unknown}");
}

/// A file that is there is not said to be missing.
#[test]
fn a_file_that_can_not_be_run_by_its_name_is_listed_with_the_reason() {
    let scene = scene("", "");
    fs::write(scene.folder.path("config/duologue/commands/two words.yaml"), GREET).expect("a file");
    fs::write(scene.folder.path("config/duologue/commands/.hidden.yaml"), GREET).expect("a file");
    let listed = prompt(&scene.run(&["run", "--output", "json"]));
    let named = |name: &str| {
        let listed = listed.as_array().expect("a list");
        listed.iter().find(|it| it["name"] == name).cloned()
    };
    let unnameable = named("two words").expect("it is listed");
    assert_eq!(unnameable["canRun"], false, "{listed}");
    assert!(unnameable["about"].to_string().contains("its name has a space"), "{listed}");
    assert!(named("greet").is_some_and(|it| it["canRun"] == true), "{listed}");
    assert_eq!(named(".hidden"), None, "{listed}");
    let run = scene.run(&["run", "two words"]);
    assert!(run.status == 2 && run.stderr.contains("two words.yaml: its name has"), "{run:?}");
    assert_eq!(offered(&scene, &["run", ""]).matches("two words").count(), 0);
}

/// Nobody may read the folder, or it is none.
#[test]
fn a_folder_of_prompts_that_can_not_be_read_is_reported() {
    let scene = Scene::new("", "");
    let folder = scene.folder.path("config/duologue/commands");
    fs::create_dir_all(folder.parent().expect("a folder")).expect("a folder");
    fs::write(folder, "no folder").expect("a file");
    let listed = scene.run(&["run"]);
    assert_eq!(listed.status, 0, "{listed:?}");
    assert!(listed.stderr.contains("duologue/commands can't be read"), "{listed:?}");
}

#[test]
fn a_prompt_of_a_project_is_run_once_its_file_is_trusted() {
    let scene = scene("", REVIEW);
    let words = ["run", "review", "--print-prompt"];
    let refused = scene.run(&words);
    assert!(refused.status == 2 && refused.stderr.contains("is not trusted"), "{refused:?}");
    // The user's own is used in the place of one that is not trusted.
    let own = scene.folder.path("config/duologue/commands/review.yaml");
    fs::write(&own, "prompt: My own.\n").expect("a file");
    let ended = scene.run(&words);
    assert_eq!((ended.status, ended.stdout.trim_end()), (0, "My own."), "{ended:?}");
    assert!(ended.stderr.contains("is not trusted"), "{ended:?}");
    assert_eq!(scene.run(&["profiles", "trust", &review(&scene)]).status, 0);
    let ended = scene.run(&words);
    assert_eq!((ended.stdout.trim_end(), ended.stderr.as_str()), ("Review it.", ""), "{ended:?}");
    let data = prompt(&scene.run(&["run", "--output", "json"]));
    assert_eq!((&data[1]["name"], &data[1]["layer"]), (&"review".into(), &"project".into()));
    assert_eq!((&data[1]["trusted"], &data[1]["canRun"]), (&true.into(), &true.into()));
    let listed = scene.run(&["run"]).stdout;
    assert!(!listed.contains('\u{1b}') && listed.contains("Review \\x1b[2J"), "{listed:?}");
    fs::write(review(&scene), "prompt: Something else.\n").expect("a file");
    assert_eq!(scene.run(&words).stdout.trim_end(), "My own.");
}

/// What the shell is offered after `words`, as its completion script asks for it.
#[track_caller]
fn offered(scene: &Scene, words: &[&str]) -> String {
    let mut command = scene.command(&[&["--", "duologue"], words].concat());
    let index = words.len().to_string();
    command.env("DUOLOGUE_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", index);
    command.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_IFS", "\n");
    let ended = Once::start(command).finish();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{words:?}");
    ended.stdout
}

#[test]
fn names_and_flags_of_prompts_are_completed() {
    let scene = scene("", REVIEW);
    let names = offered(&scene, &["run", ""]);
    let names: Vec<_> = names.lines().filter(|name| !name.starts_with('-')).collect();
    assert_eq!(names, ["greet", "review"]);
    let flags = offered(&scene, &["run", "greet", "--wh"]);
    assert!(flags.lines().any(|flag| flag == "--who"), "{flags}");
    let flags = offered(&scene, &["run", "greet", "--print"]);
    assert!(flags.lines().any(|flag| flag == "--print-prompt"), "{flags}");
}

#[test]
fn a_prompt_is_a_command_of_the_chat() {
    let scene = scene("", REVIEW);
    fs::write(scene.folder.path("project/deep/page.md"), "See @page.md there.").expect("a file");
    let mut once = Once::start(scene.command(&["chat", "--engine", "echo"]));
    once.write("/greet --who Ann --page page.md\n/greet --whom x\n/review\n/dance\n/greet --who #7 and\n/greet -w #7\nlast\n");
    let ended = once.finish();
    let shown = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for says in [
        "You: Be polite. Greet Ann. See @page.md there. Turn 1. You said: Be polite. Greet Ann.",
        "Error: unexpected argument '--whom' found; the prompt takes --who --page",
        "it is not used, because it comes from the project and is not trusted",
        "Error: there is no command /dance; /help lists the commands",
        "Error: unexpected argument 'and' found",
        "Turn 2. You said: Be polite. Greet #7.",
        "You: last Turn 3. You said: last",
    ] {
        assert!(shown.contains(says), "{says}: {ended:?}");
    }
    assert!(!shown.contains("attached"), "what a file says attaches nothing: {shown}");

    let mut command = scene.command(&["chat", "--engine", "echo"]);
    command.env("TERM", "xterm-256color");
    let mut person = Person::start(command);
    person.sees("echo");
    person.types("/greet --whom x\r");
    person.sees("unexpected argument");
    person.types(&"\u{7f}".repeat(" --whom x".len()));
    person.types(" -w Bob\r");
    person.answered("Greet Bob.");
    person.types("\u{4}");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn a_chat_shows_the_warnings_of_a_prompt() {
    let scene = scene("", REVIEW);
    let own = scene.folder.path("config/duologue/commands/review.yaml");
    fs::write(own, "prompt: My own, {{ .nobody }}.\n").expect("a file");
    let mut once = Once::start(scene.command(&["chat", "--engine", "echo"]));
    once.write("/review\n");
    let ended = once.finish();
    let shown = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for says in
        ["is not trusted", "the prompt contains <no value>", "You said: My own, <no value>."]
    {
        assert!(shown.contains(says), "{says}: {ended:?}");
    }
}

/// What a file says attaches nothing; what the person types does, as in any other prompt.
#[test]
fn a_file_that_the_line_of_a_prompt_names_is_attached() {
    let scene = scene("", "");
    fs::write(scene.folder.path("project/deep/page.md"), "See @other.md there.").expect("a file");
    fs::write(scene.folder.path("project/deep/other.md"), "Other.").expect("a file");
    let mut once = Once::start(scene.command(&["chat", "--engine", "echo"]));
    once.write("/greet --who @page.md --page page.md\n");
    let ended = once.finish();
    assert!(ended.stdout.contains("attached: page.md"), "{ended:?}");
    assert!(!ended.stdout.contains("attached: other.md"), "{ended:?}");
}

#[test]
fn a_file_of_keys_and_values_is_read_and_not_attached() {
    let scene = scene("", "");
    let ask = "flags:\n  - {name: vars, type: keyValue}\nprompt: 'It is {{ .vars.animal }}.'\n";
    fs::write(scene.folder.path("config/duologue/commands/ask.yaml"), ask).expect("a file");
    let vars = r#"{"animal": "an okapi"}"#;
    fs::write(scene.folder.path("project/deep/vars.json"), vars).expect("a file");
    let mut once = Once::start(scene.command(&["chat", "--engine", "echo"]));
    once.write("/ask --vars @vars.json\n/ask --vars \"@vars.json\"\n");
    let ended = once.finish();
    assert!(ended.stdout.contains("Turn 2. You said: It is an okapi."), "{ended:?}");
    assert!(!ended.stdout.to_lowercase().contains("attached:"), "{ended:?}");
}

#[test]
fn a_system_prompt_has_its_parts_from_files_options_and_the_profile() {
    let user = "profiles:\n  work: {engine: openai, model: m, system: Of the profile., \
                agents-file: true}\n  bare: {engine: openai, model: m}\n";
    let scene = scene(user, "");
    fs::write(scene.folder.path("project/deep/system.md"), "Of the file.\n").expect("a file");
    let agents = scene.folder.name("project/AGENTS.md");
    // With the byte order mark that some editors write.
    fs::write(&agents, "\u{feff}Run the tests.\n").expect("a file");
    let provider = Provider::start((0..6).map(|_| says("ok")).collect());
    let url = provider.base_url();
    let sent = |number: usize, words: &[&str]| {
        let all = ["--base-url", &url, "--retries", "0"];
        let ended = scene.run(&[words, &all].concat());
        assert_eq!(ended.status, 0, "{ended:?}");
        let messages = provider.wait_request(number).body["messages"].clone();
        let system = match messages[0]["role"] == "system" {
            true => messages[0]["content"].clone(),
            false => Value::Null,
        };
        (system, ended.stderr)
    };
    let (system, warned) = sent(1, &["exec", "hi", "--profile", "work"]);
    assert_eq!(system, "Of the profile.");
    let left_out = format!("{agents} is left out of the system prompt, because it is not trusted");
    assert!(warned.contains(&left_out), "{warned}");
    assert_eq!(scene.run(&["profiles", "trust", &agents]).status, 0);
    let appended = ["--append-system", "One.", "--append-system", "Two."];
    let words = [&["exec", "hi", "--profile", "work"], &appended[..]].concat();
    let (system, warned) = sent(2, &words);
    assert_eq!(system, "Of the profile.\n\nRun the tests.\n\nOne.\n\nTwo.");
    assert_eq!(warned, "");
    let file = ["--system-file", "system.md"];
    let words = [&["exec", "hi", "--profile", "bare"], &file[..], &appended[..2]].concat();
    assert_eq!(sent(3, &words).0, "Of the file.\n\nOne.");
    // Typed, it wins over that of a command file; what is added is added to either.
    let words = [&["run", "greet", "--profile", "bare"], &file[..]].concat();
    assert_eq!(sent(4, &words).0, "Of the file.");
    let words = [&["run", "greet", "--profile", "bare"], &appended[..2]].concat();
    assert_eq!(sent(5, &words).0, "Be polite.\n\nOne.");
    fs::write(&agents, "Do something else.\n").expect("a file");
    let (system, warned) = sent(6, &["exec", "hi", "--profile", "work"]);
    assert!(system == "Of the profile." && warned.contains("AGENTS.md"), "{warned}");

    let shown =
        scene.run(&["exec", "hi", "--print-prompt", "--system", "a", "--append-system", "b"]);
    assert!(shown.stdout.starts_with("[system]\na\n\nb\n"), "{shown:?}");
    for words in [&["--system", "x"][..], &[]] {
        let both = [&["exec", "hi"], &file[..], words].concat();
        let ended = scene.run(&[&both[..], &["--print-prompt"]].concat());
        assert_eq!(ended.status, if words.is_empty() { 0 } else { 2 }, "{ended:?}");
    }
    let missing = scene.run(&["rpc", "--engine", "echo", "--system-file", "none.md"]);
    assert!(
        missing.status == 2 && missing.stderr.contains("--system-file: none.md"),
        "{missing:?}"
    );
}

/// A session that goes on has the prompt that it began with, additions included.
#[test]
fn a_resumed_session_has_its_additions_once() {
    let scene = scene("profiles:\n  bare: {engine: openai, model: m}\n", "");
    let provider = Provider::start(vec![says("one"), says("two")]);
    let url = provider.base_url();
    let words = [
        "exec",
        "hi",
        "--profile",
        "bare",
        "--store",
        "s.db",
        "--session-id",
        "s",
        "--append-system",
        "Be brief.",
        "--base-url",
        &url,
    ];
    assert_eq!(scene.run(&words).status, 0);
    let ended = scene.run(&[&words[..], &["--resume"]].concat());
    assert!(ended.status == 0 && ended.stderr.contains("--append-system is not used"), "{ended:?}");
    let systems: Vec<_> = (1..=2)
        .map(|at| provider.wait_request(at).body["messages"][0]["content"].clone())
        .collect();
    assert_eq!(systems, ["Be brief.", "Be brief."]);
}
