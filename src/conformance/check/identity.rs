//! Checks what all events of a run repeat: the ids of the run and of its parts, its prompt, and the
//! names of its tools. No later run may have the same ids.

use super::fields::{Fields, Place};
use super::names::{Name, Namer, Remembered};
use super::rule::{Report, Rule};
use std::collections::HashMap;

/// Ids of runs that are remembered, so that no later run has one of them.
const IDS_MAX: usize = 100_000;

/// Tool calls of one run whose ids and names are compared.
const TOOLS_MAX: usize = 1024;

/// The ids of a run, from its first events.
#[derive(Clone, Debug, Default)]
pub(super) struct Identity {
    root: Option<Name>,
    run: Option<Name>,
    turn: Option<Name>,
    /// The last provider call.
    call: Option<Name>,
    prompt: Option<u64>,
    /// Bytes of prompt in its events so far.
    prompt_bytes: usize,
    /// By the hash of the tool call's id.
    tools: HashMap<u64, Tool>,
}

#[derive(Clone, Debug)]
struct Tool {
    call: Option<Name>,
    name: Name,
}

/// Bytes of prompt after which the text segments of a run may leave it out.
const REPEATED_PROMPT_BYTES_MAX: usize = 1024 * 1024;

/// Ids of earlier runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Earlier {
    roots: Remembered,
    runs: Remembered,
    turns: Remembered,
    calls: Remembered,
}

/// An id that must stay the same.
struct Repeated<'a> {
    what: &'static str,
    rule: Rule,
    id: &'a str,
}

impl Identity {
    /// Checks an event of the run.
    pub(super) fn check(
        &mut self,
        fields: &Fields<'_>,
        namer: &Namer,
        earlier: &mut Earlier,
        report: &mut Report,
    ) {
        self.check_root(fields, namer, &mut earlier.roots, report);
        self.check_prompt(fields, namer, report);
        self.check_tool_name(fields, namer, report);
        let place = fields.place();
        let Some(ids) = fields.ids() else { return };
        if place == Place::Elsewhere {
            return;
        }
        let run = Repeated { what: "run", rule: Rule::Correlation, id: &ids.run_id };
        run.check(&mut self.run, namer, &mut earlier.runs, report);
        let turn = Repeated { what: "turn", rule: Rule::Correlation, id: &ids.turn_id };
        turn.check(&mut self.turn, namer, &mut earlier.turns, report);
        let call =
            Repeated { what: "provider call", rule: Rule::Correlation, id: &ids.provider_call_id };
        match place {
            Place::Call | Place::Text | Place::Thinking => {
                if fields.name == "ChatProviderCallStarted" {
                    self.call = None;
                }
                call.check(&mut self.call, namer, &mut earlier.calls, report);
            }
            Place::Extension | Place::Steering if call.id.is_empty() => {}
            Place::Extension | Place::Steering => {
                call.check(&mut self.call, namer, &mut earlier.calls, report);
            }
            Place::Tool => self.check_tool(fields, &call, namer, report),
            Place::Prompt | Place::Run | Place::Warning | Place::Error | Place::Elsewhere => {}
        }
    }

    fn check_root(
        &mut self,
        fields: &Fields<'_>,
        namer: &Namer,
        earlier: &mut Remembered,
        report: &mut Report,
    ) {
        // An id of the wrong form was reported with its field.
        let Some(id) = fields.root() else { return };
        let root = Repeated { what: "root message", rule: Rule::MessageId, id };
        root.check(&mut self.root, namer, earlier, report);
        let parent = fields.parent_message_id.unwrap_or_default();
        if !parent.is_empty() && parent != id {
            let message = format!("the parentMessageId of {} is not its root", fields.name);
            report.add(Rule::MessageId, message);
        }
    }

    /// Whether a long prompt need not be repeated any more.
    fn has_repeated_prompt(&self) -> bool {
        self.prompt_bytes >= REPEATED_PROMPT_BYTES_MAX / 2
    }

    fn check_prompt(&mut self, fields: &Fields<'_>, namer: &Namer, report: &mut Report) {
        let Some(prompt) = fields.prompt else { return };
        self.prompt_bytes += prompt.len();
        if fields.is_joined_prompt() {
            return;
        }
        if prompt.is_empty() && fields.place() == Place::Text && self.has_repeated_prompt() {
            return;
        }
        let key = namer.key(prompt);
        if *self.prompt.get_or_insert(key) != key {
            let message = format!("the prompt of {} differs from that of its run", fields.name);
            report.add(Rule::FieldChanged, message);
        }
    }

    /// A tool call belongs to the provider call that made it, and has one name.
    fn check_tool(
        &mut self,
        fields: &Fields<'_>,
        call: &Repeated<'_>,
        namer: &Namer,
        report: &mut Report,
    ) {
        let id = namer.key(fields.tool_call_id.unwrap_or_default());
        if fields.name == "ChatToolCallStarted" && self.tools.len() < TOOLS_MAX {
            let name = namer.name(fields.tool_name.unwrap_or_default());
            self.tools.insert(id, Tool { call: self.call.clone(), name });
        }
        let Some(tool) = self.tools.get_mut(&id) else { return };
        // A tool call belongs to a provider call that is already known.
        call.check(&mut tool.call, namer, &mut Remembered::default(), report);
    }

    fn check_tool_name(&self, fields: &Fields<'_>, namer: &Namer, report: &mut Report) {
        let Some(name) = fields.tool_name else { return };
        let id = namer.key(fields.tool_call_id.unwrap_or_default());
        let Some(tool) = self.tools.get(&id) else { return };
        if !name.is_empty() && namer.key(name) != tool.name.key() {
            let known = &tool.name.shown;
            let message = format!("{} does not name the tool {known:?}", fields.name);
            report.add(Rule::FieldChanged, message);
        }
    }
}

impl Repeated<'_> {
    /// Compares it with the `known` one. A change is reported once: from then on the new id is the
    /// known one.
    fn check(
        &self,
        known: &mut Option<Name>,
        namer: &Namer,
        earlier: &mut Remembered,
        report: &mut Report,
    ) {
        let Self { what, rule, id } = *self;
        if id.is_empty() {
            return report.add(rule, format!("the correlation names no {what}"));
        }
        if known.as_ref().is_some_and(|known| known.key() == namer.key(id)) {
            return;
        }
        let name = namer.name(id);
        if let Some(known) = known {
            let message = format!("the {what} is {:?}; it was {:?}", name.shown, known.shown);
            report.add(rule, message);
        } else if earlier.contains(&name) {
            report.add(rule, format!("the {what} {:?} belongs to an earlier run", name.shown));
        } else {
            earlier.insert(&name, IDS_MAX);
        }
        *known = Some(name);
    }
}
