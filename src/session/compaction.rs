//! Compaction shortens a conversation that is too long for the model: it leaves out first results of tools, then
//! all turns but the last ones, in whose place a summary is sent.
//!
//! A turn is left out whole: no call is parted from its result, and no signed reasoning from what it belongs to.
//! The turn that is being answered is sent as it is. The messages stay the same until the next compaction, so that
//! they stay a prefix for the provider's cache; each makes room for many turns.

use super::calls::SummaryWanted;
use super::client_error::{NotQueued, busy_for, nothing_to_compact, run_failed, shutting_down};
use super::model::Selection;
use super::recorder::Recorder;
use super::run::Run;
use super::waiting::ActiveRun;
use super::{Output, Phase, Session, Uptime};
use crate::conversation::transcript::{Transcript, Turn, TurnItem, TurnState};
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

/// Tokens of a summary, about; fewer where the model can be sent few.
const SUMMARY_TOKENS: u64 = 1_500;

/// The part of what the model can be sent that a summary takes at most, in percent.
const SUMMARY_PERCENT: u64 = 10;

/// What is made room for before a call must be so much of what the model can be sent, in percent: else each turn
/// would begin with a summary that changes nothing.
const USEFUL_PERCENT: u64 = 10;

/// A summary that is asked for after a call was refused is sent less than that call, so much of it in percent.
const BELOW_REFUSED_PERCENT: u64 = 90;

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
    /// Tokens that the model would be sent now.
    pub(super) before: u64,
    /// Tokens that the summary's call may be sent, by the estimate; `None` if it is not known.
    pub(super) room: Option<u64>,
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
    /// Tokens that must be saved, the summary not counted.
    useful: u64,
    /// Tokens of a summary, about.
    summary: u64,
    /// Tokens that the call which makes the summary may be sent, if that is known.
    room: Option<u64>,
}

impl CompactionRules {
    /// The rules of a call with `selection`, whose model can be sent `known` tokens.
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
        if self.mode() == CompactMode::Off {
            return None;
        }
        let tokens = transcript.tokens();
        let summary = self.summary_tokens();
        let wanted = match (cause, self.context_tokens) {
            (CompactionCause::Overflow, known) => {
                let target = percent(known.unwrap_or(tokens).min(tokens), TARGET_PERCENT);
                // It must be smaller than the call that was refused.
                let below = percent(tokens, BELOW_REFUSED_PERCENT);
                let room = self.room().map_or(below, |room| room.min(below));
                let room = Some(room);
                Wanted { target, keep: None, summarizes: false, useful: 0, summary, room }
            }
            (_, None) => return None,
            (_, Some(context)) => {
                if tokens <= percent(context, LIMIT_PERCENT) {
                    return None;
                }
                let target = percent(context, TARGET_PERCENT);
                let (useful, room) = (percent(context, USEFUL_PERCENT).max(1), self.room());
                Wanted { target, keep: None, summarizes: false, useful, summary, room }
            }
        };
        plan(transcript, wanted)
    }

    /// What is to be left out because the client has asked for that.
    pub(super) fn plan_asked(&self, transcript: &Transcript, keep_turns: u32) -> Option<Plan> {
        let keep = usize::try_from(keep_turns).ok().filter(|keep| *keep > 0);
        let (target, summarizes, useful) = (u64::MAX, true, 0);
        let (summary, room) = (self.summary_tokens(), self.room());
        plan(transcript, Wanted { target, keep, summarizes, useful, summary, room })
    }

    /// A plan in place of `plan` that keeps as many turns as the client wants, if that makes enough room.
    pub(super) fn plan_kept(
        &self,
        transcript: &Transcript,
        plan: &Plan,
        keep_turns: u32,
    ) -> Option<Plan> {
        if keep_turns == 0 || plan.through == 0 {
            return None;
        }
        let kept = self.plan_asked(transcript, keep_turns)?;
        let after = left(transcript, kept.through, &[]).saturating_add(self.summary_tokens());
        let most = self.context_tokens.map_or(plan.before, |context| context.min(plan.before));
        (after <= percent(most, LIMIT_PERCENT)).then_some(Plan { room: plan.room, ..kept })
    }

    /// The summary of the turns up to `through`, or of as many of them as have room in its call.
    pub(super) fn wanted(
        &self,
        transcript: &Transcript,
        (through, room): (u32, Option<u64>),
        instructions: &str,
    ) -> SummaryWanted {
        let mut prompt = self.prompt.clone();
        if !instructions.trim().is_empty() {
            prompt.push_str("\n\n");
            prompt.push_str(instructions.trim());
        }
        let through = room.map_or(through, |room| transcript.askable(&prompt, through, room));
        SummaryWanted { through, prompt, room }
    }

    /// Tokens that the model is sent besides the conversation, of system prompt and tools, if they alone are so many
    /// that it is always too long.
    pub(super) fn filled_by(&self, transcript: &Transcript) -> Option<u64> {
        let limit = percent(self.context_tokens?, LIMIT_PERCENT);
        let said: u64 = transcript.sent_turns().map(|turn| transcript.turn_tokens(turn)).sum();
        let scale = Scale::of_transcript(transcript);
        let said = said.saturating_add(transcript.replaced_tokens());
        let fixed = scale.of(scale.estimate.saturating_sub(said));
        (self.mode() != CompactMode::Off && fixed > limit).then_some(fixed)
    }

    /// Whether the conversation is too long because of the earlier messages that it began with, which are not
    /// summarized as no turn was answered: a summary stands for them and for all turns up to one.
    pub(super) fn has_long_history(&self, transcript: &Transcript, cause: CompactionCause) -> bool {
        let (tokens, earlier) = (transcript.tokens(), transcript.replaced_tokens());
        let limit = self.context_tokens.map(|context| percent(context, LIMIT_PERCENT));
        let are_too_many = match limit {
            Some(limit) if tokens > limit => tokens.saturating_sub(earlier) <= limit,
            // The provider counts more, or it is not known how much the model can be sent.
            Some(_) | None => {
                let is_most = earlier.saturating_mul(2) > transcript.estimate();
                cause == CompactionCause::Overflow && is_most
            }
        };
        let is_on = self.mode() != CompactMode::Off;
        let is_summarized = transcript.summary().is_some();
        is_on && are_too_many && !is_summarized && self.plan_asked(transcript, 0).is_none()
    }

    /// Tokens of a summary, about.
    pub(super) fn summary_tokens(&self) -> u64 {
        let part = self.context_tokens.map(|context| percent(context, SUMMARY_PERCENT));
        part.map_or(SUMMARY_TOKENS, |part| part.min(SUMMARY_TOKENS))
    }

    /// Tokens that a call which makes a summary can be sent.
    fn room(&self) -> Option<u64> {
        Some(self.context_tokens?.saturating_sub(self.summary_tokens()))
    }
}

fn percent(of: u64, percent: u64) -> u64 {
    of.saturating_mul(percent) / 100
}

fn plan(transcript: &Transcript, wanted: Wanted) -> Option<Plan> {
    let before = transcript.tokens();
    let scale = Scale::of_transcript(transcript);
    let ended: Vec<_> = transcript.sent_turns().filter(|it| it.state != TurnState::Open).collect();
    let room = wanted.room.map(|room| scale.estimate_of(room));
    let mut cleared = Vec::new();
    if !wanted.summarizes {
        let mut estimate = scale.estimate;
        for (id, saved) in ended.iter().flat_map(|turn| results(transcript, turn)) {
            if scale.of(estimate) <= wanted.target {
                break;
            }
            estimate = estimate.saturating_sub(saved);
            cleared.push(id);
        }
    }
    let without = left(transcript, 0, &cleared);
    let makes_room = |before: u64, after: u64| before.saturating_sub(after) >= wanted.useful;
    let is_short = !wanted.summarizes && without <= wanted.target;
    if !is_short && let Some(through) = last_summarized(transcript, &ended, wanted, scale) {
        let is_kept =
            |id: &&ToolCallId| ended.iter().any(|turn| turn.number > through && has_call(turn, id));
        let kept: Vec<_> = cleared.iter().filter(is_kept).cloned().collect();
        let after = left(transcript, through, &kept).saturating_add(wanted.summary);
        if makes_room(without, after) {
            return Some(Plan { cleared: kept, through, before, room });
        }
    }
    let is_useful = !cleared.is_empty() && makes_room(before, without);
    is_useful.then_some(Plan { cleared, through: 0, before, room })
}

/// Tokens that the model would be sent if these results were left out, and the turns up to `through` were, for which
/// a summary stands that is not counted.
pub(super) fn left(transcript: &Transcript, through: u32, cleared: &[ToolCallId]) -> u64 {
    let scale = Scale::of_transcript(transcript);
    let (out, kept): (Vec<_>, Vec<_>) =
        transcript.sent_turns().partition(|turn| turn.number <= through);
    let summarized: u64 = out.into_iter().map(|turn| transcript.turn_tokens(turn)).sum();
    let results = kept.into_iter().flat_map(|turn| results(transcript, turn));
    let cleared: u64 = results.filter(|(id, _)| cleared.contains(id)).map(|(_, saved)| saved).sum();
    let replaced = if through > 0 { transcript.replaced_tokens() } else { 0 };
    scale.of(scale.estimate.saturating_sub(summarized + replaced + cleared))
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
                left.saturating_add(wanted.summary) <= wanted.target
            };
            (0..=KEPT_TURNS.min(at_most)).rev().find(has_room).unwrap_or(0)
        }
    };
    ended.iter().rev().nth(keep).map(|turn| turn.number)
}

/// The results of a turn's tools that are sent and are worth to be left out, with the tokens that this saves.
fn results(transcript: &Transcript, turn: &Turn) -> Vec<(ToolCallId, u64)> {
    transcript.clearable(turn).map(|(id, saved)| (id.clone(), saved)).collect()
}

fn has_call(turn: &Turn, id: &ToolCallId) -> bool {
    turn.items.iter().any(|item| matches!(item, TurnItem::Called { tool, .. } if tool.id == *id))
}

/// From an estimate to what the provider has counted. What it counts beside the conversation, as the tools, stays
/// the same whatever is left out; where it counts less than the estimate, it counts less of all.
#[derive(Clone, Copy, Debug)]
struct Scale {
    counted: u64,
    estimate: u64,
}

impl Scale {
    fn of_transcript(transcript: &Transcript) -> Self {
        Self { counted: transcript.tokens(), estimate: transcript.estimate().max(1) }
    }

    fn of(self, estimate: u64) -> u64 {
        match self.counted.checked_sub(self.estimate) {
            Some(fixed) => estimate.saturating_add(fixed),
            None => times(estimate, self.counted, self.estimate),
        }
    }

    /// The estimate of what the provider counts so.
    fn estimate_of(self, counted: u64) -> u64 {
        match self.counted.checked_sub(self.estimate) {
            Some(fixed) => counted.saturating_sub(fixed),
            None => times(counted, self.estimate, self.counted.max(1)),
        }
    }
}

fn times(number: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(number) * u128::from(numerator) / u128::from(denominator);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

impl Recorder {
    /// Warns, once, that system prompt and tools take `filled` tokens of what the model can be sent.
    pub(super) fn warn_of_filled_context(&mut self, filled: u64, context: Option<u64>) {
        if std::mem::replace(&mut self.has_warned_of_filled_context, true) {
            return;
        }
        let context = context.unwrap_or_default();
        let text = format!(
            "system prompt and tools take about {filled} of the {context} tokens that the model can be sent, so \
             that a summary of the conversation makes no room; offer fewer tools, or use a model that can be sent \
             more"
        );
        self.push(Output::Warning(text.into()));
    }
}

impl Session {
    /// The client has the conversation compacted, or decides about it.
    pub(super) fn compact(&mut self, now: Uptime, request: RequestId, compact: Compact) {
        self.recorder.turn_on(Extension::Compaction);
        let is_asked = self.phase.active().is_some_and(|live| live.run.is_deciding());
        if compact.decline && !is_asked {
            // It is as the client wants it, as where the run has stopped waiting just before.
            return self.recorder.done(Some(&request), Done::Ok);
        }
        match &self.phase {
            Phase::Running(_) | Phase::Draining(..) if is_asked => {
                self.recorder.done(Some(&request), Done::Ok);
                return self.advance(now, |run, context| match compact.decline {
                    true => run.decline(context),
                    false => run.accept(context, &compact),
                });
            }
            Phase::Running(live) => {
                let busy = busy_for(NotQueued::Compact, live.run.request());
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
        let Some(plan) = plan else {
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
