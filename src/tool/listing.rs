//! The replies of a server to `tools/list`, `resources/list` and `prompts/list`, page by page. An item that
//! can't be used costs itself, not its server.

mod items;

use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most pages that are requested.
const PAGES_MAX: usize = 100;

/// Most tools, resources or prompts of one server. Providers take fewer tools.
const ITEMS_MAX: usize = 1000;

/// Longest cursor, in bytes: all are held while the list is read.
const CURSOR_BYTES_MAX: usize = 64 * 1024;

/// Longest address of a resource, in bytes.
pub(super) const URI_BYTES_MAX: usize = 8 * 1024;

/// Bytes of all that is listed of one server, in one list.
const LIST_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most warnings about the list of one server.
const WARNINGS_MAX: usize = 20;

/// What servers list.
pub(super) trait Listed: Sized {
    /// The member of a page that has the items; what they are called in messages.
    const ITEMS: &'static str;

    /// One of them.
    const ITEM: &'static str;

    /// An item, and the bytes of its texts and schemas.
    ///
    /// # Errors
    /// If it can't be used: why, for people.
    fn read(item: Value) -> Result<(Self, usize), String>;

    /// What no two items of a list have in common.
    fn key(&self) -> &str;
}

/// The items of a server, as its pages come in.
#[derive(Debug)]
pub(super) struct Listing<T> {
    items: Vec<T>,
    keys: BTreeSet<String>,
    cursors: BTreeSet<String>,
    pages: usize,
    /// Of texts and schemas.
    bytes: usize,
    /// The items that were left out, for people.
    warnings: Vec<String>,
    /// Warnings past the limit.
    untold: usize,
}

/// The continuation after a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The page with this cursor.
    Page(String),
    /// Nothing.
    End,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            keys: BTreeSet::new(),
            cursors: BTreeSet::new(),
            pages: 0,
            bytes: 0,
            warnings: Vec::new(),
            untold: 0,
        }
    }
}

impl<T: Listed> Listing<T> {
    /// Adds the page in `result`.
    ///
    /// # Errors
    /// If it is no page.
    pub(super) fn add(&mut self, mut result: Value) -> Result<Next, String> {
        let items = result.get_mut(T::ITEMS).map(Value::take);
        let Some(Value::Array(items)) = items else {
            return Err(format!("its answer to {0}/list has no list of {0}", T::ITEMS));
        };
        self.pages += 1;
        for item in items {
            if self.items.len() == ITEMS_MAX {
                self.warn(format!("only its first {ITEMS_MAX} {} are used", T::ITEMS));
                return Ok(Next::End);
            }
            match T::read(item) {
                Ok((item, _)) if !self.keys.insert(item.key().to_owned()) => {
                    self.warn(format!("its {} `{}` is listed twice", T::ITEM, item.key()));
                }
                Ok((item, bytes)) if self.bytes + bytes > LIST_BYTES_MAX => self.warn(format!(
                    "its {} `{}` is left out: its {} have more than {LIST_BYTES_MAX} bytes of \
                     descriptions and schemas",
                    T::ITEM,
                    item.key(),
                    T::ITEMS
                )),
                Ok((item, bytes)) => {
                    self.bytes += bytes;
                    self.items.push(item);
                }
                Err(why) => self.warn(why),
            }
        }
        Ok(self.next(result.get("nextCursor").and_then(Value::as_str)))
    }

    fn next(&mut self, cursor: Option<&str>) -> Next {
        // Some servers end their list with an empty cursor.
        let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else { return Next::End };
        if cursor.len() > CURSOR_BYTES_MAX {
            self.warn(format!(
                "its list of {} was cut where it goes on at a cursor of more than \
                 {CURSOR_BYTES_MAX} bytes",
                T::ITEMS
            ));
            return Next::End;
        }
        if !self.cursors.insert(cursor.to_owned()) {
            self.warn(format!("its list of {} repeats itself and was cut there", T::ITEMS));
            return Next::End;
        }
        if self.pages == PAGES_MAX {
            self.warn(format!("only the first {PAGES_MAX} pages of its {} are used", T::ITEMS));
            return Next::End;
        }
        Next::Page(cursor.to_owned())
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning);
        } else {
            self.untold += 1;
        }
    }

    /// All items, and a warning about those that were left out.
    pub(super) fn finish(mut self) -> (Arc<[T]>, Vec<String>) {
        if self.untold > 0 {
            self.warnings.push(format!("and {} more such warnings", self.untold));
        }
        (self.items.into(), self.warnings)
    }
}

/// The text of a member; empty if it is no text.
pub(super) fn text_of<'v>(item: &'v Value, member: &str) -> &'v str {
    item.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// The beginning of `text` that has at most `bytes_max` bytes.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests;
