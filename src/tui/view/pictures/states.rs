//! The states.

use super::*;
use crate::protocol::constants::code;
use crate::protocol::proto::chat::{
    ChatProviderCallStarted, ChatReasoningPatch, ChatReasoningSegmentFinished,
    ChatReasoningSegmentStarted, ChatTextPatch, ChatTextSegmentFinished, ChatToolCallRequested,
    ChatToolResultReady,
};
use crate::protocol::proto::provider::RetryScheduled;
use crate::protocol::proto::session::{TokenCounts, UsageTotals};
use crate::tui::model::Choice;
use crate::tui::terminal::keys::{Key, Press};

/// A picture under the scrollback, in the usual colours.
#[track_caller]
fn inline(name: &str, play: impl Fn(&mut Scene)) {
    check(name, DARK, false, |picture| play(&mut picture.scene));
}

fn reasons(scene: &mut Scene, text: &str) {
    scene.ui("r", ChatReasoningSegmentStarted::default());
    scene.ui("r", ChatReasoningPatch { text: text.to_owned(), ..Default::default() });
}

fn ends_segment(scene: &mut Scene) {
    scene.ui("r", ChatTextSegmentFinished::default());
}

const ANSWER: &str = "# Listing ports\n\nUse *one* of these, both of which list **all** sockets:\n\n\
    - `ss` on Linux\n- `lsof` on [macOS](https://example.org/lsof)\n\n| name | system |\n|---|---|\n\
    | ss | Linux |\n| lsof | 多くのシステム |\n\n```sh\nss -tlnp # all\n```\n\n> said by a friend\n\n";

#[test]
fn waiting_for_the_person() {
    inline("empty", |_| {});
    inline("several_lines", |scene| {
        scene.write("What is wrong with these two lines, which are longer than the window?");
        scene.press(Press::ctrl('j'));
        scene.write("日本語 and עברית");
        scene.key(Key::Left);
    });
    inline("completion", |scene| scene.write("/re"));
    inline("leaving", |scene| scene.press(Press::ctrl('c')));
    inline("help", |scene| scene.key(Key::Function(1)));
    inline("cost", |scene| {
        scene.state.status.is_stored = true;
        let (cost, currency) = ("0.12".to_owned(), "USD".to_owned());
        let (input_tokens, output_tokens) = (12_345, 678);
        let session =
            TokenCounts { input_tokens, output_tokens, cost, currency, ..Default::default() };
        scene.ui("r", UsageTotals { session: Some(session), ..Default::default() });
    });
}

#[test]
fn an_answer() {
    let asks = |scene: &mut Scene| scene.ask("r", "How do I list the ports that are open?");
    inline("starting", |scene| {
        asks(scene);
        scene.after(1200);
    });
    inline("waiting_for_the_model", |scene| {
        asks(scene);
        scene.ui("r", ChatProviderCallStarted::default());
        scene.after(3200);
    });
    inline("streaming", |scene| {
        asks(scene);
        scene.says("r", &format!("{ANSWER}The last paragraph is *not finished"));
        scene.after(12_300);
    });
    inline("finished", |scene| {
        asks(scene);
        scene.says("r", ANSWER);
        ends_segment(scene);
        scene.done("r", "ok");
    });
    inline("cancelled", |scene| {
        asks(scene);
        scene.says("r", "The beginning of an answer");
        scene.write("next");
        scene.key(Key::Enter);
        scene.send("r2");
        scene.key(Key::Esc);
        scene.done("r2", "stopped");
        ends_segment(scene);
        scene.done("r", "stopped");
    });
    inline("stopping", |scene| {
        asks(scene);
        scene.key(Key::Esc);
        scene.after(5000);
    });
    inline("error", |scene| {
        asks(scene);
        scene.error("r", code::RUN_FAILED, "the provider refused the key");
        scene.done("r", "failed");
    });
    inline("retry", |scene| {
        asks(scene);
        let (attempt, attempts_max, wait_ms) = (2, 3, 4000);
        let reason = "the provider is overloaded".to_owned();
        let retry = RetryScheduled { attempt, attempts_max, wait_ms, reason, ..Default::default() };
        scene.ui("r", retry);
        scene.after(1000);
    });
    inline("queue_and_steering", |scene| {
        asks(scene);
        scene.says("r", "An answer.");
        for (id, prompt, joins) in
            [("r2", "the next question", false), ("r3", "and in short", true)]
        {
            scene.write(prompt);
            scene.press(if joins { Press::ctrl('s') } else { Press::plain(Key::Enter) });
            scene.send(id);
        }
    });
}

const THOUGHT: &str =
    "They want a list of ports.\nOn Linux that is ss, on macOS lsof.\n日本語で考える。";

#[test]
fn reasoning() {
    let thinks = |scene: &mut Scene| {
        scene.ask("r", "why?");
        reasons(scene, THOUGHT);
        scene.after(2000);
    };
    let ends = |scene: &mut Scene| {
        scene.ui("r", ChatReasoningSegmentFinished::default());
        scene.says("r", "Because.");
        ends_segment(scene);
        scene.done("r", "ok");
    };
    inline("reasoning_streams", thinks);
    inline("reasoning_folded", |scene| {
        thinks(scene);
        ends(scene);
    });
    inline("reasoning_unfolded_later", |scene| {
        thinks(scene);
        ends(scene);
        scene.press(Press::ctrl('o'));
    });
    inline("reasoning_unfolded", |scene| {
        scene.press(Press::ctrl('t'));
        thinks(scene);
        ends(scene);
        scene.after(5000);
    });
}

fn requests(scene: &mut Scene) {
    let (tool_call_id, tool_name) = ("c".to_owned(), "list_sockets".to_owned());
    let input = r#"{"filter":"state = LISTEN","columns":["port","process"]}"#.to_owned();
    let call = ChatToolCallRequested { tool_call_id, tool_name, input, ..Default::default() };
    scene.ui("r", call);
}

fn fails(scene: &mut Scene) {
    let (tool_call_id, status) = ("c".to_owned(), "error".to_owned());
    let result = "no such file: /proc/net/tcp\nis this Linux?".to_owned();
    scene.ui("r", ChatToolResultReady { tool_call_id, result, status, ..Default::default() });
}

#[test]
fn tool_calls() {
    let result: String = (1..8).map(|port| format!("{port}22 sshd of somebody\n")).collect();
    let runs = |scene: &mut Scene| {
        scene.ask("r", "ports?");
        requests(scene);
        scene.runs_tool("r", "c");
        scene.after(1500);
    };
    inline("tool_waits", |scene| {
        scene.ask("r", "ports?");
        requests(scene);
    });
    inline("tool_runs", runs);
    let ends = |scene: &mut Scene, name: &str| match name {
        "done" => scene.returns("r", "c", &result),
        _ => fails(scene),
    };
    for name in ["done", "failed"] {
        inline(&format!("tool_{name}_folded"), |scene| {
            runs(scene);
            ends(scene, name);
        });
        inline(&format!("tool_{name}_unfolded"), |scene| {
            scene.press(Press::ctrl('t'));
            runs(scene);
            ends(scene, name);
            scene.after(5000);
        });
    }
}

#[test]
fn questions_about_tool_calls() {
    let asks = |scene: &mut Scene| {
        scene.ask("r", "time?");
        scene.asks_approval("r", "c");
        scene.write("yes");
    };
    inline("approval", asks);
    inline("approval_with_keys", |scene| {
        asks(scene);
        scene.press(Press::ctrl('g'));
    });
    inline("two_approvals", |scene| {
        asks(scene);
        scene.asks_approval("r", "d");
    });
}

#[test]
fn lists() {
    let choice = |title: &str, detail: &str| Choice {
        value: title.to_owned(),
        title: title.to_owned(),
        detail: detail.to_owned(),
    };
    let opens = |scene: &mut Scene| {
        scene.write("/resume");
        scene.key(Key::Enter);
        let choices = vec![
            choice("How do I list ports?", "(2 turns, 5 min ago, /home/me/servers)"),
            choice("船について", "(1 turn, 3 h ago, /home/me)"),
            choice("Ports of ships", "(12 turns, 4 d ago, /home/me/sea)"),
        ];
        scene.event(Event::Sessions(Ok(choices)));
        scene.key(Key::Down);
    };
    inline("resume", opens);
    inline("resume_search", |scene| {
        opens(scene);
        scene.write("port");
    });
    inline("resume_nothing_matches", |scene| {
        opens(scene);
        scene.write("planes");
    });
    inline("prompt_search", |scene| {
        for prompt in ["first", "second of several"] {
            scene.ask("r", prompt);
            scene.done("r", "ok");
        }
        scene.press(Press::ctrl('r'));
    });
}

/// Something of everything.
fn everything(scene: &mut Scene) {
    scene.ask("r", "ports?");
    reasons(scene, THOUGHT);
    scene.ui("r", ChatReasoningSegmentFinished::default());
    requests(scene);
    fails(scene);
    scene.says("r", ANSWER);
    ends_segment(scene);
    scene.error("r", code::RUN_FAILED, "the provider has gone");
    scene.done("r", "failed");
    scene.ask("r2", "again");
    scene.asks_approval("r2", "d");
    scene.write("a draft");
}

#[test]
fn themes() {
    let all = [
        ("dark", Tone::Dark, Colours::Ansi16),
        ("light", Tone::Light, Colours::Ansi16),
        ("dark_256", Tone::Dark, Colours::Indexed256),
        ("light_true", Tone::Light, Colours::True),
        ("no_colour", Tone::Dark, Colours::Attributes),
    ];
    for (name, tone, colours) in all {
        let theme = Theme { tone, colours, has_links: false };
        check(&format!("theme_{name}"), theme, false, |picture| everything(&mut picture.scene));
    }
}

#[test]
fn the_whole_screen() {
    let long: String = (1..60).map(|number| format!("paragraph {number} of many\n\n")).collect();
    let asks = |picture: &mut Picture| {
        picture.scene.ask("r", "Say much.");
        picture.scene.says("r", &long);
        picture.draw();
    };
    check("full_empty", DARK, true, |_| {});
    check("full_streaming", DARK, true, asks);
    check("full_scrolled", DARK, true, |picture| {
        asks(picture);
        for scroll in [Scroll::PageUp, Scroll::PageUp] {
            picture.scroll(scroll);
        }
        // What comes meanwhile moves nothing.
        let text = "more of the answer\n\nand more\n\n".to_owned();
        picture.scene.ui("r", ChatTextPatch { text, ..Default::default() });
        picture.draw();
    });
    check("full_everything", DARK, true, |picture| everything(&mut picture.scene));
}
