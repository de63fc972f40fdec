//! The functions that templates can call: those of Go, sprig and glazed.
//!
//! The order of arguments and results is that of <https://pkg.go.dev/text/template#hdr-Functions>
//! and
//! <https://masterminds.github.io/sprig/>. Where text is cut, it is cut between characters.

mod builtin;
mod case;
mod dates;
mod decimals;
mod encode;
mod lists;
mod maps;
mod markup;
mod numbers;
mod paths;
mod regexes;
mod text;
mod urls;
mod versions;
mod yaml;

use super::value::{Heap, Map, MapId, Value};
use super::{format, hints};
use jiff::Zoned;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Longest list of numbers that a function may generate.
const ITEMS_MAX: usize = 1_000_000;

/// Any number of arguments.
const ANY: usize = usize::MAX;

/// A template function.
struct Function {
    name: &'static str,
    /// Least and greatest number of arguments.
    arity: (usize, usize),
    run: fn(&mut FunctionCall<'_>) -> Result<Value, String>,
}

const fn function(
    name: &'static str,
    arity: (usize, usize),
    run: fn(&mut FunctionCall<'_>) -> Result<Value, String>,
) -> Function {
    Function { name, arity, run }
}

static FUNCTIONS: LazyLock<HashMap<&'static str, &'static Function>> = LazyLock::new(|| {
    let tables = [
        builtin::FUNCTIONS,
        text::FUNCTIONS,
        case::FUNCTIONS,
        lists::FUNCTIONS,
        maps::FUNCTIONS,
        numbers::FUNCTIONS,
        encode::FUNCTIONS,
        regexes::FUNCTIONS,
        dates::FUNCTIONS,
        paths::FUNCTIONS,
        markup::FUNCTIONS,
        urls::FUNCTIONS,
        versions::FUNCTIONS,
    ];
    tables.into_iter().flatten().map(|function| (function.name, function)).collect()
});

/// Functions whose work does not depend on the size of their arguments, or is counted with their
/// results.
const CONSTANT: [&str; 24] = [
    "append", "concat", "prepend", "push", "default", "dict", "empty", "eq", "first", "get",
    "hasKey", "index", "int", "kindIs", "kindOf", "last", "len", "list", "not", "set", "slice",
    "ternary", "typeOf", "unset",
];

/// Unsupported functions of sprig and glazed: their results depend on chance, the machine or the
/// network.
const LEFT_OUT: [&str; 30] = [
    "bcrypt",
    "buildCustomCert",
    "encryptAES",
    "env",
    "expandenv",
    "genCA",
    "genCAWithKey",
    "genPrivateKey",
    "genSelfSignedCert",
    "genSelfSignedCertWithKey",
    "genSignedCert",
    "genSignedCertWithKey",
    "getHostByName",
    "htpasswd",
    "randAlpha",
    "randAlphaNum",
    "randAscii",
    "randBytes",
    "randInt",
    "randNumeric",
    "randomBool",
    "randomChoice",
    "randomFloat",
    "randomInt",
    "randomPermute",
    "randomString",
    "randomStringList",
    "randomSubset",
    "shuffle",
    "uuidv4",
];

/// Functions of sprig and glazed that are left out as prompts hardly need them.
const UNSUPPORTED: [&str; 3] = ["decryptAES", "derivePassword", "styleBold"];

/// The function of this name. Sprig's `mustFirst` is its `first` with an error instead of a panic;
/// here, both are errors.
fn find(name: &str) -> Option<&'static Function> {
    let plain = || name.starts_with("must").then(|| FUNCTIONS.get(plain_name(name).as_str()));
    FUNCTIONS.get(name).or_else(|| plain().flatten()).copied()
}

/// `mustFirst` as `first`.
fn plain_name(name: &str) -> String {
    let plain = name.strip_prefix("must").unwrap_or(name);
    let mut chars = plain.chars();
    chars.next().into_iter().flat_map(char::to_lowercase).chain(chars.as_str().chars()).collect()
}

/// All names, in no order.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.keys().copied()
}

/// Checks that there is such a function. The error may suggest one of the values.
pub(super) fn check(name: &str, values: &Json) -> Result<(), String> {
    if find(name).is_some() {
        return Ok(());
    }
    let plain = plain_name(name);
    let is_in = |names: &[&str]| names.contains(&name) || names.contains(&plain.as_str());
    if is_in(&LEFT_OUT) {
        return Err(format!(
            "function {name:?} is left out on purpose: what a prompt says depends on its values \
             and the time, not on chance or the machine; give the result as a value"
        ));
    }
    if is_in(&UNSUPPORTED) {
        return Err(format!("function {name:?} is not supported here; pass its result as a value"));
    }
    Err(hints::of_unknown(name, values))
}

pub(super) fn call(name: &str, call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let Some(function) = find(name) else {
        return check(name, &Json::Null).map(|()| Value::Nil);
    };
    let (min, max) = function.arity;
    if !(min..=max).contains(&call.args.len()) {
        let wanted = match (min, max) {
            (min, ANY) => format!("at least {min}"),
            (min, max) if min == max => min.to_string(),
            (min, max) => format!("{min} to {max}"),
        };
        return Err(format!(
            "wrong number of arguments for {name}: want {wanted}, got {}",
            call.args.len()
        ));
    }
    if !CONSTANT.contains(&name) {
        call.charge_args()?;
    }
    let value = (function.run)(call).map_err(|message| format!("{name}: {message}"))?;
    if let Value::Text(text) = &value {
        call.heap.charge(text.len())?;
    }
    Ok(value)
}

/// A call: its arguments, the store of maps, and the current time.
pub(super) struct FunctionCall<'c> {
    pub(super) heap: &'c mut Heap,
    pub(super) now: &'c Zoned,
    pub(super) args: &'c [Value],
}

impl<'c> FunctionCall<'c> {
    fn charge_args(&mut self) -> Result<(), String> {
        for arg in self.args {
            if let Value::Text(text) | Value::Error(Some(text)) = arg {
                self.heap.charge(text.len())?;
            }
            if let Value::List(list) = arg {
                self.heap.charge_items(list.len())?;
            }
        }
        Ok(())
    }

    fn arg(&self, index: usize) -> &'c Value {
        self.args.get(index).unwrap_or(&Value::Nil)
    }

    /// A string. No other type is accepted, as in Go.
    fn text(&self, index: usize) -> Result<&'c Arc<str>, String> {
        let arg = self.arg(index);
        if let Value::Text(text) = arg { Ok(text) } else { Err(mismatch(index, "a string", arg)) }
    }

    fn int(&self, index: usize) -> Result<i64, String> {
        let arg = self.arg(index);
        arg.integer().ok_or_else(|| mismatch(index, "an integer", arg))
    }

    fn list(&self, index: usize) -> Result<&'c [Value], String> {
        let arg = self.arg(index);
        if let Value::List(list) = arg { Ok(list) } else { Err(mismatch(index, "a list", arg)) }
    }

    fn map(&self, index: usize) -> Result<MapId, String> {
        let arg = self.arg(index);
        if let Value::Map(id) = arg { Ok(*id) } else { Err(mismatch(index, "a map", arg)) }
    }

    fn map_copy(&mut self, index: usize) -> Result<Map, String> {
        let id = self.map(index)?;
        self.heap.copy(id)
    }

    /// Any value as text: a string as it is, others as `%v`.
    fn shown(&mut self, index: usize) -> Result<Arc<str>, String> {
        let value = self.arg(index);
        self.show(value)
    }

    fn show(&mut self, value: &Value) -> Result<Arc<str>, String> {
        if let Value::Text(text) = value {
            return Ok(text.clone());
        }
        Ok(format::show(self.heap, value)?.into())
    }

    /// The strings of a list, without nil items; any other value is a list of one.
    fn shown_items(&mut self, index: usize) -> Result<Vec<Arc<str>>, String> {
        let arg = self.arg(index);
        let items = if let Value::List(list) = arg { &**list } else { std::slice::from_ref(arg) };
        let items = items.iter().filter(|item| !matches!(item, Value::Nil | Value::Error(None)));
        items.map(|item| self.show(item)).collect()
    }
}

fn mismatch(index: usize, wanted: &str, got: &Value) -> String {
    let is_nil = matches!(got, Value::Nil | Value::Error(None));
    let got = if is_nil { "nil; is a value missing?" } else { got.type_name() };
    format!("argument {} must be {wanted}, got {got}", index + 1)
}

/// The number of characters for `count`, if text of `bytes` bytes may be as long.
fn check_bytes(bytes: usize, times: usize) -> Result<(), String> {
    if bytes.saturating_mul(times) > super::OUTPUT_BYTES_MAX {
        return Err(format!(
            "the text is longer than {} MiB",
            super::OUTPUT_BYTES_MAX / 1024 / 1024
        ));
    }
    Ok(())
}

/// A count: a negative number is zero.
fn count(number: i64) -> usize {
    usize::try_from(number.max(0)).unwrap_or(usize::MAX)
}
