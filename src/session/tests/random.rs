//! Long random conversations: thousands of inputs, in both patch modes.

use super::scene::{Scene, Symbol, rules};
use crate::conversation::patch::PatchMode;
use crate::session::{FinalSnapshot, OnBusy, Rules, Signal};
use proptest::collection::vec;
use proptest::prelude::*;

/// Inputs of one conversation.
const INPUTS_MAX: usize = 5_000;

/// Conversations.
const CASES: u32 = 48;

fn symbol() -> impl Strategy<Value = Symbol> {
    let common = vec![
        Symbol::CallStarted,
        Symbol::Reasoning,
        Symbol::Text,
        Symbol::ToolStarted,
        Symbol::ToolArguments,
        Symbol::ToolRequested,
        Symbol::Usage,
        Symbol::CallFinished,
        Symbol::CutOff,
        Symbol::RetryScheduled,
        Symbol::RetryStarted,
    ];
    let requests = vec![
        Symbol::Submit,
        Symbol::SubmitChosen,
        Symbol::Switch,
        Symbol::SwitchWrong,
        Symbol::Blank,
        Symbol::Cancel,
        Symbol::Malformed,
        Symbol::ToMine,
        Symbol::ToOther,
        Symbol::StaleText,
        Symbol::StaleEnd,
        Symbol::Finished,
        Symbol::Failed,
        Symbol::NotReady,
    ];
    let last = vec![
        Symbol::Shutdown,
        Symbol::InputEnded,
        Symbol::InputFailed,
        Symbol::Signal(Signal::Hangup),
        Symbol::Signal(Signal::Interrupt),
        Symbol::Signal(Signal::Terminate),
        Symbol::ReaderGone,
    ];
    prop_oneof![
        3000 => prop::sample::select(common),
        600 => prop::sample::select(requests),
        20 => Just(Symbol::Snapshot),
        1 => prop::sample::select(last),
    ]
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let busy = prop_oneof![Just(OnBusy::Reject), Just(OnBusy::Queue)];
    let mode = prop_oneof![Just(PatchMode::Append), Just(PatchMode::Snapshot)];
    // A full snapshot after each of hundreds of runs is quadratic: it is tried less.
    let last = prop_oneof![
        1 => Just(FinalSnapshot::Full),
        3 => Just(FinalSnapshot::Turn),
        1 => Just(FinalSnapshot::None),
    ];
    (busy, mode, last).prop_map(|(busy, mode, last)| rules(busy, mode, last))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..Default::default() })]

    #[test]
    fn long_conversations_keep_the_contract(
        rules in any_rules(),
        symbols in vec(symbol(), 0..INPUTS_MAX),
    ) {
        let mut scene = Scene::new(rules);
        for symbol in symbols {
            let played = scene.play(symbol);
            prop_assert!(played.is_ok(), "{symbol:?}: {:#}", played.expect_err("broken"));
        }
        if !scene.contract.is_closed() {
            let settled = scene.settle();
            prop_assert!(settled.is_ok(), "{:#}", settled.expect_err("broken"));
        }
    }
}
