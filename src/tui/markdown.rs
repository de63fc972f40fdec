//! Markdown for a terminal: read while it streams ([`Markdown`]), drawn block by block ([`render()`]).

mod blocks;
mod code;
mod fence;
mod inline;
mod languages;
mod render;
mod rest;
mod stream;
mod table;
mod theme;

#[cfg(test)]
mod tests;

pub(crate) use blocks::code_blocks;
pub(crate) use render::render;
pub(crate) use rest::{Committed, Rest};
pub(crate) use stream::Markdown;
#[cfg(test)]
pub(crate) use theme::Role;
pub(crate) use theme::{Colours, Theme, Tone};

use super::text::LinkTarget;

/// A piece of a document that is drawn on its own: a block of Markdown, an item of a list, or a line
/// of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Whether an empty line precedes it.
    pub(crate) gap: bool,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `level` is 1 to 6.
    Heading {
        level: u8,
        text: Vec<Inline>,
    },
    Paragraph(Vec<Inline>),
    /// One item of a list, with what it holds; a list is its items one after another.
    Item {
        marker: Marker,
        content: Vec<Block>,
    },
    Quote(Vec<Block>),
    /// What the fence of a code block says after its language, such as the name of a file.
    CodeCaption(String),
    /// One line of a code block, without its line break.
    CodeLine {
        place: CodePlace,
        spans: Vec<CodeSpan>,
    },
    Table(Table),
    /// Source that is shown as it was written: HTML, definitions of links.
    Source(String),
    Rule,
}

/// The place of a line of code in its block, so that a block can be put together again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodePlace {
    First,
    Later,
}

/// The marker of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Bullet,
    Number(u64),
    /// A task, which is done or not.
    Task(bool),
}

/// A run of text that looks the same throughout. A line break in it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inline {
    pub(crate) text: String,
    pub(crate) face: Face,
    pub(crate) marks: Marks,
    /// Where it leads to.
    pub(crate) target: Option<LinkTarget>,
}

/// What a run of text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Face {
    #[default]
    Text,
    Code,
    Link,
    /// The address of a link, which follows its text.
    Address,
    /// What stands for an image.
    Image,
    Html,
}

/// How a run of text is stressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) emphasis: bool,
    pub(crate) strong: bool,
    pub(crate) strike: bool,
}

/// Rows have as many cells as the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Align>,
    pub(crate) head: Vec<Vec<Inline>>,
    pub(crate) rows: Vec<Vec<Vec<Inline>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Centre,
    Right,
}

/// A part of a line of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeSpan {
    pub(crate) text: String,
    pub(crate) token: Token,
}

/// What a part of a line of code is, in any language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Plain,
    Keyword,
    /// A type, or another name that begins with a capital letter.
    Type,
    Function,
    Text,
    /// A number or another constant.
    Number,
    Comment,
    /// A key, an attribute, a variable of a shell.
    Name,
    Inserted,
    Deleted,
}
