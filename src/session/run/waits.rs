//! What a run waits for, while nothing happens in it.

#[cfg(feature = "serve")]
use super::open::OpenTool;
use super::open::{OpenCall, ToolProgress};
use super::{Run, RunStage};
use crate::conversation::ui::correlation;
use crate::protocol::command::Extension;
use crate::protocol::id::{Ordinal, RequestId, ToolCallId};
use crate::protocol::proto::session::{Heartbeat, WaitingFor};
use crate::protocol::wire::{self, Frame};
use crate::session::{HEARTBEAT_MS, Session, Uptime};

/// What a run waits for, and since when.
struct Waits {
    what: WaitingFor,
    since: Uptime,
    tools: Vec<ToolCallId>,
}

/// What a run waits for a client with.
#[cfg(feature = "serve")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Question {
    /// Whether this call of a tool may run.
    Decision(ToolCallId),
    /// The result of this call of a tool that the client runs.
    Result(ToolCallId),
    /// Whether the conversation is compacted.
    Compaction,
}

#[cfg(feature = "serve")]
impl Question {
    fn of(open: &OpenTool) -> Option<Self> {
        match open.progress {
            ToolProgress::Started | ToolProgress::Requested | ToolProgress::Executing { .. } => {
                None
            }
            ToolProgress::Approval { .. } => Some(Self::Decision(open.tool.id.clone())),
            ToolProgress::Client { .. } => Some(Self::Result(open.tool.id.clone())),
        }
    }
}

impl Session {
    /// The request of the active run, and what it waits for a client with, if there is something.
    #[cfg(feature = "serve")]
    pub(crate) fn questions(&self) -> Option<(RequestId, Vec<Question>)> {
        let run = &self.phase.active()?.run;
        let of_tools = run.tools.iter().filter_map(Question::of);
        let of_compaction = run.is_deciding().then_some(Question::Compaction);
        let questions: Vec<_> = of_tools.chain(of_compaction).collect();
        (!questions.is_empty()).then(|| (run.request.clone(), questions))
    }

    /// When the active run began, if its client wants a sign of life while nothing else happens in it.
    pub(crate) fn heartbeats_from(&self) -> Option<Uptime> {
        let run = &self.phase.active()?.run;
        self.recorder.is_on(Extension::Heartbeats).then_some(run.started)
    }

    /// How many milliseconds of silence there are before such a sign.
    pub(crate) fn heartbeat_ms(&self) -> u64 {
        self.rules.heartbeat_ms.unwrap_or(HEARTBEAT_MS).get()
    }

    /// Whether a client wants signs of life.
    pub(crate) fn has_heartbeats(&self) -> bool {
        self.recorder.is_on(Extension::Heartbeats)
    }

    /// The sign of life at `now`, after the event `last`. `unstored`: what has happened is held back until it is
    /// stored, since when, and the request that it answers; the run may have ended meanwhile.
    pub(crate) fn heartbeat(
        &self,
        now: Uptime,
        last: Ordinal,
        unstored: Option<(Uptime, RequestId)>,
    ) -> Option<Frame> {
        let run = self.phase.active().map(|active| &active.run);
        let (Waits { what, since, tools }, request) = match unstored {
            Some((since, request)) => {
                (Waits { what: WaitingFor::Store, since, tools: Vec::new() }, Some(request))
            }
            None => (run?.waits(), run.map(|run| run.request.clone())),
        };
        let heartbeat = Heartbeat {
            waiting_for: what.into(),
            waited_ms: now.since(since),
            tool_call_ids: tools.into_iter().map(|id| id.0).collect(),
            correlation: run.map(|run| correlation(self.id(), run.scope)),
        };
        let frame = || wire::ui_event(last, heartbeat.into());
        let is_shown = self.recorder.shows(wire::HEARTBEAT);
        is_shown.then(|| wire::frame(self.id(), request.as_ref(), frame()))
    }
}

impl Run {
    fn waits(&self) -> Waits {
        match self.stage {
            RunStage::Beginning | RunStage::Ended => self.waits_for(WaitingFor::Unspecified),
            RunStage::Deciding { .. } => self.waits_for(WaitingFor::Approval),
            RunStage::Preparing { .. } => self.waits_for(WaitingFor::ToolServers),
            RunStage::Calling(..) => self.waits_for(
                self.call.as_ref().map_or(WaitingFor::ProviderConnecting, OpenCall::waits_for),
            ),
            RunStage::Tools => self.waits_for_tools(),
        }
    }

    /// Since the last thing that happened.
    fn waits_for(&self, what: WaitingFor) -> Waits {
        Waits { what, since: self.changed, tools: Vec::new() }
    }

    /// A person's decision comes first: the others may need nobody.
    fn waits_for_tools(&self) -> Waits {
        let order = [WaitingFor::Approval, WaitingFor::ClientTool, WaitingFor::Tool];
        let of =
            |what| self.tools.iter().filter(move |open| open.progress.waits_for() == Some(what));
        let what = order.into_iter().find(|what| of(*what).next().is_some());
        let Some(what) = what else { return self.waits_for(WaitingFor::Unspecified) };
        let since = of(what).map(|open| open.since).min().unwrap_or(self.changed);
        Waits { what, since, tools: of(what).map(|open| open.tool.id.clone()).collect() }
    }
}

impl ToolProgress {
    fn waits_for(&self) -> Option<WaitingFor> {
        match self {
            Self::Started | Self::Requested => None,
            Self::Approval { .. } => Some(WaitingFor::Approval),
            Self::Client { .. } => Some(WaitingFor::ClientTool),
            Self::Executing { .. } => Some(WaitingFor::Tool),
        }
    }
}
