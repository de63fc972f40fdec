//! What a command file can be given: flags and arguments, and the types of their values, as
//! go-go-golems/glazed names them.

use super::CommandFile;
use crate::template;
use serde_json::Value;

impl CommandFile {
    /// The types that glazed gives the values of flags and arguments.
    pub(super) fn template_types(&self) -> template::Types {
        let flags = self.flags.iter().chain(&self.arguments);
        flags.map(|flag| (flag.name.clone(), flag.kind.in_templates())).collect()
    }
}

/// A flag or an argument of a command file.
#[derive(Clone, Debug, PartialEq)]
pub struct Flag {
    /// The key by which templates know it.
    pub name: String,
    /// The letter it can be typed by.
    pub short: Option<char>,
    /// What its values are.
    pub kind: Type,
    /// What it is for; may be empty.
    pub help: String,
    /// Its value if none is typed, already what a template gets.
    pub default: Option<Value>,
    /// What a choice can be; empty for other types.
    pub choices: Vec<String>,
    /// Whether it must be typed.
    pub required: bool,
    /// Whether it is typed by its place instead of its name.
    pub is_argument: bool,
    /// The line of the file that it begins at, from 1.
    pub line: u32,
}

impl Flag {
    /// Its name on the command line, without dashes in front: `_` is typed as `-`.
    pub fn option(&self) -> String {
        self.name.replace('_', "-")
    }

    /// What clap knows it by. The prefix keeps it apart from the program's own.
    pub fn id(&self) -> String {
        format!("file-flag:{}", self.name)
    }

    /// How people know it: `--name` or `<name>`.
    pub fn shown(&self) -> String {
        if self.is_argument { format!("<{}>", self.name) } else { format!("--{}", self.option()) }
    }

    /// Whether it takes values more than once. A flag and an argument of one type may differ here.
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

/// What the values of a flag are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A text.
    String,
    /// A text that is not shown.
    Secret,
    /// Texts.
    StringList,
    /// A whole number of 64 bits.
    Int,
    /// Whole numbers.
    IntList,
    /// A number.
    Float,
    /// Numbers.
    FloatList,
    /// True or false.
    Bool,
    /// One of the choices.
    Choice,
    /// Some of the choices.
    ChoiceList,
    /// A date, which templates get as RFC 3339.
    Date,
    /// A file: its text and what is known of it.
    File,
    /// Files.
    FileList,
    /// The text of a file.
    StringFromFile,
    /// The texts of files, one after the other.
    StringFromFiles,
    /// The lines of a file.
    StringListFromFile,
    /// The lines of files.
    StringListFromFiles,
    /// The map in a file.
    ObjectFromFile,
    /// The maps in a file.
    ObjectListFromFile,
    /// The maps in files.
    ObjectListFromFiles,
    /// Keys and texts, typed as `key:text`, or `@file` for those in a file.
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

    /// Whether what is typed names files. `KeyValue` does only behind an `@`.
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

    /// What templates take its values for.
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

    /// What stands for a value in help.
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
