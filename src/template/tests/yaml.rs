//! `toYaml` writes as Go does, and `fromYaml` reads it.

use super::super::{Data, Missing, Template, Types, Yaml};
use super::{check, now};
use crate::yaml::data::{self, Reader};
use serde_json::json;

/// Templates of `y`, which is this YAML, and their texts.
#[track_caller]
fn check_yaml(yaml: &str, cases: &[(&str, &str)]) {
    let data = data::read(yaml, Reader::V3).expect("YAML");
    let values = [("y".to_owned(), Data::Yaml(Yaml(data)))].into();
    for (text, expected) in cases {
        let template = Template::parse("t", text, &json!({"y": null})).expect("a template");
        let found = template.render_values(&values, &Types::new(), &now(), Missing::Shown);
        assert_eq!(found.map_err(|why| why.to_string()), Ok((*expected).to_owned()), "{text}");
    }
}

/// In Go these are maps whose keys are integers.
#[test]
fn maps_whose_keys_are_integers_are_read_by_integers_in_their_order() {
    let steps =
        "steps: {10: ten, 2: two, 1: {3: c, 1: a}, -5: minus}\nmixed: {2: b, 10: c, x: d}\n";
    check_yaml(
        steps,
        &[
            ("{{.y.steps}}", "map[-5:minus 1:map[1:a 3:c] 2:two 10:ten]"),
            (
                "{{range $k, $v := .y.steps}}{{printf \"%T\" $k}} {{add $k 1}};{{end}}",
                "int -4;int 2;int 3;int 11;",
            ),
            ("{{index .y.steps 10}} {{index .y.steps 1 3}} {{index .y.steps \"2\"}}", "ten c two"),
            (
                "{{index .y.steps 7}} {{typeOf .y.steps}}",
                "<no value> map[interface {}]interface {}",
            ),
            (
                "{{len .y.steps}} {{keys .y.steps}} {{toJson (index .y.steps 1)}}",
                "4 [-5 1 2 10] {\"1\":\"a\",\"3\":\"c\"}",
            ),
            (
                "{{printf \"%#v\" (index .y.steps 1)}}",
                "map[interface {}]interface {}{1:\"a\", 3:\"c\"}",
            ),
            ("{{toYaml .y.steps}}", "-5: minus\n1:\n    1: a\n    3: c\n2: two\n10: ten\n"),
            ("{{toYaml .y.mixed}}", "\"2\": b\n\"10\": c\nx: d\n"),
            // A key that is added later may be a text.
            ("{{set (index .y.steps 1) \"x\" 0}}", "map[1:a 3:c x:0]"),
        ],
    );
}

#[test]
fn dates_and_numbers_of_yaml_are_written_as_they_are() {
    check_yaml(
        "d: 2024-01-31\nt: 2024-01-31T10:00:00.5+02:00\ns: '2024-01-31'\nnum: [.nan, -.inf, .inf, 18446744073709551615]\n",
        &[(
            "{{toYaml .y}}",
            "d: 2024-01-31T00:00:00Z\nnum:\n    - .nan\n    - -.inf\n    - .inf\n    - 18446744073709551615\n\
             s: \"2024-01-31\"\nt: 2024-01-31T10:00:00.5+02:00\n",
        )],
    );
}

#[test]
fn the_last_day_of_the_calendar_is_a_date() {
    check_yaml(
        "valid: 9999-12-31\nlate: 9999-12-31T23:30:00-05:00\nlast: 9999-12-31T23:59:59Z\n",
        &[
            ("{{.y.valid.Year}} {{.y.valid}}", "9999 9999-12-31 00:00:00 +0000 UTC"),
            ("{{.y.late.After .y.valid}} {{.y.late.Sub .y.valid}}", "true 28h30m0s"),
            ("{{date \"2006-01-02 15:04\" .y.valid}}", "9999-12-31 02:00"),
            // In the local zone they are on a day beyond the calendar.
            (
                "{{date \"2006-01-02 15:04\" .y.last}} {{htmlDate .y.late}} {{.y.last.Local}}",
                "9999-12-31 23:59 9999-12-31 9999-12-31 23:59:59 +0000 UTC",
            ),
            (
                "{{toYaml .y}}",
                "last: 9999-12-31T23:59:59Z\nlate: 9999-12-31T23:30:00-05:00\n\
                 valid: 9999-12-31T00:00:00Z\n",
            ),
        ],
    );
}

/// Go writes such a key as a block, `? |-`, which is the same text.
#[test]
fn keys_with_line_breaks_keep_them() {
    check(&[(
        r#"{{toYaml (dict "two\nlines" (list 1) "a" 2)}}"#,
        "a: 2\n\"two\\nlines\":\n    - 1\n",
    )]);
}

#[test]
fn maps_lists_and_scalars() {
    check(&[
        (
            r#"{{toYaml .m}}{{toYaml .files}}{{toYaml .mixed}}{{toYaml "a"}}{{toYaml .n}}{{toYaml .nil}}{{toYaml .none}}{{toYaml .em}}{{toYaml .multi}}"#,
            r#"a: 1
b: 2
c:
    "y": null
    z:
        - 1
        - 2
- Content: |
    package main
  Path: src/main.go
- Content: '# Hi'
  Path: README.md
- 1
- 1.5
- x
- true
- null
a
3
null
[]
{}
|
    line one
    line two
"#,
        ),
        (
            r#"{{toYaml (list (list 1 2) (dict "a" (list "x" (dict "b" 1 "c" (list 1))) "z" 1) "l1\nl2" (list))}}"#,
            r#"- - 1
  - 2
- a:
    - x
    - b: 1
      c:
        - 1
  z: 1
- |-
  l1
  l2
- []
"#,
        ),
    ]);
}

#[test]
fn texts_that_need_quotes() {
    check(&[
        (
            r#"{{toYaml (dict "s" "true" "e" "" "n" "12" "f" "1.5" "c" "a: b" "h" "a #b" "d" "- x" "q" "it's" "t" "tab\there" "y" "yes" "nu" "null" "ts" "2020-01-01" "st" "*x" "sp" " x")}}"#,
            r#"c: 'a: b'
d: '- x'
e: ""
f: "1.5"
h: 'a #b'
"n": "12"
nu: "null"
q: it's
s: "true"
sp: ' x'
st: '*x'
t: "tab\there"
ts: "2020-01-01"
"y": "yes"
"#,
        ),
        (
            r#"{{toYaml (dict "tl" "~" "at" "@a" "eq" "=" "uu" "é" "ex" "1e3" "oct" "0o7" "un" "1_000" "b6" "1:30" "dash" "-" "neg" "-5" "dot" "." "q2" "?x" "trail" "x " "sl" "\\d")}}"#,
            r#"at: '@a'
b6: "1:30"
dash: '-'
dot: .
eq: =
ex: "1e3"
neg: "-5"
oct: "0o7"
q2: ?x
sl: \d
tl: "~"
trail: 'x '
un: "1_000"
uu: é
"#,
        ),
    ]);
}

#[test]
fn texts_of_several_lines() {
    check(&[
        (
            r#"{{toYaml (dict "pl" "plain text" "col" "a:" "ur" "http://x.y/z" "m" "a\nb" "m2" "a\nb\n" "m3" "a\nb\n\n" "m4" "  a\nb" "hex" "0x1f" "dq" "say \"hi\"" "lc" "a, b" "br" "[x]")}}"#,
            r#"br: '[x]'
col: 'a:'
dq: say "hi"
hex: "0x1f"
lc: a, b
m: |-
    a
    b
m2: |
    a
    b
m3: |+
    a
    b

m4: |4-
      a
    b
pl: plain text
ur: http://x.y/z
"#,
        ),
        (
            r#"{{toYaml (dict "m" (dict "t" "a\nb\n" "z" 1) "l" (list "x\ny\n" "z"))}}{{toYaml 1.0}}{{toYaml 1e21}}{{toYaml 0.00001}}{{toYaml 1.5e10}}"#,
            r#"l:
    - |
      x
      y
    - z
m:
    t: |
        a
        b
    z: 1
1
1e+21
1e-05
1.5e+10
"#,
        ),
    ]);
}

#[test]
fn yaml_that_is_read() {
    check(&[(r#"{{(fromYaml "a: [1, x]\nb: 2").a}} {{(fromYaml "b: 2").b | add 1}}"#, "[1 x] 3")]);
}
