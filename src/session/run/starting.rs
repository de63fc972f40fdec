//! The first provider call of a run, for which its tools must be there.

use super::{Context, Run, RunStage};
use crate::session::{Output, Warning};

/// The name of the warning that a rule names no tool.
const IDLE_RULE: &str = "rule_without_tool";

impl Run {
    /// Starts the first provider call, unless servers are missing without which there is to be none.
    pub(super) fn start_answer(&mut self, context: &mut Context<'_>) {
        if lacks_servers(context) {
            self.stage = RunStage::Preparing { deadline: context.now };
            return;
        }
        for rule in context.tools.take_idle_rules() {
            let tools = context.tools.listed();
            let tools = if tools.is_empty() { "none".to_owned() } else { tools };
            let text =
                format!("{rule} names no tool, so it decides nothing; the tools are: {tools}");
            let code = Some(IDLE_RULE);
            context.recorder.push(Output::Warning(Warning { text, has_event: false, code }));
        }
        self.ask_model(context);
    }
}

/// Whether a run is not to begin, as the tools of a server are missing.
pub(super) fn lacks_servers(context: &Context<'_>) -> bool {
    context.tools.rules().requires_servers && !context.tools.missing().is_empty()
}
