//! Types of values by their Go and glazed names: what `typeOf`, `kindOf` and `%T` print, and the
//! type of a value passed to a template.

use std::collections::BTreeMap;

/// The type of a value passed to a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// The type of its JSON.
    Plain,
    /// A float. NaN and the infinities are strings in JSON: `NaN`, `+Inf`, `-Inf`.
    Float,
    /// `time.Time`, RFC 3339 in JSON.
    Time,
    /// `[]string`.
    Strings,
    /// `[]int`.
    Ints,
    /// `[]float64`, its items as [`Type::Float`].
    Floats,
    /// `[]map[string]interface {}`.
    Maps,
    /// `map[string]string`.
    StringMap,
    /// `*fields.FileData`, a map of its fields in JSON.
    File,
    /// `[]*fields.FileData`.
    Files,
}

/// Types of the values by name. A value that is not listed is [`Type::Plain`].
pub type Types = BTreeMap<String, Type>;

/// Integers of other types than `int`. Arithmetic is the same; they may print differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntType {
    Int64,
    /// Its bits are those of the number that it is stored in.
    Uint64,
    Uint8,
    FileMode,
    Month,
    Weekday,
    /// Nanoseconds.
    Duration,
}

/// The item type of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListType {
    Any,
    Strings,
    Ints,
    Floats,
    Bytes,
    Maps,
    Rows,
    Files,
}

/// The key and member types of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapType {
    Any,
    Strings,
    /// The type that yaml.v2 uses for maps.
    AnyKeys,
    /// yaml.v2's type for maps where all keys are integers, which are held as decimal digits.
    IntKeys,
    /// Not a map in Go, but a pointer to a struct.
    File,
}

/// The fields of `fields.FileData` in order.
pub(super) const FILE_FIELDS: [&str; 17] = [
    "Content",
    "ParsedContent",
    "ParseError",
    "RawContent",
    "StringContent",
    "IsList",
    "IsObject",
    "BaseName",
    "Extension",
    "FileType",
    "Path",
    "RelativePath",
    "AbsolutePath",
    "Size",
    "LastModifiedTime",
    "Permissions",
    "IsDirectory",
];

impl IntType {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Int64 => "int64",
            Self::Uint64 => "uint64",
            Self::Uint8 => "uint8",
            Self::FileMode => "fs.FileMode",
            Self::Month => "time.Month",
            Self::Weekday => "time.Weekday",
            Self::Duration => "time.Duration",
        }
    }

    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Int64 | Self::Duration => "int64",
            Self::Uint64 => "uint64",
            Self::Uint8 => "uint8",
            Self::FileMode => "uint32",
            Self::Month | Self::Weekday => "int",
        }
    }
}

impl ListType {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Any => "[]interface {}",
            Self::Strings => "[]string",
            Self::Ints => "[]int",
            Self::Floats => "[]float64",
            Self::Bytes => "[]uint8",
            Self::Maps => "[]map[string]interface {}",
            Self::Rows => "[][]string",
            Self::Files => "[]*fields.FileData",
        }
    }
}

impl MapType {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Any => "map[string]interface {}",
            Self::Strings => "map[string]string",
            Self::AnyKeys | Self::IntKeys => "map[interface {}]interface {}",
            Self::File => "*fields.FileData",
        }
    }

    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Any | Self::Strings | Self::AnyKeys | Self::IntKeys => "map",
            Self::File => "ptr",
        }
    }
}
