//! Options of a chat at a terminal.

use super::{AttachmentArgs, SessionArgs};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};

/// Options of `chat`.
#[derive(Args, Debug)]
pub struct ChatArgs {
    /// First prompt; without one the chat waits for you
    pub prompt: Option<String>,

    /// Images and files that go with the first prompt.
    #[command(flatten)]
    pub attachments: AttachmentArgs,

    /// Use the terminal that started this process even if standard input or output is another
    #[arg(long)]
    pub force_interactive: bool,

    /// How the chat looks.
    #[command(flatten, next_help_heading = "Screen options")]
    pub screen: ScreenArgs,

    /// Options of every conversation.
    #[command(flatten)]
    pub session: SessionArgs,
}

/// Whether a command file's prompt begins a chat.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct InteractiveArgs {
    /// Chat: the prompt is the first one of a conversation at the terminal
    #[arg(long)]
    pub chat: bool,

    /// Like --chat, on the terminal that started this process even if standard input or output is
    /// another
    #[arg(long)]
    pub force_interactive: bool,

    /// The same as --chat if standard input and output are a terminal; otherwise print the answer
    #[arg(long)]
    pub interactive: bool,

    /// Print the answer and don't chat, whatever the other options say
    #[arg(long)]
    pub non_interactive: bool,
}

/// How a chat looks.
#[derive(Args, Clone, Copy, Debug)]
pub struct ScreenArgs {
    /// Use the whole screen, with scrolling; by default the conversation stays in the terminal's own
    /// scrollback
    #[arg(long, env = "DUOLOGUE_FULLSCREEN", value_parser = BoolishValueParser::new())]
    pub fullscreen: bool,

    /// Print plain lines, for screen readers: no colours, and nothing is drawn twice
    #[arg(long, env = "DUOLOGUE_PLAIN", value_parser = BoolishValueParser::new())]
    pub plain: bool,

    /// The terminal's background.
    #[command(flatten)]
    pub background: BackgroundArgs,

    /// Keys of the line
    #[arg(long, env = "DUOLOGUE_EDITING", value_name = "KEYS", value_enum, default_value_t)]
    pub editing: Editing,

    /// How the terminal says that a question or an answer waits while nobody looks at it
    #[arg(long, env = "DUOLOGUE_BELL", value_name = "HOW", value_enum, default_value_t)]
    pub bell: BellKind,
}

/// The background that colours are chosen for.
#[derive(Args, Clone, Copy, Debug)]
pub struct BackgroundArgs {
    /// Colours for a dark or a light background
    #[arg(long, env = "DUOLOGUE_BACKGROUND", value_name = "TONE", value_enum, default_value_t)]
    pub background: Background,
}

/// Backgrounds of terminals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Background {
    /// What COLORFGBG says, else dark
    #[default]
    Auto,
    /// Dark
    Dark,
    /// Light
    Light,
}

/// Keys of the line that a person writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Editing {
    /// Keys of Emacs and readline
    #[default]
    Emacs,
    /// Keys of vi: Esc begins commands
    Vi,
}

/// Ways of a terminal to say that something waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum BellKind {
    /// A notification where the terminal is known to have them, else the bell
    #[default]
    Auto,
    /// The bell
    Sound,
    /// A notification (OSC 9)
    Notification,
    /// Nothing
    Off,
}

impl InteractiveArgs {
    /// Whether there is a chat. `is_terminal`: standard input and output are one.
    pub(crate) fn is_chat(self, is_terminal: bool) -> bool {
        let wanted = self.chat || self.force_interactive || self.interactive && is_terminal;
        wanted && !self.non_interactive
    }
}
