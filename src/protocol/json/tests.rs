//! Strictness, depth, numbers, and lines that are one line for every reader.

use super::*;
use serde::Serializer;
use serde_json::json;

fn nested(open: &str, close: &str, levels: usize) -> String {
    format!("{}{}", open.repeat(levels), close.repeat(levels))
}

#[test]
fn depth() {
    assert_eq!(well_formed(&nested("[", "]", DEPTH_MAX)), Ok(()));
    for levels in [DEPTH_MAX + 1, 100_000, 1_000_000] {
        assert!(well_formed(&nested("[", "]", levels)).is_err());
        assert!(well_formed(&"[".repeat(levels)).is_err());
        assert!(well_formed(&"{\"a\":".repeat(levels)).is_err());
    }
}

#[test]
fn strictness() {
    for text in ["1", " \t{} \r\n", r#"{"a":{"a":[{"a":1},{"a":1}]}}"#, r#""\ud83d\ude00""#] {
        assert_eq!(well_formed(text), Ok(()), "{text}");
    }
    let wrong = [
        r#"{"a":1,"b":2,"a":3}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"[[{"x":{"é":1,"\u00e9":1}}]]"#,
        r#"["\ud800"]"#,
        r#"{"\udc00":1}"#,
        "{} {}",
        "{}x",
        "{}\0",
        "",
        "[1,]",
        "NaN",
        "'a'",
        "1e999",
        "\"a\tb\"",
    ];
    for text in wrong {
        assert!(well_formed(text).is_err(), "{text}");
    }
}

#[test]
fn many_keys() {
    for keys in [10, 200_000] {
        let members: Vec<String> = (0..keys).map(|key| format!("\"{key}\":0")).collect();
        assert_eq!(well_formed(&format!("{{{}}}", members.join(","))), Ok(()));
        let twice = format!("{{{},\"0\":0}}", members.join(","));
        assert!(well_formed(&twice).is_err());
    }
}

#[test]
fn long_errors_are_cut() {
    let text = format!("\"{}\"", "é".repeat(1_000_000));
    let error = read::<Number<i32>>(&text).expect_err("not a number").to_string();
    assert!(error.len() <= ERROR_BYTES_MAX + '…'.len_utf8(), "{}", error.len());
    assert!(error.starts_with("found text \"éé") && error.ends_with('…'), "{error}");
}

#[test]
fn every_integer_survives() {
    for value in [0, 1, u64::MAX, u64::MAX - 1, (1 << 53) + 1] {
        assert_eq!(read(&value.to_string()), Ok(Number(value)));
        assert_eq!(read(&format!("\"{value}\"")), Ok(Number(value)));
    }
    for value in [i64::MIN, i64::MIN + 1, -1, i64::MAX] {
        assert_eq!(read(&value.to_string()), Ok(Number(value)));
        assert_eq!(read(&format!("\"{value}\"")), Ok(Number(value)));
    }
    assert_eq!(read("-9223372036854775809").ok(), None::<Number<i64>>);
}

#[test]
fn long_integers_are_found() {
    let longer = "18446744073709551616";
    let is_found = [
        longer.to_owned(),
        "-9223372036854775809".to_owned(),
        format!("{{\"a\\\"1\":[true,\"\\\\\",{longer}]}}"),
        format!("{{\"a\":{longer} }}"),
    ];
    for text in is_found {
        assert!(has_long_integer(&text), "{text}");
    }
    let is_none = [
        "18446744073709551615".to_owned(),
        "[-9223372036854775808,-0,1e30,1.5,true,false,null]".to_owned(),
        format!("{{\"{longer}\":\"\\\"{longer}\",\"b\":{longer}.5,\"c\":{longer}e0}}"),
    ];
    for text in is_none {
        assert!(!has_long_integer(&text), "{text}");
    }
}

#[test]
fn lines() {
    let mut lines = Vec::new();
    let text = "a\u{85}\u{2028}\u{2029}b\n\r\u{b}\u{c}\u{1c}é—’ÂâZ\u{2027}\u{202a}\u{84}\u{86}";
    write_line(&json!({ text: text }), &mut lines).expect("JSON");
    write_line(&json!({}), &mut lines).expect("JSON");
    let lines = String::from_utf8(lines).expect("UTF-8");
    assert_eq!(lines.matches('\n').count(), 2);
    assert!(lines.starts_with(r#"{"a\u0085\u2028\u2029b\n\r\u000b\f\u001cé—’ÂâZ"#), "{lines}");
    let first = lines.lines().next();
    assert_eq!(first.map(read::<serde_json::Value>), Some(Ok(json!({ text: text }))));
}

#[test]
fn a_line_is_written_whole_or_not_at_all() {
    struct Fails;
    impl Serialize for Fails {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no"))
        }
    }
    let mut lines = b"{}\n".to_vec();
    assert!(write_line(&(1, "a", Fails), &mut lines).is_err());
    assert_eq!(lines, b"{}\n");
}

/// With that feature, which any crate of the build can enable, numbers arrive as maps.
#[test]
fn arbitrary_precision_is_off() {
    assert!(serde_json::from_str::<serde_json::Value>("1e400").is_err());
    assert_eq!(read("1.00"), Ok(json!(1.0)));
}
