//! The order in which Go's `yaml.v3` writes keys: numbers in them by their size.

use std::cmp::Ordering;

/// Compares two keys: signs are before numbers and these before letters, but a letter that follows a digit is before
/// a sign there.
pub(super) fn natural(one: &str, other: &str) -> Ordering {
    let shared = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
    let (head, rest) = one.split_at(shared.map(|(char, _)| char.len_utf8()).sum());
    let other_rest = other.get(head.len()..).unwrap_or_default();
    let (Some(first), Some(other_first)) = (rest.chars().next(), other_rest.chars().next()) else {
        return rest.len().cmp(&other_rest.len());
    };
    // The digits of a number that goes on where the keys differ.
    let digits = &head[head.trim_end_matches(|char: char| char.is_ascii_digit()).len()..];
    match (first.is_alphabetic(), other_first.is_alphabetic()) {
        (true, true) => first.cmp(&other_first),
        (false, false) => {
            number(digits, rest).cmp(&number(digits, other_rest)).then(first.cmp(&other_first))
        }
        (is_letter, _) if is_letter == digits.is_empty() => Ordering::Greater,
        (true | false, _) => Ordering::Less,
    }
}

/// The number that begins with `digits` and goes on in `rest`, in a form that compares as it does: its size, then the
/// count of its digits. No digits are zero.
fn number(digits: &str, rest: &str) -> (usize, String, usize) {
    let end = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    let whole = format!("{digits}{}", &rest[..end]);
    let size = whole.trim_start_matches('0').to_owned();
    (size.len(), size, whole.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the order that yaml.v3 gives them.
    const SORTED: [&str; 26] = [
        "",
        "-",
        "_",
        "0",
        "5",
        "A",
        "a",
        "a b",
        "a-9",
        "a-10",
        "a.b",
        "a1",
        "a1x",
        "a1-",
        "a01",
        "a2",
        "a12",
        "a100",
        "a105",
        "a999999999999999999999999",
        "b",
        "b0",
        "b00",
        "item2",
        "item10",
        "é",
    ];

    #[test]
    fn keys_have_one_order_that_is_go_s() {
        for (index, one) in SORTED.iter().enumerate() {
            for (at, other) in SORTED.iter().enumerate() {
                assert_eq!(natural(one, other), index.cmp(&at), "{one:?} {other:?}");
            }
        }
    }
}
