//! The fences of a code block, and the lines between them.

use std::borrow::Cow;

/// The fence that opened a code block. Numbers are columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    mark: u8,
    length: usize,
    indent: usize,
    /// How much a closing fence may be indented more than usual: the block stood in an item.
    extra: usize,
    info: String,
}

/// How far a fence may be indented (CommonMark 0.31, section 4.5).
const INDENT_MAX: usize = 3;

/// Columns between two tab stops (section 2.2).
const TAB_COLUMNS: usize = 4;

impl Fence {
    /// The fence that `line` opens, if it is one. It may be indented by more than a fence of its own
    /// may be: then it stood in an item.
    pub(super) fn open(line: &str) -> Option<Fence> {
        let rest = line.trim_start_matches(' ');
        let indent = line.len() - rest.len();
        let mark = *rest.as_bytes().first().filter(|mark| b"`~".contains(mark))?;
        let length = rest.bytes().take_while(|byte| *byte == mark).count();
        let info = rest[length..].trim();
        let ok = length >= 3 && (mark == b'~' || !info.contains('`'));
        let extra = indent.saturating_sub(INDENT_MAX);
        ok.then(|| Fence { mark, length, indent, extra, info: info.to_owned() })
    }

    /// What the block says about its language.
    pub(super) fn info(&self) -> &str {
        &self.info
    }

    /// Whether `line`, with or without its line break, closes the block.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let rest = line.trim_start_matches(' ');
        let marks = rest.bytes().take_while(|byte| *byte == self.mark).count();
        line.len() - rest.len() <= INDENT_MAX + self.extra
            && marks >= self.length
            && rest[marks..].trim_matches([' ', '\t']).is_empty()
    }

    /// The text of a line: without its line break, and with the indentation of the fence removed. What
    /// is left of a tab are spaces.
    pub(super) fn content<'a>(&self, line: &'a str) -> Cow<'a, str> {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let mut column = 0;
        for (at, byte) in line.bytes().enumerate() {
            if column >= self.indent || !matches!(byte, b' ' | b'\t') {
                return line[at..].into();
            }
            let stop = column + TAB_COLUMNS - column % TAB_COLUMNS;
            let next = if byte == b'\t' { stop } else { column + 1 };
            if next > self.indent {
                return (" ".repeat(next - self.indent) + &line[at + 1..]).into();
            }
            column = next;
        }
        "".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_open_and_close_as_commonmark_says() {
        for line in ["```\n", "~~~~ rust\n", "   ```rust ignore\n", "~~~ a`b\n"] {
            assert!(Fence::open(line).is_some(), "{line:?}");
        }
        for line in ["``\n", "``` a`b\n", "text ```\n", "\t```\n"] {
            assert_eq!(Fence::open(line), None, "{line:?}");
        }
        let fence = Fence::open("  ````rust\n").expect("a fence");
        assert_eq!(fence.info(), "rust");
        for line in ["````", "   `````  \n", "````\t\n"] {
            assert!(fence.is_closed_by(line), "{line:?}");
        }
        for line in ["```\n", "    ````\n", "```` x\n", "~~~~\n", "\n"] {
            assert!(!fence.is_closed_by(line), "{line:?}");
        }
        assert_eq!(fence.content("   a\n"), " a");
        assert_eq!(fence.content(" a\n"), "a");
        assert_eq!(fence.content("\ta\n"), "  a");
        assert_eq!(fence.content("  \n"), "");
        let nested = Fence::open("     ```\n").expect("a fence");
        assert!(nested.is_closed_by("     ```\n"));
    }
}
