//! Converts typed values and defaults to the values that templates get.

use super::flag::{Flag, Type};
use super::table::{self, Blanks};
use super::{CommandFile, FlagError, Outside, date};
use crate::support::strconv::{parse_float, parse_int};
use crate::template::{Data, Record, Values, Yaml, floats};
use clap::ArgMatches;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::Path;

impl CommandFile {
    /// The values that templates get, by the names of flags and arguments. A flag that was not
    /// typed has its default, or no value without one, as in glazed. Reads the files that flags
    /// name, and standard input for `-`.
    ///
    /// `typed` must come from a command that has [`Self::clap_args`].
    ///
    /// # Errors
    /// If the value of a flag, or a file that it names, is not what the type of the flag allows.
    pub fn values(&self, typed: &ArgMatches, outside: &mut Outside) -> Result<Values, FlagError> {
        let mut values = Values::new();
        for flag in self.flags.iter().chain(&self.arguments) {
            let raw = typed.try_get_raw(&flag.id()).ok().flatten();
            let value = match raw {
                Some(raw) => flag.value(raw.map(OsStr::to_owned).collect(), outside),
                None => flag.default_value(outside).map(|value| value.map(Data::Json)),
            };
            let value = value.map_err(|message| FlagError { flag: flag.shown(), message })?;
            if let Some(value) = value {
                values.insert(flag.name.clone(), value);
            }
        }
        Ok(values)
    }
}

impl Flag {
    fn default_value(&self, outside: &Outside) -> Result<Option<Value>, String> {
        match (&self.default, self.kind) {
            (Some(Value::String(text)), Type::Date) => date_value(text, outside).map(Some),
            (default, _) => Ok(default.clone()),
        }
    }

    /// The value for what was typed, once or several times.
    fn value(&self, typed: Vec<OsString>, outside: &mut Outside) -> Result<Option<Data>, String> {
        // Scripts pass an empty name when there is no file.
        let is_nothing = typed.iter().all(|typed| typed.is_empty());
        if is_nothing
            && self.kind.names_files()
            && !matches!(self.kind, Type::File | Type::FileList)
        {
            return self.default_value(outside).map(|value| value.map(Data::Json));
        }
        let typed = if self.takes_many() && !self.is_argument { split(typed)? } else { typed };
        let last = typed.last().map_or(OsStr::new(""), OsString::as_os_str);
        let value = match self.kind {
            Type::StringList => list(&typed, |typed| text(typed).map(Value::from)),
            Type::IntList => list(&typed, |typed| decimal(text(typed)?.trim()).map(Value::from)),
            Type::FloatList => list(&typed, |typed| float(text(typed)?.trim()).map(float_value)),
            Type::ChoiceList => list(&typed, |typed| self.choice(typed)),
            Type::FileList => list(&typed, |typed| file(typed, outside)),
            Type::StringFromFile | Type::StringFromFiles => strings(&typed, outside),
            Type::StringListFromFile | Type::StringListFromFiles => {
                join(&typed, |path| outside.read(path)?.texts())
            }
            Type::ObjectListFromFile | Type::ObjectListFromFiles => {
                return records(&typed, outside).map(Some);
            }
            Type::KeyValue => key_values(&typed, outside),
            Type::String | Type::Secret => text(last).map(Value::from),
            Type::Int if self.is_argument => text(last).and_then(decimal).map(Value::from),
            Type::Int => text(last).and_then(int).map(Value::from),
            Type::Float => text(last).and_then(float).map(float_value),
            Type::Bool => text(last).and_then(truth).map(Value::from),
            Type::Choice => self.choice(last),
            Type::Date => text(last).and_then(|text| date_value(text, outside)),
            Type::File => file(last, outside),
            Type::ObjectFromFile => {
                let contents = outside.read(Path::new(last))?;
                if let Some(map) = contents.yaml_object() {
                    return map.map(|map| Some(Data::Yaml(Yaml(map))));
                }
                let map = Value::Object(contents.object()?);
                Ok(if contents.has_floats() { floats(map) } else { map })
            }
        };
        value.map(Data::Json).map(Some)
    }

    fn choice(&self, typed: &OsStr) -> Result<Value, String> {
        let typed = text(typed)?;
        if self.choices.iter().any(|choice| choice == typed) {
            return Ok(Value::from(typed));
        }
        Err(format!("`{typed}` is not one of the choices: {}", self.choices.join(", ")))
    }
}

fn text(typed: &OsStr) -> Result<&str, String> {
    // The value may be a secret and is not shown.
    typed.to_str().ok_or_else(|| "the value is not UTF-8; type it in UTF-8".to_owned())
}

/// Parses an integer in the syntax of Go's source code, as pflag does for an option: `0x10`,
/// `0b11`, `1_000`, and `010`, which is octal.
pub(super) fn int(text: &str) -> Result<i64, String> {
    parse_int(text).ok_or_else(|| not_whole(text))
}

/// Parses an integer in decimal digits, as glazed does for a list item and for an
/// argument.
pub(super) fn decimal(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| not_whole(text))
}

fn not_whole(text: &str) -> String {
    format!("`{text}` is not a 64-bit integer, such as 42")
}

/// Parses a number, including `NaN` and `Inf`, as Go does: `0x1p4` is 16.
pub(super) fn float(text: &str) -> Result<f64, String> {
    parse_float(text).ok_or_else(|| format!("`{text}` is not a number, such as 1.5"))
}

/// A number as templates get it. NaN and the infinities become strings, as JSON has no such numbers.
pub(super) fn float_value(number: f64) -> Value {
    if number.is_nan() {
        return Value::from("NaN");
    }
    match serde_json::Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None => Value::from(if number > 0.0 { "+Inf" } else { "-Inf" }),
    }
}

/// Parses a boolean with the words of Go's `strconv.ParseBool`, and `on` and `off`.
pub(crate) fn truth(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" | "on" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" | "off" => Ok(false),
        _ => Err(format!("`{text}` is not true or false")),
    }
}

fn date_value(text: &str, outside: &Outside) -> Result<Value, String> {
    let date = date::rfc3339(text, outside.now());
    date.map(Value::from).ok_or_else(|| format!("`{text}` is not {}", date::EXPECTED))
}

/// Splits at commas, as pflag does: a comma in quotes does not split.
fn split(typed: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let mut items = Vec::new();
    for typed in typed {
        match typed.to_str() {
            Some("") => {}
            Some(text) if text.contains([',', '"']) => items.extend(split_text(text)?),
            _ => items.push(typed),
        }
    }
    Ok(items)
}

/// The texts in one value, separated by commas as pflag does it.
pub(crate) fn separated(typed: &str) -> Result<Vec<String>, String> {
    let texts = split(vec![OsString::from(typed)])?;
    Ok(texts.into_iter().filter_map(|text| text.into_string().ok()).collect())
}

fn split_text(text: &str) -> Result<Vec<OsString>, String> {
    let rows = table::rows(text, b',', Blanks::Preserved).ok().filter(|rows| rows.len() == 1);
    let row = rows.into_iter().flatten().next().ok_or_else(|| {
        format!("`{text}` can't be split at its commas; put double quotes around values that contain some")
    })?;
    Ok(row.into_iter().map(OsString::from).collect())
}

fn list(
    typed: &[OsString],
    item: impl FnMut(&OsString) -> Result<Value, String>,
) -> Result<Value, String> {
    typed.iter().map(item).collect()
}

fn file(typed: &OsStr, outside: &mut Outside) -> Result<Value, String> {
    let contents = outside.read(Path::new(typed))?;
    contents.file_data(outside.now())
}

fn strings(typed: &[OsString], outside: &mut Outside) -> Result<Value, String> {
    let mut whole = String::new();
    for path in typed {
        whole.push_str(outside.read(Path::new(path))?.text()?);
    }
    Ok(Value::from(whole))
}

fn join(
    typed: &[OsString],
    mut items: impl FnMut(&Path) -> Result<Vec<Value>, String>,
) -> Result<Value, String> {
    let mut whole = Vec::new();
    for path in typed {
        whole.extend(items(Path::new(path))?);
    }
    Ok(Value::Array(whole))
}

fn records(typed: &[OsString], outside: &mut Outside) -> Result<Data, String> {
    let mut whole = Vec::new();
    for path in typed {
        let contents = outside.read(Path::new(path))?;
        let records = contents.objects()?;
        if contents.has_floats() {
            whole.extend(records.into_iter().map(Record::with_floats));
        } else {
            whole.extend(records);
        }
    }
    Ok(Data::Records(whole))
}

fn key_values(typed: &[OsString], outside: &mut Outside) -> Result<Value, String> {
    if let [only] = typed
        && let Some(path) = only.to_str().and_then(|text| text.strip_prefix('@'))
    {
        let members = outside.read_key_values(path)?.object()?;
        return members.into_iter().map(|(key, value)| Ok((key, plain(path, value)?))).collect();
    }
    typed.iter().map(|typed| key_value(text(typed)?)).collect()
}

/// The key ends at the first of the two signs, so that the text may have either: glazed prefers `=`, and so
/// cuts `url:http://x?a=b` within the address.
fn key_value(typed: &str) -> Result<(String, Value), String> {
    let pair = typed.split_once(['=', ':']);
    let pair = pair.map(|(key, value)| (key.trim(), value.trim()));
    match pair {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok((key.to_owned(), Value::from(value)))
        }
        _ => Err(format!("`{typed}` is not a key and a text, such as name=Ada, or @file")),
    }
}

/// The string for a value in a file of keys and values.
fn plain(path: &str, value: Value) -> Result<Value, String> {
    match value {
        Value::String(_) => Ok(value),
        Value::Bool(_) | Value::Number(_) => Ok(Value::from(value.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(format!("{path} does not hold a string for each key"))
        }
    }
}
