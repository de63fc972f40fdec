//! `duologue sessions export`: a conversation as protocol lines, Markdown, JSON or HTML.

use super::args::{ExportArgs, ExportFormat};
use super::markdown::contained;
use super::message::{Said, entries};
use super::{Failure, Out, conversation, message, status_of};
use crate::cli::commands::FOUND;
use crate::cli::commands::envelope::Envelope;
use crate::conversation::attached::show_bytes;
use crate::protocol::constants::capability::ALWAYS;
use crate::protocol::json;
use crate::protocol::proto::rpc::SnapshotEntity;
use crate::protocol::wire::{self, Frame};
use crate::store::Conversation;
use crate::support::terminal::{Escapes, make_visible};
use serde::Serialize;
use std::io::{self, IsTerminal};

/// The style of the page, and its beginning. It loads nothing and runs nothing.
const PAGE_START: &str = "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n\
     <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
     <style>body{max-width:50em;margin:auto;font-family:sans-serif}\
     pre{white-space:pre-wrap;overflow-wrap:anywhere}</style>\n";

/// A conversation as one JSON object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Whole<'a> {
    session_id: &'a str,
    snapshot_ordinal: String,
    entities: &'a [SnapshotEntity],
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
    if let Some(loss) = &found.loss {
        envelope.warn("store_degraded", loss.clone());
    }
    if let Some(lost) = lost {
        envelope.warn("attachments_lost", lost);
    }
    match format {
        ExportFormat::Jsonl => {
            for frame in frames(found) {
                envelope.push(&frame, &mut out)?;
            }
            envelope.finish(None, None, &mut out)
        }
        ExportFormat::Json => envelope.finish_value(&Whole::of(&found), None, &mut out),
        ExportFormat::Markdown => envelope.finish_value(&markdown(&found), None, &mut out),
        ExportFormat::Html => envelope.finish_value(&html(&found), None, &mut out),
    }
}

fn without_bytes(lost: usize) -> String {
    format!("the export has no bytes of {lost} attachments, which are not in the store")
}

/// The lines of a process that resumes the conversation and ends at once.
fn frames(found: Conversation) -> [Frame; 2] {
    let capabilities = ALWAYS.iter().map(|&word| word.to_owned()).collect();
    [wire::hello(capabilities), wire::snapshot(found.state)]
        .map(|body| wire::frame(&found.session, None, body))
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
        }
    }
}

fn write(value: &impl Serialize, text: &mut Vec<u8>) -> Result<(), Failure> {
    json::write_line(value, text)
        .map_err(|error| Failure::Usage(format!("the conversation has no JSON form: {error}")))
}

fn markdown(found: &Conversation) -> String {
    let mut text = format!("# Conversation {}\n", found.session.as_str());
    for said in entries(found) {
        text += &match said {
            Said::Message { role, text, files, mark } => {
                let files: String = files.iter().map(|name| format!("\n- file: {name}")).collect();
                let mark = mark.map_or(String::new(), |mark| format!("\n\n*({mark})*"));
                let text = contained(&text);
                format!("\n## {}\n\n{text}\n{files}{mark}\n", heading(&role))
            }
            Said::Ended(how) if text.ends_with("\n\n") => format!("*({how})*\n"),
            Said::Ended(how) => format!("\n*({how})*\n"),
            Said::Call { tool, input } => format!("\n### Call of {tool}\n\n{}\n", fenced(&input)),
            Said::Result { tool, text, is_error } => {
                let what = if is_error { "Error" } else { "Result" };
                format!("\n### {what} of {tool}\n\n{}\n", fenced(&text))
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

fn html(found: &Conversation) -> String {
    let title = escaped(found.session.as_str());
    let mut page =
        format!("{PAGE_START}<title>{title}</title>\n</head>\n<body>\n<h1>{title}</h1>\n");
    for said in entries(found) {
        let (head, text, mark) = match said {
            Said::Message { role, text, files, mark } => {
                let files = files.iter().map(|name| format!("file: {name}"));
                let notes = files.chain(mark).collect::<Vec<_>>().join(", ");
                (heading(&role).to_owned(), text, notes)
            }
            Said::Ended(how) => {
                page += &format!("<p><em>{}</em></p>\n", escaped(&how));
                continue;
            }
            Said::Call { tool, input } => (format!("Call of {tool}"), input, String::new()),
            Said::Result { tool, text, is_error: false } => {
                (format!("Result of {tool}"), text, String::new())
            }
            Said::Result { tool, text, is_error: true } => {
                (format!("Error of {tool}"), text, String::new())
            }
        };
        let [head, text, mark] = [head, text, mark].map(|it| escaped(&it));
        page += &format!("<h2>{head}</h2>\n<pre>{text}</pre>\n");
        if !mark.is_empty() {
            page += &format!("<p><em>{mark}</em></p>\n");
        }
    }
    page + "</body>\n</html>\n"
}

/// The name of a role for people.
fn heading(role: &str) -> &str {
    match role {
        "user" => "User",
        "assistant" => "Assistant",
        "thinking" => "Reasoning",
        "warning" => "Warning",
        "error" => "Error",
        other => other,
    }
}

/// `text` without characters that mean something in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_can_not_end_its_fence_or_its_element() {
        assert_eq!(fenced("a"), "```\na\n```");
        assert_eq!(fenced("````\n"), "`````\n````\n`````");
        assert_eq!(escaped("<b a=\"&\">"), "&lt;b a=&quot;&amp;&quot;&gt;");
    }
}
