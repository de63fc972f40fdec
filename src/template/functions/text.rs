//! Functions on strings: <https://masterminds.github.io/sprig/strings.html>.

use super::case::{lower_char, upper_char};
use super::{ANY, Function, FunctionCall, check_bytes, count, function};
use crate::template::format::quoted;
use crate::template::types::MapType;
use crate::template::value::{Map, Value};
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Function] = &[
    function("trim", (1, 1), |call| map(call, |text| text.trim().into())),
    function("trimAll", (2, 2), trim_all),
    function("trimall", (2, 2), trim_all),
    function("trimPrefix", (2, 2), |call| {
        let (prefix, text) = (call.text(0)?, call.text(1)?);
        Ok(Value::text(text.strip_prefix(&**prefix).unwrap_or(text)))
    }),
    function("trimSuffix", (2, 2), |call| {
        let (suffix, text) = (call.text(0)?, call.text(1)?);
        Ok(Value::text(text.strip_suffix(&**suffix).unwrap_or(text)))
    }),
    function("upper", (1, 1), |call| map(call, upper)),
    function("lower", (1, 1), |call| map(call, lower)),
    function("toUpper", (1, 1), |call| map(call, upper)),
    function("toLower", (1, 1), |call| map(call, lower)),
    function("repeat", (2, 2), |call| {
        let (times, text) = (call.int(0)?, call.text(1)?);
        let times = usize::try_from(times).map_err(|_| "a negative count".to_owned())?;
        check_bytes(text.len(), times)?;
        Ok(Value::text(text.repeat(times)))
    }),
    function("substr", (3, 3), substr),
    function("nospace", (1, 1), |call| {
        map(call, |text| text.chars().filter(|char| !char.is_whitespace()).collect())
    }),
    function("trunc", (2, 2), trunc),
    function("contains", (2, 2), |call| compare(call, |part, text| text.contains(part))),
    function("hasPrefix", (2, 2), |call| compare(call, |part, text| text.starts_with(part))),
    function("hasSuffix", (2, 2), |call| compare(call, |part, text| text.ends_with(part))),
    // Glazed's replaces sprig's `quote`, which is `dquote` here.
    function("quote", (0, ANY), |call| quote(call, |text| format!("`{text}`"))),
    function("dquote", (0, ANY), |call| quote(call, quoted)),
    function("squote", (0, ANY), |call| quote(call, |text| format!("'{text}'"))),
    function("cat", (0, ANY), |call| Ok(Value::text(shown_args(call)?.join(" ")))),
    function("indent", (2, 2), |call| Ok(Value::text(indented(call, "")?))),
    function("nindent", (2, 2), |call| Ok(Value::text(indented(call, "\n")?))),
    function("replace", (3, 3), |call| {
        let (old, new, text) = (call.text(0)?, call.text(1)?, call.text(2)?);
        check_bytes(new.len(), text.matches(&**old).count())?;
        Ok(Value::text(text.replace(&**old, new)))
    }),
    function("plural", (3, 3), |call| {
        let (one, many) = (call.text(0)?, call.text(1)?);
        Ok(Value::Text(if call.int(2)? == 1 { one.clone() } else { many.clone() }))
    }),
    function("split", (2, 2), |call| {
        let (separator, text) = (call.text(0)?, call.text(1)?);
        numbered(call, split(separator, text, ANY))
    }),
    function("splitn", (3, 3), |call| {
        let (separator, most, text) = (call.text(0)?, call.int(1)?, call.text(2)?);
        // A negative number means no limit, as in Go.
        let most = usize::try_from(most).unwrap_or(ANY);
        numbered(call, split(separator, text, most))
    }),
    function("splitList", (2, 2), |call| {
        let (separator, text) = (call.text(0)?, call.text(1)?);
        call.heap.texts(split(separator, text, ANY))
    }),
    function("toString", (1, 1), |call| Ok(Value::Text(call.shown(0)?))),
    function("toStrings", (1, 1), |call| {
        let items = call.shown_items(0)?;
        call.heap.texts(items)
    }),
    function("join", (2, 2), |call| {
        let separator = call.text(0)?;
        let items = call.shown_items(1)?;
        check_bytes(separator.len(), items.len())?;
        Ok(Value::text(items.join(separator)))
    }),
    function("abbrev", (2, 2), abbrev),
    function("abbrevboth", (3, 3), abbrev_both),
    function("wrap", (2, 2), |call| {
        Ok(Value::text(wrapped(call.text(1)?, count(call.int(0)?), "\n", false)))
    }),
    function("wrapWith", (3, 3), |call| {
        let (width, break_with, text) = (count(call.int(0)?), call.text(1)?, call.text(2)?);
        // An empty one would join words.
        let break_with: &str = if break_with.is_empty() { "\n" } else { break_with };
        check_bytes(break_with.len(), text.len() / width.max(1) + text.matches(' ').count())?;
        Ok(Value::text(wrapped(text, width, break_with, true)))
    }),
];

fn abbrev(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let (width, text) = (call.int(0)?, call.text(1)?);
    let width = count(width);
    if width < 4 || text.len() <= width {
        return Ok(Value::Text(text.clone()));
    }
    Ok(Value::text(format!("{}...", &text[..floor(text, width - 3)])))
}

/// Abbreviates to at most `width` bytes, starting near `left`, with dots where text is left out.
/// Near the start, dots would save nothing.
fn abbrev_both(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let (left, width, text) = (count(call.int(0)?), count(call.int(1)?), call.text(2)?);
    if width < 4 || (left > 0 && width < 7) || text.len() <= width {
        return Ok(Value::Text(text.clone()));
    }
    let left = left.min(text.len() - (width - 3));
    let from = |start: usize| &text[floor(text, start)..];
    let up_to = |text: &str, bytes: usize| text[..floor(text, bytes)].to_owned();
    Ok(Value::text(if left <= 4 {
        format!("{}...", up_to(text, width - 3))
    } else if left + width - 3 < text.len() {
        format!("...{}...", up_to(from(left), width - 6))
    } else {
        format!("...{}", from(text.len() - (width - 3)))
    }))
}

/// Wraps at spaces to lines of at most `width` characters; a longer word is kept whole or cut after
/// `width` characters.
fn wrapped(text: &str, width: usize, break_with: &str, cuts_words: bool) -> String {
    let (text, width) = (text.chars().collect::<Vec<_>>(), width.max(1));
    let mut out = String::with_capacity(text.len());
    let mut start = 0;
    while text.len() - start > width {
        if text[start] == ' ' {
            start += 1;
            continue;
        }
        let window = &text[start..=start + width];
        let (end, next) = match window.iter().rposition(|char| *char == ' ') {
            Some(at) => (start + at, start + at + 1),
            None if cuts_words => (start + width, start + width),
            None => match text[start + width..].iter().position(|char| *char == ' ') {
                Some(at) => (start + width + at, start + width + at + 1),
                None => break,
            },
        };
        out.extend(&text[start..end]);
        out.push_str(break_with);
        start = next;
    }
    out.extend(&text[start..]);
    out
}

pub(super) fn map(call: &FunctionCall<'_>, change: fn(&str) -> String) -> Result<Value, String> {
    Ok(Value::text(change(call.text(0)?)))
}

fn upper(text: &str) -> String {
    text.chars().map(upper_char).collect()
}

fn lower(text: &str) -> String {
    text.chars().map(lower_char).collect()
}

fn compare(call: &FunctionCall<'_>, is_it: fn(&str, &str) -> bool) -> Result<Value, String> {
    Ok(Value::Bool(is_it(call.text(0)?, call.text(1)?)))
}

/// Trims the characters of the first argument off both ends of the second.
fn trim_all(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let (set, text) = (call.text(0)?, call.text(1)?);
    Ok(Value::text(text.trim_matches(|char| set.contains(char))))
}

/// The nearest character boundary at or before `bytes`.
pub(super) fn floor(text: &str, bytes: usize) -> usize {
    (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn substr(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let (start, end, text) = (call.int(0)?, call.int(1)?, call.text(2)?);
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let (from, to) = if start < 0 {
        (0, end)
    } else if end < 0 || end > length {
        (start, length)
    } else {
        (start, end)
    };
    if from > to || to > length {
        return Err(format!("{start} to {end} is outside the text, which has {length} bytes"));
    }
    Ok(Value::text(&text[floor(text, count(from))..floor(text, count(to))]))
}

fn trunc(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let (most, text) = (call.int(0)?, call.text(1)?);
    let size = usize::try_from(most.unsigned_abs()).unwrap_or(usize::MAX);
    if size >= text.len() {
        return Ok(Value::Text(text.clone()));
    }
    Ok(Value::text(if most < 0 {
        &text[floor(text, text.len() - size)..]
    } else {
        &text[..floor(text, size)]
    }))
}

/// The arguments as text, without those that are nil.
fn shown_args(call: &mut FunctionCall<'_>) -> Result<Vec<Arc<str>>, String> {
    let args = call.args.iter().filter(|arg| !matches!(arg, Value::Nil | Value::Error(None)));
    args.map(|arg| call.show(arg)).collect()
}

fn quote(call: &mut FunctionCall<'_>, quote: fn(&str) -> String) -> Result<Value, String> {
    let texts = shown_args(call)?;
    Ok(Value::text(texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" ")))
}

/// The text with every line indented by this many spaces, blank ones too.
pub(super) fn indented(call: &FunctionCall<'_>, before: &str) -> Result<String, String> {
    let (spaces, text) = (count(call.int(0)?), call.text(1)?);
    check_bytes(spaces, text.matches('\n').count() + 1)?;
    let spaces = " ".repeat(spaces);
    Ok(format!("{before}{spaces}{}", text.replace('\n', &format!("\n{spaces}"))))
}

/// The parts of a text; the last one holds the rest if there are more than `most`. An empty
/// separator splits between all characters.
fn split<'t>(separator: &str, text: &'t str, most: usize) -> Vec<&'t str> {
    if separator.is_empty() {
        let ends = text.char_indices().map(|(at, char)| (at, at + char.len_utf8()));
        let count = text.chars().count();
        return ends
            .take(most)
            .enumerate()
            .map(|(index, (start, end))| {
                let is_rest = index + 1 == most && count > most;
                &text[start..if is_rest { text.len() } else { end }]
            })
            .collect();
    }
    text.splitn(most, separator).collect()
}

/// A map with the members `_0`, `_1` and so on.
fn numbered(call: &mut FunctionCall<'_>, parts: Vec<&str>) -> Result<Value, String> {
    let members = parts.iter().enumerate();
    let map: Map =
        members.map(|(index, part)| (format!("_{index}").into(), Value::text(*part))).collect();
    call.heap.map_of(MapType::Strings, map)
}
