//! `duologue sessions export`: a conversation as protocol lines, Markdown, JSON or HTML.

use super::args::{ExportArgs, ExportFormat};
use super::html::{html, role_name};
use super::markdown::{contained, literal};
use super::message::{Said, summarized};
use super::words::session_words;
use super::{Failure, Out, conversation, message, partial, status_of};
use crate::cli::commands::FOUND;
use crate::cli::commands::envelope::Envelope;
use crate::conversation::attached::show_bytes;
use crate::conversation::summaries::Summaries;
use crate::protocol::constants::capability::{ALWAYS, TURN_SUMMARIES};
use crate::protocol::constants::command_code;
use crate::protocol::json;
use crate::protocol::proto::rpc::SnapshotEntity;
use crate::protocol::proto::session::{TokenCounts, TurnSummary};
use crate::protocol::wire::{self, Frame};
use crate::store::Conversation;
use crate::support::terminal::{Escapes, make_visible};
use serde::Serialize;
use std::io::{self, IsTerminal};

/// A conversation as one JSON object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Whole<'a> {
    session_id: &'a str,
    snapshot_ordinal: String,
    entities: &'a [SnapshotEntity],
    turns: Vec<&'a TurnSummary>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    compactions: &'a [SnapshotEntity],
    usage: &'a TokenCounts,
}

/// Prints a conversation in the format that `args` name.
pub(super) fn export(args: &ExportArgs) -> Result<u8, Failure> {
    let mut found = match conversation(&args.places, &args.id)? {
        Ok(found) => found,
        Err(error) => {
            message(&error.message);
            if args.output.is_json() {
                Envelope::new().finish_value(&(), Some(&error), &mut Out::new()?)?;
            }
            return Ok(FOUND);
        }
    };
    let status = status_of(&found);
    // A client of the published protocol does not know them.
    if args.format == ExportFormat::Jsonl && !args.turn_summaries {
        found.summaries = Summaries::default();
    }
    let lost = match args.format {
        ExportFormat::Jsonl => show_bytes(&mut found.state, &found.turns),
        ExportFormat::Json | ExportFormat::Markdown | ExportFormat::Html => 0,
    };
    let lost = (lost > 0).then(|| without_bytes(lost));
    if let Some(lost) = &lost {
        message(&format!("warning: {lost}"));
    }
    if args.output.is_json() {
        enveloped(args.format, found, lost)?;
        return Ok(status);
    }
    let (mut text, escapes) = match args.format {
        ExportFormat::Jsonl => (lines(found)?, Escapes::Json),
        ExportFormat::Json => (object(&found)?, Escapes::Json),
        ExportFormat::Markdown => (markdown(&found).into_bytes(), Escapes::Text),
        ExportFormat::Html => (html(&found).into_bytes(), Escapes::Text),
    };
    if io::stdout().is_terminal() {
        make_visible(&mut text, 0, escapes);
    }
    let mut out = Out::new()?;
    out.write(&text)?;
    out.flush()?;
    Ok(status)
}

/// The export as the data of one JSON object: a list of frames, the object, or the text.
fn enveloped(
    format: ExportFormat,
    found: Conversation,
    lost: Option<String>,
) -> Result<(), Failure> {
    let (mut envelope, mut out) = (Envelope::new(), Out::new()?);
    let error = found.loss.as_deref().map(partial);
    let error = error.as_ref();
    if let Some(loss) = &found.loss {
        envelope.warn(command_code::STORE_DEGRADED, loss.clone());
    }
    if let Some(lost) = lost {
        envelope.warn("attachments_lost", lost);
    }
    match format {
        ExportFormat::Jsonl => {
            for frame in frames(found) {
                envelope.push(&frame, &mut out)?;
            }
            envelope.finish(error, None, &mut out)
        }
        ExportFormat::Json => envelope.finish_value(&Whole::of(&found), error, &mut out),
        ExportFormat::Markdown => envelope.finish_value(&markdown(&found), error, &mut out),
        ExportFormat::Html => envelope.finish_value(&html(&found), error, &mut out),
    }
}

fn without_bytes(lost: usize) -> String {
    format!("the export has no bytes of {lost} attachments, which are not in the store")
}

/// The lines of a process that resumes the conversation and ends at once, with the summaries of its turns
/// before the snapshot.
fn frames(found: Conversation) -> Vec<Frame> {
    let Conversation { session, state, summaries, .. } = found;
    let turns = summaries.turns();
    let words = ALWAYS.iter().chain((!turns.is_empty()).then_some(&TURN_SUMMARIES));
    let mut bodies = vec![wire::hello(words.map(|&word| word.to_owned()).collect())];
    bodies.extend(turns.iter().map(|it| wire::ui_event(it.ordinal, it.summary.clone().into())));
    bodies.push(wire::snapshot(state));
    bodies.into_iter().map(|body| wire::frame(&session, None, body)).collect()
}

fn lines(found: Conversation) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    for frame in frames(found) {
        write(&frame, &mut text)?;
    }
    Ok(text)
}

fn object(found: &Conversation) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    write(&Whole::of(found), &mut text)?;
    Ok(text)
}

impl<'a> Whole<'a> {
    fn of(found: &'a Conversation) -> Self {
        Self {
            session_id: found.session.as_str(),
            snapshot_ordinal: found.state.snapshot_ordinal.to_string(),
            entities: &found.state.entities,
            turns: found.summaries.turns().iter().map(|turn| &turn.summary).collect(),
            compactions: &found.compactions,
            usage: found.summaries.totals(),
        }
    }
}

fn write(value: &impl Serialize, text: &mut Vec<u8>) -> Result<(), Failure> {
    json::write_line(value, text)
        .map_err(|error| Failure::Usage(format!("the conversation has no JSON form: {error}")))
}

fn markdown(found: &Conversation) -> String {
    let (turns, totals) = (found.summaries.turns().len(), found.summaries.totals());
    let mut text = format!("# Conversation {}\n", literal(found.session.as_str()));
    if turns > 0 {
        text += &format!("\n*{}*\n", literal(&session_words(turns, totals)));
    }
    for said in summarized(found) {
        text += &match said {
            Said::Message { role, text, files, mark } => {
                let file = |name: &String| format!("\n- file: {}", literal(name));
                let files: String = files.iter().map(file).collect();
                let mark = mark.map_or(String::new(), |mark| format!("\n\n*({mark})*"));
                let text = contained(&text);
                format!("\n## {}\n\n{text}\n{files}{mark}\n", role_name(&role))
            }
            Said::Ended(how) if text.ends_with("\n\n") => format!("*({how})*\n"),
            Said::Ended(how) => format!("\n*({how})*\n"),
            Said::Summary(words) => format!("\n*{}*\n", literal(&words)),
            Said::Call { tool, input } => {
                format!("\n### Call of {}\n\n{}\n", literal(&tool), fenced(&input))
            }
            Said::Result { tool, text, is_error } => {
                let what = if is_error { "Error" } else { "Result" };
                format!("\n### {what} of {}\n\n{}\n", literal(&tool), fenced(&text))
            }
        };
    }
    text
}

/// `text` in a fence that is longer than any in it.
fn fenced(text: &str) -> String {
    let runs = text.split(|char| char != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::any::Any;
    use crate::protocol::id::SessionId;
    use crate::protocol::proto::chat::{
        ChatAttachment, ChatMessageEntity, ToolCallEntity, ToolResultEntity,
    };
    use crate::protocol::proto::rpc::SnapshotFrame;

    /// A model names a tool, and a person or another program names sessions and files.
    #[test]
    fn names_are_no_markdown() {
        let name = || "__x__\r\n\n# Fake\n\n<script>".to_owned();
        let file = ChatAttachment { filename: name(), ..ChatAttachment::default() };
        let payloads: [Any; 3] = [
            ChatMessageEntity { attachments: vec![file], ..ChatMessageEntity::default() }.into(),
            ToolCallEntity { tool_name: name(), ..ToolCallEntity::default() }.into(),
            ToolResultEntity { tool_name: name(), ..ToolResultEntity::default() }.into(),
        ];
        let entity = |payload| SnapshotEntity { payload: Some(payload), ..Default::default() };
        let entities = payloads.map(entity).to_vec();
        let found = Conversation {
            session: SessionId::new(&name()).expect("an id"),
            state: SnapshotFrame { entities, ..SnapshotFrame::default() },
            summaries: Summaries::default(),
            compactions: Vec::new(),
            turns: Vec::new(),
            loss: None,
        };
        let text = format!("\n{}", markdown(&found));
        let shown = r"\_\_x\_\_   # Fake  \<script\>";
        for begin in ["# Conversation", "- file:", "### Call of", "### Result of"] {
            assert!(text.contains(&format!("\n{begin} {shown}\n")), "{begin}: {text}");
        }
        assert!(!text.contains("\n# Fake"), "{text}");
    }

    #[test]
    fn what_was_said_can_not_end_its_fence() {
        assert_eq!(fenced("a"), "```\na\n```");
        assert_eq!(fenced("````\n"), "`````\n````\n`````");
    }
}
