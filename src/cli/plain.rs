//! The command line of `rpc` as programs write it: options with their whole names, right and each
//! given once. Read here, a start of `rpc --engine echo` takes 1.17 million instructions; by clap's
//! definition of `rpc` alone it takes 1.94 million, and by that of all commands 4.70 million (callgrind, a
//! release, the whole process without a request). Any other command line is left to that definition, so that
//! its errors and its help are the same.

use super::session::extension;
use super::store::place;
use super::variables::PREFIX;
use super::{EngineName, ModelOption, RpcArgs};
use crate::protocol::event_filter::EventFilter;
use clap::ValueEnum;
use std::ffi::OsString;

/// No option, whatever its name looks like.
const KEY_VARIABLE: &str = "DUOLOGUE_API_KEY";

/// The arguments in `words` and `variables`; `None` if they are not plain.
pub(super) fn rpc(
    words: &[OsString],
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Option<Box<RpcArgs>> {
    let mut words = words.iter().skip(1).map(|word| word.to_str()).peekable();
    words.next_if_eq(&Some("rpc"));
    let mut args = Box::<RpcArgs>::default();
    let mut typed = Vec::new();
    while let Some(word) = words.next() {
        let option = word?.strip_prefix("--")?;
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, value),
            None if option == "resume" => (option, ""),
            None => (option, words.next()??),
        };
        if typed.contains(&name) || value.starts_with('-') {
            return None;
        }
        match (name, value) {
            ("resume", "") => args.session.store.resume = true,
            (_, "") => return None,
            // It has no variable.
            ("session", value) => args.session.store.session = Some(value.to_owned()),
            (name, value) => set(&mut args, name, value)?,
        }
        typed.push(name);
    }
    // The definition says what contradicts it.
    if typed.contains(&"session") && ["session-id", "resume"].iter().any(|it| typed.contains(it)) {
        return None;
    }
    let options = ModelOption::ALL.into_iter();
    let ids: Vec<_> = typed.iter().map(|name| name.replace('-', "_")).collect();
    let is_typed = |id: &str| ids.iter().any(|typed| typed == id);
    args.session.provider.typed =
        options.filter(|(_, id)| is_typed(id)).map(|(option, _)| option).collect();
    args.session.calls.typed = ids;
    for (variable, value) in variables {
        // A variable that is set but empty counts as not set.
        if value.is_empty() || variable == KEY_VARIABLE {
            continue;
        }
        let Some(name) = variable.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        let name = name.to_ascii_lowercase().replace('_', "-");
        if !typed.contains(&name.as_str()) {
            set(&mut args, &name, value.to_str()?)?;
        }
    }
    Some(args)
}

/// Sets the option `name`; `None` if it can't have that value, or is none of those that are read
/// here.
fn set(args: &mut RpcArgs, name: &str, value: &str) -> Option<()> {
    let session = &mut args.session;
    match name {
        "engine" => session.provider.engine = Some(engine(value)?),
        // A typed one is an error, and a variable's counts as not set.
        "model" | "base-url" | "profile" if value.trim().is_empty() => return None,
        "model" => session.provider.model = Some(value.to_owned()),
        "base-url" => session.provider.base_url = Some(value.to_owned()),
        "profile" => session.provider.profile = Some(value.to_owned()),
        // What a blank one means depends on where it comes from.
        "system" if value.trim().is_empty() => return None,
        "system" => session.system = Some(value.to_owned()),
        "session-id" => session.session_id = Some(value.to_owned()),
        "on-busy" => session.on_busy = one_of(value)?,
        "extensions" => {
            let names = value.split(',').map(|name| extension(name).ok());
            session.extensions = names.collect::<Option<_>>()?;
        }
        "events" => session.events = Some(EventFilter::parse(value).ok()?),
        "patch-mode" => session.patch_mode = one_of(value)?,
        "patch-fields" => session.patch_fields = one_of(value)?,
        "final-snapshot" => session.final_snapshot = Some(one_of(value)?),
        "debug-events-jsonl" => session.debug_events_jsonl = Some(value.into()),
        "log-level" => session.log_level = one_of(value)?,
        "log-file" => session.log_file = Some(value.into()),
        "store" => session.store.store = Some(place(value).ok()?),
        "approval" => session.tools.approval = Some(one_of(value)?),
        "echo-delay-ms" => session.engines.echo_delay_ms = value.parse().ok()?,
        _ => return None,
    }
    Some(())
}

/// The engine of that name; the list of all names is only for errors.
fn engine(name: &str) -> Option<EngineName> {
    Some(match name {
        "echo" => EngineName::Echo,
        "openai" => EngineName::Openai,
        "responses" => EngineName::Responses,
        "anthropic" => EngineName::Anthropic,
        "gemini" => EngineName::Gemini,
        "ollama" => EngineName::Ollama,
        _ => return None,
    })
}

fn one_of<T: ValueEnum>(value: &str) -> Option<T> {
    T::from_str(value, false).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};
    use std::iter::empty;

    /// Every option that is read here, with a value.
    const OPTIONS: [(&str, &str); 18] = [
        ("engine", "anthropic"),
        ("model", "a b"),
        ("base-url", "http://localhost:1/v1"),
        ("profile", "fast"),
        ("system", "Be brief."),
        ("session-id", "s1"),
        ("on-busy", "queue"),
        ("extensions", "usage, edit"),
        ("events", "ChatTextPatch,ChatRun*,!ChatRunStarted"),
        ("patch-mode", "snapshot"),
        ("patch-fields", "lean"),
        ("final-snapshot", "none"),
        ("debug-events-jsonl", "events.jsonl"),
        ("log-level", "debug"),
        ("log-file", "a.log"),
        ("store", "chat.db"),
        ("approval", "auto"),
        ("echo-delay-ms", "5"),
    ];

    fn os(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn plain(words: &[&str]) -> Option<String> {
        let args = rpc(&os(&[&["duologue", "rpc"], words].concat()), empty());
        args.map(|args| format!("{args:?}"))
    }

    /// The definition of the whole command line, without its variables.
    fn definition() -> clap::Command {
        let command = RpcArgs::augment_args(clap::Command::new("duologue").no_binary_name(true));
        command.mut_args(|arg| arg.env(clap::builder::Resettable::Reset))
    }

    fn of_definition(words: &[&str]) -> Option<String> {
        let matches = definition().try_get_matches_from(words).ok()?;
        let mut args = RpcArgs::from_arg_matches(&matches).ok()?;
        args.session.note_typed(&matches);
        // The definition has groups of options as well, which are named after types and which nothing asks for.
        args.session.calls.typed.retain(|id| !id.starts_with(char::is_uppercase));
        Some(format!("{args:?}"))
    }

    #[test]
    fn what_is_plain_means_what_its_definition_says() {
        assert_eq!(plain(&[]), of_definition(&[]));
        for (name, value) in OPTIONS {
            let option = format!("--{name}");
            let joined = format!("{option}={value}");
            let meant = of_definition(&[&option, value]);
            assert!(meant.is_some() && meant != of_definition(&[]), "{name}");
            assert_eq!(plain(&[&option, value]), meant, "{name}");
            assert_eq!(plain(&[&joined]), meant, "{name}");
            assert_eq!(plain(&["--resume", &joined]), of_definition(&["--resume", &joined]));
        }
        assert_eq!(plain(&["--session", "s1"]), of_definition(&["--session", "s1"]));
        let all = OPTIONS.map(|(name, value)| format!("--{name}={value}"));
        let all = all.each_ref().map(String::as_str);
        assert_eq!(plain(&all), of_definition(&all));
    }

    #[test]
    fn every_engine_is_known() {
        for name in EngineName::value_variants() {
            let value = name.to_possible_value().expect("a name");
            assert_eq!(engine(value.get_name()), Some(*name));
        }
        assert_eq!(plain(&["--engine", "claude"]), None);
    }

    #[test]
    fn an_option_without_a_command_is_one_of_rpc() {
        let named = rpc(&os(&["duologue", "rpc", "--model", "m"]), empty()).expect("plain");
        let alone = rpc(&os(&["duologue", "--model", "m"]), empty()).expect("plain");
        assert_eq!(format!("{named:?}"), format!("{alone:?}"));
    }

    #[test]
    fn anything_else_is_left_to_the_definition() {
        for words in [
            &["--engine"][..],
            &["--engine", ""],
            &["--engine="],
            &["--model", " "],
            &["--base-url= "],
            &["--profile", "\t"],
            &["--engine", "none"],
            &["--engine", "echo", "--engine", "echo"],
            &["--eng", "echo"],
            &["--model", "-m"],
            &["--model", "--resume"],
            &["--resume", "--resume"],
            &["--resume=yes"],
            &["--session", "s1", "--resume"],
            &["--session-id", "s1", "--session", "s1"],
            &["--extensions", "usage,,edit"],
            &["--echo-delay-ms", "-1"],
            &["--echo-delay-ms", "five"],
            &["-m", "m"],
            &["--help"],
            &["--manifest"],
            &["--", "--model", "m"],
            &["exec"],
            &["rpc"],
            &[""],
            &["-"],
        ] {
            assert_eq!(plain(words), None, "{words:?}");
        }
        let not_unicode = rpc(&os(&["duologue", "exec"]), empty());
        assert!(not_unicode.is_none());
    }

    #[test]
    fn a_variable_sets_its_option_unless_that_is_typed() {
        let read = |words: &[&str], variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
            rpc(&os(&[&["duologue"], words].concat()), variables).map(|args| format!("{args:?}"))
        };
        let command = RpcArgs::augment_args(clap::Command::new("duologue"));
        for (name, value) in OPTIONS {
            let variable = format!("DUOLOGUE_{}", name.replace('-', "_").to_uppercase());
            let option = format!("--{name}");
            let defined = command.get_arguments().find(|arg| arg.get_long() == Some(name));
            let defined = defined.and_then(|arg| arg.get_env()).expect("a variable");
            assert_eq!(defined, variable.as_str());
            // What a variable names was not typed.
            let typed = plain(&[&option, value]);
            let id = name.replace('-', "_");
            let option_of = |id: &str| ModelOption::ALL.into_iter().find(|(_, of)| *of == id);
            let shown = option_of(&id).map(|(option, _)| format!("typed: {{{option:?}}}"));
            let expected = typed.map(|it| {
                let it = it.replace(&format!("typed: [{id:?}]"), "typed: []");
                shown.iter().fold(it, |it, shown| it.replace(shown, "typed: {}"))
            });
            assert_eq!(read(&[], &[(&variable, value)]), expected, "{name}");
            assert_eq!(read(&[&option, value], &[(&variable, "x")]), plain(&[&option, value]));
            assert_eq!(read(&[], &[(&variable, "")]), plain(&[]), "{name}");
        }
        assert_eq!(read(&[], &[("DUOLOGUE_API_KEY", "k"), ("PATH", "/bin")]), plain(&[]));
        assert_eq!(read(&[], &[("DUOLOGUE_HISTORY", "file")]), None);
        assert_eq!(read(&[], &[("DUOLOGUE_ENGINE", "none")]), None);
        assert_eq!(read(&[], &[("DUOLOGUE_RESUME", "")]), plain(&[]));
        assert_eq!(read(&[], &[("DUOLOGUE_RESUME", "1")]), None);
        assert_eq!(read(&[], &[("DUOLOGUE_SESSION", "s1")]), None);
    }
}
