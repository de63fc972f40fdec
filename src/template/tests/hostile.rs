//! Templates that ask for too much get an error, soon.

use super::{Template, Types, check, check_errors, now, rendered};
use serde_json::json;

#[test]
fn endless_templates_end() {
    check_errors(&[
        (r#"{{define "a"}}{{template "a"}}{{end}}{{template "a"}}"#, 1, "levels deep"),
        (
            r#"{{define "a"}}{{template "b"}}{{end}}{{define "b"}}{{template "a"}}{{end}}{{template "a"}}"#,
            1,
            "levels deep",
        ),
        (r#"{{repeat 100000000 "abc"}}"#, 1, "MiB"),
        (r#"{{repeat 9223372036854775807 "abc"}}"#, 1, "MiB"),
        ("{{until 100000000}}", 1, "more than"),
        ("{{untilStep 0 9223372036854775807 1}}", 1, "more than"),
        ("{{seq 1 100000000}}", 1, "more than"),
        (r#"{{indent 100000000 "a"}}"#, 1, "MiB"),
        (r#"{{indent 9223372036854775807 "a"}}"#, 1, "MiB"),
        (r#"{{padLeft "a" 100000000}}"#, 1, "MiB"),
        (r#"{{$x := "0123456789"}}{{range until 60}}{{$x = print $x $x}}{{end}}"#, 1, "too much"),
        (
            r#"{{$x := "0123456789"}}{{range until 60}}{{$x = printf "%s%s" $x $x}}{{end}}"#,
            1,
            "too much",
        ),
        (r#"{{$x := "ab"}}{{range until 60}}{{$x = replace "a" $x $x}}{{end}}"#, 1, "MiB"),
        (r#"{{$x := "ab"}}{{range until 60}}{{$x = regexReplaceAll "a" $x $x}}{{end}}"#, 1, "MiB"),
        ("{{$x := list 1}}{{range until 60}}{{$x = concat $x $x}}{{end}}", 1, "too much"),
        ("{{$x := list 1}}{{range until 60}}{{$x = list $x $x}}{{end}}{{$x}}", 1, "too much"),
        (
            "{{$x := list 1}}{{range until 60}}{{$x = list $x $x}}{{end}}{{toJson $x}}",
            1,
            "too much",
        ),
        (
            "{{$x := list 1}}{{range until 60}}{{$x = list $x $x}}{{end}}{{deepEqual $x $x}}",
            1,
            "too much",
        ),
        ("{{$x := list 1}}{{range until 1000}}{{$x = list $x}}{{end}}", 1, "levels deep"),
        (r#"{{$d := dict}}{{$_ := set $d "d" $d}}{{$d}}"#, 1, "contains itself"),
        (r#"{{$d := dict}}{{$_ := set $d "d" $d}}{{toJson $d}}"#, 1, "levels deep"),
        (
            r#"{{$d := dict}}{{$_ := set $d "d" $d}}{{deepEqual $d (dict "d" $d)}}"#,
            1,
            "levels deep",
        ),
        (
            r#"{{$d := dict}}{{$_ := set $d "d" $d}}{{$e := dict}}{{$_ := set $e "d" $e}}{{merge $d $e}}"#,
            1,
            "deep",
        ),
        (r#"{{regexMatch "(a{1000}){1000}" "a"}}"#, 1, "not a valid regular expression"),
    ]);
}

#[test]
fn long_chains_of_maps_are_freed() {
    let text = r#"{{$root := dict}}{{$at := $root}}{{range until 50000}}{{$next := dict}}{{$_ := set $at "n" $next}}{{$at = $next}}{{end}}{{len $root}}"#;
    assert_eq!(rendered(text).expect("a template that does"), "1");
}

#[test]
fn deep_templates_are_refused() {
    let nested = |open: &str, inside: &str, close: &str| {
        Template::parse("t", &(open.repeat(5000) + inside + &close.repeat(5000)), &json!({}))
    };
    assert!(nested("{{if 1}}", "", "{{end}}").is_err());
    assert!(nested("{{block \"b\" .}}", "", "{{end}}").is_err());
    let parentheses = format!("{{{{{}1{}}}}}", "(".repeat(5000), ")".repeat(5000));
    assert!(Template::parse("t", &parentheses, &json!({})).is_err());
    let branches = format!("{{{{if 0}}}}{}{{{{end}}}}", "{{else if 0}}".repeat(50_000));
    assert!(Template::parse("t", &branches, &json!({})).is_err());
    let chain = format!("{{{{if 0}}}}{}", "{{else if 0}}".repeat(50));
    assert!(Template::parse("t", &(chain.repeat(80) + &"{{end}}".repeat(80)), &json!({})).is_err());
    let most = format!("{{{{if 0}}}}{}x{{{{end}}}}", "{{else if 0}}".repeat(148) + "{{else}}");
    assert_eq!(rendered(&most).expect("a template that does"), "x");
    let variables: String = (0..5000).map(|n| format!("{{{{$x{n} := 1}}}}")).collect();
    assert!(Template::parse("t", &variables, &json!({})).is_err());
    let fields = format!("{{{{{}}}}}", ".a".repeat(100_000));
    assert_eq!(rendered(&fields).expect("a template that does"), "<no value>");
}

#[test]
fn values_that_are_too_deep_are_refused() {
    let deep = (0..1000).fold(json!(1), |inside, _| json!([inside]));
    let error = Template::parse("t", "{{.}}", &json!({})).expect("a template that does").render(
        &json!({"deep": deep}),
        &Types::new(),
        &now(),
    );
    assert!(error.expect_err("what is too much").message.contains("levels deep"));
}

#[test]
fn much_to_do_is_done() {
    let items: Vec<_> = (0..100_000).map(|n| json!({"Path": format!("f{n}")})).collect();
    let values = json!({"items": items, "big": "x y\n".repeat(2_500_000)});
    let text = "{{range $i, $f := .items}}{{if $i}},{{end}}{{$f.Path}}{{end}}";
    let found = Template::parse("t", text, &json!({}))
        .expect("a template that does")
        .render(&values, &Types::new(), &now())
        .expect("a template that does");
    assert_eq!(found.matches(',').count(), 99_999);
    let text = "{{.big}}{{len .big}} {{.big | trim | indent 1 | len}} {{contains \"z\" .big}}";
    let found = Template::parse("t", text, &json!({}))
        .expect("a template that does")
        .render(&values, &Types::new(), &now())
        .expect("a template that does");
    assert!(found.ends_with("10000000 12499999 false"), "{}", &found[found.len() - 40..]);
    let text = "{{.big}}{{.big}}{{.big}}{{.big}}{{.big}}{{.big}}{{.big}}";
    let error = Template::parse("t", text, &json!({}))
        .expect("a template that does")
        .render(&values, &Types::new(), &now())
        .expect_err("what is too much");
    assert!(error.message.contains("64 MiB"), "{error}");
}

#[test]
fn a_list_grows_item_by_item() {
    check(&[
        ("{{$a := list}}{{range until 100000}}{{$a = append $a .}}{{end}}{{len $a}}", "100000"),
        ("{{$a := list}}{{range until 100000}}{{$a = . | push $a}}{{end}}{{last $a}}", "99999"),
        // The list under its other name is not changed.
        ("{{$a := list 1}}{{$b := $a}}{{$a = append $a 2}}{{$b}}{{$a}}", "[1][1 2]"),
        ("{{$a := list 1}}{{range $a}}{{$a = append $a 2}}{{end}}{{$a}}", "[1 2]"),
        ("{{$a := list 1}}{{$a = append $a $a}}{{$a = append $a $a}}{{$a}}", "[1 [1] [1 [1]]]"),
        ("{{$a := list 1}}{{$a = $a | append $a}}{{$a = append $a 2 | len}}{{$a}}", "3"),
        ("{{$a := .list}}{{$a = append $a 1}}{{.list}}{{$a}}", "[a b c][a b c 1]"),
    ]);
    check_errors(&[
        ("{{$a := list}}{{$a = append $a 1 2}}", 1, "append: want 2, got 3"),
        ("{{$a := list}}{{$a = push $a}}", 1, "push: want 2, got 1"),
        ("{{$a := 1}}{{$a = append $a 1}}", 1, "argument 1 must be a list"),
        ("{{$a := list}}{{range until 1000}}{{$a = append $a $a}}{{end}}", 1, "levels deep"),
        (
            "{{$a := list}}{{range until 1000}}{{$b := list}}{{$b = append $b $a}}{{$a = $b}}{{end}}",
            1,
            "levels deep",
        ),
    ]);
}
