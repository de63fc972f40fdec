//! The conversation as text, for copying and saving.

use super::{ToolCall, ToolState};

/// The conversation, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
enum Entry {
    Prompt(String),
    Answer(String),
    Reasoning(String),
    Tool {
        name: String,
        input: String,
        result: String,
        failed: bool,
    },
    /// How the answer before it, or a prompt without an answer, ended.
    Ended(String),
}

impl Log {
    pub(super) fn prompt(&mut self, text: &str) {
        self.entries.push(Entry::Prompt(text.to_owned()));
    }

    pub(super) fn answer(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.entries.push(Entry::Answer(text.to_owned()));
        }
    }

    pub(super) fn reasoning(&mut self, text: &str) {
        self.entries.push(Entry::Reasoning(text.to_owned()));
    }

    pub(super) fn tool(&mut self, call: &ToolCall) {
        self.entries.push(Entry::Tool {
            name: call.name.clone(),
            input: call.input.clone(),
            result: call.result.clone(),
            failed: matches!(call.state, ToolState::Failed(_)),
        });
    }

    /// The answer, or the prompt without one, did not end well.
    pub(super) fn ended(&mut self, how: &str) {
        self.entries.push(Entry::Ended(how.to_owned()));
    }

    /// How much there is.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets all but the first `len` entries.
    pub(super) fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The last answer: what the model wrote after the last prompt, or before it if that has no
    /// answer yet.
    pub(crate) fn last_answer(&self) -> Option<String> {
        let mut parts = Vec::new();
        for entry in self.entries.iter().rev() {
            match entry {
                Entry::Answer(text) => parts.push(text.as_str()),
                Entry::Prompt(_) if !parts.is_empty() => break,
                Entry::Prompt(_) | Entry::Reasoning(_) | Entry::Tool { .. } | Entry::Ended(_) => {}
            }
        }
        parts.reverse();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }

    /// The conversation as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            let part = match entry {
                Entry::Prompt(prompt) => format!("## You\n\n{prompt}"),
                Entry::Answer(answer) => format!("## Model\n\n{}", answer.trim_end()),
                Entry::Ended(how) => format!("*({how})*"),
                Entry::Reasoning(reasoning) => {
                    let quoted: Vec<_> =
                        reasoning.lines().map(|line| format!("> {line}")).collect();
                    format!("> *Reasoning*\n>\n{}", quoted.join("\n"))
                }
                Entry::Tool { name, input, result, failed } => {
                    let how = if *failed { "failed" } else { "returned" };
                    let (input, result) = (fenced(input), fenced(result));
                    format!("### Tool `{name}`\n\n{input}\n\nIt {how}:\n\n{result}")
                }
            };
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&part);
            text.push('\n');
        }
        text
    }
}

/// A text between fences that do not occur in it.
fn fenced(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_is_what_came_after_the_last_answered_prompt() {
        let mut log = Log::default();
        assert_eq!(log.last_answer(), None);
        log.prompt("1");
        log.answer("one");
        log.prompt("2");
        log.answer("two a");
        log.answer("two b");
        assert_eq!(log.last_answer().as_deref(), Some("two a\n\ntwo b"));
        log.prompt("3");
        assert_eq!(log.last_answer().as_deref(), Some("two a\n\ntwo b"));
        assert!(log.markdown().starts_with("## You\n\n1\n\n## Model\n\none\n"));
    }
}
