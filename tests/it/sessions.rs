//! `duologue sessions`: what is listed, shown, exported, found and deleted of a store.

use crate::frames::{errors, submit};
use crate::once::{Ended, Once, duologue, run};
use crate::server::{Folder, echo};
use crate::store::stored;
use crate::terminal::{in_session, read_until, with_terminal};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Asks one prompt of a new session.
#[track_caller]
pub(crate) fn ask(folder: &Folder, id: &str, prompt: &str) {
    let place = folder.name("store");
    let words = ["exec", "--engine", "echo", "--store", &place, "--session-id", id, prompt];
    let ended = run(folder, &words);
    assert_eq!(ended.status, 0, "{ended:?}");
}

/// `duologue sessions <words> --store …`.
#[track_caller]
pub(crate) fn sessions(folder: &Folder, words: &[&str]) -> Ended {
    let place = folder.name("store");
    run(folder, &[&["sessions"], words, &["--store", &place]].concat())
}

/// The envelope of `words` with `--output json`, and the status.
#[track_caller]
pub(crate) fn envelope(folder: &Folder, words: &[&str]) -> (Value, i32) {
    let ended = sessions(folder, &[words, &["--output", "json"]].concat());
    (serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}")), ended.status)
}

/// All bytes of the files whose names begin with `name`.
fn bytes(folder: &Folder, name: &str) -> Vec<u8> {
    let files =
        fs::read_dir(folder.path("")).expect("a folder").map(|it| it.expect("a file").path());
    let of_store =
        |path: &Path| path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(name));
    let files = files.filter(|path| path.is_file() && of_store(path));
    files.flat_map(|path| fs::read(path).expect("a file")).collect()
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn sessions_are_listed_newest_first() {
    let folder = Folder::new();
    ask(&folder, "old", "What is a lock?\nSecond line");
    ask(&folder, "new", "Why?");
    let (listed, status) = envelope(&folder, &["list"]);
    assert_eq!((status, &listed["ok"], &listed["meta"]["total"]), (0, &json!(true), &json!(2)));
    let data = listed["data"].as_array().expect("a list");
    assert_eq!((&data[0]["id"], &data[1]["id"]), (&json!("new"), &json!("old")));
    let old = &data[1];
    assert_eq!((&old["title"], &old["turns"]), (&json!("What is a lock?"), &json!(1)));
    let here = fs::canonicalize(folder.path("")).expect("a folder");
    assert_eq!(old["folder"].as_str(), here.to_str());
    assert!(old["bytes"].as_u64() > Some(100), "{old}");
    assert!(old["lastActivity"].as_str().is_some_and(|it| it.ends_with('Z')), "{old}");
    let table = sessions(&folder, &["list"]);
    let lines: Vec<_> = table.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{table:?}");
    assert!(lines[0].starts_with("ID ") && lines[1].starts_with("new "), "{table:?}");
    assert!(lines[2].contains("What is a lock?"), "{table:?}");
    // The variable names the store as well.
    let mut command = duologue(&folder, &["sessions", "list"]);
    command.env("DUOLOGUE_STORE", folder.name("store"));
    assert_eq!(Once::start(command).finish().stdout, table.stdout);
}

/// The clock was an hour ahead while what is in the store was written.
#[test]
fn a_clock_that_is_put_back_changes_no_order() {
    let folder = Folder::new();
    let place = folder.name("store");
    let store = || Connection::open(folder.path("store")).expect("a store");
    let put_back = || store().execute("UPDATE sessions SET updated_ms = updated_ms + 3600000", []);
    let check = |last: &str, prompt: &str| {
        let rows = envelope(&folder, &["list"]).0;
        assert_eq!(rows["data"][0]["id"], last);
        let words = ["exec", "--engine", "echo", "more", "--store", &place, "--continue"];
        let ended = run(&folder, &words);
        assert!(ended.status == 0 && ended.stdout.contains(prompt), "{ended:?}");
    };
    ask(&folder, "first", "apples");
    put_back().expect("it is changed");
    ask(&folder, "second", "pears");
    check("second", "pears");
    put_back().expect("it is changed");
    let words = ["exec", "--engine", "echo", "plums", "--store", &place];
    let ended = run(&folder, &[&words[..], &["--session-id", "first", "--resume"]].concat());
    assert_eq!(ended.status, 0, "{ended:?}");
    check("first", "plums");
}

/// The clock was days ahead once; now it is right.
#[test]
fn the_last_activity_is_right_again_after_a_clock_that_was_far_ahead() {
    let folder = Folder::new();
    ask(&folder, "s", "apples");
    let store = || Connection::open(folder.path("store")).expect("a store");
    let updated_ms = || {
        let sql = "SELECT updated_ms FROM sessions";
        store().query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a row")
    };
    let right = updated_ms();
    for (days, is_kept) in [(2, false), (1, true)] {
        // A little less than whole days.
        let ahead = days * 86_400_000 - 3_600_000;
        let sql = "UPDATE sessions SET updated_ms = updated_ms + ?";
        assert_eq!(store().execute(sql, [ahead]).expect("a row"), 1);
        assert_eq!(sessions(&folder, &["rename", "s", "Fruit"]).status, 0);
        assert!(updated_ms() >= right + ahead, "a title is no activity");
        let place = folder.name("store");
        let words = ["exec", "--engine", "echo", "more", "--store", &place, "--session", "s"];
        assert_eq!(run(&folder, &words).status, 0);
        assert_eq!(updated_ms() >= right + ahead, is_kept, "{days} days");
    }
}

/// A title is not a use of the session.
#[test]
fn a_session_that_is_renamed_is_not_the_one_that_was_used_last() {
    let folder = Folder::new();
    let place = folder.name("store");
    ask(&folder, "old", "apples");
    ask(&folder, "new", "pears");
    let at_ms = |id: &str, at_ms: i64| {
        let store = Connection::open(folder.path("store")).expect("a store");
        let sql = "UPDATE sessions SET updated_ms = ?2 WHERE id = ?1";
        assert_eq!(store.execute(sql, (id, at_ms)).expect("a row"), 1);
    };
    at_ms("old", 1_700_000_000_999);
    assert_eq!(sessions(&folder, &["rename", "old", "Fruit"]).status, 0);
    let (listed, _) = envelope(&folder, &["list"]);
    assert_eq!(
        (&listed["data"][0]["id"], &listed["data"][1]["id"]),
        (&json!("new"), &json!("old"))
    );
    assert_eq!(listed["data"][1]["title"], "Fruit");
    // The second in which it was.
    assert_eq!(listed["data"][1]["lastActivity"], "2023-11-14T22:13:20Z");
    let ended =
        run(&folder, &["exec", "--engine", "echo", "more", "--store", &place, "--continue"]);
    assert!(ended.stdout.contains("pears"), "{ended:?}");
    // It is used again.
    let words = ["exec", "--engine", "echo", "plums", "--store", &place, "--session", "old"];
    assert_eq!(run(&folder, &words).status, 0);
    assert_eq!(envelope(&folder, &["list"]).0["data"][0]["id"], "old");
}

#[test]
fn turns_and_timeline_in_two_files_are_one_session() {
    let folder = Folder::new();
    let (turns, timeline) = (folder.name("turns"), folder.name("timeline"));
    let places = ["--turns-db", &turns, "--timeline-db", &timeline];
    let asked = [&["exec", "--engine", "echo", "--session-id", "s", "hello"], &places[..]].concat();
    assert_eq!(run(&folder, &asked).status, 0);
    let listed = run(&folder, &[&["sessions", "list"], &places[..]].concat());
    assert_eq!(listed.stdout.lines().count(), 2, "{listed:?}");
    let shown = run(&folder, &[&["sessions", "show", "s"], &places[..]].concat());
    assert!(shown.stdout.starts_with("user: hello\n"), "{shown:?}");
    for place in [["--turns-db", &turns], ["--timeline-db", &timeline]] {
        let shown = run(&folder, &[&["sessions", "show", "s"], &place[..]].concat());
        assert!(shown.stdout.starts_with("user: hello\n"), "{shown:?}");
    }
    let gone = run(&folder, &[&["sessions", "delete", "s"], &places[..]].concat());
    assert_eq!(gone.status, 0, "{gone:?}");
    assert!(!has(&bytes(&folder, "t"), "hello"));
}

#[test]
fn without_a_store_or_a_session_there_is_a_clear_error() {
    let folder = Folder::new();
    for (words, status) in [
        (&["list"][..], 0),
        (&["show", "s"], 1),
        (&["export", "s"], 1),
        (&["search", "a"], 0),
        (&["delete", "s"], 1),
    ] {
        // The default store is not made yet.
        let words_of_default = [&["sessions"], words].concat();
        let ended = run(&folder, &words_of_default);
        assert_eq!((ended.status, &*ended.stdout), (status, ""), "{words:?}: {ended:?}");
        let is_missing = ended.stderr.contains("s is not in the store");
        assert_eq!(is_missing, status == 1, "{words:?}: {ended:?}");
        assert!(!folder.path("data").exists(), "{words:?}");
        let mut command = duologue(&folder, &words_of_default);
        command.env_remove("HOME").env_remove("XDG_DATA_HOME");
        let ended = Once::start(command).finish();
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(ended.stderr.contains("no store is named"), "{ended:?}");
        // A file that is not there is not made.
        let ended = sessions(&folder, words);
        assert!(matches!(ended.status, 1 | 2) && ended.stderr.contains("store"), "{ended:?}");
        assert!(!folder.path("store").exists(), "{words:?}");
    }
    ask(&folder, "s", "hello");
    for action in ["show", "export", "delete"] {
        let ended = sessions(&folder, &[action, "other"]);
        assert_eq!((ended.status, ended.stdout.as_str()), (1, ""), "{ended:?}");
        assert!(ended.stderr.contains("other is not in the store"), "{ended:?}");
    }
    let (shown, status) = envelope(&folder, &["show", "other"]);
    assert_eq!((status, &shown["error"]["code"]), (1, &json!("session_not_found")));
    fs::write(folder.path("text"), "no database, but long enough to be read as one".repeat(99))
        .expect("a file");
    let wrong = run(&folder, &["sessions", "list", "--store", &folder.name("text")]);
    assert_eq!(wrong.status, 2, "{wrong:?}");
}

#[test]
fn a_conversation_is_shown_as_people_see_it() {
    let folder = Folder::new();
    let script =
        r#"{"text":"Let me look.","tools":[{"name":"no_tool","arguments":{"city":"Berlin"}}]}"#;
    fs::write(folder.path("answer.jsonl"), script.to_owned() + "\n").expect("a file");
    let place = folder.name("store");
    let words = ["exec", "--engine", "echo", "--store", &place, "--session-id", "s"];
    let script = folder.name("answer.jsonl");
    let ended = run(&folder, &[&words[..], &["--echo-script", &script, "Time?"]].concat());
    // No tool has this name.
    assert_eq!(ended.status, 1, "{ended:?}");
    let shown = sessions(&folder, &["show", "s"]);
    assert_eq!(shown.status, 0, "{shown:?}");
    assert!(
        shown.stdout.starts_with("user: Time?\n\nassistant: Let me look.\n    no_tool("),
        "{shown:?}"
    );
    assert!(shown.stdout.contains("    no_tool failed: "), "{shown:?}");
    let (entities, _) = envelope(&folder, &["show", "s"]);
    let kinds = entities["data"].as_array().expect("a list").iter();
    let kinds: Vec<_> = kinds.map(|it| it["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds[..4], ["ChatMessage", "ChatMessage", "ChatToolCall", "ChatToolResult"]);
}

#[test]
fn control_characters_are_escaped_on_a_terminal() {
    let folder = Folder::new();
    ask(&folder, "s", "red \u{1b}[31m text");
    let place = folder.name("store");
    let program = env!("CARGO_BIN_EXE_duologue");
    for words in [
        &["show", "s"][..],
        &["list"],
        &["search", "red"],
        &["export", "s", "--format", "markdown"],
    ] {
        let words = [&[program, "sessions"], words, &["--store", &place]].concat();
        let (status, seen) =
            with_terminal(120, &mut in_session(&folder, &words), |shown| read_until(shown, "text"));
        assert!(!seen.contains('\u{1b}') && seen.contains("\\x1b[31m"), "{words:?}: {seen:?}");
        assert_eq!(status, Some(0), "{words:?}");
    }
    let exported = sessions(&folder, &["export", "s", "--format", "markdown"]);
    assert!(exported.stdout.contains('\u{1b}'), "a file has the text as it is");
}

#[test]
fn the_beginning_of_an_id_names_a_session_if_no_other_begins_so() {
    let folder = Folder::new();
    for (id, prompt) in [("ab", "one"), ("abc", "two"), ("abd", "three"), ("session-7f", "four")] {
        ask(&folder, id, prompt);
    }
    for (typed, said) in
        [("ab", "user: one"), ("abc", "user: two"), ("session-", "user: four"), ("7", "user: four")]
    {
        let shown = sessions(&folder, &["show", typed]);
        assert!(shown.status == 0 && shown.stdout.starts_with(said), "{typed}: {shown:?}");
    }
    let exported = sessions(&folder, &["export", "7f", "--format", "markdown"]);
    assert!(exported.stdout.starts_with("# Conversation session-7f\n"), "{exported:?}");
    let forked = sessions(&folder, &["fork", "7", "--as", "copy"]);
    assert_eq!(forked.status, 0, "{forked:?}");
    for words in [&["show", "a"][..], &["export", "a"], &["fork", "a", "--as", "no"]] {
        let ended = sessions(&folder, words);
        assert_eq!((ended.status, ended.stdout.as_str()), (1, ""), "{ended:?}");
        let shown = ["3 sessions", "ab", "abc", "abd"].map(|it| ended.stderr.contains(it));
        assert_eq!(shown, [true; 4], "{ended:?}");
    }
    let (several, _) = envelope(&folder, &["show", "a"]);
    assert_eq!(several["error"]["code"], "ambiguous_session");
    // What is deleted twice deletes no other session.
    let deleted = sessions(&folder, &["delete", "7"]);
    assert_eq!((deleted.status, deleted.stdout.as_str()), (1, ""), "{deleted:?}");
    assert!(deleted.stderr.contains("session-7f begins so"), "{deleted:?}");
    assert_eq!(sessions(&folder, &["show", "session-7f"]).status, 0);
}

#[test]
fn the_beginning_of_an_id_resumes_a_session_if_no_other_begins_so() {
    let folder = Folder::new();
    for (id, prompt) in [("ab", "one"), ("abc", "two"), ("abd", "three"), ("session-7f", "four")] {
        ask(&folder, id, prompt);
    }
    let place = folder.name("store");
    let resume = |command: &str, id: &str| {
        let words = [
            command,
            "next",
            "--engine",
            "echo",
            "--store",
            &place,
            "--resume",
            "--session-id",
            id,
        ];
        run(&folder, &words)
    };
    let whole = resume("exec", "ab");
    assert_eq!((whole.status, whole.stderr.as_str()), (0, ""), "{whole:?}");
    for command in ["exec", "chat"] {
        let begun = resume(command, "7");
        assert_eq!(begun.status, 0, "{begun:?}");
        assert!(begun.stderr.contains("session-7f"), "{begun:?}");
    }
    let shown = sessions(&folder, &["show", "session-7f"]).stdout;
    assert_eq!(shown.matches("user: next").count(), 2, "{shown}");
    let several = resume("exec", "a");
    assert_eq!((several.status, several.stdout.as_str()), (2, ""), "{several:?}");
    let named = ["3 sessions", "abc", "abd"].map(|it| several.stderr.contains(it));
    assert_eq!(named, [true; 3], "{several:?}");
    assert!(resume("exec", "x").stderr.contains("nothing to resume"));
    // A program whose session was deleted goes on with no other one.
    let refused = run(&folder, &["rpc", "--store", &place, "--resume", "--session-id", "7"]);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stdout.contains("nothing to resume"), "{refused:?}");
    let deleted = sessions(&folder, &["delete", "a"]);
    let named = ["3 sessions begin so", "abc", "abd"].map(|it| deleted.stderr.contains(it));
    assert_eq!((deleted.status, named), (1, [true; 3]), "{deleted:?}");
}

/// The title of a session is a name for it where no id begins so, and so is the beginning of a title.
#[test]
fn a_title_names_a_session_if_no_other_has_it() {
    let folder = Folder::new();
    for (id, prompt) in [
        ("a1", "List ports"),
        ("a2", "List ports again"),
        ("a3", "a1 or not?"),
        ("a4", "Two"),
        ("a5", "Two"),
    ] {
        ask(&folder, id, prompt);
    }
    for (typed, said) in [
        ("List ports", "List ports"),
        ("List ports a", "List ports again"),
        ("a1 or", "a1 or not?"),
        ("a1", "List ports"),
    ] {
        let shown = sessions(&folder, &["show", typed]);
        let said = format!("user: {said}\n");
        assert!(shown.status == 0 && shown.stdout.starts_with(&said), "{typed}: {shown:?}");
    }
    let exported = sessions(&folder, &["export", "List ports again", "--format", "markdown"]);
    assert!(exported.stdout.starts_with("# Conversation a2\n"), "{exported:?}");
    for typed in ["Two", "List"] {
        let several = sessions(&folder, &["show", typed]);
        assert!(several.status == 1 && several.stderr.contains("2 sessions have"), "{several:?}");
    }
    let place = folder.name("store");
    let resume = |option: &[&str]| {
        let words = ["exec", "next", "--engine", "echo", "--store", &place];
        run(&folder, &[&words, option].concat())
    };
    let resumed = resume(&["--resume", "--session-id", "List ports a"]);
    assert!(resumed.status == 0 && resumed.stderr.contains("goes on: a2"), "{resumed:?}");
    assert!(resumed.stdout.contains("Turn 2."), "{resumed:?}");
    // Here a name is an id, the whole id.
    let begun = resume(&["--session", "List ports"]);
    assert!(begun.status == 0 && begun.stdout.starts_with("Turn 1."), "{begun:?}");
    // What is deleted is named by its id.
    let deleted = sessions(&folder, &["delete", "List ports again"]);
    assert!(deleted.status == 1 && deleted.stderr.contains("a2"), "{deleted:?}");
}

/// A title that was typed as a whole is meant, whatever ids begin so.
#[test]
fn a_whole_title_goes_before_the_beginning_of_an_id() {
    let folder = Folder::new();
    ask(&folder, "planning", "apples");
    ask(&folder, "zz", "pears");
    assert_eq!(sessions(&folder, &["rename", "zz", "plan"]).status, 0);
    let shown = sessions(&folder, &["show", "plan"]);
    assert!(shown.stdout.starts_with("user: pears\n"), "{shown:?}");
    let shown = sessions(&folder, &["show", "plann"]);
    assert!(shown.stdout.starts_with("user: apples\n"), "{shown:?}");
    let place = folder.name("store");
    let words = ["exec", "next", "--engine", "echo", "--store", &place];
    let resumed = run(&folder, &[&words[..], &["--resume", "--session-id", "plan"]].concat());
    assert!(resumed.status == 0 && resumed.stdout.contains("pears"), "{resumed:?}");
    assert_eq!(sessions(&folder, &["rename", "plan", "other"]).status, 0);
    let (listed, _) = envelope(&folder, &["list"]);
    let title = |at: usize| (&listed["data"][at]["id"], &listed["data"][at]["title"]);
    assert_eq!(title(0), (&json!("zz"), &json!("other")));
    assert_eq!(title(1), (&json!("planning"), &json!("apples")));
    // Of a long title only its beginning is kept.
    let long = "a title that is long ".repeat(9);
    assert_eq!(sessions(&folder, &["rename", "zz", &long]).status, 0);
    let shown = sessions(&folder, &["show", &long]);
    assert!(shown.status == 0 && shown.stdout.starts_with("user: pears\n"), "{shown:?}");
}

#[test]
fn a_run_that_was_cut_off_is_shown_as_stopped_and_stays_as_it_is() {
    let folder = Folder::new();
    let mut server = stored(&folder, &["--echo-delay-ms", "20"]).start();
    server.send(crate::frames::submit("r1", &"one two three ".repeat(2000)));
    server.wait_event("ChatTextPatch");
    // Also while its process lives.
    let live = sessions(&folder, &["export", "s"]);
    assert_eq!(live.status, 0, "{live:?}");
    crate::store::kill(server);
    let before = fs::read(folder.path("store")).expect("a file");
    let lines = sessions(&folder, &["export", "s"]);
    fs::write(folder.path("lines"), &lines.stdout).expect("a file");
    let checked = run(&folder, &["check", "lines"]);
    assert_eq!(checked.status, 0, "{checked:?}");
    let shown = sessions(&folder, &["show", "s"]);
    assert!(shown.stdout.contains("[stopped"), "{shown:?}");
    // How long it took is not known.
    let markdown = sessions(&folder, &["export", "s", "--format", "markdown"]).stdout;
    assert!(!markdown.contains("0 ms"), "{markdown}");
    assert_eq!(fs::read(folder.path("store")).expect("a file"), before, "reading writes nothing");
}

#[test]
fn words_are_found_in_all_conversations() {
    let folder = Folder::new();
    ask(&folder, "a", "the connection was refused");
    ask(&folder, "b", "nothing here");
    let (found, status) = envelope(&folder, &["search", "REFUSED", "connection"]);
    assert_eq!(status, 0);
    let data = found["data"].as_array().expect("a list");
    // The engine repeats the prompt.
    assert_eq!(data.len(), 2, "{data:?}");
    assert_eq!((&data[0]["sessionId"], &data[0]["turn"]), (&json!("a"), &json!(1)));
    assert_eq!((&data[0]["by"], &data[1]["by"]), (&json!("user"), &json!("assistant")));
    assert!(data[0]["snippet"].as_str().is_some_and(|it| it.contains("refused")), "{data:?}");
    let text = sessions(&folder, &["search", "refused"]);
    assert!(text.stdout.starts_with("a  turn 1  user: the connection"), "{text:?}");
    let none = sessions(&folder, &["search", "\"*(", "zebra"]);
    assert_eq!((none.status, none.stdout.as_str()), (0, ""), "{none:?}");
}

/// Prompts with a word, and the words that find it.
pub(crate) const WRITTEN: [(&str, &[&str]); 6] = [
    ("Die Größe im Café", &["größe", "GROSSE", "cafe\u{301}", "CAFE"]),
    ("我们去东京塔看看", &["东京", "塔", "京塔"]),
    ("サーバーに接続できません", &["接続", "ｻｰﾊﾞｰ", "できません"]),
    ("서울에서 만나요", &["서울", "만나요"]),
    ("Donau\u{ad}dampf\u{200b}schiff", &["donaudampfschiff", "DONAU\u{ad}DAMPFSCHIFF"]),
    ("ΣΊΣΥΦΟΣ и Ёлка", &["σισυφος", "елка"]),
];

/// Words in JSON are found by what they are without its escapes.
#[test]
fn words_in_arguments_and_results_are_found() {
    let folder = Folder::new();
    let arguments = json!({ "path": "first\nzebra", "caf\u{e9}": ["tab\there"] });
    let call = json!({ "tools": [{ "name": "look", "arguments": arguments }] });
    let answer = json!({ "text": "Done." });
    fs::write(folder.path("script"), format!("{call}\n{answer}\n")).expect("a file");
    let script = folder.name("script");
    let mut server = stored(&folder, &["--echo-script", &script]).start();
    server.send(r#"{"requestId":"d","declareTools":{"tools":[{"name":"look"}]}}"#);
    assert_eq!(server.wait_done("d"), "ok");
    server.send(submit("r", "go"));
    let asked = server.wait_event("FrontendToolCallRequested");
    let found = json!({ "lines": "x\u{e9}\nokapi\t1" });
    let answer = json!({ "toolCallId": asked.payload("toolCallId"), "result": found });
    server.send(json!({ "requestId": "t", "toolResult": answer }).to_string());
    assert_eq!(server.wait_done("r"), "ok");
    server.finish();
    for word in ["zebra", "cafe", "here", "okapi"] {
        let (found, status) = envelope(&folder, &["search", word]);
        assert_eq!((status, &found["meta"]["total"]), (0, &json!(1)), "{word}: {found}");
        let snippet = found["data"][0]["snippet"].as_str().expect("a text");
        assert!(!snippet.contains('\\'), "{snippet}");
    }
}

#[test]
fn a_word_is_found_however_it_is_written() {
    let folder = Folder::new();
    for (number, (prompt, _)) in WRITTEN.iter().enumerate() {
        ask(&folder, &format!("s{number}"), prompt);
    }
    for (number, (_, words)) in WRITTEN.iter().enumerate() {
        for word in *words {
            let (found, status) = envelope(&folder, &["search", word]);
            let ids: Vec<_> = found["data"].as_array().expect("a list").iter().collect();
            assert_eq!((status, ids.len()), (0, 2), "{word}: {found}");
            assert!(
                ids.iter().all(|it| it["sessionId"] == format!("s{number}")),
                "{word}: {found}"
            );
        }
    }
    for word in ["東塔", "京东", "接ません", "донау"] {
        assert_eq!(envelope(&folder, &["search", word]).0["data"], json!([]), "{word}");
    }
}

#[test]
fn nothing_of_a_deleted_session_is_left_in_the_files() {
    let folder = Folder::new();
    let marker = "xyzzy-marker-42";
    for number in 0..40 {
        ask(&folder, &format!("kept-{number}"), "something else that is kept");
    }
    ask(&folder, "secret", &format!("{marker} {}", format!("{marker} filler ").repeat(400)));
    ask(&folder, "another", "kept as well");
    assert!(has(&bytes(&folder, "store"), marker));
    let deleted = sessions(&folder, &["delete", "secret", "missing"]);
    assert_eq!((deleted.status, deleted.stdout.as_str()), (1, "deleted secret\n"), "{deleted:?}");
    assert!(deleted.stderr.contains("missing is not in the store"), "{deleted:?}");
    let left = bytes(&folder, "store");
    assert!(!has(&left, marker) && !has(&left, "secret"));
    let (listed, _) = envelope(&folder, &["list"]);
    assert_eq!(listed["meta"]["total"], 41);
    assert!(sessions(&folder, &["show", "another"]).stdout.contains("kept as well"));
}

/// Another process has the store open, and goes on in the smaller file.
#[test]
fn a_file_gets_smaller_where_much_of_it_was_deleted() {
    const MIB: u64 = 1024 * 1024;
    let folder = Folder::new();
    let place = folder.name("store");
    fs::write(folder.path("notes.txt"), "three MiB".repeat(350_000)).expect("a file");
    let words = ["exec", "--engine", "echo", "--store", &place, "--session-id", "large", "look"];
    let ended = run(&folder, &[&words[..], &["--attach", "notes.txt"]].concat());
    assert_eq!(ended.status, 0, "{ended:?}");
    let mut holder = stored(&folder, &[]).start();
    assert_eq!(holder.turn("r1", "one"), "ok");
    ask(&folder, "other", "apples");
    let bytes = || fs::metadata(folder.path("store")).expect("a store").len();
    assert!(bytes() > 3 * MIB, "{}", bytes());
    let deleted = sessions(&folder, &["delete", "large"]);
    assert_eq!((deleted.status, deleted.stderr.as_str()), (0, ""), "{deleted:?}");
    assert!(bytes() < MIB, "{}", bytes());
    assert_eq!(holder.turn("r2", "two"), "ok");
    assert_eq!(errors(&holder.finish().frames, ""), [""; 0]);
    let shown = sessions(&folder, &["show", "s"]).stdout;
    assert!(shown.contains("user: one") && shown.contains("user: two"), "{shown}");
    assert!(sessions(&folder, &["show", "other"]).stdout.contains("user: apples"));
    let store = Connection::open(folder.path("store")).expect("a store");
    let check =
        |pragma: &str| store.pragma_query_value(None, pragma, |row| row.get::<_, String>(0));
    assert_eq!(check("integrity_check").expect("an answer"), "ok");
    let checked = run(&folder, &["doctor", "--engine", "echo", "--store", &place]);
    assert!(checked.stdout.contains("all that is stored is whole"), "{checked:?}");
}

#[test]
fn a_session_that_a_process_holds_is_not_deleted() {
    let folder = Folder::new();
    let mut holder = stored(&folder, &[]).start();
    assert_eq!(holder.turn("r1", "one"), "ok");
    let refused = sessions(&folder, &["delete", "s"]);
    assert_eq!((refused.status, refused.stdout.as_str()), (1, ""), "{refused:?}");
    let crate::process::Process(id) = holder.process();
    assert!(refused.stderr.contains(&format!("process {id} on ")), "{refused:?}");
    assert_eq!(holder.turn("r2", "two"), "ok");
    // A session that is free is deleted while the store is in use.
    let place = folder.name("store");
    let mut other = echo(&["--store", &place, "--session-id", "t"]).start();
    assert_eq!(other.turn("r1", "plugh-marker"), "ok");
    other.finish();
    let (deleted, status) = envelope(&folder, &["delete", "t"]);
    assert_eq!((status, &deleted["data"]), (0, &json!(["t"])), "{deleted}");
    assert!(!has(&bytes(&folder, "store"), "plugh-marker"));
    holder.finish();
    assert_eq!(sessions(&folder, &["delete", "s"]).status, 0);
}

#[test]
fn sessions_that_nobody_has_used_for_a_time_are_deleted_together() {
    let folder = Folder::new();
    for id in ["old", "held", "new"] {
        ask(&folder, id, &format!("{id}-marker"));
    }
    let place = folder.name("store");
    let holder = echo(&["--store", &place, "--resume", "--session-id", "held"]).start();
    let database = Connection::open(folder.path("store")).expect("a store");
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    let age = "UPDATE sessions SET updated_ms = updated_ms - ? WHERE id != 'new'";
    database.execute(age, [100 * DAY_MS]).expect("a change");
    drop(database);
    let delete = |more: &[&str]| envelope(&folder, &[&["delete"], more].concat());
    assert_eq!(delete(&["--older-than", "101d"]).0["data"], json!([]));
    assert_eq!(delete(&["--older-than", "99d", "--dry-run"]).0["data"], json!(["old"]));
    // What a process has open is used, however long ago something was said in it.
    let (deleted, status) = delete(&["--older-than", "99d"]);
    assert_eq!((status, &deleted["data"]), (0, &json!(["old"])), "{deleted}");
    assert!(!has(&bytes(&folder, "store"), "old-marker"));
    holder.finish();
    let deleted = sessions(&folder, &["delete", "--older-than", "3mo"]);
    assert_eq!((deleted.status, deleted.stdout.as_str()), (0, "deleted held\n"), "{deleted:?}");
    assert_eq!(sessions(&folder, &["show", "new"]).status, 0);
    for wrong in ["90", "-1d", "0d", "soon", "", "6m", "30s", "1h 5m"] {
        let age = format!("--older-than={wrong}");
        let refused = sessions(&folder, &["delete", &age]);
        assert!(refused.status == 2 && refused.stderr.contains("90d"), "{wrong}: {refused:?}");
    }
    let dry = sessions(&folder, &["delete", "new", "--dry-run"]);
    assert_eq!((dry.status, dry.stdout.as_str()), (0, "would delete new\n"), "{dry:?}");
    assert_eq!(sessions(&folder, &["show", "new"]).status, 0);
    for words in [&["delete"][..], &["delete", "--dry-run"], &["delete", "new", "--older-than=1d"]]
    {
        assert_eq!(sessions(&folder, words).status, 2, "{words:?}");
    }
}
