//! Token counts. Those at the end of an answer are totals, and replace those at its beginning.

use crate::conversation::event::Usage;
use crate::engine::provider::json::token_count;
use serde_json::Value;

/// The counts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    uncached: Option<i32>,
    cache_creation: Option<i32>,
    cache_read: Option<i32>,
    output: Option<i32>,
    thinking: Option<i32>,
}

impl Counts {
    /// Takes the counts that `usage` has. The input is counted before the answer begins: a 0 after that is that of a
    /// server that has no count at the end.
    pub(super) fn update(&mut self, usage: &Value) {
        let count = |place: &str| token_count(usage, place);
        let input = |place: &str, earlier: Option<i32>| match (count(place), earlier) {
            (Some(0) | None, Some(_)) => earlier,
            (later, _) => later,
        };
        self.uncached = input("/input_tokens", self.uncached);
        self.cache_creation = input("/cache_creation_input_tokens", self.cache_creation);
        self.cache_read = input("/cache_read_input_tokens", self.cache_read);
        self.output = count("/output_tokens").or(self.output);
        self.thinking = count("/output_tokens_details/thinking_tokens").or(self.thinking);
    }

    /// All of it; `None` if the provider has reported nothing. Its own count of the input leaves out
    /// what was read from its cache or written to it.
    pub(super) fn usage(self) -> Option<Usage> {
        self.uncached.or(self.output)?;
        let created = self.cache_creation.unwrap_or_default();
        let read = self.cache_read.unwrap_or_default();
        let input = self.uncached.unwrap_or_default().saturating_add(created).saturating_add(read);
        Some(Usage {
            input_tokens: input,
            output_tokens: self.output.unwrap_or_default(),
            cached_tokens: read,
            cache_creation_tokens: created,
            cache_read_tokens: read,
            reasoning_tokens: self.thinking,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn later_counts_replace_earlier_ones_and_the_input_is_the_whole_request() {
        let mut counts = Counts::default();
        assert_eq!(counts.usage(), None);
        counts.update(&Value::Null);
        counts.update(&json!({ "service_tier": "standard" }));
        assert_eq!(counts.usage(), None);
        counts.update(&json!({
            "input_tokens": 3, "output_tokens": 1,
            "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100,
        }));
        counts.update(&json!({
            "output_tokens": 15, "cache_read_input_tokens": null,
            "output_tokens_details": { "thinking_tokens": 7 },
        }));
        let expected = Usage {
            input_tokens: 123,
            output_tokens: 15,
            cached_tokens: 100,
            cache_creation_tokens: 20,
            cache_read_tokens: 100,
            reasoning_tokens: Some(7),
        };
        assert_eq!(counts.usage(), Some(expected));
        // As servers in between end an answer.
        counts.update(&json!({
            "input_tokens": 0, "output_tokens": 15,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        }));
        assert_eq!(counts.usage(), Some(expected));
        counts.update(&json!({ "input_tokens": 1u64 << 40 }));
        assert_eq!(counts.usage().map(|usage| usage.input_tokens), Some(i32::MAX));
    }
}
