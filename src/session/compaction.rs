//! What the model is sent less, in a conversation that is too long for it: first results of tools, then the turns
//! but the last ones, for which a summary stands.
//!
//! A turn is left out whole: no call is parted from its result, and no signed reasoning from what it belongs to.
//! The turn that is being answered is sent as it is. The messages stay the same until the next compaction, so that
//! they stay a prefix for the provider's cache; each makes room for many turns.

use super::calls::SummaryWanted;
use super::client_error::{nothing_to_compact, run_failed, shutting_down};
use super::model::Selection;
use super::run::Run;
use super::waiting::ActiveRun;
use super::{Phase, Session, Uptime};
use crate::conversation::compaction::{result_tokens, text_tokens};
use crate::conversation::transcript::{CLEARED_RESULT, Transcript, Turn, TurnItem, TurnState};
use crate::protocol::command::{Compact, Extension};
use crate::protocol::id::{RequestId, ToolCallId};
use crate::protocol::proto::session::CompactionCause;
use crate::protocol::wire::Done;
use crate::task::call::Purpose;
use std::collections::VecDeque;
use std::sync::Arc;

/// The part of the most that the model can be sent, in percent, past which the conversation is compacted before
/// a call: the answer needs room, too.
const LIMIT_PERCENT: u64 = 85;

/// The part that is left of it: each compaction changes what the provider's cache has.
const TARGET_PERCENT: u64 = 50;

/// How many of the last turns are sent as they are, if there is room.
const KEPT_TURNS: usize = 2;

/// Tokens of a summary, about.
const SUMMARY_TOKENS: u64 = 1_500;

/// A result of fewer tokens is not left out: the note in its place has as many.
const CLEARED_TOKENS_MIN: u64 = 100;

/// Asks for a summary, unless the person has another prompt for it.
pub const SUMMARY_PROMPT: &str = "\
The conversation has become too long. Summarize it, so that it can go on from your summary alone: the messages \
before this one will not be sent again. Write down, in this order and without any other words: what I want and \
the instructions I gave; decisions and facts that were found, with names, numbers, paths and short quotations \
that will be needed; what was done, and with which result; what is open, and the next step. Call no tools.";

/// Whether conversations are compacted that are too long for the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactMode {
    /// They are.
    Auto,
    /// The client decides.
    Ask,
    /// They are not.
    #[default]
    Off,
}

/// How conversations are compacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionRules {
    /// Whether they are; `None`: if it is known what the model can be sent.
    pub mode: Option<CompactMode>,
    /// Tokens of the most that the model can be sent; `None` for what is known of it.
    pub context_tokens: Option<u64>,
    /// The model that writes summaries; `None` for the one that answers.
    pub model: Option<String>,
    /// Asks for a summary; `None` for [`SUMMARY_PROMPT`].
    pub prompt: Option<String>,
}

/// How the conversation of a run is compacted.
#[derive(Clone, Debug, Default)]
pub(super) struct CallCompaction {
    /// `None`: automatic once it is known how much the model can be sent.
    chosen: Option<CompactMode>,
    /// Tokens of the most that the model can be sent, if that is known.
    pub(super) context_tokens: Option<u64>,
    /// The provider was asked for that.
    has_asked: bool,
    /// The engine and model of the summary.
    pub(super) selection: Selection,
    prompt: String,
}

/// What is to be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Calls whose results are left out.
    pub(super) cleared: Vec<ToolCallId>,
    /// Number of the last turn that the summary stands for; 0 if none is needed.
    pub(super) through: u32,
    /// Tokens that the model would be sent now, and with the plan, without the summary.
    pub(super) before: u64,
    pub(super) after: u64,
}

/// How much is to be left out.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// Tokens that are to be left.
    target: u64,
    /// Turns that are sent as they are; `None` for as many as have room.
    keep: Option<usize>,
    /// There is a summary in any case.
    summarizes: bool,
}

impl CompactionRules {
    /// Those of a call with `selection`, which can be sent `known` tokens.
    pub(super) fn of_call(&self, known: Option<u64>, selection: &Selection) -> CallCompaction {
        let context_tokens = self.context_tokens.or(known);
        let mut selection = selection.clone();
        if let Some(model) = &self.model {
            selection.model = Some(model.clone());
        }
        // They are meant for answers, and would cut the summary off.
        let settings = Arc::make_mut(&mut selection.settings);
        (settings.max_tokens, settings.stop) = (None, None);
        let prompt = self.prompt.clone().unwrap_or_else(|| SUMMARY_PROMPT.to_owned());
        let has_asked = false;
        CallCompaction { chosen: self.mode, context_tokens, has_asked, selection, prompt }
    }
}

impl CallCompaction {
    pub(super) fn mode(&self) -> CompactMode {
        let known = self.context_tokens.map(|_| CompactMode::Auto);
        self.chosen.or(known).unwrap_or_default()
    }

    /// Whether to find out how much the model can be sent, if the conversation is too long for it.
    pub(super) fn asks_for_context(&self) -> bool {
        let may_compact = self.chosen != Some(CompactMode::Off);
        may_compact && !self.has_asked && self.context_tokens.is_none()
    }

    /// A call was too long, and the provider was asked, if it was to be.
    pub(super) fn note_asked(&mut self) {
        self.has_asked = true;
    }

    /// The provider says how much the model can be sent.
    pub(super) fn learn(&mut self, context_tokens: u64) {
        self.context_tokens.get_or_insert(context_tokens);
    }

    /// What is to be left out of the next call; `None` if nothing needs or can be.
    pub(super) fn plan(&self, transcript: &Transcript, cause: CompactionCause) -> Option<Plan> {
        let tokens = transcript.tokens();
        let target = |context: u64| context.saturating_mul(TARGET_PERCENT) / 100;
        let target = match (self.mode(), cause, self.context_tokens) {
            (CompactMode::Off, _, _) => return None,
            (_, CompactionCause::Overflow, known) => target(known.unwrap_or(tokens).min(tokens)),
            (_, _, None) => return None,
            (_, _, Some(context)) => {
                let limit = context.saturating_mul(LIMIT_PERCENT) / 100;
                if tokens <= limit {
                    return None;
                }
                target(context)
            }
        };
        plan(transcript, Wanted { target, keep: None, summarizes: false })
    }

    /// What is to be left out because the client has asked for that.
    pub(super) fn plan_asked(&self, transcript: &Transcript, keep_turns: u32) -> Option<Plan> {
        let keep = usize::try_from(keep_turns).ok().filter(|keep| *keep > 0);
        plan(transcript, Wanted { target: u64::MAX, keep, summarizes: true })
    }

    /// The summary of a plan.
    pub(super) fn wanted(&self, plan: &Plan, instructions: &str) -> SummaryWanted {
        let mut prompt = self.prompt.clone();
        if !instructions.trim().is_empty() {
            prompt.push_str("\n\n");
            prompt.push_str(instructions.trim());
        }
        SummaryWanted { through: plan.through, prompt }
    }
}

fn plan(transcript: &Transcript, wanted: Wanted) -> Option<Plan> {
    let before = transcript.tokens();
    let scale = Scale { counted: before, estimate: transcript.estimate().max(1) };
    let ended: Vec<_> = transcript.sent_turns().filter(|it| it.state != TurnState::Open).collect();
    let mut estimate = scale.estimate;
    let mut cleared = Vec::new();
    if !wanted.summarizes {
        for (id, saved) in ended.iter().flat_map(|turn| results(transcript, turn)) {
            if scale.of(estimate) <= wanted.target {
                break;
            }
            estimate = estimate.saturating_sub(saved);
            cleared.push(id);
        }
    }
    let mut through = 0;
    if (wanted.summarizes || scale.of(estimate) > wanted.target)
        && let Some(last) = last_summarized(transcript, &ended, wanted, scale)
    {
        let left_out = ended.iter().take_while(|turn| turn.number <= last);
        let saved: u64 = left_out.map(|turn| transcript.turn_tokens(turn)).sum();
        through = last;
        let kept: Vec<_> = ended.iter().filter(|turn| turn.number > last).collect();
        let is_kept = |id: &ToolCallId| kept.iter().any(|turn| has_call(turn, id));
        cleared.retain(is_kept);
        let results = kept.iter().flat_map(|turn| results(transcript, turn));
        let cleared_tokens: u64 =
            results.filter(|(id, _)| cleared.contains(id)).map(|(_, saved)| saved).sum();
        let replaced = transcript.replaced_tokens();
        estimate = scale.estimate.saturating_sub(saved + replaced + cleared_tokens);
    }
    let plan = Plan { cleared, through, before, after: scale.of(estimate) };
    (plan.through > 0 || !plan.cleared.is_empty()).then_some(plan)
}

/// The last turn that the summary is to stand for, if there is one.
fn last_summarized(
    transcript: &Transcript,
    ended: &[&Arc<Turn>],
    wanted: Wanted,
    scale: Scale,
) -> Option<u32> {
    let at_most = ended.len().checked_sub(1)?;
    let keep = match wanted.keep {
        Some(keep) if keep > at_most => return None,
        Some(keep) => keep,
        None => {
            let replaced = transcript.replaced_tokens();
            let left_out = |keep: usize| ended.iter().rev().skip(keep);
            let has_room = |keep: &usize| {
                let saved: u64 = left_out(*keep).map(|turn| transcript.turn_tokens(turn)).sum();
                let left = scale.of(scale.estimate.saturating_sub(saved + replaced));
                left.saturating_add(SUMMARY_TOKENS) <= wanted.target
            };
            (0..=KEPT_TURNS.min(at_most)).rev().find(has_room).unwrap_or(0)
        }
    };
    ended.iter().rev().nth(keep).map(|turn| turn.number)
}

/// The results of a turn's tools that are sent and are worth to be left out, with the tokens that this saves.
fn results(transcript: &Transcript, turn: &Turn) -> Vec<(ToolCallId, u64)> {
    let note = text_tokens(CLEARED_RESULT.len());
    let of = |item: &TurnItem| {
        let TurnItem::Called { tool, result: Some(result), .. } = item else { return None };
        let tokens = result_tokens(result);
        let is_sent = tokens >= CLEARED_TOKENS_MIN && !transcript.is_cleared(&tool.id);
        is_sent.then(|| (tool.id.clone(), tokens.saturating_sub(note)))
    };
    turn.items.iter().filter_map(of).collect()
}

fn has_call(turn: &Turn, id: &ToolCallId) -> bool {
    turn.items.iter().any(|item| matches!(item, TurnItem::Called { tool, .. } if tool.id == *id))
}

/// From an estimate to what the provider has counted.
#[derive(Clone, Copy, Debug)]
struct Scale {
    counted: u64,
    estimate: u64,
}

impl Scale {
    fn of(self, estimate: u64) -> u64 {
        let scaled = u128::from(estimate) * u128::from(self.counted) / u128::from(self.estimate);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

impl Session {
    /// The client has the conversation compacted, or decides about it.
    pub(super) fn compact(&mut self, now: Uptime, request: RequestId, compact: Compact) {
        self.recorder.turn_on(Extension::Compaction);
        match &self.phase {
            Phase::Running(live) | Phase::Draining(live, _) if live.run.is_deciding() => {
                self.recorder.done(Some(&request), Done::Ok);
                return self.advance(now, |run, context| match compact.decline {
                    true => run.decline(context),
                    false => run.accept(context, &compact.instructions),
                });
            }
            Phase::Running(live) => {
                let busy = super::client_error::busy(live.run.request(), self.rules.hints);
                return self.recorder.refuse(Some(&request), busy);
            }
            Phase::Draining(..) | Phase::Closed => {
                return self.recorder.refuse(Some(&request), shutting_down());
            }
            Phase::Idle => {}
        }
        let model = self.call_model(self.models.current().clone());
        let transcript = &self.recorder.projections.transcript;
        let plan = model.compaction.plan_asked(transcript, compact.keep_turns);
        let Some(plan) = plan.filter(|_| !compact.decline) else {
            return self.recorder.refuse(Some(&request), nothing_to_compact());
        };
        if let Some(error) = self.recorder.over_budget(model.priced_for(Purpose::Summary)) {
            return self.recorder.refuse(Some(&request), run_failed(error));
        }
        // It belongs to the last turn that has not been dropped.
        let turn = self.recorder.last_turn().unwrap_or(self.turns);
        let run = Run::new(self.ids.run(), turn, request, now).with_model(model);
        self.phase = Phase::Running(ActiveRun { run, waiting: VecDeque::new() });
        if let Some((live, mut context)) = self.live(now) {
            live.run.begin_compaction(&mut context, plan, &compact.instructions);
        }
    }
}
