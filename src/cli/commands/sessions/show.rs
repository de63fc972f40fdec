//! `duologue sessions show`: a conversation for people.

use super::args::ShowArgs;
use super::message::{Said, entries};
use super::{Failure, Out, conversation, message, partial, status_of};
use crate::cli::commands::FOUND;
use crate::cli::commands::envelope::Envelope;
use crate::protocol::constants::command_code;
use crate::support::shorten::first_chars;
use crate::support::terminal::{Escapes, escape_control, visible};

/// Characters of a tool's arguments or result that are shown.
const TOOL_CHARS_MAX: usize = 200;

/// Prints a conversation.
pub(super) fn show(args: &ShowArgs) -> Result<u8, Failure> {
    let found = conversation(&args.places, &args.id)?;
    let mut out = Out::new()?;
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            message(&error.message);
            if args.output.is_json() {
                Envelope::new().finish(Some(&error), None, &mut out)?;
            }
            return Ok(FOUND);
        }
    };
    if args.output.is_json() {
        let mut envelope = Envelope::new();
        let error = found.loss.as_deref().map(partial);
        if let Some(loss) = &found.loss {
            envelope.warn(command_code::STORE_DEGRADED, loss.clone());
        }
        for entity in &found.state.entities {
            envelope.push(entity, &mut out)?;
        }
        envelope.finish(error.as_ref(), None, &mut out)?;
        return Ok(status_of(&found));
    }
    for (number, said) in entries(&found).iter().enumerate() {
        if number > 0 && matches!(said, Said::Message { .. }) {
            out.line("")?;
        }
        out.line(&line(said))?;
    }
    out.flush()?;
    Ok(status_of(&found))
}

/// A message, a call or a result for people.
fn line(said: &Said) -> String {
    match said {
        Said::Message { role, text, files, mark } => {
            let mut shown = format!("{role}: {}", visible(text, Escapes::Text));
            for file in files {
                shown += &format!("\n    [file: {}]", escape_control(file));
            }
            if let Some(mark) = mark {
                shown += &format!("\n    [{}]", escape_control(mark));
            }
            shown
        }
        Said::Ended(how) | Said::Summary(how) => format!("    [{}]", escape_control(how)),
        Said::Call { tool, input } => format!("    {}({})", escape_control(tool), short(input)),
        Said::Result { tool, text, is_error: false } => {
            format!("    {} -> {}", escape_control(tool), short(text))
        }
        Said::Result { tool, text, is_error: true } => {
            format!("    {} failed: {}", escape_control(tool), short(text))
        }
    }
}

/// The beginning of a text, in one line.
fn short(text: &str) -> String {
    escape_control(&first_chars(text, TOOL_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_shown_without_control_characters() {
        let shown = |said: Said| line(&said);
        let (tool, input) = ("sum".to_owned(), "{\n}".to_owned());
        assert_eq!(shown(Said::Call { tool: tool.clone(), input }), "    sum({ })");
        let text = "a\u{1b}[2J".to_owned() + &"b".repeat(300);
        let long = shown(Said::Result { tool, text, is_error: true });
        assert!(long.starts_with("    sum failed: a\\x1b[2Jb") && long.ends_with('…'), "{long}");
        let (role, text) = ("user".to_owned(), "one\ntwo\u{7}".to_owned());
        let (files, mark) = (vec!["a.png".to_owned()], Some("stopped".to_owned()));
        let expected = "user: one\ntwo\\x07\n    [file: a.png]\n    [stopped]";
        assert_eq!(shown(Said::Message { role, text, files, mark }), expected);
    }
}
