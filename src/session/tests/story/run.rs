//! What a run has open: its provider call, its segment and its tool calls, each with its steps.

use super::Story;
use crate::chat::patch::PatchMode;
use crate::protocol::proto::chat::{ChatStreamPatchMode, CorrelationInfo};
use anyhow::{Context, Result, ensure};

#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) request: String,
    pub(super) step: Step,
    pub(super) call: Option<Call>,
    /// The id of the last call that has ended.
    pub(super) ended_call: String,
    pub(super) segment: Option<Segment>,
    pub(super) tools: Vec<Tool>,
    /// All that the engine said, and all that was shown of it.
    pub(super) said: String,
    pub(super) shown: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Accepted,
    Started,
    Going,
    Finished,
    Stopped,
    Failed,
    /// Its last snapshot was sent.
    Shown,
    /// Its error was sent.
    Explained,
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) has_metadata: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) sequence: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) id: String,
    pub(super) arguments: String,
    pub(super) sequence: u64,
    pub(super) step: ToolStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ToolStep {
    Started,
    Requested,
    Executing,
    Returned,
}

/// A piece of streamed text.
pub(super) struct Patch<'a> {
    pub(super) sequence: u64,
    pub(super) offset: u64,
    pub(super) text: &'a str,
    pub(super) mode: ChatStreamPatchMode,
}

impl Story {
    pub(super) fn run(&mut self) -> Result<&mut Run> {
        self.run.as_mut().context("an event outside of any run")
    }

    pub(super) fn going(&mut self) -> Result<&mut Run> {
        let may_prepare = self.may_prepare;
        let run = self.run()?;
        let is_preparing = may_prepare && run.step == Step::Started;
        ensure!(run.step == Step::Going || is_preparing, "an event of a run at {:?}", run.step);
        Ok(run)
    }

    pub(super) fn advance(&mut self, from: Step, to: Step) -> Result<()> {
        let run = self.run()?;
        ensure!(run.step == from, "{to:?} comes after {from:?}, not after {:?}", run.step);
        run.step = to;
        Ok(())
    }

    pub(super) fn call_started(&mut self, ids: &Option<CorrelationInfo>) -> Result<()> {
        let run = self.going()?;
        ensure!(run.call.is_none(), "a provider call begins in another");
        let id = call_id(ids)?.to_owned();
        run.call = Some(Call { id, has_metadata: false });
        Ok(())
    }

    pub(super) fn opened(&mut self, id: &str, ids: &Option<CorrelationInfo>) -> Result<()> {
        let run = self.going()?;
        ensure!(run.segment.is_none(), "a segment begins in another");
        ensure!(run.call_id()? == call_id(ids)?, "a segment of another call");
        run.segment = Some(Segment { id: id.to_owned(), text: String::new(), sequence: 0 });
        self.add("ChatMessage", id.to_owned(), "", "streaming")
    }

    pub(super) fn patched(&mut self, id: &str, patch: &Patch<'_>) -> Result<()> {
        let mode = self.patch_mode;
        let segment = self.segment(id)?;
        let before = segment.text.len();
        patch.apply(mode, &mut segment.text, &mut segment.sequence)?;
        let (whole, new) = (segment.text.clone(), segment.text[before..].to_owned());
        self.going()?.shown += &new;
        self.change("ChatMessage", id, |entity| entity.text = whole)
    }

    pub(super) fn closed(&mut self, id: &str, text: &str, status: &str) -> Result<()> {
        let whole = &self.segment(id)?.text;
        ensure!(!whole.is_empty(), "an empty segment");
        ensure!(whole == text, "patches say {whole:?}, the end of the segment {text:?}");
        self.going()?.segment = None;
        self.change("ChatMessage", id, |entity| status.clone_into(&mut entity.status))
    }

    pub(super) fn tool_started(&mut self, id: &str, ids: &Option<CorrelationInfo>) -> Result<()> {
        let run = self.going()?;
        ensure!(run.segment.is_none(), "a tool call begins in a segment");
        ensure!(run.call_id()? == call_id(ids)?, "a tool call of another provider call");
        ensure!(run.tools.iter().all(|tool| tool.id != id), "tool call {id} begins twice");
        run.tools.push(Tool {
            id: id.to_owned(),
            arguments: String::new(),
            sequence: 0,
            step: ToolStep::Started,
        });
        self.add("ChatToolCall", id.to_owned(), "", "pending")
    }

    pub(super) fn arguments_patched(&mut self, id: &str, patch: &Patch<'_>) -> Result<()> {
        let tool = self.tool(id, ToolStep::Started..=ToolStep::Started)?;
        patch.apply(PatchMode::Append, &mut tool.arguments, &mut tool.sequence)?;
        let arguments = tool.arguments.clone();
        self.change("ChatToolCall", id, |entity| {
            entity.text = arguments;
            entity.status = "streaming_args".to_owned();
        })
    }

    pub(super) fn requested(&mut self, id: &str, input: &str) -> Result<()> {
        let tool = self.tool(id, ToolStep::Started..=ToolStep::Started)?;
        ensure!(tool.arguments == input, "patches say {:?}, the call {input:?}", tool.arguments);
        tool.step = ToolStep::Requested;
        self.change("ChatToolCall", id, |entity| entity.status = "pending".to_owned())
    }

    pub(super) fn is_requested(&mut self, id: &str) -> Result<()> {
        self.tool(id, ToolStep::Requested..=ToolStep::Requested).map(drop)
    }

    pub(super) fn is_executing(&mut self, id: &str) -> Result<()> {
        self.tool(id, ToolStep::Executing..=ToolStep::Executing).map(drop)
    }

    pub(super) fn executing(&mut self, id: &str) -> Result<()> {
        let tool = self.tool(id, ToolStep::Requested..=ToolStep::Requested)?;
        tool.step = ToolStep::Executing;
        self.change("ChatToolCall", id, |entity| entity.status = "executing".to_owned())
    }

    pub(super) fn returned(&mut self, id: &str, result: &str, status: &str) -> Result<()> {
        self.tool(id, ToolStep::Requested..=ToolStep::Executing)?.step = ToolStep::Returned;
        self.add("ChatToolResult", format!("{id}:result"), result, status)
    }

    pub(super) fn tool_finished(&mut self, id: &str) -> Result<()> {
        let step = self.tool(id, ToolStep::Started..=ToolStep::Returned)?.step;
        let is_answered = step == ToolStep::Started || step == ToolStep::Returned;
        ensure!(is_answered, "the tool call {id} was made and ends without a result");
        self.going()?.tools.retain(|tool| tool.id != id);
        self.change("ChatToolCall", id, |entity| entity.status = "completed".to_owned())
    }

    pub(super) fn metadata(&mut self, ids: &Option<CorrelationInfo>) -> Result<()> {
        let call = self.open_call(ids)?;
        ensure!(!call.has_metadata, "metadata twice");
        call.has_metadata = true;
        Ok(())
    }

    pub(super) fn call_finished(&mut self, ids: &Option<CorrelationInfo>) -> Result<()> {
        let id = self.open_call(ids)?.id.clone();
        let run = self.going()?;
        (run.call, run.ended_call) = (None, id);
        Ok(())
    }

    pub(super) fn in_call(&mut self, ids: &Option<CorrelationInfo>) -> Result<()> {
        let run = self.going()?;
        ensure!(run.call_id()? == call_id(ids)?, "a report of another call");
        Ok(())
    }

    pub(super) fn after_call(&mut self, ids: &Option<CorrelationInfo>) -> Result<()> {
        let run = self.going()?;
        ensure!(run.call.is_none() && run.ended_call == call_id(ids)?, "a report of another call");
        Ok(())
    }

    pub(super) fn is_between_calls(&mut self) -> Result<()> {
        let run = self.going()?;
        ensure!(run.is_closed(), "an answer is rejected at {run:?}");
        Ok(())
    }

    pub(super) fn open_call(&mut self, ids: &Option<CorrelationInfo>) -> Result<&mut Call> {
        let run = self.going()?;
        ensure!(run.segment.is_none(), "a provider call ends in a segment");
        ensure!(run.call_id()? == call_id(ids)?, "the end of another call");
        run.call.as_mut().context("no open call")
    }

    pub(super) fn ended(&mut self, how: Step) -> Result<()> {
        let run = self.going()?;
        ensure!(run.is_closed(), "left open: {run:?}");
        run.step = how;
        Ok(())
    }

    fn segment(&mut self, id: &str) -> Result<&mut Segment> {
        let open = self.going()?.segment.as_mut().filter(|segment| segment.id == id);
        open.with_context(|| format!("segment {id} is not open"))
    }

    fn tool(&mut self, id: &str, steps: std::ops::RangeInclusive<ToolStep>) -> Result<&mut Tool> {
        let open = self.going()?.tools.iter_mut().find(|tool| tool.id == id);
        let tool = open.with_context(|| format!("tool call {id} is not open"))?;
        ensure!(steps.contains(&tool.step), "tool call {id} is at {:?}", tool.step);
        Ok(tool)
    }
}

impl Run {
    /// Nothing is open in it.
    pub(super) fn is_closed(&self) -> bool {
        self.segment.is_none() && self.call.is_none() && self.tools.is_empty()
    }

    fn call_id(&self) -> Result<&str> {
        self.call.as_ref().map(|call| call.id.as_str()).context("outside of any provider call")
    }
}

impl<'a> Patch<'a> {
    pub(super) fn new(
        (sequence, offset): (u64, u64),
        text: &'a str,
        mode: ChatStreamPatchMode,
    ) -> Self {
        Self { sequence, offset, text, mode }
    }

    /// Adds the patch to what came before it.
    fn apply(&self, mode: PatchMode, text: &mut String, sequence: &mut u64) -> Result<()> {
        ensure!(self.sequence == *sequence + 1, "piece {} after {sequence}", self.sequence);
        *sequence = self.sequence;
        let new = match mode {
            PatchMode::Append => {
                ensure!(self.mode == ChatStreamPatchMode::Append, "mode {:?}", self.mode);
                ensure!(self.offset == text.len() as u64, "offset {}", self.offset);
                self.text
            }
            PatchMode::Snapshot => {
                ensure!(self.mode == ChatStreamPatchMode::Snapshot, "mode {:?}", self.mode);
                ensure!(self.offset == 0, "offset {}", self.offset);
                self.text.strip_prefix(text.as_str()).context("text was taken back")?
            }
        };
        ensure!(!new.is_empty(), "an empty patch");
        *text += new;
        Ok(())
    }
}

fn call_id(ids: &Option<CorrelationInfo>) -> Result<&str> {
    let id = ids.as_ref().map_or("", |ids| ids.provider_call_id.as_str());
    ensure!(!id.is_empty(), "no provider call id");
    Ok(id)
}
