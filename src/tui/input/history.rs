//! Prompts that were written before, of this and of earlier chats. Pure: the file is read and written
//! elsewhere.

/// Prompts that are remembered.
pub(crate) const ENTRIES_MAX: usize = 1000;

/// The prompts, and where in them the person looks.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    entries: Vec<String>,
    /// The entry that is shown, and what was written before the person looked.
    shown: Option<(usize, String)>,
    /// What was put aside, and is to be stored for later chats.
    unstored: Vec<String>,
}

impl History {
    /// These prompts, the oldest first.
    pub(crate) fn new(mut entries: Vec<String>) -> Self {
        entries.drain(..entries.len().saturating_sub(ENTRIES_MAX));
        Self { entries, ..Self::default() }
    }

    /// Adds a prompt; true if it is to be stored.
    pub(crate) fn add(&mut self, prompt: &str) -> bool {
        self.leave();
        if self.entries.last().is_some_and(|last| last == prompt) {
            return false;
        }
        self.entries.push(prompt.to_owned());
        if self.entries.len() > ENTRIES_MAX {
            self.entries.remove(0);
        }
        true
    }

    /// Adds a text that another one takes the place of, and that nobody has sent; it is to be stored.
    pub(crate) fn put_aside(&mut self, text: &str) {
        self.leave();
        if !text.trim().is_empty() && self.add(text) {
            self.unstored.push(text.to_owned());
        }
    }

    /// The texts that were put aside since the last call, the oldest first.
    pub(crate) fn take_unstored(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unstored)
    }

    /// All prompts, the newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().rev().map(String::as_str)
    }

    /// The prompt before the one that is shown. `written` is saved for the way back.
    pub(crate) fn older(&mut self, written: &str) -> Option<String> {
        let (at, draft) = match &self.shown {
            Some((at, draft)) => (at.checked_sub(1)?, draft.clone()),
            None => (self.entries.len().checked_sub(1)?, written.to_owned()),
        };
        let entry = self.entries.get(at)?.clone();
        self.shown = Some((at, draft));
        Some(entry)
    }

    /// The prompt after the one that is shown; after the last one what was written before.
    pub(crate) fn newer(&mut self) -> Option<String> {
        let (at, draft) = self.shown.take()?;
        match self.entries.get(at + 1) {
            Some(entry) => {
                self.shown = Some((at + 1, draft));
                Some(entry.clone())
            }
            None => Some(draft),
        }
    }

    /// What was written before the person looked at older prompts.
    pub(crate) fn take_draft(&mut self) -> Option<String> {
        self.shown.take().map(|(_, draft)| draft)
    }

    /// The person may have changed `text`, which was the prompt that is shown.
    pub(crate) fn leave_unless_shown(&mut self, text: &str) {
        let shown = self.shown.as_ref().and_then(|(at, _)| self.entries.get(*at));
        if shown.is_some_and(|shown| shown != text) {
            self.leave();
        }
    }

    /// The person has changed the text: it is a draft of its own now. What was written before can be
    /// had back as the newest prompt.
    pub(crate) fn leave(&mut self) {
        if let Some((_, draft)) = self.shown.take() {
            self.put_aside(&draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_kept_while_the_person_looks_at_older_prompts() {
        let mut history = History::new(vec!["one".to_owned(), "two".to_owned()]);
        assert_eq!(history.newer(), None);
        assert_eq!(history.older("draft").as_deref(), Some("two"));
        assert_eq!(history.older("two").as_deref(), Some("one"));
        assert_eq!(history.older("one"), None);
        assert_eq!(history.newer().as_deref(), Some("two"));
        assert_eq!(history.newer().as_deref(), Some("draft"));
        assert_eq!(history.newer(), None);
        history.older("draft");
        history.leave();
        assert_eq!(history.older("two, changed").as_deref(), Some("draft"));
    }

    #[test]
    fn a_prompt_that_is_repeated_is_kept_once_and_the_oldest_are_forgotten() {
        let mut history = History::default();
        assert!(history.add("same") && !history.add("same"));
        for number in 0..ENTRIES_MAX {
            assert!(history.add(&number.to_string()));
        }
        assert_eq!(history.newest_first().count(), ENTRIES_MAX);
        assert_eq!(history.newest_first().last(), Some("0"));
    }
}
