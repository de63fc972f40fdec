//! Numbers as Go's package `strconv` parses them: <https://pkg.go.dev/strconv>. Pure.

/// `strconv.ParseInt(text, 0, 64)`: Go's syntax of integers, as in `0x10`, `0b11`, `1_000` and `010`, which
/// is octal.
pub(crate) fn parse_int(text: &str) -> Option<i64> {
    let (sign, digits) = match text.split_at_checked(1) {
        Some((sign @ ("-" | "+"), digits)) => (sign, digits),
        _ => ("+", text),
    };
    let (digits, base) = digits_of(digits)?;
    // Parsed with its sign, so that the lowest number fits too.
    i64::from_str_radix(&format!("{sign}{digits}"), base).ok()
}

/// `strconv.ParseUint(text, 0, 64)`: the same without a sign.
pub(crate) fn parse_uint(text: &str) -> Option<u64> {
    let (digits, base) = digits_of(text)?;
    u64::from_str_radix(&digits, base).ok()
}

/// The digits of an integer without its prefix and underscores, and its base.
fn digits_of(text: &str) -> Option<(String, u32)> {
    let prefixes = [("0x", 16), ("0X", 16), ("0b", 2), ("0B", 2), ("0o", 8), ("0O", 8)];
    let known =
        prefixes.iter().find_map(|(prefix, base)| Some((text.strip_prefix(prefix)?, *base)));
    let (number, base) = match (known, text.strip_prefix('0')) {
        (Some((number, base)), _) => (number.strip_prefix('_').unwrap_or(number), base),
        (None, Some(octal)) if !octal.is_empty() => (octal.strip_prefix('_').unwrap_or(octal), 8),
        (None, _) => (text, 10),
    };
    let is_digit = |byte: &u8| char::from(*byte).is_digit(base);
    let is_number =
        number.split('_').all(|run| !run.is_empty() && run.bytes().all(|byte| is_digit(&byte)));
    is_number.then(|| (number.replace('_', ""), base))
}

/// `strconv.ParseFloat(text, 64)`: decimal and hexadecimal numbers, infinities and NaN. `None` also for
/// digits that are too large.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(hex) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let size = hex_float(hex)?;
        return Some(if text.starts_with('-') { -size } else { size });
    }
    if unsigned.eq_ignore_ascii_case("nan") {
        // Only without a sign.
        return (unsigned == text).then_some(f64::NAN);
    }
    let plain = without_underscores(text, |c| c.is_ascii_digit())?;
    // An infinite result of digits is an overflow.
    let has_digits = plain.contains(|c: char| c.is_ascii_digit());
    plain.parse().ok().filter(|number: &f64| number.is_finite() || !has_digits)
}

/// `text` without its underscores; `None` if one is not between two digits.
fn without_underscores(text: &str, is_digit: impl Fn(char) -> bool) -> Option<String> {
    let mut parts = text.split('_').peekable();
    let mut plain = String::with_capacity(text.len());
    while let Some(part) = parts.next() {
        plain.push_str(part);
        if let Some(next) = parts.peek()
            && !(part.ends_with(&is_digit) && next.starts_with(&is_digit))
        {
            return None;
        }
    }
    Some(plain)
}

/// The number in `1.8p1`, which follows `0x`: hexadecimal digits and a binary exponent, which must be
/// there.
fn hex_float(text: &str) -> Option<f64> {
    let text = text
        .strip_prefix('_')
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()))
        .unwrap_or(text);
    let plain = without_underscores(text, |c| c.is_ascii_hexdigit())?;
    let (digits, power) = plain.split_once(['p', 'P'])?;
    let is_power = power.strip_prefix(['+', '-']).unwrap_or(power);
    if is_power.is_empty() || !is_power.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Beyond this every number is zero or too large, however many digits it has.
    const POWER_MAX: i64 = 1 << 40;
    let sign = if power.starts_with('-') { -1 } else { 1 };
    let mut power = sign * is_power.parse::<i64>().unwrap_or(POWER_MAX).min(POWER_MAX);
    let (mut mantissa, mut has_rest, mut is_fraction, mut count) = (0_u64, false, false, 0);
    for c in digits.chars() {
        let Some(digit) = c.to_digit(16) else {
            if c != '.' || std::mem::replace(&mut is_fraction, true) {
                return None;
            }
            continue;
        };
        count += 1;
        let is_full = mantissa >> 60 != 0;
        if is_full {
            has_rest |= digit != 0;
        } else {
            mantissa = mantissa << 4 | u64::from(digit);
        }
        power += match (is_fraction, is_full) {
            (true, false) => -4,
            (false, true) => 4,
            (true, true) | (false, false) => 0,
        };
    }
    // The lowest bit of a full mantissa is far below the last one of a float.
    (count > 0).then(|| float_of(mantissa | u64::from(has_rest), power))?
}

/// The float nearest to `mantissa * 2^power`, to an even one of two; `None` if it is too large.
fn float_of(mantissa: u64, power: i64) -> Option<f64> {
    const LAST_BIT_MIN: i64 = -1074;
    const DIGITS: i64 = 53;
    if mantissa == 0 {
        return Some(0.0);
    }
    let bits = i64::from(u64::BITS - mantissa.leading_zeros());
    // The value of the last bit that the float has.
    let last = (power + bits - DIGITS).max(LAST_BIT_MIN);
    let dropped = last - power;
    let wide = u128::from(mantissa);
    let whole = match dropped {
        ..0 => wide << u32::try_from(-dropped).ok()?,
        0..=100 => {
            let (kept, rest) = (wide >> dropped, wide & ((1 << dropped) - 1));
            let half = (1_u128 << dropped) >> 1;
            let rounds_up = dropped > 0 && (rest > half || (rest == half && kept & 1 == 1));
            kept + u128::from(rounds_up)
        }
        _ => 0,
    };
    let whole = u64::try_from(whole).ok()?;
    let implied = 1_u64 << (DIGITS - 1);
    // A carry into another digit leaves zeros only.
    let (whole, last) = if whole == implied << 1 { (implied, last + 1) } else { (whole, last) };
    if whole < implied {
        return Some(f64::from_bits(whole));
    }
    let exponent = u64::try_from(last - LAST_BIT_MIN + 1).ok().filter(|it| *it < 0x7ff)?;
    Some(f64::from_bits(exponent << (DIGITS - 1) | (whole & (implied - 1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of Go 1.26 for each text.
    #[test]
    fn floats_are_those_of_go() {
        let numbers: [(&str, u64); 34] = [
            ("0x1p4", 0x4030_0000_0000_0000),
            ("0x1.8p1", 0x4008_0000_0000_0000),
            ("1_000", 0x408f_4000_0000_0000),
            ("0x_1p4", 0x4030_0000_0000_0000),
            ("0X1P4", 0x4030_0000_0000_0000),
            ("0x1p-2", 0x3fd0_0000_0000_0000),
            ("-0x1p4", 0xc030_0000_0000_0000),
            ("1_0.5", 0x4025_0000_0000_0000),
            ("0x1_0p0", 0x4030_0000_0000_0000),
            ("infinity", 0x7ff0_0000_0000_0000),
            ("+Inf", 0x7ff0_0000_0000_0000),
            (".5", 0x3fe0_0000_0000_0000),
            ("5.", 0x4014_0000_0000_0000),
            ("0x1p-2000", 0),
            ("0x.8p1", 0x3ff0_0000_0000_0000),
            ("+1", 0x3ff0_0000_0000_0000),
            ("1E5", 0x40f8_6a00_0000_0000),
            ("1e+5", 0x40f8_6a00_0000_0000),
            ("0x1P+4", 0x4030_0000_0000_0000),
            ("0x1.fffffffffffff8p0", 0x4000_0000_0000_0000),
            ("0x1.00000000000008p0", 0x3ff0_0000_0000_0000),
            ("0x1.000000000000081p0", 0x3ff0_0000_0000_0001),
            ("0x1.000000000000080000000000001p0", 0x3ff0_0000_0000_0001),
            ("0x0p0", 0),
            ("-0x0p0", 0x8000_0000_0000_0000),
            ("0x1p-1074", 1),
            ("0x1p-1075", 0),
            ("0x1.8p-1075", 1),
            ("0x1p1023", 0x7fe0_0000_0000_0000),
            ("0x1.fffffffffffff7fp1023", 0x7fef_ffff_ffff_ffff),
            ("0x1p-99999999999", 0),
            ("0x0p99999999999", 0),
            ("0x1p-1022", 0x0010_0000_0000_0000),
            ("0x0.fffffffffffffffp-1022", 0x0010_0000_0000_0000),
        ];
        for (text, bits) in numbers {
            assert_eq!(parse_float(text).map(f64::to_bits), Some(bits), "{text}");
        }
        assert!(parse_float("nan").is_some_and(f64::is_nan));
        let wrong = [
            "0x10",
            "-nan",
            "1e",
            "0x",
            "0x1",
            "0b1p1",
            "1e400",
            "-1e400",
            "0x1p2000",
            "0x.p1",
            "1p4",
            " 1",
            "1 ",
            "--1",
            "0x1.fffffffffffff8p1023",
            "0x1p99999999999",
            "\u{661}",
            "",
            "_1",
            "1_",
            "1__0",
            "0x1p",
            "0x1p+",
            "0x1.2.3p1",
            "0x__1p1",
            "0x1_p1",
            "-0x-1p1",
        ];
        for text in wrong {
            assert_eq!(parse_float(text), None, "{text}");
        }
    }

    #[test]
    fn integers_are_those_of_go() {
        let check = |text: &str, int: Option<i64>, uint: Option<u64>| {
            assert_eq!((parse_int(text), parse_uint(text)), (int, uint), "{text}");
        };
        check("0x10", Some(16), Some(16));
        check("010", Some(8), Some(8));
        check("0o17", Some(15), Some(15));
        check("-0b11", Some(-3), None);
        check("+1_000", Some(1000), None);
        check("9223372036854775808", None, Some(1 << 63));
        check("-9223372036854775808", Some(i64::MIN), None);
        for text in ["", "-", "08", "0x", "1__0", "_1", "1_", "1.0", "18446744073709551616"] {
            check(text, None, None);
        }
    }
}
