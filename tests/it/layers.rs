//! Rules of the source, read from its text: modules use only modules that stand before them in `src/lib.rs`,
//! and comments can be read by themselves.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of `src/lib.rs`, in order.
fn modules(lib: &str) -> Vec<&str> {
    let items = lib.lines().map(str::trim);
    let items = items.filter_map(|line| line.strip_suffix(';')?.split_once("mod "));
    items
        .filter(|(before, _)| before.is_empty() || before.starts_with("pub"))
        .map(|it| it.1)
        .collect()
}

/// `text` with its comments blanked, so that every place keeps its line.
fn without_comments(text: &str) -> String {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

/// The first names of the paths that begin at `path`: one, or those of a group in braces.
fn heads(path: &str) -> Vec<&str> {
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let mut names = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' | ',' if depth == 0 => {
                names.push(name(group[start..at].trim_start()));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    names
}

fn name(path: &str) -> &str {
    let end = path.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &path[..end.unwrap_or(path.len())]
}

/// What `code` names at the root of the crate, with its line: after `crate::`, and after as many
/// `super::` as lead from a file `depth` folders below the root to the root.
fn uses(code: &str, depth: usize) -> Vec<(usize, &str)> {
    let up = "super::".repeat(depth);
    let mut found = Vec::new();
    for root in ["crate::", &up] {
        let starts = code.match_indices(root).filter(|(at, _)| {
            !code[..*at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':')
        });
        for (at, _) in starts {
            let line = code[..at].matches('\n').count() + 1;
            found.extend(heads(&code[at + root.len()..]).into_iter().map(|name| (line, name)));
        }
    }
    found
}

/// Folders that must not use another: what engines share knows none of them, nor they one another, but
/// for OpenAI's two interfaces, which have models in common.
const APART: [(&str, &[&str]); 6] = [
    ("engine/provider", &["openai", "responses", "anthropic", "gemini", "ollama"]),
    ("engine/openai", &["responses", "anthropic", "gemini", "ollama", "echo"]),
    ("engine/responses", &["anthropic", "gemini", "ollama", "echo"]),
    ("engine/anthropic", &["openai", "responses", "gemini", "ollama", "echo"]),
    ("engine/gemini", &["openai", "responses", "anthropic", "ollama", "echo"]),
    ("engine/ollama", &["openai", "responses", "anthropic", "gemini", "echo"]),
];

/// What breaks the rules in `text`, the file `path` under `src`.
fn violations(order: &[&str], path: &Path, text: &str) -> Vec<String> {
    let names: Vec<_> =
        path.with_extension("").iter().map(|it| it.to_string_lossy().into_owned()).collect();
    let place = |name: &str| order.iter().position(|module| *module == name);
    let Some(own) = place(&names[0]) else {
        // The crate's root and the program may use everything.
        return Vec::new();
    };
    let code = without_comments(text);
    let used = uses(&code, names.len());
    let wrong = used.into_iter().filter(|(_, name)| place(name).is_some_and(|place| place > own));
    let report = |(line, name)| {
        let (path, own) = (path.display(), order[own]);
        format!("src/{path}:{line}: `{own}` uses `{name}`, which stands after it in src/lib.rs")
    };
    let apart = APART.iter().filter(|(folder, _)| path.with_extension("").starts_with(folder));
    let apart = apart.flat_map(|(folder, others)| others.iter().map(|other| (*folder, *other)));
    let apart = apart.flat_map(|(folder, other)| {
        let lines = code.lines().enumerate();
        let lines = lines.filter(move |(_, line)| line.contains(&format!("{other}::")));
        lines.map(move |(at, _)| {
            format!("src/{}:{}: `{folder}` must not use `{other}`", path.display(), at + 1)
        })
    });
    wrong.map(report).chain(apart).collect()
}

/// Modules that front ends without options have, too: what they say names none.
const WITHOUT_OPTIONS: [&str; 6] = ["conversation", "task", "session", "engine", "tool", "host"];

/// The lines of `code` that name an option of the command line.
fn named_options(code: &str) -> Vec<usize> {
    let is_option = |line: &str| {
        let mut after = line.match_indices("--").map(|(at, dashes)| &line[at + dashes.len()..]);
        after.any(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    let lines = code.lines().enumerate().filter(|(_, line)| is_option(line));
    lines.map(|(at, _)| at + 1).collect()
}

/// The places in `modules`, tests apart, where `find` finds lines.
fn places(modules: &[&str], find: impl Fn(&str) -> Vec<usize>) -> Vec<String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for file in rust_files(&src) {
        let path = file.strip_prefix(&src).expect("a file of src").with_extension("");
        let names: Vec<_> = path.iter().map(|it| it.to_string_lossy()).collect();
        if !modules.contains(&&*names[0]) || names.iter().any(|name| name == "tests") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a text");
        let code = without_comments(&text);
        let code = code.split("\nmod tests {").next().unwrap_or_default();
        found.extend(find(code).into_iter().map(|line| format!("{}:{line}", path.display())));
    }
    found
}

/// The lines of `code` that name how frames are encoded, how requests are decoded, or what lies behind
/// a front end. (What formats are stands after `transport` in src/lib.rs.)
fn named_codecs(code: &str) -> Vec<usize> {
    let is_codec = |line: &str| ["json", "wire::decode", "host"].iter().any(|it| line.contains(it));
    let lines = code.lines().enumerate().filter(|(_, line)| is_codec(line));
    lines.map(|(at, _)| at + 1).collect()
}

#[test]
fn the_transport_names_no_codec() {
    assert_eq!(places(&["transport"], named_codecs), [""; 0]);
    assert_eq!(named_codecs("use crate::protocol::{id, json};\nwire::error(e);\n"), [1]);
}

#[test]
fn the_core_names_no_option_of_the_command_line() {
    assert_eq!(places(&WITHOUT_OPTIONS, named_options), [""; 0]);
    assert_eq!(named_options("a -- b\n\"raise --max-tool-rounds\"\nlet n = --1;"), [2]);
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let files = paths.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

#[test]
fn modules_use_only_what_stands_before_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(src.join("lib.rs")).expect("src/lib.rs");
    let order = modules(&lib);
    let mut found = Vec::new();
    let mut used = 0;
    for file in rust_files(&src) {
        let text = fs::read_to_string(&file).expect("a text");
        let path = file.strip_prefix(&src).expect("a file of src");
        used += uses(&without_comments(&text), 9).len();
        found.extend(violations(&order, path, &text));
    }
    assert_eq!(found, [""; 0], "{}", found.join("\n"));
    let folders = fs::read_dir(&src)
        .expect("src")
        .filter(|it| it.as_ref().is_ok_and(|it| it.path().is_dir()));
    assert_eq!(folders.count(), order.len(), "src/lib.rs lists {order:?}");
    assert!(used > 300, "only {used} paths were found");
}

#[test]
fn a_path_to_a_later_module_is_found() {
    let order = modules("//! The map.\n\npub mod low;\n\nmod middle;\npub(crate) mod high;\n");
    assert_eq!(order, ["low", "middle", "high"]);
    let check = |path: &str, text: &str| violations(&order, Path::new(path), text);
    let wrong = "src/low/a.rs:2: `low` uses `high`, which stands after it in src/lib.rs";
    let planted = [
        "\nuse crate::high::Thing;",
        "\npub(crate) use crate::high;",
        "\nfn f() -> crate::high::Thing;",
        "\nuse crate::{\n    low::{b, c},\n    high::Thing,\n};",
        "\nuse super::super::high::Thing;",
        "\nuse super::super::{high};",
    ];
    for text in planted {
        assert_eq!(check("low/a.rs", text), [wrong], "{text}");
    }
    let fine = [
        "use crate::low::b;",
        "use crate::lower::{high};",
        "// use crate::high;",
        "use super::high;",
        "use other_crate::high;",
        "use crate::{low::high, low};",
    ];
    for text in fine {
        assert_eq!(check("low/a.rs", text), [""; 0], "{text}");
    }
    let engine =
        |path| violations(&["engine"], Path::new(path), "\nuse crate::engine::openai::Chunk;");
    let wrong = "src/engine/provider/sse.rs:2: `engine/provider` must not use `openai`";
    assert_eq!(engine("engine/provider/sse.rs"), [wrong]);
    assert_eq!(engine("engine/provider.rs").len(), 1);
    assert_eq!(engine("engine/echo.rs"), [""; 0]);
    assert_eq!(check("high.rs", "use crate::{low, middle, high};"), [""; 0]);
    assert_eq!(check("main.rs", "use crate::high;"), [""; 0]);
    assert_eq!(check("middle.rs", "use super::high;").len(), 1);
    let many = "use crate::middle::a;\nuse crate::low;\nuse crate::high;";
    assert_eq!(check("low.rs", many).len(), 2);
}

const FRONT_ENDS: [&str; 4] = ["stdio", "acp", "serve", "tui"];

/// What `text`, the file `path` under `src`, names of another front end than its own.
fn foreign_front_ends(path: &Path, text: &str) -> Vec<String> {
    let path = path.with_extension("");
    let names: Vec<_> = path.iter().map(|it| it.to_string_lossy()).collect();
    // It draws the answer of a single run, in place of what `stdio` prints.
    let is_exempt = path.starts_with("tui/answer");
    let Some(own) = FRONT_ENDS.iter().find(|it| **it == names[0] && !is_exempt) else {
        return Vec::new();
    };
    let code = without_comments(text);
    let used = uses(&code, names.len()).into_iter();
    let foreign = used.filter(|(_, name)| name != own && FRONT_ENDS.contains(name));
    foreign.map(|(line, name)| format!("src/{}:{line}: names `{name}`", path.display())).collect()
}

/// What several need stands before all of them.
#[test]
fn no_front_end_names_another() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let found = rust_files(&src).into_iter().flat_map(|file| {
        let text = fs::read_to_string(&file).expect("a text");
        foreign_front_ends(file.strip_prefix(&src).expect("a file of src"), &text)
    });
    assert_eq!(found.collect::<Vec<_>>(), [""; 0]);
    let planted = |path: &str| foreign_front_ends(Path::new(path), "\nuse crate::stdio::how_far;");
    assert_eq!(planted("acp/updates.rs"), ["src/acp/updates:2: names `stdio`"]);
    assert!(planted("tui/answer.rs").is_empty() && planted("stdio/progress.rs").is_empty());
}

/// The widest line of a comment, in characters. Rows of tables can't be broken.
const COMMENT_WIDTH_MAX: usize = 120;

/// Words that stand for a thing that only the line above names, which documentation does not show.
const WITHOUT_SUBJECT: [&str; 3] = ["The same", "That of", "Those of"];

/// Pronouns in the place of a subject, which the documentation of some modules does not begin with any more.
const PRONOUNS: [&str; 7] = ["It ", "Its ", "They ", "Those ", "Who ", "Whom ", "Whose "];
const WITHOUT_PRONOUNS: [&str; 1] = ["serve"];

/// The lines of `text`, the file `path` under `src`, with a comment that is too wide, or whose first words name no
/// subject.
fn bad_comments(path: &Path, text: &str) -> Vec<usize> {
    let module = path.with_extension("");
    let is_without_pronouns = WITHOUT_PRONOUNS.iter().any(|folder| module.starts_with(folder));
    let pronouns = if is_without_pronouns { &PRONOUNS[..] } else { &[] };
    let (mut bad, mut goes_on) = (Vec::new(), false);
    for (at, line) in text.lines().enumerate() {
        let comment = line.trim_start();
        let words = comment.strip_prefix("/// ").or_else(|| comment.strip_prefix("//! "));
        let words = words.unwrap_or_default();
        let names_none =
            WITHOUT_SUBJECT.iter().chain(pronouns).any(|start| words.starts_with(start));
        let names_none = names_none && !goes_on && !words.starts_with("The same as ");
        let is_wide = comment.starts_with("//")
            && line.chars().count() > COMMENT_WIDTH_MAX
            && !words.starts_with('|');
        if names_none || is_wide {
            bad.push(at + 1);
        }
        goes_on = !words.is_empty();
    }
    bad
}

#[test]
fn comments_name_their_subject_and_are_not_too_wide() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for file in rust_files(&src) {
        let text = fs::read_to_string(&file).expect("a text");
        let path = file.strip_prefix(&src).expect("a file of src");
        let bad = bad_comments(path, &text).into_iter();
        found.extend(bad.map(|line| format!("src/{}:{line}", path.display())));
    }
    assert_eq!(found, [""; 0], "{}", found.join("\n"));
    let wide = "x".repeat(COMMENT_WIDTH_MAX);
    let planted = format!(
        "//! The same, twice.\n/// Counts\n/// Those of it.\n    /// That of a log.\n// {wide}\n/// | {wide}\n\
         /// The same as `--rpc`.\nlet x = {wide};\n//!\n//! Those of it.\n"
    );
    let elsewhere = Path::new("tui/model.rs");
    assert_eq!(bad_comments(elsewhere, &planted), [1, 5, 10]);
    assert_eq!(bad_comments(elsewhere, "fn f();\n    /// That of a log.\n"), [2]);
    let planted = "/// It ends.\n/// Its end.\n\n    /// Those of it.\n\n/// Items.\n";
    assert_eq!(bad_comments(Path::new("serve/http/form.rs"), planted), [1, 4]);
    assert_eq!(bad_comments(Path::new("serve.rs"), planted), [1, 4]);
    assert_eq!(bad_comments(elsewhere, planted), [4]);
}

/// Whether the source has what the glossary calls `name`: a file as `store/batch`, or a type as `Host::next`.
fn is_in_source(root: &Path, sources: &str, name: &str) -> bool {
    let mut parts = name.split("::");
    match parts.find(|part| part.starts_with(|c: char| c.is_ascii_uppercase())) {
        Some(of_type) => ["struct", "enum", "trait", "message"].iter().any(|kind| {
            let item = format!("{kind} {of_type}");
            let mut ends = sources.match_indices(&item).map(|(at, _)| &sources[at + item.len()..]);
            ends.any(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
        }),
        None => root.join("src").join(name).with_extension("rs").is_file(),
    }
}

#[test]
fn the_glossary_names_modules_and_types_of_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let glossary =
        text.split("\n## ").find(|part| part.starts_with("Glossary")).expect("a glossary");
    let files = rust_files(&root.join("src")).into_iter();
    let rpc = root.join("proto/pinocchio/chatapp/rpc/v1/rpc.proto");
    let sources = files.chain([rpc]).map(|file| fs::read_to_string(file).expect("a text"));
    let sources: String = sources.collect();
    let places = glossary.lines().filter(|line| line.starts_with("| ")).skip(1);
    let places = places.filter_map(|line| line.trim_end_matches(" |").rsplit_once(" | "));
    let names: Vec<_> = places.flat_map(|(_, place)| place.split('`').skip(1).step_by(2)).collect();
    assert!(names.len() > 40, "{names:?}");
    let wrong = names.iter().filter(|name| !is_in_source(root, &sources, name));
    assert_eq!(wrong.collect::<Vec<_>>(), [&""; 0]);
    assert!(!is_in_source(root, &sources, "store/none") && !is_in_source(root, &sources, "Hos"));
}
