//! Functions with regular expressions, whose syntax is Go's, RE2:
//! <https://masterminds.github.io/sprig/strings.html>.

mod syntax;
#[cfg(test)]
mod tests;

use super::{Function, FunctionCall, check_bytes, function};
use crate::template::value::Value;
use regex::{NoExpand, Regex, RegexBuilder};

/// Largest compiled expression, in bytes.
const REGEX_BYTES_MAX: usize = 1024 * 1024;

pub(super) const FUNCTIONS: &[Function] = &[
    function("regexMatch", (2, 2), is_match),
    function("regexFind", (2, 2), |call| {
        let text = call.text(1)?;
        Ok(Value::text(compiled(call, 0)?.find(text).map_or("", |found| found.as_str())))
    }),
    function("regexFindAll", (3, 3), |call| {
        let (text, most) = (call.text(1)?, most(call.int(2)?));
        let found = compiled(call, 0)?;
        call.heap.texts(found.find_iter(text).take(most).map(|found| found.as_str()))
    }),
    function("regexReplaceAll", (3, 3), |call| {
        let (text, new) = (call.text(1)?, call.text(2)?);
        replaced(call, text, new)
    }),
    function("replaceRegexp", (3, 3), |call| {
        let swapped = [call.arg(1).clone(), call.arg(0).clone(), call.arg(2).clone()];
        let mut call = FunctionCall { heap: call.heap, now: call.now, args: &swapped };
        let (text, new) = (call.text(1)?, call.text(2)?);
        replaced(&mut call, text, new)
    }),
    function("regexReplaceAllLiteral", (3, 3), |call| {
        let (text, new) = (call.text(1)?, call.text(2)?);
        let found = compiled(call, 0)?;
        check_bytes(new.len(), found.find_iter(text).count())?;
        Ok(Value::text(found.replace_all(text, NoExpand(new)).into_owned()))
    }),
    function("regexSplit", (3, 3), |call| {
        let (text, most) = (call.text(1)?, most(call.int(2)?));
        let between = compiled(call, 0)?;
        call.heap.texts(split(&between, text, most))
    }),
    function("regexQuoteMeta", (1, 1), |call| {
        super::text::map(call, |text| {
            let mut out = String::with_capacity(text.len());
            for char in text.chars() {
                if r"\.+*?()|[]{}^$".contains(char) {
                    out.push('\\');
                }
                out.push(char);
            }
            out
        })
    }),
];

fn is_match(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let text = call.text(1)?;
    Ok(Value::Bool(compiled(call, 0)?.is_match(text)))
}

/// The pieces of `text`, at most `most`, as Go's `Regexp.Split` returns them: a match of nothing at the beginning or
/// the end separates nothing.
fn split<'t>(between: &Regex, text: &'t str, most: usize) -> Vec<&'t str> {
    if most == 0 || text.is_empty() && between.as_str().is_empty() {
        return Vec::new();
    }
    if text.is_empty() {
        return vec![""];
    }
    let (mut pieces, mut start, mut end) = (Vec::new(), 0, 0);
    for found in between.find_iter(text).take(most) {
        if pieces.len() + 1 == most {
            break;
        }
        end = found.start();
        if found.end() > 0 {
            pieces.push(&text[start..end]);
        }
        start = found.end();
    }
    if end < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

/// A limit on matches; a negative number means all, as in Go.
fn most(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn replaced(call: &mut FunctionCall<'_>, text: &str, new: &str) -> Result<Value, String> {
    let found = compiled(call, 0)?;
    let groups = new.matches('$').count();
    // Each replacement is at most the new text plus, for each of its groups, the match.
    let found_bytes: usize = found.find_iter(text).map(|found| found.len()).sum();
    check_bytes(found_bytes, groups)?;
    check_bytes(new.len(), found.find_iter(text).count())?;
    Ok(Value::text(found.replace_all(text, new).into_owned()))
}

fn compiled(call: &mut FunctionCall<'_>, index: usize) -> Result<Regex, String> {
    let source = call.text(index)?;
    // Compiling takes far longer than parsing.
    call.heap.charge(source.len().saturating_mul(1000))?;
    let built = syntax::translated(source).and_then(|translated| {
        let built = RegexBuilder::new(&translated).size_limit(REGEX_BYTES_MAX).build();
        built.map_err(|why| reason(&why))
    });
    built.map_err(|why| format!("{source:?} is not a valid regular expression: {why}"))
}

/// The error without the expression, which the crate shows as it was translated.
fn reason(why: &regex::Error) -> String {
    let text = why.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}
