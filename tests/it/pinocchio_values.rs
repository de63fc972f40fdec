//! Values of files and flags as Pinocchio has them: what is expected here was recorded from yaml.v3 3.0.1
//! (which it reads maps and lists with), yaml.v2 2.4.0 (which it parses files with), sprig and `strconv`.

use crate::once::run;
use crate::server::Folder;
use std::fs;

/// A document with scalars that Go and JSON see differently.
const DOCUMENT: &str = "day: 2024-01-02\nat: 2024-01-02T10:00:00.5+02:00\nspaced: 2024-01-02 3:04:05\n\
    quoted: '2024-01-02'\nbig: 18446744073709551615\nhuge: 18446744073709551616\n\
    aye: yes\nnay: Off\nnan: .nan\ninf: -.inf\noctal: 0o17\nhex: 0x_ff\neight: 08\nlate: 2024-13-01\n";

/// What `{{ .x }} {{ kind }}` prints of each name of the document.
const SHOWN: &str =
    "{{ range $k, $v := DATA }}{{ $k }}: {{ $v }} {{ printf \"%T\" $v }}\n{{ end }}";

/// The prompt of this template, with a flag `x` of this type and this value.
#[track_caller]
fn prompt(folder: &Folder, kind: &str, template: &str, value: &str) -> String {
    let lines = template.replace('\n', "\n  ");
    let file = format!("flags: [{{name: x, type: {kind}}}]\nprompt: |-\n  {lines}\n");
    fs::write(folder.path("f.yaml"), file).expect("a file");
    let ended = run(folder, &["run-command", "f.yaml", "--x", value, "--print-prompt"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    ended.stdout.trim_end().to_owned()
}

#[test]
fn scalars_of_yaml_have_gos_types() {
    let folder = Folder::new();
    fs::write(folder.path("d.yaml"), DOCUMENT).expect("a file");
    fs::write(folder.path("rows.yaml"), format!("- {}", DOCUMENT.trim_end().replace('\n', "\n  ")))
        .expect("a file");
    let v3 = "at: 2024-01-02 10:00:00.5 +0200 +0200 time.Time\naye: yes string\n\
        big: 18446744073709551615 uint64\nday: 2024-01-02 00:00:00 +0000 UTC time.Time\neight: 8 float64\nhex: 255 int\n\
        huge: 1.8446744073709552e+19 float64\ninf: -Inf float64\nlate: 2024-13-01 string\n\
        nan: NaN float64\nnay: Off string\noctal: 15 int\nquoted: 2024-01-02 string\n\
        spaced: 2024-01-02 03:04:05 +0000 UTC time.Time";
    let object = prompt(&folder, "objectFromFile", &SHOWN.replace("DATA", ".x"), "d.yaml");
    assert_eq!(object, v3);
    let rows = SHOWN.replace("DATA", "(index .x 0)");
    assert_eq!(prompt(&folder, "objectListFromFile", &rows, "rows.yaml"), v3);
    // A single map is a list of one.
    assert_eq!(prompt(&folder, "objectListFromFile", &rows, "d.yaml"), v3);
    let v2 = "at: 2024-01-02T10:00:00.5+02:00 string\naye: true bool\nbig: 18446744073709551615 uint64\n\
        day: 2024-01-02 string\neight: 8 float64\nhex: 255 int\n\
        huge: 1.8446744073709552e+19 float64\ninf: -Inf float64\nlate: 2024-13-01 string\n\
        nan: NaN float64\nnay: false bool\noctal: 15 int\nquoted: 2024-01-02 string\n\
        spaced: 2024-01-02 3:04:05 string";
    let parsed = SHOWN.replace("DATA", ".x.ParsedContent");
    assert_eq!(prompt(&folder, "file", &parsed, "d.yaml"), v2);
    let kinds = "{{ .x.IsObject }} {{ .x.IsList }} {{ .x.FileType }} {{ .x.ParseError }}";
    assert_eq!(prompt(&folder, "file", kinds, "d.yaml"), "true false YAML <nil>");
    assert_eq!(prompt(&folder, "file", kinds, "rows.yaml"), "false true YAML <nil>");
}

#[test]
fn times_and_large_integers_of_yaml_can_be_used() {
    let folder = Folder::new();
    fs::write(folder.path("d.yaml"), DOCUMENT).expect("a file");
    let cases = [
        (
            "{{ .x.day.Format \"Jan 2\" }} {{ date \"2006\" .x.day }} {{ .x.day.Year }}",
            "Jan 2 2024 2024",
        ),
        ("{{ if .x.at.Before .x.day }}a{{ else }}b{{ end }}", "b"),
        (
            "{{ toJson .x.day }} {{ toJson .x.big }} {{ toJson .x.at }}",
            "\"2024-01-02T00:00:00Z\" 18446744073709551615 \"2024-01-02T10:00:00.5+02:00\"",
        ),
        (
            "{{ printf \"%d %x %v\" .x.big .x.big .x.big }}",
            "18446744073709551615 ffffffffffffffff 18446744073709551615",
        ),
        (
            "{{ gt .x.big 1 }} {{ lt .x.big 1 }} {{ eq .x.big .x.big }} {{ kindOf .x.big }}",
            "true false true uint64",
        ),
        (
            "[{{ toJson .x.nan }}] [{{ toJson .x.inf }}] [{{ toPrettyJson .x }}] {{ .x.nan }}",
            "[] [] [] NaN",
        ),
        ("{{ .x.aye }}{{ if eq .x.aye \"yes\" }}!{{ end }}", "yes!"),
    ];
    for (template, expected) in cases {
        assert_eq!(prompt(&folder, "objectFromFile", template, "d.yaml"), expected, "{template}");
    }
}

#[test]
fn what_json_has_no_form_for_is_an_empty_text_or_an_error() {
    let folder = Folder::new();
    let of_float = |template: &str| prompt(&folder, "float", template, "NaN");
    assert_eq!(
        of_float("[{{ toJson .x }}] [{{ toPrettyJson (list 1 .x) }}] {{ .x }}"),
        "[] [] NaN"
    );
    fs::write(folder.path("d.yaml"), "a: {b: 1}\n").expect("a file");
    // The maps of yaml.v2 have keys of any type.
    let parsed = "[{{ toJson .x.ParsedContent }}] {{ .x.ParsedContent.a.b }}";
    assert_eq!(prompt(&folder, "file", parsed, "d.yaml"), "[] 1");
    for function in ["toRawJson", "mustToJson"] {
        let file =
            format!("flags: [{{name: x, type: float}}]\nprompt: '{{{{ {function} .x }}}}'\n");
        fs::write(folder.path("f.yaml"), file).expect("a file");
        let ended = run(&folder, &["run-command", "f.yaml", "--x", "Inf", "--print-prompt"]);
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(ended.stderr.contains("json: unsupported value: +Inf"), "{ended:?}");
    }
}

#[test]
fn floats_are_typed_as_in_go() {
    let folder = Folder::new();
    for (typed, expected) in [
        ("0x1p4", "16"),
        ("-0x1.8p1", "-3"),
        ("0X_1P-2", "0.25"),
        ("1_000", "1000"),
        ("infinity", "+Inf"),
        ("nan", "NaN"),
    ] {
        let typed = format!("--x={typed}");
        fs::write(folder.path("f.yaml"), "flags: [{name: x, type: float}]\nprompt: '{{ .x }}'\n")
            .expect("a file");
        let ended = run(&folder, &["run-command", "f.yaml", &typed, "--print-prompt"]);
        assert_eq!((ended.status, ended.stdout.trim_end()), (0, expected), "{ended:?}");
    }
    for typed in ["0x10", "0x1p2000", "1e400", "-nan", "0x", "1_"] {
        let ended =
            run(&folder, &["run-command", "f.yaml", &format!("--x={typed}"), "--print-prompt"]);
        assert!(ended.status == 2 && ended.stderr.contains("is not a number"), "{ended:?}");
    }
    assert_eq!(prompt(&folder, "floatList", "{{ .x }}", "0x1p4,1e2"), "[16 100]");
}
