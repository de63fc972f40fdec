//! Long random conversations with tools.

use super::scene::{Choice, Scene, Symbol, rules};
use super::{ASKED, CLIENT, ENGINE, TOOLS};
use crate::session::Session;
use proptest::collection::vec;
use proptest::prelude::*;

/// Inputs of one conversation.
const INPUTS_MAX: usize = 1_000;

/// Conversations.
const CASES: u32 = 48;

fn symbol() -> impl Strategy<Value = Symbol> {
    let often = [ENGINE, TOOLS, ASKED, CLIENT, &[Symbol::Submit, Symbol::Steer]].concat();
    let sometimes = vec![
        Symbol::SubmitChosen,
        Symbol::Switch,
        Symbol::SteerGhost,
        Symbol::Cancel,
        Symbol::CancelRun,
        Symbol::CancelGhost,
        Symbol::CancelNewest,
        Symbol::CancelWaiting,
        Symbol::StaleReturns,
        Symbol::ApproveOther,
        Symbol::ClientAnswersOther,
        Symbol::Approve(Choice::Session),
        Symbol::Deadline,
        Symbol::EarlyDeadline,
        Symbol::ServerReady,
        Symbol::ServerGone,
        Symbol::Declare,
    ];
    let seldom = vec![Symbol::Snapshot, Symbol::Undeclare, Symbol::ServerFailed];
    let last = vec![Symbol::Shutdown, Symbol::EndOfInput, Symbol::Signal, Symbol::ReaderGone];
    prop_oneof![
        2000 => prop::sample::select(often),
        600 => prop::sample::select(sometimes),
        60 => prop::sample::select(seldom),
        1 => prop::sample::select(last),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..Default::default() })]

    #[test]
    fn long_conversations_with_tools_keep_the_contract(symbols in vec(symbol(), 0..INPUTS_MAX)) {
        let mut scene: Scene<Session> = Scene::with(rules(), |session| session);
        for symbol in [&[Symbol::Declare, Symbol::ServerReady], symbols.as_slice()].concat() {
            if scene.is_closed() {
                break;
            }
            let played = scene.play(symbol);
            prop_assert!(played.is_ok(), "{symbol:?}: {:#}", played.expect_err("broken"));
        }
        if !scene.is_closed() {
            let settled = scene.settle();
            prop_assert!(settled.is_ok(), "{:#}", settled.expect_err("broken"));
        }
    }
}
