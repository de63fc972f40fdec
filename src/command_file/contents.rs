//! Converts the content of a file to values, according to its extension. Pure; the file has already
//! been read.

mod of_yaml;

use super::cost::{self, Cost, NoRoom, RecordsCost, Room, TemplateCost};
use super::outside::{Contents, FileFacts};
use super::records::{FoundRecords, Maker};
use super::table::{self, Blanks};
use crate::protocol::json::Error;
use crate::template::{Keys, Record, permissions};
use crate::yaml;
use crate::yaml::data::Root;
use jiff::{Timestamp, Zoned};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;

/// The format of a file, according to its extension.
enum Format {
    Json,
    JsonLines,
    Yaml,
    /// Values separated by this byte.
    Table(u8),
    Other,
}

/// Extensions of files that can hold maps.
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

    /// The name of the file in messages.
    fn called(&self) -> &str {
        if self.file.is_some() { &self.name } else { "standard input" }
    }

    /// The whole content as text.
    pub(super) fn text(&self) -> Result<&str, String> {
        std::str::from_utf8(&self.bytes).map_err(|error| {
            format!(
                "{} is not UTF-8 from byte {} on; convert it to UTF-8, or give another file",
                self.called(),
                error.valid_up_to()
            )
        })
    }

    /// The text without a byte order mark.
    fn unmarked(&self) -> Result<&str, String> {
        self.text().map(yaml::without_mark)
    }

    /// A list of strings: a list in JSON or YAML, else lines. In a table the first line is a
    /// heading.
    pub(super) fn texts(&self) -> Result<Vec<Value>, String> {
        let list = match self.format() {
            Format::Json => self.json()?,
            Format::Yaml => self.yaml()?,
            Format::Table(_) => self.lines(self.unmarked()?, 1)?,
            Format::JsonLines | Format::Other => self.lines(self.unmarked()?, 0)?,
        };
        if let Value::Array(items) = list
            && items.iter().all(Value::is_string)
        {
            return Ok(items);
        }
        Err(format!("{} does not hold a list of strings", self.called()))
    }

    /// The lines of `text` from number `first` on, from 0.
    fn lines(&self, text: &str, first: usize) -> Result<Value, String> {
        let mut room = self.room();
        text.lines().try_for_each(|line| self.fits(room.take(cost::of_text(line.len()))))?;
        Ok(text.lines().skip(first).map(Value::from).collect())
    }

    /// Whether Go reads the numbers of this format as floats.
    pub(super) fn has_floats(&self) -> bool {
        match self.format() {
            Format::Json | Format::JsonLines => true,
            Format::Yaml | Format::Table(_) => false,
            // Maps are read from standard input as JSON.
            Format::Other => self.file.is_none(),
        }
    }

    /// The only map in the file.
    pub(super) fn object(&self) -> Result<Map<String, Value>, String> {
        let value = match self.format() {
            Format::Json => self.json()?,
            Format::Yaml => self.yaml()?,
            Format::Table(sign) => match self.table(sign)?.as_slice() {
                [only] => Value::Object(only.members().collect()),
                rows => {
                    let found = rows.len();
                    let name = self.called();
                    return Err(format!("{name} holds {found} rows under its heading, not one"));
                }
            },
            // Standard input has no extension.
            Format::Other if self.file.is_none() => self.json()?,
            Format::JsonLines | Format::Other => return Err(self.unknown(MAP_ENDINGS)),
        };
        if let Value::Object(members) = value {
            return Ok(members);
        }
        Err(format!("{} does not hold a map", self.called()))
    }

    /// The maps in the file; a single map counts as a list of one.
    pub(super) fn objects(&self) -> Result<Vec<Record>, String> {
        let found = match self.format() {
            Format::Json => self.json_records()?,
            Format::Yaml => self.yaml_records()?,
            Format::Table(sign) => FoundRecords::Records(self.table(sign)?),
            Format::JsonLines => self.json_lines()?,
            Format::Other if self.file.is_none() => self.json_records()?,
            Format::Other => {
                return Err(self.unknown(".json, .jsonl, .ndjson, .yaml, .yml, .csv or .tsv"));
            }
        };
        match found {
            FoundRecords::Records(records) => Ok(records),
            FoundRecords::Other => Err(format!("{} does not hold a list of maps", self.called())),
        }
    }

    fn unknown(&self, endings: &str) -> String {
        format!(
            "the format of {} can't be determined from its name; it must end in {endings}",
            self.called()
        )
    }

    /// The memory limit for its values.
    fn room(&self) -> Room {
        Room::of_file(self.bytes.len())
    }

    fn fits(&self, fits: Result<(), NoRoom>) -> Result<(), String> {
        fits.map_err(|error| format!("{} {error}", self.called()))
    }

    fn json(&self) -> Result<Value, String> {
        let text = self.unmarked()?;
        let Cost(cost) = serde_json::from_str(text).map_err(|error| self.no_json(error))?;
        self.fits(self.room().take(cost))?;
        serde_json::from_str(text).map_err(|error| self.no_json(error))
    }

    fn check_json(&self) -> Result<(), String> {
        let TemplateCost(_) =
            serde_json::from_str(self.unmarked()?).map_err(|error| self.no_json(error))?;
        Ok(())
    }

    fn json_records(&self) -> Result<FoundRecords, String> {
        let text = self.unmarked()?;
        let RecordsCost(cost) = serde_json::from_str(text).map_err(|error| self.no_json(error))?;
        self.fits(self.room().take(cost))?;
        serde_json::from_str(text).map_err(|error| self.no_json(error))
    }

    fn no_json(&self, error: serde_json::Error) -> String {
        format!("{} is not valid JSON: {}", self.called(), Error::from(error))
    }

    fn json_lines(&self) -> Result<FoundRecords, String> {
        let (mut room, mut maker) = (self.room(), Maker::default());
        let (mut records, mut has_other) = (Vec::new(), false);
        for (index, line) in self.unmarked()?.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let no_json = |error: serde_json::Error| {
                // To its reader each line is the first one.
                let error =
                    Error::from(error).to_string().replace(" at line 1 column ", " at column ");
                format!("{}: line {} is not valid JSON: {error}", self.called(), index + 1)
            };
            let RecordsCost(cost) = serde_json::from_str(line).map_err(no_json)?;
            self.fits(room.take(cost))?;
            match maker.record_of(serde_json::from_str(line).map_err(no_json)?) {
                Some(record) => records.push(record),
                None => has_other = true,
            }
        }
        Ok(if has_other { FoundRecords::Other } else { FoundRecords::Records(records) })
    }

    /// The rows after the heading, which names the columns.
    fn table(&self, sign: u8) -> Result<Vec<Record>, String> {
        let mut heading: Vec<String> = Vec::new();
        let mut order: Vec<usize> = Vec::new();
        let mut keys = Keys::default();
        let mut records = Vec::new();
        let mut is_first = true;
        self.rows(sign, Blanks::Dropped, |row| {
            if std::mem::take(&mut is_first) {
                heading = row.iter().map(str::to_owned).collect();
                order = (0..heading.len()).collect();
                order.sort_by(|left, right| heading[*left].cmp(&heading[*right]));
                keys = order.iter().map(|at| Arc::from(heading[*at].as_str())).collect();
                return;
            }
            let values = order.iter().map(|at| Value::from(row.get(*at).unwrap_or_default()));
            records.push(Record::new(Arc::clone(&keys), values));
        })?;
        if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
            let (called, name) = (self.called(), &pair[0]);
            return Err(format!("two columns of {called} are named `{name}`; rename one"));
        }
        Ok(records)
    }

    /// Visits the rows, all of which have as many values as the first.
    fn rows(
        &self,
        sign: u8,
        blanks: Blanks,
        mut each: impl FnMut(&csv::StringRecord),
    ) -> Result<(), String> {
        let mut room = self.room();
        let mut no_room = None;
        let rows = table::each_row(self.unmarked()?, sign, blanks, |row| {
            match room.take(cost::of_row(row.iter().map(str::len))) {
                Ok(()) => each(row),
                Err(error) => no_room = Some(error),
            }
            no_room.is_none()
        });
        rows.map_err(|error| format!("{} is not a valid table: {error}", self.called()))?;
        self.fits(no_room.map_or(Ok(()), Err))
    }

    /// All rows as lists, the heading included.
    fn lists(&self) -> Result<Value, String> {
        let mut lists = Vec::new();
        self.rows(b',', Blanks::Preserved, |row| {
            // Collected, a short row would have room for more.
            let mut list = Vec::with_capacity(row.len());
            list.extend(row.iter().map(Value::from));
            lists.push(Value::Array(list));
        })?;
        Ok(Value::Array(lists))
    }

    /// The value of a file for a template: the fields of glazed's `FileData`, without the bytes.
    pub(super) fn file_data(self, now: &Zoned) -> Result<Value, String> {
        self.text()?;
        let Some(file) = &self.file else { return Ok(stdin_data(self.bytes, now)) };
        self.fits(self.has_room())?;
        let (kind, parsed) = match self.format() {
            // A template reads it from the text.
            Format::Json => ("JSON", self.check_json().map(|()| Value::Null)),
            Format::Yaml => ("YAML", self.read_yaml().map(|Cost(_)| Value::Null)),
            Format::Table(b',') => ("CSV", self.lists()),
            Format::Table(_) | Format::JsonLines | Format::Other => ("TEXT", Ok(Value::Null)),
        };
        let (parsed, error) = match parsed {
            Ok(parsed) => (parsed, Value::Null),
            Err(error) => (Value::Null, Value::from(error)),
        };
        let begins_with = |sign| {
            kind == "JSON"
                && error.is_null()
                && self.unmarked().is_ok_and(|text| text.trim_start().starts_with(sign))
        };
        let root = match (kind, error.is_null(), self.unmarked()) {
            ("YAML", true, Ok(text)) => yaml::data::root(text),
            (_, _, Ok(_) | Err(_)) => Root::Other,
        };
        let is_list = parsed.is_array() || begins_with('[') || root == Root::List;
        let is_object = parsed.is_object() || begins_with('{') || root == Root::Map;
        let path = Path::new(&self.name);
        let extension =
            path.extension().map(|end| format!(".{}", end.to_string_lossy().to_lowercase()));
        let base = path.file_name().unwrap_or(path.as_os_str());
        let size = self.bytes.len();
        let mut data = json!({
            "AbsolutePath": file.absolute.to_string_lossy(),
            "BaseName": base.to_string_lossy(),
            "Extension": extension.unwrap_or_default(),
            "FileType": kind,
            "IsDirectory": false,
            "IsList": is_list,
            "IsObject": is_object,
            "LastModifiedTime": modified(file, now),
            "ParseError": error,
            "Path": self.name,
            "Permissions": permissions(file.mode.into()),
            "RelativePath": file.relative.to_string_lossy(),
            "Size": size,
        });
        // Moved, not copied: both are as large as the file, or larger.
        data["ParsedContent"] = parsed;
        data["Content"] = content(self.bytes);
        Ok(data)
    }

    /// Whether there is room for what is parsed of it. A file that can't be parsed takes none.
    fn has_room(&self) -> Result<(), NoRoom> {
        let Ok(text) = self.unmarked() else { return Ok(()) };
        let cost = match self.format() {
            Format::Json => {
                let TemplateCost(bytes) = serde_json::from_str(text).unwrap_or_default();
                Cost(bytes)
            }
            Format::Yaml => yaml::deserialize(text).unwrap_or_default(),
            Format::Table(b',') => {
                let mut bytes = 0_usize;
                let counted = table::each_row(text, b',', Blanks::Preserved, |row| {
                    bytes = bytes.saturating_add(cost::of_row(row.iter().map(str::len)));
                    true
                });
                Cost(counted.map_or(0, |()| bytes))
            }
            Format::Table(_) | Format::JsonLines | Format::Other => Cost::default(),
        };
        self.room().take(cost.0)
    }
}

/// The text of a file. That it is UTF-8 was checked.
fn content(bytes: Vec<u8>) -> Value {
    String::from_utf8(bytes).unwrap_or_default().into()
}

fn stdin_data(bytes: Vec<u8>, now: &Zoned) -> Value {
    let size = bytes.len();
    let mut data = json!({
        "AbsolutePath": "stdin",
        "BaseName": "stdin",
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
        "Size": size,
    });
    data["Content"] = content(bytes);
    data
}

fn modified(file: &FileFacts, now: &Zoned) -> String {
    let time = file.modified.and_then(|time| Timestamp::try_from(time).ok());
    time.unwrap_or(now.timestamp()).to_string()
}
