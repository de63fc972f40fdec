use super::*;

fn matches(committed: &str, text: &str) -> (usize, usize) {
    matched(committed, text)
}

#[test]
fn printed_text_is_found_in_a_leaf_that_reads_otherwise_now() {
    let rows = [
        ("one tw", "one two", (6, 6)),
        ("one\ntwo", "one", (4, 4)),
        // A long paragraph was cut.
        ("one two three", "one two", (8, 8)),
        ("one **two", "one two three", (9, 7)),
        ("see [the", "see the docs (url)", (8, 7)),
        ("**all**\nnext", "all", (8, 4)),
        ("1\none t", "one two", (7, 5)),
        ("see <br\nmore te", "see\nmore text", (15, 11)),
        // The two have nothing in common: it is printed again.
        ("xyz", "one", (3, 0)),
    ];
    for (committed, text, expected) in rows {
        assert_eq!(matches(committed, text), expected, "{committed:?} of {text:?}");
    }
}

#[test]
fn text_settles_up_to_a_mark_that_may_mean_something() {
    let inline = |text: &str| {
        vec![Inline {
            text: text.to_owned(),
            face: Face::Text,
            marks: Default::default(),
            target: None,
        }]
    };
    for text in ["plain", "a * b", "snake_case_name", "5 < 6", "AT&T; x", "x [1] y", "a_b", "x & y"]
    {
        assert_eq!(unsettled(&inline(text), 0), text.len(), "{text:?}");
    }
    for (text, at) in [
        ("a *b", 1),
        ("a ** b **c", 6),
        ("a _b", 1),
        ("a `b", 1),
        ("see [the", 3),
        ("see [the](ur", 3),
        ("see [the]", 3),
        ("a <br", 1),
        ("a &am", 1),
        ("a ~~b", 1),
        ("see | the", 3),
    ] {
        assert_eq!(unsettled(&inline(text), 0), at, "{text:?}");
        assert_eq!(unsettled(&inline(text), text.len()), text.len(), "{text:?} was printed");
    }
    let code =
        Inline { text: "*p".to_owned(), face: Face::Code, marks: Default::default(), target: None };
    assert_eq!(unsettled(&[code], 0), 2, "code is complete");
}
