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

    /// Its clap id. The prefix keeps it apart from the program's own ids.
    pub fn id(&self) -> String {
        format!("file-flag:{}", self.name)
    }

    /// Its name in messages: `--name` or `<name>`.
    pub fn shown(&self) -> String {
        if self.is_argument { format!("<{}>", self.name) } else { format!("--{}", self.option()) }
    }

    /// Whether it accepts several values. A flag and an argument of one type may differ here.
    pub fn takes_many(&self) -> bool {
        match self.kind {
            Type::StringList
            | Type::IntList
            | Type::FloatList
            | Type::ChoiceList
            | Type::FileList
            | Type::StringListFromFiles
            | Type::ObjectListFromFiles
            | Type::KeyValue => true,
            Type::StringFromFiles => !self.is_argument,
            Type::StringListFromFile | Type::ObjectListFromFile => self.is_argument,
            Type::String
            | Type::Secret
            | Type::Int
            | Type::Float
            | Type::Bool
            | Type::Choice
            | Type::Date
            | Type::File
            | Type::StringFromFile
            | Type::ObjectFromFile => false,
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
    /// Keys and values, typed as `key:text`, or `@file` for those in a file.
    KeyValue,
}

impl Type {
    /// Every type, with its name in command files.
    pub const ALL: [(&'static str, Self); 21] = [
        ("string", Self::String),
        ("secret", Self::Secret),
        ("stringList", Self::StringList),
        ("int", Self::Int),
        ("intList", Self::IntList),
        ("float", Self::Float),
        ("floatList", Self::FloatList),
        ("bool", Self::Bool),
        ("choice", Self::Choice),
        ("choiceList", Self::ChoiceList),
        ("date", Self::Date),
        ("file", Self::File),
        ("fileList", Self::FileList),
        ("stringFromFile", Self::StringFromFile),
        ("stringFromFiles", Self::StringFromFiles),
        ("stringListFromFile", Self::StringListFromFile),
        ("stringListFromFiles", Self::StringListFromFiles),
        ("objectFromFile", Self::ObjectFromFile),
        ("objectListFromFile", Self::ObjectListFromFile),
        ("objectListFromFiles", Self::ObjectListFromFiles),
        ("keyValue", Self::KeyValue),
    ];

    /// The type of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Whether a typed value is the name of a file. For `KeyValue` only after an `@`.
    pub(super) fn names_files(self) -> bool {
        match self {
            Self::File
            | Self::FileList
            | Self::StringFromFile
            | Self::StringFromFiles
            | Self::StringListFromFile
            | Self::StringListFromFiles
            | Self::ObjectFromFile
            | Self::ObjectListFromFile
            | Self::ObjectListFromFiles => true,
            Self::String
            | Self::Secret
            | Self::StringList
            | Self::Int
            | Self::IntList
            | Self::Float
            | Self::FloatList
            | Self::Bool
            | Self::Choice
            | Self::ChoiceList
            | Self::Date
            | Self::KeyValue => false,
        }
    }

    /// The type that templates give its values.
    fn in_templates(self) -> template::Type {
        match self {
            Self::String
            | Self::Secret
            | Self::Int
            | Self::Bool
            | Self::Choice
            | Self::StringFromFile
            | Self::StringFromFiles
            | Self::ObjectFromFile => template::Type::Plain,
            Self::Float => template::Type::Float,
            Self::Date => template::Type::Time,
            Self::StringList
            | Self::ChoiceList
            | Self::StringListFromFile
            | Self::StringListFromFiles => template::Type::Strings,
            Self::IntList => template::Type::Ints,
            Self::FloatList => template::Type::Floats,
            Self::ObjectListFromFile | Self::ObjectListFromFiles => template::Type::Maps,
            Self::KeyValue => template::Type::StringMap,
            Self::File => template::Type::File,
            Self::FileList => template::Type::Files,
        }
    }

    /// The placeholder for a value in help.
    pub(super) fn value_name(self) -> &'static str {
        match self {
            Self::String | Self::Secret | Self::StringList => "TEXT",
            Self::Int | Self::IntList => "INT",
            Self::Float | Self::FloatList => "NUMBER",
            Self::Bool => "BOOL",
            Self::Choice | Self::ChoiceList => "CHOICE",
            Self::Date => "DATE",
            Self::KeyValue => "KEY:TEXT",
            Self::File
            | Self::FileList
            | Self::StringFromFile
            | Self::StringFromFiles
            | Self::StringListFromFile
            | Self::StringListFromFiles
            | Self::ObjectFromFile
            | Self::ObjectListFromFile
            | Self::ObjectListFromFiles => "FILE",
        }
    }
}
