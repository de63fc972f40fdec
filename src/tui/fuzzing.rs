//! What fuzz targets check of keys and of Markdown.

use super::markdown::{Block, Colours, Markdown, Theme, Tone, render};
use super::terminal::keys::{Keys, Typed};
use super::text::{Cleaner, width};
use crate::support::cuts::{cuts, text_cuts};

const THEMES: [Theme; 2] = [
    Theme { tone: Tone::Dark, colours: Colours::True, has_links: true },
    Theme { tone: Tone::Light, colours: Colours::Plain, has_links: false },
];

/// Checks that what is typed does not depend on how the bytes arrive, and that no byte is two keys.
pub(crate) fn keys(bytes: &[u8]) {
    let [whole, others @ ..] = cuts(bytes).map(|pieces| {
        let mut keys = Keys::default();
        let mut typed: Vec<Typed> = pieces.iter().flat_map(|piece| keys.push(piece)).collect();
        typed.extend(keys.give_up());
        assert!(!keys.waits());
        typed
    });
    for other in others {
        assert_eq!(other, whole);
    }
    assert!(whole.len() <= bytes.len());
}

/// Checks that blocks do not depend on how the text arrives, that no line is wider than the screen, and that
/// nothing in a line can control a terminal.
pub(crate) fn markdown(document: &str) {
    let [whole, others @ ..] = text_cuts(document).map(|pieces| read(&pieces));
    for other in others {
        assert_eq!(other, whole);
    }
    for columns in [2, 7, 40] {
        for theme in &THEMES {
            for line in whole.iter().flat_map(|block| render(block, columns, theme)) {
                let spans = || line.spans.iter().map(|span| &*span.content);
                let has_one = spans().filter(|it| width(it) > 0).count() <= 1;
                assert!(line.width() <= columns || has_one, "wider than {columns}: {line:?}");
                let controls = spans().flat_map(str::chars).any(char::is_control);
                assert!(!controls, "{line:?}");
            }
        }
    }
    let [whole, others @ ..] = text_cuts(document).map(|pieces| {
        let mut cleaner = Cleaner::default();
        let cleaned: String = pieces.iter().map(|piece| cleaner.push(piece)).collect();
        cleaned + &cleaner.finish()
    });
    for other in others {
        assert_eq!(other, whole);
    }
    assert!(!whole.contains(|char: char| char.is_control() && char != '\n'), "{whole:?}");
}

fn read(pieces: &[&str]) -> Vec<Block> {
    let mut markdown = Markdown::default();
    let mut blocks = Vec::new();
    for piece in pieces {
        markdown.push(piece);
        blocks.extend(markdown.take_closed());
    }
    markdown.finish();
    blocks.extend(markdown.take_closed());
    assert!(markdown.open().is_empty());
    blocks
}

/// Parses what is typed, as a terminal sends it, for measurements.
#[cfg(test)]
pub(crate) fn type_keys(bytes: &[u8]) {
    let mut keys = Keys::default();
    bytes.chunks(64 * 1024).for_each(|piece| drop(keys.push(piece)));
}

/// Reads and draws a document that streams, for measurements.
#[cfg(test)]
pub(crate) fn stream(document: &str) {
    let mut markdown = Markdown::default();
    let draw = |markdown: &mut Markdown| {
        markdown.take_closed().iter().for_each(|block| drop(render(block, 80, &THEMES[0])));
    };
    for piece in document.as_bytes().chunks(1_000).filter_map(|piece| str::from_utf8(piece).ok()) {
        markdown.push(piece);
        draw(&mut markdown);
    }
    markdown.finish();
    draw(&mut markdown);
}
