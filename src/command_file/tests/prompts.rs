//! Files as people have them, whole.

use super::{parse, run};
use crate::command_file::{FileMessage, Rendered, Role};

fn user(prompt: &str) -> Rendered {
    Rendered { system: None, messages: vec![], prompt: prompt.to_owned() }
}

#[test]
fn a_file_becomes_a_prompt() {
    let text = "
name: greet
short: Greet
flags:
  - name: who
    type: string
    help: Whom
    default: you
  - name: times
    type: int
    required: true
  - name: additional_system
    type: stringList
    default: []
arguments:
  - name: file
    type: stringFromFile
system-prompt: 'Be kind.{{ range .additional_system }} {{ . }}{{ end }}'
prompt: |
  Hello {{ .who }}, {{ .times }} times.
  {{ .file }}
";
    let typed = ["--times", "3", "--additional-system", "Be quick.,Be brief.", "-"];
    let expected = Rendered {
        system: Some("Be kind. Be quick. Be brief.".to_owned()),
        messages: vec![],
        prompt: "Hello you, 3 times.\nfrom stdin\n\n".to_owned(),
    };
    assert_eq!(run(text, &typed), Ok(expected));
}

#[test]
fn flags_that_are_not_typed_are_false() {
    let text = "
prompt: '{{ if .a }}a{{ end }}{{ if .b }}b{{ end }}{{ if .c }}c{{ end }}{{ if .d }}d{{ end }}.'
flags:
  - {name: a, type: bool}
  - {name: b, type: stringList}
  - {name: c, type: fileList, default: []}
  - {name: d, type: stringFromFile, default: ''}
";
    assert_eq!(run(text, &[]), Ok(user(".")));
    assert_eq!(run(text, &["--a", "--b=x", "--d=-"]), Ok(user("abd.")));
}

#[test]
fn parts_are_shared() {
    let text = r#"
name: review
flags:
  - name: style
    type: choice
    choices: [short, long]
    default: short
  - name: bracket
    type: bool
    default: true
prompt: |
  {{ define "context" -}}
  Answer in a {{ .style }} way.
  {{- end }}
  {{- template "context" . }}

  Review it.
  {{ if .bracket }}{{ template "context" . }}{{ end }}
"#;
    let expected = "Answer in a short way.\n\nReview it.\nAnswer in a short way.\n";
    assert_eq!(run(text, &[]), Ok(user(expected)));
    let expected = "Answer in a long way.\n\nReview it.\n\n";
    assert_eq!(run(text, &["--style", "long", "--bracket=false"]), Ok(user(expected)));
}

#[test]
fn messages_are_said_in_turn() {
    let text = "
flags: [{name: q, type: string, default: 3+4}]
system-prompt: Calculate.
messages:
  - 1+1
  - role: assistant
    content: '2'
  - ' '
  - {role: user, text: '{{ .q }}'}
";
    let message = |role, text: &str| FileMessage { role, text: text.to_owned() };
    let expected = Rendered {
        system: Some("Calculate.".to_owned()),
        messages: vec![message(Role::User, "1+1"), message(Role::Assistant, "2")],
        prompt: "3+4".to_owned(),
    };
    assert_eq!(run(text, &[]), Ok(expected));
}

#[test]
fn what_was_said_before_is_no_template() {
    let text = "messages: [{text: 'a {{ .q }}'}, {role: assistant, text: '{{'}]\nprompt: b";
    let message = |role, text: &str| FileMessage { role, text: text.to_owned() };
    let messages = vec![message(Role::User, "a {{ .q }}"), message(Role::Assistant, "{{")];
    let expected = Rendered { system: None, messages, prompt: "b".to_owned() };
    assert_eq!(run(text, &[]), Ok(expected));
    let error = run(&format!("{text}\nmessages-template: true"), &[]).expect_err("no template");
    assert!(error.contains("cmd.yaml:1: the template in `messages[1]`"), "{error}");
}

/// As Pinocchio renders `messages`, which are strings there.
#[test]
fn messages_that_are_strings_are_templates() {
    let text = "flags: [{name: q, type: string, default: x}]\n\
                messages: ['a {{ .q }}', {text: 'b {{ .q }}'}, c]\nprompt: d";
    let check = |more: &str, expected: [&str; 3], warnings: usize| {
        let text = format!("{text}{more}");
        let rendered = run(&text, &[]).expect("messages");
        let texts = rendered.messages.iter().map(|message| message.text.as_str());
        assert_eq!(texts.collect::<Vec<_>>(), expected, "{text}");
        let file = parse(&text).expect("a file");
        assert_eq!(file.warnings.len(), warnings, "{text}: {:?}", file.warnings);
    };
    check("", ["a x", "b {{ .q }}", "c"], 1);
    check("\nmessages-template: true", ["a x", "b x", "c"], 0);
    check("\nmessages-template: false", ["a {{ .q }}", "b {{ .q }}", "c"], 0);
    // Where no message follows, the last one is the prompt.
    let only = "messages: [a, {text: '{{ 1 }}'}]\nmessages-template: false";
    assert_eq!(run(only, &[]).map(|rendered| rendered.prompt), Ok("1".to_owned()));
}

#[test]
fn an_answer_at_the_end_stays_a_message() {
    let text = "messages: [hi, {role: assistant, text: hello}]";
    let rendered = run(text, &[]).expect("a prompt");
    assert_eq!((rendered.messages.len(), rendered.prompt.as_str()), (2, ""));
}

#[test]
fn a_system_prompt_may_be_all() {
    let rendered = run("system-prompt: Be kind.", &[]).expect("a prompt");
    assert_eq!(rendered.system.as_deref(), Some("Be kind."));
    assert_eq!(rendered.prompt, "");
}

#[test]
fn json_is_yaml() {
    let text = r#"{"name": "j", "flags": [{"name": "a", "type": "int", "default": 2}], "prompt": "{{ .a }}\nb"}"#;
    assert_eq!(run(text, &[]), Ok(user("2\nb")));
}

#[test]
fn files_and_tables_are_gone_through() {
    let text = r#"
name: commit-message
short: Write a commit message
flags:
  - name: diff
    type: file
    help: The change
  - name: code
    type: fileList
    default: []
  - name: people
    type: objectListFromFile
    default:
      - {name: Ada, langs: [ada, c]}
      - {name: Bob, langs: []}
  - name: labels
    type: keyValue
    default: {area: core}
prompt: |
  {{ if .diff }}--- BEGIN DIFF
  {{ .diff.Content -}}
  --- END DIFF{{ end }}
  {{ range .code }}Path: {{ .Path }}
  {{ .Content }}{{ else }}no code{{ end }}
  {{ range $i, $p := .people }}{{ if $i }}, {{ end }}{{ $p.name }}{{ range $p.langs }} {{ . }}{{ end }}{{ end }}
  {{ range $k, $v := .labels }}{{ $k }}={{ $v }};{{ end }}
"#;
    let expected = "\nno code\nAda ada c, Bob\narea=core;\n";
    assert_eq!(run(text, &[]), Ok(user(expected)));
    let expected = "--- BEGIN DIFF\nfrom stdin\n--- END DIFF\nno code\nAda ada c, Bob\nb=2;c=3;\n";
    assert_eq!(run(text, &["--diff", "-", "--labels", "c:3,b=2"]), Ok(user(expected)));
    let expected = "\nPath: stdin\nfrom stdin\n\nAda ada c, Bob\narea=core;\n";
    assert_eq!(run(text, &["--code", "-"]), Ok(user(expected)));
}

#[test]
fn a_prompt_can_tell_the_time() {
    let rendered = run("prompt: It is {{ now | date \"2006-01-02 15:04\" }}.\n", &[]);
    assert_eq!(rendered.map(|rendered| rendered.prompt), Ok("It is 2026-11-22 14:30.".to_owned()));
}
