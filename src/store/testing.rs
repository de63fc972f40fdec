//! For tests: a session that is loaded from the records that it wrote, without a database.

use super::Roles;
use super::batch::{Batch, Change};
use super::part::{Part, SessionRow, restored};
use super::turn::Blobs;
use crate::chat::record::{Record, Restored};
use crate::protocol::id::SessionId;
use crate::protocol::proto::store::{StoredStep, StoredTurn};
use prost::Message;
use std::collections::BTreeMap;

/// What a new process is given of the session that wrote `records`, as far as the model is sent it.
pub(crate) fn restore(session: SessionId, records: &[Record]) -> Restored {
    let batch = Batch::of(records, Roles { turns: true, timeline: false });
    let (mut turns, mut steps) = (BTreeMap::new(), Vec::new());
    let mut blobs = Blobs::new();
    for change in &batch.changes {
        match change {
            Change::Step { turn, content, .. } => {
                let step = content.message().expect("a step");
                steps.push((*turn, step.into_vec()));
            }
            Change::DropSteps { turn } => steps.retain(|(of, _)| of != turn),
            Change::Turn { turn, content, .. } => {
                drop(turns.insert(*turn, content.whole().into_vec()))
            }
            Change::Blob { sha256, data } => drop(blobs.insert(sha256.clone(), data.clone())),
            Change::Event { .. } | Change::DropPatches { .. } | Change::State { .. } => {}
        }
    }
    let mut part = Part::default();
    let row = SessionRow {
        ordinal: batch.last,
        turns: batch.turns,
        preamble: &batch.preamble,
        ..SessionRow::default()
    };
    part.begin(&row).expect("a preamble");
    for (name, payload) in &batch.messages {
        part.message(name, payload).expect("a message");
    }
    for (turn, payload) in turns {
        part.turn(turn, StoredTurn::decode(payload.as_slice()).expect("a turn"), &blobs);
    }
    for (turn, payload) in steps {
        part.step(turn, StoredStep::decode(payload.as_slice()).expect("a step"));
    }
    part.end_turns(&blobs);
    restored(session, part)
}
