//! What every provider wants of the messages that it is sent.

use crate::conversation::transcript::Message;
use anyhow::{Result, bail, ensure};
use std::collections::{HashMap, VecDeque};

/// Who spoke before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Nobody,
    User,
    /// The model, without a tool call.
    Model,
    Tool,
}

/// Checks the messages of a provider call. `results` has the text of each result, by the id of its
/// call.
pub(super) fn check(messages: &[Message<'_>], results: &HashMap<String, String>) -> Result<()> {
    let mut last = Last::Nobody;
    // Calls of the newest answer that have no result yet, in their order.
    let mut owed: VecDeque<&str> = VecDeque::new();
    for message in messages {
        if let Message::Tool { tool, result, .. } = message {
            let next = owed.pop_front();
            ensure!(next == Some(tool.id.0.as_str()), "a result of {}, not {next:?}", tool.id.0);
            if let Some(expected) = results.get(&tool.id.0) {
                ensure!(*expected == **result, "the result of {} is {result:?}", tool.id.0);
            }
            last = Last::Tool;
            continue;
        }
        ensure!(owed.is_empty(), "no results of {owed:?} before {message:?}");
        last = match (message, last) {
            (Message::System(_), Last::Nobody) => Last::Nobody,
            (Message::User { .. }, Last::Nobody | Last::Model | Last::Tool) => Last::User,
            (Message::Assistant { calls, .. }, Last::User | Last::Tool) => {
                owed = calls.iter().map(|(tool, _)| tool.id.0.as_str()).collect();
                Last::Model
            }
            _ => bail!("{message:?} after {last:?}"),
        };
    }
    ensure!(owed.is_empty(), "no results of {owed:?}");
    ensure!(matches!(last, Last::User | Last::Tool), "there is nothing to answer");
    Ok(())
}

#[test]
fn wrong_messages_are_seen() {
    use crate::conversation::event::ToolCall;
    use crate::protocol::id::ToolCallId;
    let call = |id: &str| ToolCall { id: ToolCallId(id.to_owned()), name: "read".to_owned() };
    let (a, b) = (call("a"), call("b"));
    let user = || Message::user("hi", &[]);
    let calls = |calls: &[&'static str]| {
        let of = |id: &&str| if *id == "a" { (&a, "{}") } else { (&b, "{}") };
        let calls = calls.iter().map(of).collect();
        Message::Assistant { text: "".into(), calls, provider_data: None }
    };
    let result = |id: &str| Message::Tool {
        images: &[],
        tool: if id == "a" { &a } else { &b },
        result: id.to_owned().into(),
        is_error: false,
    };
    let results = [("a", "a"), ("b", "b")].map(|(id, text)| (id.to_owned(), text.to_owned()));
    let results = HashMap::from(results);
    check(&[user(), calls(&["a", "b"]), result("a"), result("b")], &results).expect("as wanted");
    check(&[user(), calls(&["a"]), result("a"), user()], &results).expect("as wanted");
    let wrong = [
        vec![user(), calls(&["a", "b"]), result("b"), result("a")],
        vec![user(), calls(&["a", "b"]), result("a")],
        vec![user(), calls(&["a", "b"]), result("a"), user(), result("b")],
        vec![user(), calls(&["a"]), result("a"), result("b")],
        vec![user(), calls(&["a"]), result("a"), result("a")],
        vec![user(), result("a")],
        vec![user(), user()],
        vec![user(), calls(&[]), calls(&[]), user()],
        vec![calls(&[]), user()],
        vec![user(), calls(&[])],
    ];
    for messages in wrong {
        assert!(check(&messages, &results).is_err(), "{messages:?}");
    }
}
