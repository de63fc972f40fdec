//! Functions that glazed adds to sprig's: <https://github.com/go-go-golems/glazed>,
//! `pkg/helpers/templating`.

use super::text::map;
use super::{Function, FunctionCall, check_bytes, count, function};
use crate::template::time::Moment;
use crate::template::types::ListType;
use crate::template::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    function("trimRightSpace", (1, 1), |call| map(call, |text| text.trim_end().into())),
    function("trimTrailingWhitespaces", (1, 1), |call| map(call, |text| text.trim_end().into())),
    function("stripNewlines", (1, 1), |call| map(call, |text| text.replace('\n', " "))),
    function("quoteNewlines", (1, 1), |call| map(call, |text| text.replace('\n', "\\n"))),
    function("rpad", (2, 2), |call| padded(call, |missing| (0, missing))),
    function("padRight", (2, 2), |call| padded(call, |missing| (0, missing))),
    function("padLeft", (2, 2), |call| padded(call, |missing| (missing, 0))),
    function("padCenter", (2, 2), |call| {
        padded(call, |missing| (missing / 2, missing - missing / 2))
    }),
    function("bold", (1, 1), |call| map(call, |text| format!("**{text}**"))),
    function("underline", (1, 1), |call| map(call, |text| format!("__{text}__"))),
    function("italic", (1, 1), |call| map(call, |text| format!("*{text}*"))),
    function("strikethrough", (1, 1), |call| map(call, |text| format!("~~{text}~~"))),
    function("code", (1, 1), |call| map(call, |text| format!("`{text}`"))),
    function("codeBlock", (2, 2), |call| {
        Ok(Value::text(format!("```{}\n{}\n```", call.text(1)?, call.text(0)?)))
    }),
    function("indentBlock", (2, 2), |call| {
        Ok(Value::text(super::text::indented(call, "")? + "\n"))
    }),
    function("currency", (1, 1), |call| {
        Ok(Value::text(match call.args {
            [Value::Int(number) | Value::Named(_, number)] => format!("{number}.00"),
            [Value::Float(number)] => format!("{number:.2}"),
            _ => String::new(),
        }))
    }),
    function("toUrlParameter", (1, 1), url_field),
    // Glazed's name for it since 1.0.
    function("toUrlField", (1, 1), url_field),
];

/// A value as a CSV field, not yet escaped.
fn url_field(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    Ok(Value::text(match call.args {
        [Value::Float(number)] => format!("{number:.6}"),
        [Value::Time(time)] => Moment::of(time).written("2006-01-02"),
        [Value::List(list)] if is_joined(list.kind()) => call.shown_items(0)?.join(","),
        _ => call.shown(0)?.to_string(),
    }))
}

/// Whether glazed writes the items of such a list with commas between them.
fn is_joined(kind: ListType) -> bool {
    match kind {
        ListType::Strings | ListType::Ints | ListType::Floats => true,
        ListType::Any | ListType::Bytes | ListType::Maps | ListType::Rows | ListType::Files => {
            false
        }
    }
}

/// The first argument, padded with spaces to the width in the second. `blanks`
/// splits the number of spaces into those before and after.
fn padded(
    call: &mut FunctionCall<'_>,
    blanks: fn(usize) -> (usize, usize),
) -> Result<Value, String> {
    let text = call.text(0)?;
    let width = if let Value::Text(width) = call.arg(1) {
        width.parse().map_err(|_| format!("{width:?} is not a width"))?
    } else {
        call.int(1)?
    };
    check_bytes(1, count(width))?;
    let (before, after) = blanks(count(width).saturating_sub(text.chars().count()));
    Ok(Value::text(format!("{}{text}{}", " ".repeat(before), " ".repeat(after))))
}
