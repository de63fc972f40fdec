//! `duologue doctor`: each check, good and bad, and that no key is shown.

use crate::mcp_servers::{assert_gone, config, mark};
use crate::once::{Ended, Once};
use crate::profile_commands::answers;
use crate::profiles::{KEY, Scene, with_command};
use crate::provider::{Provider, Step};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// `duologue doctor <words>` with these variables, to its end.
#[track_caller]
fn doctor(scene: &Scene, words: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = scene.command(&[&["doctor"], words].concat());
    command.envs(variables.iter().copied());
    let mut once = Once::start(command);
    once.close_stdin();
    let ended = once.finish();
    let all = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!all.contains(KEY) && !all.contains("panicked"), "{all}");
    ended
}

/// Checks that the line of `what` has this mark and what was found, and that the status is that of all
/// marks.
#[track_caller]
fn check(ended: &Ended, line: &str) {
    let Ended { status, stdout, .. } = ended;
    assert!(stdout.lines().any(|it| it == line || it.starts_with(line)), "{line}: {ended:?}");
    let is_wrong = stdout.lines().any(|line| line.starts_with("wrong  "));
    assert_eq!(*status, i32::from(is_wrong), "{ended:?}");
}

#[test]
fn doctor_says_what_an_editor_needs() {
    let scene = Scene::new("profiles: {}\n", "");
    let words = ["--acp", "--offline", "--engine", "echo"];
    let without = doctor(&scene, &words, &[]);
    check(&without, "ok     editors: version ");
    check(&without, "note   command: `/");
    check(&without, "ok     variables: the provider depends on none of this shell");
    let with = doctor(&scene, &words, &[("OPENAI_API_KEY", KEY), ("DUOLOGUE_MODEL", "m")]);
    check(&with, "note   variables: DUOLOGUE_MODEL, OPENAI_API_KEY of this shell");
    let other = doctor(&scene, &words[1..], &[]);
    assert!(!other.stdout.contains("editors:"), "{other:?}");
}

#[test]
fn doctor_says_what_is_configured_and_whether_it_can_work() {
    let list = r#"{"data":[{"id":"scripted"}]}"#;
    let provider = Provider::start(vec![answers(list), answers(r#"{"data":[]}"#)]);
    let scene = Scene::new(&with_command(&provider), "");
    let well = scene.run(&["doctor", "--profile", "work"]);
    assert_eq!(well.status, 0, "{well:?}");
    assert_eq!(provider.wait_request(1).header("x-team"), Some("blue"));
    let user = scene.folder.name("config/duologue/profiles.yaml");
    for line in [
        format!("ok     file: {user} (user)"),
        format!("ok     engine: openai (profile work, {user}:3)"),
        format!("ok     model: scripted (profile work, {user}:4)"),
        format!(
            "ok     key: the output of sh, which is run when a call needs the key (profile work, {user}:7)"
        ),
        "ok     answer: the provider lists the model scripted; no prompt was sent".to_owned(),
    ] {
        assert!(well.stdout.lines().any(|it| it == line), "{line}: {}", well.stdout);
    }
    let other = scene.run(&["doctor", "--profile", "work", "--model", "x", "--output", "json"]);
    assert!(other.status == 0 && other.stdout.contains("is none of the 0 models"), "{other:?}");
    let offline = scene.run(&["doctor", "--profile", "work", "--offline"]);
    assert!(offline.status == 0 && !offline.stdout.contains("answer:"), "{offline:?}");
    assert_eq!(provider.requests(), 2);
    let check = |words: &[&str], expected: &str| {
        let ended = scene.run(&[&["doctor"], words].concat());
        assert_eq!(ended.status, 1, "{ended:?}");
        let is_found = |line: &str| line.starts_with("wrong") && line.contains(expected);
        assert!(ended.stdout.lines().any(is_found), "{expected}: {ended:?}");
    };
    check(&[], "no provider is configured");
    check(&["--engine", "anthropic"], "requires a key");
    check(&["--base-url", "http://127.0.0.1:1/v1", "--model", "m"], "can't be reached");
    check(&["--profile", "nothing"], "there is no profile `nothing`");
    check(&["--base-url", "http://127.0.0.1:1/v1"], "no model is named");
}

/// Ollama lists a model with the tag that a name may leave out, and Gemini without the collection that a name may have.
#[test]
fn a_model_is_known_by_each_of_its_names() {
    let scene = Scene::new("", "");
    for (engine, list, path, models) in [
        ("ollama", r#"{"models":[{"name":"m:latest"}]}"#, "/v1/api/tags", ["m", "m:latest"]),
        (
            "gemini",
            r#"{"models":[{"name":"models/m"}]}"#,
            "/v1/models?pageSize=1000",
            ["models/m", "m"],
        ),
    ] {
        for model in models {
            let provider = Provider::start(vec![answers(list)]);
            let words = ["--engine", engine, "--base-url", &provider.base_url(), "--model", model];
            let ended = doctor(&scene, &words, &[]);
            check(&ended, &format!("ok     answer: the provider lists the model {model};"));
            assert_eq!(provider.wait_request(1).path, path);
        }
    }
}

/// As a single run says it: a name that is not known and a server that does not run are two faults.
#[test]
fn why_a_provider_can_not_be_reached_is_said() {
    let scene = Scene::new("", "");
    for command in ["doctor", "models"] {
        let said = |url: &str| {
            let ended = scene.run(&[command, "--base-url", url, "--model", "m"]);
            format!("{}{}", ended.stdout, ended.stderr)
        };
        let refused = said("http://127.0.0.1:1/v1");
        assert!(refused.contains("can't be reached: check that it runs"), "{refused}");
        assert!(refused.contains(" (network: ") && refused.contains("refused"), "{refused}");
        let unknown = said("http://duologue.invalid/v1");
        assert!(unknown.contains(" (network: ") && unknown.contains("dns error"), "{unknown}");
    }
}

/// Parts of a configuration that chooses no provider are named.
#[test]
fn what_is_missing_in_a_configuration_is_said() {
    let scene = Scene::new("profiles: {work: {engine: echo}}", "");
    let part =
        "wrong  settings: no provider is configured completely, so the model can't be asked: ";
    let empty = doctor(&scene, &[], &[("OPENAI_API_KEY", "")]);
    check(&empty, &format!("{part}OPENAI_API_KEY is set but empty"));
    let unchosen = doctor(&scene, &[], &[]);
    check(&unchosen, part);
    assert!(unchosen.stdout.contains("no profile is chosen"), "{unchosen:?}");
    let nothing = doctor(&Scene::new("", ""), &[], &[]);
    let echo = "settings: no provider is configured, so the built-in echo engine answers";
    check(&nothing, &format!("note   {echo}"));
    assert_eq!(nothing.status, 0, "a conversation does not fail: {nothing:?}");
    let required = doctor(&Scene::new("", ""), &["--require-provider"], &[]);
    check(&required, &format!("wrong  {echo}"));
    assert_eq!(required.status, 1, "{required:?}");
}

/// The key is named and never shown, whether it is there, and which option or profile chose it.
#[test]
fn the_origin_of_the_key_is_shown_and_whether_it_is_set() {
    let own = [("OPENAI_API_KEY", KEY)];
    let both = [("OPENAI_API_KEY", KEY), ("DUOLOGUE_API_KEY", KEY)];
    let offline = ["--offline", "--engine", "openai", "--model", "m", "--base-url"];
    let url = "http://127.0.0.1:1/v1";
    let at = |url| [&offline[..], &[url]].concat();
    let scene = Scene::new("", "");
    let set = "ok     key: the variable OPENAI_API_KEY, which is set";
    check(&doctor(&scene, &at(url), &own), set);
    check(
        &doctor(&scene, &at(url), &both),
        "ok     key: the variable DUOLOGUE_API_KEY, which is set",
    );
    let unset = "ok     key: none is sent, as none of these variables has a value: DUOLOGUE_API_KEY, \
                 OPENAI_API_KEY";
    check(&doctor(&scene, &at(url), &[]), unset);
    check(&doctor(&scene, &at(url), &[("OPENAI_API_KEY", " ")]), unset);
    let login = format!("http://ada:{KEY}@127.0.0.1:1/v1");
    check(&doctor(&scene, &at(&login), &[]), "ok     key: the login in the base URL");
    check(&doctor(&scene, &["--engine", "echo"], &own), "ok     key: none is needed");
    for engine in ["openai", "anthropic", "gemini"] {
        let missing = doctor(&scene, &["--offline", "--engine", engine], &[]);
        check(&missing, "wrong  key: ");
        assert!(missing.stdout.contains("_API_KEY"), "{missing:?}");
    }
}

/// Where nothing names an engine, what decides for it is said, and which keys are left.
#[test]
fn what_chooses_the_engine_is_shown_and_keys_that_are_not_used() {
    let scene = Scene::new("", "");
    let keys = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"].map(|name| (name, KEY));
    let words = ["--offline", "--model", "m"];
    let all = doctor(&scene, &words, &keys);
    check(&all, "ok     engine: openai (chosen by OPENAI_API_KEY)");
    check(&all, "note   key: ANTHROPIC_API_KEY is set and not used: --engine anthropic uses it");
    check(&all, "note   key: GEMINI_API_KEY is set and not used: --engine gemini uses it");
    let two = doctor(&scene, &words, &keys[1..]);
    check(&two, "ok     engine: anthropic (chosen by ANTHROPIC_API_KEY)");
    check(&two, "note   key: GEMINI_API_KEY is set and not used");
    let one = doctor(&scene, &words, &keys[2..]);
    check(&one, "ok     engine: gemini (chosen by GEMINI_API_KEY)");
    let own = doctor(&scene, &words, &[("DUOLOGUE_API_KEY", KEY), keys[1]]);
    check(&own, "ok     engine: openai (chosen by DUOLOGUE_API_KEY)");
    let url = [&words[..], &["--base-url", "http://127.0.0.1:1/v1"]].concat();
    check(&doctor(&scene, &url, &keys), "ok     engine: openai (chosen by the base URL)");
    // Who names an engine means its key.
    let named = doctor(&scene, &[&words[..], &["--engine", "openai"]].concat(), &keys);
    check(&named, "ok     engine: openai (--engine)");
    for ended in [&one, &named] {
        assert!(!ended.stdout.contains("is set and not used"), "{ended:?}");
    }
}

#[test]
fn the_key_of_a_profile_is_shown_by_its_place() {
    let url = "http://127.0.0.1:1/v1";
    let base =
        format!("profiles:\n  work:\n    engine: openai\n    model: m\n    base-url: {url}\n");
    let of = |more: &str| Scene::new(&format!("{base}{more}"), "");
    let words = ["--offline", "--profile", "work"];
    let own = [("OPENAI_API_KEY", KEY)];
    let withheld = doctor(&of(""), &words, &own);
    check(&withheld, "ok     key: none is sent: OPENAI_API_KEY is set, but its key is not for");
    let variable = of("    key-variable: WORK_KEY\n");
    let user = variable.folder.name("config/duologue/profiles.yaml");
    let set = doctor(&variable, &words, &[("WORK_KEY", KEY), ("DUOLOGUE_API_KEY", KEY)]);
    let expected = "the variable WORK_KEY, which is set (profile work";
    check(&set, &format!("ok     key: {expected}, {user}:6)"));
    let unset = doctor(&variable, &words, &own);
    check(
        &unset,
        "wrong  key: the variable WORK_KEY, which is to hold the profile's key, is not set",
    );
    check(&unset, "ok     engine: openai (profile work");
    check(&unset, "ok     model: m (profile work");
    assert!(!unset.stdout.contains("wrong  settings"), "{unset:?}");
    let file = of("    key-file: key\n");
    let path = file.folder.name("config/duologue/key");
    check(&doctor(&file, &words, &own), "wrong  key: ");
    fs::write(&path, KEY).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
    let user = file.folder.name("config/duologue/profiles.yaml");
    let line = format!(
        "ok     key: the file {path}, which only its owner can read (profile work, {user}:6)"
    );
    check(&doctor(&file, &words, &own), &line);
    let typed = doctor(&file, &[&words[..], &["--key-command", "sh -c x"]].concat(), &own);
    let line =
        "ok     key: the output of sh, which is run when a call needs the key (--key-command)";
    check(&typed, line);
}

#[test]
fn a_profile_is_shown_with_its_files_and_what_it_sets() {
    let user = "profiles:\n  work: {engine: echo}\n  base: {engine: echo, system: Brief.}\n";
    let project = "profiles:\n  work: {model: m, deny: [x]}\n  base: {mcp: {s: {command: sh}}}\n  \
                   foreign: {base-url: http://127.0.0.1:1}\n";
    let scene = Scene::new(user, project);
    let own = scene.folder.name("config/duologue/profiles.yaml");
    let other = scene.project_file();
    let work = doctor(&scene, &["--profile", "work"], &[]);
    check(&work, &format!("ok     file: {own} (user)"));
    check(&work, &format!("note   file: {other} (project, not trusted)"));
    let line = format!(
        "ok     profile: work, of {own} (user) and {other} (project, not trusted); sets engine, model, \
         deny"
    );
    check(&work, &line);
    let base = doctor(&scene, &["--profile", "base"], &[]);
    check(&base, &format!("ok     profile: base, of {own} (user); sets engine, system"));
    check(&base, &format!("note   left out: {other}:3: `mcp.s` is left out"));
    check(&base, "ok     tool servers: none is named");
    let foreign = doctor(&scene, &["--profile", "foreign"], &[]);
    check(&foreign, &format!("wrong  profile: {other}:4: the profile `foreign` can't be used"));
    let trusted = scene.run(&["profiles", "trust", &other]);
    assert_eq!(trusted.status, 0, "{trusted:?}");
    let trusted = doctor(&scene, &["--profile", "work"], &[]);
    check(&trusted, &format!("ok     file: {other} (project, trusted)"));
    check(&doctor(&scene, &["--engine", "echo"], &[]), "ok     profile: none is chosen");
    let missing = doctor(&scene, &["--profile", "nothing"], &[]);
    check(&missing, "wrong  profile: there is no profile `nothing`; there are base, foreign, work");
    // The other parts are checked all the same.
    check(&missing, "ok     store: ");
    let broken = Scene::new("profiles: [", "");
    check(&doctor(&broken, &["--engine", "echo"], &[]), "wrong  profiles: ");
}

/// Without a list of models a provider can answer; without an address, a key or a server it can't.
#[test]
fn a_server_without_a_list_of_models_is_no_fault() {
    let status = |status: u16| vec![Step::Status(status, Vec::new(), "{}".to_owned())];
    let lists = [status(404), status(405), status(501), answers("<html>"), answers("{}")];
    let faults = [401, 403, 500];
    let script = lists.iter().cloned().chain(faults.map(status)).collect();
    let provider = Provider::start(script);
    let scene = Scene::new("", "");
    let url = provider.base_url();
    let words = ["--engine", "openai", "--model", "m", "--base-url", &url];
    for _ in &lists {
        let ended = doctor(&scene, &words, &[]);
        check(
            &ended,
            "note   answer: a server answers, but lists no models, so that it could not be",
        );
        assert_eq!(ended.status, 0, "{ended:?}");
    }
    for status in faults {
        let ended = doctor(&scene, &words, &[]);
        check(&ended, "wrong  answer: ");
        assert!(ended.status == 1 && ended.stdout.contains(&status.to_string()), "{ended:?}");
    }
    assert_eq!(provider.requests(), lists.len() + faults.len());
}

/// The commonest mistake with servers of other providers: their base URLs end in `/v1`.
#[test]
fn a_base_url_without_a_path_is_said_to_lack_it() {
    let missing = vec![Step::Status(404, Vec::new(), "404 page not found".to_owned())];
    let unknown = r#"{"error":{"message":"the model m does not exist"}}"#;
    let unknown = vec![Step::Status(404, Vec::new(), unknown.to_owned())];
    let says = |words: &[&str], script: &[Vec<Step>], path: &str, has_hint: bool| {
        let provider = Provider::start(script.to_vec());
        let host = format!("http://{}", provider.address());
        let url = format!("{host}{path}");
        let words = [words, &["--base-url", &url]].concat();
        let ended = Scene::new("", "").run(&words);
        let hint = format!("the base URL of most servers ends in /v1: {host}/v1");
        let all = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(all.contains(&hint), has_hint, "{words:?}: {ended:?}");
    };
    let (once, html) = ([missing], [answers("<html>")]);
    let of = |engine| ["exec", "hi", "--model", "m", "--engine", engine];
    for command in [&of("openai")[..], &of("responses"), &["models"], &["doctor", "-m", "m"]] {
        says(command, &once, "", true);
        says(command, &once, "/", true);
        says(command, &once, "/v1", false);
        says(command, &once, "/openai", false);
    }
    says(&["models"], &html, "", true);
    says(&of("anthropic"), &once, "", false);
    says(&of("openai"), &[unknown], "", false);
}

/// Servers are started, asked for their tools and ended.
#[test]
fn tool_servers_are_checked_and_ended() {
    let scene = Scene::new("", "");
    let run = |faults: &[&str], words: &[&str]| {
        let mark = mark();
        let path = scene.folder.name("servers.json");
        fs::write(&path, config(&mark, faults, &json!({"startTimeout": 20_000}))).expect("a file");
        let base = ["--engine", "echo", "--mcp-config", &path];
        let ended = doctor(&scene, &[&base[..], words].concat(), &[]);
        assert_gone(&mark);
        ended
    };
    let well = run(&["none"], &[]);
    check(&well, "ok     tool server: none: works, with 2 tools: echo, act");
    assert_eq!(well.status, 0, "{well:?}");
    let some = run(&["none", "crash-at-init"], &[]);
    check(&some, "ok     tool server: none: works");
    check(&some, "wrong  tool server: crash-at-init: it ended with status 4");
    let offline = run(&["crash-at-init"], &["--offline"]);
    check(&offline, "note   tool servers: crash-at-init: not started (--offline)");
    let missing = doctor(&scene, &["--engine", "echo", "--mcp", "/no/such/program"], &[]);
    check(&missing, "wrong  tool server: program: ");
    let quotes = doctor(&scene, &["--engine", "echo", "--mcp", "a 'b"], &[]);
    check(&quotes, "wrong  tool servers: --mcp, number 1: quotes that don't match");
    let json = run(&["none", "crash-at-init"], &["--output", "json"]);
    assert_eq!(json.status, 1, "{json:?}");
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((&json["ok"], &json["error"]["code"]), (&json!(false), &json!("check_failed")));
    let detail = json["error"]["detail"].as_str().expect("a text");
    assert!(detail.starts_with("tool server: crash-at-init: "), "{detail}");
    let servers: Vec<_> = json["data"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|it| it["check"] == "tool server")
        .collect();
    let states: Vec<_> = servers.iter().map(|it| (&it["ok"], &it["state"])).collect();
    assert_eq!(states, [(&json!(true), &json!("ok")), (&json!(false), &json!("wrong"))]);
}

/// A profile's servers are checked with it.
#[test]
fn the_servers_of_a_profile_are_checked() {
    let user = "profiles:\n  p: {engine: echo, mcp: {gone: {command: /no/such/program}}}\n";
    let scene = Scene::new(user, "");
    check(&doctor(&scene, &["--profile", "p"], &[]), "wrong  tool server: gone: ");
    check(&doctor(&scene, &["--engine", "echo"], &[]), "ok     tool servers: none is named");
}
