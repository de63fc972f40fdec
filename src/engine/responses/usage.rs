//! Token counts. OpenAI's totals hold the cached and the reasoning tokens.

use crate::conversation::event::Usage;
use crate::engine::provider::json::token_count;
use serde_json::Value;

/// The counts in `usage`; `None` if there are none.
pub(super) fn usage(usage: &Value) -> Option<Usage> {
    let count = |place: &str| token_count(usage, place);
    let input = count("/input_tokens");
    let output = count("/output_tokens");
    input.or(output)?;
    Some(Usage {
        input_tokens: input.unwrap_or_default(),
        output_tokens: output.unwrap_or_default(),
        cached_tokens: count("/input_tokens_details/cached_tokens").unwrap_or_default(),
        cache_creation_tokens: count("/input_tokens_details/cache_write_tokens")
            .unwrap_or_default(),
        cache_read_tokens: 0,
        reasoning_tokens: count("/output_tokens_details/reasoning_tokens"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cached_and_reasoning_tokens_are_parts_of_the_totals() {
        let counts = json!({
            "input_tokens": 120, "output_tokens": 30, "total_tokens": 150,
            "input_tokens_details": { "cached_tokens": 100, "cache_write_tokens": 7 },
            "output_tokens_details": { "reasoning_tokens": 20 },
        });
        let expected = Usage {
            input_tokens: 120,
            output_tokens: 30,
            cached_tokens: 100,
            cache_creation_tokens: 7,
            cache_read_tokens: 0,
            reasoning_tokens: Some(20),
        };
        assert_eq!(usage(&counts), Some(expected));
        let few = usage(&json!({ "output_tokens": 1u64 << 40, "input_tokens_details": null }));
        assert_eq!(few.map(|usage| usage.output_tokens), Some(i32::MAX));
        assert_eq!(usage(&Value::Null), None);
        assert_eq!(usage(&json!({ "total_tokens": 3 })), None);
    }
}
