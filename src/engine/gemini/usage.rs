//! Token counts. Each object of an answer has them as far as they are known: the last ones count.

use crate::conversation::event::Usage;
use crate::engine::provider::json::token_count;
use serde_json::Value;

/// The counts in `usage`; `None` if it has none. The provider's count of the answer leaves out its
/// reasoning, and its count of the prompt what tools at the provider added to it.
pub(super) fn usage(usage: &Value) -> Option<Usage> {
    let count = |place: &str| token_count(usage, place);
    let (prompt, answer) = (count("/promptTokenCount"), count("/candidatesTokenCount"));
    let reasoning = count("/thoughtsTokenCount");
    prompt.or(answer).or(reasoning)?;
    let sum = |one: Option<i32>, other: Option<i32>| {
        one.unwrap_or_default().saturating_add(other.unwrap_or_default())
    };
    let cached = count("/cachedContentTokenCount").unwrap_or_default();
    Some(Usage {
        input_tokens: sum(prompt, count("/toolUsePromptTokenCount")),
        output_tokens: sum(answer, reasoning),
        cached_tokens: cached,
        cache_creation_tokens: 0,
        cache_read_tokens: cached,
        reasoning_tokens: reasoning,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_answer_counts_with_its_reasoning_and_the_request_with_what_was_cached() {
        let counts = json!({
            "promptTokenCount": 100, "cachedContentTokenCount": 64, "toolUsePromptTokenCount": 5,
            "candidatesTokenCount": 7, "thoughtsTokenCount": 30, "totalTokenCount": 142,
        });
        let expected = Usage {
            input_tokens: 105,
            output_tokens: 37,
            cached_tokens: 64,
            cache_creation_tokens: 0,
            cache_read_tokens: 64,
            reasoning_tokens: Some(30),
        };
        assert_eq!(usage(&counts), Some(expected));
        for none in [Value::Null, json!({}), json!({ "trafficType": "ON_DEMAND" })] {
            assert_eq!(usage(&none), None);
        }
        let huge = usage(&json!({ "promptTokenCount": 1u64 << 40 }));
        assert_eq!(huge.map(|usage| usage.input_tokens), Some(i32::MAX));
        let plain = usage(&json!({ "promptTokenCount": 3, "candidatesTokenCount": 2 }));
        assert_eq!(plain.and_then(|usage| usage.reasoning_tokens), None);
    }
}
