//! What a world is made of, before anything happens in it.

use super::planted::Planted;
use crate::conversation::patch::{PatchFields, PatchMode, Patches};
use crate::engine::dialects::Dialect;
use crate::protocol::command::Extension;
use crate::protocol::constants::capability;
use crate::protocol::id::SessionId;
use crate::session::approval::{ApprovalRules, ToolGlob};
use crate::session::compaction::{CompactMode, CompactionRules};
use crate::session::{FinalSnapshot, OnBusy, Rules, ToolRules};
use crate::support::dice::Dice;
use crate::support::fail_point::{Faults, Place};
use crate::task::server::ServerName;

/// Extensions that a client may have on from the start.
const EXTENSIONS: [Extension; 12] = [
    Extension::Approvals,
    Extension::ClientTools,
    Extension::Compaction,
    Extension::Edit,
    Extension::Heartbeats,
    Extension::History,
    Extension::Retries,
    Extension::Steer,
    Extension::Store,
    Extension::ToolProgress,
    Extension::ToolServers,
    Extension::Usage,
];

#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) rules: Rules,
    /// Databases that store the conversation.
    pub(super) stores: usize,
    /// A defect in the program, which must cost only what it must.
    pub(super) defect: Faults,
    pub(super) dialect: Dialect,
    /// Bytes that the pipe to the client holds.
    pub(super) pipe_bytes: usize,
    pub(super) planted: Option<Planted>,
}

/// The server whose tools the model may call.
pub(super) fn server() -> ServerName {
    ServerName::new("fs").expect("a name")
}

impl Scenario {
    pub(super) fn new(dice: &mut Dice, planted: Option<Planted>) -> Self {
        let stores = dice.pick(&[0, 1, 1, 1, 2]);
        let place = dice.pick(&[
            Place::Decode,
            Place::Project,
            Place::Engine,
            Place::Persist,
            Place::Store,
        ]);
        let nth = u32::try_from(dice.below(60)).unwrap_or_default() + 1;
        let has_defect = dice.once_in(5);
        let rules = rules(dice);
        Self {
            rules,
            stores,
            defect: if has_defect { Faults::new(place, nth) } else { Faults::default() },
            dialect: dice.pick(&Dialect::ALL),
            pipe_bytes: dice.pick(&[200, 4096, 64 * 1024]),
            planted,
        }
    }

    /// What `hello` says that the process can do.
    pub(super) fn capabilities(&self) -> Vec<String> {
        let words = capability::ALWAYS.iter().chain(&capability::OF_STDIN).copied();
        let queue = (self.rules.on_busy == OnBusy::Queue).then_some(capability::QUEUE);
        let lean =
            (self.rules.patches.fields == PatchFields::Lean).then_some(capability::LEAN_PATCHES);
        let on = self.rules.extensions.iter().map(|extension| extension.as_str());
        words.chain(queue).chain(lean).chain(on).map(str::to_owned).collect()
    }
}

fn rules(dice: &mut Dice) -> Rules {
    let globs = |text: &str| vec![ToolGlob::new(text)];
    let approval =
        ApprovalRules { allow: globs("read"), deny: globs("drop"), ..ApprovalRules::default() };
    let tools = ToolRules {
        approval,
        call_ms: 2_000,
        ask_ms: 5_000,
        start_ms: 500,
        ..ToolRules::default()
    };
    let mode = dice.pick(&[PatchMode::Append, PatchMode::Append, PatchMode::Snapshot]);
    let fields = match mode {
        PatchMode::Append => dice.pick(&[PatchFields::Full, PatchFields::Lean]),
        PatchMode::Snapshot => PatchFields::Full,
    };
    let last = [
        FinalSnapshot::Full,
        FinalSnapshot::FullUntilLong,
        FinalSnapshot::Turn,
        FinalSnapshot::None,
    ];
    let compaction = CompactionRules {
        mode: dice.pick(&[None, None, Some(CompactMode::Auto), Some(CompactMode::Ask)]),
        context_tokens: dice.pick(&[None, Some(400)]),
        ..CompactionRules::default()
    };
    Rules {
        session: dice.pick(&[SessionId::new("s"), SessionId::new("s"), None]),
        on_busy: dice.pick(&[OnBusy::Reject, OnBusy::Queue]),
        patches: Patches { mode, fields },
        final_snapshot: dice.pick(&last),
        extensions: EXTENSIONS.into_iter().filter(|_| dice.once_in(2)).collect(),
        tools,
        compaction,
        ..Rules::default()
    }
}
