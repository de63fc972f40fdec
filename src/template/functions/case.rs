//! Functions on the case of letters and of names.
//! <https://masterminds.github.io/sprig/strings.html>

use super::text::map;
use super::{Function, function};

pub(super) const FUNCTIONS: &[Function] = &[
    function("title", (1, 1), |call| map(call, title)),
    function("untitle", (1, 1), |call| map(call, untitle)),
    function("initials", (1, 1), |call| {
        map(call, |text| text.split_whitespace().filter_map(|word| word.chars().next()).collect())
    }),
    function("swapcase", (1, 1), |call| map(call, swap_case)),
    function("snakecase", (1, 1), |call| map(call, |text| joined(text, '_'))),
    function("kebabcase", (1, 1), |call| map(call, |text| joined(text, '-'))),
    function("camelcase", (1, 1), |call| map(call, camel)),
];

/// Capitalizes every word, where words are those of Go's `strings.Title`.
fn title(text: &str) -> String {
    let mut before = ' ';
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        let is_inside = before.is_alphanumeric()
            || before == '_'
            || (!before.is_ascii() && !before.is_whitespace());
        if is_inside {
            out.push(char);
        } else {
            out.push(upper_char(char));
        }
        before = char;
    }
    out
}

/// Makes the first letter of every word lower-case, where words are separated by white space.
fn untitle(text: &str) -> String {
    let mut is_start = true;
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if is_start {
            out.push(lower_char(char));
        } else {
            out.push(char);
        }
        is_start = char.is_whitespace();
    }
    out
}

/// Swaps upper and lower case.
fn swap_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_uppercase() {
            out.push(lower_char(char));
        } else {
            out.push(upper_char(char));
        }
    }
    out
}

/// The words of a name, in lower case, joined by `between`.
fn joined(text: &str, between: char) -> String {
    let words = words(text);
    let mut out = String::with_capacity(text.len() + words.len());
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            out.push(between);
        }
        out.push_str(&word.to_lowercase());
    }
    out
}

/// The words of a name in camel case. A word in upper case keeps its first letter only. Separators
/// stay at the start, and all but one of several elsewhere; at the end too. So do the versions of
/// `xstrings` since 1.5.0.
fn camel(text: &str) -> String {
    let mut chars = text.chars();
    let mut out: String = text.chars().take_while(|char| is_separator(*char)).collect();
    let Some(first) = chars.by_ref().find(|char| !is_separator(*char)) else {
        return out;
    };
    let mut is_in_large_word = first.is_uppercase();
    let mut held = lower_char(first);
    for char in chars {
        let before = std::mem::replace(&mut held, char);
        match (is_separator(before), is_separator(char)) {
            (true, true) => out.push(before),
            (true, false) => {
                is_in_large_word = char.is_uppercase();
                held = upper_char(char);
            }
            (false, _) => {
                out.push(before);
                is_in_large_word = is_in_large_word && char.is_uppercase();
                held = if is_in_large_word { lower_char(char) } else { char };
            }
        }
    }
    out.push(if is_in_large_word { lower_char(held) } else { held });
    out
}

/// The lower-case letter, if that is one character: Go keeps the number of characters.
pub(super) fn lower_char(char: char) -> char {
    let mut lower = char.to_lowercase();
    // Of a letter with a combining dot above, the letter.
    lower.next().filter(|_| lower.next().is_none() || char == 'İ').unwrap_or(char)
}

/// The upper-case letter, if that is one character: `ß` has none.
pub(super) fn upper_char(char: char) -> char {
    let mut upper = char.to_uppercase();
    upper.next().filter(|_| upper.next().is_none()).unwrap_or(char)
}

fn is_separator(char: char) -> bool {
    matches!(char, '_' | '-') || char.is_whitespace()
}

/// The words of a name: split at `_`, `-` and white space, before an upper-case letter that follows
/// a lower-case one, and before the last of several upper-case letters followed by a lower-case
/// one.
fn words(text: &str) -> Vec<String> {
    text.split(is_separator).filter(|part| !part.is_empty()).flat_map(words_of_part).collect()
}

fn words_of_part(part: &str) -> Vec<String> {
    let chars: Vec<char> = part.chars().collect();
    let mut words = vec![String::new()];
    for (index, char) in chars.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| chars[before]);
        let after = chars.get(index + 1);
        let follows_small = before.is_some_and(|before| !before.is_uppercase());
        let ends_run = before.is_some_and(|before| before.is_uppercase())
            && after.is_some_and(|after| after.is_lowercase());
        if char.is_uppercase() && (follows_small || ends_run) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(*char);
        }
    }
    words
}
