//! Where a conversation would be stored.

use super::Check;
use crate::cli::commands::args::DoctorArgs;
use crate::store::{Inspected, Inspection, Tables};

/// Checks each store that is named; none is changed.
pub(super) fn check(args: &DoctorArgs, checks: &mut Vec<Check>) {
    match args.places.library() {
        Ok(None) => checks.push(Check::fine("store", "none is named (--store, DUOLOGUE_STORE)")),
        Ok(Some(library)) => {
            checks.extend(library.inspect(!args.offline).into_iter().map(of_place))
        }
        Err(why) => checks.push(Check::wrong("store", why)),
    }
}

fn of_place(Inspected { place, part, found }: Inspected) -> Check {
    let part = part.map(|part| format!(" ({part})")).unwrap_or_default();
    match found {
        None => Check::note("store", format!("{place}{part}: not connected to (--offline)")),
        Some(Err(why)) => Check::wrong("store", format!("{place}{part}: {why}")),
        Some(Ok(Inspection { tables, is_remote })) => {
            let tables = match tables {
                None => "can be made; no conversation is stored there yet".to_owned(),
                Some(tables) => shown(&tables),
            };
            let found = format!("{place}{part}: {tables}");
            match is_remote {
                true => Check::note(
                    "store",
                    format!(
                        "{found}; it is on a network file system, where locks and writes can be lost, \
                         so only one machine should use it"
                    ),
                ),
                false => Check::fine("store", found),
            }
        }
    }
}

fn shown(Tables { format, newest, sessions, held, holders }: &Tables) -> String {
    let sessions = match sessions {
        1 => "1 session".to_owned(),
        count => format!("{count} sessions"),
    };
    let format = match format == newest {
        true => format!("format {format}"),
        false => format!("format {format}, which the next conversation changes to {newest}"),
    };
    let held = match held {
        0 => "none of them is in use".to_owned(),
        held => format!("{held} of them in use by {}", holders.join("; ")),
    };
    format!("can be read and written; {sessions}, {held}; {format}")
}
