//! `%#v`: values in Go syntax.

use super::{Spec, quoted, write_value};
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
            for (index, (key, item)) in heap.copy(*id)?.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                out.push_str(&quoted(key));
                out.push(':');
                write(heap, out, item, level + 1)?;
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
