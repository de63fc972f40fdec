//! Lines, in any order with the frames of what they ask.

use super::*;
use crate::protocol::proto::chat::ChatTextSegmentFinished;
use crate::protocol::proto::provider::RetryScheduled;
use crate::protocol::proto::tools::ToolApprovalResolved;
use crate::tui::model::tests::Scene;
use crate::tui::model::{Choice, Opening, Outgoing, Piece};

fn scene(are_typed: bool) -> Scene {
    let mut scene = Scene::new();
    scene.state.lines = Some(Lines::new(are_typed));
    scene
}

fn line(scene: &mut Scene, text: &str) {
    scene.event(Event::Line(text.to_owned()));
}

fn notes(scene: &Scene) -> Vec<&str> {
    let notes = scene.pieces.iter().filter_map(|piece| match piece {
        Piece::Note(_, text) => Some(text.as_str()),
        Piece::Prompt { .. }
        | Piece::Block(_)
        | Piece::AnswerEnd
        | Piece::Reasoning { .. }
        | Piece::Tool(_)
        | Piece::Unfolded(_)
        | Piece::Dropped { .. }
        | Piece::Lines(_) => None,
    });
    notes.collect()
}

fn decisions(scene: &Scene) -> Vec<(&str, &Decision)> {
    let decisions = scene.actions.iter().filter_map(|action| {
        let Action::Request(Outgoing::Approve { call, decision }) = action else { return None };
        Some((call.as_str(), decision))
    });
    decisions.collect()
}

/// Asks the line `prompt`, as far as the beginning of its run.
fn ask(scene: &mut Scene, id: &str, prompt: &str) {
    line(scene, prompt);
    scene.send(id);
    scene.begins(id, prompt);
}

const DENY: Decision = Decision::Deny { reason: String::new() };

#[test]
fn a_line_waits_for_the_end_of_what_was_asked_before_it() {
    let mut scene = scene(false);
    line(&mut scene, "hi");
    scene.send("r1");
    line(&mut scene, "/save x");
    line(&mut scene, "//two");
    scene.begins("r1", "hi");
    scene.event(Event::InputEnded);
    scene.says("r1", "answer");
    scene.ui("r1", ChatTextSegmentFinished::default());
    assert_eq!(scene.asked(), [("hi", None)]);
    scene.done("r1", "ok");
    let write = Action::Write { path: "x".into(), text: "answer".to_owned() };
    assert_eq!(scene.actions.last(), Some(&write));
    scene.event(Event::Tick);
    assert_eq!(scene.actions.last(), Some(&write), "it is not written yet");
    scene.event(Event::Reported(Ok("x was written".to_owned())));
    assert_eq!(scene.asked()[1..], [("/two", None)]);
    scene.send("r2");
    scene.begins("r2", "/two");
    assert_eq!(scene.actions.last(), Some(&Action::EndInput), "it ends with the last answer");
}

#[test]
fn another_conversation_is_waited_for() {
    let mut scene = scene(false);
    line(&mut scene, "/new");
    line(&mut scene, "hello");
    assert_eq!(scene.actions, [Action::Open(Opening::New { system: None })]);
    scene.event(Event::Opened(String::new()));
    assert_eq!(scene.asked(), [("hello", None)]);
    scene.send("r1");
    scene.done("r1", "ok");
    line(&mut scene, "/new");
    line(&mut scene, "more");
    scene.event(Event::NotOpened("the disk is full".to_owned()));
    assert_eq!(notes(&scene)[1..], ["the disk is full; this conversation goes on"]);
    assert_eq!(scene.asked()[1..], [("more", None)]);
}

#[test]
fn a_chosen_conversation_is_waited_for() {
    let mut scene = scene(false);
    line(&mut scene, "/resume");
    line(&mut scene, "hello");
    scene.event(Event::Sessions(Ok(Vec::new())));
    assert_eq!(scene.asked(), [("hello", None)], "there was none to choose");
    scene.send("r1");
    scene.done("r1", "ok");
    line(&mut scene, "/resume kept");
    line(&mut scene, "more");
    let (value, title) = ("kept".to_owned(), "title".to_owned());
    scene.event(Event::Sessions(Ok(vec![Choice { value, title, detail: String::new() }])));
    scene.event(Event::Tick);
    assert_eq!(scene.asked().len(), 1, "the other one is not open yet");
    scene.event(Event::Opened(String::new()));
    assert_eq!(scene.asked()[1..], [("more", None)]);
}

#[test]
fn quit_ends_a_file_where_it_stands_and_leaves_a_terminal_at_once() {
    let mut file = scene(false);
    ask(&mut file, "r1", "hi");
    line(&mut file, "/quit");
    line(&mut file, "not asked");
    assert!(file.cancelled().is_empty());
    file.done("r1", "ok");
    assert_eq!((file.asked().len(), file.actions.last()), (1, Some(&Action::EndInput)));
    for command in ["/quit", "/exit"] {
        let mut terminal = scene(true);
        ask(&mut terminal, "r1", "hi");
        terminal.asks_approval("r1", "c1");
        line(&mut terminal, command);
        assert_eq!(terminal.actions.last(), Some(&Action::Quit), "{command}");
    }
}

/// Others would get what was meant for the model or the conversation that was not chosen.
#[test]
fn a_file_is_read_no_further_than_a_choice_that_fails() {
    let check = |are_typed: bool, wrong: &str, asked: &[(&str, Option<&str>)]| {
        let mut scene = scene(are_typed);
        scene.state.status.is_stored = true;
        line(&mut scene, wrong);
        line(&mut scene, "hello");
        if let Some(Action::Request(switch @ Outgoing::SwitchModel { .. })) =
            scene.actions.first().cloned()
        {
            scene.event(Event::Sent(switch, "s".to_owned()));
            scene.error_with(
                "s",
                "invalid_settings",
                "it can't be used",
                "there is no such profile",
            );
            scene.done("s", "failed");
        }
        if scene.actions.first() == Some(&Action::ListSessions) {
            scene.event(Event::Sessions(Ok(Vec::new())));
        }
        line(&mut scene, "more");
        assert_eq!(scene.asked(), asked, "{wrong}: {:?}", scene.pieces);
        assert_eq!(scene.actions.contains(&Action::EndInput), asked.is_empty(), "{wrong}");
        assert_eq!(scene.state.has_failed_unseen(), !are_typed, "{wrong}");
    };
    // Nothing was said that could be copied.
    for wrong in ["/profile wrok", "/model m9", "/resume wrok", "/fork", "/fork now"] {
        check(false, wrong, &[]);
        check(true, wrong, &[("hello", None)]);
    }
    for wrong in ["/undo", "/undo abc", "/rename", "/mcp restart nope", "/allow"] {
        check(false, wrong, &[("hello", None)]);
    }
}

#[test]
fn an_error_that_no_line_has_made_is_no_failure_of_one() {
    let mut scene = scene(false);
    scene.error("", "store_failed", "the disk is full");
    line(&mut scene, "/help");
    line(&mut scene, "/resume");
    scene.event(Event::Sessions(Ok(Vec::new())));
    assert!(!scene.state.has_failed_unseen(), "{:?}", scene.pieces);
}

#[test]
fn stop_stops_at_once_and_the_next_line_is_asked() {
    let mut scene = scene(false);
    ask(&mut scene, "r1", "hi");
    line(&mut scene, "next");
    line(&mut scene, "/stop");
    assert_eq!(scene.cancelled(), [Some("r1")]);
    scene.done("r1", "stopped");
    assert_eq!(scene.asked()[1..], [("next", None)]);
}

/// Each call is named; an answer is for the one that was named last.
#[test]
fn several_questions_are_asked_one_after_the_other() {
    let mut scene = scene(true);
    ask(&mut scene, "r1", "time?");
    for call in ["c1", "c2", "c3"] {
        scene.asks_approval("r1", call);
    }
    assert_eq!(notes(&scene).len(), 1);
    assert!(
        notes(&scene)[0].starts_with(r#"May get_time of clock run with {"zone":"UTC"}? Write y"#)
    );
    line(&mut scene, "y");
    assert_eq!(decisions(&scene), [("c1", &Decision::AllowOnce)]);
    assert!(
        notes(&scene)[2].contains("(1 more will be asked about after it)"),
        "{:?}",
        notes(&scene)
    );
    line(&mut scene, "No");
    assert_eq!(decisions(&scene)[1..], [("c2", &DENY)]);
    // Decided elsewhere, as by a limit of time.
    let tool_call_id = "c3".to_owned();
    scene.ui("r1", ToolApprovalResolved { tool_call_id, ..Default::default() });
    line(&mut scene, "/allow");
    assert_eq!(decisions(&scene).len(), 2);
    assert_eq!(notes(&scene).last(), Some(&NO_QUESTION));
}

/// What was typed before a question could be read is no answer to it.
#[test]
fn only_what_follows_a_question_answers_it() {
    let mut scene = scene(true);
    ask(&mut scene, "r1", "time?");
    line(&mut scene, "y");
    line(&mut scene, "/allow");
    assert_eq!(notes(&scene), [NO_QUESTION]);
    scene.asks_approval("r1", "c1");
    assert_eq!(decisions(&scene), []);
    line(&mut scene, "A");
    assert_eq!(decisions(&scene), [("c1", &Decision::AllowSession)]);
    line(&mut scene, "no, that is a prompt");
    scene.asks_approval("r1", "c2");
    line(&mut scene, "n Not in UTC, please.");
    let no = Decision::Deny { reason: "Not in UTC, please.".to_owned() };
    assert_eq!(decisions(&scene)[1..], [("c2", &no)]);
    scene.done("r1", "ok");
    assert_eq!(scene.asked()[1..], [("y", None)]);
    scene.send("r2");
    scene.done("r2", "ok");
    assert_eq!(scene.asked()[2..], [("no, that is a prompt", None)]);
}

/// All lines of a file are there before the first question.
#[test]
fn the_next_line_of_a_file_answers_if_it_can_be_nothing_else() {
    let mut file = scene(false);
    ask(&mut file, "r1", "time?");
    line(&mut file, "/always");
    line(&mut file, "n");
    file.asks_approval("r1", "c1");
    assert_eq!(decisions(&file), [("c1", &Decision::AllowSession)]);
    file.asks_approval("r1", "c2");
    assert_eq!(decisions(&file).len(), 1, "a letter is a prompt");
    file.event(Event::InputEnded);
    assert!(
        matches!(decisions(&file)[1], ("c2", Decision::Deny { .. })),
        "nobody can answer any more"
    );
    file.done("r1", "ok");
    assert_eq!(file.asked()[1..], [("n", None)]);
}

#[test]
fn no_more_lines_are_read_than_can_wait() {
    let mut scene = scene(false);
    ask(&mut scene, "r1", "hi");
    for _ in 0..LINES_WAITING_MAX {
        assert!(scene.state.takes_lines());
        line(&mut scene, "more");
    }
    assert!(!scene.state.takes_lines());
    scene.asks_approval("r1", "c1");
    assert!(scene.state.takes_lines(), "an answer may follow");
}

#[test]
fn what_would_disappear_is_printed() {
    let mut scene = scene(false);
    ask(&mut scene, "r1", "hi");
    let retry = RetryScheduled {
        attempt: 2,
        attempts_max: 3,
        wait_ms: 1_500,
        reason: "503".to_owned(),
        ..Default::default()
    };
    scene.ui("r1", retry);
    assert_eq!(notes(&scene), ["retrying in 2 s (attempt 2 of 3): 503"]);
    scene.done("r1", "ok");
    scene.event(Event::Reported(Ok("x was written".to_owned())));
    assert_eq!(notes(&scene)[1..], ["x was written"]);
}

#[test]
fn help_lists_what_lines_can_do() {
    let mut scene = scene(false);
    line(&mut scene, "/help");
    let Some(Piece::Lines(lines)) = scene.pieces.first() else { panic!("{:?}", scene.pieces) };
    for word in ["/allow", "/always", "/deny", "/stop", "/save", "/quit"] {
        assert!(
            lines.iter().any(|line| line.starts_with(&format!("  {word}"))),
            "{word}: {lines:?}"
        );
    }
    assert!(
        !lines.iter().any(|line| line.contains("Ctrl-") || line.contains("/copy")),
        "{lines:?}"
    );
}
