//! A write batch: the rows that records append to the log of a session, and what they change in its summary,
//! whatever kind of database it is. Pure.

use super::codec::{Blobs, RowWriter, add_blobs, choices_message, start_message};
use super::row::{Hash, NewRow, RowHead};
use crate::conversation::event::{Event, Recorded, SessionEvent};
use crate::conversation::log::{Record, SessionStart};
use crate::protocol::id::{Ordinal, ToolCallId};
use crate::protocol::pieces::Pieces;
use prost::Message;
use std::collections::BTreeSet;

/// Characters of a session's title: the beginning of its first prompt.
pub(super) const TITLE_CHARS_MAX: usize = 80;

/// Characters of the prompt that a title is made of: files are named with addresses that no title has.
const TITLE_LINE_CHARS_MAX: usize = 4096;

/// Bytes of open events after which they are sealed although their turn goes on, so that a turn of any size takes
/// little memory. It is done as soon as no text is unfinished: patches are dropped once their whole text follows.
const OPEN_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The end of the log of a session in one store: what the next batch needs to know of it.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// Number of the last row; 0 if there is none.
    pub(super) rows: i64,
    /// Its hash, or that of what the session began with.
    pub(super) head: Hash,
    /// How many rows there are up to the last one that is sealed.
    pub(super) sealed_rows: i64,
    /// The hash of that one.
    pub(super) sealed_head: Hash,
    /// Number of rows and hash of the last, as the row of the session has them: those that this process has read or
    /// written there. In a damaged store the log has others.
    stored: (i64, Hash),
    /// The events after it, without patches, as they are in a row.
    open: RowWriter,
    /// Bytes of the prompts among them: what repeats a prompt later refers to it only in the same row.
    open_prompt_bytes: usize,
    /// Ordinal of the first of them; 0 if there is none.
    open_first: i64,
    /// Number of the last turn.
    turns: u32,
    /// A person has given the session its title.
    is_renamed: bool,
    /// Texts that are not followed by the whole yet: a segment (`None`) and arguments of tool calls.
    unfinished: BTreeSet<Option<ToolCallId>>,
}

impl Tail {
    /// The tail of a log without a row.
    pub(super) fn of_start(start: &[u8]) -> Self {
        let head = Hash::of_start(start);
        Self { head, sealed_head: head, ..Self::default() }
    }

    /// Notes how many rows and turns there must be, and the hash of the last row: where rows are missing at
    /// the end, those that are appended come after them, so that the gap stays.
    pub(super) fn end(&mut self, rows: i64, head: Hash, turns: u32) {
        self.turns = turns;
        self.stored = (rows, head);
        if self.rows >= rows {
            return;
        }
        if self.open_first == 0 {
            (self.sealed_rows, self.sealed_head) = (rows, head);
        }
        (self.rows, self.head) = (rows, head);
    }

    /// Number and hash of the last sealed row.
    pub(super) fn sealed(&self) -> (i64, Hash) {
        (self.sealed_rows, self.sealed_head)
    }

    /// Notes an event of the log that changes what later ones mean for the session's row.
    pub(super) fn note(&mut self, event: &Event) {
        if let Event::Session(SessionEvent::Renamed(title)) = event {
            self.is_renamed = !title.is_empty();
        }
    }

    /// Notes an event after the last sealed row.
    pub(super) fn open(&mut self, recorded: &Recorded) {
        if let Event::SegmentStarted { .. } = &recorded.event {
            self.unfinished.insert(None);
        } else if let Event::ToolCallStarted { tool } = &recorded.event {
            self.unfinished.insert(Some(tool.id.clone()));
        } else if let Event::SegmentFinished { .. } = &recorded.event {
            self.unfinished.remove(&None);
        } else if let Event::ToolCallRequested { tool, .. } | Event::ToolCallFinished { tool, .. } =
            &recorded.event
        {
            self.unfinished.remove(&Some(tool.id.clone()));
        }
        if let Event::PromptAccepted { prompt, .. } = &recorded.event {
            self.open_prompt_bytes += prompt.as_str().len();
        }
        if !recorded.event.is_patch() {
            self.open.add(recorded);
            if self.open_first == 0 {
                self.open_first = signed(recorded.ordinal);
            }
        }
    }

    /// How many numbers of turns are skipped before the event, as of turns that were dropped before a copy.
    fn skipped(&mut self, recorded: &Recorded) -> i64 {
        let before = self.turns;
        self.turns = before.max(recorded.scope.turn);
        i64::from(self.turns.saturating_sub(before).saturating_sub(1))
    }

    /// Whether the open events are to be sealed after that one.
    fn is_due(&self, recorded: &Recorded) -> bool {
        let bytes = self.open.size().saturating_sub(self.open_prompt_bytes);
        let is_full = bytes > OPEN_BYTES_MAX && self.unfinished.is_empty();
        recorded.event.ends_turn() || is_full
    }

    /// Notes a row at the end.
    pub(super) fn push(&mut self, head: &RowHead, hash: Hash) {
        (self.rows, self.head) = (head.number, hash);
        if head.is_sealed {
            (self.sealed_rows, self.sealed_head) = (head.number, hash);
            (self.open_first, self.open_prompt_bytes) = (0, 0);
            self.unfinished.clear();
        }
    }
}

/// What a batch changes in the tables of a store.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// What the session begins with, if it begins here: a `StoredStart`.
    pub(super) start: Option<Vec<u8>>,
    /// The rows after this one are removed: the first new row has their events, without patches.
    pub(super) replaces_after: Option<i64>,
    /// The rows that are appended.
    pub(super) rows: Vec<NewRow>,
    /// The bytes of attachments that the rows need.
    pub(super) blobs: Blobs,
    /// Ordinal of the last event; 0 if there is none.
    pub(super) last: i64,
    /// Number of the last turn; 0 if there is none.
    pub(super) turns: u32,
    /// The title of the session, if a turn begins here.
    pub(super) title: String,
    /// A person has given the session its title, which no prompt changes.
    pub(super) keeps_title: bool,
    /// The title that the person has given the session, if that is new.
    pub(super) renamed: Option<String>,
    /// Something else is recorded than titles: the session is the one that was used last.
    pub(super) is_activity: bool,
    /// How many turns are dropped.
    pub(super) dropped_turns: i64,
    /// What is chosen, if that changes: a `StoredChoices`.
    pub(super) choices: Option<Vec<u8>>,
    /// It must survive a loss of power, and with it all that was written before.
    pub(super) ends_turn: bool,
    /// Number of rows and hash of the last that the row of the session has before it.
    pub(super) follows: (i64, Hash),
    /// How many rows the log has with it, and the hash of the last.
    pub(super) row_count: i64,
    pub(super) head: Hash,
}

impl Batch {
    /// What `records` append to a log with this end, which becomes that of the log with them.
    pub(super) fn of(tail: &mut Tail, records: Vec<Record>) -> Self {
        let mut batch = Self { follows: tail.stored, ..Self::default() };
        // What is not sealed in this batch, with patches, and the ordinal of its first event.
        let (mut row, mut first) = (RowWriter::default(), 0);
        for record in records {
            match record {
                Record::Start(start) => *tail = batch.begin(&start),
                Record::Event(recorded) => {
                    batch.note(&recorded);
                    batch.dropped_turns += tail.skipped(&recorded);
                    tail.note(&recorded.event);
                    tail.open(&recorded);
                    if tail.is_due(&recorded) {
                        batch.seal(tail);
                        batch.ends_turn |= recorded.event.ends_turn();
                        (row, first) = (RowWriter::default(), 0);
                    } else {
                        row.add(&recorded);
                        first = if first == 0 { signed(recorded.ordinal) } else { first };
                    }
                }
            }
        }
        if row.size() > 0 {
            batch.append(tail, (first, false), row.finish());
        }
        (batch.row_count, batch.head) = (tail.rows, tail.head);
        if !batch.is_empty() {
            tail.stored = (tail.rows, tail.head);
        }
        batch.keeps_title = tail.is_renamed;
        batch
    }

    /// Whether the batch changes nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.start.is_none() && self.rows.is_empty()
    }

    fn begin(&mut self, start: &SessionStart) -> Tail {
        let bytes = start_message(start).encode_to_vec();
        let tail = Tail::of_start(&bytes);
        self.start = Some(bytes);
        self.is_activity = true;
        self.choices = Some(choices_message(&start.choices).encode_to_vec());
        tail
    }

    /// All that is open becomes one row.
    fn seal(&mut self, tail: &mut Tail) {
        if tail.rows > tail.sealed_rows {
            self.replaces_after = Some(tail.sealed_rows);
            (tail.rows, tail.head) = (tail.sealed_rows, tail.sealed_head);
        }
        let open = std::mem::take(&mut tail.open).finish();
        self.append(tail, (tail.open_first, true), open);
    }

    /// Appends a row that ends with the last event so far.
    fn append(&mut self, tail: &mut Tail, (first, is_sealed): (i64, bool), events: Pieces) {
        let head = RowHead {
            number: tail.rows + 1,
            first,
            last: self.last,
            is_sealed,
            previous: tail.head,
        };
        let hash = head.hash(events.iter());
        tail.push(&head, hash);
        self.rows.push(NewRow { head, hash, events: events.into() });
    }

    /// What an event changes in the summary of the session.
    fn note(&mut self, recorded: &Recorded) {
        let Recorded { ordinal, scope, event } = recorded;
        self.last = signed(*ordinal);
        self.turns = self.turns.max(scope.turn);
        add_blobs(event, &mut self.blobs);
        if let Some(choices) = event.choices() {
            self.choices = Some(choices_message(choices).encode_to_vec());
        }
        if let Event::Session(SessionEvent::Renamed(title)) = event {
            self.renamed = Some(title.chars().take(TITLE_CHARS_MAX).collect());
        } else {
            self.is_activity = true;
        }
        let prompt = if let Event::PromptAccepted { prompt, .. } = event {
            Some(prompt.as_str())
        } else if let Event::TurnImported(imported) = event {
            imported.prompt()
        } else if let Event::TurnDropped { turns, .. } = event {
            self.dropped_turns += i64::try_from(turns.len()).unwrap_or(i64::MAX);
            None
        } else {
            None
        };
        if let Some(prompt) = prompt.filter(|_| self.title.is_empty()) {
            self.title = title_of(prompt);
        }
    }
}

/// The title of a session that begins with `prompt`.
pub(crate) fn title_of(prompt: &str) -> String {
    let line = prompt.trim().lines().next().unwrap_or_default();
    let line: String = line.chars().take(TITLE_LINE_CHARS_MAX).collect();
    without_addresses(&line).chars().take(TITLE_CHARS_MAX).collect()
}

/// A line in which a file that an editor has named, `[@name](uri)`, has its name alone.
fn without_addresses(line: &str) -> String {
    let (mut plain, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once("[@") {
        plain.push_str(before);
        match mention(after) {
            Some((name, after)) => {
                plain.push('@');
                plain.push_str(name);
                rest = after;
            }
            None => {
                plain.push_str("[@");
                rest = after;
            }
        }
    }
    plain + rest
}

/// The name of a file, and what follows its address, which has its parentheses in pairs.
fn mention(text: &str) -> Option<(&str, &str)> {
    let (name, address) = text.split_once("](").filter(|(name, _)| !name.contains("[@"))?;
    let mut depth = 1_usize;
    for (at, c) in address.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some((name, &address[at + 1..])),
            ')' => depth -= 1,
            c if c.is_whitespace() => return None,
            _ => {}
        }
    }
    None
}

/// An ordinal as the integer of a database. One that does not fit is 292 million years of events away.
fn signed(ordinal: Ordinal) -> i64 {
    i64::try_from(ordinal.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::event::{Scope, ToolCall, ToolResult};
    use crate::protocol::id::{Ids, SessionId};
    use crate::store::testing::restore;

    #[test]
    fn a_title_has_the_names_of_files_without_their_addresses() {
        for (prompt, title) in [
            ("[@ü#x.rs](file:///p/%C3%BC%23x.rs) explain this", "@ü#x.rs explain this"),
            ("see [@a (1).rs](file:///p/a%20(1).rs), [@b](u)\nnow", "see @a (1).rs, @b"),
            ("[@one and [@b](u) [@c](u", "[@one and @b [@c](u"),
            ("[@a](no address) [b](u)", "[@a](no address) [b](u)"),
        ] {
            assert_eq!(title_of(prompt), title);
        }
        let long = format!("[@a](file:///{}) {}", "p".repeat(200), "x".repeat(200));
        assert_eq!(title_of(&long), format!("@a {}", "x".repeat(TITLE_CHARS_MAX - 3)));
    }

    /// A turn with so many results of tools, of which each is sealed by itself, and a call that goes on.
    fn events(results: usize) -> Vec<Record> {
        let scope = Scope { run: Ids::new(1).run(), turn: 1, call: 1 };
        let mut all = vec![Event::PromptAccepted { prompt: "hi".into(), attachments: [].into() }];
        for number in 0..results {
            let tool = || ToolCall { id: ToolCallId(number.to_string()), name: "t".to_owned() };
            let result = ToolResult::Success("r".repeat(OPEN_BYTES_MAX)).into();
            let (input, partial_input) = ("{}".to_owned(), String::new());
            all.extend([
                Event::ToolCallStarted { tool: tool() },
                Event::ToolCallRequested { tool: tool(), input },
                Event::ToolResultReady { tool: tool(), result },
                Event::ToolCallFinished { tool: tool(), partial_input },
            ]);
        }
        let recorded = (1..).zip(all).map(|(ordinal, event)| {
            Record::Event(Recorded { ordinal: Ordinal(ordinal), scope, event })
        });
        let session = SessionId::new("s").expect("an id");
        let start = Record::Start(Box::new(SessionStart::empty(session)));
        [start].into_iter().chain(recorded).collect()
    }

    /// What follows a prompt repeats it, and refers to it only in the same row.
    #[test]
    fn a_long_prompt_is_stored_once() {
        let scope = Scope { run: Ids::new(1).run(), turn: 1, call: 1 };
        let prompt: crate::support::text::Text = "p".repeat(OPEN_BYTES_MAX + 1).into();
        let accepted = Event::PromptAccepted { prompt: prompt.clone(), attachments: [].into() };
        let started = Event::RunStarted {
            prompt,
            choices: Default::default(),
            answerer: Default::default(),
            request: Default::default(),
        };
        let recorded = (1..).zip([accepted, started]).map(|(ordinal, event)| {
            Record::Event(Recorded { ordinal: Ordinal(ordinal), scope, event })
        });
        let mut tail = Tail::default();
        for record in recorded {
            Batch::of(&mut tail, vec![record]);
        }
        assert_eq!((tail.rows, tail.sealed_rows), (2, 0));
        assert!(tail.open.size() < OPEN_BYTES_MAX + 1_000, "{}", tail.open.size());
    }

    #[test]
    fn a_large_turn_is_sealed_in_the_same_parts_however_its_events_come() {
        let records = events(3);
        let (mut at_once, mut one_by_one) = (Tail::default(), Tail::default());
        Batch::of(&mut at_once, records.clone());
        for record in &records {
            Batch::of(&mut one_by_one, vec![record.clone()]);
        }
        assert_eq!(at_once.sealed_rows, 3);
        assert_eq!(at_once.sealed(), one_by_one.sealed());
        assert!(one_by_one.open.size() < 100, "{}", one_by_one.open.size());
        // All of them are of the run that goes on.
        let restored = restore(SessionId::new("s").expect("an id"), &records);
        assert_eq!(restored.open.len() + 1, records.len());
    }
}
