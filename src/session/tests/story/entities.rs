//! The conversation as a client builds it up from the events, which every snapshot must agree with.

use super::Story;
use super::run::Step;
use crate::protocol::any::Any;
use crate::protocol::command::Page;
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use crate::protocol::proto::session::TurnDropped;
use crate::protocol::proto::tools::ToolApprovalRequested;
use crate::session::FinalSnapshot;
use anyhow::{Context, Result, bail, ensure};

/// The status of what was dropped.
const GONE: &str = "gone";

/// An entity as a client that follows the events believes it to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Entity {
    pub(super) kind: &'static str,
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) changed: u64,
    pub(super) text: String,
    pub(super) status: String,
}

impl Story {
    pub(super) fn snapshot(&mut self, request: &str, snapshot: &SnapshotFrame) -> Result<()> {
        ensure!(snapshot.snapshot_ordinal == self.ordinal, "snapshot of another moment");
        let is_final = self.run.as_ref().is_some_and(|run| run.request == request);
        let from = match (is_final, self.final_snapshot) {
            (false, _) | (true, FinalSnapshot::Full | FinalSnapshot::FullUntilLong) => 0,
            (true, FinalSnapshot::Turn) => self.turn,
            (true, FinalSnapshot::None) => bail!("a final snapshot that nobody wants"),
        };
        let shown: Result<Vec<_>> = snapshot.entities.iter().map(entity).collect();
        let whole = self.page.is_everything();
        let mut known = if whole { self.entities[from..].to_vec() } else { self.part() };
        known.extend(self.approvals.iter().filter(|it| self.is_in_page(it)).cloned());
        let shown = shown?;
        ensure!(shown == known, "the snapshot says {shown:?}\n  the events said {known:?}");
        if is_final {
            let run = self.run()?;
            let is_over = matches!(run.step, Step::Finished | Step::Stopped | Step::Failed);
            ensure!(is_over, "a final snapshot at {:?}", run.step);
            run.step = if run.step == Step::Failed { Step::Failed } else { Step::Shown };
        }
        Ok(())
    }

    /// What is dropped is the end of the conversation, from a prompt on.
    pub(super) fn turns_dropped(&mut self, dropped: &TurnDropped) -> Result<()> {
        ensure!(self.run.is_none(), "turns are dropped in a run");
        let first = &dropped.prompt_message_id;
        ensure!(first.ends_with("-user"), "{first} begins no turn");
        let start = self.entities.iter().position(|entity| entity.id == *first);
        let gone = self.entities.split_off(start.context("a prompt that there is not")?);
        let of = |kind: &str| -> Vec<&String> {
            gone.iter().filter(|entity| entity.kind == kind).map(|entity| &entity.id).collect()
        };
        ensure!(of("ChatMessage").into_iter().eq(&dropped.message_ids), "{dropped:?} of {gone:?}");
        ensure!(of("ChatToolCall").into_iter().eq(&dropped.tool_call_ids), "{dropped:?}");
        ensure!(!dropped.turn_ids.is_empty(), "{dropped:?}");
        let changed = self.ordinal;
        self.dropped.extend(gone.into_iter().map(|entity| entity.gone(changed)));
        Ok(())
    }

    /// The part of the conversation that was asked for.
    fn part(&self) -> Vec<Entity> {
        let Page { since, limit, .. } = self.page;
        let mut part = self.entities.clone();
        if since.is_some() {
            part.extend(self.dropped.iter().cloned());
        }
        part.retain(|entity| self.is_in_page(entity));
        part.sort_by_key(|entity| entity.created);
        let limit = limit.map_or(part.len(), |limit| limit.get() as usize);
        part.split_off(part.len().saturating_sub(limit))
    }

    fn is_in_page(&self, entity: &Entity) -> bool {
        let Page { since, before, .. } = self.page;
        since.is_none_or(|since| entity.changed > since.0)
            && before.is_none_or(|before| entity.created < before.0)
    }

    pub(super) fn add(
        &mut self,
        kind: &'static str,
        id: String,
        text: &str,
        status: &str,
    ) -> Result<()> {
        self.entities.push(Entity {
            kind,
            id,
            created: self.ordinal,
            changed: self.ordinal,
            text: text.to_owned(),
            status: status.to_owned(),
        });
        Ok(())
    }

    pub(super) fn change(
        &mut self,
        kind: &str,
        id: &str,
        change: impl FnOnce(&mut Entity),
    ) -> Result<()> {
        let mut newest = self.entities.iter_mut().rev();
        let entity = newest.find(|entity| entity.kind == kind && entity.id == id);
        let entity = entity.with_context(|| format!("no {kind} {id}"))?;
        entity.changed = self.ordinal;
        change(entity);
        Ok(())
    }
}

/// A call that waits for approval, as its event shows it.
pub(super) fn approval(asked: &ToolApprovalRequested, ordinal: u64) -> Entity {
    Entity {
        kind: "ToolApproval",
        id: format!("{}:approval", asked.tool_call_id),
        created: ordinal,
        changed: ordinal,
        text: asked.input.clone(),
        status: asked.server.clone(),
    }
}

impl Entity {
    /// What is shown of it once it was dropped.
    fn gone(self, changed: u64) -> Self {
        Self { changed, text: String::new(), status: GONE.to_owned(), ..self }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a payload that is no entity is a fault")]
fn entity(entity: &SnapshotEntity) -> Result<Entity> {
    if entity.tombstone {
        ensure!(entity.payload.is_none(), "a tombstone with a payload");
        let kinds = ["ChatMessage", "ChatToolCall", "ChatToolResult"];
        let kind = kinds.into_iter().find(|kind| entity.kind == *kind).context("no kind")?;
        let (created, id) = (entity.created_ordinal, entity.id.clone());
        let it = Entity { kind, id, created, ..Entity::default() };
        return Ok(it.gone(entity.last_event_ordinal));
    }
    let payload = entity.payload.clone().context("an entity without payload")?.into_whole();
    let (kind, text, status) = match &payload {
        Any::ChatMessageEntity(m) => {
            ensure!(m.text == m.content, "text {:?}, content {:?}", m.text, m.content);
            ensure!(m.streaming == (m.status == "streaming"), "{m:?}");
            ("ChatMessage", &m.text, &m.status)
        }
        Any::ToolCallEntity(m) => ("ChatToolCall", &m.input, &m.status),
        Any::ToolResultEntity(m) => ("ChatToolResult", &m.result, &m.status),
        Any::ToolApprovalRequested(m) => ("ToolApproval", &m.input, &m.server),
        other => bail!("no entity: {other:?}"),
    };
    ensure!(entity.kind == kind, "{kind} is called {}", entity.kind);
    Ok(Entity {
        kind,
        id: entity.id.clone(),
        created: entity.created_ordinal,
        changed: entity.last_event_ordinal,
        text: text.clone(),
        status: status.clone(),
    })
}
