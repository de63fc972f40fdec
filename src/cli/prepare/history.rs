//! Reads earlier messages of a conversation from a file of JSON Lines.

use super::inputs::no_stdin;
use super::text;
use crate::command_file::{FileMessage, Role, is_stdin};
use crate::conversation::transcript::HistoryMessage;
use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use std::path::Path;

/// Longest history, in bytes: it is held in memory and sent whole.
const HISTORY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most messages of a history.
const HISTORY_MESSAGES_MAX: usize = 100_000;

/// The expected form of a line.
const EXPECTED: &str = "write one message a line, as in {\"role\": \"user\", \"text\": \"hello\"}";

/// The messages in the file at `path`, oldest first.
pub(super) fn read(path: Option<&Path>) -> Result<Vec<FileMessage>> {
    let Some(path) = path else { return Ok(Vec::new()) };
    ensure!(!is_stdin(path), no_stdin("--history"));
    let text = text::of_setting(path, HISTORY_BYTES_MAX).context("--history")?;
    messages(&text)
        .map_err(|(line, message)| anyhow!("--history: {}:{line}: {message}", path.display()))
}

/// The messages in `text`, or the number of the first wrong line and what is wrong with it.
fn messages(text: &str) -> Result<Vec<FileMessage>, (usize, String)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut messages = Vec::new();
    for (number, line) in (1..).zip(text.split('\n')) {
        if line.trim().is_empty() {
            continue;
        }
        if messages.len() == HISTORY_MESSAGES_MAX {
            let message = format!(
                "the history has more than {HISTORY_MESSAGES_MAX} messages; leave the oldest out"
            );
            return Err((number, message));
        }
        messages.push(message(line).map_err(|message| (number, message))?);
    }
    Ok(messages)
}

fn message(line: &str) -> Result<FileMessage, String> {
    let line: Value = serde_json::from_str(line)
        .map_err(|_| format!("the line is not valid JSON; {EXPECTED}"))?;
    let member = |name: &str| line.get(name).and_then(Value::as_str);
    let Some(text) = member("text").or_else(|| member("content")) else {
        return Err(format!("the line has no `text`; {EXPECTED}"));
    };
    if text.trim().is_empty() {
        return Err("the `text` is blank; write the message, or leave the line out".to_owned());
    }
    let role = match member("role") {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some(other) => {
            return Err(format!("`role` is {other:?}; it can be user, assistant or system"));
        }
        None => return Err(format!("the line has no `role`; {EXPECTED}")),
    };
    Ok(FileMessage { role, text: text.to_owned() })
}

/// The messages in the engine's form.
pub(super) fn for_engine(messages: Vec<FileMessage>) -> Vec<HistoryMessage> {
    let messages = messages.into_iter().map(|FileMessage { role, text }| match role {
        Role::User => HistoryMessage::ByUser(text),
        Role::Assistant => HistoryMessage::ByModel(text),
        Role::System => HistoryMessage::BySystem(text),
    });
    messages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_a_line_at_a_time() {
        let text = "\u{feff}{\"role\":\"system\",\"text\":\"a\",\"id\":7}\r\n\n \
                    {\"role\":\"user\",\"content\":\"{{ b }}\u{2028}\"}\n{\"role\":\"assistant\",\"text\":\"c\"}";
        let message = |role, text: &str| FileMessage { role, text: text.to_owned() };
        let expected = vec![
            message(Role::System, "a"),
            message(Role::User, "{{ b }}\u{2028}"),
            message(Role::Assistant, "c"),
        ];
        assert_eq!(messages(text), Ok(expected));
        assert_eq!(messages(" \n"), Ok(Vec::new()));
    }

    #[test]
    fn a_fault_has_its_line() {
        let good = "{\"role\":\"user\",\"text\":\"a\"}\n";
        let check = |line: &str, expected: &str| {
            let (number, message) = messages(&format!("{good}\n{line}\n{good}")).expect_err(line);
            assert_eq!(number, 3, "{line}");
            assert!(message.contains(expected), "{line}: {message}");
        };
        check("{", "not valid JSON");
        check("[]", "no `text`");
        check("{\"text\":\"a\"}", "no `role`");
        check("{\"role\":\"user\",\"text\":7}", "no `text`");
        check("{\"role\":\"user\",\"text\":\" \"}", "is blank");
        check("{\"role\":\"tool\",\"text\":\"a\"}", "`role` is \"tool\"; it can be user");
        let many = good.repeat(HISTORY_MESSAGES_MAX + 1);
        let (number, message) = messages(&many).expect_err("too many");
        assert_eq!(number, HISTORY_MESSAGES_MAX + 1);
        assert!(message.contains("more than 100000 messages"), "{message}");
    }
}
