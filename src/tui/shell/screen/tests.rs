//! What a terminal shows of an answer that streams while its window is resized.

use super::*;
use crate::protocol::proto::chat::{ChatTextPatch, ChatTextSegmentFinished};
use crate::tui::markdown::{Colours, Theme, Tone};
use crate::tui::model::Event;
use crate::tui::model::tests::Scene;
use crate::tui::terminal::keys::Typed;
use crate::tui::vt::Vt;
use proptest::prelude::*;

fn look() -> Look {
    Look::new(Theme { tone: Tone::Dark, colours: Colours::True })
}

/// A chat in a window. The system learns late of a new size.
struct Window {
    vt: Vt,
    scene: Scene,
    inline: Inline,
    printer: Printer,
    size: Size,
    known: Size,
    words: usize,
    now: Instant,
}

#[derive(Clone, Debug)]
enum Step {
    /// So many words of the answer arrive, after this.
    Words(&'static str, usize),
    Draw,
    Resize(usize, usize),
    Report,
    Pass(u64),
    /// The person pastes so many words, or erases the text.
    Paste(usize),
    Erase,
}

impl Window {
    fn new(columns: usize, rows: usize) -> Self {
        let size = Size { columns, rows };
        let (mut scene, mut inline) = (Scene::new(), Inline::new(true));
        scene.event(Event::Resized(size));
        inline.forget();
        let (vt, printer) = (Vt::new(columns, rows), Printer::new(look(), true));
        let now = Instant::now();
        let mut window = Self { vt, scene, inline, printer, size, known: size, words: 0, now };
        window.draw();
        window.scene.ask("r", "go");
        window.scene.says("r", "");
        window.draw();
        window
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Words(before, count) => {
                let words: Vec<_> = (self.words..self.words + count).map(word).collect();
                self.words += count;
                let text = format!("{before}{}", words.join(" "));
                self.scene.ui("r", ChatTextPatch { text, ..Default::default() });
            }
            Step::Draw => self.draw(),
            Step::Resize(columns, rows) => {
                self.size = Size { columns: *columns, rows: *rows };
                self.vt.resize(*columns, *rows);
            }
            Step::Report => self.known = self.size,
            Step::Pass(millis) => self.now += Duration::from_millis(*millis),
            Step::Paste(words) => {
                self.scene.event(Event::Typed(Typed::Paste("draft ".repeat(*words))));
            }
            Step::Erase => self.scene.state.editor.set(String::new()),
        }
    }

    /// As the shell draws.
    fn draw(&mut self) {
        self.now += Duration::from_millis(33);
        self.read();
        if self.known != self.scene.state.size {
            self.inline.resized(self.now);
            self.scene.event(Event::Resized(self.known));
        }
        let pieces = std::mem::take(&mut self.scene.pieces);
        let state = &mut self.scene.state;
        state.put_back(pieces);
        match self.inline.next(state.size, is_moving(state), self.now) {
            Next::Wait(_) => {}
            Next::Ask(question) => {
                self.vt.write(question);
                self.read_and_draw();
            }
            Next::Picture => {
                let (inline, printer) = (&mut self.inline, &mut self.printer);
                self.vt.write(&inline_picture(inline, printer, state, self.now));
            }
        }
    }

    fn read_and_draw(&mut self) {
        self.read();
        let state = &mut self.scene.state;
        if self.inline.next(state.size, is_moving(state), self.now) == Next::Picture {
            let (inline, printer) = (&mut self.inline, &mut self.printer);
            self.vt.write(&inline_picture(inline, printer, state, self.now));
        }
    }

    /// Reads what the terminal has answered.
    fn read(&mut self) {
        let answers = std::mem::take(&mut self.vt.answers);
        let answers = answers.split('\u{1b}');
        for answer in answers.filter_map(|it| it.strip_prefix('[')?.strip_suffix('R')) {
            let (row, column) = answer.split_once(';').expect("a place");
            let number = |text: &str| text.parse().expect("a number");
            if let Some(size) = self.inline.reported(number(row), number(column), self.now) {
                self.known = size;
                self.scene.event(Event::Resized(size));
            }
        }
    }

    /// The words that the terminal shows once the answer has ended and the window was left alone for a while.
    fn shown(&mut self) -> (String, Vec<usize>) {
        self.scene.ui("r", ChatTextSegmentFinished::default());
        self.scene.done("r", "ok");
        for _ in 0..200 {
            self.step(&Step::Report);
            self.step(&Step::Pass(700));
            self.draw();
        }
        let lines = self.vt.lines();
        let words = lines.split(|char: char| !char.is_alphanumeric());
        let words = words.filter_map(|word| word.strip_prefix('w')?.strip_suffix('x'));
        let words = words.map(|word| word.parse().expect("a number")).collect();
        (lines, words)
    }
}

fn word(number: usize) -> String {
    format!("w{number}x")
}

fn step(
    columns: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
) -> impl Strategy<Value = Step> {
    let before =
        prop_oneof![4 => Just(" "), 1 => Just("\n\n"), 1 => Just("\n- "), 1 => Just("\n\n## ")];
    prop_oneof![
        4 => (before, 1..60_usize).prop_map(|(before, count)| Step::Words(before, count)),
        6 => Just(Step::Draw),
        2 => (columns, rows).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        2 => Just(Step::Report),
        1 => (1..600_u64).prop_map(Step::Pass),
        1 => (1..60_usize).prop_map(Step::Paste),
        1 => Just(Step::Erase),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 100 } else { 2000 }))]

    /// Whatever the draft and however the window is resized, each word of an answer is there once, and in order.
    #[test]
    fn an_answer_is_there_once_after_any_resize(
        steps in proptest::collection::vec(step(14..100, 4..40), 0..60),
    ) {
        let mut window = Window::new(60, 20);
        for step in &steps {
            window.step(step);
        }
        let (lines, words) = window.shown();
        prop_assert_eq!(words, (0..window.words).collect::<Vec<_>>(), "{}", lines);
    }
}
