//! Lists under the line of a chat: commands and files.

use crate::chat::{Person, chat};
use crate::once::duologue;
use crate::profiles::Scene;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY};
use serde_json::json;
use std::fs;

const DOWN: &str = "\u{1b}[B";

#[test]
fn a_slash_lists_the_commands_and_an_arrow_key_chooses() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("/");
    person.sees("/resume [WORDS]  choose a stored conversation");
    person.types("tls");
    person.sees("> /tls\n  /tools   list the tool servers");
    person.types(DOWN);
    person.sees("\n> /tools");
    person.types("\r");
    person.sees("there are no tool servers");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// What is typed is no name yet, so the Enter key takes the first one that begins so; another program's word for
/// leaving is known.
#[test]
fn enter_takes_what_the_list_begins_with() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("/too");
    person.sees("> /too\n  /tools   list the tool servers");
    person.types("\r");
    person.sees("there are no tool servers");
    person.types("/exit\r");
    assert_eq!(person.ends().0, 0);
}

/// Files at any depth are found by some characters of their path.
#[test]
fn an_at_sign_lists_files_below_the_folder() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("notes/of april")).expect("a folder");
    fs::write(folder.path("notes/of april/plans.md"), "plant trees").expect("a file");
    fs::write(folder.path("other.txt"), "nothing").expect("a file");
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("read @aplans");
    person.sees("  \"notes/of april/plans.md\"");
    person.types(DOWN);
    person.sees("> \"notes/of april/plans.md\"");
    person.types("\r");
    person.sees("> read @\"notes/of april/plans.md\"");
    person.types("\r");
    person.answered("You said: read");
    person.sees("attached: plans.md");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// As a terminal pastes a file that was dropped on it.
#[test]
fn a_pasted_path_of_an_image_is_attached() {
    let folder = Folder::new();
    let picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01";
    fs::write(folder.path("my shot.png"), picture).expect("a file");
    fs::write(folder.path("notes.txt"), "some notes").expect("a file");
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("what is");
    let paste = |text: &str| format!("\u{1b}[200~{text}\u{1b}[201~");
    person.types(&paste(&format!("'{}'", folder.path("my shot.png").display())));
    person.sees("> what is [image my shot.png]");
    person.types(&paste(&format!("file://{}", folder.path("notes.txt").display())));
    person.sees("[image my shot.png] [file notes.txt]");
    person.types("?\r");
    person.sees("attached: my shot.png");
    person.sees("attached: notes.txt");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// A session takes no other model while it answers: the choice waits, and goes with the prompts that wait after it.
#[test]
fn a_model_that_is_chosen_during_an_answer_answers_the_next_prompt() {
    let folder = Folder::new();
    let gated = vec![Step::Text("One.".to_owned()), Step::Gate, Step::Done];
    let list = vec![Step::Status(200, Vec::new(), r#"{"data":[{"id":"m9"}]}"#.to_owned())];
    let provider = Provider::start(vec![gated, list, says("Two."), says("Three.")]);
    let mut command = duologue(&folder, &["chat", "--engine", "openai", "--model", "m1"]);
    command.env("HOME", folder.path("")).env("OPENAI_API_KEY", KEY);
    command.env("OPENAI_BASE_URL", provider.base_url());
    let mut person = Person::start(command);
    person.sees("/help");
    person.types("first\r");
    provider.wait_request(1);
    person.sees("One.");
    person.types("/model m9\r");
    person.sees("m9 answers from the next prompt on");
    provider.wait_request(2);
    person.types("/compact keep the names\r");
    person.sees("the model still answers; stop it with Esc first");
    person.sees("> /compact keep the names");
    // Ctrl-U.
    person.types("\u{15}second\r");
    person.sees("waits: second");
    provider.open_gate();
    person.answered("Two.");
    person.sees("openai · m9 answers from the next prompt on");
    person.types("third\r");
    person.answered("Three.");
    let models = [1, 3, 4].map(|number| provider.wait_request(number).body["model"].clone());
    assert_eq!(models, [json!("m1"), json!("m9"), json!("m9")]);
    let shown = person.screen().text();
    assert!(!shown.contains("still being answered") && !shown.contains("lists no"), "{shown}");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn models_and_profiles_are_chosen_from_lists() {
    let list = r#"{"object":"list","data":[{"id":"tiny"},{"id":"large"}]}"#;
    let list = vec![Step::Status(200, Vec::new(), list.into())];
    let provider = Provider::start(vec![says("one"), list, says("two")]);
    let base_url = provider.base_url();
    let profile = format!("engine: openai\n    model: tiny\n    base-url: {base_url}\n");
    let scene = Scene::new(&format!("profiles:\n  small:\n    {profile}"), "");
    let words = ["chat", "--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    let mut command = scene.command(&words);
    command.env("DUOLOGUE_API_KEY", KEY);
    let mut person = Person::start(command);
    person.sees("/help");
    person.types("/profile\r");
    person.sees("Profiles: type to search, Enter chooses");
    person.types("sm\r");
    person.sees("small · openai · tiny answers from the next prompt on");
    person.types("hi\r");
    person.answered("one");
    person.types("/model\r");
    person.sees("tiny  (answers now)");
    person.types("rge\r");
    person.sees("large answers from the next prompt on");
    person.types("hi\r");
    person.answered("two");
    let models = [1, 3].map(|number| provider.wait_request(number).body["model"].clone());
    assert_eq!(models, [json!("tiny"), json!("large")]);
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn vi_keys_edit_the_line() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &["--editing", "vi"]));
    person.sees("/help");
    person.types("one two three\u{1b}[27u");
    person.sees("NORMAL");
    person.types("bbcwfour");
    person.sees("> one four three");
    person.types("\r");
    person.answered("You said: one four three");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}
