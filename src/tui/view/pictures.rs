//! Pictures of a chat in all its states, as text, at several widths. ratatui draws the lines into its own
//! terminal, and the bytes that the chat writes for them must look the same on a terminal.
//!
//! `UPDATE_GOLDEN=1` writes the pictures anew; look at the difference before it is kept.

mod states;

use super::*;
use crate::tui::display::{FullScreen, Inline};
use crate::tui::markdown::{Colours, Theme, Tone};
use crate::tui::model::tests::Scene;
use crate::tui::model::{Event, Scroll, Size};
use crate::tui::vt::Vt;
use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::terminal::Terminal;
use ratatui_core::text::{self, Text};
use std::fmt::Write as _;
use std::time::Instant;

const WIDTHS: [usize; 3] = [80, 40, 20];
const ROWS: usize = 24;

const DARK: Theme = Theme { tone: Tone::Dark, colours: Colours::True, has_links: false };

/// A picture of a scene under the scrollback, or on the whole screen.
struct Picture {
    scene: Scene,
    theme: Theme,
    pager: Option<Pager>,
}

impl Picture {
    fn new(columns: usize, theme: Theme, is_full: bool) -> Self {
        let mut scene = Scene::new();
        scene.event(Event::Resized(Size { columns, rows: ROWS }));
        let pager = is_full.then(|| Pager::new(Printer::new(Look::new(theme), false), columns));
        Self { scene, theme, pager }
    }

    fn scroll(&mut self, scroll: Scroll) {
        self.pager.as_mut().expect("the whole screen").scroll(scroll);
    }

    /// The screen, as ratatui draws it, and the row of the cursor.
    fn draw(&mut self) -> (Buffer, usize) {
        let size = self.scene.state.size;
        let (shown, bytes) = match &mut self.pager {
            Some(pager) => {
                let unfolded = self.scene.state.unfolded.all;
                pager.lay_out(size.columns, unfolded);
                self.scene.pieces.drain(..).for_each(|piece| pager.push(piece));
                let shown = page(&self.scene.state, pager);
                let place = (shown.row, shown.column);
                let bytes = FullScreen::default().picture(shown.lines.clone(), place, size);
                (shown, bytes)
            }
            None => {
                let mut printer = Printer::new(Look::new(self.theme), true);
                let all = self.scene.state.unfolded.all;
                let pieces = self.scene.pieces.iter();
                let mut printed: Vec<_> =
                    pieces.flat_map(|piece| printer.lines(piece, size.columns, all)).collect();
                let live =
                    under_scrollback(&self.scene.state, &mut printer, &mut printed, usize::MAX);
                let mut inline = Inline::new(true);
                let bytes = inline.picture(&printed, live.clone(), size, false, Instant::now());
                let above = (printed.len() + live.lines.len()).saturating_sub(size.rows);
                let row = printed.len() + live.row - above;
                let lines = printed.into_iter().chain(live.lines).skip(above).collect();
                (Live { lines, row, column: live.column }, bytes)
            }
        };
        let drawn = drawn(&shown, size);
        let mut terminal = Vt::new(size.columns, size.rows);
        terminal.write(&bytes);
        assert_eq!(terminal.screen(), text(&drawn), "what is written looks different");
        assert_eq!(terminal.cursor(), (shown.row, shown.column));
        // Where characters are wider than believed, a border to the right of them would stand askew.
        let right =
            |line: &str| line.trim_end().chars().count() > 1 && line.ends_with(['│', '┃', '|']);
        assert!(!text(&drawn).lines().any(right), "a border to the right of text");
        (drawn, shown.row)
    }
}

fn drawn(shown: &Live, size: Size) -> Buffer {
    let (columns, rows) = (u16::try_from(size.columns), u16::try_from(size.rows));
    let backend = TestBackend::new(columns.expect("a width"), rows.expect("a height"));
    let mut terminal = Terminal::new(backend).expect("a terminal");
    let text: Text<'_> = shown.lines.iter().map(of_ratatui).collect();
    terminal.draw(|frame| frame.render_widget(&text, frame.area())).expect("a picture");
    terminal.backend().buffer().clone()
}

fn of_ratatui(line: &Line) -> text::Line<'_> {
    line.spans.iter().map(|span| text::Span::styled(span.content.as_str(), span.style)).collect()
}

fn rows(buffer: &Buffer) -> impl Iterator<Item = &[Cell]> {
    buffer.content.chunks(buffer.area.width.into())
}

/// The rows, without blanks at their ends and empty ones at the end.
fn text(buffer: &Buffer) -> String {
    let row = |cells: &[Cell]| {
        let (mut text, mut hidden) = (String::new(), 0_usize);
        for cell in cells {
            // The cell after a wide character is not shown.
            if hidden == 0 {
                text.push_str(cell.symbol());
            }
            hidden = hidden.max(width(cell.symbol())).saturating_sub(1);
        }
        text.trim_end().to_owned()
    };
    rows(buffer).map(row).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// Where a row looks like anything but plain text.
fn styles(buffer: &Buffer) -> String {
    let mut styles = String::new();
    for (number, row) in rows(buffer).enumerate() {
        let mut start = 0;
        for run in row.chunk_by(|one, other| one.style() == other.style()) {
            let end = start + run.len();
            let style = run[0].style();
            let colours = [style.fg, style.bg].into_iter().flatten();
            let colours = colours.filter(|colour| *colour != ratatui_core::style::Color::Reset);
            let words: Vec<_> = colours.map(|colour| colour.to_string()).collect();
            let attributes = style.add_modifier;
            if !words.is_empty() || !attributes.is_empty() {
                let colours = words.join(" on ");
                let look = format!("{colours} {attributes:?}").replace("NONE", "");
                writeln!(styles, "row {}, {start} to {end}: {}", number + 1, look.trim())
                    .expect("a String takes all");
            }
            start = end;
        }
    }
    styles
}

/// Holds what `play` leads to, at every width, against the picture of this name.
#[track_caller]
fn check(name: &str, theme: Theme, is_full: bool, play: impl Fn(&mut Picture)) {
    let mut seen = String::new();
    for columns in WIDTHS {
        let mut picture = Picture::new(columns, theme, is_full);
        play(&mut picture);
        let (drawn, row) = picture.draw();
        let cursor = format!("the cursor is in row {}", row + 1);
        writeln!(seen, "== {columns} columns, {cursor}\n{}\n", text(&drawn)).expect("a String");
        if columns == WIDTHS[0] {
            writeln!(seen, "-- styles\n{}", styles(&drawn)).expect("a String");
        }
    }
    let path = format!("{}/src/tui/view/pictures/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &seen).expect("a picture is written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(seen, expected, "{path}\n{seen}");
}
