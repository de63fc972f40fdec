//! The picture of a chat in README: what a terminal shows, as SVG. `UPDATE_GOLDEN=1` draws it anew.

use crate::chat_tmux::Tmux;
use crate::process::eventually;
use crate::provider::{Provider, Step};
use crate::server::Folder;
use std::fmt::Write;
use std::fs;

const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/chat.svg");
const COLUMNS: u16 = 88;
const ROWS: u16 = 13;

/// Pixels: of a cell, the size of its letters, and around the screen.
const CELL_WIDTH: usize = 9;
const CELL_HEIGHT: usize = 20;
const LETTERS: usize = 15;
const MARGIN: usize = 16;

const BACKGROUND: &str = "#16191d";
const FOREGROUND: &str = "#d7dae0";

/// The sixteen colours that a terminal has names for.
const NAMED: [&str; 16] = [
    "#1c1f24", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0",
    "#7f8590", "#f0808a", "#b0d894", "#f0d090", "#80c0f8", "#d898ea", "#76ccd6", "#ffffff",
];

const ANSWER: &str = "A **duologue** is a conversation of two. This program holds one for you:\n\n\
    1. `duologue chat` in a terminal\n\
    2. `duologue exec \"...\"` in a script\n\
    3. `duologue rpc` inside your own program\n\n\
    ```sh\n\
    git diff | duologue exec \"Write a commit message\"\n\
    ```\n";

/// How letters are drawn.
#[derive(Clone, Debug, Default, PartialEq)]
struct Style {
    colour: Option<String>,
    is_bold: bool,
    is_dim: bool,
    is_underlined: bool,
}

impl Style {
    /// Changes it as the parameters of SGR say (ECMA-48, 8.3.117).
    fn change(&mut self, parameters: &str) {
        let mut codes = parameters.split(';').map(|it| it.parse::<usize>().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                2 => self.is_dim = true,
                4 => self.is_underlined = true,
                22 => (self.is_bold, self.is_dim) = (false, false),
                24 => self.is_underlined = false,
                30..=37 => self.colour = Some(NAMED[code - 30].to_owned()),
                90..=97 => self.colour = Some(NAMED[code - 82].to_owned()),
                38 => {
                    assert_eq!(codes.next(), Some(5), "a colour by its number");
                    self.colour = codes.next().map(indexed);
                }
                39 => self.colour = None,
                49 => {}
                code => panic!("what does {code} do?"),
            }
        }
    }

    fn attributes(&self) -> String {
        let mut attributes = String::new();
        if let Some(colour) = &self.colour {
            write!(attributes, " fill=\"{colour}\"").expect("a String takes all");
        }
        for (is_set, attribute) in [
            (self.is_bold, " font-weight=\"bold\""),
            (self.is_dim, " opacity=\"0.6\""),
            (self.is_underlined, " text-decoration=\"underline\""),
        ] {
            attributes.push_str(if is_set { attribute } else { "" });
        }
        attributes
    }
}

/// A colour of the 256: the named ones, a cube, and grey.
fn indexed(number: usize) -> String {
    let step = |it: usize| if it == 0 { 0 } else { 55 + 40 * it };
    match number {
        0..16 => NAMED[number].to_owned(),
        16..232 => {
            let cube = number - 16;
            let [red, green, blue] = [cube / 36, cube / 6 % 6, cube % 6].map(step);
            format!("#{red:02x}{green:02x}{blue:02x}")
        }
        grey => format!("#{0:02x}{0:02x}{0:02x}", 8 + 10 * (grey - 232)),
    }
}

/// The letters of a row that have the same style, from their column on. The style goes on in the next row.
fn pieces(row: &str, style: &mut Style) -> Vec<(usize, Style, String)> {
    let (mut pieces, mut column) = (Vec::new(), 0);
    for (at, part) in row.split('\u{1b}').enumerate() {
        let text = match part.strip_prefix('[').filter(|_| at > 0) {
            Some(sequence) => {
                let (parameters, text) = sequence.split_once('m').expect("a style");
                style.change(parameters);
                text
            }
            None => part,
        };
        if !text.trim().is_empty() {
            pieces.push((column, style.clone(), text.to_owned()));
        }
        column += text.chars().count();
    }
    pieces
}

fn drawn(screen: &str) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let width = usize::from(COLUMNS) * CELL_WIDTH + 2 * MARGIN;
    let height = usize::from(ROWS) * CELL_HEIGHT + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" \
         font-size=\"{LETTERS}\" fill=\"{FOREGROUND}\">\n\
         <title>A chat in a terminal</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    let mut style = Style::default();
    for (row, text) in screen.lines().enumerate() {
        for (column, style, text) in pieces(text, &mut style) {
            let (x, y) = (MARGIN + column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT + LETTERS);
            let length = text.chars().count() * CELL_WIDTH;
            let (attributes, text) = (style.attributes(), escaped(&text));
            writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\" xml:space=\"preserve\"{attributes}>{text}</text>"
            )
            .expect("a String takes all");
        }
    }
    svg + "</svg>\n"
}

#[test]
fn the_picture_is_what_a_terminal_shows() {
    needs!(Tmux);
    let folder = Folder::new();
    let reasoning = Step::Reasoning("They are new here: three lines and one command.".to_owned());
    let finish = Step::Finish("stop", Some((1_212, 131)));
    let answer = vec![reasoning, Step::Text(ANSWER.to_owned()), finish, Step::Done];
    let provider = Provider::start(vec![answer]);
    let tmux = Tmux::start(&folder, COLUMNS, ROWS);
    let base_url = provider.base_url();
    tmux.line(&format!(
        "clear; $DUOLOGUE chat --no-store --base-url {base_url} --model llama3.2 --context-size 128000"
    ));
    tmux.sees("/help");
    tmux.line("What can I do with you?");
    tmux.sees("Write a commit message");
    tmux.types("And in my editor?");
    eventually("the draft is shown", || tmux.screen().contains("> And in my").then_some(()));
    let svg = drawn(&tmux.run(&["capture-pane", "-p", "-e"]));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(PICTURE, &svg).expect("a file");
    }
    let expected = fs::read_to_string(PICTURE).unwrap_or_default();
    for (expected, actual) in expected.lines().zip(svg.lines()) {
        assert_eq!(actual, expected, "{PICTURE}");
    }
    assert_eq!(svg.lines().count(), expected.lines().count(), "{PICTURE}");
    tmux.keys(&["C-c", "C-c", "C-c"]);
    tmux.sees("$");
}
