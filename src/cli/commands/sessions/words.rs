//! What a turn took, in words. Pure.

use crate::protocol::proto::session::{TokenCounts, TurnSummary};

/// Between two parts of a line.
const SEPARATOR: &str = " \u{b7} ";

/// What answered in a turn, when, and what it took.
pub(super) fn turn_words(summary: &TurnSummary) -> String {
    let TurnSummary { engine, model, started_at, duration_ms, usage, .. } = summary;
    let who = match model.as_str() {
        "" => engine.clone(),
        model if model == engine => engine.clone(),
        model => format!("{model} ({engine})"),
    };
    let when = match started_at.strip_suffix('Z') {
        Some(time) => time.replace('T', " ") + " UTC",
        None => String::new(),
    };
    let time = duration_ms.map_or_else(String::new, duration_words);
    let usage = usage.as_ref().map_or_else(String::new, usage_words);
    joined([who, when, time, usage])
}

/// What all turns took.
pub(super) fn session_words(turns: usize, totals: &TokenCounts) -> String {
    joined([counted(turns as u64, "turn"), usage_words(totals)])
}

fn joined<const N: usize>(parts: [String; N]) -> String {
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(SEPARATOR)
}

fn usage_words(counts: &TokenCounts) -> String {
    let (input, output) = (counts.input_tokens, counts.output_tokens);
    let tokens = match (counts.provider_calls, counts.cached_tokens) {
        (0, _) => String::new(),
        (_, 0) => format!("{input} tokens in, {output} out"),
        (_, cached) => format!("{input} tokens in ({cached} from a cache), {output} out"),
    };
    let cost = match counts.cost.as_str() {
        "" => String::new(),
        cost => format!("{cost} {}", counts.currency),
    };
    let uncounted = match counts.uncounted_calls {
        0 => String::new(),
        calls => format!("{} without token counts", counted(calls.into(), "call")),
    };
    joined([tokens, cost, uncounted])
}

fn counted(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

fn duration_words(ms: i64) -> String {
    match ms {
        ..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(summary: &TurnSummary, expected: &str) {
        assert_eq!(turn_words(summary).replace(SEPARATOR, "; "), expected);
    }

    #[test]
    fn a_turn_is_described_in_a_line() {
        let usage = TokenCounts {
            provider_calls: 1,
            input_tokens: 1200,
            output_tokens: 30,
            cost: "0.001500".to_owned(),
            currency: "USD".to_owned(),
            ..TokenCounts::default()
        };
        let mut summary = TurnSummary {
            engine: "anthropic".to_owned(),
            model: "m".to_owned(),
            started_at: "2026-01-31T09:30:00Z".to_owned(),
            duration_ms: Some(61_250),
            usage: Some(usage),
            correlation: None,
        };
        check(
            &summary,
            "m (anthropic); 2026-01-31 09:30:00 UTC; 1 min 1 s; 1200 tokens in, 30 out; 0.001500 USD",
        );
        let cached = TokenCounts { provider_calls: 2, cached_tokens: 7, ..TokenCounts::default() };
        summary.usage = Some(TokenCounts { uncounted_calls: 2, ..cached });
        (summary.duration_ms, summary.started_at) = (Some(1999), String::new());
        let of_cache = "0 tokens in (7 from a cache), 0 out";
        let expected = format!("m (anthropic); 1.9 s; {of_cache}; 2 calls without token counts");
        check(&summary, &expected);
        let echo = TurnSummary { engine: "echo".to_owned(), ..TurnSummary::default() };
        check(&TurnSummary { duration_ms: Some(3), ..echo.clone() }, "echo; 3 ms");
        check(&TurnSummary { model: "echo".to_owned(), ..echo.clone() }, "echo");
        check(&echo, "echo");
    }
}
