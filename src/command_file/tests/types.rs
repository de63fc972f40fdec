//! Each type of flag: typed well, typed badly, not typed.

use super::{check, parse, values};
use serde_json::json;

#[test]
fn texts() {
    check("type: string", &["--x", "a b"], Ok(json!("a b")));
    check("type: string", &["--x=a,b"], Ok(json!("a,b")));
    check("type: string", &["--x", "-y"], Ok(json!("-y")));
    check("type: string", &["--x", ""], Ok(json!("")));
    check("type: string", &["--x", "a", "--x", "b"], Ok(json!("b")));
    check("type: string", &[], Ok(json!(null)));
    check("type: string\ndefault: d", &[], Ok(json!("d")));
    check("type: string\ndefault: yes", &[], Ok(json!("yes")));
    check("type: string\ndefault: ''", &[], Ok(json!("")));
    check("type: string\ndefault:", &[], Ok(json!(null)));
    check(
        "type: string\ndefault: 3",
        &[],
        Err("dir/cmd.yaml:5: flag `x`: the default is an integer"),
    );
    check(
        "type: string\ndefault: [a]",
        &[],
        Err("the default is a list, and the type requires a string"),
    );
    check("type: string\nshortFlag: q", &["-q", "a"], Ok(json!("a")));
    check("type: secret\ndefault: s", &[], Ok(json!("s")));
}

#[test]
fn lists_of_texts() {
    let kind = "type: stringList";
    check(kind, &["--x", "a", "--x", "b"], Ok(json!(["a", "b"])));
    check(kind, &["--x", "a,b", "--x=c"], Ok(json!(["a", "b", "c"])));
    check(kind, &["--x", r#""a,b",c"#], Ok(json!(["a,b", "c"])));
    check(kind, &["--x", "a, b"], Ok(json!(["a", " b"])));
    check(kind, &["--x", ""], Ok(json!([])));
    check(kind, &["--x", "a,\"b"], Err("--x: `a,\"b` can't be split at its commas"));
    check(kind, &[], Ok(json!(null)));
    check("type: stringList\ndefault: [a, 'b']", &[], Ok(json!(["a", "b"])));
    check(
        "type: stringList\ndefault: a",
        &[],
        Err("the default is a string, and the type requires a list"),
    );
    check("type: stringList\ndefault: [1]", &[], Err("put it in quotes"));
}

#[test]
fn numbers() {
    check("type: int", &["--x", "42"], Ok(json!(42)));
    check("type: int", &["--x", "-3"], Ok(json!(-3)));
    check("type: int", &["--x", "4.5"], Err("'4.5' for '--x <INT>': it is not a 64-bit integer"));
    check("type: int", &["--x", "9223372036854775808"], Err("not a 64-bit integer"));
    for (typed, number) in [
        ("010", 8),
        ("0o17", 15),
        ("0x10", 16),
        ("-0X1f", -31),
        ("0b11", 3),
        ("1_000", 1000),
        ("0x_10", 16),
        ("+5", 5),
        ("0", 0),
        ("-0x8000000000000000", i64::MIN),
    ] {
        check("type: int", &["--x", typed], Ok(json!(number)));
    }
    for typed in ["08", "0x", "1__0", "_1", "1_", "0b2", "1e3", "--5", "", " 5", "0_"] {
        check("type: int", &["--x", typed], Err("is not a 64-bit integer"));
    }
    check("type: int\ndefault: 0x10", &[], Ok(json!(16)));
    check("type: int\ndefault: 0777", &[], Ok(json!(511)));
    check("type: int\ndefault: 0o17", &[], Ok(json!(15)));
    check("type: int\ndefault: 1_000", &[], Ok(json!(1000)));
    check("type: int\ndefault: 3.0", &[], Ok(json!(3)));
    check(
        "type: int\ndefault: 3.5",
        &[],
        Err("cmd.yaml:5: flag `x`: the default is a number, and the type requires an integer"),
    );
    check("type: int\ndefault: '3'", &[], Err("the default is a string"));
    check("type: intList", &["--x", "1,2", "--x", " 3"], Ok(json!([1, 2, 3])));
    // The items of a list, and arguments, are decimal.
    check("type: intList", &["--x", "010,7"], Ok(json!([10, 7])));
    check("type: intList", &["--x", "0x10"], Err("--x: `0x10` is not a 64-bit integer"));
    check("type: intList", &["--x", "1,b"], Err("--x: `b` is not a 64-bit integer"));
    check("type: intList\ndefault: [1, 2]", &[], Ok(json!([1, 2])));
    check("type: float", &["--x", "1.5"], Ok(json!(1.5)));
    check("type: float", &["--x", "2"], Ok(json!(2.0)));
    check("type: float", &["--x", "much"], Err("it is not a number, such as 1.5"));
    check("type: float", &["--x", "NaN"], Ok(json!("NaN")));
    check("type: float", &["--x", "inf"], Ok(json!("+Inf")));
    check("type: float", &["--x", "-Infinity"], Ok(json!("-Inf")));
    check("type: float", &["--x", "1_000.5"], Ok(json!(1000.5)));
    check("type: float", &["--x", "1e400"], Err("it is not a number"));
    check("type: float", &["--x", "1__0"], Err("it is not a number"));
    check("type: floatList", &["--x", "1,nan"], Ok(json!([1.0, "NaN"])));
    check("type: float\ndefault: 2", &[], Ok(json!(2.0)));
    check("type: floatList", &["--x", "1,2.5"], Ok(json!([1.0, 2.5])));
    check("type: floatList\ndefault: 1.5", &[], Err("requires a list"));
}

#[test]
fn truth_values() {
    check("type: bool", &["--x"], Ok(json!(true)));
    check("type: bool", &["--x=false"], Ok(json!(false)));
    check("type: bool", &["--x=T"], Ok(json!(true)));
    check("type: bool", &["--x", "--x=0"], Ok(json!(false)));
    check("type: bool", &["--x=maybe"], Err("it is not true or false"));
    check("type: bool\nshortFlag: b", &["-b"], Ok(json!(true)));
    check("type: bool", &[], Ok(json!(null)));
    check("type: bool\ndefault: true", &["--x=off"], Ok(json!(false)));
    check("type: bool\ndefault: false", &[], Ok(json!(false)));
    check(
        "type: bool\ndefault: yes",
        &[],
        Err("the default is a string, and the type requires true or false"),
    );
}

#[test]
fn choices() {
    let one = "type: choice\nchoices: [red, 'on', 3]";
    check(one, &["--x", "red"], Ok(json!("red")));
    check(one, &["--x", "3"], Ok(json!("3")));
    check(
        one,
        &["--x", "blue"],
        Err("invalid value 'blue' for '--x <CHOICE>'\n  [possible values: red, on, 3]"),
    );
    check(
        "type: choice\nchoices: [a]\ndefault: b",
        &[],
        Err("the default `b` is not one of the choices: a"),
    );
    check("type: choice", &[], Err("dir/cmd.yaml:3: flag `x`: it has no `choices`; list them"));
    let some = "type: choiceList\nchoices: [a, b]";
    check(some, &["--x", "a,b", "--x", "a"], Ok(json!(["a", "b", "a"])));
    check(some, &["--x", "a,c"], Err("--x: `c` is not one of the choices: a, b"));
    check("type: choiceList\nchoices: [a]\ndefault: [a]", &[], Ok(json!(["a"])));
    check("type: choiceList\nchoices: [a]\ndefault: [c]", &[], Err("not one of the choices"));
}

#[test]
fn keys_and_texts() {
    let kind = "type: keyValue";
    check(kind, &["--x", "a:1", "--x", "b = c,d: e"], Ok(json!({"a": "1", "b": "c", "d": "e"})));
    check(kind, &["--x", "url:http://x?a=b"], Ok(json!({"url": "http://x?a=b"})));
    check(
        kind,
        &["--x", "url=http://x:8/y", "--x", "when=10:30"],
        Ok(json!({"url": "http://x:8/y", "when": "10:30"})),
    );
    check(kind, &["--x", "=a:b"], Err("is not a key and a text"));
    check(kind, &["--x", "a"], Err("--x: `a` is not a key and a text, such as name=Ada, or @file"));
    check(kind, &["--x", "a:"], Err("is not a key and a text"));
    check(kind, &["--x", ""], Ok(json!({})));
    check(kind, &["--x", "@nowhere.json"], Err("--x: nowhere.json can't be read"));
    check("type: keyValue\ndefault: {a: 1.50, b: x}", &[], Ok(json!({"a": "1.50", "b": "x"})));
    check("type: keyValue\ndefault: {a: {b: c}}", &[], Err("a string for each key"));
    check("type: keyValue\ndefault: a", &[], Err("requires a map of strings"));
}

#[test]
fn defaults_of_what_is_in_files() {
    check("type: stringFromFile\ndefault: |\n  text", &[], Ok(json!("text\n")));
    check("type: stringFromFile\ndefault: d", &["--x", ""], Ok(json!("d")));
    check("type: objectFromFile\ndefault: {a: {b: [1]}}", &[], Ok(json!({"a": {"b": [1]}})));
    check("type: objectListFromFile\ndefault: [{a: 1}]", &[], Ok(json!([{"a": 1}])));
    check(
        "type: objectListFromFile\ndefault: [1]",
        &[],
        Err("the default is an integer, and the type requires a map"),
    );
    check("type: stringListFromFile\ndefault: [a]", &[], Ok(json!(["a"])));
    check("type: fileList\ndefault: []", &[], Ok(json!([])));
    check("type: file\ndefault: a.txt", &[], Err("a file can't be a default"));
    check("type: fileList\ndefault: [a.txt]", &[], Err("a file can't be a default"));
}

#[test]
fn required_flags() {
    check("type: string\nrequired: true", &["--x", "a"], Ok(json!("a")));
    check(
        "type: string\nrequired: true",
        &[],
        Err("required arguments were not provided:\n  --x <TEXT>"),
    );
    check("type: string\nrequired: true\ndefault: d", &[], Ok(json!("d")));
    check("type: string\nrequired: true\ndefault: ''", &[], Ok(json!("")));
    check("type: string\nrequired: true\ndefault:", &[], Err("--x"));
    check("type: string\nrequired: yes", &[], Err("--x"));
    check("type: string\nrequired: off", &[], Ok(json!(null)));
    check(
        "type: string\nrequired: 1",
        &[],
        Err("cmd.yaml:5: flag `x`: `required` must be true or false, not an integer"),
    );
}

#[test]
fn arguments() {
    let text = "
prompt: hi
arguments:
  - {name: one, type: int, required: true}
  - {name: yes, type: bool}
  - {name: rest, type: stringList}
";
    let file = parse(text).expect("a file");
    let found = |typed: &[&str]| values(&file, typed).map(serde_json::Value::Object);
    assert_eq!(found(&["-1"]), Ok(json!({"one": -1})));
    assert_eq!(found(&["010"]), Ok(json!({"one": 10})));
    assert_eq!(
        found(&["1", "on", "a,b", "c"]),
        Ok(json!({"one": 1, "yes": true, "rest": ["a,b", "c"]}))
    );
    assert!(found(&[]).is_err_and(|error| error.contains("<one>")));
    assert!(found(&["x"]).is_err_and(|error| error.contains("'x' for '<one>'")));
}

/// Places are counted, so that one with a default can be left out only after the others.
#[test]
fn required_arguments_with_defaults() {
    let text = "
prompt: hi
arguments:
  - {name: one, type: string, required: true, default: a}
  - {name: two, type: string, required: true}
  - {name: three, type: string, required: true, default: c}
";
    let file = parse(text).expect("a file");
    let found = |typed: &[&str]| values(&file, typed).map(serde_json::Value::Object);
    assert_eq!(found(&["x", "y"]), Ok(json!({"one": "x", "two": "y", "three": "c"})));
    assert!(found(&["x"]).is_err_and(|error| error.contains("<two>")));
}

#[test]
fn names_are_typed_with_dashes() {
    let text = "prompt: hi\nflags: [{name: a_b-c, type: string}]";
    let file = parse(text).expect("a file");
    assert_eq!(file.flags[0].option(), "a-b-c");
    let values = values(&file, &["--a-b-c", "1"]).expect("values");
    assert_eq!(values.get("a_b-c"), Some(&json!("1")));
}

#[test]
fn any_name_that_is_allowed_can_be_typed() {
    for name in ["a", "A", "1", "a.b", "é", "x--y", "type", "FILE"] {
        let file = parse(&format!("prompt: hi\nflags: [{{name: {name}, type: string}}]"));
        let file = file.unwrap_or_else(|error| panic!("{error}"));
        let values = values(&file, &[format!("--{name}"), "1".to_owned()]);
        assert_eq!(values.map(serde_json::Value::Object), Ok(json!({name: "1"})));
    }
}

#[test]
fn help_tells_what_can_be_typed() {
    let text = "
prompt: hi
flags:
  - {name: n, type: int, help: How many, default: 3, shortFlag: n}
  - {name: kind, type: choice, choices: [a, b], default: a}
  - {name: some, type: choiceList, choices: [a, b], help: Which}
  - {name: secret, type: secret, default: hidden}
  - {name: long, type: string, default: \"one\\ntwo\"}
  - {name: must, type: file, required: true}
";
    let file = parse(text).expect("a file");
    let help = clap::Command::new("x").args(file.clap_args()).render_help().to_string();
    let lines = [
        "-n, --n <INT>        How many [default: 3]",
        "--kind <CHOICE>  [default: a] [possible values: a, b]",
        "--some <CHOICE>  Which [may be repeated] [possible values: a, b]",
        "--long <TEXT>    [default: one two]",
        "--must <FILE>",
        "Flags of the file:",
    ];
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in lines {
        assert!(plain(&help).contains(&plain(line)), "{line}\n{help}");
    }
    assert!(!help.contains("hidden"), "{help}");
}
