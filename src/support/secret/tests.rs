//! Keys in every spelling.

use super::*;

#[test]
fn a_secret_is_trimmed_and_shows_itself_to_nobody() {
    let secret = Secret::new(" sk-abc\n").expect("not empty");
    assert_eq!(secret.expose(), "sk-abc");
    assert_eq!(format!("{secret:?}"), "Secret([redacted])");
    assert_eq!(Secret::new(" \n"), None);
}

#[test]
fn text_of_others_loses_the_key_and_every_userinfo() {
    let check = |text: &str, redacted: &str| {
        let secret = Secret::new("sk-abcdef").expect("not empty");
        assert_eq!(secret.redact(text), redacted);
    };
    check("nothing here", "nothing here");
    check("bad key sk-abcdef, sk-abcdefg", "bad key [redacted], [redacted]g");
    check("http://u:p@host/a@b and https://h", "http://host/a@b and https://h");
    check("a://sk-abcdef@h b://u@v@h?x c://", "a://h b://h?x c://");
    check("http://u:\u{e9}@h", "http://h");
}

#[test]
fn a_short_key_is_no_part_of_a_word() {
    let check = |key: &str, text: &str, redacted: &str| {
        assert_eq!(Secret::new(key).expect("not empty").redact(text), redacted, "{key}");
    };
    check("7", "1978 answers", "1978 answers");
    check("7", "bad key 7, \"7\" 7", "bad key [redacted], \"[redacted]\" [redacted]");
    check("llama9", "llama9-server, llama9.", "llama9-server, [redacted].");
    check("llama9", r#"{"key":"\nllama9"#, "{\"key\":\" [redacted]");
    check("abCdEfg", "abCdEfgh, abCdEfg", "abCdEfgh, [redacted]");
    check("7-bytes", "77-bytes", "77-bytes");
    check("8--bytes", "88--bytes", "8[redacted]");
}

#[test]
fn a_key_that_is_an_ordinary_word_stays_in_what_others_write() {
    for key in ["x", "no", "none", "ollama", "Ollama", "EMPTY"] {
        let secret = Secret::new(key).expect("not empty");
        let text = format!("try {key} pull; {key}... {key}*** {}", &key[..1]);
        assert_eq!(secret.redact(&text), text);
        assert_eq!(secret.redact_cut(&text), text);
        assert_eq!(secret.redact(&format!("http://{key}@h {key}")), format!("http://h {key}"));
    }
}

const ODD_KEYS: [&str; 6] =
    ["sk/ab\"cd+ef==", r"sk\ab\\cd", "sk%41%2541%", "a&amp;b<c>'d", "sk ab", "%u\\%;&#"];

/// The spellings of `text` that servers and proxies use.
fn spellings(text: &str) -> Vec<String> {
    let each = |spell: &dyn Fn(char) -> String| text.chars().map(spell).collect::<String>();
    let is_plain = |c: char| c.is_alphanumeric() || "-._~".contains(c);
    let json = serde_json::Value::from(text).to_string();
    let json = json[1..json.len() - 1].to_owned();
    vec![
        json.replace('/', r"\/"),
        json,
        each(&|c| if is_plain(c) { c.into() } else { format!("\\u{:04x}", u32::from(c)) }),
        each(&|c| if is_plain(c) { c.into() } else { format!("\\u{:04X}", u32::from(c)) }),
        each(&|c| if is_plain(c) { c.into() } else { format!("%{:02x}", u32::from(c)) }),
        each(&|c| if is_plain(c) { c.into() } else { format!("%{:02X}", u32::from(c)) }),
        each(&|c| if is_plain(c) { c.into() } else { format!("&#{};", u32::from(c)) }),
        each(&|c| if is_plain(c) { c.into() } else { format!("&#x{:X};", u32::from(c)) }),
        text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;"),
    ]
}

#[test]
fn a_key_is_known_in_every_spelling_of_a_spelling() {
    for key in ODD_KEYS {
        let secret = Secret::new(key).expect("not empty");
        let all: String = key.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        assert_eq!(secret.redact(&all), "[redacted]", "{key}");
        for once in spellings(key) {
            for twice in spellings(&once) {
                for text in [&once, &twice] {
                    let redacted = secret.redact(&format!("key ({text})."));
                    assert_eq!(redacted, "key ([redacted]).", "{key} as {text}");
                }
            }
        }
    }
}

#[test]
fn a_key_that_is_cut_is_known_in_every_spelling_of_a_spelling() {
    for key in ODD_KEYS {
        let secret = Secret::new(key).expect("not empty");
        for once in spellings(key) {
            for text in spellings(&once) {
                for (end, _) in text.char_indices() {
                    let redacted = secret.redact_cut(&format!("({key}) ({}", &text[..end]));
                    // A spelling may be complete before its end.
                    let rest = redacted.strip_prefix("([redacted]) (");
                    assert!(matches!(rest, Some("" | "[redacted]")), "{key}: {redacted}");
                }
            }
        }
    }
}

#[test]
fn the_end_of_a_cut_text_stays_where_no_key_begins() {
    let check = |text: &str, redacted: &str| {
        let secret = Secret::new("sk-abcdef").expect("not empty");
        assert_eq!(secret.redact_cut(text), redacted);
    };
    check("", "");
    check(r"a\/b sk-abcdef", r"a\/b [redacted]");
    check("it failed: sk-ab, then", "it failed: sk-ab, then");
    check("100% sure that & why", "100% sure that & why");
    check("sk-abcde", "");
    check("ends", "end");
    check("sk-a\u{FFFD}", "");
}

#[test]
fn escapes_stay_where_no_key_is() {
    let secret = Secret::new("sk-abcdef").expect("not empty");
    for text in [r#"{"a\/b":"\u0041%41\\&amp;"}"#, "%", "100%zz", r"\u12", "&;", "&#;", "&#x+1;"] {
        assert_eq!(secret.redact(text), text);
    }
    assert_eq!(unescaped("\u{e9}\\\u{e9}%c3%e9"), "\u{e9}\\\u{e9}%c3%e9");
}

const KEY: &str = "sk-proj-Ab12Cd34Ef56Gh78wxyz";

/// `text` loses the key, and everything that would reveal it.
fn check_forms(text: &str, redacted: &str) {
    assert_eq!(Secret::new(KEY).expect("not empty").redact(text), redacted, "{text}");
}

#[test]
fn upper_and_lower_case_are_one() {
    check_forms(&format!("bad key {}.", KEY.to_uppercase()), "bad key [redacted].");
    check_forms(&format!("bad key {}.", KEY.to_lowercase()), "bad key [redacted].");
    let short = Secret::new("Llama9").expect("not empty");
    assert_eq!(short.redact("LLAMA9 llama9-server"), "[redacted] llama9-server");
}

#[test]
fn a_masked_key_is_known_by_what_stands_around_the_mask() {
    check_forms(
        "Incorrect API key provided: sk-proj-********************wxyz. You can",
        "Incorrect API key provided: [redacted]. You can",
    );
    for masked in [
        "sk-ab****wxyz",
        "sk-proj-A***",
        "***wxyz",
        "sk-...wxyz",
        "sk-p\u{2026}wxyz",
        "SK-PROJ-AB\u{2022}\u{2022}\u{2022}\u{2022}WXYZ",
        "sk-projxxxxxxxxwxyz",
        "sk-proj-Ab12***Gh78wxyz",
        "sk-...***wxyz",
        "sk-proj-***other",
    ] {
        let redacted = Secret::new(KEY).expect("not empty").redact(&format!("bad: ({masked})."));
        let is_gone = !redacted.contains("wxyz") && !redacted.contains("proj");
        assert!(
            is_gone && redacted.starts_with("bad: (") && redacted.ends_with(")."),
            "{redacted}"
        );
    }
    for other in ["it failed... then", "a***b", "***", "xxx", "# ### ####", "and so on \u{2026}"] {
        check_forms(other, other);
    }
}

#[test]
fn a_key_in_base64_is_known_wherever_it_stands() {
    use data_encoding::{BASE64, BASE64URL_NOPAD};
    for before in ["", ":", "u:", "Bearer "] {
        for after in ["", "x", "xy"] {
            let plain = format!("{before}{KEY}{after}");
            check_forms(
                &format!("Basic {}, no", BASE64.encode(plain.as_bytes())),
                "Basic [redacted], no",
            );
            let in_url = BASE64URL_NOPAD.encode(plain.as_bytes());
            check_forms(&format!("a={in_url}&b"), "a=[redacted]&b");
        }
    }
    let cut = format!("Basic {}", &BASE64.encode(KEY.as_bytes())[..20]);
    assert_eq!(Secret::new(KEY).expect("not empty").redact_cut(&cut), "Basic ");
    check_forms("c2stcHJvag== is another text", "c2stcHJvag== is another text");
}
