//! `duologue sessions search`: words in all conversations, or in those that the store's own index names if
//! it has one.

use super::args::SearchArgs;
use super::{Failure, Out, degraded, library, message, nothing};
use crate::cli::commands::FOUND;
use crate::cli::commands::envelope::Envelope;
use crate::protocol::id::SessionId;
use crate::store::{Hit, Listing, Phrases};
use crate::support::terminal::escape_control;
use serde::Serialize;

/// Results of a search; the newest sessions come first.
const RESULTS_MAX: usize = 200;

/// A result as it is written in the envelope.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SearchResult<'a> {
    session_id: &'a str,
    title: &'a str,
    turn: u32,
    by: &'a str,
    snippet: &'a str,
}

/// Searches all conversations of a store.
pub(super) fn search(args: &SearchArgs) -> Result<u8, Failure> {
    let library = library(&args.places)?;
    let Listing { mut sessions, losses } = library.titles().map_err(Failure::Store)?;
    if let Some(found) = library.with_words(&args.words).map_err(Failure::Store)? {
        sessions.retain(|summary| found.contains(&summary.id));
    }
    let (mut envelope, mut out) = (Envelope::new(), Out::new()?);
    let (mut count, mut error) = (0, None);
    for loss in &losses {
        degraded(&mut envelope, loss.clone(), &mut error);
    }
    if !args.words.iter().any(|word| word.chars().any(char::is_alphanumeric)) {
        let why = "there is no letter and no digit in the words, and nothing else is searched";
        message(&format!("warning: {why}"));
        envelope.warn("no_words", why.to_owned());
    }
    let phrases = Phrases::new(&args.words);
    // Opened once: a connection to a server takes long, and a long log is looked through when its file is opened.
    let mut reader = match sessions.is_empty() {
        true => None,
        false => Some(library.reader().map_err(Failure::Store)?),
    };
    for summary in &sessions {
        let Some((session, reader)) = SessionId::new(&summary.id).zip(reader.as_mut()) else {
            continue;
        };
        let found = match reader.search(&session, &phrases, RESULTS_MAX - count) {
            // Only the store that is not read any more has it: that is reported once, behind all results.
            Err(why) if reader.away() == Some(why.as_str()) => continue,
            found => found.map_err(Failure::Store)?,
        };
        let Some(found) = found else { continue };
        if let Some(loss) = found.loss {
            degraded(&mut envelope, loss, &mut error);
        }
        for Hit { turn, by, snippet, .. } in &found.hits {
            count += 1;
            let (turn, id) = (*turn, &summary.id);
            if args.output.is_json() {
                let (session_id, title) = (id, &summary.title);
                envelope.push(&SearchResult { session_id, title, turn, by, snippet }, &mut out)?;
            } else {
                let [id, by, snippet] = [id, by, snippet].map(|it| escape_control(it));
                out.line(&format!("{id}  turn {turn}  {by}: {snippet}"))?;
            }
        }
        if count >= RESULTS_MAX {
            let why = format!("there may be more than {RESULTS_MAX} results; add a word");
            message(&format!("warning: {why}"));
            envelope.warn("more", why);
            break;
        }
    }
    let away = reader.as_ref().and_then(|reader| reader.away());
    if let Some(why) = away.filter(|why| !losses.iter().any(|loss| loss == why)) {
        degraded(&mut envelope, why.to_owned(), &mut error);
    }
    if args.output.is_json() {
        envelope.finish(error.as_ref(), None, &mut out)?;
    }
    out.flush()?;
    if count == 0 && error.is_none() && !args.output.is_json() {
        nothing(|| format!("no message has all of these words in {}", args.places.shown()));
    }
    Ok(if error.is_some() { FOUND } else { 0 })
}
