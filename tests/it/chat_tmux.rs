//! Chats in tmux: with a shell and job control around them, and a terminal that wraps its lines again
//! when it is resized.

use crate::mcp_servers::{assert_gone, config, mark};
use crate::process::eventually;
use crate::server::{Folder, report};
use serde_json::json;
use std::fs;
use std::process::Command;
use std::thread;

/// A tmux server with one window, in which a shell runs.
pub(crate) struct Tmux {
    socket: String,
}

impl Tmux {
    pub(crate) fn start(folder: &Folder, columns: u16, rows: u16) -> Self {
        let tmux = Self { socket: folder.name("tmux") };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let shell = format!(
            "cd '{}'; exec env -i PATH=\"$PATH\" HOME=. TERM=tmux-256color PS1='$ ' \
             DUOLOGUE='{}' bash --norc",
            folder.name(""),
            env!("CARGO_BIN_EXE_duologue"),
        );
        // All that is printed can be looked at.
        let history = ["set-option", "-g", "history-limit", "20000", ";"];
        let session = ["new-session", "-d", "-x", &columns, "-y", &rows, &shell];
        tmux.run(&[&["start-server", ";"][..], &history, &session].concat());
        tmux.sees("$");
        tmux
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-S", &self.socket, "-f", "/dev/null"]).args(words);
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> String {
        let output = self.command(words).output().expect("tmux runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {text}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Types keys by the names that tmux has for them.
    pub(crate) fn keys(&self, keys: &[&str]) {
        self.run(&[&["send-keys"][..], keys].concat());
    }

    pub(crate) fn types(&self, text: &str) {
        self.keys(&["-l", text]);
    }

    /// Types a line for the shell or the chat.
    pub(crate) fn line(&self, text: &str) {
        self.types(text);
        self.keys(&["Enter"]);
    }

    /// All that is shown, scrollback included.
    fn text(&self) -> String {
        self.run(&["capture-pane", "-p", "-J", "-S", "-"]).trim_end().to_owned()
    }

    /// The rows of the screen.
    pub(crate) fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"]).trim_end().to_owned()
    }

    #[track_caller]
    pub(crate) fn sees(&self, text: &str) {
        eventually(&format!("tmux shows {text:?}"), || self.text().contains(text).then_some(()));
    }

    fn chat(&self, options: &str) {
        self.line("clear");
        self.has_shell();
        self.line(&format!("stty -g > before; $DUOLOGUE chat --engine echo {options}"));
        eventually("the chat is there", || self.screen().ends_with("/help").then_some(()));
    }

    /// Waits for the shell: what is typed before a chat has left is not for it.
    #[track_caller]
    fn has_shell(&self) {
        eventually("the shell waits", || {
            self.screen()
                .ends_with("\n$")
                .then_some(())
                .or_else(|| (self.screen() == "$").then_some(()))
        });
    }

    /// The chat has ended; the terminal is as it was before.
    #[track_caller]
    fn is_restored(&self, folder: &Folder) {
        self.has_shell();
        self.line("stty -g > after; echo restored: $?");
        self.sees("restored: 0");
        let modes = |name| fs::read_to_string(folder.path(name)).expect("the modes");
        assert_eq!(modes("before"), modes("after"));
        let flags = "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{wrap_flag}";
        assert_eq!(self.run(&["display-message", "-p", flags]).trim(), "0 1 0 1");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        if thread::panicking() {
            for shown in [&["capture-pane", "-p", "-J", "-S", "-"][..], &["list-panes"]] {
                let text =
                    self.command(shown).output().map(|output| output.stdout).unwrap_or_default();
                report(&format!("tmux shows:\n{}\n", String::from_utf8_lossy(&text)));
            }
        }
        Command::new("tmux").args(["-S", &self.socket, "kill-server"]).output().ok();
    }
}

#[test]
fn a_chat_streams_and_is_cancelled() {
    needs!(Tmux);
    let folder = Folder::new();
    let tmux = Tmux::start(&folder, 60, 15);
    tmux.chat("--echo-delay-ms 50 --echo-reasoning");
    tmux.line("one two three four five six seven eight nine ten");
    tmux.sees("thinking");
    tmux.sees("Turn 1. You");
    tmux.keys(&["Escape"]);
    tmux.sees("· stopped");
    tmux.line("again");
    tmux.sees("Turn 2. You said: again");
    // While it answers, the first one would stop it.
    eventually("it is answered", || (!tmux.screen().contains("Esc stops")).then_some(()));
    tmux.keys(&["C-c", "C-c"]);
    tmux.is_restored(&folder);
}

#[test]
fn a_suspended_chat_comes_back_whole() {
    needs!(Tmux);
    let folder = Folder::new();
    let tmux = Tmux::start(&folder, 60, 15);
    tmux.chat("--echo-delay-ms 20");
    tmux.line("before");
    tmux.sees("You said: before");
    tmux.types("a draft");
    tmux.keys(&["C-z"]);
    tmux.sees("Stopped");
    tmux.is_restored(&folder);
    // In the background it leaves the terminal alone.
    tmux.line("clear; bg; echo in the background");
    tmux.sees("in the background");
    tmux.line("echo still $((40 + 2)); stty -g > after");
    tmux.sees("still 42");
    tmux.line("clear; fg");
    tmux.sees("> a draft");
    tmux.keys(&["Enter"]);
    tmux.sees("Turn 2. You said: a draft\nBefore");
    let text = tmux.text();
    assert_eq!(text.matches("Turn 2.").count(), 1, "{text}");
    tmux.keys(&["C-d"]);
    tmux.is_restored(&folder);
}

#[test]
fn a_narrower_window_loses_and_doubles_nothing() {
    needs!(Tmux);
    let folder = Folder::new();
    let tmux = Tmux::start(&folder, 80, 20);
    tmux.chat("--echo-delay-ms 30");
    let words: Vec<String> = (0..40).map(|number| format!("w{number}")).collect();
    tmux.line(&words.join(" "));
    tmux.sees("Turn 1. You said: w0 w1");
    for (columns, rows) in [(50, 20), (30, 12), (70, 8), (20, 20), (80, 20)] {
        tmux.run(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }
    tmux.sees("w39\n>");
    let text = tmux.text();
    for what in ["Turn 1.", "You said", "answering", "/help"] {
        let most = if what == "answering" { 0 } else { 1 };
        assert!(text.matches(what).count() <= most, "{what}: {text}");
    }
    tmux.line("/quit");
    tmux.is_restored(&folder);
}

#[test]
fn a_question_is_there_once_in_any_window() {
    needs!(Tmux);
    let (folder, mark) = (Folder::new(), mark());
    fs::write(folder.path("servers"), config(&mark, &["echo"], &json!({}))).expect("a file");
    let call = json!({"name": "act", "arguments": {"text": "word ".repeat(120)}});
    let script = format!("{}\n{}\n", json!({"tools": [call]}), json!({"text": "Done."}));
    fs::write(folder.path("script"), script).expect("a file");
    let tmux = Tmux::start(&folder, 80, 24);
    tmux.chat("--mcp-config servers --echo-script script");
    tmux.line("go");
    tmux.sees("Ctrl-G to answer");
    for (columns, rows) in [(80, 6), (80, 24), (60, 8), (80, 24)] {
        tmux.run(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
        tmux.sees("Ctrl-G to answer");
    }
    tmux.keys(&["C-g"]);
    tmux.sees("y yes");
    tmux.line("y");
    tmux.sees("Done.");
    let text = tmux.text();
    assert_eq!(text.matches("asks to run with").count(), 1, "{text}");
    for gone in ["Ctrl-G to answer", "waiting for your decision", "y yes"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
    tmux.line("/quit");
    tmux.is_restored(&folder);
    assert_gone(&mark);
}

/// Blocks of the answer that is streamed while the window is resized.
const BLOCKS: usize = 42;

/// Blocks of every kind, each with a name of its own.
fn long_answer() -> String {
    let block = |number: usize| match number % 6 {
        0 => format!("L{number:02} {}\n", "some words of a long paragraph\n".repeat(6)),
        1 => format!("| L{number:02} | name |\n|---|---|\n| one | {} |\n\n", "x".repeat(40)),
        2 => format!("- L{number:02} {}\n", "an item of a list\n  ".repeat(5)),
        3 => {
            format!("```sh\necho L{number:02} {}\n```\n\n", "argument ".repeat(12))
        }
        4 => format!("## L{number:02} heading\n\n"),
        _ => format!("L{number:02} 日本語のとても長い段落です。{}\n\n", "漢字".repeat(30)),
    };
    (0..BLOCKS).map(block).collect()
}

/// How many blocks are there.
fn blocks(text: &str) -> usize {
    (0..BLOCKS).filter(|number| text.contains(&format!("L{number:02} "))).count()
}

/// Resizes a window while an answer streams: some sizes at once, as when a person drags its corner, then others
/// once more of the answer is there. Everything must be there once, and nothing that was drawn before it was
/// finished.
fn resized(drags: &[&[(u16, u16)]]) {
    let folder = Folder::new();
    fs::write(folder.path("answer"), long_answer()).expect("a file");
    let tmux = Tmux::start(&folder, 80, 24);
    // The chat begins at the bottom of the screen, as it is after a few turns.
    tmux.line("clear; for n in $(seq 40); do echo before $n; done");
    tmux.sees("before 40");
    tmux.line(
        "stty -g > before; $DUOLOGUE chat --engine echo --echo-answer answer --echo-delay-ms 15",
    );
    eventually("the chat is there", || tmux.screen().ends_with("/help").then_some(()));
    tmux.line("go");
    for sizes in drags {
        let before = blocks(&tmux.text());
        eventually("the answer goes on", || {
            let now = blocks(&tmux.text());
            (now > before || now == BLOCKS).then_some(())
        });
        for (columns, rows) in *sizes {
            tmux.run(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
        }
    }
    eventually("the answer is there", || {
        (blocks(&tmux.text()) == BLOCKS && !tmux.text().contains("Esc stops")).then_some(())
    });
    eventually("it is drawn", || tmux.screen().ends_with("/help").then_some(()));
    let text = tmux.text();
    let mut before = 0;
    for number in 0..BLOCKS {
        let name = format!("L{number:02} ");
        let places: Vec<_> = text.match_indices(&name).map(|(at, _)| at).collect();
        assert!(places.len() == 1 && places[0] >= before, "{name} {places:?}: {text}");
        before = places[0];
    }
    assert!(!text.contains("answering"), "{text}");
    assert_eq!(text.matches("/help").count(), 1, "{text}");
    tmux.line("/quit");
    tmux.is_restored(&folder);
}

#[test]
fn a_narrower_window_in_mid_stream_shows_everything_once() {
    needs!(Tmux);
    resized(&[&[(60, 24)], &[(44, 24)], &[(30, 24)]]);
}

#[test]
fn a_wider_window_in_mid_stream_shows_everything_once() {
    needs!(Tmux);
    resized(&[&[(50, 24)], &[(70, 24)], &[(120, 24)]]);
}

#[test]
fn a_lower_window_in_mid_stream_shows_everything_once() {
    needs!(Tmux);
    resized(&[&[(80, 18)], &[(80, 14)]]);
}

#[test]
fn a_higher_window_in_mid_stream_shows_everything_once() {
    needs!(Tmux);
    resized(&[&[(80, 16)], &[(80, 24)], &[(80, 40)]]);
}

#[test]
fn a_window_that_is_dragged_in_mid_stream_shows_everything_once() {
    needs!(Tmux);
    let drag: Vec<_> = (0..12).map(|step| (80 - step * 3, 24 - step / 3)).collect();
    let back: Vec<_> = drag.iter().rev().copied().collect();
    resized(&[&drag, &back, &[(50, 20), (80, 24)], &drag]);
}

/// Words of the answer that is streamed while the window is resized.
const WORDS: usize = 3_000;

/// The numbers of the words that are there, in their order. One that the terminal has broken over two rows is there,
/// also if its second row was written again. Others may be half drawn.
fn words(text: &str) -> Vec<usize> {
    let text: String = text.chars().filter(|char| !char.is_whitespace()).collect();
    let words = text.split('w').filter_map(|after| after.split_once('x'));
    words.filter_map(|(number, _)| number.parse().ok()).collect()
}

/// Resizes a window all the time while long paragraphs and lists of numbered words stream, with a draft of so
/// many words. Each word of the answer must be there once, and in order.
fn resized_words(draft: usize) {
    let folder = Folder::new();
    let word = |number: usize| match number {
        number if number % 400 == 0 => format!("\n\nw{number}x"),
        number if number % 100 == 0 => format!("\n- **w{number}x**"),
        number => format!(" w{number}x"),
    };
    let answer: String = (0..WORDS).map(word).collect();
    fs::write(folder.path("answer"), answer).expect("a file");
    let tmux = Tmux::start(&folder, 80, 24);
    tmux.line("clear; for n in $(seq 40); do echo before $n; done");
    tmux.sees("before 40");
    tmux.line(
        "stty -g > before; $DUOLOGUE chat --engine echo --echo-answer answer --echo-delay-ms 4",
    );
    eventually("the chat is there", || tmux.screen().ends_with("/help").then_some(()));
    tmux.line("go");
    fs::write(folder.path("draft"), "draft ".repeat(draft)).expect("a file");
    tmux.run(&["load-buffer", &folder.name("draft")]);
    tmux.run(&["paste-buffer", "-p"]);
    let sizes = [(44, 24), (100, 30), (30, 12), (80, 40), (20, 30), (80, 10), (61, 17), (120, 24)];
    for (columns, rows) in sizes.iter().cycle().take(24) {
        let before = words(&tmux.text()).len();
        tmux.run(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
        eventually("the answer goes on", || {
            let now = words(&tmux.text()).len();
            (now > before || now >= WORDS).then_some(())
        });
    }
    eventually("the answer is there", || {
        let shown = tmux.text();
        (words(&shown).contains(&(WORDS - 1)) && !tmux.screen().contains("Esc stops")).then_some(())
    });
    tmux.keys(&["C-c"]);
    eventually("it is drawn", || tmux.screen().contains("brings the text back").then_some(()));
    let text = tmux.text();
    assert_eq!(words(&text), (0..WORDS).collect::<Vec<_>>(), "{text}");
    tmux.line("/quit");
    tmux.is_restored(&folder);
}

#[test]
fn each_word_is_there_once_however_often_the_window_is_resized() {
    needs!(Tmux);
    resized_words(1);
}

#[test]
fn each_word_is_there_once_with_a_long_draft() {
    needs!(Tmux);
    resized_words(120);
}

#[test]
fn a_screen_that_is_drawn_again_leaves_nothing_in_the_scrollback() {
    needs!(Tmux);
    let folder = Folder::new();
    let tmux = Tmux::start(&folder, 60, 15);
    tmux.chat("--echo-delay-ms 5");
    tmux.line("one");
    tmux.sees("Turn 1. You said: one\n>");
    for draft in ["a", "b"] {
        tmux.keys(&["C-l"]);
        tmux.types(draft);
        eventually("it is drawn at the top", || tmux.screen().starts_with("> a").then_some(()));
    }
    tmux.keys(&["Enter"]);
    tmux.sees("You said: ab\nBefore that you said: one\n>");
    let text = tmux.text();
    assert_eq!((text.matches("/help").count(), text.matches("\n>").count()), (1, 3), "{text}");
    assert!(text.contains("Turn 1. You said: one"), "{text}");
    tmux.line("/quit");
    tmux.is_restored(&folder);
}

#[test]
fn a_paste_of_100_kb_is_one_prompt() {
    needs!(Tmux);
    let folder = Folder::new();
    let text: String =
        (0..4_000).map(|number| format!("line {number:05} of what was pasted\n")).collect();
    assert!(text.len() > 100_000);
    fs::write(folder.path("text"), text.trim_end()).expect("a file");
    let tmux = Tmux::start(&folder, 60, 15);
    tmux.chat("--echo-answer /etc/hostname --debug-events-jsonl events");
    tmux.run(&["load-buffer", &folder.name("text")]);
    tmux.run(&["paste-buffer", "-p", "-r"]);
    tmux.sees("[pasted 4000 lines]");
    assert!(tmux.screen().lines().count() <= 15);
    tmux.keys(&["Enter"]);
    eventually("the answer has its end", || {
        let frames = fs::read_to_string(folder.path("events")).expect("the frames");
        frames.contains("\"done\":{").then_some(())
    });
    tmux.keys(&["C-o"]);
    tmux.sees("line 00001");
    tmux.line("/quit");
    tmux.is_restored(&folder);
    let events = fs::read_to_string(folder.path("events")).expect("the frames");
    assert_eq!(events.matches("\"name\":\"ChatRunStarted\"").count(), 1);
    assert!(events.contains("line 00000 of what was pasted\\nline 00001"));
}

#[test]
fn a_stored_chat_is_resumed_from_the_list() {
    needs!(Tmux);
    let folder = Folder::new();
    let tmux = Tmux::start(&folder, 70, 15);
    for prompt in ["about ports", "about ships"] {
        tmux.chat("--store chat.db");
        tmux.line(prompt);
        tmux.sees(&format!("You said: {prompt}\n>"));
        tmux.line("/quit");
        tmux.sees("to go on with this conversation");
    }
    tmux.chat("--store chat.db");
    tmux.line("/resume");
    tmux.sees("about ships  (1 turn");
    tmux.types("port");
    eventually("one is left", || (!tmux.screen().contains("about ships  (")).then_some(()));
    // What is typed at once is for the conversation that is chosen.
    tmux.keys(&["Enter", "a", "n", "d", "Space", "m", "o", "r", "e", "Enter"]);
    tmux.sees("Turn 2. You said: and more");
    tmux.line("/quit");
    tmux.is_restored(&folder);
}

#[test]
fn a_killed_chat_can_be_cleaned_up_by_the_shell() {
    needs!(Tmux);
    let folder = Folder::new();
    let tmux = Tmux::start(&folder, 70, 15);
    tmux.chat("--store chat.db --fullscreen");
    tmux.line("hello");
    tmux.sees("Turn 1. You said: hello");
    tmux.keys(&["C-z"]);
    tmux.sees("Stopped");
    tmux.line("kill -TERM %1; fg");
    tmux.is_restored(&folder);
}
