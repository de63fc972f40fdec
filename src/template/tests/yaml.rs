//! `toYaml` writes as Go does, and `fromYaml` reads it.

use super::check;

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
