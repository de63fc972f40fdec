//! Templates against what Go's documentation says of them, and hostile ones. The files of
//! `tests/templates` are run by the integration tests.

mod arguments;
mod dates;
mod functions;
mod hints;
mod hostile;
mod pinocchio;
mod yaml;

use super::{Template, TemplateError, Types};
use jiff::{Zoned, civil, tz};
use serde_json::{Value, json};

fn values() -> Value {
    json!({
        "name": "Ada", "empty": "", "n": 3, "neg": -7, "f": 1.5, "one": 1.0, "t": true, "no": false,
        "nil": null, "list": ["a", "b", "c"], "nums": [3, 1, 2], "none": [], "em": {},
        "mixed": [1, 1.5, "x", true, null], "m": {"b": 2, "a": 1, "c": {"z": [1, 2], "y": null}},
        "files": [{"Path": "src/main.go", "Content": "package main\n"},
                  {"Path": "README.md", "Content": "# Hi"}],
        "multi": "line one\nline two\n", "uni": "héllo wörld",
    })
}

/// A Sunday afternoon, two hours ahead of UTC.
fn now() -> Zoned {
    let zone = tz::TimeZone::fixed(tz::offset(2));
    civil::date(2026, 11, 22).at(14, 30, 5, 0).to_zoned(zone).expect("a date")
}

fn rendered(text: &str) -> Result<String, TemplateError> {
    Template::parse("t", text, &values())?.render(&values(), &Types::new(), &now())
}

/// Each template and its text.
fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        match rendered(text) {
            Ok(found) => assert_eq!(found, *expected, "{text}"),
            Err(why) => panic!("{text}: {why}"),
        }
    }
}

/// Each template, the line that is to blame, and a part of what is said.
fn check_errors(cases: &[(&str, u32, &str)]) {
    for (text, line, part) in cases {
        match rendered(text) {
            Ok(found) => panic!("{text} gives {found:?}"),
            Err(why) => {
                assert!(why.message.contains(part), "{text}: {why}");
                assert_eq!(why.line, Some(*line), "{text}: {why}");
            }
        }
    }
}

#[test]
fn values_are_written_as_go_writes_them() {
    check(&[
        ("{{.name}} {{.n}} {{.neg}} {{.f}} {{.one}} {{.t}}", "Ada 3 -7 1.5 1 true"),
        ("{{.list}} {{.none}} {{.em}} {{.mixed}}", "[a b c] [] map[] [1 1.5 x true <nil>]"),
        ("{{.m}}", "map[a:1 b:2 c:map[y:<nil> z:[1 2]]]"),
        (
            "{{1e21}} {{1e20}} {{1e6}} {{100000.0}} {{1e-5}} {{0.0001}}",
            "1e+21 1e+20 1e+06 100000 1e-05 0.0001",
        ),
        ("{{1.50}} {{.5}} {{-3}} {{0x10}} {{1_000}} {{'a'}}", "1.5 0.5 -3 16 1000 97"),
        (
            "{{.missing}} {{.nil}} {{.missing.deep}} {{.m.missing}}",
            "<no value> <no value> <no value> <no value>",
        ),
        (r#"{{"a\tb\u00e9\x41"}} {{`raw\n`}}"#, "a\tbéA raw\\n"),
    ]);
}

#[test]
fn blanks_are_trimmed_where_a_dash_says_so() {
    check(&[
        ("a  {{- \" b \" -}}  c", "a b c"),
        ("a {{- /* x */ -}} b", "ab"),
        ("a {{- /* x */}} b", "a b"),
        ("a {{/* x */ -}} b", "a b"),
        ("a {{/* x */}} b", "a  b"),
        ("{{/* x */}}{{- /* y */}} c", " c"),
        ("{{- 3}} {{3 -}} x{{-3}}", "3 3x-3"),
        // Go's lexer knows four blanks; this is another one.
        ("a\u{a0}{{- 1 -}}\u{a0}b", "a\u{a0}1\u{a0}b"),
        ("{{.n\n | printf \"%d\"\n}}", "3"),
    ]);
}

#[test]
fn blocks_choose_and_repeat() {
    check(&[
        ("{{if .no}}a{{else if .n}}b{{else}}c{{end}}", "b"),
        ("{{if .missing}}a{{else}}b{{end}}{{if .em}}a{{else}}b{{end}}", "bb"),
        ("{{range $i, $e := .list}}{{$i}}{{$e}} {{end}}", "0a 1b 2c "),
        ("{{range .none}}a{{else}}b{{end}}{{range .nil}}a{{else}}c{{end}}", "bc"),
        ("{{range $k, $v := .m}}{{$k}} {{end}}", "a b c "),
        ("{{range 3}}{{.}}{{end}}{{range $i := 2}}{{$i}}{{end}}", "01201"),
        ("{{range .list}}{{if eq . \"b\"}}{{continue}}{{end}}{{.}}{{end}}", "ac"),
        ("{{range .list}}{{if eq . \"b\"}}{{break}}{{end}}{{.}}{{end}}", "a"),
        ("{{with .empty}}a{{else with .n}}{{.}}{{else}}c{{end}}", "3"),
        ("{{with $x := .n}}{{$x}}{{.}}{{$.name}}{{end}}", "33Ada"),
        (
            "{{define \"a\"}}[{{.}}]{{end}}{{template \"a\" .n}}{{template \"a\"}}",
            "[3][<no value>]",
        ),
        ("{{block \"b\" .n}}<{{.}}>{{end}}{{template \"b\" 4}}", "<3><4>"),
        ("{{define \"x\"}}1{{end}}{{define \"x\"}} {{end}}{{template \"x\"}}", "1"),
        ("{{define \"t\"}}only{{end}}", "only"),
        ("{{$x := 1}}{{if true}}{{$x = 2}}{{$x := 3}}{{end}}{{$x}}", "2"),
        ("{{$i := 0}}{{$v := 0}}{{range $i, $v = .list}}{{end}}{{$i}}{{$v}}", "2c"),
    ]);
}

#[test]
fn what_the_crate_lets_pass_is_refused() {
    check_errors(&[
        ("a\n{{if .t}}b", 2, "no {{end}}"),
        ("{{range .list}}\n{{if .}}x{{end}}", 1, "{{range}} has no {{end}}"),
        ("a\n{{end}}b", 2, "unexpected {{end}}"),
        ("a{{else}}b", 1, "unexpected {{else}}"),
        ("{{if .t}}a{{else}}b{{else}}c{{end}}", 1, "{{else}}"),
        ("{{range .list}}a{{else if .t}}b{{end}}", 1, "{{else if}}"),
        ("{{if .t}}a{{else with .n}}b{{end}}", 1, "{{else with}}"),
        ("{{break}}", 1, "outside"),
        ("{{range .list}}{{block \"b\" .}}{{break}}{{end}}{{end}}", 1, "outside"),
        ("{{if true}}{{define \"x\"}}{{end}}{{end}}", 1, "{{define}}"),
        ("\n{{$x = 1}}", 2, "undefined variable $x"),
        ("{{if true}}{{$y := 1}}{{end}}\n{{$y}}", 2, "undefined variable $y"),
        ("{{define \"a\"}}{{$x}}{{end}}", 1, "undefined variable $x"),
        ("{{/* a\n*/}}{{- /* b\n*/}}\n{{nofunc 1}}", 4, "\"nofunc\" is not defined"),
        ("{{if .no}}\n{{env \"HOME\"}}{{end}}", 2, "\"env\" is left out"),
        ("{{mustUuidv4}}", 1, "left out"),
        ("{{derivePassword .name}}", 1, "\"derivePassword\" is not supported here"),
        ("{{\"a\nb\"}}", 1, "quote"),
        ("x\n{{ .name", 2, "}}"),
        ("{{/* a }}", 1, "*/"),
        ("{{1 | 2}}", 1, "|"),
        ("{{.name}", 1, "}}"),
        ("{{define \"x\"}}1{{end}}\n{{define \"x\"}}2{{end}}", 2, "twice"),
    ]);
    for text in ["{{}}", "{{if}}a{{end}}", "{{\"a }}", "{{.name}} }} {{", "{{template x}}"] {
        assert!(rendered(text).is_err(), "{text}");
    }
}

#[test]
fn what_goes_wrong_has_its_line() {
    check_errors(&[
        ("a\n{{.name.deep}}", 2, ".deep of a string"),
        ("{{.nil.deep}}", 1, "null"),
        ("{{range .list}}\n{{upper 5}}{{end}}", 2, "upper: argument 1 must be a string, got int"),
        ("{{upper .missing}}", 1, "nil; is a value missing?"),
        ("{{upper \"a\" \"b\"}}", 1, "want 1, got 2"),
        ("{{eq 1 1.0}}", 1, "int and a float64"),
        ("{{eq .list .list}}", 1, "deepEqual"),
        ("{{lt .nil 1}}", 1, "compared"),
        ("{{index .list 5}}", 1, "out of range"),
        ("{{index .list -1}}", 1, "out of range"),
        ("{{slice .list 2 1}}", 1, "index 2 is greater than index 1"),
        ("{{len .n}}", 1, "length"),
        ("{{range .name}}x{{end}}", 1, "string"),
        ("{{range $i, $j := 3}}x{{end}}", 1, "two variables"),
        ("{{define \"a\"}}\n\n{{fail \"boom\"}}{{end}}{{template \"a\"}}", 3, "boom"),
        ("{{template \"undefined\"}}", 1, "not defined"),
        ("{{.name 1}}", 1, "only functions"),
        ("{{nil}}", 1, "nil is not a command"),
        ("{{div 1 0}}", 1, "not a number"),
        ("{{divf 2 0}}", 1, "a division by 0"),
        ("{{printf 1}}", 1, "string"),
        ("{{\n\n.name |\nadd 1 |\nlower\n}}", 5, "lower"),
    ]);
}
