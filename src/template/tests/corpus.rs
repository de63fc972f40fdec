//! The command files of `tests/templates`, each with the text of its prompt beside it.

use super::Template;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Files there are at least; should they go missing, the test would test nothing.
const FILES_MIN: usize = 35;

#[test]
fn command_files_give_their_texts() {
    let mut count = 0;
    for entry in fs::read_dir(Path::new(ROOT).join("tests/templates")).expect("a command file") {
        let path = entry.expect("a command file").path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let name = path.display().to_string();
        let text = fs::read_to_string(&path).expect("a command file");
        let options = serde_saphyr::options! { strict_booleans: true };
        let command: Value =
            serde_saphyr::from_str_with_options(&text, options).expect("a command file");
        let prompt = command["prompt"].as_str().expect("a command file");
        let expected = fs::read_to_string(path.with_extension("txt")).expect("a command file");
        let template = Template::parse("prompt", prompt).expect(&name);
        assert_eq!(template.render(&defaults(&command)).expect(&name), expected, "{name}");
        count += 1;
    }
    assert!(count >= FILES_MIN, "{count} files");
}

fn defaults(command: &Value) -> Value {
    let mut values = Map::new();
    for flag in command["flags"].as_array().into_iter().flatten() {
        if let Some(default) = flag.get("default") {
            let is_files = flag["type"] == "fileList";
            let value = if is_files { files(default) } else { default.clone() };
            values.insert(flag["name"].as_str().expect("a command file").to_owned(), value);
        }
    }
    Value::Object(values)
}

fn files(paths: &Value) -> Value {
    let read = |path: &Value| {
        let path = path.as_str().expect("a command file");
        json!({"Path": path, "Content": fs::read_to_string(Path::new(ROOT).join(path)).expect("a command file")})
    };
    paths.as_array().expect("a command file").iter().map(read).collect()
}
