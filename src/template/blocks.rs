//! Checks that blocks match their ends, which Go's parser does and gotmpl's does not.

use super::TemplateError;

/// Deepest nesting of branches and blocks. The parser recurses into each, which takes stack.
const BRANCHES_MAX: usize = 150;

/// The kind of block that an `end` closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    If,
    With,
    Range,
    Define,
    Block,
}

/// An open block.
struct Open {
    kind: Kind,
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
        self.open.pop().map_or(Ok(()), |Open { kind, line, .. }| {
            let name = name(kind);
            Err(TemplateError {
                line: Some(line),
                message: format!("{{{{{name}}}}} has no {{{{end}}}}; add one where the block ends"),
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
    let is_in_range = || open.iter().any(|block| block.kind == Kind::Range);
    match first {
        "define" if !open.is_empty() => {
            Err("{{define}} is inside another block; move it out".into())
        }
        "if" | "with" | "range" | "define" | "block" => {
            open.extend(kind(first).map(|kind| Open { kind, line, branches: 1, has_else: false }));
            Ok(())
        }
        "end" => open.pop().map(|_| ()).ok_or(
            "unexpected {{end}}: no block is open; remove it, or add {{if .name}} before it".into(),
        ),
        "else" => else_of(open.last_mut(), second),
        "break" | "continue" if !is_in_range() => {
            Err(format!("{{{{{first}}}}} outside {{{{range}}}}; remove it"))
        }
        _ => Ok(()),
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

fn kind(word: &str) -> Option<Kind> {
    match word {
        "if" => Some(Kind::If),
        "with" => Some(Kind::With),
        "range" => Some(Kind::Range),
        "define" => Some(Kind::Define),
        "block" => Some(Kind::Block),
        _ => None,
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::If => "if",
        Kind::With => "with",
        Kind::Range => "range",
        Kind::Define => "define",
        Kind::Block => "block",
    }
}

/// `{{else}}`, or with a second word `{{else if}}` and `{{else with}}`.
fn else_of(block: Option<&mut Open>, second: &str) -> Result<(), String> {
    let Some(block) = block else {
        return Err("unexpected {{else}}: no block is open; add {{if .name}} before it".into());
    };
    if matches!(block.kind, Kind::Define | Kind::Block) {
        return Err(format!("unexpected {{{{else}}}} in {{{{{}}}}}", name(block.kind)));
    }
    if block.has_else {
        return Err("an {{else}} follows the last {{else}} of its block".into());
    }
    match kind(second) {
        Some(kind @ (Kind::If | Kind::With)) if kind == block.kind => block.branches += 1,
        Some(kind) => {
            return Err(format!(
                "unexpected {{{{else {}}}}} in {{{{{}}}}}",
                name(kind),
                name(block.kind)
            ));
        }
        None => block.has_else = true,
    }
    Ok(())
}
