//! The flags of a command file as clap arguments.

use super::flag::{Flag, Type};
use super::{CommandFile, date};
use crate::support::shorten::first_chars;
use crate::support::terminal::{Escapes, escape_control, visible};
use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, ValueHint};
use serde_json::Value;

/// Longest default shown in help, in characters.
const SHOWN_MAX: usize = 60;

/// Heading of the flags in help.
const HEADING: &str = "Flags of the file";

impl CommandFile {
    /// The file's flags as options, and its arguments as positionals, which come after those of the
    /// caller. Ids have a prefix ([`Flag::id`]); the caller must check for clashes of long names
    /// and letters with its own ([`Flag::option`], [`Flag::short`]).
    pub fn clap_args(&self) -> Vec<Arg> {
        self.flags.iter().chain(&self.arguments).map(arg).collect()
    }
}

fn arg(flag: &Flag) -> Arg {
    let arg = Arg::new(flag.id())
        .help(help(flag))
        .required(flag.required)
        .value_name(if flag.is_argument {
            flag.name.clone()
        } else {
            flag.kind.value_name().into()
        })
        .value_parser(parser(flag))
        .value_hint(if flag.kind.names_files() { ValueHint::FilePath } else { ValueHint::Other });
    if flag.is_argument {
        let arg = arg.allow_negative_numbers(is_number(flag.kind));
        return if flag.takes_many() { arg.num_args(1..).action(ArgAction::Append) } else { arg };
    }
    let arg = arg.long(flag.option()).help_heading(HEADING);
    let arg = match flag.short {
        Some(letter) => arg.short(letter),
        None => arg,
    };
    if flag.kind == Type::Bool {
        // `--x` or `--x=false`: the next word is not its value.
        arg.num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        arg.num_args(1).allow_hyphen_values(true)
    }
    .action(if flag.takes_many() { ArgAction::Append } else { ArgAction::Set })
    .overrides_with_all(if flag.takes_many() { vec![] } else { vec![flag.id()] })
}

fn is_number(kind: Type) -> bool {
    matches!(kind, Type::Int | Type::IntList | Type::Float | Type::FloatList)
}

/// Checks a value as soon as it is typed, as far as that needs nothing but the value.
fn parser(flag: &Flag) -> ValueParser {
    match flag.kind {
        Type::Choice => {
            PossibleValuesParser::new(flag.choices.iter().map(|choice| possible(choice))).into()
        }
        Type::Int if flag.is_argument => {
            ValueParser::from(|text: &str| unquoted(text, super::values::decimal(text)))
        }
        Type::Int => ValueParser::from(|text: &str| unquoted(text, super::values::int(text))),
        Type::Float => ValueParser::from(|text: &str| unquoted(text, super::values::float(text))),
        Type::Bool => ValueParser::from(|text: &str| unquoted(text, super::values::truth(text))),
        Type::Date => ValueParser::from(|text: &str| {
            if date::is_date(text) {
                Ok(text.to_owned())
            } else {
                Err(format!("expected {}", date::EXPECTED))
            }
        }),
        // A value that is not text is reported with its flag when the values are read.
        Type::String
        | Type::Secret
        | Type::StringList
        | Type::IntList
        | Type::FloatList
        | Type::ChoiceList
        | Type::File
        | Type::FileList
        | Type::StringFromFile
        | Type::StringFromFiles
        | Type::StringListFromFile
        | Type::StringListFromFiles
        | Type::ObjectFromFile
        | Type::ObjectListFromFile
        | Type::ObjectListFromFiles
        | Type::KeyValue => OsStringValueParser::new().into(),
    }
}

/// A choice, which help and errors show without control characters. What is typed is held against the choices of the
/// file once more when the values are read.
fn possible(choice: &str) -> PossibleValue {
    PossibleValue::new(escape_control(choice)).alias(choice.to_owned())
}

/// Leaves out the quoted value, which clap prints before the reason.
fn unquoted<T>(text: &str, read: Result<T, String>) -> Result<T, String> {
    read.map_err(|message| match message.strip_prefix(&format!("`{text}` ")) {
        Some(rest) => format!("it {rest}"),
        None => message,
    })
}

/// The line of help about `flag`, for a terminal: without control characters.
fn help(flag: &Flag) -> String {
    let mut help = flag.help.trim().to_owned();
    let mut add = |note: String| {
        if !help.is_empty() {
            help.push(' ');
        }
        help.push_str(&note);
    };
    if flag.takes_many() && !flag.is_argument {
        add("[may be repeated]".to_owned());
    }
    if flag.kind == Type::ChoiceList {
        add(format!("[possible values: {}]", flag.choices.join(", ")));
    }
    let default = flag.default.as_ref().filter(|_| !flag.required && flag.kind != Type::Secret);
    let shown = default.map(shown).unwrap_or_default();
    if !shown.is_empty() {
        add(format!("[default: {shown}]"));
    }
    visible(&help, Escapes::Text)
}

/// A default in one short line; `None` if it is empty.
fn shown(default: &Value) -> String {
    let text = if let Value::String(text) = default {
        text.clone()
    } else if let Value::Array(items) = default {
        items.iter().map(shown).collect::<Vec<_>>().join(",")
    } else if default.as_object().is_some_and(serde_json::Map::is_empty) {
        String::new()
    } else {
        default.to_string()
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    first_chars(&line, SHOWN_MAX).into_owned()
}
