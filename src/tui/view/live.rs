//! The live region: the open part of the answer, the question about a tool call, the text that is being
//! written, and the state of the chat. It is never taller than the screen.

use super::editor::written;
use super::lists::{candidates, list, search};
use super::look::{Look, Part};
use super::pieces::{arguments, wrapped};
use super::{one_line, seconds, styled};
use crate::output::waiting_text;
use crate::tui::model::{Approval, Run, RunPhase, Size, State, Status, ToolState, retrying};
use crate::tui::text::{Line, Span, tokens, width};
use std::time::Duration;

/// Rows of reasoning that are shown while it streams.
const REASONING_ROWS_MAX: usize = 6;

/// Rows of running tool calls.
const TOOL_ROWS_MAX: usize = 6;

/// Rows of prompts that wait.
const WAITING_ROWS_MAX: usize = 3;

/// Bytes of reasoning that are looked at for its last rows.
const REASONING_BYTES_MAX: usize = 4 * 1024;

/// The lines of the live region, and where the cursor is in them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Live {
    pub(crate) lines: Vec<Line>,
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// Lines of the live region, of those that were not left: the first ones, which are at least in part above the
/// screen, and how many of the first ones have all of their text on the terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Above {
    pub(crate) lines: usize,
    pub(crate) whole: usize,
}

const HINT_ROWS_MAX: usize = 3;

/// Draws the live region in at most `rows` rows, with a `notice` where hints are. `growing`
/// draws the open part of the answer in the rows that are left.
pub(super) fn region(
    state: &State,
    look: &Look,
    rows: usize,
    notice: Option<&str>,
    growing: impl FnOnce(usize) -> Vec<Line>,
) -> Live {
    let Size { columns, .. } = state.size;
    let columns = columns.max(1);
    let mut room = Room(rows.max(1));
    // In this order if there is little room.
    room.reserve(1);
    let asked = room.first(asked(state, look, columns, room.0));
    let status = room.first(status(state, look, columns, notice));
    let question = match asked.is_empty() {
        true => room.first(question(state, look, columns, takes_keys(state))),
        false => asked,
    };
    let progress = room.first(progress(state, look, columns));
    let picker = state.picker.as_ref();
    let list = picker.map(|it| list(state, it, look, columns, room.0)).unwrap_or_default();
    let list = room.first(list);
    let candidates = room.first(candidates(state, look, columns));
    let rows_of_editor = (rows / 3).max(1).min(room.0 + 1);
    let input = match picker {
        None => written(&state.editor, look, columns, rows_of_editor),
        Some(picker) => super::editor::written(&search(picker), look, columns, 1),
    };
    room.take(input.lines.len() - 1);
    let waiting = room.first(waiting(state, look, columns));
    let tools = room.first(tools(state, look, columns));
    let growing = growing(room.0);
    room.take(growing.len());
    // An empty line separates the printed text from the live region.
    let gap = usize::from(room.0 > 0 && !progress.is_empty() && question.is_empty());
    let mut lines = Vec::new();
    lines.extend(growing);
    lines.extend(tools);
    lines.extend(vec![Line::default(); gap]);
    lines.extend(waiting.into_iter().chain(progress).chain(question).chain(list));
    let row = lines.len() + input.row;
    lines.extend(input.lines.into_iter().chain(candidates).chain(status));
    Live { lines, row, column: input.column.min(columns.saturating_sub(1)) }
}

/// Rows that are left.
struct Room(usize);

impl Room {
    fn reserve(&mut self, rows: usize) {
        self.take(rows);
    }

    fn take(&mut self, rows: usize) {
        self.0 = self.0.saturating_sub(rows);
    }

    fn first(&mut self, mut lines: Vec<Line>) -> Vec<Line> {
        lines.truncate(self.0);
        self.take(lines.len());
        lines
    }
}

/// The end of the reasoning that streams.
pub(super) fn reasoning(state: &State, look: &Look, columns: usize) -> Vec<Line> {
    let Some(reasoning) = state.run.as_ref().and_then(|run| run.reasoning.as_ref()) else {
        return Vec::new();
    };
    let style = look.style(Part::Quiet);
    let start = reasoning.text.len().saturating_sub(REASONING_BYTES_MAX);
    let tail = &reasoning.text[reasoning.text.ceil_char_boundary(start)..];
    let mut lines = wrapped(tail.trim_end(), look.signs().reasoning, columns, style);
    lines.drain(..lines.len().saturating_sub(REASONING_ROWS_MAX));
    lines.insert(0, Line::default());
    lines
}

fn tools(state: &State, look: &Look, columns: usize) -> Vec<Line> {
    let Some(run) = &state.run else { return Vec::new() };
    let mut lines = Vec::new();
    // The call to decide is in the question.
    let shown = run.tools.iter().filter(|call| {
        let is_asked = |approval: &Approval| approval.call == call.id;
        call.state != ToolState::Requested || !state.approvals.iter().any(is_asked)
    });
    for call in shown.take(TOOL_ROWS_MAX) {
        let what = match call.state {
            ToolState::Streaming => "writing arguments".to_owned(),
            ToolState::Requested => "waiting".to_owned(),
            ToolState::Running | ToolState::Succeeded(_) | ToolState::Failed(_) => {
                let time = whole_seconds(state.now.saturating_sub(call.since));
                let progress = if call.progress.is_empty() { "" } else { ", " };
                format!("{time}{progress}{}", call.progress)
            }
        };
        let text = format!(
            "{}{} ({what}){}",
            look.signs().tool_running,
            call.name,
            arguments(&call.input)
        );
        lines.push(styled(one_line(&text, columns), look.style(Part::Tool)));
    }
    let more = run.tools.len().saturating_sub(TOOL_ROWS_MAX);
    let more = (more > 0)
        .then(|| styled(one_line(&format!("… {more} more"), columns), look.style(Part::Quiet)));
    lines.extend(more);
    lines
}

fn waiting(state: &State, look: &Look, columns: usize) -> Vec<Line> {
    let style = look.style(Part::Quiet);
    let shown = state.waiting.iter().filter(|_| state.run.is_some());
    let line = |waiting: &crate::tui::model::Waiting| {
        let how = if waiting.joins { "joins the answer" } else { "waits" };
        let written = state.as_written(&waiting.prompt);
        let prompt = written.as_ref().unwrap_or(&waiting.prompt);
        styled(one_line(&format!("{how}: {prompt}"), columns), style)
    };
    let mut lines: Vec<_> = shown.map(line).collect();
    if lines.len() > WAITING_ROWS_MAX {
        let more = lines.len() - (WAITING_ROWS_MAX - 1);
        lines.truncate(WAITING_ROWS_MAX - 1);
        lines.push(styled(one_line(&format!("… {more} more wait"), columns), style));
    }
    lines.extend(state.switch.iter().map(|switch| {
        let text = format!("after this answer: {}", switch.names());
        styled(one_line(&text, columns), style)
    }));
    lines.extend(state.attached_names().map(|names| {
        let text = format!("goes with the next prompt: {names}");
        styled(one_line(&text, columns), style)
    }));
    lines.extend(state.outputs.iter().map(|output| {
        let text = format!("goes with the next prompt: the output of {}", output.command);
        styled(one_line(&text, columns), style)
    }));
    lines
}

/// The phase of the run, with a spinner and seconds.
fn progress(state: &State, look: &Look, columns: usize) -> Vec<Line> {
    let mut lines: Vec<_> = command(state, look, columns).into_iter().collect();
    lines.extend(run_progress(state, look, columns));
    lines
}

/// The shell command that runs.
fn command(state: &State, look: &Look, columns: usize) -> Option<Line> {
    let command = state.command.as_ref()?;
    let time = whole_seconds(state.now.saturating_sub(command.since));
    let spinner = look.spinner(state.now.as_millis() / 100);
    let text = match command.is_stopping {
        true => format!("{spinner} ending a command · {time}"),
        false => format!("{spinner} Esc ends this command · {time} · {}", command.text),
    };
    Some(styled(one_line(&text, columns), look.style(Part::Quiet)))
}

fn run_progress(state: &State, look: &Look, columns: usize) -> Vec<Line> {
    let (what, since) = match (&state.run, state.waiting.first()) {
        (Some(run), _) => (step(state, run), run.started),
        (None, Some(waiting)) => ("starting".to_owned(), waiting.since),
        (None, None) => return Vec::new(),
    };
    let time = state.now.saturating_sub(since);
    let spinner = look.spinner(state.now.as_millis() / 100);
    let how =
        if state.run.as_ref().is_some_and(|run| run.is_stopping) { "" } else { " · Esc stops" };
    let text = format!("{spinner} {what} · {}{how}", whole_seconds(time));
    vec![styled(one_line(&text, columns), look.style(Part::Quiet))]
}

fn step(state: &State, run: &Run) -> String {
    if run.is_stopping {
        return "stopping".to_owned();
    }
    if !state.approvals.is_empty() {
        return "waiting for your decision".to_owned();
    }
    match &run.phase {
        RunPhase::Starting => "starting".to_owned(),
        RunPhase::Model => "waiting for the model".to_owned(),
        RunPhase::Thinking => "thinking".to_owned(),
        RunPhase::Answering => "answering".to_owned(),
        RunPhase::Tools => "running tools".to_owned(),
        RunPhase::Compacting => "summarizing the earlier turns".to_owned(),
        RunPhase::Waiting(what) => waiting_text(*what).to_owned(),
        RunPhase::Retry { attempt, attempts_max, until, reason } => {
            retrying(until.saturating_sub(state.now), *attempt, *attempts_max, reason)
        }
    }
}

fn whole_seconds(time: Duration) -> String {
    seconds(Duration::from_secs(time.as_secs())).replace(".0 s", " s")
}

/// The element with the keyboard focus, if there is no room for all elements: it is never hidden.
fn asked(state: &State, look: &Look, columns: usize, rows: usize) -> Vec<Line> {
    let has_room = question(state, look, columns, takes_keys(state)).len() < rows;
    if !state.asking.has_letters || state.approvals.is_empty() || has_room {
        return Vec::new();
    }
    vec![styled(one_line("? y yes · n no · Esc back", columns), look.style(Part::Question))]
}

/// Columns of the arguments in a question that are shown in any window.
const QUESTION_COLUMNS_MIN: usize = 16;

/// Whether the screen has room for all of the open question and its keys, and for the last row of the call above it.
pub(super) fn has_room_for_question(state: &State, look: &Look) -> bool {
    let Size { columns, rows } = state.size;
    let columns = columns.max(1);
    // The keys are longer once they count.
    let question = question(state, look, columns, true).len();
    // The line to write in has one.
    question > 0 && 1 + question + status(state, look, columns, None).len() < rows
}

/// Whether a key answers the question now, which names it then.
fn takes_keys(state: &State) -> bool {
    match state.offer {
        Some(_) => state.takes_offer(),
        None => state.takes_one_key(),
    }
}

/// The question about a tool call, with as much of its arguments as a row has room for: all of them are printed.
fn question(state: &State, look: &Look, columns: usize, takes_keys: bool) -> Vec<Line> {
    let style = look.style(Part::Question);
    if let Some(offer) = &state.offer {
        let yes = match takes_keys {
            true => " · Enter copies it and goes on in the copy",
            false => "",
        };
        let no = if offer.is_only { "Esc leaves" } else { "Esc stays here" };
        let text = format!("Another process holds the conversation{yes} · {no}");
        return wrapped(&text, "? ", columns, style);
    }
    let Some(approval) = state.approvals.first() else { return Vec::new() };
    let from = match approval.server.as_str() {
        "" => String::new(),
        server => format!(" of {server}"),
    };
    let more = match state.approvals.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let before = format!("May {}{from} run with ", approval.tool);
    let after = format!("?{more}");
    let room = columns.saturating_sub(width(&before) + width(&after) + 2);
    let input = one_line(&approval.input, room.max(QUESTION_COLUMNS_MIN));
    let text = match state.asking.several.len() {
        0 => format!("{before}{input}{after}"),
        count => format!("May these {count} calls run?"),
    };
    let mut lines = wrapped(&text, "? ", columns, style);
    lines.extend(wrapped(&keys_of_question(state, takes_keys), "  ", columns, style));
    lines
}

/// The keys that answer the question.
fn keys_of_question(state: &State, takes_keys: bool) -> String {
    let count = state.approvals.len();
    let asks_one = state.asking.several.is_empty();
    if state.asking.takes_reason() {
        return "write why not; Enter denies with that reason, Esc goes back".to_owned();
    }
    if state.asking.has_letters {
        let all = match (count > 1, asks_one) {
            (false, _) => String::new(),
            (true, true) => format!(" · l all {count}"),
            (true, false) => " · l only the first".to_owned(),
        };
        return format!("y yes · a always here{all} · n no · r no, and why · Esc back");
    }
    if takes_keys {
        let all = match (count > 1, asks_one) {
            (false, _) => String::new(),
            (true, true) => format!(" · Ctrl-A all {count}"),
            (true, false) => " · Ctrl-A only the first".to_owned(),
        };
        return format!("Enter yes{all} · Backspace no · Ctrl-G to answer otherwise");
    }
    "Ctrl-G to answer".to_owned()
}

/// The last row: a hint, or what answers, what it has cost, and which conversation this is.
fn status(state: &State, look: &Look, columns: usize, notice: Option<&str>) -> Vec<Line> {
    let edits = match state.edits_earlier() {
        true => "Enter replaces this prompt and drops all after it · Esc leaves all as it is",
        false => "Enter replaces the last prompt and its answer · Esc leaves them as they are",
    };
    let missing = state.faulty_files().map(|missing| one_line(&missing, columns));
    let edits = state.edits.as_ref().map(|_| match &missing {
        Some(missing) => format!("{missing} · {edits}"),
        None => edits.to_owned(),
    });
    let edits = edits.as_deref().map(|edits| (edits, Part::Question));
    let notice = notice.map(|notice| (notice, Part::Warning));
    let hint = state.shown_hint().map(|hint| (hint, Part::Warning));
    let Some((text, part)) = hint.or(notice).or(edits) else {
        return with_missing(missing, status_text(state), look, columns);
    };
    // The cost of a conversation is never hidden.
    let cost = state.status.cost.as_deref();
    let whole = cost.map_or_else(|| text.to_owned(), |cost| format!("{text} · {cost}"));
    if width(&whole) <= columns {
        return vec![styled(whole, look.style(part))];
    }
    let mut lines = wrapped(text, "", columns, look.style(part));
    lines.truncate(HINT_ROWS_MAX);
    lines.extend(cost.map(|cost| styled(one_line(cost, columns), look.style(Part::Quiet))));
    lines
}

/// The files that the draft names and that are not found, before the status, or above it if one row has
/// not room for both.
fn with_missing(missing: Option<String>, status: String, look: &Look, columns: usize) -> Vec<Line> {
    let rows = match missing {
        None => vec![status],
        Some(missing) => {
            let both = format!("{missing} · {status}");
            if width(&both) <= columns { vec![both] } else { vec![missing, status] }
        }
    };
    let style = look.style(Part::Quiet);
    let row = |text: String| Line::from(Span::styled(one_line(&text, columns), style));
    rows.into_iter().map(row).collect()
}

fn status_text(state: &State) -> String {
    let status = &state.status;
    let mode = if state.is_in_normal_mode() { "NORMAL" } else { "" };
    let mut parts = vec![mode.to_owned(), status.answers_with()];
    if status.input_tokens + status.output_tokens > 0 {
        let (input, output) = (tokens(status.input_tokens), tokens(status.output_tokens));
        parts.push(format!("{input} in, {output} out"));
    }
    parts.extend(context(status));
    parts.extend(status.cost.clone());
    if !status.is_stored {
        parts.push("not stored".to_owned());
    }
    parts.push("/help".to_owned());
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

/// How much of what the model can be sent is in use.
fn context(status: &Status) -> Option<String> {
    let used = tokens(status.context_tokens);
    let Some(size) = status.context_size else {
        return (status.context_tokens > 0).then(|| format!("context {used}"));
    };
    let per_cent = status.context_tokens.saturating_mul(100) / size;
    (status.context_tokens > 0)
        .then(|| format!("context {used} of {} ({per_cent} %)", tokens(size.get())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;

    #[test]
    fn the_context_in_use_is_shown_as_far_as_it_is_known() {
        let check = |context_tokens, size, expected: Option<&str>| {
            let context_size = NonZeroU64::new(size);
            let status = Status { context_tokens, context_size, ..Status::default() };
            assert_eq!(context(&status).as_deref(), expected);
        };
        check(0, 0, None);
        check(0, 200_000, None);
        check(1_234, 0, Some("context 1234"));
        check(51_234, 200_000, Some("context 51k of 200k (25 %)"));
    }
}
