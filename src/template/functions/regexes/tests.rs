//! Expressions against the results of Go's `regexp`.

use super::split;
use super::syntax::translated;
use regex::Regex;

/// What `ReplaceAllString` with `-` makes of the text.
#[track_caller]
fn check(source: &str, text: &str, expected: &str) {
    let translated = translated(source).expect(source);
    let found = Regex::new(&translated).expect(source).replace_all(text, "-").into_owned();
    assert_eq!(found, expected, "{source} as {translated}");
}

#[test]
fn classes_of_perl_have_ascii_only() {
    check(r"\W+", "héllo wörld", "h-llo-w-rld");
    check(r"\w+", "héllo", "-é-");
    check(r"\d", "٣3", "٣-");
    check(r"\D+", "٣3é", "-3-");
    check(r"\s", "a\u{a0}b c\u{b}", "a\u{a0}b-c\u{b}");
    check(r"\S+", "a\u{a0}b c", "- -");
    check(r"\b", "é a", "é -a-");
    check(r"\B", "ab", "a-b");
    check(r"\b{start}", "{start}", "{start}");
    check(r"[\w]+", "héllo", "-é-");
    check(r"[^\w]", "hé o", "h--o");
    check(r"[\W]", "hé_o", "h-_o");
    check(r"[^\W]", "hé", "-é");
    check(r"[\s\d]", "1 a", "--a");
    check(r"(?i)\w", "\u{212a}ſé", "--é");
    check(r"(?i)é", "É", "-");
}

#[test]
fn classes_have_no_operators() {
    check("[a&&b]", "a&b", "---");
    check("[a~~b]", "a~b", "---");
    check("[a-c--]", "b-d", "--d");
    check("[[a]", "[a]", "--]");
    check("[]a]", "]a", "--");
    check("[^]]", "a]", "-]");
    check("[a-]", "a-b", "--b");
    check("[-a]", "a-b", "--b");
    check(r"[a\-c]", "abc-", "-b--");
    check(r"[\x41-\x{43}]", "ABCD", "---D");
    check("[[:alpha:]é]", "aé1", "--1");
    check("[[:^alpha:]]", "aé1", "a--");
    check("[[:a]", ":[a", "---");
    check(r"[\pN\p{Greek}]", "aβ٣", "a--");
}

#[test]
fn escapes_and_literals() {
    check(r"\Qa.b\E", "a.b axb", "- axb");
    check(r"\Qa.b", "a.b axb", "- axb");
    check(r"\Qab\E+", "abbb", "-");
    check("a{,2}", "a{,2} aa", "- aa");
    check("a{01}", "a{01}a", "-a");
    check("a{ 1 }", "a{ 1 }", "-");
    check("a{1,2}", "aaa", "--");
    check("a{2}", "aaa", "-a");
    check("a{2,}", "aaa", "-");
    check("{", "{", "-");
    check("}]", "}]", "-");
    check(r"\p{^Greek}", "aβ", "-β");
    check(r"\P{^Greek}", "aβ", "a-");
    check(r"\pL", "é1", "-1");
    check(r"\101\08", "A\u{0}8", "-");
    check(r"\<a\>\_", "<a>_", "-");
    check(r"\a\f\v\t", "\u{7}\u{c}\u{b}\t", "-");
    check("(?P<n>a)(?<m>b)(?-i:c)", "abc", "-");
    check("(?U)a+", "aa", "--");
    check("(?s).#", "\n#", "-");
}

#[test]
fn what_go_refuses_is_refused() {
    for source in [
        "[a--b]",
        "[b-a]",
        r"[a-\d]",
        "[a",
        "[",
        "[[:foo:]]",
        r"[\Qa\E]",
        r"[\b]",
        "a{1001}",
        r"\1",
        r"\é",
        r"\u0041",
        r"\E",
        "(?x)a b",
        "(?u)a",
        "a(?=b)",
        "(a",
        "a)",
        r"a\",
        r"\p",
        r"\p{Greek",
        r"\x{110000}",
        r"\x4",
        "*",
    ] {
        let built = translated(source).ok().and_then(|translated| Regex::new(&translated).ok());
        assert!(built.is_none(), "{source}");
    }
}

#[test]
fn texts_are_split() {
    let check = |source: &str, text: &str, most: i64, expected: &[&str]| {
        let between = Regex::new(source).expect(source);
        assert_eq!(split(&between, text, super::most(most)), expected, "{source} {text} {most}");
    };
    check("a", "banana", -1, &["b", "n", "n", ""]);
    check("a", "banana", 0, &[]);
    check("a", "banana", 2, &["b", "nana"]);
    check("", "héllo", -1, &["h", "é", "l", "l", "o"]);
    check("", "héllo", 2, &["h", "éllo"]);
    check("a*", "abaabaccadaaae", 5, &["", "b", "b", "c", "cadaaae"]);
    check("a", "", -1, &[""]);
    check("", "", -1, &[]);
    check(",", "a,", -1, &["a", ""]);
    check(r"\s*", " a b ", -1, &["", "a", "b", ""]);
}
