//! What errors say to do.

use super::check_errors;
use crate::template::Template;
use serde_json::json;

#[test]
fn what_other_languages_have_is_translated() {
    check_errors(&[
        ("{{ .my-flag }}", 1, r#"write {{ index . "my-flag" }}"#),
        ("\n{{if eq .m.my-flag 1}}{{end}}", 2, r#"write (index .m "my-flag")"#),
        ("{{$.my-flag.x}}", 1, r#"write (index $ "my-flag").x"#),
        ("{{if .n == 3}}{{end}}", 1, "write eq .a .b"),
        ("{{.n}} {{\"==\"}} {{if .n != 3}}{{end}}", 1, "no != in templates; write ne"),
        ("{{if .n && .t}}{{end}}", 1, "write and"),
        ("{{if .n || .t}}{{end}}", 1, "write or"),
        ("{{if !.t}}{{end}}", 1, "write not"),
        ("{{ .n + 1 }}", 1, "write add"),
        ("{{ .n - 1 }}", 1, "write sub"),
        ("{{ 'str' }}", 1, "use double quotes, as in \"str\""),
        ("{{ “x” }}", 1, "straight double quotes"),
        ("{{ .list[0] }}", 1, "index .list 0"),
        ("{{{ .name }}}", 1, "two braces are enough"),
        ("{{ .n ? 1 : 2 }}", 1, "ternary"),
        ("{{template x}}", 1, "its name in double quotes"),
        ("{{ upper .name, 1 }}", 1, "not commas"),
        ("{{ @x }}", 1, "check what is between"),
        ("{{ if (eq .n 1 }}a{{end}}", 1, "a ( has no )"),
        ("{{ .n) }}", 1, "a ) has no ("),
        ("a {{.n}}\n\n{{ \"==\" |\n .n == 1}}", 4, "write eq"),
    ]);
}

#[test]
fn gaps_are_shown() {
    check_errors(&[
        ("{{}}", 1, "nothing to print; write a value"),
        ("{{if}}a{{end}}", 1, "nothing to test; write {{if .name}}"),
        ("{{if .n}}a{{else  if}}b{{end}}", 1, "write {{else if .name}}"),
        ("{{range}}a{{end}}", 1, "nothing to iterate over"),
        ("{{with}}a{{end}}", 1, "nothing to set the dot to"),
        ("{{ .s | }}", 1, "a | must be followed by a function"),
        ("{{ .s | | upper }}", 1, "a | must be followed by a function"),
        ("{{ | upper }}", 1, "nothing before the |"),
        ("{{ $x := }}", 1, "nothing to assign"),
        ("{{ () }}", 1, "nothing between ( and )"),
    ]);
}

#[test]
fn unknown_names_may_be_values_or_words() {
    check_errors(&[
        ("{{ name }}", 1, "did you mean .name?"),
        ("{{ endif }}", 1, "write {{end}}"),
        ("{{ True }}", 1, "write true"),
        ("{{ nobody }}", 1, "a value has a dot before it (.nobody)"),
        ("{{ nobody | upper }}", 1, "\"nobody\" is not defined"),
    ]);
}

#[test]
fn errors_speak_of_signs_and_not_of_tokens() {
    for text in ["{{ upper .name, 1 }}", "{{ upper .name := 1 }}"] {
        let error = Template::parse("t", text, &json!({})).expect_err(text).to_string();
        let jargon = ["delimiter", "Comma", "Declare"];
        assert!(!jargon.iter().any(|word| error.contains(word)), "{text}: {error}");
    }
}
