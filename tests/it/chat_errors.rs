//! What a person sees of a provider that refuses, fails for a while, or is stopped.

use crate::chat::Person;
use crate::once::duologue;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY};
use serde_json::json;

fn chat(folder: &Folder, provider: &Provider) -> Person {
    let base_url = provider.base_url();
    let words = ["chat", "--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    let mut command = duologue(folder, &words);
    command.env("DUOLOGUE_API_KEY", KEY).env("HOME", folder.path(""));
    let person = Person::start(command);
    person.sees("/help");
    person
}

fn refused(status: u16, body: &str) -> Vec<Step> {
    vec![Step::Status(status, vec![("retry-after", "1".to_owned())], body.to_owned())]
}

/// All that is shown, however it is wrapped.
fn words(person: &Person) -> String {
    person.screen().text().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_the_provider_says_is_shown_once() {
    let folder = Folder::new();
    let error =
        json!({"error": {"message": "roles must alternate", "type": "invalid_request_error"}});
    let about_model = json!({"error": {"message": "no such name", "code": "model_not_found"}});
    // The first request is sent once more, without what a server may refuse.
    let answers = [&error, &error, &about_model].map(|body| refused(400, &body.to_string()));
    let provider = Provider::start(answers.into());
    let mut person = chat(&folder, &provider);
    person.types("hello\r");
    person.sees_words("roles must alternate (invalid_request_error)");
    person.answered("invalid_request_error");
    let first = words(&person);
    assert_eq!(first.matches("roles must alternate").count(), 1, "{first}");
    assert!(!first.contains("--model"), "{first}");
    person.types("again\r");
    person.sees_words("the provider says: no such name");
    let second = words(&person);
    assert!(second.contains("check --model"), "{second}");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn a_retry_is_shown_while_it_is_waited_for_and_leaves_nothing() {
    let folder = Folder::new();
    let provider = Provider::start(vec![refused(503, "busy"), says("Hello.")]);
    let mut person = chat(&folder, &provider);
    person.types("hi\r");
    person.sees("retrying in 1 s (attempt 2 of ");
    person.answered("Hello.");
    person.types("/quit\r");
    let (status, screen) = person.ends();
    assert_eq!(status, 0);
    let text = screen.text();
    assert!(!text.contains("attempt") && !text.contains("503"), "{text}");
}

/// Only what went wrong in the end stays.
#[test]
fn a_call_that_fails_for_good_is_one_error() {
    let folder = Folder::new();
    let provider = Provider::start((0..10).map(|_| refused(503, "too busy")).collect());
    let mut person = chat(&folder, &provider);
    person.types("hi\r");
    person.answered("too busy");
    person.types("/quit\r");
    let (status, screen) = person.ends();
    assert_eq!(status, 0);
    let text = screen.text();
    assert_eq!(
        (text.matches("too busy").count(), text.matches("attempt").count()),
        (1, 0),
        "{text}"
    );
}
