//! Flags that name files.

use super::{parse, values};
use crate::support::test_folder::TestFolder;
use rustix::fs::{CWD, FileType, Mode};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What flag `x` of this type gets from these names of files.
fn read(kind: &str, names: &[&OsStr]) -> Result<Value, String> {
    let file = parse(&format!("prompt: hi\nflags: [{{name: x, type: {kind}}}]")).expect("a file");
    let typed: Vec<OsString> =
        names.iter().flat_map(|name| [OsString::from("--x"), (*name).to_owned()]).collect();
    values(&file, &typed).map(|mut values| values.shift_remove("x").unwrap_or_default())
}

/// What flag `x` of this type gets from a file of this name and text.
#[track_caller]
fn check(kind: &str, name: &str, text: impl AsRef<[u8]>, expected: Result<Value, &str>) {
    let folder = TestFolder::new();
    let path = folder.file(name, text);
    match (read(kind, &[path.as_os_str()]), expected) {
        (Ok(value), Ok(expected)) => assert_eq!(value, expected, "{kind} {name}"),
        (Err(error), Err(expected)) => {
            assert!(error.starts_with("--x: "), "{error}");
            assert!(error.contains(name), "{error}");
            assert!(error.contains(expected), "{error}\nexpected {expected}");
        }
        (found, expected) => panic!("{kind} {name}\n{found:?}\nexpected {expected:?}"),
    }
}

#[test]
fn texts() {
    check("stringFromFile", "a.txt", "a\nä\n", Ok(json!("a\nä\n")));
    check("stringFromFiles", "a.txt", "a", Ok(json!("a")));
    check("stringFromFile", "a.bin", b"ab\xff", Err("is not UTF-8 from byte 2 on; convert it"));
    let folder = TestFolder::new();
    let (a, b) = (folder.file("a", "1\n"), folder.file("b", "2\n"));
    assert_eq!(read("stringFromFiles", &[a.as_os_str(), b.as_os_str()]), Ok(json!("1\n2\n")));
}

#[test]
fn lists_of_texts() {
    let kind = "stringListFromFile";
    check(kind, "a.txt", "a\r\nb\n\nc", Ok(json!(["a", "b", "", "c"])));
    check(kind, "a.txt", "\u{feff}a\n\u{feff}b", Ok(json!(["a", "\u{feff}b"])));
    check(kind, "a.json", "[\"a\"]", Ok(json!(["a"])));
    check(kind, "a.json", "[1]", Err("does not hold a list of strings"));
    check(kind, "a.json", "[", Err("is not valid JSON: the text ends inside a list"));
    check(kind, "a.yml", "- a\n- b", Ok(json!(["a", "b"])));
    check(kind, "a.yaml", "a:\n\tb", Err(": line 2 is not valid YAML: "));
    check(kind, "a.csv", "name\nAda\nBob\n", Ok(json!(["Ada", "Bob"])));
    check("stringListFromFiles", "a.txt", "a", Ok(json!(["a"])));
}

#[test]
fn objects() {
    let kind = "objectFromFile";
    check(kind, "a.json", "{\"a\": {\"b\": [1, 2.5]}}", Ok(json!({"a": {"b": [1.0, 2.5]}})));
    check(kind, "a.JSON", "\u{feff}{}", Ok(json!({})));
    check(kind, "a.yaml", "a: yes\nb: 0777", Ok(json!({"a": "yes", "b": 511})));
    check(kind, "a.yaml", "10: x\n2: {3: y}", Ok(json!({"10": "x", "2": {"3": "y"}})));
    check(kind, "a.yaml", "~: x", Err(": line 1 is not valid YAML: a key is empty or null; write"));
    check(kind, "a.csv", "a,b\n1, \"x, y\"\n", Ok(json!({"a": "1", "b": "x, y"})));
    check(kind, "a.csv", "a\n1\n2\n", Err("holds 2 rows under its heading, not one"));
    check(kind, "a.csv", "a,b\n1\n", Err("is not a valid table: "));
    check(kind, "a.csv", "a,a\n1,2\n", Err("two columns of"));
    check(kind, "a.csv", "a\n\"1\n", Err("a quote is not closed"));
    check(kind, "a.tsv", "a\tb\n1\t\n", Ok(json!({"a": "1", "b": ""})));
    check(kind, "a.json", "[1]", Err("does not hold a map"));
    check(kind, "a.json", "{} {}", Err("more text follows"));
    check(kind, "a.txt", "{}", Err("must end in .json, .yaml, .yml, .csv or .tsv"));
}

#[test]
fn lists_of_objects() {
    let kind = "objectListFromFile";
    check(kind, "a.json", "[{\"a\": 1}, {}]", Ok(json!([{"a": 1.0}, {}])));
    check(kind, "a.json", "{\"a\": 1}", Ok(json!([{"a": 1.0}])));
    check(kind, "a.json", "[1]", Err("does not hold a list of maps"));
    check(kind, "a.jsonl", "{\"a\": 1}\n\n{\"a\": 2}\n", Ok(json!([{"a": 1.0}, {"a": 2.0}])));
    check(kind, "a.ndjson", "{}\n{", Err(": line 2 is not valid JSON"));
    check(kind, "a.ndjson", "{}\n{\"a\":x}", Err(" at column 6"));
    check(kind, "a.yaml", "- a: 1\n- b: 2", Ok(json!([{"a": 1}, {"b": 2}])));
    check(
        kind,
        "a.csv",
        "a,b\n1,2\n3,4\n",
        Ok(json!([{"a": "1", "b": "2"}, {"a": "3", "b": "4"}])),
    );
    check(kind, "a.csv", "", Ok(json!([])));
    check("objectListFromFiles", "a.json", "[{}]", Ok(json!([{}])));
}

#[test]
fn keys_and_texts() {
    let kind = "keyValue";
    let folder = TestFolder::new();
    let at = |name: &str, text: &str| {
        let mut typed = OsString::from("@");
        typed.push(folder.file(name, text));
        read(kind, &[&typed])
    };
    assert_eq!(at("a.json", "{\"a\": 1, \"b\": \"x\"}"), Ok(json!({"a": "1", "b": "x"})));
    assert_eq!(at("a.yaml", "a: b"), Ok(json!({"a": "b"})));
    assert!(at("b.yaml", "a: [b]").is_err_and(|error| error.contains("a string for each key")));
}

#[test]
fn what_is_known_of_a_file() {
    let folder = TestFolder::new();
    let path = folder.file("Data.JSON", "[1]");
    let found = read("file", &[path.as_os_str()]).expect("a file");
    let text = path.to_string_lossy();
    let expected = [
        ("Path", json!(text)),
        ("AbsolutePath", json!(text)),
        ("BaseName", json!("Data.JSON")),
        ("Extension", json!(".json")),
        ("FileType", json!("JSON")),
        ("Content", json!("[1]")),
        ("ParsedContent", json!(null)),
        ("ParseError", json!(null)),
        ("IsList", json!(true)),
        ("IsObject", json!(false)),
        ("IsDirectory", json!(false)),
        ("Size", json!(3)),
    ];
    for (key, value) in expected {
        assert_eq!(found[key], value, "{key}");
    }
    assert!(found["Permissions"].as_str().is_some_and(|text| text.starts_with("-rw")), "{found}");
    assert!(found["LastModifiedTime"].as_str().is_some_and(|text| text.ends_with('Z')), "{found}");
    assert!(
        found["RelativePath"].as_str().is_some_and(|way| Path::new(way).ends_with("Data.JSON"))
    );

    let path = folder.file("bad.json", "[");
    let found = read("file", &[path.as_os_str()]).expect("a file");
    assert!(found["ParseError"].as_str().is_some_and(|error| error.contains("not valid JSON")));
    let path = folder.file("t.csv", "a,b\n1,2");
    let found = read("file", &[path.as_os_str()]).expect("a file");
    assert_eq!(found["ParsedContent"], json!([["a", "b"], ["1", "2"]]));
}

#[test]
fn lists_of_files() {
    let folder = TestFolder::new();
    let both = format!("{},{}", folder.file("a", "1").display(), folder.file("b", "2").display());
    let found = read("fileList", &[OsStr::new(&both), OsStr::new("-")]).expect("files");
    let contents: Vec<&Value> =
        found.as_array().expect("a list").iter().map(|file| &file["Content"]).collect();
    assert_eq!(contents, ["1", "2", "from stdin\n"]);
}

#[test]
fn standard_input() {
    let stdin = [OsStr::new("-")];
    assert_eq!(read("stringFromFile", &stdin), Ok(json!("from stdin\n")));
    assert_eq!(read("stringFromFile", &[OsStr::new("/dev/stdin")]), Ok(json!("from stdin\n")));
    assert_eq!(read("stringListFromFile", &stdin), Ok(json!(["from stdin"])));
    assert_eq!(read("file", &stdin).map(|file| file["Path"].clone()), Ok(json!("stdin")));
    let error = read("objectFromFile", &stdin).expect_err("no JSON");
    assert!(error.starts_with("--x: standard input is not valid JSON"), "{error}");
    let error = read("keyValue", &[OsStr::new("@-")]).expect_err("no JSON");
    assert!(error.starts_with("--x: standard input is not valid JSON"), "{error}");
    let error = read("stringFromFiles", &[OsStr::new("-"), OsStr::new("-")]).expect_err("twice");
    assert!(error.contains("it can be read once, so put one of the two into a file"), "{error}");
}

#[test]
fn what_cannot_be_read() {
    let folder = TestFolder::new();
    let error = |path: &Path| read("stringFromFile", &[path.as_os_str()]).expect_err("no file");
    let missing = error(&folder.path("missing"));
    assert!(missing.contains("missing can't be read: No such file"), "{missing}");
    assert!(missing.contains("relative to the current folder"), "{missing}");
    assert!(error(&folder.path("")).contains("is a folder; name a file in it"));
    let large = folder.file("large", "");
    fs::File::options().write(true).open(&large).expect("a file").set_len(1 << 40).expect("a hole");
    assert!(error(&large).contains("large has more than 64 MiB; give a shorter one"));
    let error = read("file", &[OsStr::new("")]).expect_err("no name");
    assert!(error.contains("the name of the file is empty"), "{error}");
    let endless = read("stringFromFile", &[OsStr::new("/dev/zero")]).expect_err("endless");
    assert!(endless.contains("/dev/zero has more than 64 MiB"), "{endless}");
}

#[test]
fn pipes_are_read() {
    let folder = TestFolder::new();
    let path = folder.path("pipe");
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    let writer = std::thread::spawn({
        let path = path.clone();
        move || fs::write(path, "through a pipe")
    });
    assert_eq!(read("stringFromFile", &[path.as_os_str()]), Ok(json!("through a pipe")));
    writer.join().expect("a writer").expect("written");
}

#[test]
fn names_need_not_be_utf8() {
    let folder = TestFolder::new();
    let path = folder.file(OsStr::from_bytes(b"a\xff.txt"), "text");
    assert_eq!(read("stringFromFile", &[path.as_os_str()]), Ok(json!("text")));
    assert_eq!(read("stringFromFiles", &[path.as_os_str()]), Ok(json!("text")));
    let found = read("file", &[path.as_os_str()]).expect("a file");
    assert_eq!(found["BaseName"], json!("a\u{fffd}.txt"));
    let error = read("string", &[OsStr::from_bytes(b"\xff")]).expect_err("no text");
    assert!(error.contains("--x: the value is not UTF-8"), "{error}");
}

#[test]
fn command_files_are_loaded() {
    use crate::command_file::CommandFile;
    let folder = TestFolder::new();
    let load = |path: &Path| CommandFile::load(path).map_err(|error| error.to_string());
    let path = folder.file("greet.yaml", "prompt: hi");
    assert_eq!(load(&path).map(|file| file.name), Ok("greet".to_owned()));
    let error = load(&folder.file("bad.yaml", b"prompt: \xff")).expect_err("no text");
    assert!(error.contains("bad.yaml: it is not UTF-8 from byte 8 on; convert it"), "{error}");
    let error = load(&folder.path("")).expect_err("a folder");
    assert!(error.contains("can't be read"), "{error}");
    let error = load(Path::new("/dev/zero")).expect_err("endless");
    assert!(error.contains("it has more than 1 MiB"), "{error}");
}
