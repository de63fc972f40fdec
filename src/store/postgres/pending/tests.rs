//! Batches as statements.

use super::*;
use crate::store::content::{Content as Stored, StepContent};

fn step(ordinal: i64, turn: u32, text: &str) -> Change<'static> {
    let content = StepContent::Bytes(text.as_bytes().to_vec());
    Change::Step { ordinal, turn, content }
}

fn one(payload: &[u8]) -> Payloads {
    Payloads(vec![Payload::Message(Pieces::from(payload.to_vec()))])
}

fn digest(changes: Vec<Change<'_>>) -> Vec<u8> {
    Columns::of(changes, &Messages::new(), 7).1
}

#[test]
fn steps_of_a_turn_that_ends_in_the_same_batch_are_not_written() {
    let turn = Change::Turn { ordinal: 4, turn: 1, content: Stored::Bytes(vec![1, 2]) };
    let changes = vec![
        step(2, 1, "a"),
        step(3, 1, "b"),
        Change::DropSteps { turn: 1 },
        turn,
        step(5, 2, "c"),
    ];
    let (columns, _, bytes) = Columns::of(changes, &Messages::new(), 5);
    assert_eq!((columns.drops, columns.steps.ordinals), (vec![1], vec![5]));
    assert_eq!((columns.steps.turns, columns.steps.payloads), (vec![2], one(b"c")));
    assert_eq!((columns.turns.ordinals, columns.turns.payloads), (vec![4], one(&[1, 2])));
    assert!(bytes > 5);
}

#[test]
fn the_hash_is_that_of_the_whole_content() {
    let one = || vec![step(1, 1, "ab"), step(2, 1, "c")];
    assert_eq!(digest(one()), digest(one()));
    let blob = |data: &[u8]| Change::Blob { sha256: "h".to_owned(), data: data.into() };
    let others = [
        vec![step(1, 1, "a"), step(2, 1, "bc")],
        vec![step(1, 1, "ab")],
        vec![step(1, 1, "ab"), step(3, 1, "c")],
        vec![step(1, 1, "ab"), Change::State { ordinal: 2, content: Stored::Bytes(b"c".to_vec()) }],
        vec![step(1, 1, "ab"), step(2, 1, "c"), blob(b"x")],
        vec![],
    ];
    for other in others {
        assert_ne!(digest(other), digest(one()));
    }
    let none = Messages::new();
    assert_ne!(Columns::of(one(), &none, 1).1, Columns::of(one(), &none, 2).1);
    let chosen = Messages::from([("name", b"x".to_vec())]);
    assert_ne!(Columns::of(one(), &none, 1).1, Columns::of(one(), &chosen, 1).1);
}

#[test]
fn a_batch_has_a_statement_for_each_table_that_it_changes() {
    let session = SessionId::new("s").expect("an id");
    let batch = |changes| Batch { changes, last: 3, ..Batch::default() };
    let deltas = vec![step(1, 1, "a"), step(2, 1, "b"), step(3, 1, "c")];
    let pending = Pending::new(&session, 1, batch(deltas), "/folder\0");
    let sql = |is_there| -> Vec<&str> {
        pending.statements(&5, is_there).into_iter().map(|it| it.sql).collect()
    };
    assert_eq!(sql(true), [STEPS, CHANGED]);
    assert_eq!(sql(false), [SESSION, STEPS, CHANGED]);
    assert_eq!((pending.folder.as_str(), pending.is_synced), ("/folder", false));
}
