mod documents;
mod examples;
mod lines;
mod payloads;
mod random;
mod schemas;

use super::*;

/// The results for an answer, one short text for each.
fn shown(found: &[Found]) -> Vec<String> {
    let show = |found: &Found| match found {
        Found::Value { index, line, kind, json } => {
            let kind = kind.as_ref().map(|kind| format!(" {kind}")).unwrap_or_default();
            format!("{index} @{line}{kind}: {json}")
        }
        Found::Rejected { line, reason } => format!("rejected @{line}: {reason}"),
        Found::Invalid { line, reason } => format!("invalid @{line}: {reason}"),
    };
    found.iter().map(show).collect()
}

/// All results for an answer that comes in these pieces.
fn extracted<'a>(
    mut extractor: Extractor,
    pieces: impl IntoIterator<Item = &'a str>,
    is_cut_off: bool,
) -> Vec<Found> {
    let mut found: Vec<Found> =
        pieces.into_iter().flat_map(|piece| extractor.push(piece)).collect();
    found.extend(extractor.finish(is_cut_off));
    let values = found.iter().filter(|found| matches!(found, Found::Value { .. })).count() as u64;
    let rejected = found.len() as u64 - values;
    assert_eq!(extractor.tally(), Tally { values, rejected });
    assert!(extractor.push("1\n").is_empty(), "after the end");
    assert!(extractor.finish(false).is_empty(), "after the end");
    found
}

/// Checks the results for the whole answer at once and for one character at a time.
#[track_caller]
fn check(extractor: &Extractor, answer: &str, is_cut_off: bool, expected: &[&str]) {
    let found = extracted(extractor.clone(), [answer], is_cut_off);
    assert_eq!(shown(&found), expected, "{answer}");
    let characters = answer.split_inclusive(|_| true);
    assert_eq!(extracted(extractor.clone(), characters, is_cut_off), found, "in pieces");
}

#[test]
fn text_stays_text() {
    let text = Extractor::new(ResponseType::Text, None);
    check(&text, "{\"a\":1}\nnot JSON\n```json\n[]\n```", false, &[]);
    check(&text, "{\"a\":", true, &[]);
}

#[test]
fn response_types_have_names() {
    for response in [ResponseType::Text, ResponseType::Json, ResponseType::Jsonl] {
        assert_eq!(ResponseType::named(response.as_str()), Some(response));
    }
    for name in ["", "JSON", "json ", "yaml"] {
        assert_eq!(ResponseType::named(name), None);
    }
}
