//! Chats at a terminal: the real binary, with a person who types and reads. The terminal is a pair of
//! pseudo-terminals, and what was written to it is read as a terminal would read it.

use crate::mcp_servers::{assert_gone, config, mark};
use crate::once::duologue;
use crate::process::{Process, default_signals, eventually};
use crate::server::{Folder, report};
use crate::terminal::terminal;
use crate::vt::Vt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use serde_json::json;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

const COLUMNS: u16 = 76;
const ROWS: u16 = 20;

/// Looks in a row at which a terminal must take nothing to count as full.
const FULL_LOOKS: u32 = 100;

/// The end of a query for the place of the cursor and the size of the terminal, and a reply.
const QUERY: &str = "\u{1b}[9999;9999H\u{1b}[6n";
pub(crate) const REPLY: &str = "\u{1b}[5;3R\u{1b}[20;76R";

/// A chat, the person's side.
pub(crate) struct Person {
    child: Child,
    keys: File,
    /// Held open, so that its modes can be looked at when the chat has ended.
    line: OwnedFd,
    written: Arc<Mutex<Vec<u8>>>,
    reading: Option<JoinHandle<()>>,
    modes_before: String,
}

impl Person {
    pub(crate) fn start(command: Command) -> Self {
        Self::sized(command, COLUMNS, ROWS)
    }

    pub(crate) fn sized(command: Command, columns: u16, rows: u16) -> Self {
        Self::at_terminal(command, columns, rows, true)
    }

    /// A chat whose terminal nobody reads, as behind a connection that hangs.
    pub(crate) fn unread(command: Command) -> Self {
        Self::at_terminal(command, COLUMNS, ROWS, false)
    }

    fn at_terminal(mut command: Command, columns: u16, rows: u16, is_read: bool) -> Self {
        let (keys, line) = terminal();
        resize(&keys, columns, rows);
        let modes_before = modes(&line);
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm-256color");
        }
        let copy = || line.try_clone().expect("a terminal");
        command.stdin(copy()).stdout(copy()).stderr(copy());
        default_signals();
        let child = command.spawn().expect("the binary starts");
        drop(command);
        let written = Arc::new(Mutex::new(Vec::new()));
        let mut person = Self { child, keys, line, written, reading: None, modes_before };
        if is_read {
            person.reads();
        }
        person
    }

    /// From here on the terminal is read.
    pub(crate) fn reads(&mut self) {
        let mut shown = self.keys.try_clone().expect("a terminal");
        let to = Arc::clone(&self.written);
        self.reading = Some(thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(bytes @ 1..) = shown.read(&mut piece) {
                to.lock().expect("no panic").extend_from_slice(&piece[..bytes]);
            }
        }));
    }

    /// Reads as a terminal that replies to queries, until so many bytes were written; returns how many replies it gave.
    pub(crate) fn replies(&mut self, bytes_min: usize) -> usize {
        let (mut piece, mut replies) = ([0; 4096], 0);
        while self.bytes().len() < bytes_min {
            let bytes = self.keys.read(&mut piece).expect("a terminal");
            self.written.lock().expect("no panic").extend_from_slice(&piece[..bytes]);
            while replies < self.queries() {
                self.types(REPLY);
                replies += 1;
            }
        }
        replies
    }

    /// How many queries there were for the cursor and the size.
    pub(crate) fn queries(&self) -> usize {
        self.bytes().matches(QUERY).count()
    }

    /// Gives the window another size.
    pub(crate) fn resizes(&self, columns: u16, rows: u16) {
        resize(&self.keys, columns, rows);
        self.process().send(Signal::WINCH);
    }

    /// Waits until a terminal that nobody reads takes nothing more.
    #[track_caller]
    pub(crate) fn fills_terminal(&self) {
        let mut looks = 0;
        eventually("the terminal takes nothing more", || {
            let mut files = [PollFd::new(&self.line, PollFlags::OUT)];
            let ready = poll(&mut files, Some(&Timespec::default())).expect("a terminal");
            looks = if ready == 0 { looks + 1 } else { 0 };
            (looks == FULL_LOOKS).then_some(())
        });
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("a terminal");
    }

    /// Types the key so many times, each once the one before is shown, unless the chat has ended: keys that come
    /// together have one picture.
    #[track_caller]
    pub(crate) fn types_one_by_one(&mut self, key: char, count: usize) {
        for number in 1..=count {
            self.types(&key.to_string());
            let has_ended = eventually("the key is shown, or the chat has ended", || {
                let has_ended = self.child.try_wait().expect("our own child").is_some();
                let shown = self.screen().text().matches(key).count();
                (has_ended || shown >= number).then_some(has_ended)
            });
            if has_ended {
                return;
            }
        }
    }

    /// What was written so far; the last sequence may be cut.
    pub(crate) fn bytes(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().expect("no panic")).into_owned()
    }

    pub(crate) fn screen(&self) -> Vt {
        self.screen_of(COLUMNS, ROWS)
    }

    /// What a terminal of this size shows by now.
    pub(crate) fn screen_of(&self, columns: u16, rows: u16) -> Vt {
        let bytes = self.bytes();
        Vt::showing(without_cut_sequence(&bytes), columns.into(), rows.into())
    }

    /// Waits until the terminal shows `text`.
    #[track_caller]
    pub(crate) fn sees(&self, text: &str) {
        eventually(&format!("{text:?} is shown"), || {
            self.screen().text().contains(text).then_some(())
        });
    }

    /// The same, whatever lines the text is wrapped into.
    #[track_caller]
    pub(crate) fn sees_words(&self, text: &str) {
        eventually(&format!("{text:?} is shown"), || {
            let shown = self.screen().text();
            let words: Vec<_> = shown.split_whitespace().collect();
            words.join(" ").contains(text).then_some(())
        });
    }

    /// The same, and that the model has nothing more to say.
    #[track_caller]
    pub(crate) fn answered(&self, text: &str) {
        eventually(&format!("{text:?} is the end of an answer"), || {
            let shown = self.screen().text();
            (shown.contains(text) && !shown.contains("Esc stops")).then_some(())
        });
    }

    /// Waits for this question of a single run, and until an answer to it is read: what was typed before is
    /// dropped.
    #[track_caller]
    pub(crate) fn is_asked(&self, question: &str) {
        self.sees(&format!("{question}\nrun it?"));
    }

    pub(crate) fn process(&self) -> Process {
        Process(self.child.id())
    }

    /// Waits for the end; gives the status as a shell has it, and what the terminal shows. It must be as
    /// it was before.
    #[track_caller]
    pub(crate) fn ends(mut self) -> (i32, Vt) {
        let status = self.child.wait().expect("our own child");
        let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        assert_eq!(modes(&self.line), self.modes_before, "the modes of the terminal");
        let screen = self.screen_at_the_end();
        assert_eq!(screen.modes, [""; 0], "modes that are still on");
        assert_eq!(screen.keyboard, 0);
        (status, screen)
    }

    /// Waits for the end of a chat whose terminal nobody reads; gives the status as a shell has it.
    #[track_caller]
    pub(crate) fn ends_unread(mut self) -> i32 {
        let status =
            eventually("the chat has ended", || self.child.try_wait().expect("our own child"));
        assert_eq!(modes(&self.line), self.modes_before, "the modes of the terminal");
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }

    fn screen_at_the_end(&mut self) -> Vt {
        // Once nobody can write any more, the reader has everything.
        let nobody = File::open("/dev/null").expect("a file");
        drop(std::mem::replace(&mut self.line, nobody.into()));
        self.reading.take().expect("it reads").join().expect("no panic");
        Vt::showing(&self.bytes(), COLUMNS.into(), ROWS.into())
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        if thread::panicking() {
            report(&format!("the terminal shows:\n{}\n", self.screen().text()));
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// `written` without an escape sequence at its end of which only the beginning was read.
fn without_cut_sequence(written: &str) -> &str {
    let Some(start) = written.rfind('\u{1b}') else { return written };
    let sequence = &written[start + 1..];
    let is_whole = match sequence.as_bytes().first() {
        None => false,
        Some(b'[') => sequence[1..].contains(|char: char| char.is_ascii_alphabetic()),
        Some(b']') => sequence.contains('\u{7}'),
        Some(_) => true,
    };
    if is_whole { written } else { &written[..start] }
}

fn resize(terminal: &File, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("a terminal");
}

/// How a terminal treats what is typed and written.
fn modes(line: &OwnedFd) -> String {
    format!("{:?}", tcgetattr(line).expect("a terminal"))
}

/// `duologue chat` with the built-in engine.
pub(crate) fn chat(folder: &Folder, options: &[&str]) -> Command {
    let words = [&["chat", "--engine", "echo"][..], options].concat();
    let mut command = duologue(folder, &words);
    command.env("HOME", folder.path("")).env_remove("XDG_STATE_HOME");
    command
}

#[test]
fn a_person_chats_and_leaves_the_terminal_as_it_was() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &["--echo-reasoning"]));
    person.sees("echo · not stored · /help");
    // Nothing but pasted text is marked: the mouse stays the terminal's.
    assert_eq!(person.screen().modes, ["1004", "2004"]);
    assert_ne!(modes(&person.line), person.modes_before, "keys come one by one");
    person.types("hello there\r");
    person.answered("Turn 1. You said: hello there");
    person.types("two\nlines\r");
    person.answered("Turn 2. You said: two\nlines");
    person.types("\u{4}");
    let (status, screen) = person.ends();
    assert_eq!(status, 0);
    let expected = "\
> hello there

∴ thought, 1 line (Ctrl-O shows it)

Turn 1. You said: hello there

> two
  lines

∴ thought, 1 line (Ctrl-O shows it)

Turn 2. You said: two
lines";
    assert!(screen.text().starts_with(expected), "{}", screen.text());
    let history = fs::read_to_string(folder.path(".local/state/duologue/prompts.jsonl"));
    assert_eq!(history.expect("the prompts"), "\"hello there\"\n\"two\\nlines\"\n");
}

#[test]
fn prompts_are_remembered_by_the_next_chat() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &["first of all"]));
    person.answered("You said: first of all");
    person.types("one\r");
    person.answered("You said: one");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("\u{1b}[A");
    person.sees("> one");
    person.types("\r");
    person.answered("Turn 1. You said: one");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn an_answer_is_stopped_and_a_waiting_prompt_comes_back() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &["--echo-delay-ms", "60000"]));
    person.sees("/help");
    person.types("slow\r");
    person.sees("Esc stops");
    person.types("later\r");
    person.sees("waits: later");
    person.types("\u{1b}");
    person.sees("· stopped");
    person.sees("> later");
    person.types("\u{3}\u{3}\u{3}");
    assert_eq!(person.ends().0, 0);
}

/// However it ends, the terminal is as it was.
#[test]
fn signals_end_the_chat_and_restore_the_terminal() {
    let folder = Folder::new();
    for (signal, expected) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        for options in [&["--echo-delay-ms", "60000"][..], &["--fullscreen"]] {
            let mut person = Person::start(chat(&folder, options));
            person.sees("/help");
            person.types("hello\r");
            person.sees("> hello");
            person.process().send(signal);
            let (status, screen) = person.ends();
            assert_eq!(status, expected, "{signal:?} {options:?}: {}", screen.text());
        }
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_panic_while_drawing_restores_the_terminal() {
    let folder = Folder::new();
    for options in [&[][..], &["--fullscreen"]] {
        let mut command = chat(&folder, options);
        command.env("DUOLOGUE_FAULT", "draw:4");
        let mut person = Person::start(command);
        person.sees("/help");
        person.types_one_by_one('x', 6);
        let (status, _) = person.ends();
        assert_eq!(status, 70);
    }
}

#[test]
fn a_terminal_that_goes_away_ends_the_chat() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &["--echo-delay-ms", "60000"]));
    person.sees("/help");
    person.types("hello\r");
    person.sees("Esc stops");
    let Person { child, .. } = &mut person;
    let id = child.id();
    // The side of the person is closed: the reader's copy as well.
    person.keys = File::open("/dev/null").expect("a file");
    Process(id).send(Signal::HUP);
    let status = person.child.wait().expect("our own child");
    assert_eq!(status.code(), Some(129));
}

#[test]
fn a_pasted_text_is_one_prompt_and_answers_nothing() {
    const LINES: usize = 2_000;
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &["--echo-answer", "/etc/hostname"]));
    person.sees("/help");
    let text: String =
        (0..LINES).map(|n| format!("line {n} of a text that was pasted\r")).collect();
    person.types(&format!("\u{1b}[200~{text}the end\u{1b}[201~"));
    person.sees("> [pasted 2001 lines]");
    assert!(!person.screen().text().contains("line 0 of"), "it is folded");
    person.types("\r");
    // It is printed as it was written, and in full if that is wanted.
    person.answered("> [pasted 2001 lines]\n\n");
    assert!(!person.screen().text().contains("line 0 of"), "{}", person.screen().text());
    person.types("\u{f}");
    person.sees("line 0 of a text that was pasted");
    person.types("/quit\r");
    let (status, screen) = person.ends();
    assert_eq!(status, 0);
    assert_eq!(screen.text().matches("of a text that was pasted").count(), LINES);
}

/// At any size something can be typed and read.
#[test]
fn small_terminals_show_what_fits() {
    let folder = Folder::new();
    for (columns, rows) in [(20, 5), (20, 3), (20, 2), (20, 1), (4, 3), (200, 50)] {
        let command = chat(&folder, &["--echo-delay-ms", "1"]);
        let mut person = Person::sized(command, columns, rows);
        let screen = |person: &Person| person.screen_of(columns, rows).text();
        eventually("the prompt is shown", || (!screen(&person).is_empty()).then_some(()));
        person.types("hi\r");
        let answered = |person: &Person| screen(person).replace(['\n', ' '], "").contains("Turn1.");
        eventually("the answer is shown", || answered(&person).then_some(()));
        person.types("\u{4}");
        let status = person.child.wait().expect("our own child");
        assert_eq!(status.code(), Some(0), "{columns} × {rows}");
    }
}

#[test]
fn a_resize_shows_everything_once() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &["--echo-delay-ms", "5"]));
    person.sees("/help");
    person.types("some words that are repeated\r");
    for (columns, rows) in [(60, 18), (50, 20), (66, 10), (COLUMNS, ROWS)] {
        person.resizes(columns, rows);
    }
    person.sees("that are repeated\n>");
    person.types("/quit\r");
    let (status, screen) = person.ends();
    assert_eq!(status, 0);
    assert_eq!(screen.text().matches("You said").count(), 1, "{}", screen.text());
}

#[test]
fn nothing_that_a_model_says_reaches_the_terminal_as_a_command() {
    let folder = Folder::new();
    let evil = "before\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}2J\u{1b}]52;c;ZXZpbA==\u{7}\u{202e}after\n";
    fs::write(folder.path("evil"), evil).expect("a file");
    let mut person = Person::start(chat(&folder, &["--echo-answer", "evil"]));
    person.sees("/help");
    person.types("go\r");
    person.sees("after");
    // The terminal of this test fails at anything that the chat does not use itself.
    let screen = person.screen();
    assert_eq!(screen.clipboard, None);
    assert!(!person.bytes().contains("\u{1b}]") && !person.bytes().contains('\u{202e}'));
    person.types("/copy\r");
    person.sees("clipboard");
    assert!(person.screen().clipboard.is_some(), "the person may copy");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn a_tool_call_waits_for_the_persons_decision() {
    let (folder, mark) = (Folder::new(), mark());
    fs::write(folder.path("servers"), config(&mark, &["echo"], &json!({}))).expect("a file");
    let call = json!({"name": "act", "arguments": {"text": "hello"}});
    let script =
        format!("{}\n{}\n", json!({"text": "Look.", "tools": [call]}), json!({"text": "Done."}));
    fs::write(folder.path("script"), script).expect("a file");
    let options = ["--mcp-config", "servers", "--echo-script", "script"];
    let mut person = Person::start(chat(&folder, &options));
    person.sees("/help");
    person.types("go\ry");
    person.sees("May act of echo run with {\"text\":\"hello\"}?");
    person.sees("Ctrl-G to answer");
    person.types("y");
    person.sees("> yy");
    person.types("\u{7}");
    person.sees("Esc back");
    person.types("y");
    person.sees("Done.");
    // The first one clears what was typed.
    person.types("\u{3}\u{3}\u{3}");
    let (status, screen) = person.ends();
    assert_eq!(status, 0);
    assert!(screen.text().contains("● act {\"text\":\"hello\"}"), "{}", screen.text());
    assert_gone(&mark);
}

#[test]
fn leaving_says_how_to_go_on_and_that_goes_on() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &["--store", "chat.db"]));
    person.sees("/help");
    person.types("remember me\r");
    person.answered("You said: remember me");
    person.types("/quit\r");
    let (status, screen) = person.ends();
    assert_eq!(status, 0);
    let hint = "to go on with this conversation: duologue ";
    let (_, command) = screen.written.trim_end().split_once(hint).expect("a hint");
    let words: Vec<_> = command.split(' ').chain(["--engine", "echo"]).collect();
    let mut again = duologue(&folder, &words);
    again.env("HOME", folder.path(""));
    let mut person = Person::start(again);
    person.answered("> remember me\n\nTurn 1. You said: remember me");
    person.types("more\r");
    person.answered("Turn 2. You said: more");
    person.types("/new\r");
    person.sees("another conversation begins");
    person.types("/resume rememb");
    person.types("\r");
    person.sees("Enter goes on");
    person.sees("remember me  (2 turns");
    person.types("\r");
    person.sees("goes on\n\n> remember me");
    person.types("third\r");
    person.answered("Turn 3. You said: third");
    person.types("/export all.md\r");
    person.sees("all.md was written");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
    let exported = fs::read_to_string(folder.path("all.md")).expect("the file");
    assert_eq!(exported.matches("## You").count(), 3, "{exported}");
}

#[test]
fn a_session_that_another_process_holds_is_refused_and_this_one_goes_on() {
    let folder = Folder::new();
    let options = ["--store", "chat.db", "--session-id", "held"];
    let mut holder = Person::start(chat(&folder, &options));
    holder.sees("/help");
    holder.types("mine\r");
    holder.answered("You said: mine");
    let mut person = Person::start(chat(&folder, &["--store", "chat.db"]));
    person.sees("/help");
    person.types("hello\r");
    person.answered("Turn 1. You said: hello");
    person.types("/resume mine\r");
    person.sees("mine  (1 turn");
    person.types("\r");
    person
        .sees_words(&format!("another process holds the session: process {}", holder.process().0));
    person.sees_words("this conversation goes on");
    person.types("again\r");
    person.answered("Turn 2. You said: again");
    assert!(!person.screen().text().contains("held goes on"));
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
    holder.types("/quit\r");
    assert_eq!(holder.ends().0, 0);
}

#[test]
fn a_prompt_is_written_in_the_persons_editor() {
    let folder = Folder::new();
    let mut command = chat(&folder, &[]);
    command.env("EDITOR", "sed -i s/foo/bar/");
    let mut person = Person::start(command);
    person.sees("/help");
    person.types("some foo\u{18}\u{5}");
    person.sees("> some bar");
    person.types("\r");
    person.answered("You said: some bar");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// An editor that is killed leaves the terminal as it likes; the chat and the shell have it as it was.
#[test]
fn an_editor_that_is_killed_changes_nothing() {
    let folder = Folder::new();
    fs::write(folder.path("editor"), "stty -echo -icanon\nkill -9 $$\n").expect("a file");
    let mut command = chat(&folder, &[]);
    command.env("EDITOR", "sh ./editor");
    let mut person = Person::start(command);
    person.sees("/help");
    person.types("a draft\u{18}\u{5}");
    person.sees("the editor has failed");
    person.sees("> a draft");
    person.types(" goes on\r");
    person.answered("You said: a draft goes on");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn files_after_an_at_sign_are_completed_and_attached() {
    let folder = Folder::new();
    fs::write(folder.path("notes.txt"), "text").expect("a file");
    fs::create_dir(folder.path("sub")).expect("a folder");
    fs::write(folder.path("sub/my \"own\" notes.txt"), "text").expect("a file");
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("see @no\t");
    person.sees("> see @notes.txt");
    person.types("\r");
    person.sees("attached: notes.txt");
    person.types("and @sub\t");
    person.sees("> and @sub/");
    person.types("m\t");
    person.sees("> and @\"sub/my \\\"own\\\" notes.txt\"");
    person.types("\r");
    person.sees("attached: my \"own\" notes.txt");
    // A name that was written without its quotes gets them.
    fs::write(folder.path("a plan.md"), "text").expect("a file");
    fs::write(folder.path("a plan.txt"), "text").expect("a file");
    person.types("with @a pl\t");
    person.sees("> with @\"a plan.");
    person.types("t\t");
    person.sees("> with @\"a plan.txt\"");
    person.types("too, and @a plan.md\t");
    person.sees("> with @\"a plan.txt\" too, and @\"a plan.md\"");
    person.types("\r");
    person.sees("attached: a plan.txt");
    person.sees("attached: a plan.md");
    person.types("or @~\t");
    person.sees("> or @~/");
    person.types("su\t");
    person.sees("> or @~/sub/");
    person.types("\u{3}/quit\r");
    assert_eq!(person.ends().0, 0);
}
