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
    Look::new(Theme { tone: Tone::Dark, colours: Colours::True, has_links: false })
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
    has_ended: bool,
    /// What has not arrived at the terminal.
    written: Vec<String>,
    now: Instant,
}

#[derive(Clone, Debug)]
enum Step {
    /// So many words of the answer arrive, after this.
    Words(&'static str, usize),
    Draw,
    /// The shell draws; what it writes arrives with the next step of this kind or [`Self::Draw`].
    Send,
    Resize(usize, usize),
    Report,
    Pass(u64),
    /// The answer ends.
    End,
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
        let (known, words, has_ended, written) = (size, 0, false, Vec::new());
        let mut window =
            Self { vt, scene, inline, printer, size, known, words, has_ended, written, now };
        window.draw();
        window.scene.ask("r", "go");
        window.scene.says("r", "");
        window.draw();
        window
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Words(..) if self.has_ended => {}
            Step::Words(before, count) => {
                let words: Vec<_> = (self.words..self.words + count).map(word).collect();
                self.words += count;
                let text = format!("{before}{}", words.join(" "));
                self.scene.ui("r", ChatTextPatch { text, ..Default::default() });
            }
            Step::Draw => self.draw(),
            Step::Send => {
                self.arrive();
                self.now += Duration::from_millis(5);
                self.send();
            }
            Step::Resize(columns, rows) => {
                self.size = Size { columns: *columns, rows: *rows };
                self.vt.resize(*columns, *rows);
            }
            Step::Report => self.known = self.size,
            Step::Pass(millis) => self.now += Duration::from_millis(*millis),
            Step::End => self.end(),
            // While nothing else moves, a key is drawn at once, whatever the size is.
            Step::Paste(_) | Step::Erase if self.has_ended => {}
            Step::Paste(words) => {
                self.scene.event(Event::Typed(Typed::Paste("draft ".repeat(*words))));
            }
            Step::Erase => self.scene.state.editor.set(String::new()),
        }
    }

    /// As the shell draws; what it writes arrives at once.
    fn draw(&mut self) {
        self.now += Duration::from_millis(33);
        while self.send() {
            self.arrive();
        }
        self.arrive();
    }

    /// As the shell draws; what it writes has not arrived yet. Gives whether it waits for an answer.
    fn send(&mut self) -> bool {
        self.read();
        if self.known != self.scene.state.size {
            self.inline.resized(self.now);
            self.scene.event(Event::Resized(self.known));
        }
        let pieces = std::mem::take(&mut self.scene.pieces);
        let state = &mut self.scene.state;
        state.put_back(pieces);
        match self.inline.next(state.size, prints(state), self.now) {
            Next::Wait(_) => false,
            Next::Ask(question) => {
                self.written.push(question.to_owned());
                true
            }
            Next::Erase => {
                let size = state.size;
                let (inline, printer) = (&mut self.inline, &mut self.printer);
                self.written.push(inline_erasure(inline, printer, size, self.now));
                true
            }
            Next::Picture => {
                let (inline, printer) = (&mut self.inline, &mut self.printer);
                self.written.push(inline_picture(inline, printer, state, self.now));
                false
            }
        }
    }

    /// What was written arrives at the terminal.
    fn arrive(&mut self) {
        for text in std::mem::take(&mut self.written) {
            self.vt.write(&text);
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

    fn end(&mut self) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.scene.ui("r", ChatTextSegmentFinished::default());
            self.scene.done("r", "ok");
        }
    }

    /// The words that the terminal shows once the answer has ended and the window was left alone for a while.
    fn shown(&mut self) -> (String, Vec<usize>) {
        self.end();
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

fn steps(
    columns: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
    sends: u32,
) -> impl Strategy<Value = Vec<Step>> {
    let before =
        prop_oneof![4 => Just(" "), 1 => Just("\n\n"), 1 => Just("\n- "), 1 => Just("\n\n## ")];
    let step = prop_oneof![
        4 => (before, 1..60_usize).prop_map(|(before, count)| Step::Words(before, count)),
        6 => Just(Step::Draw),
        sends => Just(Step::Send),
        2 => (columns, rows).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        2 => Just(Step::Report),
        1 => (1..600_u64).prop_map(Step::Pass),
        1 => (1..60_usize).prop_map(Step::Paste),
        1 => Just(Step::Erase),
        sends / 6 => Just(Step::End),
    ];
    proptest::collection::vec(step, 0..60)
}

/// The words that are there after these steps, and all that there are, with what the terminal shows.
fn words(steps: &[Step]) -> (Vec<usize>, Vec<usize>, String) {
    let mut window = Window::new(60, 20);
    for step in steps {
        window.step(step);
    }
    let (lines, words) = window.shown();
    (words, (0..window.words).collect(), lines)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 100 } else { 2000 }))]

    /// Whatever the draft and however the window is resized, each word of an answer is there once, and in order.
    #[test]
    fn an_answer_is_there_once_after_any_resize(steps in steps(14..100, 4..40, 0)) {
        let (words, all, lines) = words(&steps);
        prop_assert_eq!(words, all, "{}", lines);
    }

    /// No word is lost if the window has another size when what the chat has written for the one before arrives.
    #[test]
    fn no_word_is_lost_by_a_resize_at_any_moment(steps in steps(14..140, 4..45, 6)) {
        let (missing, lines) = missing(&steps);
        prop_assert_eq!(missing, None, "{}", lines);
    }
}

/// The first word that is not shown after the ones before it. One that the terminal has broken over two rows is
/// there, also if its second row was written again.
fn missing(steps: &[Step]) -> (Option<usize>, String) {
    let (_, all, lines) = words(steps);
    let shown: String = lines.chars().filter(|char| !char.is_whitespace()).collect();
    let mut rest = shown.as_str();
    let missing = all.into_iter().find(|number| match rest.split_once(&word(*number)) {
        Some((_, after)) => {
            rest = after;
            false
        }
        None => true,
    });
    (missing, lines)
}

/// A row that the terminal has broken is rewritten from its second half on, as the window has become lower.
#[test]
fn a_word_that_is_broken_over_two_rows_is_there() {
    use Step::{Draw, Pass, Resize, Send, Words};
    let narrow = [Words(" ", 27), Send, Draw, Resize(14, 15), Draw, Draw, Pass(295)];
    let low = [Send, Draw, Resize(16, 5), Draw];
    let (missing, lines) = missing(&[&narrow[..], &low].concat());
    assert_eq!(missing, None, "{lines}");
}

/// The chat has measured its draft in a narrow window and goes up as many rows, but the window is wide again by then:
/// there, answers stand in these rows.
#[test]
fn a_wider_window_on_the_way_of_a_picture_loses_and_doubles_nothing() {
    for (narrow, wide) in [(30, 100), (16, 140), (40, 60)] {
        let mut window = Window::new(wide, 30);
        let mut step = |steps: &[Step]| steps.iter().for_each(|step| window.step(step));
        for _ in 0..12 {
            step(&[Step::Words("\n\n", 50), Step::Draw, Step::Draw]);
        }
        step(&[Step::Paste(60), Step::Draw, Step::Draw]);
        for _ in 0..3 {
            step(&[Step::Resize(narrow, 30), Step::Report, Step::Draw, Step::Pass(400)]);
            step(&[Step::Send, Step::Send, Step::Resize(wide, 30), Step::Draw, Step::Draw]);
            step(&[Step::Report, Step::Draw, Step::Pass(400), Step::Draw, Step::Words(" ", 9)]);
        }
        let (lines, words) = window.shown();
        assert_eq!(words, (0..window.words).collect::<Vec<_>>(), "{narrow}: {lines}");
    }
}

/// The window has another size when the picture with the end of an answer arrives, after which nothing moves any more.
#[test]
fn a_narrower_window_on_the_way_of_the_last_picture_loses_no_word() {
    use Step::{Draw, End, Pass, Paste, Report, Resize, Send, Words};
    for draft in [1, 60, 120] {
        for new in [(44, 24), (30, 24), (60, 12), (120, 24)] {
            let all = [Words("\n\n", 90), Draw, Draw, Paste(draft), Draw, Draw, Words("\n- ", 99)];
            let end = [End, Send, Resize(new.0, new.1), Draw, Report, Draw, Pass(400), Draw];
            let (missing, lines) = missing(&[&all[..], &end].concat());
            assert_eq!(missing, None, "{draft}, {new:?}: {lines}");
        }
    }
}
