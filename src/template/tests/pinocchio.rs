//! Templates against what pinocchio's own libraries print for them, recorded in `pinocchio.txt`.

use super::super::{Template, Type, Types};
use jiff::{Zoned, civil, tz::TimeZone};
use serde_json::{Value, json};

/// Templates with what Go prints for them.
const RECORDED: &str = include_str!("pinocchio.txt");

/// There are at least this many.
const RECORDED_MIN: usize = 100;

/// What a command file gives templates for a file.
fn file(name: &str, kind: &str, text: &str, parsed: Value, error: Value) -> Value {
    json!({
        "AbsolutePath": format!("/w/d/{name}"), "BaseName": name, "Content": text,
        "Extension": format!(".{}", name.split('.').next_back().unwrap_or_default()),
        "FileType": kind, "IsDirectory": false, "IsList": parsed.is_array(),
        "IsObject": parsed.is_object(), "LastModifiedTime": "2024-01-02T14:04:05.123456789Z",
        "ParseError": error, "ParsedContent": parsed, "Path": format!("d/{name}"),
        "Permissions": "-rw-r--r--", "RelativePath": format!("d/{name}"), "Size": text.len(),
        "StringContent": text,
    })
}

fn values() -> Value {
    let text = file("a.txt", "TEXT", "hi\n", json!(null), json!(null));
    let rows = json!([["h", "i"], ["1", "2"]]);
    json!({
        "name": "Ada", "n": 3, "f": 1.5, "one": 1.0, "t": true, "nil": null,
        "strs": ["b", "a"], "ints": [3, 1], "floats": [1.0, 2.5], "none": [],
        "objs": [{"a": 1}, {"b": "x"}], "obj": {"a": 1, "n": null, "l": [1, "x"]},
        "kv": {"k": "v"}, "d": "2024-01-02T15:04:05+01:00", "dz": "2024-01-02T15:04:05Z",
        "do": "2024-07-02T15:04:05.5+05:30", "txt": text, "files": [text],
        "json": file(
            "a.json", "JSON", r#"{"a":1,"b":[1,"x"]}"#, json!({"a": 1, "b": [1, "x"]}), json!(null)
        ),
        "yaml": file("a.yaml", "YAML", "a: 1\nb: [x]\n", json!({"a": 1, "b": ["x"]}), json!(null)),
        "csv": file("a.csv", "CSV", "h,i\n1,2\n", rows, json!(null)),
        "bad": file("b.json", "JSON", r#"{"a":"#, json!(null), json!("it ends too early")),
    })
}

fn types() -> Types {
    let types = [
        ("strs", Type::Strings),
        ("none", Type::Strings),
        ("ints", Type::Ints),
        ("floats", Type::Floats),
        ("objs", Type::Maps),
        ("kv", Type::StringMap),
        ("d", Type::Time),
        ("dz", Type::Time),
        ("do", Type::Time),
        ("txt", Type::File),
        ("json", Type::File),
        ("yaml", Type::File),
        ("csv", Type::File),
        ("bad", Type::File),
        ("files", Type::Files),
    ];
    types.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect()
}

/// Berlin's time, without the machine's list of zones.
fn now() -> Zoned {
    let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
    civil::date(2026, 11, 22).at(14, 30, 5, 0).to_zoned(zone).expect("a date")
}

fn rendered(text: &str) -> Result<String, String> {
    let values = values();
    let template = Template::parse("t", text, &values).map_err(|why| why.to_string())?;
    template.render(&values, &types(), &now()).map_err(|why| why.to_string())
}

#[test]
fn templates_print_what_pinocchio_prints() {
    let mut lines = RECORDED.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut count, mut wrong) = (0, Vec::new());
    while let (Some(text), Some(expected)) = (lines.next(), lines.next()) {
        let expected: String = serde_json::from_str(expected).expect("a JSON string");
        let found = rendered(text);
        if found.as_ref() != Ok(&expected) {
            wrong.push(format!("{text}\n  found    {found:?}\n  expected {expected:?}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= RECORDED_MIN, "only {count}");
}

/// What Pinocchio refuses is refused here, and what is wrong is said.
#[test]
fn wrong_uses_of_dates_files_and_urls_are_errors() {
    let cases = [
        ("{{.d.Nope}}", "can't take .Nope of a time.Time"),
        ("{{.d.Format}}", "wrong number of arguments for .Format: want 1, got 0"),
        ("{{.d.Year 1}}", "wrong number of arguments for .Year: want 0, got 1"),
        ("{{.d.Format 5}}", ".Format takes a layout"),
        ("{{.d.Sub 5}}", ".Sub takes a date"),
        ("{{.d.AddDate 1 \"x\" 0}}", ".AddDate takes integers"),
        ("{{.d.AddDate 99999 0 0}}", "out of range"),
        ("{{.name.Nope 1}}", "only functions take arguments"),
        ("{{.obj.a 1}}", "only functions take arguments"),
        ("{{lt .d .do}}", "use .Before or .After"),
        ("{{.txt.content}}", "a file has no .content"),
        ("{{len .txt}}", "a file has no length"),
        ("{{range .txt}}{{end}}", "can't range over a *fields.FileData"),
        ("{{urlParse \"http://ex.com:bad/\"}}", "its port is not a number"),
        ("{{urlParse \"%zz\"}}", "it has a % that is not followed by two hexadecimal digits"),
        ("{{urlParse \"http://a b/\"}}", "its host contains ' '"),
        ("{{urlParse \":foo\"}}", "its scheme is missing"),
        ("{{urlParse \"1http://x\"}}", "a name that has a colon"),
        ("{{urlParse \"http://u w@h/\"}}", "its user has a character that must be escaped"),
        ("{{urlJoin (dict \"scheme\" 5)}}", "\"scheme\" must be a string in the map, got int"),
        ("{{urlJoin (dict \"userinfo\" \"a b\")}}", "its user has a character"),
        ("{{semver \"1.2.3.4\"}}", "\"1.2.3.4\" is not a version; write one such as 1.2.3"),
        ("{{semver \"x\"}}", "is not a version"),
        ("{{semver \"1.2.3-\"}}", "is not a version"),
        ("{{semverCompare \">= a\" \"1\"}}", "\">= a\" is not a constraint"),
        ("{{semverCompare \">=1 <2\" \"1\"}}", "is not a constraint"),
        ("{{semverCompare \"\" \"1\"}}", "is not a constraint"),
        ("{{(semver \"1\").LessThan 2}}", ".LessThan takes a version"),
    ];
    for (text, part) in cases {
        match rendered(text) {
            Ok(found) => panic!("{text} gives {found:?}"),
            Err(why) => assert!(why.contains(part), "{text}: {why}"),
        }
    }
}
