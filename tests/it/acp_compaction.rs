//! Long conversations in an editor: what a prompt of `/compact` answers, and what the person is asked.

use crate::acp_client::{Client, bare_command};
use crate::provider::{Provider, Step};
use crate::server::Folder;
use serde_json::json;
use std::process::Command;

fn with_provider(folder: &Folder, provider: &Provider, args: &[&str]) -> Command {
    let mut command = bare_command(folder, args);
    command.args(["--engine", "openai", "--model", "scripted", "--retries", "0"]);
    command.args(["--base-url", &provider.base_url()]).env("DUOLOGUE_API_KEY", "sk-test");
    command
}

/// An answer that is counted as 122 tokens, with its request.
fn answer(text: &str, finish: &'static str) -> Vec<Step> {
    vec![Step::Text(text.to_owned()), Step::Finish(finish, Some((110, 12))), Step::Done]
}

fn says(text: &str) -> Vec<Step> {
    answer(text, "stop")
}

#[test]
fn a_compaction_after_an_answer_that_was_cut_off_is_whole() {
    let folder = Folder::new();
    let provider = Provider::start(vec![says("one"), answer("half", "length"), says("SUMMARY")]);
    let mut client = Client::start_with(with_provider(&folder, &provider, &[]), json!({}));
    let session = client.session(&folder.path(""));
    assert_eq!(client.turn(&session, "one").0, "end_turn");
    assert_eq!(client.turn(&session, "two").0, "max_tokens");
    assert_eq!(client.turn(&session, "/compact").0, "end_turn");
    client.finish();
}
