//! A batch that is to be written into PostgreSQL, and the statements that only it needs: most batches need none of
//! them (`round`). Pure.

use super::link::{Statement, Value};
use super::payloads::{Payload, Payloads};
use crate::protocol::id::SessionId;
use crate::store::batch::Batch;
use crate::store::codec::{Blobs, RowReader, read_start};
use crate::store::row::NewRow;
use crate::store::search::entities_of;
use crate::store::sqlite::now_ms;
use crate::store::words;
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use tokio_postgres::types::Type;

const SESSION: &str = "INSERT INTO duologue.sessions(id, title, folder, created_ms, updated_ms, \
     changed, last, turns, dropped_turns, start, rows, head, writer, batch, word_rules) \
     VALUES ($1, '', $2, $3, $3, 0, 0, 0, 0, $4, 0, '', 0, 0, $5)";
const REPLACED: &str = "DELETE FROM duologue.log USING duologue.sessions s \
     WHERE s.id = $1 AND log.session = s.key AND log.number > $2";
const BLOBS: &str = "INSERT INTO duologue.blobs(sha256, data) \
     SELECT * FROM unnest($2, $3) ON CONFLICT DO NOTHING";
const BLOBS_OF: &str = "INSERT INTO duologue.session_blobs(session, sha256) \
     SELECT s.key, it.sha256 FROM duologue.sessions s, unnest($2) AS it(sha256) \
     WHERE s.id = $1 ON CONFLICT DO NOTHING";
const RENAMED: &str = "UPDATE duologue.sessions SET title = $2 WHERE id = $1";

/// Bytes of a folder that is stored as it is. The index of folders takes up to 2,704 bytes for a row (PostgreSQL's
/// manual, "B-Tree Indexes").
const FOLDER_BYTES_MAX: usize = 2_000;

/// A batch that a crash of the server might still undo.
#[derive(Debug)]
pub(super) struct Pending {
    /// Its place among the batches of its lease, from 1.
    pub(super) number: i64,
    /// The hash of the last row of the log with it: it makes a write that is tried again idempotent.
    pub(super) head: Vec<u8>,
    /// The server syncs it before it confirms it.
    pub(super) is_synced: bool,
    /// The session is noted as the one that was used last: it begins, a turn begins or ends, or turns are dropped. Not
    /// for each batch, as the server changes an index for it.
    pub(super) is_marked: bool,
    pub(super) bytes: usize,
    /// The number of the transaction that wrote it, or of the next one where an earlier connection did; `None`
    /// if it is not written.
    pub(super) commit: Option<u64>,
    pub(super) session: String,
    folder: String,
    start: Vec<u8>,
    replaces_after: Option<i64>,
    pub(super) rows: Vec<NewRow>,
    pub(super) words: Vec<Words>,
    hashes: Vec<String>,
    blobs: Payloads,
    pub(super) last: i64,
    pub(super) turns: i64,
    /// `None`: the session keeps the one that a person has given it.
    pub(super) title: Option<String>,
    renamed: Option<String>,
    pub(super) dropped_turns: i64,
    pub(super) choices: Option<Vec<u8>>,
    /// How many rows the log has.
    pub(super) row_count: i64,
    /// When the session was used; 0 if it is only renamed.
    pub(super) at_ms: i64,
}

/// Words of what people see of a row.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) number: i64,
    /// As a `tsvector` in its text form.
    pub(super) terms: String,
}

impl Pending {
    pub(super) fn new(session: &SessionId, number: i64, batch: &Batch, folder: &str) -> Self {
        let data = batch.blobs.values().map(|data| Payload::Data(data.clone()));
        let sizes = batch.rows.iter().map(|row| row.events.size());
        let bytes = sizes.chain(batch.blobs.values().map(|data| data.len())).sum::<usize>();
        let start = batch.start.clone().unwrap_or_default();
        Self {
            number,
            head: batch.head.as_bytes().to_vec(),
            is_synced: batch.ends_turn,
            is_marked: batch.start.is_some()
                || batch.ends_turn
                || !batch.title.is_empty()
                || batch.dropped_turns != 0,
            bytes: bytes + start.len(),
            commit: None,
            session: session.as_str().to_owned(),
            folder: stored_folder(folder),
            words: words_of(session, batch),
            start,
            replaces_after: batch.replaces_after,
            rows: batch.rows.clone(),
            hashes: batch.blobs.keys().cloned().collect(),
            blobs: Payloads(data.collect()),
            last: batch.last,
            turns: batch.turns.into(),
            title: (!batch.keeps_title).then(|| batch.title.replace('\0', "")),
            renamed: batch.renamed.as_ref().map(|title| title.replace('\0', "")),
            dropped_turns: batch.dropped_turns,
            choices: batch.choices.clone(),
            row_count: batch.row_count,
            at_ms: if batch.is_activity { now_ms() } else { 0 },
        }
    }

    /// A batch without anything in it, for a model of the server.
    #[cfg(test)]
    pub(super) fn empty(number: i64, head: Vec<u8>, is_synced: bool) -> Self {
        Self {
            number,
            head,
            is_synced,
            is_marked: false,
            bytes: 0,
            commit: None,
            session: String::new(),
            folder: String::new(),
            words: Vec::new(),
            start: Vec::new(),
            replaces_after: None,
            rows: Vec::new(),
            hashes: Vec::new(),
            blobs: Payloads(Vec::new()),
            last: 0,
            turns: 0,
            title: Some(String::new()),
            renamed: None,
            dropped_turns: 0,
            choices: None,
            row_count: 0,
            at_ms: 0,
        }
    }

    /// A transaction that is synced, and one that is not. What is not synced survives a crash of this process;
    /// what a crash of the server undoes of it is written again.
    pub(super) const SYNCED: &str = "SET LOCAL synchronous_commit = on";
    pub(super) const UNSYNCED: &str = "SET LOCAL synchronous_commit = off";

    /// The statements that come before its rows and the change of its session; `is_there`: the session has a row.
    pub(super) fn own_statements<'a>(&'a self, is_there: bool) -> Vec<Statement<'a>> {
        let mut all = Vec::new();
        let mut add = |sql, values: &[Value<'a>]| {
            let session: Value<'a> = (&self.session, Type::TEXT);
            let values = [&[session], values].concat();
            all.push(Statement { sql, values });
        };
        if !is_there {
            let (folder, start) =
                ((&self.folder as _, Type::TEXT), (&self.start as _, Type::BYTEA));
            let rules: Value<'a> = (&words::RULES, Type::INT8);
            add(SESSION, &[folder, (&self.at_ms, Type::INT8), start, rules]);
        }
        if let Some(last) = &self.replaces_after {
            add(REPLACED, &[(last, Type::INT8)]);
        }
        if !self.hashes.is_empty() {
            let hashes: Value<'a> = (&self.hashes, Type::TEXT_ARRAY);
            add(BLOBS, &[hashes.clone(), (&self.blobs, Type::BYTEA_ARRAY)]);
            add(BLOBS_OF, &[hashes]);
        }
        if let Some(title) = &self.renamed {
            add(RENAMED, &[(title, Type::TEXT)]);
        }
        all
    }
}

/// The folder of a session as it is stored: a long one is cut, and its hash distinguishes it from others.
pub(super) fn stored_folder(folder: &str) -> String {
    // PostgreSQL has no text with a zero character.
    let folder = folder.replace('\0', "");
    if folder.len() <= FOLDER_BYTES_MAX {
        return folder;
    }
    let hash = HEXLOWER.encode(digest(&SHA256, folder.as_bytes()).as_ref());
    let begin = &folder[..folder.floor_char_boundary(FOLDER_BYTES_MAX)];
    format!("{begin}… {hash}")
}

/// Words as the text of a `tsvector`, of which a statement can have many: arrays in an array are of one length. In
/// quotes a word has no operators.
fn vector(terms: &[String]) -> String {
    terms.iter().map(|term| quoted(term)).collect::<Vec<_>>().join(" ")
}

/// A word as a lexeme in the text of a `tsvector` or a `tsquery`.
pub(super) fn quoted(term: &str) -> String {
    format!("'{}'", term.replace('\\', "\\\\").replace('\'', "''"))
}

/// The words of the earlier messages, and of each row that is sealed.
fn words_of(session: &SessionId, batch: &Batch) -> Vec<Words> {
    let mut all = Vec::new();
    let mut add = |number, entities: Vec<_>| {
        let terms = words::terms_of(entities.into_iter()).into_iter();
        all.extend(terms.map(|terms| Words { number, terms: vector(&terms) }));
    };
    let start = batch.start.as_ref().and_then(|start| read_start(session, start).ok());
    if let Some(start) = start {
        add(0, start.history);
    }
    let (sealed, blobs) = (batch.rows.iter().filter(|row| row.head.is_sealed), Blobs::new());
    for row in sealed {
        let events: Vec<_> = RowReader::new(&row.events.to_vec(), &blobs).flatten().collect();
        add(row.head.number, entities_of(session, &events));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_folder_is_cut_and_told_from_others() {
        assert_eq!(stored_folder("/a\0b"), "/ab");
        let short = "x".repeat(FOLDER_BYTES_MAX);
        assert_eq!(stored_folder(&short), short);
        let long = |end: &str| stored_folder(&format!("{}{end}", "ü".repeat(FOLDER_BYTES_MAX)));
        assert!(long("a").starts_with("ü") && long("a").len() < FOLDER_BYTES_MAX + 100);
        assert_ne!(long("a"), long("b"));
    }
}
