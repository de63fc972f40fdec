//! What a terminal shows that is resized while the chat draws, whatever it is written between two sizes.

use super::{FullScreen, Inline, Next};
use crate::tui::model::Size;
use crate::tui::text::Line;
use crate::tui::view::Live;
use crate::tui::vt::Vt;
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// A chat on a terminal, which learns of sizes late.
struct Scene {
    vt: Vt,
    inline: Inline,
    answers: bool,
    /// The size of the terminal, and the one that the system has.
    size: Size,
    known: Size,
    /// The size that the chat draws for.
    drawn_for: Size,
    printed: Vec<String>,
    new: Vec<String>,
    live: Vec<usize>,
    now: Instant,
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    /// So many columns are printed.
    Print(usize),
    /// Rows of so many columns are in the live region, the last one with the cursor.
    Live(Vec<usize>),
    /// The chat may draw.
    Draw,
    /// The terminal has another size.
    Resize(usize, usize),
    /// The system learns of it.
    Report,
    Pass(u64),
}

impl Scene {
    fn new(columns: usize, rows: usize, answers: bool) -> Self {
        let size = Size { columns, rows };
        let mut inline = Inline::new(true);
        inline.forget();
        Self {
            vt: Vt::new(columns, rows),
            inline,
            answers,
            size,
            known: size,
            drawn_for: size,
            printed: Vec::new(),
            new: Vec::new(),
            live: vec![2],
            now: Instant::now(),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Print(columns) => {
                let number = self.printed.len() + self.new.len();
                self.new.push(text(&format!("p{number}."), *columns));
            }
            Step::Live(rows) => self.live.clone_from(rows),
            Step::Draw => self.draw(),
            Step::Resize(columns, rows) => {
                self.size = Size { columns: *columns, rows: *rows };
                self.vt.resize(*columns, *rows);
            }
            Step::Report => self.known = self.size,
            Step::Pass(millis) => self.now += Duration::from_millis(*millis),
        }
    }

    fn draw(&mut self) {
        self.now += Duration::from_millis(33);
        self.read();
        if self.known != self.drawn_for {
            self.drawn_for = self.known;
            self.inline.resized(self.now);
        }
        loop {
            match self.inline.next(self.drawn_for, true, self.now) {
                Next::Wait(_) => return,
                Next::Ask(question) => {
                    self.vt.write(question);
                    self.read();
                }
                Next::Erase => {
                    self.vt.write(&self.inline.erasure(self.drawn_for, 0, self.now));
                    self.read();
                }
                Next::Picture => break,
            }
        }
        let lines: Vec<_> = self.new.iter().map(|line| Line::raw(line.clone())).collect();
        let picture = self.inline.picture(&lines, self.region(), self.drawn_for, true, self.now);
        self.vt.write(&picture);
        self.printed.append(&mut self.new);
    }

    /// Reads what the terminal has answered.
    fn read(&mut self) {
        let answers = std::mem::take(&mut self.vt.answers);
        let answers = answers.split('\u{1b}').filter(|_| self.answers);
        for answer in answers.filter_map(|it| it.strip_prefix('[')?.strip_suffix('R')) {
            let (row, column) = answer.split_once(';').expect("a place");
            let number = |text: &str| text.parse().expect("a number");
            if let Some(size) = self.inline.reported(number(row), number(column), self.now) {
                self.drawn_for = size;
                self.known = size;
            }
        }
    }

    /// The live region, in at most half of the rows, none of them wider than the screen.
    fn region(&self) -> Live {
        let Size { columns, rows } = self.drawn_for;
        let texts = self.live.iter().map(|wide| text("live.", (*wide).min(columns - 1)));
        let mut lines: Vec<_> = texts.map(Line::raw).collect();
        lines.drain(..lines.len().saturating_sub((rows / 2).max(1)));
        let row = lines.len() - 1;
        let column = lines[row].width();
        lines.push(Line::raw("status"));
        Live { lines, row, column }
    }

    /// What the terminal shows once it has been left alone for a while.
    fn settled(&mut self) -> String {
        for _ in 0..4 {
            self.step(&Step::Report);
            self.step(&Step::Pass(700));
            self.draw();
        }
        self.vt.lines()
    }

    fn expected(&self) -> String {
        let live = self.region().lines.into_iter().map(|line| line.to_string());
        let lines: Vec<_> = self.printed.iter().cloned().chain(live).collect();
        lines.join("\n")
    }
}

/// A text of so many columns, some of them in wide characters.
fn text(start: &str, columns: usize) -> String {
    let mut text = start.chars().take(columns).collect::<String>();
    while text.chars().count() < columns / 2 {
        text.push('x');
    }
    let rest = columns.saturating_sub(text.chars().count());
    text.push_str(&"日".repeat(rest / 2));
    text.push_str(&"y".repeat(rest % 2));
    text
}

fn step(
    columns: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
) -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (8usize..120).prop_map(Step::Print),
        3 => proptest::collection::vec(2usize..100, 1..5).prop_map(Step::Live),
        6 => Just(Step::Draw),
        2 => (columns, rows).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        2 => Just(Step::Report),
        1 => (1u64..600).prop_map(Step::Pass),
    ]
}

/// Whether `lines` has all of `printed` in their order, each once.
fn has_once(lines: &str, printed: &[String]) -> bool {
    let mut rest = printed.iter().peekable();
    for line in lines.lines().filter(|line| line.starts_with('p')) {
        if rest.next().is_none_or(|printed| printed != line) {
            return false;
        }
    }
    rest.peek().is_none()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 300 } else { 3000 }))]

    /// On a terminal that answers, nothing is left over as long as no row of the live region is pushed out
    /// of the screen.
    #[test]
    fn nothing_is_lost_doubled_or_left_over(
        steps in proptest::collection::vec(step(40..80, 16..30), 0..40),
    ) {
        let mut scene = Scene::new(60, 20, true);
        for _ in 0..80 {
            scene.step(&Step::Print(10));
        }
        scene.draw();
        scene.draw();
        for step in &steps {
            scene.step(step);
        }
        prop_assert_eq!(scene.settled(), scene.expected());
    }

    /// At any size, what was printed is there once.
    #[test]
    fn what_was_printed_is_there_once(
        steps in proptest::collection::vec(step(8..100, 3..30), 0..40),
    ) {
        let mut scene = Scene::new(60, 20, true);
        for step in &steps {
            scene.step(step);
        }
        let lines = scene.settled();
        prop_assert!(has_once(&lines, &scene.printed), "{}\n{}", lines, scene.expected());
    }
}

/// What a person does who drags the corner of a window, in a terminal that answers and in one that does not.
#[test]
fn a_window_that_is_dragged_shows_everything_once() {
    let sizes = [(70, 20), (58, 18), (45, 15), (30, 12), (41, 14), (66, 19), (80, 24)];
    for answers in [true, false] {
        let mut scene = Scene::new(80, 24, answers);
        let print = |scene: &mut Scene| (0..3).for_each(|_| scene.step(&Step::Print(75)));
        for _ in 0..12 {
            print(&mut scene);
        }
        for live in [vec![70, 20], vec![79, 50, 30, 5], vec![3]] {
            scene.step(&Step::Live(live));
            scene.draw();
            for (columns, rows) in sizes {
                scene.step(&Step::Resize(columns, rows));
                scene.step(&Step::Report);
                scene.step(&Step::Pass(20));
                scene.step(&Step::Draw);
            }
            assert_eq!(scene.settled(), scene.expected(), "answers: {answers}");
            print(&mut scene);
        }
    }
}

#[test]
fn rows_above_the_screen_are_taken_away_when_they_come_back() {
    let mut scene = Scene::new(80, 20, true);
    (0..30).for_each(|_| scene.step(&Step::Print(20)));
    scene.step(&Step::Live(vec![9, 8, 7, 6, 5, 4]));
    scene.draw();
    scene.step(&Step::Resize(80, 5));
    let low = scene.settled();
    assert!(has_once(&low, &scene.printed), "{low}");
    assert_ne!(low, scene.expected(), "the first row of the live region is above the screen");
    scene.step(&Step::Print(100));
    scene.draw();
    scene.step(&Step::Resize(60, 20));
    assert_eq!(scene.settled(), scene.expected());
}

/// Little was said yet, and the terminal pushes rows out of a screen that is empty below: they can't be drawn
/// over, but on the screen there are none.
#[test]
fn what_is_left_over_is_not_on_the_screen() {
    let mut scene = Scene::new(80, 20, true);
    scene.step(&Step::Print(20));
    scene.step(&Step::Live(vec![79, 78, 60, 4]));
    scene.draw();
    for (columns, rows) in [(30, 20), (80, 20), (50, 24)] {
        scene.step(&Step::Resize(columns, rows));
        let lines = scene.settled();
        assert!(has_once(&lines, &scene.printed), "{lines}");
        let shown = scene.vt.screen();
        assert_eq!(shown.matches("live").count(), scene.live.len(), "{columns}: {shown}");
        scene.step(&Step::Print(35));
        scene.draw();
    }
}

fn lines(texts: &[&str]) -> Vec<Line> {
    texts.iter().map(|text| Line::raw((*text).to_owned())).collect()
}

/// What is on the screen already is not written again, so nothing flickers; and each picture is shown at once.
#[test]
fn a_picture_writes_only_what_has_changed() {
    let size = Size { columns: 40, rows: 10 };
    let live = |growing: &str| Live {
        lines: lines(&[growing, "answering", "> draft", "status"]),
        row: 2,
        column: 7,
    };
    let mut inline = Inline::new(true);
    let mut full = FullScreen::default();
    let mut picture = |printed: &[&str], growing: &str| {
        let under = inline.picture(&lines(printed), live(growing), size, false, Instant::now());
        (under, full.picture(live(growing).lines, (2, 7), size))
    };
    picture(&["finished"], "one");
    for growing in ["one t", "one tw"] {
        for bytes in <[String; 2]>::from(picture(&[], growing)) {
            assert!(bytes.contains(growing), "{bytes:?}");
            for other in ["finished", "answering", "draft", "status"] {
                assert!(!bytes.contains(other), "{other}: {bytes:?}");
            }
            let is_whole = bytes.starts_with("\x1b[?2026h") && bytes.ends_with("\x1b[?2026l");
            assert!(is_whole, "{bytes:?}");
        }
    }
    assert_eq!(picture(&[], "one tw"), (String::new(), String::new()));
}

/// Names of files and models are no text of a model, but strangers choose them too.
#[test]
fn what_reorders_text_is_never_sent() {
    let unseen = "\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}\u{200b}\u{9b}";
    let line = format!("{unseen}photo{unseen}gpj.exe");
    let size = Size { columns: 40, rows: 10 };
    let live = Live { lines: lines(&[line.as_str()]), row: 0, column: 0 };
    let mut inline = Inline::new(true);
    let printed = inline.picture(&lines(&[line.as_str()]), live, size, false, Instant::now());
    assert_eq!(printed.matches("photogpj.exe").count(), 2, "{printed:?}");
    let full = FullScreen::default().picture(lines(&[line.as_str()]), (0, 0), size);
    assert!(full.contains("photogpj.exe"), "{full:?}");
}

/// What was printed is not printed again because the window is lower or higher.
#[test]
fn another_height_prints_nothing_again() {
    let mut scene = Scene::new(60, 20, true);
    (0..40).for_each(|_| scene.step(&Step::Print(20)));
    scene.draw();
    let before = scene.vt.written.len();
    for rows in [12, 25, 8, 20] {
        scene.step(&Step::Resize(60, rows));
        scene.settled();
    }
    let written = &scene.vt.written[before..];
    assert!(written.contains("status") && !written.contains("p1"), "{written:?}");
}
