//! One table of what was measured, as Markdown.
#![expect(clippy::print_stdout, reason = "the table is what the program is for")]

/// What a row should show.
#[derive(Clone, Copy)]
pub(crate) enum Aim {
    /// For the reader's information.
    None,
    /// At most this many times the reference.
    Ratio(f64),
    /// Exactly the reference.
    All,
    /// At most this much, in the row's unit.
    Value(f64),
}

/// How a number is shown.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Millis,
    Micros,
    Mebibytes,
    Kibibytes,
    Bytes,
    Count,
    /// So few that parts of one count.
    Few,
}

/// Prints whether the machine had anything else to do, and the head of the table.
pub(crate) fn head(state: &str) {
    println!("{state}\n");
    println!("| what | duologue | reference | ratio | aim |");
    println!("|---|---:|---:|---:|---|");
}

/// Prints a row that says why there is no number.
pub(crate) fn note(what: &str) {
    println!("| {what} | | | | |");
}

/// Prints a row; `reference` may be missing.
pub(crate) fn row(what: &str, unit: Unit, ours: f64, reference: Option<f64>, aim: Aim) {
    let ratio = reference.map(|reference| ours / reference);
    let aim = match aim {
        Aim::None => String::new(),
        Aim::Ratio(most) => verdict(format!("≤ {most}×"), ratio.is_some_and(|ratio| ratio <= most)),
        Aim::All => verdict("all".to_owned(), reference == Some(ours)),
        Aim::Value(most) => verdict(format!("≤ {}", unit.show(most)), ours <= most),
    };
    let reference = reference.map(|value| unit.show(value)).unwrap_or_default();
    let ratio = ratio.map(|ratio| format!("{ratio:.2}×")).unwrap_or_default();
    println!("| {what} | {} | {reference} | {ratio} | {aim} |", unit.show(ours));
}

fn verdict(aim: String, is_met: bool) -> String {
    if is_met { aim } else { format!("{aim}, **missed**") }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Millis => format!("{value:.2} ms"),
            Self::Micros => format!("{value:.2} µs"),
            Self::Mebibytes => format!("{value:.1} MB"),
            Self::Kibibytes => format!("{value:.1} kB"),
            Self::Bytes => format!("{value:.1} B"),
            Self::Count => format!("{value:.0}"),
            Self::Few => format!("{value:.2}"),
        }
    }
}

/// The value below which `part` of `values` are.
pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * part).round() as usize).copied().unwrap_or(f64::NAN)
}

pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The smallest: what it takes when nothing else runs on the machine.
pub(crate) fn least(values: &[f64]) -> f64 {
    quantile(values, 0.0)
}
