//! The flags and arguments of a command file, and the types of their values as named by
//! go-go-golems/glazed.

use super::CommandFile;
use crate::template;
use serde_json::Value;

impl CommandFile {
    /// The types of glazed's flags and arguments.
    pub(super) fn template_types(&self) -> template::Types {
        let flags = self.flags.iter().chain(&self.arguments);
        flags.map(|flag| (flag.name.clone(), flag.kind.in_templates())).collect()
    }
}

impl CommandFile {
    /// Its flags and arguments, for a person who types them.
    pub(crate) fn takes(&self) -> String {
        let flags = self.flags.iter().map(|flag| format!("--{}", flag.option()));
        let arguments = self.arguments.iter().map(|argument| argument.name.to_uppercase());
        flags.chain(arguments).collect::<Vec<_>>().join(" ")
    }
}

/// A flag or an argument of a command file.
#[derive(Clone, Debug, PartialEq)]
pub struct Flag {
    /// Its name in templates.
    pub name: String,
    /// Its one-letter option.
    pub short: Option<char>,
    /// The type of its values.
    pub kind: Type,
    /// Its description; may be empty.
    pub help: String,
    /// Its default value, as a template gets it.
    pub default: Option<Value>,
    /// The allowed values of a choice; empty for other types.
    pub choices: Vec<String>,
    /// Whether a value is required.
    pub required: bool,
    /// Whether it is a positional argument.
    pub is_argument: bool,
    /// The line of the file in which it begins, from 1.
    pub line: u32,
}

impl Flag {
    /// Its name on the command line, without leading dashes: `_` is typed as `-`.
    pub fn option(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Its clap id, with a prefix that the program's own ids don't have.
    pub fn id(&self) -> String {
        format!("file-flag:{}", self.name)
    }

    /// Its name in messages: `--name` or `<name>`.
    pub fn shown(&self) -> String {
        if self.is_argument { format!("<{}>", self.name) } else { format!("--{}", self.option()) }
    }

    /// Whether it accepts several values. A flag and an argument of one type may differ here.
    pub fn takes_many(&self) -> bool {
        match self.kind.facts().values {
            Values::One => false,
            Values::Many => true,
            Values::ManyInFlags => !self.is_argument,
            Values::ManyInArguments => self.is_argument,
        }
    }
}

/// Kinds of values, several of which are written in more than one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A string.
    String,
    /// A string that is never shown.
    Secret,
    /// A list of strings.
    StringList,
    /// A 64-bit integer.
    Int,
    /// A list of integers.
    IntList,
    /// A floating-point number.
    Float,
    /// A list of floating-point numbers.
    FloatList,
    /// True or false.
    Bool,
    /// One of the choices.
    Choice,
    /// A list of choices.
    ChoiceList,
    /// A date, which a template gets as RFC 3339.
    Date,
    /// A file: its text and metadata.
    File,
    /// A list of files.
    FileList,
    /// The text of a file.
    StringFromFile,
    /// The texts of files, concatenated.
    StringFromFiles,
    /// The lines of a file.
    StringListFromFile,
    /// The lines of files.
    StringListFromFiles,
    /// The map in a file.
    ObjectFromFile,
    /// The maps in a file.
    ObjectListFromFile,
    /// The maps in several files.
    ObjectListFromFiles,
    /// Keys and values, typed as `key=text` or `key:text`, or `@file` for those in a file.
    KeyValue,
}

/// The facts about a type.
struct Facts {
    /// Its name in command files.
    name: &'static str,
    values: Values,
    /// The placeholder for a value in help.
    value_name: &'static str,
    /// The type that templates give its values.
    in_templates: template::Type,
}

/// How many values a flag or an argument accepts.
enum Values {
    One,
    Many,
    ManyInFlags,
    ManyInArguments,
}

/// The placeholder for a value that is the name of a file.
const FILE: &str = "FILE";

impl Type {
    /// Every type.
    pub const ALL: [Self; 21] = [
        Self::String,
        Self::Secret,
        Self::StringList,
        Self::Int,
        Self::IntList,
        Self::Float,
        Self::FloatList,
        Self::Bool,
        Self::Choice,
        Self::ChoiceList,
        Self::Date,
        Self::File,
        Self::FileList,
        Self::StringFromFile,
        Self::StringFromFiles,
        Self::StringListFromFile,
        Self::StringListFromFiles,
        Self::ObjectFromFile,
        Self::ObjectListFromFile,
        Self::ObjectListFromFiles,
        Self::KeyValue,
    ];

    fn facts(self) -> Facts {
        use Values::{Many, ManyInArguments, ManyInFlags, One};
        use template::Type::{
            File, Files, Float, Floats, Ints, Maps, Plain, StringMap, Strings, Time,
        };
        let (name, values, value_name, in_templates) = match self {
            Self::String => ("string", One, "TEXT", Plain),
            Self::Secret => ("secret", One, "TEXT", Plain),
            Self::StringList => ("stringList", Many, "TEXT", Strings),
            Self::Int => ("int", One, "INT", Plain),
            Self::IntList => ("intList", Many, "INT", Ints),
            Self::Float => ("float", One, "NUMBER", Float),
            Self::FloatList => ("floatList", Many, "NUMBER", Floats),
            Self::Bool => ("bool", One, "BOOL", Plain),
            Self::Choice => ("choice", One, "CHOICE", Plain),
            Self::ChoiceList => ("choiceList", Many, "CHOICE", Strings),
            Self::Date => ("date", One, "DATE", Time),
            Self::File => ("file", One, FILE, File),
            Self::FileList => ("fileList", Many, FILE, Files),
            Self::StringFromFile => ("stringFromFile", One, FILE, Plain),
            Self::StringFromFiles => ("stringFromFiles", ManyInFlags, FILE, Plain),
            Self::StringListFromFile => ("stringListFromFile", ManyInArguments, FILE, Strings),
            Self::StringListFromFiles => ("stringListFromFiles", Many, FILE, Strings),
            Self::ObjectFromFile => ("objectFromFile", One, FILE, Plain),
            Self::ObjectListFromFile => ("objectListFromFile", ManyInArguments, FILE, Maps),
            Self::ObjectListFromFiles => ("objectListFromFiles", Many, FILE, Maps),
            Self::KeyValue => ("keyValue", Many, "KEY=TEXT", StringMap),
        };
        Facts { name, values, value_name, in_templates }
    }

    /// Its name in command files.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The type of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Whether a typed value is the name of a file. For `KeyValue` only after an `@`.
    pub(super) fn names_files(self) -> bool {
        self.value_name() == FILE
    }

    fn in_templates(self) -> template::Type {
        self.facts().in_templates
    }

    /// The placeholder for a value in help.
    pub(super) fn value_name(self) -> &'static str {
        self.facts().value_name
    }
}
