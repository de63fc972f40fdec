//! The styles of the parts of the text, by the colours of the terminal.

use super::{Face, Inline, Token};
use ratatui_core::style::{Color, Modifier, Style};

/// The background of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Dark,
    Light,
}

/// Which colours the terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colours {
    /// 24 bits for each colour.
    True,
    Indexed256,
    Ansi16,
    /// No colours, but bold and the like: `NO_COLOR`.
    Attributes,
    /// No colours, no attributes, and ASCII alone for what is not the text's own: for screen readers,
    /// `TERM=dumb`, and files.
    Plain,
}

/// How everything is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Theme {
    pub(crate) tone: Tone,
    pub(crate) colours: Colours,
    /// The terminal knows links, or ignores them.
    pub(crate) has_links: bool,
}

/// The role of a part of the screen's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Text,
    /// The heading of level 1.
    Title,
    Heading,
    Emphasis,
    Strong,
    Strike,
    InlineCode,
    Link,
    Address,
    Image,
    Html,
    /// The marker of an item.
    Marker,
    /// The bar beside a quote.
    Bar,
    Quote,
    TableHead,
    Rule,
    Code(Token),
}

/// A hue with its exact value on dark and on light backgrounds, and what comes closest to it among the
/// 16 colours of a terminal.
struct Hue {
    dark: (u8, u8, u8),
    light: (u8, u8, u8),
    dark16: Color,
    light16: Color,
}

const BLUE: Hue = hue((0x7a, 0xb8, 0xff), (0x00, 0x55, 0xaa), Color::LightBlue, Color::Blue);
const CYAN: Hue = hue((0x6c, 0xd4, 0xd4), (0x00, 0x66, 0x77), Color::Cyan, Color::Cyan);
const GREEN: Hue = hue((0x98, 0xcf, 0x7f), (0x2e, 0x6b, 0x1f), Color::Green, Color::Green);
const MAGENTA: Hue = hue((0xd6, 0x9f, 0xe8), (0x86, 0x28, 0x9a), Color::Magenta, Color::Magenta);
const RED: Hue = hue((0xf0, 0x8a, 0x80), (0xa8, 0x24, 0x1c), Color::LightRed, Color::Red);
const YELLOW: Hue = hue((0xe6, 0xc3, 0x6f), (0x80, 0x5b, 0x00), Color::Yellow, Color::Magenta);
const GREY: Hue = hue((0x9a, 0x9a, 0x9a), (0x66, 0x66, 0x66), Color::DarkGray, Color::DarkGray);

const fn hue(dark: (u8, u8, u8), light: (u8, u8, u8), dark16: Color, light16: Color) -> Hue {
    Hue { dark, light, dark16, light16 }
}

impl Colours {
    /// What a terminal has by the values of `TERM` and `COLORTERM`, which are empty if they are not set;
    /// `no_colour` says that `NO_COLOR` is set and not empty.
    pub(crate) fn of_terminal(term: &str, colour_term: &str, no_colour: bool) -> Colours {
        let has = |parts: &[&str]| parts.iter().any(|part| term.contains(part));
        if term.is_empty() || term == "dumb" {
            Colours::Plain
        } else if no_colour {
            Colours::Attributes
        } else if matches!(colour_term, "truecolor" | "24bit")
            || has(&["direct", "truecolor", "kitty", "alacritty", "foot", "ghostty", "wezterm"])
        {
            Colours::True
        } else if has(&["256color"]) {
            Colours::Indexed256
        } else {
            Colours::Ansi16
        }
    }
}

impl Theme {
    /// How `role` looks. A style is laid over that of what is around it.
    pub(crate) fn style(&self, role: Role) -> Style {
        let (hue, attributes) = look(role);
        let colour = hue.and_then(|hue| self.colour(hue));
        let style = colour.map_or(Style::new(), |colour| Style::new().fg(colour));
        match self.colours {
            Colours::Plain => Style::new(),
            Colours::Attributes => style.add_modifier(attributes | without_colour(role)),
            Colours::True | Colours::Indexed256 | Colours::Ansi16 => style.add_modifier(attributes),
        }
    }

    /// Whether nothing but ASCII may be drawn around the text.
    pub(crate) fn is_plain(&self) -> bool {
        self.colours == Colours::Plain
    }

    /// How a run of text looks on `base`.
    pub(super) fn inline(&self, run: &Inline, base: Style) -> Style {
        let marks = [
            (run.marks.emphasis, Role::Emphasis),
            (run.marks.strong, Role::Strong),
            (run.marks.strike, Role::Strike),
        ];
        let set = marks.into_iter().filter(|(set, _)| *set);
        let base = set.fold(base, |style, (_, role)| style.patch(self.style(role)));
        base.patch(self.style(match run.face {
            Face::Text => Role::Text,
            Face::Code => Role::InlineCode,
            Face::Link => Role::Link,
            Face::Address => Role::Address,
            Face::Image => Role::Image,
            Face::Html => Role::Html,
        }))
    }

    fn colour(&self, hue: &Hue) -> Option<Color> {
        let exact = match self.tone {
            Tone::Dark => hue.dark,
            Tone::Light => hue.light,
        };
        match (self.colours, self.tone) {
            (Colours::True, _) => Some(Color::Rgb(exact.0, exact.1, exact.2)),
            (Colours::Indexed256, _) => Some(Color::Indexed(nearest_indexed(exact))),
            (Colours::Ansi16, Tone::Dark) => Some(hue.dark16),
            (Colours::Ansi16, Tone::Light) => Some(hue.light16),
            (Colours::Attributes | Colours::Plain, _) => None,
        }
    }
}

fn look(role: Role) -> (Option<&'static Hue>, Modifier) {
    let none = Modifier::empty();
    match role {
        Role::Text | Role::Code(Token::Plain) => (None, none),
        Role::Title => (Some(&BLUE), Modifier::BOLD.union(Modifier::UNDERLINED)),
        Role::Heading => (Some(&BLUE), Modifier::BOLD),
        Role::Emphasis => (None, Modifier::ITALIC),
        Role::Strong | Role::TableHead => (None, Modifier::BOLD),
        Role::Strike => (None, Modifier::CROSSED_OUT),
        Role::Quote => (None, Modifier::ITALIC),
        Role::Link => (Some(&CYAN), Modifier::UNDERLINED),
        Role::InlineCode | Role::Code(Token::Number) => (Some(&YELLOW), none),
        Role::Marker | Role::Code(Token::Type) => (Some(&CYAN), none),
        Role::Image | Role::Code(Token::Keyword) => (Some(&MAGENTA), none),
        Role::Address | Role::Html | Role::Bar | Role::Rule => (Some(&GREY), none),
        Role::Code(Token::Comment) => (Some(&GREY), Modifier::ITALIC),
        Role::Code(Token::Function | Token::Name) => (Some(&BLUE), none),
        Role::Code(Token::Text | Token::Inserted) => (Some(&GREEN), none),
        Role::Code(Token::Deleted) => (Some(&RED), none),
    }
}

/// The replacement of a colour where there are none.
fn without_colour(role: Role) -> Modifier {
    let is_bold = matches!(role, Role::InlineCode | Role::Code(Token::Keyword));
    let is_dim = matches!(
        role,
        Role::Address | Role::Html | Role::Bar | Role::Rule | Role::Code(Token::Comment)
    );
    match (is_bold, is_dim) {
        (true, _) => Modifier::BOLD,
        (false, true) => Modifier::DIM,
        (false, false) => Modifier::empty(),
    }
}

/// The nearest colour of the 6 × 6 × 6 cube of the 256 colours.
fn nearest_indexed((red, green, blue): (u8, u8, u8)) -> u8 {
    let step = |value: u8| match value {
        0..=47 => 0,
        48..=114 => 1,
        115.. => (value - 35) / 40,
    };
    16 + 36 * step(red) + 6 * step(green) + step(blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_that_the_terminal_has() {
        let style = |tone, colours, role| Theme { tone, colours, has_links: false }.style(role);
        let keyword = Role::Code(Token::Keyword);
        let exact = style(Tone::Dark, Colours::True, keyword);
        assert_eq!(exact.fg, Some(Color::Rgb(0xd6, 0x9f, 0xe8)));
        assert_ne!(style(Tone::Light, Colours::True, keyword), exact);
        assert_eq!(style(Tone::Dark, Colours::Indexed256, keyword).fg, Some(Color::Indexed(182)));
        assert_eq!(style(Tone::Light, Colours::Ansi16, Role::Heading).fg, Some(Color::Blue));
        let bold = Style::new().add_modifier(Modifier::BOLD);
        assert_eq!(style(Tone::Dark, Colours::Attributes, keyword), bold);
        assert_eq!(style(Tone::Dark, Colours::Attributes, Role::Heading), bold);
        assert_eq!(style(Tone::Dark, Colours::Plain, Role::Heading), Style::new());
    }

    #[test]
    fn colours_follow_the_environment() {
        let rows = [
            ("", "truecolor", false, Colours::Plain),
            ("dumb", "", false, Colours::Plain),
            ("xterm-256color", "truecolor", true, Colours::Attributes),
            ("xterm-256color", "truecolor", false, Colours::True),
            ("xterm-kitty", "", false, Colours::True),
            ("screen-256color", "", false, Colours::Indexed256),
            ("linux", "", false, Colours::Ansi16),
        ];
        for (term, colour_term, no_colour, expected) in rows {
            assert_eq!(Colours::of_terminal(term, colour_term, no_colour), expected, "{term}");
        }
    }

    #[test]
    fn the_cube_has_its_corners() {
        assert_eq!(nearest_indexed((0, 0, 0)), 16);
        assert_eq!(nearest_indexed((255, 255, 255)), 231);
        assert_eq!(nearest_indexed((95, 135, 175)), 67);
    }
}
