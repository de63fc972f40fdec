//! Adds the names of options to errors and results of a session.

use crate::session::Hint;

/// The options for `hint`, as the end of its sentence.
pub(super) fn hint(hint: Hint<'_>) -> String {
    match hint {
        Hint::OfferTools => " with --mcp".to_owned(),
        Hint::ToolRounds => ", or raise --max-tool-rounds".to_owned(),
        Hint::ToolCalls => " (--max-tool-calls)".to_owned(),
        Hint::ToolArguments => " (--max-tool-argument-bytes)".to_owned(),
        Hint::ToolTime => " (--tool-timeout-ms)".to_owned(),
        Hint::ServerTime => "; --mcp-wait-ms sets how long it is waited for".to_owned(),
        Hint::RequireTools => ", or leave out --require-tools".to_owned(),
        Hint::Compact => " (--compact auto; in a chat /compact)".to_owned(),
        Hint::QueueSubmits => ", or start the server with --on-busy queue".to_owned(),
        Hint::AllowTool(Some(rule)) => {
            let rule = rule.as_str();
            format!("; allow it with --allow '{rule}', or all tools with --allow '*'")
        }
        Hint::AllowTool(None) => {
            "; no rule of --allow names this tool alone: give one of the servers another name, or allow \
             all tools with --allow '*'"
                .to_owned()
        }
        Hint::OtherSession => {
            " (leave --session, --resume and --continue out, or name another), or ask in a prompt: the \
             `messages` of a command file stand before the first one, and with --stdin-rpc so does its \
             `prompt`, or that of exec"
                .to_owned()
        }
        Hint::FinalSnapshot => {
            ", as with --final-snapshot turn; --final-snapshot full has the whole conversation sent \
             after each run"
                .to_owned()
        }
        Hint::AllowRule(glob) => format!("--allow '{}'", glob.as_str()),
        Hint::DenyRule(glob) => format!("--deny '{}'", glob.as_str()),
        Hint::DenyAll => "--approval deny".to_owned(),
    }
}
