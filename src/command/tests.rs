//! Command files, from their text to the prompt.

use super::{CommandFile, Outside, Rendered};
use std::path::Path;

/// What comes of a file and what is typed for it; or the error, as people see it.
fn run(text: &str, typed: &[&str]) -> Result<Rendered, String> {
    let file =
        CommandFile::parse(Path::new("dir/cmd.yaml"), text).map_err(|error| error.to_string())?;
    let command = clap::Command::new("duologue").args(file.clap_args());
    let typed = std::iter::once(&"duologue").chain(typed);
    let typed = command.try_get_matches_from(typed).map_err(|error| error.to_string())?;
    let mut stdin = || Ok(b"from stdin\n".to_vec());
    let values = file
        .values(&typed, &mut Outside::new(&mut stdin).at(now()))
        .map_err(|error| error.to_string())?;
    file.render(&values).map_err(|error| error.to_string())
}

/// A Sunday afternoon.
fn now() -> jiff::Zoned {
    jiff::civil::date(2026, 11, 22)
        .at(14, 30, 5, 0)
        .to_zoned(jiff::tz::TimeZone::UTC)
        .expect("a date")
}

#[test]
fn a_file_becomes_a_prompt() {
    let text = "
name: greet
short: Greet
flags:
  - name: who
    type: string
    default: you
  - name: times
    type: int
    required: true
  - name: additional_system
    type: stringList
arguments:
  - name: files
    type: stringFromFile
system-prompt: 'Be kind. {{ range .additional_system }}{{ . }};{{ end }}'
prompt: |
  Hello {{ .who }}, {{ .times }} times.
  {{ .files }}
";
    let rendered = run(text, &["--times", "3", "--additional-system", "a,b", "-"]);
    let expected = Rendered {
        system: Some("Be kind. a;b;".to_owned()),
        messages: vec![],
        prompt: "Hello you, 3 times.\nfrom stdin\n\n".to_owned(),
    };
    assert_eq!(rendered, Ok(expected));
}
