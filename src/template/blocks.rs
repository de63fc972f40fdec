//! Checks that blocks match their ends, which Go's parser does and gotmpl's does not.

use super::TemplateError;

/// Deepest nesting of branches and blocks. The parser recurses into each, which takes stack.
const BRANCHES_MAX: usize = 150;

/// The words that open a block, which an `end` closes.
const OPENERS: [&str; 5] = ["if", "with", "range", "define", "block"];

/// An open block.
struct Open {
    opener: &'static str,
    line: u32,
    branches: usize,
    has_else: bool,
}

/// The open blocks at one place of a template.
#[derive(Default)]
pub(super) struct Blocks {
    open: Vec<Open>,
}

impl Blocks {
    /// Processes an action, given its text. `else`, `break`, `continue` and `define` are wrong in
    /// some places; at a surplus `end`, gotmpl's parser stops without an error.
    pub(super) fn action(&mut self, line: u32, inside: &str) -> Result<(), TemplateError> {
        action(&mut self.open, line, inside)
            .and_then(|()| check_branches(&self.open))
            .map_err(|message| TemplateError { line: Some(line), message })
    }

    /// At the end of the text, every block must have ended.
    pub(super) fn end(mut self) -> Result<(), TemplateError> {
        self.open.pop().map_or(Ok(()), |Open { opener, line, .. }| {
            Err(TemplateError {
                line: Some(line),
                message: format!(
                    "{{{{{opener}}}}} has no {{{{end}}}}; add one where the block ends"
                ),
            })
        })
    }
}

fn action(open: &mut Vec<Open>, line: u32, inside: &str) -> Result<(), String> {
    let mut words = inside.split_whitespace().map(|word| {
        let end = word.find(|char: char| !char.is_alphanumeric() && char != '_');
        &word[..end.unwrap_or(word.len())]
    });
    let (first, second) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    // The body of a block is a template of its own.
    let is_own = |block: &&Open| matches!(block.opener, "define" | "block");
    let around = open.iter().rev().take_while(|block| !is_own(block));
    let is_in_range = around.map(|block| block.opener).any(|opener| opener == "range");
    match first {
        "define" if !open.is_empty() => {
            Err("{{define}} is inside another block; move it out".into())
        }
        "end" => open.pop().map(|_| ()).ok_or(
            "unexpected {{end}}: no block is open; remove it, or add {{if .name}} before it".into(),
        ),
        "else" => else_of(open.last_mut(), second),
        "break" | "continue" if !is_in_range => {
            Err(format!("{{{{{first}}}}} outside {{{{range}}}}; remove it"))
        }
        _ => {
            let opened = opener(first);
            open.extend(opened.map(|opener| Open { opener, line, branches: 1, has_else: false }));
            Ok(())
        }
    }
}

fn check_branches(open: &[Open]) -> Result<(), String> {
    if open.iter().map(|block| block.branches).sum::<usize>() > BRANCHES_MAX {
        return Err(format!(
            "blocks and their branches are nested more than {BRANCHES_MAX} levels deep"
        ));
    }
    Ok(())
}

fn opener(word: &str) -> Option<&'static str> {
    OPENERS.into_iter().find(|opener| *opener == word)
}

/// `{{else}}`, or with a second word `{{else if}}` and `{{else with}}`.
fn else_of(block: Option<&mut Open>, second: &str) -> Result<(), String> {
    let Some(block) = block else {
        return Err("unexpected {{else}}: no block is open; add {{if .name}} before it".into());
    };
    if matches!(block.opener, "define" | "block") {
        return Err(format!("unexpected {{{{else}}}} in {{{{{}}}}}", block.opener));
    }
    if block.has_else {
        return Err("an {{else}} follows the last {{else}} of its block".into());
    }
    match opener(second) {
        Some(word @ ("if" | "with")) if word == block.opener => block.branches += 1,
        Some(word) => {
            return Err(format!("unexpected {{{{else {word}}}}} in {{{{{}}}}}", block.opener));
        }
        None => block.has_else = true,
    }
    Ok(())
}
