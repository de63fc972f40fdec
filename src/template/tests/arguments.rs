//! Arguments that a function does not take: each is an error with its place, and none panics.

use super::{check, check_errors};
use crate::template::functions;

#[test]
fn bad_arguments_are_reported() {
    check_errors(&[
        (r#"{{regexMatch "(" "x"}}"#, 1, "not a valid regular expression"),
        (r#"{{regexMatch "\\u0041" "x"}}"#, 1, r"expression: \u is not an escape of Go's syntax"),
        (r#"{{mustFromJson "{"}}"#, 1, "not JSON"),
        (r#"{{fromYaml "a: [1"}}"#, 1, "the text, line 1, is not valid YAML: unclosed bracket"),
        (r#"{{fromYaml "a: 1\nb: 'c"}}"#, 1, "the text, line 2, is not valid YAML: unclosed quote"),
        (r#"{{ternary 1 2 "x"}}"#, 1, "must be a bool"),
        (r#"{{repeat -1 "x"}}"#, 1, "negative"),
        (r#"{{substr 4 2 "hello"}}"#, 1, "outside"),
        (r#"{{slice "é" 1}}"#, 1, "inside a character"),
        (r#"{{first 5}}"#, 1, "must be a list"),
        (r#"{{first .nil}}"#, 1, "missing"),
        (r#"{{set .list "a" 1}}"#, 1, "must be a map"),
        (r#"{{dig "a" "b" 1 (dict "a" 2)}}"#, 1, "looked up in a int"),
        (r#"{{add 9223372036854775807 1}}"#, 1, "64 bits"),
        (r#"{{mod 5 0}}"#, 1, "64 bits"),
        (r#"{{until "x"}}"#, 1, "must be an integer"),
        (r#"{{join 1 .list}}"#, 1, "must be a string"),
    ]);
}

#[test]
fn text_is_cut_between_characters() {
    check(&[(
        r#"{{trunc 2 "日本"}}|{{trunc 4 "日本"}}|{{trunc -4 "日本"}}|{{substr 0 2 "é"}}|{{abbrev 5 "ééé"}}"#,
        "|日|日本|é|é...",
    )]);
}

/// No function panics, whatever it is given, and each says what is wrong.
#[test]
fn any_arguments_do() {
    let arguments = [
        "nil",
        "true",
        "-1",
        "9223372036854775807",
        "1.5",
        "1e300",
        r#""é""#,
        r#""(""#,
        ".none",
        ".m",
        ".mixed",
    ];
    for name in functions::names() {
        for first in arguments {
            any_call(&format!("{{{{{name} {first}}}}}"));
            for second in arguments {
                any_call(&format!("{{{{{name} {first} {second}}}}}"));
                any_call(&format!("{{{{{name} {second} {first} {second}}}}}"));
            }
        }
    }
}

fn any_call(text: &str) {
    if let Err(why) = super::rendered(text) {
        assert_eq!(why.line, Some(1), "{text}");
        assert!(!why.message.is_empty(), "{text}");
    }
}
