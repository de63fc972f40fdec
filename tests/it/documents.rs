//! The documents name what there is: each option and variable, and each event.

use clap::{Command, CommandFactory};
use duologue::cli::Cli;
use duologue::protocol::proto::DESCRIPTORS;
use prost::Message;
use prost_types::{DescriptorProto, FileDescriptorSet};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const ARCHITECTURE: &str = include_str!("../../ARCHITECTURE.md");
const COMMANDS: &str = include_str!("../../src/protocol/command.rs");
const FLEET: &str = include_str!("../../docs/fleet.md");
const HTTP: &str = include_str!("../../src/serve/http.rs");
const INTERNALS: &str = include_str!("../../docs/internals.md");
const README: &str = include_str!("../../README.md");
const CLIENTS: &str = include_str!("../../docs/clients.md");
const OPTIONS: &str = include_str!("../../docs/options.md");

/// Columns of a line of prose.
const COLUMNS_MAX: usize = 120;

/// Variables of secrets, which have no option.
const SECRET_VARIABLES: [&str; 2] = ["DUOLOGUE_API_KEY", "DUOLOGUE_MCP_CLIENT_SECRET"];

/// What a person sees first.
const FIRST_LINES: usize = 80;

/// Payloads that no event has.
const ENTITY: &str = "Entity";

#[test]
fn every_option_and_variable_is_named_in_a_document() {
    let mut names = BTreeSet::new();
    let mut command = Cli::command();
    command.build();
    add_names(&command, &mut names);
    assert!(names.len() > 130, "only {} names", names.len());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let mut documents = README.to_owned();
    for file in fs::read_dir(folder).expect("the folder") {
        documents += &fs::read_to_string(file.expect("a file").path()).expect("a text");
    }
    let missing: Vec<_> = names.iter().filter(|name| !has_word(&documents, name)).collect();
    assert!(missing.is_empty(), "not in README.md and docs/ (see docs/options.md): {missing:?}");
}

/// It says that it has them all.
#[test]
fn the_page_of_options_has_each_option_and_variable() {
    let mut names = BTreeSet::new();
    let mut command = Cli::command();
    command.build();
    add_names(&command, &mut names);
    let missing: Vec<_> = names.iter().filter(|name| !has_word(OPTIONS, name)).collect();
    assert!(missing.is_empty(), "not in docs/options.md: {missing:?}");
    // Those of `serve` are there only with the feature.
    if cfg!(feature = "serve") {
        let words = OPTIONS.split(|char: char| !char.is_ascii_uppercase() && char != '_');
        let variables = words.filter(|word| word.starts_with("DUOLOGUE_"));
        let of_options = variables.filter(|name| !SECRET_VARIABLES.contains(name));
        let gone: Vec<_> = of_options.filter(|name| !names.contains(*name)).collect();
        assert!(gone.is_empty(), "only in docs/options.md: {gone:?}");
    }
}

/// Those that are called conversations on the page; the first of them hold one each.
const CONVERSATIONS: [&str; 6] = ["rpc", "exec", "run-command", "chat", "acp", "serve"];

/// How many of them hold one.
const OF_ONE: usize = 4;

/// Each row says which commands have its options: in a cell, or in the sentence above the table.
#[test]
fn the_page_of_options_names_the_commands_that_have_each() {
    // A node's options are there only with the feature.
    if !cfg!(feature = "serve") {
        return;
    }
    let mut command = Cli::command();
    command.build();
    let mut of_options = BTreeMap::new();
    add_commands(&command, "", &mut of_options);
    let all = of_options.remove("").expect("the commands");
    let (tables, _) = OPTIONS.split_once("\n## Files\n").expect("the tables");
    let mut seen = 0;
    for section in tables.split("\n## ").skip(1) {
        let above = section.lines().find_map(|line| line.strip_prefix("Options of "));
        let above = above.and_then(|line| line.split([':', ';', '.']).next());
        for row in section.lines().filter(|line| line.starts_with("| `")) {
            let row = row.replace("\\|", "/");
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let of = if cells.len() == 4 { cells[2] } else { above.expect(&row) };
            let mut named = commands_in(of, &all);
            let text = cells.last().expect("a cell");
            let part = |words: &str| text.split_once(words).map(|(_, rest)| rest);
            named.extend(part("also of ").map(|rest| commands_in(rest, &all)).unwrap_or_default());
            let not = part("not of ").map(|rest| commands_in(rest, &all)).unwrap_or_default();
            named.retain(|name| !not.contains(name));
            let options = cells[0].split(|it: char| !it.is_ascii_lowercase() && it != '-');
            for option in options.filter_map(|word| of_options.get_key_value(word)) {
                assert_eq!((option.0, option.1), (option.0, &named), "{row}");
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "only {seen} options were found");
}

/// The commands that `text` names: `all`, those called conversations, and those in backticks, without those after "but".
fn commands_in(text: &str, all: &BTreeSet<String>) -> BTreeSet<String> {
    let (with, without) = text.split_once(" but ").unwrap_or((text, ""));
    let quoted = |text: &str| {
        let names = text.split('`').skip(1).step_by(2).map(str::to_owned);
        names.filter(|name| all.contains(name)).collect::<Vec<_>>()
    };
    let group = match with {
        _ if with.starts_with("all") => all.iter().map(String::as_str).collect(),
        _ if with.starts_with("conversations") => CONVERSATIONS.to_vec(),
        _ if with.starts_with("one conversation") => CONVERSATIONS[..OF_ONE].to_vec(),
        _ => Vec::new(),
    };
    let named = group.into_iter().map(str::to_owned).chain(quoted(with));
    let without = quoted(without);
    named.filter(|name| !without.contains(name)).collect()
}

/// Adds the commands of each option; all of them for a blank one. Profiles have options of the same names for what is
/// written into them, and `run` has those of `run-command`.
fn add_commands(command: &Command, path: &str, to: &mut BTreeMap<String, BTreeSet<String>>) {
    for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
        let name = child.get_name();
        if ["help", "profiles", "run"].contains(&name) {
            continue;
        }
        let path = match path {
            "" | "sessions" => path.to_owned() + if path.is_empty() { name } else { "" },
            _ => format!("{path} {name}"),
        };
        if child.has_subcommands() {
            add_commands(child, &path, to);
            continue;
        }
        let shown = child.get_arguments().filter(|argument| !argument.is_hide_set());
        let longs = shown.filter_map(|argument| argument.get_long());
        let options = longs.map(|long| format!("--{long}")).chain([String::new()]);
        for option in options {
            to.entry(option).or_default().insert(path.clone());
        }
    }
}

/// Whoever wants to know what is where, or to remove it, finds all of it on one page.
#[test]
fn the_page_of_options_has_each_file_of_the_user() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = BTreeSet::new();
    add_paths(&src, &mut paths);
    assert!(paths.len() >= 6, "{paths:?}");
    let (_, section) = OPTIONS.split_once("\n## Files\n").expect("the section");
    let missing: Vec<_> = paths.iter().filter(|path| !section.contains(*path)).collect();
    assert!(missing.is_empty(), "not under Files in docs/options.md: {missing:?}");
    assert!(README.contains("docs/options.md#files"), "the README leads there");
}

/// Adds the paths in a folder of the user that the code below `folder` names.
fn add_paths(folder: &Path, paths: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            add_paths(&path, paths);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        // The name of a type is no path.
        let is_path = |word: &&str| word.starts_with("duologue/") && *word != "duologue/result";
        let words = text.split('"').filter(is_path);
        let is_name = |char: char| char.is_ascii_lowercase() || "./-".contains(char);
        let words =
            words.filter(|word| word.len() > "duologue/".len() && word.chars().all(is_name));
        paths.extend(words.map(str::to_owned));
    }
}

fn add_names(command: &Command, names: &mut BTreeSet<String>) {
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        names.extend(argument.get_long().map(|long| format!("--{long}")));
        names.extend(argument.get_env().map(|name| name.to_string_lossy().into_owned()));
    }
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.for_each(|command| add_names(command, names));
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[test]
fn the_readme_begins_with_what_most_people_need() {
    let first: String = README.lines().take(FIRST_LINES).collect();
    assert!(has_word(&first, "--schema"));
}

/// The first cells of the table are the types of all events, and no others.
#[test]
fn the_table_of_events_has_the_type_of_each() {
    let rows = CLIENTS.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let rows: Vec<_> = rows.map(|(name, _)| name).filter(|name| name.contains(".v1.")).collect();
    let shown: BTreeSet<_> = rows.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(shown.len(), rows.len(), "one is there twice: {rows:?}");
    assert_eq!(shown, events());
}

#[test]
fn the_table_of_entities_has_the_type_of_each() {
    for name in messages().iter().filter(|name| name.ends_with(ENTITY)) {
        // The runtime makes none of these.
        let is_foreign = name.ends_with(".FrontendToolCallEntity");
        assert_eq!(has_word(CLIENTS, name), !is_foreign, "{name}");
    }
}

/// Rows of tables are as long as they must be.
#[test]
fn prose_about_the_code_has_lines_of_limited_width() {
    for (page, text) in [("ARCHITECTURE.md", ARCHITECTURE), ("docs/internals.md", INTERNALS)] {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('|'));
        let wide = lines.filter(|(_, line)| line.chars().count() > COLUMNS_MAX);
        let wide: Vec<_> = wide.map(|(at, line)| format!("{page}:{}: {line}", at + 1)).collect();
        assert!(wide.is_empty(), "{wide:#?}");
    }
}

#[test]
fn the_table_of_transitions_has_a_row_for_each_command() {
    let (_, table) = ARCHITECTURE.split_once("\n## The state machine\n").expect("the section");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
    let inputs: Vec<_> = rows.map(|(input, _)| input).collect();
    let (_, variants) = COMMANDS.split_once("pub enum Command {\n").expect("the commands");
    let (variants, _) = variants.split_once("\n}\n").expect("their end");
    let names = variants.lines().map(str::trim).filter_map(|line| line.split(['(', ',']).next());
    let names = names.filter(|name| name.starts_with(|first: char| first.is_ascii_uppercase()));
    let names: Vec<_> = names.map(|name| name[..1].to_lowercase() + &name[1..]).collect();
    assert!(names.len() > 10, "{names:?}");
    let has_row = |name: &&String| inputs.iter().any(|input| has_word(input, name));
    let missing: Vec<_> = names.iter().filter(|name| !has_row(name)).collect();
    assert!(missing.is_empty(), "no row in ARCHITECTURE.md: {missing:?}");
}

#[test]
fn the_page_of_fleets_has_each_parameter_and_each_code_of_http() {
    let part = |begin: &str| {
        let (_, rest) = HTTP.split_once(begin).unwrap_or_else(|| panic!("no {begin}"));
        rest.split_once("\n}\n").expect("its end").0
    };
    let fields = ["struct Options {\n", "struct Page {\n"].map(part).join("\n");
    let fields = fields.lines().filter_map(|line| line.trim().split_once(": "));
    let fields: Vec<_> = fields.map(|(name, _)| name).filter(|it| !it.starts_with('/')).collect();
    assert!(fields.len() >= 6 && fields.contains(&"page_token"), "{fields:?}");
    let codes =
        part("fn word(kind: RefusalKind) -> &'static str {\n").split('"').skip(1).step_by(2);
    let codes: Vec<_> =
        codes.chain(["resource_exhausted", "internal", "unauthenticated"]).collect();
    assert!(codes.len() >= 10, "{codes:?}");
    let all = fields.iter().chain(&codes);
    let missing: Vec<_> = all.filter(|name| !has_word(FLEET, name)).collect();
    assert!(missing.is_empty(), "not in docs/fleet.md: {missing:?}");
}

fn events() -> BTreeSet<String> {
    messages().into_iter().filter(|name| !name.ends_with(ENTITY)).collect()
}

/// The messages that can only be payloads: no other message has them.
fn messages() -> BTreeSet<String> {
    let set = FileDescriptorSet::decode(DESCRIPTORS).expect("descriptors");
    let mut parts = BTreeSet::new();
    let mut names = BTreeSet::new();
    for file in &set.file {
        let package = file.package();
        if package.starts_with("google.") || package == "duologue.store.v1" {
            continue;
        }
        for message in &file.message_type {
            add_parts(message, &mut parts);
            if package != "pinocchio.chatapp.rpc.v1" {
                names.insert(format!("{package}.{}", message.name()));
            }
        }
    }
    names.difference(&parts).cloned().collect()
}

fn add_parts(message: &DescriptorProto, parts: &mut BTreeSet<String>) {
    let types = message.field.iter().map(|field| field.type_name().trim_start_matches('.'));
    parts.extend(types.map(str::to_owned));
    message.nested_type.iter().for_each(|nested| add_parts(nested, parts));
}
