//! Pictures of a chat in its states, as text.

use super::*;
use crate::protocol::proto::chat::{
    ChatReasoningPatch, ChatReasoningSegmentFinished, ChatReasoningSegmentStarted,
    ChatTextSegmentFinished,
};
use crate::protocol::proto::provider::RetryScheduled;
use crate::protocol::proto::session::{TokenCounts, UsageTotals};
use crate::protocol::proto::tools::ToolApprovalRequested;
use crate::tui::markdown::{Colours, Theme, Tone};
use crate::tui::model::tests::Scene;
use crate::tui::model::{Choice, Event, Piece, Size, ToolCall, ToolState};
use crate::tui::terminal::keys::{Key, Press};

fn look(colours: Colours) -> Look {
    Look::new(Theme { tone: Tone::Dark, colours, has_links: false })
}

fn text(lines: &[Line]) -> String {
    let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

/// What was printed and, after a line of `─`, the live region with `|` where the cursor is.
fn picture(scene: &Scene) -> String {
    let Size { columns, rows } = scene.state.size;
    let mut printer = Printer::new(look(Colours::True), true);
    let mut printed = Vec::new();
    for piece in &scene.pieces {
        printed.extend(printer.lines(piece, columns, scene.state.unfolded.all));
    }
    let live = live(&scene.state, &printer, rows);
    let mut lines: Vec<String> = text(&live.lines).split('\n').map(str::to_owned).collect();
    let line = &mut lines[live.row];
    while width(line) < live.column {
        line.push(' ');
    }
    let at = line.char_indices().find(|(at, _)| width(&line[..*at]) >= live.column);
    let at = at.map_or(line.len(), |(at, _)| at);
    line.insert(at, '|');
    format!("{}\n──\n{}", text(&printed), lines.join("\n"))
}

#[track_caller]
fn check(scene: &Scene, expected: &str) {
    let shown = picture(scene);
    assert_eq!(shown.trim(), expected.trim(), "\n{shown}");
}

#[test]
fn a_file_that_is_not_found_stands_in_the_last_row() {
    let mut scene = Scene::new();
    let long = "x".repeat(50);
    for (name, row) in [
        ("ann", "no file ann · not stored · /help"),
        (&long, &format!("no file {long}\nnot stored · /help")),
    ] {
        scene.write(&format!("@{name} "));
        let names = vec![name.to_owned()];
        let (looked_for, unknown) = (names.clone(), Vec::new());
        scene.event(Event::FilesFound { looked_for, missing: names, unknown });
        check(&scene, &format!("──\n> @{name} |\n{row}"));
        scene.press(Press::ctrl('u'));
        check(&scene, "──\n> |\nnot stored · /help");
    }
}

#[test]
fn a_chat_that_waits_for_the_person() {
    let mut scene = Scene::new();
    check(&scene, "──\n> |\nnot stored · /help");
    scene.write("one");
    scene.press(Press::ctrl('j'));
    scene.write("two");
    scene.key(Key::Left);
    check(&scene, "──\n> one\n  tw|o\nnot stored · /help");
    scene.press(Press::ctrl('c'));
    check(&scene, "──\n> |\nthe up key brings the text back");
    scene.press(Press::ctrl('c'));
    check(&scene, "──\n> |\npress Ctrl-C again to leave");
}

#[test]
fn an_answer_from_the_first_wait_to_its_end() {
    let mut scene = Scene::new();
    scene.ask("r", "why?");
    scene.after(3200);
    check(&scene, "> why?\n──\n\n⠹ starting · 3 s · Esc stops\n> |\nnot stored · /help");
    scene.ui("r", ChatReasoningSegmentStarted::default());
    let patch = |text: &str| ChatReasoningPatch { text: text.to_owned(), ..Default::default() };
    scene.ui("r", patch("First this.\nThen that."));
    check(
        &scene,
        "> why?\n──\n\n∴ First this.\n  Then that.\n\n⠹ thinking · 3 s · Esc stops\n> |\nnot stored · /help",
    );
    scene.after(2000);
    scene.ui("r", ChatReasoningSegmentFinished::default());
    scene.says("r", "# Because\n\nIt *is");
    let prompt = "> why?\n\n∴ thought for 2 s, 2 lines (Ctrl-O shows it)\n";
    let before = format!("{prompt}\nBecause\n");
    check(
        &scene,
        // A line that comes next could still change what the first one is.
        &format!(
            "{prompt}──\n\nBecause\n\nIt *is\n\n⠹ answering · 5 s · Esc stops\n> |\nnot stored · /help"
        ),
    );
    scene.ui("r", ChatTextSegmentFinished::default());
    scene.done("r", "ok");
    check(&scene, &format!("{before}\nIt *is\n──\n> |\nnot stored · /help"));
    scene.press(Press::ctrl('o'));
    check(
        &scene,
        &format!("{before}\nIt *is\n\n∴ First this.\n  Then that.\n──\n> |\nnot stored · /help"),
    );
}

#[test]
fn tool_calls_and_the_question_about_them() {
    let mut scene = Scene::new();
    scene.ask("r", "time?");
    scene.asks_approval("r", "c");
    scene.write("y");
    let printed = "> time?\n\n! get_time of clock asks to run with {\"zone\":\"UTC\"}\n";
    let head = format!(
        "{printed}──\n⠋ waiting for your decision · 0 s · Esc stops\n? May get_time of clock run with {{\"zone\":\"UTC\"}}?\n"
    );
    check(&scene, &format!("{head}  Ctrl-G to answer\n> y|\nnot stored · /help"));
    scene.press(Press::ctrl('g'));
    let keys = "  y yes · a always here · n no · r no, and why · Esc back";
    check(&scene, &format!("{head}{keys}\n> y|\nnot stored · /help"));
    scene.key(Key::Char('y'));
    let printed = format!("{printed}· get_time: allowed · {{\"zone\":\"UTC\"}}\n");
    scene.runs_tool("r", "c");
    scene.after(1500);
    check(
        &scene,
        &format!(
            "{printed}──\n○ get_time (1 s) {{\"zone\":\"UTC\"}}\n\n⠴ running tools · 1 s · Esc stops\n> y|\nnot stored · /help"
        ),
    );
    scene.returns("r", "c", "1\n2\n3\n4\n5\n");
    scene.after(5000);
    check(
        &scene,
        &format!(
            "{printed}\n● get_time {{\"zone\":\"UTC\"}}  1.5 s\n  1\n  2\n  3\n  … 2 more lines (Ctrl-O shows them)\n──\n\n⠴ running tools · 6 s · Esc stops\n> y|\nnot stored · /help"
        ),
    );
}

#[test]
fn a_question_is_shown_whole_before_it_is_answered_and_never_hidden() {
    for (columns, rows) in [(20, 2), (20, 3), (80, 24)] {
        let mut scene = Scene::new();
        scene.ask("r", "time?");
        scene.state.size = Size { columns, rows };
        let input = format!("{{\"cmd\":\"{} rm -rf\"}}", "echo a; ".repeat(200));
        let (tool_call_id, tool_name) = ("c".to_owned(), "run".to_owned());
        scene.ui(
            "r",
            ToolApprovalRequested { tool_call_id, tool_name, input, ..Default::default() },
        );
        scene.press(Press::ctrl('g'));
        let picture = picture(&scene);
        let live = picture.split("──\n").last().expect("a live region");
        assert!(live.contains("y yes"), "{columns} x {rows}: {picture}");
        assert!(live.lines().count() <= rows, "{picture}");
        assert!(picture.replace("\n", "").contains("rm -rf"), "{picture}");
    }
}

/// With its keys, and a row of the call above it.
#[test]
fn a_question_is_shown_where_all_of_it_has_room() {
    for (columns, rows, expected) in
        [(80, 24, true), (80, 5, true), (80, 4, false), (80, 2, false), (20, 5, false)]
    {
        let mut scene = Scene::new();
        scene.ask("r", "time?");
        scene.event(Event::Resized(Size { columns, rows }));
        let printer = Printer::new(look(Colours::True), true);
        assert!(!shows_question(&scene.state, &printer), "there is none");
        scene.asks_approval("r", "c");
        assert_eq!(shows_question(&scene.state, &printer), expected, "{columns} x {rows}");
    }
}

#[test]
fn what_waits_and_what_it_costs() {
    let mut scene = Scene::new();
    scene.state.status.is_stored = true;
    scene.ask("r", "one");
    let session = TokenCounts {
        input_tokens: 12_345,
        output_tokens: 678,
        cost: "0.12".to_owned(),
        currency: "USD".to_owned(),
        ..Default::default()
    };
    scene.ui("r", UsageTotals { session: Some(session), ..Default::default() });
    scene.write("two");
    scene.key(Key::Enter);
    scene.send("r2");
    let (attempt, attempts_max, wait_ms) = (2, 3, 4000);
    let reason = "overloaded".to_owned();
    scene.ui("r", RetryScheduled { attempt, attempts_max, wait_ms, reason, ..Default::default() });
    check(
        &scene,
        "> one\n──\n\nwaits: two\n⠋ retrying in 4 s (attempt 2 of 3): overloaded · 0 s · Esc …\n> |\n12k in, 678 out · 0.12 USD · /help",
    );
}

/// What a call without counts has cost is in no sum.
#[test]
fn a_cost_that_is_not_known_whole_is_a_lower_bound() {
    let mut scene = Scene::new();
    scene.state.status.is_stored = true;
    let (cost, currency) = ("0.12".to_owned(), "USD".to_owned());
    let (input_tokens, output_tokens, uncounted_calls) = (12, 6, 1);
    let session = TokenCounts {
        input_tokens,
        output_tokens,
        cost,
        currency,
        uncounted_calls,
        ..Default::default()
    };
    scene.ui("r", UsageTotals { session: Some(session), ..Default::default() });
    check(&scene, "──\n> |\n12 in, 6 out · at least 0.12 USD · /help");
}

/// A hint fits its window, and what the conversation costs stays in sight beside it or below.
#[test]
fn a_hint_hides_no_cost() {
    let mut scene = Scene::new();
    scene.state.status.cost = Some("0.12 USD".to_owned());
    scene.press(Press::ctrl('c'));
    check(&scene, "──\n> |\npress Ctrl-C again to leave · 0.12 USD");
    scene.event(Event::Resized(Size { columns: 20, rows: 20 }));
    check(&scene, "──\n> |\npress Ctrl-C again\nto leave\n0.12 USD");
    scene.event(Event::Resized(Size { columns: 20, rows: 2 }));
    check(&scene, "──\n> |\npress Ctrl-C again");
    scene.key(Key::Left);
    check(&scene, "──\n> |\n0.12 USD · not stor…");
}

#[test]
fn lists_and_completions() {
    let mut scene = Scene::new();
    scene.write("/res");
    let line = "  /resume [WORDS]  choose a stored conversation and go on w…";
    check(&scene, &format!("──\n> /res|\n{line}\nnot stored · /help"));
    scene.write("ume");
    scene.key(Key::Enter);
    let choice = |title: &str| Choice {
        value: title.to_owned(),
        title: title.to_owned(),
        detail: "(2 turns)".to_owned(),
    };
    scene.event(Event::Sessions(Ok(vec![choice("ports"), choice("ships")])));
    scene.key(Key::Down);
    let title = "Conversations: type to search, Enter goes on, Esc closes";
    check(
        &scene,
        &format!("──\n{title}\n  ports  (2 turns)\n> ships  (2 turns)\n> |\nnot stored · /help"),
    );
    scene.write("zz");
    check(&scene, "──\nNo conversation matches\n> zz|\nnot stored · /help");
}

#[test]
fn a_small_screen_keeps_what_matters_most() {
    let mut scene = Scene::new();
    scene.ask("r", "a question of many words");
    scene.says("r", "an answer\nof several\nlines");
    scene.write("more words than a row has");
    let at = |scene: &mut Scene, columns, rows| {
        scene.event(Event::Resized(Size { columns, rows }));
        let printer = Printer::new(look(Colours::True), true);
        text(&live(&scene.state, &printer, rows).lines)
    };
    assert_eq!(at(&mut scene, 20, 1), "   row has");
    assert_eq!(at(&mut scene, 20, 2), "   row has\nnot stored · /help");
    assert_eq!(at(&mut scene, 20, 3), "⠋ answering · 0 s ·…\n   row has\nnot stored · /help");
    let taller = "\n\n⠋ answering · 0 s · Es…\n> more words than a ro\n  w has\nnot stored · /help";
    assert_eq!(at(&mut scene, 23, 8), format!("an answer\nof several\nlines{taller}"));
}

#[test]
fn a_long_row_of_a_list_goes_on_below_its_second_column() {
    let lines = [
        "Commands",
        "  /save FILE    writes the last answer to a file",
        "  /mcp restart NAME anew",
    ];
    let piece = Piece::Lines(lines.map(str::to_owned).to_vec());
    let drawn = |columns| {
        let mut printer = Printer::new(look(Colours::True), true);
        text(&printer.lines(&piece, columns, false)).trim_start().to_owned()
    };
    let wide = [
        "Commands",
        "  /save FILE    writes the last",
        "                answer to a file",
        "  /mcp restart NAME anew",
    ];
    assert_eq!(drawn(32), wide.join("\n"));
    let narrow = [
        "Commands",
        "  /save FILE",
        "    writes the",
        "    last answer",
        "    to a file",
        "  /mcp restart",
        "    NAME anew",
    ];
    assert_eq!(drawn(16), narrow.join("\n"));
}

#[test]
fn plain_lines_have_words_for_signs_and_no_colours() {
    let mut printer = Printer::new(look(Colours::Plain), true);
    let pieces = [
        Piece::Prompt {
            text: "hello".to_owned(),
            written: None,
            attachments: vec!["a.png".to_owned()],
            is_echoed: false,
        },
        Piece::Reasoning { text: "hm".to_owned(), seconds: 2 },
        Piece::Note(crate::tui::model::Note::Error, "it failed".to_owned()),
    ];
    let lines: Vec<_> = pieces.iter().flat_map(|it| printer.lines(it, 60, false)).collect();
    let expected =
        "You: hello\n  attached: a.png\n\nReasoning: thought for 2 s, 1 line\n\nError: it failed";
    assert_eq!(text(&lines), expected);
    let styles = lines.iter().flat_map(|line| line.spans.iter().map(|span| span.style));
    assert!(styles.into_iter().all(|style| style == Style::new()));
}

#[test]
fn a_long_prompt_is_shortened_unless_nothing_shows_it_in_full() {
    let prompt: String = (1..=60).map(|number| format!("line {number}\n")).collect();
    let shown = |written: Option<&str>, colours, is_unfolded| {
        let piece = Piece::Prompt {
            text: prompt.clone(),
            written: written.map(str::to_owned),
            attachments: Vec::new(),
            is_echoed: false,
        };
        text(&Printer::new(look(colours), true).lines(&piece, 60, is_unfolded))
    };
    let first: Vec<_> = prompt.lines().take(10).collect();
    let more = "  … 50 more lines (Ctrl-O shows them)";
    let expected = format!("> {}\n{more}", first.join("\n  "));
    assert_eq!(shown(None, Colours::True, false), expected);
    assert_eq!(shown(Some("[pasted 60 lines]"), Colours::True, false), "> [pasted 60 lines]");
    let all = prompt.trim_end().replace('\n', "\n  ");
    assert_eq!(shown(Some("[…]"), Colours::True, true).trim_end(), format!("> {all}"));
    assert!(shown(None, Colours::Plain, false).contains("line 60"));
}

/// A line of code is one line however wide the window is, with nothing before it: so it is copied as it was
/// written.
#[test]
fn code_is_printed_whole_and_without_a_frame() {
    let mut scene = Scene::new();
    scene.ask("r", "code?");
    let code = format!("echo {}", "word ".repeat(60));
    scene.says("r", &format!("Here:\n\n```sh\n{code}\n```\n"));
    scene.ui("r", ChatTextSegmentFinished::default());
    let mut printer = Printer::new(look(Colours::True), true);
    let mut lines = scene.pieces.iter().flat_map(|piece| printer.lines(piece, 40, false));
    assert!(lines.any(|line| line.to_string().trim_end() == code.trim_end()));
}

/// However long a block is that is still open, half of the screen is left for what was printed, and a smaller
/// window does not push it out.
#[test]
fn what_grows_takes_half_of_the_screen() {
    let mut scene = Scene::new();
    scene.ask("r", "a table?");
    let rows: String = (0..200).map(|number| format!("| {number} | row |\n")).collect();
    scene.says("r", &format!("| a | b |\n|---|---|\n{rows}"));
    for rows in 1..40 {
        scene.event(Event::Resized(Size { columns: 60, rows }));
        let mut printer = Printer::new(look(Colours::True), true);
        let live = under_scrollback(&scene.state, &mut printer, &mut Vec::new(), usize::MAX);
        let growing = text(&live.lines).matches("row").count();
        assert!(growing <= (rows / 2).max(1) && live.lines.len() <= rows, "{growing} of {rows}");
    }
}

/// Where there is no room for the arguments beside the sign and the time, no more than a sign stands for them.
#[test]
fn a_long_call_is_short_on_a_narrow_screen() {
    let mut call = ToolCall::new("act".to_owned(), "", Duration::ZERO);
    (call.input, call.result) = ("x".repeat(64 * 1024), "y".repeat(64 * 1024));
    call.state = ToolState::Succeeded(Some(Duration::from_millis(1_200)));
    let piece = Piece::Tool(call);
    for columns in 1..15 {
        let mut printer = Printer::new(look(Colours::True), true);
        let lines = printer.lines(&piece, columns, false);
        assert!(lines.len() <= 10, "{} rows of {columns} columns", lines.len());
        let widest = lines.iter().map(Line::width).max();
        assert!(widest <= Some(columns), "{columns}: {:?}", text(&lines));
    }
}
