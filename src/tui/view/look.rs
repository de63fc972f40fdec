//! The colours and signs of everything that is no Markdown.

use crate::tui::markdown::{Colours, Theme, Tone};
use ratatui_core::style::{Color, Modifier, Style};

/// How a chat is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) theme: Theme,
}

/// Parts of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Text of the person.
    Prompt,
    /// Less important text.
    Quiet,
    /// A question.
    Question,
    Tool,
    Warning,
    Error,
    /// The chosen entry of a list.
    Chosen,
}

/// Signs before lines; words in a plain look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signs {
    pub(super) prompt: &'static str,
    pub(super) tool: &'static str,
    pub(super) tool_failed: &'static str,
    pub(super) tool_running: &'static str,
    pub(super) reasoning: &'static str,
    pub(super) information: &'static str,
    pub(super) warning: &'static str,
    pub(super) error: &'static str,
}

const DRAWN: Signs = Signs {
    prompt: "> ",
    tool: "● ",
    tool_failed: "✗ ",
    tool_running: "○ ",
    reasoning: "∴ ",
    information: "· ",
    warning: "! ",
    error: "✗ ",
};

const SPOKEN: Signs = Signs {
    prompt: "You: ",
    tool: "Tool: ",
    tool_failed: "Tool failed: ",
    tool_running: "Tool: ",
    reasoning: "Reasoning: ",
    information: "",
    warning: "Warning: ",
    error: "Error: ",
};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

impl Look {
    pub(crate) fn new(theme: Theme) -> Self {
        Self { theme }
    }

    pub(super) fn signs(&self) -> Signs {
        if self.theme.is_plain() { SPOKEN } else { DRAWN }
    }

    pub(super) fn style(&self, part: Part) -> Style {
        let (dark, light, attributes) = match part {
            Part::Prompt => (Color::Cyan, Color::Blue, Modifier::BOLD),
            Part::Quiet => (Color::Reset, Color::Reset, Modifier::DIM),
            Part::Question => (Color::Yellow, Color::Magenta, Modifier::BOLD),
            Part::Tool => (Color::Green, Color::Green, Modifier::empty()),
            Part::Warning => (Color::Yellow, Color::Magenta, Modifier::empty()),
            Part::Error => (Color::LightRed, Color::Red, Modifier::empty()),
            Part::Chosen => (Color::Reset, Color::Reset, Modifier::REVERSED),
        };
        let colour = match self.theme.tone {
            Tone::Dark => dark,
            Tone::Light => light,
        };
        match self.theme.colours {
            Colours::Plain => Style::new(),
            Colours::Attributes => Style::new().add_modifier(attributes),
            Colours::True | Colours::Indexed256 | Colours::Ansi16 => {
                let style = Style::new().add_modifier(attributes);
                if colour == Color::Reset { style } else { style.fg(colour) }
            }
        }
    }

    /// The picture of the spinner after so many tenths of a second.
    pub(super) fn spinner(&self, tenths: u128) -> &'static str {
        let at = usize::try_from(tenths % SPINNER.len() as u128).unwrap_or(0);
        SPINNER[at]
    }
}
