//! What is in a file → values, by what its name ends in. Pure; the file is already read.

use super::outside::{Contents, FileFacts};
use super::table::{self, Blanks};
use super::yaml;
use jiff::{Timestamp, Zoned};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::path::Path;

/// What a file holds, as its name tells.
enum Format {
    Json,
    JsonLines,
    Yaml,
    /// Values between these bytes.
    Table(u8),
    Other,
}

/// Endings of files that can hold maps.
const MAP_ENDINGS: &str = ".json, .yaml, .yml, .csv or .tsv";

impl Contents {
    fn format(&self) -> Format {
        let extension = Path::new(&self.name).extension().unwrap_or_default();
        match extension.to_string_lossy().to_lowercase().as_str() {
            "json" => Format::Json,
            "jsonl" | "ndjson" => Format::JsonLines,
            "yaml" | "yml" => Format::Yaml,
            "csv" => Format::Table(b','),
            "tsv" => Format::Table(b'\t'),
            _ => Format::Other,
        }
    }

    /// What it is called, for people.
    fn called(&self) -> &str {
        if self.file.is_some() { &self.name } else { "standard input" }
    }

    /// All of it, as text.
    pub(super) fn text(&self) -> Result<&str, String> {
        std::str::from_utf8(&self.bytes).map_err(|error| {
            format!(
                "{} is not UTF-8 from byte {} on; convert it to UTF-8, or give another file",
                self.called(),
                error.valid_up_to()
            )
        })
    }

    /// The same without the mark that some editors put in front of UTF-8.
    fn unmarked(&self) -> Result<&str, String> {
        self.text().map(yaml::without_mark)
    }

    /// Its texts: a list in JSON or YAML, else its lines. In a table the first line is a heading.
    pub(super) fn texts(&self) -> Result<Vec<Value>, String> {
        let list = match self.format() {
            Format::Json => self.json()?,
            Format::Yaml => self.yaml()?,
            Format::Table(_) => self.unmarked()?.lines().skip(1).map(Value::from).collect(),
            Format::JsonLines | Format::Other => self.text()?.lines().map(Value::from).collect(),
        };
        if let Value::Array(items) = list
            && items.iter().all(Value::is_string)
        {
            return Ok(items);
        }
        Err(format!("{} does not hold a list of texts", self.called()))
    }

    /// Whether its numbers are floats to Go's reader.
    pub(super) fn has_floats(&self) -> bool {
        match self.format() {
            Format::Json | Format::JsonLines => true,
            Format::Yaml | Format::Table(_) => false,
            // Maps are read from standard input as JSON.
            Format::Other => self.file.is_none(),
        }
    }

    /// Its only map.
    pub(super) fn object(&self) -> Result<Map<String, Value>, String> {
        let value = match self.format() {
            Format::Json => self.json()?,
            Format::Yaml => self.yaml()?,
            Format::Table(sign) => match self.table(sign)?.as_mut_slice() {
                [only] => only.take(),
                rows => {
                    let found = rows.len();
                    let name = self.called();
                    return Err(format!("{name} holds {found} rows under its heading, not one"));
                }
            },
            // Standard input has no name to tell by.
            Format::Other if self.file.is_none() => self.json()?,
            Format::JsonLines | Format::Other => return Err(self.unknown(MAP_ENDINGS)),
        };
        if let Value::Object(members) = value {
            return Ok(members);
        }
        Err(format!("{} does not hold a map", self.called()))
    }

    /// Its maps; an only map counts as a list of one.
    pub(super) fn objects(&self) -> Result<Vec<Value>, String> {
        let value = match self.format() {
            Format::Json => self.json()?,
            Format::Yaml => self.yaml()?,
            Format::Table(sign) => Value::Array(self.table(sign)?),
            Format::JsonLines => Value::Array(self.json_lines()?),
            Format::Other if self.file.is_none() => self.json()?,
            Format::Other => {
                return Err(self.unknown(".json, .jsonl, .ndjson, .yaml, .yml, .csv or .tsv"));
            }
        };
        let items = if let Value::Array(items) = value { items } else { vec![value] };
        if items.iter().all(Value::is_object) {
            return Ok(items);
        }
        Err(format!("{} does not hold a list of maps", self.called()))
    }

    fn unknown(&self, endings: &str) -> String {
        format!(
            "what {} holds can't be told from its name; it must end in {endings}",
            self.called()
        )
    }

    fn json(&self) -> Result<Value, String> {
        serde_json::from_str(self.unmarked()?)
            .map_err(|error| format!("{} is not valid JSON: {error}", self.called()))
    }

    fn json_lines(&self) -> Result<Vec<Value>, String> {
        let lines =
            self.unmarked()?.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let value = |(index, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| {
                format!("{}: line {} is not valid JSON: {error}", self.called(), index + 1)
            })
        };
        lines.map(value).collect()
    }

    fn yaml(&self) -> Result<Value, String> {
        yaml::to_json(self.unmarked()?).map_err(|error| {
            let place = error.line.map(|line| format!(": line {line}")).unwrap_or_default();
            format!("{}{place} is not valid YAML: {}", self.called(), error.message)
        })
    }

    /// The rows under the heading, which names their values.
    fn table(&self, sign: u8) -> Result<Vec<Value>, String> {
        let mut rows = self.rows(sign, Blanks::Dropped)?.into_iter();
        let heading = rows.next().unwrap_or_default();
        let mut names = HashSet::new();
        if let Some(name) = heading.iter().find(|name| !names.insert(name.as_str())) {
            let called = self.called();
            return Err(format!("two columns of {called} are named `{name}`; rename one"));
        }
        let row = |row: Vec<String>| {
            heading.iter().cloned().zip(row.into_iter().map(Value::from)).collect()
        };
        Ok(rows.map(row).collect())
    }

    /// All rows, of as many values as the first.
    fn rows(&self, sign: u8, blanks: Blanks) -> Result<Vec<Vec<String>>, String> {
        let rows = table::rows(self.unmarked()?, sign, blanks);
        rows.map_err(|error| format!("{} is not a valid table: {error}", self.called()))
    }

    /// What templates get for a file: the fields of glazed's `FileData`, without the bytes.
    pub(super) fn file_data(self, now: &Zoned) -> Result<Value, String> {
        let text = self.text()?;
        let Some(file) = &self.file else { return Ok(stdin_data(text, now)) };
        let (kind, parsed) = match self.format() {
            Format::Json => ("JSON", self.json()),
            Format::Yaml => ("YAML", self.yaml()),
            Format::Table(b',') => ("CSV", self.rows(b',', Blanks::Kept).map(|rows| json!(rows))),
            Format::Table(_) | Format::JsonLines | Format::Other => ("TEXT", Ok(Value::Null)),
        };
        let (parsed, error) = match parsed {
            Ok(parsed) => (parsed, Value::Null),
            Err(error) => (Value::Null, Value::from(error)),
        };
        let path = Path::new(&self.name);
        let extension =
            path.extension().map(|end| format!(".{}", end.to_string_lossy().to_lowercase()));
        let base = path.file_name().unwrap_or(path.as_os_str());
        Ok(json!({
            "AbsolutePath": file.absolute.to_string_lossy(),
            "BaseName": base.to_string_lossy(),
            "Content": text,
            "Extension": extension.unwrap_or_default(),
            "FileType": kind,
            "IsDirectory": false,
            "IsList": parsed.is_array(),
            "IsObject": parsed.is_object(),
            "LastModifiedTime": modified(file, now),
            "ParseError": error,
            "ParsedContent": parsed,
            "Path": self.name,
            "Permissions": permissions(file.mode),
            "RelativePath": file.relative.to_string_lossy(),
            "Size": self.bytes.len(),
            "StringContent": text,
        }))
    }
}

fn stdin_data(text: &str, now: &Zoned) -> Value {
    json!({
        "AbsolutePath": "stdin",
        "BaseName": "stdin",
        "Content": text,
        "Extension": "",
        "FileType": "",
        "IsDirectory": false,
        "IsList": false,
        "IsObject": false,
        "LastModifiedTime": now.timestamp().to_string(),
        "ParseError": null,
        "ParsedContent": null,
        "Path": "stdin",
        "Permissions": permissions(0),
        "RelativePath": "stdin",
        "Size": text.len(),
        "StringContent": text,
    })
}

fn modified(file: &FileFacts, now: &Zoned) -> String {
    let time = file.modified.and_then(|time| Timestamp::try_from(time).ok());
    time.unwrap_or(now.timestamp()).to_string()
}

/// As Go writes a file's permissions: `-rw-r--r--`.
fn permissions(mode: u32) -> String {
    let bit = |index: u32| {
        let letter = ['r', 'w', 'x'][usize::try_from(index % 3).unwrap_or(0)];
        if mode >> (8 - index) & 1 == 1 { letter } else { '-' }
    };
    std::iter::once('-').chain((0..9).map(bit)).collect()
}
