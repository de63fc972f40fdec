//! The model: what keys and frames do to it, alone and in any order.

use super::*;
use crate::protocol::any::Any;
use crate::protocol::id::{RequestId, SessionId};
use crate::protocol::proto::chat::{
    ChatReasoningPatch, ChatReasoningSegmentFinished, ChatReasoningSegmentStarted, ChatRunStarted,
    ChatTextPatch, ChatTextSegmentFinished, ChatTextSegmentStarted, ChatToolCallRequested,
    ChatToolExecutionStarted, ChatToolResultReady, ChatUserMessageAccepted,
};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::{DoneFrame, ErrorFrame, UiEventFrame};
use crate::protocol::proto::tools::{ToolApprovalRequested, ToolApprovalResolved};
use crate::protocol::wire;
use crate::tui::terminal::keys::{Key, Press, Typed};
use proptest::prelude::*;

pub(crate) const SIZE: Size = Size { columns: 60, rows: 20 };

/// A chat, and what has come of it.
pub(crate) struct Scene {
    pub(crate) state: State,
    pub(crate) actions: Vec<Action>,
    pub(crate) pieces: Vec<Piece>,
    /// The large files that there are.
    pub(crate) large: Vec<Large>,
    /// Each event is followed by a picture.
    pub(crate) draws: bool,
    /// A picture has room for a question.
    pub(crate) shows_question: bool,
    ordinal: u64,
    now: Duration,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let state = State::new(SIZE, History::default());
        Self {
            state,
            actions: Vec::new(),
            pieces: Vec::new(),
            large: Vec::new(),
            draws: true,
            shows_question: true,
            ordinal: 0,
            now: Duration::ZERO,
        }
    }

    pub(crate) fn event(&mut self, event: Event) {
        let mut actions = self.state.update(self.now, event);
        let drafts = actions.extract_if(.., |action| matches!(action, Action::Measure { .. }));
        let drafts: Vec<_> = drafts.collect();
        self.actions.append(&mut actions);
        self.pieces.append(&mut self.state.take_finished());
        if self.draws {
            self.state.was_drawn(self.now, self.shows_question);
        }
        // The shell measures the files at once.
        for measure in drafts {
            let Action::Measure { draft, .. } = measure else { continue };
            self.event(Event::Measured { large: self.large.clone(), draft });
        }
    }

    pub(crate) fn after(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
        self.event(Event::Tick);
    }

    pub(crate) fn press(&mut self, press: Press) {
        self.event(Event::Typed(Typed::Press(press)));
    }

    pub(crate) fn key(&mut self, key: Key) {
        self.press(Press::plain(key));
    }

    pub(crate) fn write(&mut self, text: &str) {
        text.chars().for_each(|char| self.key(Key::Char(char)));
    }

    /// A frame of the request `id`.
    fn frame(&mut self, id: &str, body: Body) {
        let session = SessionId::new("s").expect("an id");
        let frame = wire::frame(&session, RequestId::new(id).as_ref(), body);
        self.event(Event::Frame(Box::new(frame)));
    }

    pub(crate) fn ui(&mut self, id: &str, payload: impl Into<Any>) {
        self.ordinal += 1;
        self.ui_at(self.ordinal, id, payload.into());
    }

    fn ui_at(&mut self, ordinal: u64, id: &str, payload: Any) {
        let name = payload.name().to_owned();
        self.frame(id, Body::UiEvent(UiEventFrame { ordinal, name, payload: Some(payload) }));
    }

    pub(crate) fn done(&mut self, id: &str, status: &str) {
        self.frame(id, Body::Done(DoneFrame { status: status.to_owned() }));
    }

    pub(crate) fn error(&mut self, id: &str, code: &str, message: &str) {
        self.error_with(id, code, message, "");
    }

    pub(crate) fn error_with(&mut self, id: &str, code: &str, message: &str, detail: &str) {
        let [code, message, detail] = [code, message, detail].map(str::to_owned);
        self.frame(id, Body::Error(ErrorFrame { code, message, detail, ..ErrorFrame::default() }));
    }

    /// The prompts that were asked, with what each one joins; they get the ids r1, r2 …
    pub(super) fn asked(&self) -> Vec<(&str, Option<&str>)> {
        let asked = self.actions.iter().filter_map(|action| {
            let Action::Request(Outgoing::Submit { prompt, joins, .. }) = action else {
                return None;
            };
            Some((prompt.as_str(), joins.as_deref()))
        });
        asked.collect()
    }

    /// Sends the prompt that was asked last.
    pub(crate) fn send(&mut self, id: &str) {
        let last = self.actions.iter().rev().find_map(|action| {
            let Action::Request(outgoing @ Outgoing::Submit { .. }) = action else { return None };
            Some(outgoing.clone())
        });
        self.event(Event::Sent(last.expect("a prompt"), id.to_owned()));
    }

    /// Asks `prompt` with the id `id`, as far as the beginning of its run.
    pub(crate) fn ask(&mut self, id: &str, prompt: &str) {
        self.write(prompt);
        self.key(Key::Enter);
        self.send(id);
        self.begins(id, prompt);
    }

    pub(crate) fn begins(&mut self, id: &str, prompt: &str) {
        let text = prompt.to_owned();
        self.ui(id, ChatUserMessageAccepted { text, ..Default::default() });
        self.ui(id, ChatRunStarted::default());
    }

    pub(crate) fn says(&mut self, id: &str, text: &str) {
        self.ui(id, ChatTextSegmentStarted::default());
        self.ui(id, ChatTextPatch { text: text.to_owned(), ..Default::default() });
    }

    pub(crate) fn asks_approval(&mut self, id: &str, call: &str) {
        let (tool_call_id, tool_name) = (call.to_owned(), "get_time".to_owned());
        let input = r#"{"zone":"UTC"}"#.to_owned();
        let requested = ChatToolCallRequested {
            tool_call_id: tool_call_id.clone(),
            tool_name: tool_name.clone(),
            input: input.clone(),
            ..Default::default()
        };
        self.ui(id, requested);
        let server = "clock".to_owned();
        let asked =
            ToolApprovalRequested { tool_call_id, tool_name, server, input, ..Default::default() };
        self.ui(id, asked);
    }

    pub(crate) fn runs_tool(&mut self, id: &str, call: &str) {
        let tool_call_id = call.to_owned();
        self.ui(id, ChatToolExecutionStarted { tool_call_id, ..Default::default() });
    }

    pub(crate) fn returns(&mut self, id: &str, call: &str, result: &str) {
        let (tool_call_id, result) = (call.to_owned(), result.to_owned());
        self.ui(id, ChatToolResultReady { tool_call_id, result, ..Default::default() });
    }

    pub(super) fn cancelled(&self) -> Vec<Option<&str>> {
        let cancelled = self.actions.iter().filter_map(|action| {
            let Action::Request(Outgoing::Cancel { target }) = action else { return None };
            Some(target.as_deref())
        });
        cancelled.collect()
    }
}

#[test]
fn a_prompt_is_asked_and_its_answer_is_printed_once() {
    let mut scene = Scene::new();
    scene.ask("r1", "hello");
    assert_eq!(scene.asked(), [("hello", None)]);
    assert!(scene.state.editor.is_empty() && scene.state.waiting.is_empty());
    scene.says("r1", "one\n\ntwo");
    scene.ui("r1", ChatTextSegmentFinished::default());
    scene.done("r1", "ok");
    assert!(scene.state.run.is_none());
    let blocks = scene.pieces.iter().filter(|piece| matches!(piece, Piece::Block(_)));
    assert_eq!(blocks.count(), 2);
    assert_eq!(scene.state.log.last_answer().as_deref(), Some("one\n\ntwo"));
}

#[test]
fn a_prompt_waits_joins_or_is_taken_back() {
    let mut scene = Scene::new();
    scene.ask("r1", "first");
    scene.write("second");
    scene.key(Key::Enter);
    scene.send("r2");
    scene.write("third");
    scene.press(Press::ctrl('s'));
    scene.send("r3");
    assert_eq!(scene.asked()[1..], [("second", None), ("third", Some("r1"))]);
    assert_eq!(scene.state.waiting.len(), 2);
    scene.press(Press { alt: true, ..Press::plain(Key::Up) });
    assert_eq!((scene.state.editor.text(), scene.cancelled()), ("third", vec![Some("r3")]));
    scene.key(Key::Esc);
    assert_eq!(scene.cancelled(), [Some("r3"), Some("r2"), Some("r1")]);
    assert_eq!(scene.state.editor.text(), "second\nthird");
    assert!(scene.state.waiting.is_empty());
}

#[test]
fn prompts_come_back_in_their_order() {
    let mut scene = Scene::new();
    scene.ask("r1", "first");
    for (id, prompt) in [("r2", "second"), ("r3", "third")] {
        scene.write(prompt);
        scene.key(Key::Enter);
        scene.send(id);
    }
    scene.write("draft");
    scene.key(Key::Esc);
    assert_eq!(scene.state.editor.text(), "second\nthird\ndraft");
}

#[test]
fn a_prompt_that_is_refused_comes_back() {
    let mut scene = Scene::new();
    scene.write("hello");
    scene.key(Key::Enter);
    scene.send("r1");
    scene.error("r1", "invalid_attachment", "it is too large");
    scene.done("r1", "failed");
    assert_eq!(scene.state.editor.text(), "hello");
    assert!(scene.pieces.contains(&Piece::Note(Note::Error, "it is too large".to_owned())));
}

/// What was typed before the question, or while it is there, is no answer to it.
#[test]
fn only_a_key_of_its_own_answers_a_question() {
    let mut scene = Scene::new();
    scene.ask("r1", "time?");
    scene.write("ya");
    scene.asks_approval("r1", "c1");
    scene.write("yn");
    scene.event(Event::Typed(Typed::Paste("y".to_owned())));
    let approved = |scene: &Scene| {
        let approve =
            |action: &&Action| matches!(action, Action::Request(Outgoing::Approve { .. }));
        scene.actions.iter().filter(approve).count()
    };
    assert_eq!((approved(&scene), scene.state.editor.text()), (0, "yayny"));
    scene.press(Press::ctrl('g'));
    scene.write("xz");
    assert_eq!((approved(&scene), scene.state.editor.text()), (0, "yayny"));
    scene.write("y");
    assert_eq!((approved(&scene), scene.state.approvals.len()), (1, 0));
    // The next call needs the key again.
    scene.asks_approval("r1", "c2");
    scene.write("y");
    assert_eq!((approved(&scene), scene.state.editor.text()), (1, "yaynyy"));
    // A question that is resolved elsewhere takes no key any more.
    scene.press(Press::ctrl('g'));
    let tool_call_id = "c2".to_owned();
    scene.ui("r1", ToolApprovalResolved { tool_call_id, ..Default::default() });
    scene.write("n");
    assert_eq!((approved(&scene), scene.state.editor.text()), (1, "yaynyyn"));
}

#[test]
fn ctrl_d_leaves_only_an_empty_line() {
    let mut scene = Scene::new();
    scene.write("ab");
    scene.key(Key::Left);
    scene.press(Press::ctrl('d'));
    assert_eq!(scene.state.editor.text(), "a");
    scene.key(Key::Backspace);
    scene.press(Press::ctrl('d'));
    assert_eq!(scene.actions, [Action::Quit]);
}

/// In a shell, Ctrl-W goes to white space, and Alt-Backspace by words.
#[test]
fn words_are_cut_as_in_a_shell() {
    let mut scene = Scene::new();
    scene.write("see src/main.rs");
    scene.press(Press { alt: true, ..Press::plain(Key::Backspace) });
    assert_eq!(scene.state.editor.text(), "see src/main.");
    scene.press(Press::ctrl('w'));
    assert_eq!(scene.state.editor.text(), "see ");
    scene.press(Press::ctrl('y'));
    assert_eq!(scene.state.editor.text(), "see src/main.rs");
}

#[test]
fn commands_are_completed_and_carried_out() {
    let mut scene = Scene::new();
    scene.write("/mo");
    assert_eq!(scene.state.candidates.as_ref().map(|it| it.words.len()), Some(1));
    scene.key(Key::Tab);
    assert_eq!(scene.state.editor.text(), "/model ");
    scene.write("gpt-9");
    scene.key(Key::Enter);
    let (profile, model) = (String::new(), "gpt-9".to_owned());
    let switch = Action::Request(Outgoing::SwitchModel { profile, model });
    assert_eq!(scene.actions, [switch, Action::ListModels]);
    scene.write("/modle x");
    scene.key(Key::Enter);
    assert_eq!(scene.state.editor.text(), "/modle x", "a wrong command can be corrected");
    scene.event(Event::Edited(Ok("see @sr".to_owned())));
    scene.key(Key::Tab);
    let (start, part) = (5, "sr".to_owned());
    assert_eq!(
        scene.actions.last(),
        Some(&Action::ListFiles { start, part: part.clone(), completes: true })
    );
    let found = Candidates::new(start, part, vec!["src/".to_owned()]);
    scene.event(Event::Files { found, completes: true });
    assert_eq!(scene.state.editor.text(), "see @src/");
}

#[test]
fn another_conversation_begins_only_when_the_model_is_silent() {
    let mut scene = Scene::new();
    scene.ask("r1", "hello");
    scene.write("/new");
    scene.key(Key::Enter);
    assert!(!scene.actions.iter().any(|action| matches!(action, Action::Open(_))));
    assert_eq!(scene.state.editor.text(), "/new", "what follows is not asked in this conversation");
    scene.done("r1", "ok");
    scene.key(Key::Enter);
    scene.write("kept");
    scene.event(Event::Opened(String::new()));
    assert_eq!(scene.actions.last(), Some(&Action::Open(Opening::New { system: None })));
    assert_eq!(scene.state.editor.text(), "kept");
    // Its ordinals begin at 1 again.
    scene.ui_at(1, "r1", ChatUserMessageAccepted::default().into());
    assert!(matches!(scene.pieces.last(), Some(Piece::Prompt { .. })));
}

/// Something that happens in the random conversation.
#[derive(Clone, Debug)]
enum Happening {
    Word,
    Press(Press),
    Paste(String),
    Resize(usize, usize),
    Wait(u64),
    /// A frame of a kind, for one of a few requests; perhaps it is given again.
    Frame(u8, u8, bool),
}

fn happening() -> impl Strategy<Value = Happening> {
    let keys = vec![
        Key::Enter,
        Key::Esc,
        Key::Tab,
        Key::Up,
        Key::Down,
        Key::Left,
        Key::Right,
        Key::Home,
        Key::End,
        Key::PageUp,
        Key::Function(1),
        Key::Char('y'),
    ];
    let letters = prop::sample::select("abcefgjlmnoprstxyz".chars().collect::<Vec<_>>());
    prop_oneof![
        3 => Just(Happening::Word),
        3 => prop::sample::select(keys).prop_map(|key| Happening::Press(Press::plain(key))),
        3 => letters.prop_map(|letter| Happening::Press(Press::ctrl(letter))),
        1 => "\\PC{0,12}".prop_map(Happening::Paste),
        1 => (0usize..90, 0usize..30).prop_map(|(columns, rows)| Happening::Resize(columns, rows)),
        1 => (0u64..3000).prop_map(Happening::Wait),
        8 => (0u8..14, 0u8..4, any::<bool>())
            .prop_map(|(kind, request, again)| Happening::Frame(kind, request, again)),
    ]
}

/// The payload of this kind, or the end of a request.
fn payload(kind: u8, number: u64) -> Option<Any> {
    let tool_call_id = format!("c{}", number % 3);
    let text = format!("# piece {number}\n\n- of *text*");
    Some(match kind {
        0 => ChatUserMessageAccepted { text, ..Default::default() }.into(),
        1 => ChatRunStarted::default().into(),
        2 => ChatTextSegmentStarted::default().into(),
        3 | 4 => ChatTextPatch { text, ..Default::default() }.into(),
        5 => ChatTextSegmentFinished::default().into(),
        6 => ChatReasoningSegmentStarted::default().into(),
        7 => ChatReasoningPatch { text, ..Default::default() }.into(),
        8 => ChatReasoningSegmentFinished::default().into(),
        9 => ChatToolCallRequested { tool_call_id, ..Default::default() }.into(),
        10 => ToolApprovalRequested { tool_call_id, ..Default::default() }.into(),
        11 => ToolApprovalResolved { tool_call_id, ..Default::default() }.into(),
        12 => ChatToolResultReady { tool_call_id, ..Default::default() }.into(),
        _ => return None,
    })
}

/// Plays `happenings`; frames that are to be given again are, if `repeats`. Returns all words that were
/// typed.
fn play(scene: &mut Scene, happenings: &[Happening], repeats: bool) -> Vec<String> {
    let mut words = Vec::new();
    let mut sent = 0;
    for happening in happenings {
        match happening {
            Happening::Word if scene.state.picker.is_none() && !scene.state.asking.has_letters => {
                let word = format!("w{}ord", words.len());
                // The key after Ctrl-X is no text.
                scene.state.is_prefixed = false;
                scene.write(&word);
                words.push(word);
            }
            Happening::Word => {}
            Happening::Press(press) => scene.press(*press),
            Happening::Paste(text) => scene.event(Event::Typed(Typed::Paste(text.clone()))),
            Happening::Resize(columns, rows) => {
                scene.event(Event::Resized(Size { columns: *columns, rows: *rows }));
            }
            Happening::Wait(millis) => scene.after(*millis),
            Happening::Frame(kind, request, again) => {
                let id = format!("r{request}");
                match payload(*kind, scene.ordinal) {
                    None => scene.done(&id, if *again { "ok" } else { "failed" }),
                    Some(payload) => {
                        scene.ordinal += 1;
                        let times = if *again && repeats { 2 } else { 1 };
                        for _ in 0..times {
                            scene.ui_at(scene.ordinal, &id, payload.clone());
                        }
                    }
                }
            }
        }
        // The shell makes the requests.
        let asked = scene.asked().len();
        while sent < asked {
            let (prompt, joins) = scene.asked()[sent];
            let (prompt, joins) = (prompt.to_owned(), joins.map(str::to_owned));
            let source = PromptSource::Written { line: prompt.clone() };
            let (attached, outputs) = (Vec::new(), Vec::new());
            let choice = None;
            let outgoing = Outgoing::Submit { prompt, joins, source, attached, outputs, choice };
            scene.event(Event::Sent(outgoing, format!("r{sent}")));
            sent += 1;
        }
    }
    words
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 200 } else { 2000 }))]

    /// Whatever happens, each word that was typed is still written, was asked, or can be had back.
    #[test]
    fn no_text_is_lost(happenings in prop::collection::vec(happening(), 0..60)) {
        // Keys that delete are meant to lose text.
        let deletes = |happening: &Happening| matches!(
            happening,
            Happening::Press(Press { key: Key::Char('h' | 'k' | 'u' | 'w' | 'd'), ctrl: true, .. })
        );
        let kept: Vec<_> = happenings.into_iter().filter(|it| !deletes(it)).collect();
        let mut scene = Scene::new();
        let words = play(&mut scene, &kept, false);
        let mut places = vec![scene.state.editor.text().to_owned()];
        places.extend(scene.asked().into_iter().map(|(prompt, _)| prompt.to_owned()));
        places.extend(scene.state.history.newest_first().map(str::to_owned));
        // Back to where the person was before looking at older prompts.
        while let Some(text) = scene.state.history.newer() {
            places.push(text);
        }
        let letters: String = places.join("\n").chars().filter(|char| !char.is_whitespace()).collect();
        for word in words {
            // Another key may have written into a word; its letters are there in their order.
            let mut rest = letters.chars();
            prop_assert!(word.chars().all(|char| rest.any(|other| other == char)), "{word} {letters}");
        }
    }

    /// A frame that comes twice is shown once.
    #[test]
    fn no_frame_is_shown_twice(happenings in prop::collection::vec(happening(), 0..60)) {
        let (mut once, mut twice) = (Scene::new(), Scene::new());
        play(&mut once, &happenings, false);
        play(&mut twice, &happenings, true);
        prop_assert_eq!(once.pieces, twice.pieces);
    }

    /// Every state can be drawn, at any size, and fits the screen.
    #[test]
    fn every_state_can_be_drawn(happenings in prop::collection::vec(happening(), 0..60)) {
        use crate::tui::view::{Look, Printer, live};
        use crate::tui::{Colours, Theme, Tone};
        let look = Look::new(Theme { tone: Tone::Dark, colours: Colours::True, has_links: false });
        let (mut scene, mut printer) = (Scene::new(), Printer::new(look, false));
        for happening in happenings {
            play(&mut scene, &[happening], false);
            let Size { columns, rows } = scene.state.size;
            for piece in std::mem::take(&mut scene.pieces) {
                printer.lines(&piece, columns, scene.state.unfolded.all);
            }
            let live = live(&scene.state, &printer, rows);
            prop_assert!(live.lines.len() <= rows.max(1), "{} of {rows}", live.lines.len());
            prop_assert!(live.row < live.lines.len() && live.column < columns.max(1));
            // U+17D8 has 3 columns, which is the most.
            let wide = live.lines.iter().find(|line| line.width() > columns.max(3));
            prop_assert!(wide.is_none(), "{columns} {wide:?}");
        }
    }
}

#[test]
fn the_word_for_a_decision_is_no_prompt_while_a_question_is_open() {
    let mut scene = Scene::new();
    scene.ask("r", "what time is it?");
    scene.asks_approval("r", "c");
    for word in ["y", "No", "a "] {
        scene.write(word);
        scene.key(Key::Enter);
        assert!(scene.state.editor.is_empty());
        let hint = "nothing was sent; Ctrl-G, then y, a or n answers the question";
        assert_eq!(scene.state.shown_hint(), Some(hint));
    }
    assert_eq!((scene.asked().len(), scene.state.approvals.len()), (1, 1));
    scene.write("yes, why not");
    assert_eq!(scene.state.shown_hint(), None, "it goes with the next key");
    scene.key(Key::Enter);
    assert_eq!(scene.asked()[1..], [("yes, why not", None)]);
    scene.press(Press::ctrl('g'));
    scene.write("n");
    let answered = r#"get_time: denied · {"zone":"UTC"}"#.to_owned();
    assert!(scene.pieces.contains(&Piece::Note(Note::Information, answered)));
}
