//! Functions that encode and decode JSON, YAML, base64 and base32, and digests of text as hexadecimal
//! digits: <https://masterminds.github.io/sprig/crypto.html>.

use super::{Function, FunctionCall, function, yaml};
use crate::template::time;
use crate::template::types::{FILE_FIELDS, IntType, ListType, MapType};
use crate::template::value::{Heap, MapId, Value, check_levels};
use data_encoding::{BASE32, BASE64, Encoding, HEXLOWER};
use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512, digest};
use serde_json::Value as Json;
use std::sync::{Arc, LazyLock};

pub(super) const FUNCTIONS: &[Function] = &[
    function("toJson", (1, 1), |call| json(call, false, true, false)),
    function("toRawJson", (1, 1), |call| json(call, false, false, true)),
    function("toPrettyJson", (1, 1), |call| json(call, true, true, false)),
    function("mustToJson", (1, 1), |call| json(call, false, true, true)),
    function("mustToPrettyJson", (1, 1), |call| json(call, true, true, true)),
    // As in sprig, only the function with `must` reports what is not JSON.
    function("fromJson", (1, 1), |call| match read_json(call)? {
        Ok(read) => call.heap.take_floats(&read),
        Err(_) => Ok(Value::Nil),
    }),
    function("mustFromJson", (1, 1), |call| {
        let read = read_json(call)?.map_err(|why| format!("this is not JSON: {why}"))?;
        call.heap.take_floats(&read)
    }),
    function("toYaml", (1, 1), |call| yaml::written(call.heap, call.arg(0)).map(Value::text)),
    function("fromYaml", (1, 1), |call| {
        let read = yaml::read(call.text(0)?)?;
        call.heap.take(&read)
    }),
    function("b64enc", (1, 1), |call| Ok(Value::text(BASE64.encode(call.text(0)?.as_bytes())))),
    function("b64dec", (1, 1), |call| decoded(call, &LENIENT_BASE64, "base64")),
    function("b32enc", (1, 1), |call| Ok(Value::text(BASE32.encode(call.text(0)?.as_bytes())))),
    function("b32dec", (1, 1), |call| decoded(call, &LENIENT_BASE32, "base32")),
    function("sha1sum", (1, 1), |call| hex(call, &SHA1_FOR_LEGACY_USE_ONLY)),
    function("sha256sum", (1, 1), |call| hex(call, &SHA256)),
    function("sha512sum", (1, 1), |call| hex(call, &SHA512)),
    // In decimal digits, as in sprig.
    function("adler32sum", (1, 1), |call| Ok(Value::text(adler32(call.text(0)?).to_string()))),
];

/// JSON as Go's `encoding/json` writes it; `<`, `>` and `&` as escapes if `is_escaped`.
fn json(
    call: &mut FunctionCall<'_>,
    is_pretty: bool,
    is_escaped: bool,
    is_strict: bool,
) -> Result<Value, String> {
    let value = call.arg(0);
    let mut writer =
        Writer { heap: call.heap, out: String::new(), is_pretty, is_escaped, unsupported: None };
    let written = writer.value(value, 0);
    match writer.unsupported {
        // As sprig, which leaves out the error, but for `toRawJson` and the functions that begin with
        // `must`.
        Some(_) if !is_strict => Ok(Value::text("")),
        Some(what) => Err(format!("json: unsupported {what}")),
        None => written.map(|()| Value::text(writer.out)),
    }
}

/// As Go prints it.
fn infinite(number: f64) -> &'static str {
    if number.is_nan() {
        return "NaN";
    }
    if number > 0.0 { "+Inf" } else { "-Inf" }
}

/// Writes JSON.
struct Writer<'h> {
    heap: &'h mut Heap,
    out: String,
    is_pretty: bool,
    is_escaped: bool,
    /// What JSON has no form for, once it was met.
    unsupported: Option<String>,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, level: usize) -> Result<(), String> {
        check_levels(level)?;
        self.heap.visit()?;
        match value {
            Value::Nil | Value::Error(None) => self.out.push_str("null"),
            Value::Bool(truth) => self.out.push_str(if *truth { "true" } else { "false" }),
            Value::Named(IntType::Uint64, number) => {
                self.out.push_str(&number.cast_unsigned().to_string());
            }
            Value::Int(number) | Value::Named(_, number) => self.out.push_str(&number.to_string()),
            Value::Float(number) if number.is_finite() => self.out.push_str(&go_number(*number)),
            Value::Float(number) => self.unsupported(&format!("value: {}", infinite(*number)))?,
            Value::Text(text) | Value::Error(Some(text)) => self.text(text)?,
            Value::Time(at) => self.text(&time::rfc3339(at))?,
            Value::Version(version) => self.text(&version.to_string())?,
            Value::List(list) if list.kind() == ListType::Bytes => self.bytes(list)?,
            Value::List(list) => {
                let items = list.iter().map(|item| (None, item.clone()));
                self.parts(('[', ']'), items, level)?;
            }
            Value::Map(id) if id.kind() == MapType::AnyKeys => {
                self.unsupported("type: map[interface {}]interface {}")?;
            }
            Value::Map(id) => {
                let members = self.members(*id)?.into_iter();
                let members = members.map(|(key, member)| (Some(key), member));
                self.parts(('{', '}'), members, level)?;
            }
        }
        Ok(())
    }

    /// Ends the writing.
    fn unsupported(&mut self, what: &str) -> Result<(), String> {
        self.unsupported = Some(what.to_owned());
        Err(String::new())
    }

    /// The members of a map in the order of their keys, the fields of a file in Go's order.
    fn members(&mut self, id: MapId) -> Result<Vec<(Arc<str>, Value)>, String> {
        if id.kind() != MapType::File {
            return self.heap.members(id);
        }
        let fields = FILE_FIELDS.iter();
        fields.map(|name| Ok((Arc::from(*name), self.heap.field(id, name)?))).collect()
    }

    fn parts(
        &mut self,
        (open, close): (char, char),
        parts: impl Iterator<Item = (Option<Arc<str>>, Value)>,
        level: usize,
    ) -> Result<(), String> {
        self.out.push(open);
        let mut is_first = true;
        for (key, part) in parts {
            if !is_first {
                self.out.push(',');
            }
            is_first = false;
            self.line(level + 1);
            if let Some(key) = key {
                self.text(&key)?;
                self.out.push_str(if self.is_pretty { ": " } else { ":" });
            }
            self.value(&part, level + 1)?;
        }
        if !is_first {
            self.line(level);
        }
        self.out.push(close);
        Ok(())
    }

    fn line(&mut self, level: usize) {
        if self.is_pretty {
            self.out.push('\n');
            self.out.push_str(&"  ".repeat(level));
        }
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        self.heap.charge(text.len())?;
        write_text(&mut self.out, text, self.is_escaped);
        Ok(())
    }

    /// Bytes as base64, as Go writes a `[]byte`.
    fn bytes(&mut self, list: &[Value]) -> Result<(), String> {
        let bytes = list.iter().filter_map(Value::integer);
        let bytes: Vec<u8> = bytes.filter_map(|byte| u8::try_from(byte).ok()).collect();
        self.text(&BASE64.encode(&bytes))
    }
}

fn write_text(out: &mut String, text: &str, is_escaped: bool) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' if is_escaped => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            '\0'..=' ' | '\u{2028}' | '\u{2029}' if char != ' ' => {
                out.push_str(&format!("\\u{:04x}", u32::from(char)));
            }
            char => out.push(char),
        }
    }
    out.push('"');
}

/// Go writes a float without its fraction if it has none, and with an exponent below 1e-6 and from
/// 1e21 on.
fn go_number(float: f64) -> String {
    if float != 0.0 && !(1e-6..1e21).contains(&float.abs()) {
        let text = format!("{float:e}");
        return if float.abs() >= 1.0 { text.replace('e', "e+") } else { text };
    }
    float.to_string()
}

/// A text as JSON. Its numbers are floats, as in Go.
fn read_json(call: &FunctionCall<'_>) -> Result<serde_json::Result<Json>, String> {
    Ok(serde_json::from_str(call.text(0)?))
}

static LENIENT_BASE64: LazyLock<Option<Encoding>> = LazyLock::new(|| lenient(&BASE64));
static LENIENT_BASE32: LazyLock<Option<Encoding>> = LazyLock::new(|| lenient(&BASE32));

/// As Go decodes: line breaks are skipped, and the unused bits of the last character do not matter.
fn lenient(encoding: &Encoding) -> Option<Encoding> {
    let mut specification = encoding.specification();
    specification.ignore.push_str("\r\n");
    specification.check_trailing_bits = false;
    specification.encoding().ok()
}

/// The text of a code. What is none gives the text of Go's error, as in sprig.
fn decoded(
    call: &FunctionCall<'_>,
    encoding: &LazyLock<Option<Encoding>>,
    name: &str,
) -> Result<Value, String> {
    let code = call.text(0)?.as_bytes();
    let encoding = (**encoding).as_ref().ok_or_else(|| format!("{name} is not available"))?;
    match encoding.decode(code) {
        Ok(bytes) => String::from_utf8(bytes)
            .map(Value::text)
            .map_err(|_| "the decoded text is not UTF-8".into()),
        Err(why) => Ok(Value::text(format!("illegal {name} data at input byte {}", why.position))),
    }
}

fn hex(call: &FunctionCall<'_>, algorithm: &'static Algorithm) -> Result<Value, String> {
    let digest = digest(algorithm, call.text(0)?.as_bytes());
    Ok(Value::text(HEXLOWER.encode(digest.as_ref())))
}

/// RFC 1950, section 9.
fn adler32(text: &str) -> u32 {
    const BASE: u32 = 65521;
    let (low, high) = text.bytes().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(byte)) % BASE;
        (low, (high + low) % BASE)
    });
    high << 16 | low
}
