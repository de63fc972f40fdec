//! Whole numbers as options take them.

use std::ops::RangeInclusive;

/// Reads a whole number that is in `range`.
pub(super) fn whole<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse::<u64>().ok().filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| expected(&range))
    }
}

fn expected(range: &RangeInclusive<u64>) -> String {
    match (range.start(), range.end()) {
        (0, &u64::MAX) => "it is not an integer, such as 500".to_owned(),
        (start, &u64::MAX) => format!("it is not an integer from {start} up"),
        (start, end) => format!("it is not an integer from {start} to {end}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_in_its_range_or_the_range_is_named() {
        let check = |range, text, expected: Result<u32, &str>| {
            assert_eq!(whole::<u32>(range)(text), expected.map_err(str::to_owned), "{text}");
        };
        check(0..=10, "0", Ok(0));
        check(0..=10, "10", Ok(10));
        check(0..=10, "11", Err("it is not an integer from 0 to 10"));
        check(1..=u64::MAX, "0", Err("it is not an integer from 1 up"));
        check(0..=u64::MAX, "-1", Err("it is not an integer, such as 500"));
        check(0..=u64::MAX, "many", Err("it is not an integer, such as 500"));
    }
}
