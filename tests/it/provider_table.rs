//! Each cell of the table in `docs/providers.md` is a test.

use std::fs;
use std::path::Path;

/// A row of the table: the capability, then for each engine the test that shows it; `None` where the
/// engine does not have it.
type Row = (&'static str, [Option<&'static str>; 5]);

const ROWS: [Row; 17] = [
    (
        "text, streamed",
        [
            Some("an_answer_comes_through_in_order"),
            Some("text_and_summaries_are_streamed_and_counted"),
            Some("text_and_reasoning_are_streamed_and_counted"),
            Some("gemini_streams_text_and_reasoning_and_counts_them"),
            Some("ollama_streams_text_and_reasoning_and_counts_them"),
        ],
    ),
    (
        "reasoning, streamed",
        [
            Some("an_answer_comes_through_in_order"),
            Some("text_and_summaries_are_streamed_and_counted"),
            Some("text_and_reasoning_are_streamed_and_counted"),
            Some("gemini_streams_text_and_reasoning_and_counts_them"),
            Some("ollama_streams_text_and_reasoning_and_counts_them"),
        ],
    ),
    (
        "reasoning sent back on the next call",
        [
            Some("reasoning_goes_back_to_a_server_that_wants_it"),
            Some("calls_at_once_get_their_results_and_reasoning_goes_back_encrypted"),
            Some("parallel_calls_get_their_results_and_reasoning_goes_back_signed"),
            Some("gemini_gets_signatures_back_in_their_places_over_two_rounds_of_calls"),
            Some("ollama_gets_reasoning_and_results_back_over_two_rounds_of_calls"),
        ],
    ),
    (
        "tools",
        [
            Some("pieces_go_to_their_calls"),
            Some("calls_at_once_get_their_results_and_reasoning_goes_back_encrypted"),
            Some("parallel_calls_get_their_results_and_reasoning_goes_back_signed"),
            Some("gemini_gets_signatures_back_in_their_places_over_two_rounds_of_calls"),
            Some("ollama_gets_reasoning_and_results_back_over_two_rounds_of_calls"),
        ],
    ),
    (
        "arguments of tools, streamed",
        [
            Some("pieces_go_to_their_calls"),
            Some("calls_at_once_get_their_results_and_reasoning_goes_back_encrypted"),
            Some("parallel_calls_get_their_results_and_reasoning_goes_back_signed"),
            None,
            None,
        ],
    ),
    (
        "several tool calls in one answer",
        [
            Some("a_provider_gets_the_tools_and_the_results_in_the_order_of_the_calls"),
            Some("calls_at_once_get_their_results_and_reasoning_goes_back_encrypted"),
            Some("parallel_calls_get_their_results_and_reasoning_goes_back_signed"),
            Some("gemini_gets_signatures_back_in_their_places_over_two_rounds_of_calls"),
            Some("ollama_gets_reasoning_and_results_back_over_two_rounds_of_calls"),
        ],
    ),
    (
        "token counts",
        [
            Some("every_count_is_read_wherever_a_provider_has_it"),
            Some("cached_and_reasoning_tokens_are_parts_of_the_totals"),
            Some("text_and_reasoning_are_streamed_and_counted"),
            Some("gemini_streams_text_and_reasoning_and_counts_them"),
            Some("ollama_streams_text_and_reasoning_and_counts_them"),
        ],
    ),
    (
        "cached and reasoning tokens, counted apart",
        [
            Some("every_count_is_read_wherever_a_provider_has_it"),
            Some("cached_and_reasoning_tokens_are_parts_of_the_totals"),
            Some("later_counts_replace_earlier_ones_and_the_input_is_the_whole_request"),
            Some("the_answer_counts_with_its_reasoning_and_the_request_with_what_was_cached"),
            None,
        ],
    ),
    (
        "requests that begin with the bytes of the one before, for the provider's cache",
        [
            Some("a_turn_begins_with_every_byte_of_the_turn_before"),
            Some("a_turn_begins_with_all_bytes_of_the_turn_before"),
            Some("a_turn_begins_with_the_bytes_of_the_turn_before"),
            Some("a_turn_begins_with_the_bytes_of_the_turn_before"),
            Some("a_turn_begins_with_the_bytes_of_the_turn_before"),
        ],
    ),
    (
        "typed errors, `Retry-After`",
        [
            Some("each_failure_of_a_provider_is_one_typed_error"),
            Some("each_failure_of_it_is_one_typed_error_and_the_session_goes_on"),
            Some("each_failure_is_one_typed_error_and_the_session_goes_on"),
            Some("gemini_is_asked_again_after_the_wait_in_its_error"),
            Some("ollama_is_asked_again_after_an_overload"),
        ],
    ),
    (
        "a cancel closes the connection",
        [
            Some("a_dropped_run_closes_its_connection_at_any_stage"),
            Some("a_cancel_of_it_closes_the_connection"),
            Some("a_cancel_closes_the_connection"),
            Some("a_cancel_closes_the_connection_to_gemini"),
            Some("a_cancel_closes_the_connection_to_ollama"),
        ],
    ),
    (
        "images",
        [
            Some("images_and_files_come_before_the_text"),
            Some("images_and_files_stand_before_the_text"),
            Some("attachments_stand_before_the_text_and_carry_the_mark_where_there_is_none"),
            Some("attachments_stand_before_the_text"),
            Some("images_and_texts_go_along_and_nothing_else"),
        ],
    ),
    (
        "images in the results of tools",
        [
            Some("chat_completions_get_images_of_results_in_a_message_of_the_user"),
            Some("responses_get_images_in_a_result"),
            Some("anthropic_gets_images_in_a_result"),
            Some("gemini_gets_images_in_a_result"),
            Some("ollama_gets_images_with_a_result"),
        ],
    ),
    (
        "images by address",
        [
            Some("images_and_files_come_before_the_text"),
            Some("images_and_files_stand_before_the_text"),
            Some("attachments_stand_before_the_text_and_carry_the_mark_where_there_is_none"),
            Some("attachments_stand_before_the_text"),
            None,
        ],
    ),
    (
        "PDF documents by address",
        [
            None,
            Some("images_and_files_stand_before_the_text"),
            Some("attachments_stand_before_the_text_and_carry_the_mark_where_there_is_none"),
            Some("attachments_stand_before_the_text"),
            None,
        ],
    ),
    (
        "PDF documents",
        [
            Some("images_and_files_come_before_the_text"),
            Some("images_and_files_stand_before_the_text"),
            Some("attachments_stand_before_the_text_and_carry_the_mark_where_there_is_none"),
            Some("attachments_stand_before_the_text"),
            None,
        ],
    ),
    (
        "structured output by the provider",
        [
            Some("a_schema_is_sent_in_its_field_or_in_the_instructions"),
            Some("a_schema_is_sent_as_the_format_or_in_the_instructions"),
            Some("a_schema_is_the_format_unless_the_model_is_to_get_it"),
            Some("a_schema_has_a_field_of_its_own_where_the_model_takes_it"),
            Some("a_schema_is_the_format_unless_the_model_is_to_get_it"),
        ],
    ),
];

#[test]
fn each_cell_of_the_table_is_shown_by_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let code = [root.join("src"), root.join("tests/it")].map(|folder| sources(&folder)).concat();
    let text = include_str!("../../docs/providers.md");
    let head = "| | `openai` | `responses` | `anthropic` | `gemini` | `ollama` |\n|---|---|---|---|---|---|\n";
    let table = text.split(head).nth(1).expect("a table");
    let rows: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    let expected = ROWS.map(|(capability, tests)| {
        let cells = tests.map(|test| if test.is_some() { "yes" } else { "no" });
        format!("| {capability} | {} |", cells.join(" | "))
    });
    assert_eq!(rows, expected);
    for test in ROWS.iter().flat_map(|(_, tests)| tests).flatten() {
        assert!(code.contains(&format!("fn {test}()")), "there is no test {test}");
    }
}

/// All Rust files below `folder`.
fn sources(folder: &Path) -> String {
    let entries =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let texts = entries.map(|path| match path.is_dir() {
        true => sources(&path),
        false if path.extension().is_some_and(|end| end == "rs") => {
            fs::read_to_string(&path).expect("a text")
        }
        false => String::new(),
    });
    texts.collect()
}
