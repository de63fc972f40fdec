//! Formats values like Go's package `fmt`: <https://pkg.go.dev/fmt>.

mod numbers;
mod own_text;
mod source;

use super::types::{FILE_FIELDS, IntType, MapType};
use super::value::{Heap, MapId, VALUE_LEVELS_MAX, Value};
use numbers::{Spec, pad, write_float, write_int};
use own_text::own_text;
use source::{can_backquote, quoted_ascii, quoted_char};
use std::iter::Peekable;
use std::str::Chars;

pub(super) use numbers::general;
pub(crate) use own_text::permissions;
pub(super) use own_text::written_integer;
pub(super) use source::quoted;

/// Largest width and precision; larger ones are reduced to it.
const WIDTH_CHARS_MAX: usize = 65_535;

/// Most characters in the brackets of an index.
const INDEX_CHARS_MAX: usize = 32;

/// Formats a value as `%v`.
pub(super) fn show(heap: &mut Heap, value: &Value) -> Result<String, String> {
    let mut out = String::new();
    write_value(heap, &mut out, value, 'v', &Spec::default(), 0)?;
    Ok(out)
}

/// `print`: a space between two operands neither of which is a string.
pub(super) fn print(heap: &mut Heap, values: &[Value]) -> Result<String, String> {
    let mut out = String::new();
    let mut was_text = true;
    for (index, value) in values.iter().enumerate() {
        let is_text = matches!(value, Value::Text(_));
        if index > 0 && !is_text && !was_text {
            out.push(' ');
        }
        write_value(heap, &mut out, value, 'v', &Spec::default(), 0)?;
        was_text = is_text;
    }
    Ok(out)
}

/// `println`: spaces between operands, a line break after them.
pub(super) fn println(heap: &mut Heap, values: &[Value]) -> Result<String, String> {
    let mut out = String::new();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        write_value(heap, &mut out, value, 'v', &Spec::default(), 0)?;
    }
    out.push('\n');
    Ok(out)
}

/// `printf`. An operand that does not fit its verb is reported in the text, as in Go:
/// `%!d(string=hi)`.
pub(super) fn printf(heap: &mut Heap, format: &str, values: &[Value]) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    let mut next = 0;
    let mut is_reordered = false;
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        heap.charge(1)?;
        let mut verb = Verb {
            chars: &mut chars,
            values,
            next,
            is_reordered: false,
            is_bad: false,
            has_bad_width: false,
        };
        let spec = verb.spec();
        (next, is_reordered) = (verb.next, is_reordered || verb.is_reordered);
        let is_bad = verb.is_bad;
        if verb.has_bad_width {
            out.push_str("%!(BADWIDTH)");
        }
        match (chars.next(), values.get(next)) {
            (None, _) => out.push_str("%!(NOVERB)"),
            (Some('%'), _) => out.push('%'),
            (Some(verb), _) if is_bad => {
                out.push_str(&format!("%!{verb}(BADINDEX)"));
            }
            (Some(verb), None) => {
                out.push_str(&format!("%!{verb}(MISSING)"));
            }
            (Some(verb), Some(value)) => {
                heap.charge(spec.width.unwrap_or(0) + spec.precision.unwrap_or(0))?;
                write_value(heap, &mut out, value, verb, &spec, 0)?;
                next += 1;
            }
        }
    }
    if !is_reordered && next < values.len() {
        write_extra(heap, &mut out, &values[next..])?;
    }
    Ok(out)
}

fn write_extra(heap: &mut Heap, out: &mut String, values: &[Value]) -> Result<(), String> {
    out.push_str("%!(EXTRA ");
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        out.push_str(value.type_name());
        if !matches!(value, Value::Nil | Value::Error(None)) {
            out.push('=');
            write_value(heap, out, value, 'v', &Spec::default(), 0)?;
        }
    }
    out.push(')');
    Ok(())
}

/// Parses the part between `%` and the verb.
struct Verb<'f, 'c> {
    chars: &'f mut Peekable<Chars<'c>>,
    values: &'f [Value],
    next: usize,
    is_reordered: bool,
    is_bad: bool,
    has_bad_width: bool,
}

impl Verb<'_, '_> {
    fn spec(&mut self) -> Spec {
        let mut spec = Spec::default();
        while let Some(flag) = self.chars.next_if(|char| "-+# 0".contains(*char)) {
            match flag {
                '-' => spec.minus = true,
                '+' => spec.plus = true,
                '#' => spec.sharp = true,
                ' ' => spec.space = true,
                _ => spec.zero = true,
            }
        }
        self.index();
        if let Some(width) = self.number() {
            spec.minus = spec.minus || width < 0;
            spec.width = Some(cut(width));
        }
        if self.chars.next_if_eq(&'.').is_some() {
            self.index();
            let precision = self.number().unwrap_or(0);
            spec.precision = usize::try_from(precision).ok().map(|_| cut(precision));
        }
        self.index();
        spec
    }

    /// `[3]`: the index of the next operand.
    fn index(&mut self) {
        if self.chars.next_if_eq(&'[').is_none() {
            return;
        }
        self.is_reordered = true;
        let closing = self.chars.clone().take(INDEX_CHARS_MAX).position(|char| char == ']');
        let inside: String = self.chars.by_ref().take(closing.unwrap_or(0)).collect();
        self.chars.next_if_eq(&']');
        let is_number = inside.bytes().all(|byte| byte.is_ascii_digit());
        let index = inside.parse().ok().filter(|_| is_number);
        match index.and_then(|index: usize| index.checked_sub(1)) {
            Some(index) if index < self.values.len() => self.next = index,
            Some(_) | None => self.is_bad = true,
        }
    }

    /// Digits, or `*` for the next operand.
    fn number(&mut self) -> Option<i64> {
        if self.chars.next_if_eq(&'*').is_none() {
            return self.digits();
        }
        let value = self.values.get(self.next);
        self.next += 1;
        if let Some(number) = value.and_then(Value::integer) {
            return Some(number);
        }
        self.has_bad_width = true;
        None
    }

    fn digits(&mut self) -> Option<i64> {
        let mut number = None;
        while let Some(digit) = self.chars.peek().and_then(|char| char.to_digit(10)) {
            self.chars.next();
            number =
                Some(number.unwrap_or(0_i64).saturating_mul(10).saturating_add(i64::from(digit)));
        }
        number
    }
}

fn cut(number: i64) -> usize {
    usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX).min(WIDTH_CHARS_MAX)
}

fn write_value(
    heap: &mut Heap,
    out: &mut String,
    value: &Value,
    verb: char,
    spec: &Spec,
    level: usize,
) -> Result<(), String> {
    if level > VALUE_LEVELS_MAX {
        return Err("a map that contains itself can't be printed".into());
    }
    if verb == 'v' && spec.sharp {
        let mut text = String::new();
        source::write(heap, &mut text, value, level)?;
        pad(out, spec, &text);
        return Ok(());
    }
    heap.visit()?;
    if let Some(text) = own_text(value, verb) {
        return write_value(heap, out, &Value::text(text), verb, spec, level);
    }
    if verb == 'T' {
        pad(out, spec, value.type_name());
        return heap.charge(value.type_name().len());
    }
    if let Value::List(list) = value {
        out.push('[');
        for (index, item) in list.iter().enumerate() {
            if index > 0 {
                out.push(' ');
            }
            write_value(heap, out, item, verb, spec, level + 1)?;
        }
        out.push(']');
        return heap.charge(2 + list.len());
    }
    let Value::Map(id) = value else {
        return write_single(heap, out, value, verb, spec, level);
    };
    if id.kind() == MapType::File {
        return write_file(heap, out, *id, verb, spec, level);
    }
    out.push_str("map[");
    for (index, (key, item)) in heap.members(*id)?.into_iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        write_value(heap, out, &id.key(key), verb, spec, level + 1)?;
        out.push(':');
        write_value(heap, out, &item, verb, spec, level + 1)?;
    }
    out.push(']');
    heap.charge(5)
}

/// Formats a file as the struct that it is in Go. `printf` shows that it is a pointer.
fn write_file(
    heap: &mut Heap,
    out: &mut String,
    id: MapId,
    verb: char,
    spec: &Spec,
    level: usize,
) -> Result<(), String> {
    out.push_str("&{");
    for (index, name) in FILE_FIELDS.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        if spec.plus {
            out.push_str(name);
            out.push(':');
        }
        let field = heap.field(id, name)?;
        write_value(heap, out, &field, verb, spec, level + 1)?;
    }
    out.push('}');
    heap.charge(5)
}

/// Formats a scalar.
fn write_single(
    heap: &mut Heap,
    out: &mut String,
    value: &Value,
    verb: char,
    spec: &Spec,
    level: usize,
) -> Result<(), String> {
    let before = out.len();
    match (value, verb) {
        // Within another value, as it is for every verb.
        (Value::Nil | Value::Error(None), _) if level > 0 => out.push_str("<nil>"),
        (Value::Nil | Value::Error(None), 'v') => pad(out, spec, "<nil>"),
        (Value::Bool(truth), 't' | 'v') => pad(out, spec, if *truth { "true" } else { "false" }),
        (Value::Named(IntType::Uint64, number), verb) if *number < 0 && is_integer_verb(verb) => {
            write_unsigned(out, number.cast_unsigned(), verb, spec);
        }
        (Value::Int(number) | Value::Named(_, number), verb) if is_integer_verb(verb) => {
            write_integer(out, *number, verb, spec);
        }
        (Value::Float(number), 'v') => write_float(out, *number, verb, &without_plus(spec)),
        (Value::Float(number), 'e' | 'E' | 'f' | 'F' | 'g' | 'G') => {
            write_float(out, *number, verb, spec);
        }
        (Value::Text(text), 'v' | 's') => pad(out, spec, first_chars(text, spec.precision)),
        (Value::Text(text), 'q') => {
            let text = first_chars(text, spec.precision);
            if spec.sharp && can_backquote(text) {
                pad(out, spec, &format!("`{text}`"));
            } else {
                pad(out, spec, &if spec.plus { quoted_ascii(text) } else { quoted(text) });
            }
        }
        (Value::Text(text), 'x' | 'X') => pad(out, spec, &hex(text.as_bytes(), verb, spec)),
        (Value::Nil | Value::Error(None), _) => {
            out.push_str(&format!("%!{verb}(<nil>)"));
        }
        (value, _) => {
            out.push_str(&format!("%!{verb}({}=", value.type_name()));
            write_misplaced(heap, out, value, spec, level + 1)?;
            out.push(')');
        }
    }
    heap.charge(out.len() - before)
}

/// Formats the operand of a verb that does not fit: as `%v`, with the flags and the width of the verb.
fn write_misplaced(
    heap: &mut Heap,
    out: &mut String,
    value: &Value,
    spec: &Spec,
    level: usize,
) -> Result<(), String> {
    match value {
        Value::Named(IntType::Uint64, number) => {
            write_unsigned(out, number.cast_unsigned(), 'd', spec);
        }
        Value::Int(number) | Value::Named(_, number) => write_int(out, *number, 'd', spec),
        Value::Float(number) => write_float(out, *number, 'g', spec),
        Value::Bool(_) | Value::Text(_) => {
            // These have no form of their own in Go's syntax that `#` would ask for.
            write_value(heap, out, value, 'v', &Spec { sharp: false, ..*spec }, level)?;
        }
        Value::Nil
        | Value::Time(_)
        | Value::Version(_)
        | Value::Error(_)
        | Value::List(_)
        | Value::Map(_) => write_value(heap, out, value, 'v', &Spec::default(), level)?,
    }
    Ok(())
}

fn is_integer_verb(verb: char) -> bool {
    "cqUvdboOxX".contains(verb)
}

fn write_integer(out: &mut String, number: i64, verb: char, spec: &Spec) {
    match verb {
        'c' => pad(out, spec, &char_of(number).to_string()),
        'q' => pad(out, spec, &quoted_char(char_of(number), spec.plus)),
        'U' => pad(out, &Spec { zero: false, ..*spec }, &code_point(number, spec)),
        'v' => write_int(out, number, verb, &without_plus(spec)),
        verb => write_int(out, number, verb, spec),
    }
}

/// `%+v` adds field names, which numbers don't have, and no sign.
fn without_plus(spec: &Spec) -> Spec {
    Spec { plus: false, ..*spec }
}

/// `%U`: `U+0041`; `%#U`: with the character, if it is printable.
fn code_point(number: i64, spec: &Spec) -> String {
    let width = spec.precision.unwrap_or(0).max(4);
    let code = format!("U+{number:0width$X}");
    let char = u32::try_from(number).ok().and_then(char::from_u32);
    match char.filter(|char| spec.sharp && source::is_shown(*char)) {
        Some(char) => format!("{code} '{char}'"),
        None => code,
    }
}

/// An integer beyond `i64`, which is no character.
fn write_unsigned(out: &mut String, number: u64, verb: char, spec: &Spec) {
    let text = match verb {
        'b' => format!("{number:b}"),
        'o' => format!("{number:o}"),
        'x' => format!("{number:x}"),
        'X' => format!("{number:X}"),
        'U' => format!("U+{number:X}"),
        'c' => char::REPLACEMENT_CHARACTER.to_string(),
        'q' => quoted_char(char::REPLACEMENT_CHARACTER, spec.plus),
        _ => number.to_string(),
    };
    pad(out, spec, &text);
}

fn first_chars(text: &str, count: Option<usize>) -> &str {
    let end = count.and_then(|count| text.char_indices().nth(count));
    end.map_or(text, |(end, _)| &text[..end])
}

fn char_of(number: i64) -> char {
    u32::try_from(number).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn hex(bytes: &[u8], verb: char, spec: &Spec) -> String {
    let mut out = String::new();
    for (index, byte) in bytes.iter().take(spec.precision.unwrap_or(usize::MAX)).enumerate() {
        if spec.space && index > 0 {
            out.push(' ');
        }
        if spec.sharp && (spec.space || index == 0) {
            out.push_str(if verb == 'x' { "0x" } else { "0X" });
        }
        out.push_str(&if verb == 'x' { format!("{byte:02x}") } else { format!("{byte:02X}") });
    }
    out
}
