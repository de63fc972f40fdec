//! Chats in which the end of the conversation is changed, or goes on in a copy.

use crate::chat::{Person, chat};
use crate::chat_lines::piped;
use crate::frames::submit;
use crate::once::{Once, duologue};
use crate::process::eventually;
use crate::server::Folder;
use crate::store::{kill, stored};

#[test]
fn the_last_turn_is_dropped_visibly() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("first\r");
    person.answered("Turn 1. You said: first");
    person.types("second\r");
    person.answered("Turn 2. You said: second");
    person.types("/undo\r");
    person.sees("· the last turn was dropped: second");
    person.types("third\r");
    person.answered("You said: third\nBefore that you said: first");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn on_the_whole_screen_a_dropped_turn_is_gone() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &["--fullscreen"]));
    person.sees("/help");
    person.types("first\r");
    person.answered("Turn 1. You said: first");
    let before = person.screen().text();
    person.types("second\r");
    person.answered("Turn 2. You said: second");
    person.types("/undo\r");
    eventually("the turn is gone", || (person.screen().text() == before).then_some(()));
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn the_earlier_turns_are_summarized() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("/compact\r");
    person.sees("there is nothing that a summary could stand for");
    person.types("first\r");
    person.answered("Turn 1. You said: first");
    person.types("/compact the names\r");
    person.sees("the model is sent a summary in place of all up to turn-1");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// A chat has no question about it, and does not wait for an answer to none.
#[test]
fn a_conversation_that_is_too_long_is_summarized_also_if_that_is_to_be_asked() {
    let folder = Folder::new();
    let options = ["--compact", "ask", "--context-tokens", "150", "--compact-prompt", "Sum up."];
    let mut person = Person::start(chat(&folder, &options));
    person.sees("/help");
    person.types(&format!("first{}\r", " word".repeat(60)));
    person.answered("Turn 1. You said: first");
    person.types("second\r");
    person.sees("the model is sent a summary in place of all up to turn-1");
    person.answered("You said: second");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn the_last_prompt_is_answered_again() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("again\r");
    person.answered("Turn 1. You said: again");
    person.types("/retry\r");
    person.answered("dropped: again\n\n> again\n\nTurn 1. You said: again\n");
    person.types("/quit\r");
    let (status, screen) = person.ends();
    assert_eq!((status, screen.text().matches("You said: again").count()), (0, 2));
}

#[test]
fn the_last_prompt_is_written_again() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("hello\r");
    person.answered("Turn 1. You said: hello");
    person.types("/edit\r");
    person.sees("Enter replaces the last prompt");
    person.types(" you\r");
    person.answered("dropped: hello\n\n> hello you\n\nTurn 1. You said: hello you");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn an_edited_prompt_has_the_files_that_it_mentions() {
    let folder = Folder::new();
    for name in ["a.txt", "b.txt"] {
        std::fs::write(folder.path(name), "text").expect("a file");
    }
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("see @a.txt\r");
    person.answered("Attached: a.txt");
    person.types("/edit see @b.txt\r");
    person.answered("You said: see @b.txt");
    let shown = person.screen().text();
    let (_, after) = shown.split_once("was dropped").expect("the first answer is dropped");
    assert!(!after.contains("Attached: a.txt"), "{shown}");
    person.types("/edit\r");
    person.sees("Enter replaces the last prompt");
    person.types(" and @a.txt\r");
    person.answered("You said: see @b.txt and @a.txt");
    let shown = person.screen().text();
    let (_, after) = shown.rsplit_once("was dropped").expect("it is dropped as well");
    assert!(after.contains("Attached: b.txt"), "{shown}");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn the_conversation_goes_on_in_a_copy_and_the_first_one_stays() {
    let folder = Folder::new();
    let options = ["--store", "chat.db", "--session-id", "original"];
    let mut person = Person::start(chat(&folder, &options));
    person.sees("/help");
    person.types("shared\r");
    person.answered("Turn 1. You said: shared");
    person.types("/fork\r");
    person.sees("stays as it was\n\n> shared");
    person.types("only in the copy\r");
    person.answered("Turn 2. You said: only in the copy");
    person.types("/quit\r");
    let (status, screen) = person.ends();
    assert_eq!(status, 0);
    let (_, command) = screen.written.split_once("duologue chat ").expect("a hint");
    assert!(!command.contains("original"), "{command}");
    let mut person = Person::start(chat(&folder, &[&options[..], &["--resume"]].concat()));
    person.answered("Turn 1. You said: shared");
    assert!(!person.screen().text().contains("only in the copy"));
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// What is typed while the conversation is copied is read at once with the command.
#[test]
fn a_prompt_that_is_typed_ahead_is_asked_in_the_copy_alone() {
    let folder = Folder::new();
    let options = ["--store", "chat.db", "--session-id", "original"];
    let mut person = Person::start(chat(&folder, &options));
    person.sees("/help");
    person.types("shared\r");
    person.answered("Turn 1. You said: shared");
    person.types("/fork\ronly in the copy\r");
    person.answered("Turn 2. You said: only in the copy");
    assert!(person.screen().text().contains("stays as it was\n\n> shared"));
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
    let mut person = Person::start(chat(&folder, &[&options[..], &["--resume"]].concat()));
    person.answered("Turn 1. You said: shared");
    assert!(!person.screen().text().contains("only in the copy"));
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn a_prompt_for_a_conversation_that_does_not_begin_is_not_sent() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &["--store", "chat.db"]));
    person.sees("/help");
    person.types("first\r");
    person.answered("Turn 1. You said: first");
    person.types(&format!("/new\rstays\r{ESC}"));
    person.sees_words("this conversation goes on");
    person.types(" here\r");
    person.answered("Turn 2. You said: stays here");
    // From here on the store can be opened by nobody.
    std::fs::rename(folder.path("chat.db"), folder.path("moved.db")).expect("a file");
    std::fs::create_dir(folder.path("chat.db")).expect("a folder");
    person.types("/new\rwaits\rthere\r");
    person.sees_words("> waits there");
    person.types(" now\r");
    person.answered("Turn 3. You said: waits\nthere now");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn without_keys_the_new_prompt_stands_after_the_command() {
    let folder = Folder::new();
    let mut once = Once::start(chat(&folder, &[]));
    once.write("/undo\n/edit new\n/fork\n");
    let ended = once.finish();
    let nothing = "Error: nothing was asked yet, so there is nothing to change\n";
    assert!(ended.stdout.starts_with(&nothing.repeat(2)), "{}", ended.stdout);
    assert!(ended.stdout.contains("is not stored, so it can't be copied"), "{}", ended.stdout);
    assert_eq!(ended.status, 1, "nobody else sees that they failed");
}

#[test]
fn another_conversation_that_can_not_be_stored_does_not_end_this_one() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &["--store", "chat.db"]));
    person.sees("/help");
    person.types("first\r");
    person.answered("Turn 1. You said: first");
    // From here on the store can be opened by nobody.
    std::fs::rename(folder.path("chat.db"), folder.path("moved.db")).expect("a file");
    std::fs::create_dir(folder.path("chat.db")).expect("a folder");
    for (count, command) in (1..).zip(["/new", "/fork", "/resume first"]) {
        person.types(&format!("{command}\r"));
        eventually("the error is shown", || {
            let words = person.screen().text().split_whitespace().collect::<Vec<_>>().join(" ");
            (words.matches("it is a folder").count() == count).then_some(())
        });
    }
    person.sees_words("this conversation goes on");
    assert!(!person.screen().text().contains("another conversation begins"));
    person.types("second\r");
    person.answered("You said: second\nBefore that you said: first");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn the_title_of_a_conversation_follows_its_first_prompt() {
    let folder = Folder::new();
    let check = |lines: &str, title: &str, is_not: &str| {
        let store = ["--store", "chat.db", "--session-id", title];
        assert_eq!(piped(&folder, &store, lines).status, 0);
        let command = duologue(&folder, &["sessions", "list", "--store", "chat.db"]);
        let listed = Once::start(command).finish().stdout;
        let row = listed.lines().find(|row| row.contains(title)).unwrap_or_default();
        assert!(row.matches(title).count() == 2, "the id and the title: {listed}");
        assert!(!listed.contains(is_not), "{listed}");
    };
    check("secret-topic\n/edit another-topic\n", "another-topic", "secret-topic");
    check("dropped-topic\n/undo\nkept-topic\nmore\n", "kept-topic", "dropped-topic");
    check("first-topic\nsecond\n/edit third\n", "first-topic", "third");
}

/// Esc as a terminal sends it that reports all keys.
const ESC: &str = "\u{1b}[27u";

#[test]
fn a_second_esc_goes_back_to_an_earlier_prompt() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    for (number, prompt) in ["first", "second", "third"].into_iter().enumerate() {
        person.types(&format!("{prompt}\r"));
        person.answered(&format!("Turn {}. You said: {prompt}", number + 1));
    }
    person.types(ESC);
    person.sees("Esc again goes back to an earlier prompt");
    person.types(ESC);
    person.sees("> third\n  second\n  first");
    person.types("seco\r");
    person.sees("Enter replaces this prompt and drops all after it");
    person.types(" try\r");
    person.sees("the last 2 turns were dropped: second");
    person.answered("You said: second try\nBefore that you said: first");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// Another process holds the conversation, at the start and with /resume.
#[test]
fn a_conversation_that_is_held_goes_on_in_a_copy() {
    let folder = Folder::new();
    let options = ["--store", "chat.db", "--session-id", "s"];
    let mut holder = Person::start(chat(&folder, &options));
    holder.sees("/help");
    holder.types("first\r");
    holder.answered("Turn 1. You said: first");
    let mut person = Person::start(chat(&folder, &[&options[..], &["--resume"]].concat()));
    person.sees_words("Enter copies it and goes on in the copy · Esc leaves");
    let named = format!("process {} on", holder.process().0);
    assert_eq!(person.screen().text().matches(&named).count(), 1, "{}", person.screen().text());
    person.types("\u{1b}[27u");
    assert_eq!(person.ends().0, 75);
    let mut person = Person::start(chat(&folder, &[&options[..], &["--resume"]].concat()));
    // The key is shown once it counts.
    person.sees_words("Enter copies it and goes on in the copy");
    person.types("\r");
    person.sees_words("goes on; the conversation before stays as it was");
    person.answered("Turn 1. You said: first");
    person.types("second\r");
    person.answered("Turn 2. You said: second");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
    let mut person = Person::start(chat(&folder, &["--store", "chat.db"]));
    person.sees("/help");
    person.types("/resume first turn,\r");
    person.sees("(1 turn,");
    person.types("\r");
    person.sees_words("goes on in the copy · Esc stays here");
    person.types("other\r");
    person.answered("Turn 1. You said: other");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
    holder.types("/quit\r");
    assert_eq!(holder.ends().0, 0);
}

#[test]
fn a_title_is_shown_where_conversations_are_listed() {
    let folder = Folder::new();
    let options = ["--store", "chat.db", "--session-id", "s"];
    let ended = piped(&folder, &options, "hi\n/rename Ports of the mail server\nmore\n");
    assert!(ended.stdout.contains("called Ports of the mail server\n"), "{}", ended.stdout);
    assert!(ended.stdout.contains("Turn 2. You said: more"), "{}", ended.stdout);
    let list = duologue(&folder, &["sessions", "list", "--store", "chat.db"]).output();
    let list = String::from_utf8(list.expect("it runs").stdout).expect("text");
    assert!(list.contains("Ports of the mail server"), "{list}");
    let ended = piped(&folder, &[&options[..], &["--resume"]].concat(), "/resume ports\n");
    assert!(ended.stdout.contains("this is the conversation that goes on"), "{}", ended.stdout);
    let shown = duologue(&folder, &["sessions", "show", "s", "--store", "chat.db"]).output();
    assert!(shown.expect("it runs").status.success(), "the log is whole");
    // It stays when all turns are dropped, in this process or the next, and in a fork.
    let title = || {
        let list = duologue(&folder, &["sessions", "list", "--store", "chat.db"]).output();
        let list = String::from_utf8(list.expect("it runs").stdout).expect("text");
        list.matches("Ports of the mail server").count()
    };
    let resumed = [&options[..], &["--resume"]].concat();
    piped(&folder, &resumed, "/undo\n/undo\nother\n");
    assert_eq!(title(), 1);
    piped(&folder, &resumed, "/retry\n");
    assert_eq!(title(), 1);
    let fork = ["sessions", "fork", "s", "--as", "copy", "--store", "chat.db"];
    let forked = duologue(&folder, &fork).output().expect("it runs");
    assert!(forked.status.success(), "{forked:?}");
    assert_eq!(title(), 2);
    piped(&folder, &["--store", "chat.db", "--session-id", "copy", "--resume"], "/retry\n");
    assert_eq!(title(), 2);
}

#[test]
fn a_copy_of_a_conversation_that_is_answered_elsewhere_says_what_it_lacks() {
    let folder = Folder::new();
    let mut holder = stored(&folder, &["--echo-delay-ms", "20"]).start();
    assert_eq!(holder.turn("r1", "first"), "ok");
    holder.send(submit("r2", &"word ".repeat(10_000)));
    holder.wait_event("ChatTextPatch");
    let place = folder.name("store");
    let options = ["--store", &place, "--session-id", "s", "--resume"];
    let mut person = Person::start(chat(&folder, &options));
    person.sees_words("Enter copies it and goes on in the copy");
    person.types("\r");
    person.sees_words("turn 2 has no end yet");
    person.sees_words("goes on; the conversation before stays as it was");
    person.answered("Turn 1. You said: first");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
    kill(holder);
}
