//! `examples/fleet` starts nodes as their options are, and keeps to the schemas of its readers.

use crate::clients::installed;
use clap::{CommandFactory, FromArgMatches};
use duologue::cli::Cli;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

fn path(name: &str) -> String {
    format!("{}/examples/fleet/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn text(name: &str) -> String {
    fs::read_to_string(path(name)).expect("a text")
}

/// The words of a list.
fn words(list: &Value) -> Vec<String> {
    let words = list.as_array().expect("a list").iter();
    words.map(|word| word.as_str().expect("a word").to_owned()).collect()
}

/// The command line can be parsed.
#[track_caller]
fn check_command(words: &[String]) {
    assert_eq!(words[0], "serve");
    let all = std::iter::once("duologue".to_owned()).chain(words.iter().cloned());
    let matches = Cli::command().try_get_matches_from(all);
    let matches = matches.unwrap_or_else(|error| panic!("{words:?}: {error}"));
    Cli::from_arg_matches(&matches).expect("values that can be used");
}

#[test]
fn the_manifests_start_nodes_with_the_options_that_there_are() {
    let kubernetes = text("kubernetes.yaml");
    let first = kubernetes.split("\n---\n").next().expect("a document");
    let deployment: Value = serde_saphyr::from_str(first).expect("YAML");
    let pod = &deployment["spec"]["template"]["spec"];
    check_command(&words(&pod["containers"][0]["args"]));
    let compose = text("compose.yaml");
    let commands: Vec<_> = compose
        .lines()
        .filter_map(|line| line.trim().strip_prefix("command: "))
        .map(|list| words(&serde_saphyr::from_str(list).expect("YAML")))
        .collect();
    assert_eq!(commands.len(), 3);
    commands.iter().for_each(|command| check_command(command));
    // Variables of the program, in both.
    let mut root = Cli::command();
    root.build();
    let serve = root.find_subcommand("serve").expect("the command");
    let known: BTreeSet<_> = serve
        .get_arguments()
        .filter_map(|argument| argument.get_env()?.to_str().map(str::to_owned))
        .chain(["DUOLOGUE_API_KEY", "DUOLOGUE_VERSION"].map(str::to_owned))
        .collect();
    let named = kubernetes.split_whitespace().chain(compose.split_whitespace());
    let named: BTreeSet<_> = named
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_uppercase() && c != '_'))
        .filter(|word| {
            word.starts_with("DUOLOGUE_")
                && word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        })
        .collect();
    assert!(named.len() >= 5, "{named:?}");
    let unknown: Vec<_> = named.iter().filter(|name| !known.contains(**name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    // What kills a node must leave it its time.
    let grace = pod["terminationGracePeriodSeconds"].as_u64().expect("seconds");
    let default = serve.get_arguments().find(|it| it.get_id() == "drain_ms").expect("an option");
    let drain_ms: u64 =
        default.get_default_values()[0].to_str().expect("a text").parse().expect("ms");
    assert!(grace * 1000 >= drain_ms + 10_000, "{grace} s");
}

#[test]
fn the_manifests_keep_to_the_schemas_of_their_readers() {
    needs!(Manifests);
    let check = |program: &str, words: &[&str]| {
        let mut command = Command::new(installed("manifests/python/bin").join(program));
        let output = command.args(words).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = said + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), said)
    };
    let folder = crate::server::Folder::new();
    let kubernetes = |file: &str| check("kubernetes-validate", &["--strict", file]);
    let compose =
        |file: &str| check("check-jsonschema", &["--builtin-schema", "vendor.compose-spec", file]);
    for (name, wrong, with) in [
        ("kubernetes.yaml", "replicas: 3", "replicas: three"),
        ("compose.yaml", "ports: [", "portz: ["),
    ] {
        let check: &dyn Fn(&str) -> (bool, String) =
            if name == "compose.yaml" { &compose } else { &kubernetes };
        let (is_well, said) = check(&path(name));
        assert!(is_well, "{said}");
        // The checks can fail.
        let changed = folder.name(name);
        fs::write(&changed, text(name).replace(wrong, with)).expect("a file");
        assert!(!check(&changed).0, "{name}");
    }
}
