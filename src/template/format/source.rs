//! `%#v`: values in Go syntax.

use super::{Spec, write_value};
use crate::template::time;
use crate::template::types::{FILE_FIELDS, IntType, MapType};
use crate::template::value::{Heap, MapId, VALUE_LEVELS_MAX, Value};

/// Formats a value. A nil inside another value is written with its type.
pub(super) fn write(
    heap: &mut Heap,
    out: &mut String,
    value: &Value,
    level: usize,
) -> Result<(), String> {
    if level > VALUE_LEVELS_MAX {
        return Err("a map that contains itself can't be printed".into());
    }
    heap.visit()?;
    let before = out.len();
    match value {
        Value::Nil if level > 0 => out.push_str("interface {}(nil)"),
        Value::Error(None) if level > 0 => out.push_str("error(nil)"),
        Value::Nil | Value::Error(None) => out.push_str("<nil>"),
        Value::Text(text) | Value::Error(Some(text)) => out.push_str(&quoted(text)),
        Value::Named(IntType::Uint8 | IntType::FileMode, number) => {
            out.push_str(&format!("{number:#x}"));
        }
        Value::Named(IntType::Uint64, number) => {
            out.push_str(&format!("{:#x}", number.cast_unsigned()));
        }
        Value::Named(_, number) => out.push_str(&number.to_string()),
        Value::Time(at) => out.push_str(&time::go_string(at, heap.zone())),
        Value::Version(version) => out.push_str(&version.to_string()),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
            write_value(heap, out, value, 'v', &Spec::default(), level)?;
        }
        Value::List(list) => {
            out.push_str(list.kind().name());
            out.push('{');
            for (index, item) in list.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write(heap, out, item, level + 1)?;
            }
            out.push('}');
            return heap.charge(2 + list.len());
        }
        Value::Map(id) if id.kind() == MapType::File => return write_file(heap, out, *id, level),
        Value::Map(id) => {
            out.push_str(id.kind().name());
            out.push('{');
            for (index, (key, item)) in heap.members(*id)?.into_iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write(heap, out, &id.key(key), level + 1)?;
                out.push(':');
                write(heap, out, &item, level + 1)?;
            }
            out.push('}');
            return heap.charge(5);
        }
    }
    heap.charge(out.len() - before)
}

fn write_file(heap: &mut Heap, out: &mut String, id: MapId, level: usize) -> Result<(), String> {
    out.push_str("&fields.FileData{");
    for (index, name) in FILE_FIELDS.iter().enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        out.push_str(name);
        out.push(':');
        let field = heap.field(id, name)?;
        write(heap, out, &field, level + 1)?;
    }
    out.push('}');
    heap.charge(5)
}

pub(super) fn can_backquote(text: &str) -> bool {
    text.chars()
        .all(|char| char == '\t' || (!char.is_control() && char != '`' && char != '\u{feff}'))
}

/// `%q` of a string: Go's syntax, on one line.
pub(in crate::template) fn quoted(text: &str) -> String {
    in_quotes(text.chars(), '"', false)
}

/// `%+q` of a string: with escapes for all that is not ASCII.
pub(super) fn quoted_ascii(text: &str) -> String {
    in_quotes(text.chars(), '"', true)
}

pub(super) fn quoted_char(char: char, is_ascii: bool) -> String {
    in_quotes(std::iter::once(char), '\'', is_ascii)
}

fn in_quotes(chars: impl Iterator<Item = char>, quote: char, is_ascii: bool) -> String {
    let mut out = String::with_capacity(chars.size_hint().0 + 2);
    out.push(quote);
    chars.for_each(|char| push_escaped(&mut out, char, quote, is_ascii));
    out.push(quote);
    out
}

fn push_escaped(out: &mut String, char: char, quote: char, is_ascii: bool) {
    match char {
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{b}' => out.push_str("\\v"),
        '\u{c}' => out.push_str("\\f"),
        char if char == quote => out.extend(['\\', char]),
        char if is_shown(char) && (char.is_ascii() || !is_ascii) => out.push(char),
        char if char.is_ascii() => out.push_str(&format!("\\x{:02x}", u32::from(char))),
        char if u32::from(char) > 0xffff => {
            out.push_str(&format!("\\U{:08x}", u32::from(char)));
        }
        char => out.push_str(&format!("\\u{:04x}", u32::from(char))),
    }
}

/// False for what Go considers unprintable, as far as the standard library can determine.
pub(super) fn is_shown(char: char) -> bool {
    let is_blank = char.is_whitespace() && char != ' ';
    let is_hidden = matches!(u32::from(char), 0xad | 0x200b..=0x200f | 0x202a..=0x202e
        | 0x2060..=0x206f | 0xe000..=0xf8ff | 0xfeff | 0xfff9..=0xfffb | 0xf_0000..);
    !char.is_control() && !is_blank && !is_hidden
}
