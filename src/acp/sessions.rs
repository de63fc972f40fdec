//! Stored sessions: the list of them, and their deletion. In threads, as a store may be slow.

use super::jsonrpc::RpcError;
use super::schema::{ListParams, SessionInfo};
use crate::protocol::id::SessionId;
use crate::store::{Library, Summary};
use crate::support::terminal::escape_control;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use uuid::Uuid;

/// Sessions of one page of the list.
const PAGE_MAX: usize = 100;

/// Characters of a tag: 32 random bits, as a session is opened few times.
const TAG_CHARS: usize = 8;

/// The id of a new session.
pub(super) fn fresh_id() -> SessionId {
    let mut ids = crate::protocol::id::Ids::new(Uuid::new_v4().as_u128());
    ids.session()
}

/// What the ids of one opening of a session have in them.
pub(super) fn fresh_tag() -> String {
    let mut tag = Uuid::new_v4().simple().to_string();
    tag.truncate(TAG_CHARS);
    tag
}

/// The answer to `session/list`: the sessions of a folder, or all; the one that was used last first.
///
/// # Errors
/// If the store can't be read, or the cursor is none.
pub(super) fn list(library: &Library, params: &ListParams) -> Result<Value, RpcError> {
    let listing = library.titles().map_err(RpcError::failed)?;
    for loss in &listing.losses {
        tracing::warn!("not all sessions can be listed: {}", escape_control(loss));
    }
    // A session is stored with the folder that the links of its path lead to, as a shell has it.
    let resolved = params.cwd.as_ref().and_then(|cwd| fs::canonicalize(cwd).ok());
    page(listing.sessions, params, resolved.as_deref())
}

/// A page of `sessions`; `resolved` is the folder of `params` without links.
fn page(
    mut sessions: Vec<Summary>,
    params: &ListParams,
    resolved: Option<&Path>,
) -> Result<Value, RpcError> {
    let is_in_folder = |it: &Summary| match &params.cwd {
        Some(cwd) => [Some(Path::new(cwd)), resolved].contains(&Some(Path::new(&it.folder))),
        // The protocol has no session without a folder.
        None => Path::new(&it.folder).is_absolute(),
    };
    // In one without a turn nothing was said yet.
    sessions.retain(|it| it.turns > 0 && is_in_folder(it));
    sessions.sort_by(|a, b| key(b).cmp(&key(a)));
    if let Some(cursor) = &params.cursor {
        let after =
            cursor_of(cursor).ok_or_else(|| RpcError::invalid_params("there is no such page"))?;
        sessions.retain(|it| key(it) < after);
    }
    let is_more = sessions.len() > PAGE_MAX;
    sessions.truncate(PAGE_MAX);
    let next = sessions.last().filter(|_| is_more).map(|it| format!("{}:{}", it.updated_ms, it.id));
    // Clients know the folder by the path that they asked for.
    let folder = |it: &Summary| params.cwd.clone().unwrap_or_else(|| it.folder.clone());
    let named = sessions.into_iter().map(|it| Summary { folder: folder(&it), ..it });
    let sessions: Vec<_> = named.map(info).collect();
    let mut result = json!({ "sessions": sessions });
    if let Some(next) = next {
        result["nextCursor"] = json!(next);
    }
    Ok(result)
}

/// The place of a session in the list. It is stable while sessions come and go.
fn key(it: &Summary) -> (i64, &str) {
    (it.updated_ms, &it.id)
}

fn cursor_of(text: &str) -> Option<(i64, &str)> {
    let (updated_ms, id) = text.split_once(':')?;
    Some((updated_ms.parse().ok()?, id))
}

fn info(summary: Summary) -> SessionInfo {
    let Summary { id, title, folder, updated_ms, .. } = summary;
    let updated_at = Timestamp::from_millisecond(updated_ms).unwrap_or_default().to_string();
    SessionInfo { session_id: id, cwd: folder, title: escape_control(&title), updated_at }
}

/// The answer to `session/delete`; a session that is not there is deleted.
///
/// # Errors
/// If another process holds it, or the store can't be written.
pub(super) fn delete(library: &Library, session: &SessionId) -> Result<Value, RpcError> {
    library.delete(session).map_err(RpcError::failed)?;
    Ok(json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(id: &str, folder: &str, updated_ms: i64) -> Summary {
        let (id, folder) = (id.to_owned(), folder.to_owned());
        Summary { id, folder, updated_ms, turns: 1, ..Summary::default() }
    }

    fn ids(page: &Value) -> Vec<&str> {
        let sessions = page["sessions"].as_array().expect("a list");
        sessions.iter().filter_map(|it| it["sessionId"].as_str()).collect()
    }

    #[test]
    fn a_folder_has_its_own_sessions() {
        let all = || vec![summary("a", "/p", 1), summary("b", "/q", 2), summary("c", "", 3)];
        let of = |cwd: Option<&str>| {
            let cwd = cwd.map(str::to_owned);
            page(all(), &ListParams { cwd, cursor: None }, Some(Path::new("/q"))).expect("a page")
        };
        assert_eq!(ids(&of(None)), ["b", "a"]);
        assert_eq!(ids(&of(Some("/p/"))), ["b", "a"]);
        assert_eq!(ids(&of(Some("/link"))), ["b"]);
        assert_eq!(of(Some("/link"))["sessions"][0]["cwd"], "/link");
        assert_eq!(of(Some("/p"))["sessions"][1]["updatedAt"], "1970-01-01T00:00:00.001Z");
    }

    #[test]
    fn pages_have_each_session_once() {
        let all = || (0..250).map(|n| summary(&format!("s{n}"), "/p", n / 7)).collect::<Vec<_>>();
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = page(all(), &ListParams { cwd: None, cursor }, None).expect("a page");
            found.extend(ids(&page).into_iter().map(str::to_owned));
            cursor = page["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        let mut unique = found.clone();
        unique.sort();
        unique.dedup();
        assert_eq!((found.len(), unique.len()), (250, 250));
        let wrong = ListParams { cwd: None, cursor: Some("x".to_owned()) };
        assert!(page(all(), &wrong, None).is_err());
    }
}
