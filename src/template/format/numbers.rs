//! Formats numbers like Go's `fmt`, with padding.

/// Floats smaller than 10 to the power of this are written with an exponent.
const EXPONENT_MIN: i32 = -4;

/// Floats from 10 to the power of this are written with an exponent, as in Go's `%v`: 1e+06.
const EXPONENT_MAX: i32 = 6;

/// The flags, width and precision between `%` and the verb.
#[derive(Clone, Copy, Default)]
pub(super) struct Spec {
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
}

pub(super) fn pad(out: &mut String, spec: &Spec, text: &str) {
    let missing = spec.width.map_or(0, |width| width.saturating_sub(text.chars().count()));
    if spec.minus {
        out.push_str(text);
        out.extend(std::iter::repeat_n(' ', missing));
    } else {
        out.extend(std::iter::repeat_n(if spec.zero { '0' } else { ' ' }, missing));
        out.push_str(text);
    }
}

/// Pads a number; zeros go between its sign and its digits.
fn pad_number(out: &mut String, spec: &Spec, sign: &str, digits: &str) {
    if spec.zero && !spec.minus {
        let width = spec.width.map(|width| width.saturating_sub(sign.len()));
        out.push_str(sign);
        pad(out, &Spec { width, ..*spec }, digits);
    } else {
        pad(out, &Spec { zero: false, ..*spec }, &format!("{sign}{digits}"));
    }
}

fn sign(is_negative: bool, spec: &Spec) -> &'static str {
    match (is_negative, spec.plus, spec.space) {
        (true, _, _) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    }
}

pub(super) fn write_int(out: &mut String, number: i64, verb: char, spec: &Spec) {
    let size = number.unsigned_abs();
    let (prefix, digits) = match verb {
        'b' => ("0b", format!("{size:b}")),
        'o' => ("0", format!("{size:o}")),
        'O' => ("0o", format!("{size:o}")),
        'x' => ("0x", format!("{size:x}")),
        'X' => ("0X", format!("{size:X}")),
        _ => ("", size.to_string()),
    };
    let blanks = Spec { zero: false, ..*spec };
    if spec.precision == Some(0) && number == 0 {
        return pad(out, &blanks, "");
    }
    let sign = sign(number < 0, spec);
    let is_zero_padded = spec.zero && !spec.minus && spec.precision.is_none();
    // Zeros fill the width without the prefix, which comes before them.
    let digits_min = match spec.width {
        Some(width) if is_zero_padded => width.saturating_sub(sign.len()),
        Some(_) | None => spec.precision.unwrap_or(0),
    };
    let digits = format!("{digits:0>digits_min$}");
    let is_octal_already = verb == 'o' && digits.starts_with('0');
    let has_prefix = spec.sharp && !is_octal_already || verb == 'O';
    let prefix = if has_prefix { prefix } else { "" };
    pad(out, &blanks, &format!("{sign}{prefix}{digits}"));
}

pub(super) fn write_float(out: &mut String, number: f64, verb: char, spec: &Spec) {
    let sign = sign(number.is_sign_negative() && !number.is_nan(), spec);
    let size = number.abs();
    if size.is_nan() || size.is_infinite() {
        let sign = if size.is_infinite() && sign.is_empty() { "+" } else { sign };
        let text = if size.is_nan() { "NaN".to_owned() } else { format!("{sign}Inf") };
        return pad(out, &Spec { zero: false, ..*spec }, &text);
    }
    let digits = match verb {
        'e' | 'E' => with_exponent(&format!("{size:.*e}", spec.precision.unwrap_or(6))),
        'f' | 'F' => format!("{size:.*}", spec.precision.unwrap_or(6)),
        _ => general(size, spec.precision),
    };
    let digits = if spec.sharp { with_point(&digits, verb, spec.precision) } else { digits };
    let digits = if matches!(verb, 'E' | 'G') { digits.to_uppercase() } else { digits };
    pad_number(out, spec, sign, &digits);
}

/// The flag `#`: a decimal point, and for `%g` the zeros at the end of the digits.
fn with_point(digits: &str, verb: char, precision: Option<usize>) -> String {
    let end = digits.find('e').unwrap_or(digits.len());
    let (mantissa, exponent) = digits.split_at(end);
    let point = if mantissa.contains('.') { "" } else { "." };
    let mut wanted = if matches!(verb, 'g' | 'G') { precision.unwrap_or(6) } else { 0 };
    // The digit of 0 counts.
    let figures = mantissa.trim_start_matches(['0', '.']).replace('.', "").len();
    wanted = wanted.saturating_sub(figures + usize::from(mantissa == "0"));
    format!("{mantissa}{point}{}{exponent}", "0".repeat(wanted))
}

/// `%g` of a number that is not negative: the shortest digits that parse to `size`, or this many
/// digits; with an exponent if the number is large or very small.
pub(in crate::template) fn general(size: f64, precision: Option<usize>) -> String {
    let scientific = match precision {
        None => format!("{size:e}"),
        Some(precision) => format!("{size:.*e}", precision.max(1) - 1),
    };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let mantissa = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let max = precision
        .map_or(EXPONENT_MAX, |precision| i32::try_from(precision.max(1)).unwrap_or(i32::MAX));
    if exponent < EXPONENT_MIN || exponent >= max {
        return with_exponent(&format!("{mantissa}e{exponent}"));
    }
    let Ok(whole) = usize::try_from(exponent) else {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        return format!("0.{zeros}{digits}");
    };
    if digits.len() <= whole + 1 {
        format!("{digits:0<width$}", width = whole + 1)
    } else {
        format!("{}.{}", &digits[..=whole], &digits[whole + 1..])
    }
}

/// Converts Rust's `1e21` to Go's `1e+21`.
fn with_exponent(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}
