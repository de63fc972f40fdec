//! Token counts. Each is read where OpenAI has it, or else where DeepSeek, Anthropic or a proxy before them has it.

use crate::conversation::event::Usage;
use crate::engine::provider::json::token_count;
use serde_json::Value;

/// The counts in `usage`; `None` if there are none.
pub(super) fn usage(usage: &Value) -> Option<Usage> {
    let count = |places: &[&str]| places.iter().find_map(|it| token_count(usage, it));
    let (input, output) = (count(&["/prompt_tokens"]), count(&["/completion_tokens"]));
    input.or(output)?;
    let created = ["/cache_creation_input_tokens", "/prompt_tokens_details/cache_write_tokens"];
    let cached = ["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"];
    let reasoning = ["/completion_tokens_details/reasoning_tokens", "/reasoning_tokens"];
    let counts = Usage {
        input_tokens: input.unwrap_or_default(),
        output_tokens: output.unwrap_or_default(),
        cached_tokens: count(&cached).unwrap_or_default(),
        cache_creation_tokens: count(&created).unwrap_or_default(),
        cache_read_tokens: count(&["/cache_read_input_tokens"]).unwrap_or_default(),
        reasoning_tokens: count(&reasoning),
    };
    let total = count(&["/total_tokens"]).filter(|_| input.is_some() && output.is_some());
    Some(Usage { output_tokens: output_with_reasoning(&counts, total), ..counts })
}

/// The tokens of the answer, its reasoning included. OpenAI's count of the answer includes it; xAI counts it beside the
/// answer, and Google's compatible server has it in the total alone.
fn output_with_reasoning(counts: &Usage, total: Option<i32>) -> i32 {
    let output = counts.output_tokens;
    let known = counts.input_tokens.saturating_add(output);
    let uncounted = total.unwrap_or_default().saturating_sub(known).max(0);
    match counts.reasoning_tokens {
        Some(reasoning) if uncounted == reasoning => output.saturating_add(reasoning),
        Some(reasoning) => output.max(reasoning),
        None if is_of_cache(counts, uncounted) => output,
        None => output.saturating_add(uncounted),
    }
}

/// Whether `tokens` are what was read from a cache or written to it, which a proxy before Anthropic may leave out of
/// the prompt's count.
fn is_of_cache(counts: &Usage, tokens: i32) -> bool {
    let created = counts.cache_creation_tokens;
    let read = counts.cache_read_tokens.max(counts.cached_tokens);
    [created, read, created.saturating_add(read)].contains(&tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_count_is_read_wherever_a_provider_has_it() {
        let counts = Usage { input_tokens: 9, output_tokens: 8, ..Usage::default() };
        for (more, expected) in [
            (
                json!({ "completion_tokens_details": { "reasoning_tokens": 5 } }),
                Usage { reasoning_tokens: Some(5), ..counts },
            ),
            (json!({ "reasoning_tokens": 0 }), Usage { reasoning_tokens: Some(0), ..counts }),
            (json!({ "completion_tokens_details": null }), counts),
            (json!({ "prompt_cache_hit_tokens": 4 }), Usage { cached_tokens: 4, ..counts }),
            (
                json!({ "prompt_tokens_details": { "cached_tokens": 3, "cache_write_tokens": 2 } }),
                Usage { cached_tokens: 3, cache_creation_tokens: 2, ..counts },
            ),
            (
                json!({ "cache_creation_input_tokens": 6, "cache_read_input_tokens": 7 }),
                Usage { cache_creation_tokens: 6, cache_read_tokens: 7, ..counts },
            ),
        ] {
            let mut given = json!({ "prompt_tokens": 9, "completion_tokens": 8 });
            let members = given.as_object_mut().expect("an object");
            members.extend(more.as_object().expect("an object").clone());
            assert_eq!(usage(&given), Some(expected), "{more}");
        }
    }

    #[test]
    fn the_answer_counts_with_its_reasoning_wherever_a_provider_counts_that() {
        let check = |[prompt, completion, total]: [u64; 3], more: Value, expected: i32| {
            let mut given = json!({ "prompt_tokens": prompt, "completion_tokens": completion,
                                    "total_tokens": total });
            let members = given.as_object_mut().expect("an object");
            members.extend(more.as_object().expect("an object").clone());
            let counts = usage(&given).expect("counts");
            assert_eq!(counts.output_tokens, expected, "{given}");
            assert!(counts.reasoning_tokens.is_none_or(|it| it <= expected), "{given}");
        };
        let reasoning =
            |tokens: u64| json!({ "completion_tokens_details": { "reasoning_tokens": tokens } });
        // OpenAI: a part of the answer.
        check([10, 300, 310], reasoning(280), 300);
        check([10, 300, 310], reasoning(0), 300);
        // xAI: beside the answer.
        check([10_120, 1_499, 14_428], reasoning(2_809), 4_308);
        check([10, 300, 590], reasoning(280), 580);
        // Google's compatible server: in the total alone.
        check([8, 5, 312], json!({}), 304);
        // Where the total says nothing of it, the answer is not less than its reasoning.
        check([10, 5, 15], reasoning(9), 9);
        check([10, 5, 17], reasoning(4), 5);
        // What a proxy leaves out of the prompt is no part of the answer.
        check([10, 5, 115], json!({ "cache_read_input_tokens": 100 }), 5);
        let both = json!({ "cache_read_input_tokens": 60, "cache_creation_input_tokens": 40,
                           "prompt_tokens_details": { "cached_tokens": 60 } });
        check([10, 5, 115], both, 5);
        // A total that is less than its parts, or too large to be one.
        check([10, 5, 0], json!({}), 5);
        check([10, 5, u64::MAX], json!({}), i32::MAX - 10);
    }

    #[test]
    fn a_total_without_one_of_its_parts_says_nothing() {
        let output = |given: Value| usage(&given).map(|counts| counts.output_tokens);
        assert_eq!(output(json!({ "total_tokens": 9 })), None);
        assert_eq!(output(json!({ "completion_tokens": 2, "total_tokens": 9 })), Some(2));
        assert_eq!(output(json!({ "prompt_tokens": 2, "total_tokens": 9 })), Some(0));
    }
}
