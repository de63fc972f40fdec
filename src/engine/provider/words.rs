//! Events of an answer in words, for tests.

use super::failure::Failure;
use crate::engine::EngineEvent;

/// The events in words, adjacent texts joined, and the class of the failure.
pub(in crate::engine) fn words(events: &[EngineEvent], result: &Result<(), Failure>) -> String {
    let mut words = String::new();
    let mut last = String::new();
    for event in events {
        let (head, text) = word(event);
        if head != last || !(head.starts_with('<') || head.starts_with('[')) {
            words += &format!(" {head}");
        }
        words += &text;
        last = head;
    }
    if let Err(failure) = result {
        words += &format!(" FAILED {}", failure.class.as_str());
    }
    words.trim_start().to_owned()
}

fn word(event: &EngineEvent) -> (String, String) {
    match event {
        EngineEvent::Text(text) => ("<text>".into(), text.clone()),
        EngineEvent::Reasoning { source, text } => (format!("<{source}>"), text.clone()),
        EngineEvent::ToolCallStarted(tool) => {
            (format!("+{}:{}", tool.id.0, tool.name), String::new())
        }
        EngineEvent::ToolArguments { id, text } => (format!("[{}]", id.0), text.clone()),
        EngineEvent::ToolCallRequested { id } => (format!("!{}", id.0), String::new()),
        EngineEvent::Usage(usage) => {
            (format!("{}/{}", usage.input_tokens, usage.output_tokens), String::new())
        }
        EngineEvent::CallFinished { stop_reason, class, provider_data } => {
            let data =
                provider_data.as_ref().map_or(String::new(), |data| format!(" {}", data.json));
            (format!("END {stop_reason:?} {}{data}", class.as_str()), String::new())
        }
        EngineEvent::CallStarted => ("CALL".into(), String::new()),
        EngineEvent::ResponseStarted => ("RESPONSE".into(), String::new()),
        EngineEvent::RetryScheduled(_) | EngineEvent::RetryStarted(_) => {
            ("RETRY".into(), String::new())
        }
    }
}

/// All text in the events: of the answer, the reasoning and the arguments.
pub(in crate::engine) fn texts(events: &[EngineEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        EngineEvent::Text(text)
        | EngineEvent::Reasoning { text, .. }
        | EngineEvent::ToolArguments { text, .. } => Some(text.as_str()),
        EngineEvent::CallStarted
        | EngineEvent::ResponseStarted
        | EngineEvent::ToolCallStarted(_)
        | EngineEvent::ToolCallRequested { .. }
        | EngineEvent::Usage(_)
        | EngineEvent::RetryScheduled(_)
        | EngineEvent::RetryStarted(_)
        | EngineEvent::CallFinished { .. } => None,
    });
    texts.collect()
}
