//! Constants of the wire: codes, statuses, roles and kinds, each written once. The writer of frames, the
//! checker and the JSON Schema use them.

/// Defines a module of constants, and `ALL` of them in order.
macro_rules! constants {
    ($(#[$about:meta])* $name:ident { $($word:ident = $text:literal,)* }) => {
        $(#[$about])*
        pub(crate) mod $name {
            $(pub(crate) const $word: &str = $text;)*
            pub(crate) const ALL: &[&str] = &[$($word),*];
        }
    };
}

constants! {
    /// Codes of error frames. Those of the protocol's documentation come first; one of them
    /// (`snapshot_failed`) only other servers send.
    code {
        INVALID_REQUEST_JSON = "invalid_request_json",
        LINE_TOO_LONG = "line_too_long",
        UNSUPPORTED_VERSION = "unsupported_version",
        UNKNOWN_REQUEST = "unknown_request",
        SESSION_MISMATCH = "session_mismatch",
        SESSION_BUSY = "session_busy",
        EMPTY_PROMPT = "empty_prompt",
        NO_ACTIVE_REQUEST = "no_active_request",
        SHUTTING_DOWN = "shutting_down",
        ENGINE_INIT_FAILED = "engine_init_failed",
        RUN_FAILED = "run_failed",
        STORE_FAILED = "store_failed",
        SNAPSHOT_FAILED = "snapshot_failed",
        STDIN_READ_FAILED = "stdin_read_failed",
        INTERRUPTED = "interrupted",
        INTERNAL = "internal",
        INVALID_ANSWER = "invalid_answer",
        UNKNOWN_EXTENSION = "unknown_extension",
        INVALID_TOOLS = "invalid_tools",
        UNKNOWN_TOOL_CALL = "unknown_tool_call",
        INVALID_SETTINGS = "invalid_settings",
        INVALID_ATTACHMENT = "invalid_attachment",
        SESSION_LOCKED = "session_locked",
        UNKNOWN_MESSAGE = "unknown_message",
        NOTHING_TO_COMPACT = "nothing_to_compact",
        COMPACTION_FAILED = "compaction_failed",
        BUDGET_EXHAUSTED = "budget_exhausted",
        REQUEST_ID_REUSED = "request_id_reused",
        RESOURCE_EXHAUSTED = "resource_exhausted",
    }
}

constants! {
    /// Codes of errors in the documents that the commands around the protocol print.
    command_code {
        USAGE = "usage",
        PROVIDER_FAILED = "provider_failed",
        READ_FAILED = "read_failed",
        WRITE_FAILED = "write_failed",
        CONTRACT_BROKEN = "contract_broken",
        BAD_LINES = "bad_lines",
        CHECK_FAILED = "check_failed",
        MCP_SERVER_FAILED = "mcp_server_failed",
        SESSION_NOT_FOUND = "session_not_found",
        AMBIGUOUS_SESSION = "ambiguous_session",
        SESSION_EXISTS = "session_exists",
        NO_SUCH_TURN = "no_such_turn",
        NOT_DELETED = "not_deleted",
        NOT_RENAMED = "not_renamed",
        STORE_DEGRADED = "store_degraded",
        TURN_GOES_ON = "turn_goes_on",
    }
}

constants! {
    /// Classes of errors, which begin the `detail` of an error frame of a run.
    class {
        AUTH = "auth",
        RATE_LIMITED = "rate_limited",
        CONTEXT_OVERFLOW = "context_overflow",
        TIMEOUT = "timeout",
        NETWORK = "network",
        PROVIDER = "provider",
        MALFORMED_STREAM = "malformed_stream",
        TOOL = "tool",
        CONFIG = "config",
        ABORTED = "aborted",
        INTERNAL = "internal",
    }
}

constants! {
    /// Statuses of a `done`.
    done {
        OK = "ok",
        STOPPED = "stopped",
        FAILED = "failed",
        SHUTDOWN = "shutdown",
    }
}

constants! {
    /// Kinds of the entities of a snapshot.
    kind {
        MESSAGE = "ChatMessage",
        TOOL_CALL = "ChatToolCall",
        TOOL_RESULT = "ChatToolResult",
        TOOL_APPROVAL = "ToolApproval",
        COMPACTION = "Compaction",
    }
}

constants! {
    /// Roles of messages.
    role {
        USER = "user",
        ASSISTANT = "assistant",
        THINKING = "thinking",
        WARNING = "warning",
        ERROR = "error",
    }
}

constants! {
    /// Statuses of messages; a prompt is accepted, the others belong to segments.
    message {
        ACCEPTED = "accepted",
        STREAMING = "streaming",
        FINISHED = "finished",
        STOPPED = "stopped",
        FAILED = "failed",
    }
}

constants! {
    /// Statuses with which runs and segments end.
    ending {
        FINISHED = "finished",
        STOPPED = "stopped",
        FAILED = "failed",
    }
}

constants! {
    /// Statuses of tool calls.
    tool_call {
        PENDING = "pending",
        STREAMING_ARGS = "streaming_args",
        EXECUTING = "executing",
        COMPLETED = "completed",
    }
}

constants! {
    /// Statuses of the results of tools.
    tool_result {
        SUCCESS = "success",
        ERROR = "error",
    }
}

constants! {
    /// Why a provider call ended.
    finish {
        COMPLETED = "completed",
        MAX_TOKENS = "max_tokens",
        TOOL_CALLS = "tool_calls",
        CONTENT_FILTER = "content_filter",
        CANCELLED = "cancelled",
        FAILED = "failed",
        OTHER = "other",
    }
}

/// The reason with which a provider call that failed, and a segment that it cut off, end.
pub(crate) const REASON_OF_FAILED: &str = "error";

/// The reason with which a segment of reasoning ends that something follows.
pub(crate) const REASON_OF_REASONING: &str = "stop";

/// The `source` of reasoning in the event that starts a segment.
pub(crate) const SOURCE_AT_START: &str = "provider";

/// The `source` of reasoning in the events after it.
pub(crate) const SOURCE: &str = "thinking";

/// The `detail` of an error about a stored session that is to be resumed and is not there.
pub(crate) const SESSION_NOT_FOUND: &str = "session_not_found";

/// The `segmentType` of the message of a segment with text of the answer.
pub(crate) const SEGMENT_TEXT: &str = "text";

/// The `segmentType` of the message of a segment with reasoning.
pub(crate) const SEGMENT_REASONING: &str = "reasoning";

/// Capabilities in `hello`.
pub(crate) mod capability {
    /// The process reads requests.
    pub(crate) const STDIN_RPC: &str = "stdin-rpc";

    /// The capabilities of every process.
    pub(crate) const ALWAYS: [&str; 3] = ["ui-events", "snapshot", "done"];

    /// Further capabilities of a process that reads requests.
    pub(crate) const OF_STDIN: [&str; 4] = [STDIN_RPC, "single-session", "multi-turn", "cancel"];

    /// Extension: patches leave out what the first event of their segment has.
    pub(crate) const LEAN_PATCHES: &str = "lean-patches";

    /// Extension: a submit waits while a run is active.
    pub(crate) const QUEUE: &str = "queue";

    /// Extension: events report the JSON that is found in an answer.
    pub(crate) const EXTRACT: &str = "extract";

    /// Extension: the client offers tools and runs them.
    pub(crate) const CLIENT_TOOLS: &str = "client-tools";

    /// Extension: the client drops turns or has them answered anew.
    pub(crate) const EDIT: &str = "edit";

    /// Extension: events report what a run waits for in which nothing else happens.
    pub(crate) const HEARTBEATS: &str = "heartbeats";

    /// Extension: a snapshot has a part of the conversation.
    pub(crate) const HISTORY: &str = "history";

    /// Extension: the model is sent a summary in place of earlier turns.
    pub(crate) const COMPACTION: &str = "compaction";

    /// Extension: the client decides about tool calls.
    pub(crate) const APPROVALS: &str = "approvals";

    /// Extension: a submit joins the run that it names.
    pub(crate) const STEER: &str = "steer";

    /// Extension: a cancel names its target.
    pub(crate) const TARGETED_CANCEL: &str = "targeted-cancel";

    /// Extension: resources of tool servers go with a prompt.
    pub(crate) const RESOURCES: &str = "resources";

    /// Extension: events report how far tool calls are.
    pub(crate) const TOOL_PROGRESS: &str = "tool-progress";

    /// Extension: events report the state of tool servers.
    pub(crate) const TOOL_SERVERS: &str = "tool-servers";

    /// Extension: images and files go with a prompt.
    pub(crate) const ATTACHMENTS: &str = "attachments";

    /// Extension: events report the retries of provider calls, and answers that were cut off.
    pub(crate) const RETRIES: &str = "retries";

    /// Extension: a submit has settings of its own.
    pub(crate) const SETTINGS: &str = "settings";

    /// Extension: a submit has a schema that its answer must match.
    pub(crate) const STRUCTURED: &str = "structured";

    /// Extension: a request chooses the model of the submits that follow.
    pub(crate) const SWITCH_MODEL: &str = "switch-model";

    /// Extension: events report that the conversation is not stored any more.
    pub(crate) const STORE: &str = "store";

    /// Extension: events report how soon provider calls were answered.
    pub(crate) const TIMING: &str = "timing";

    /// Extension of exports: events report what answered in each turn, and what it took.
    pub(crate) const TURN_SUMMARIES: &str = "turn-summaries";

    /// Extension: events report token counts and costs.
    pub(crate) const USAGE: &str = "usage";

    /// Before the names of the events that are written, if they are not all.
    pub(crate) const EVENTS: &str = "events=";

    /// Before the longest request line that is read, in bytes.
    pub(crate) const REQUEST_BYTES: &str = "max-request-bytes=";
}

/// Packages of this server's extensions, `duologue.<extension>.v1`.
pub(crate) const EXTENSIONS: &str = "duologue.";

/// The package of the messages about tools that the client runs.
const CLIENT_TOOLS_PACKAGE: &str = "pinocchio.chatapp.frontendtools.";

/// The extension that a message belongs to: `extract` for `duologue.extract.v1.LineRejected`. Some
/// packages have the messages of several extensions, or one with another name.
pub(crate) fn extension_of(full_name: &str) -> Option<&str> {
    match full_name {
        "duologue.tools.v1.ToolApprovalRequested" | "duologue.tools.v1.ToolApprovalResolved" => {
            Some(capability::APPROVALS)
        }
        "duologue.tools.v1.ToolCallProgressed" => Some(capability::TOOL_PROGRESS),
        "duologue.tools.v1.ToolServerChanged" => Some(capability::TOOL_SERVERS),
        "duologue.session.v1.SteeringAccepted" => Some(capability::STEER),
        "duologue.session.v1.Heartbeat" => Some(capability::HEARTBEATS),
        "duologue.session.v1.CompactionProposed"
        | "duologue.session.v1.CompactionStarted"
        | "duologue.session.v1.Compacted"
        | "duologue.session.v1.CompactionFailed" => Some(capability::COMPACTION),
        "duologue.session.v1.BudgetNearlySpent" | "duologue.session.v1.UsageTotals" => {
            Some(capability::USAGE)
        }
        "duologue.session.v1.StoreDegraded" => Some(capability::STORE),
        "duologue.session.v1.TurnDropped" => Some(capability::EDIT),
        "duologue.session.v1.TurnSummary" => Some(capability::TURN_SUMMARIES),
        "duologue.provider.v1.RetryScheduled"
        | "duologue.provider.v1.RetryStarted"
        | "duologue.provider.v1.AnswerTruncated" => Some(capability::RETRIES),
        "duologue.provider.v1.CallTiming" => Some(capability::TIMING),
        "duologue.provider.v1.ModelSwitched" => Some(capability::SWITCH_MODEL),
        _ if full_name.starts_with(CLIENT_TOOLS_PACKAGE) => Some(capability::CLIENT_TOOLS),
        _ => full_name.strip_prefix(EXTENSIONS)?.split('.').next(),
    }
}

/// Roles that a payload can have, by the name of its message; empty if the contract fixes none.
pub(crate) fn roles(payload: &str) -> &'static [&'static str] {
    match payload {
        "ChatUserMessageAccepted" => &[role::USER],
        "ChatTextSegmentStarted" | "ChatTextPatch" | "ChatTextSegmentFinished" => {
            &[role::ASSISTANT]
        }
        "ChatReasoningSegmentStarted" | "ChatReasoningPatch" | "ChatReasoningSegmentFinished" => {
            &[role::THINKING]
        }
        "ChatMessageEntity" => role::ALL,
        _ => &[],
    }
}

/// Statuses that a payload can have, as for [`roles`].
pub(crate) fn statuses(payload: &str) -> &'static [&'static str] {
    match payload {
        "ChatUserMessageAccepted" => &[message::ACCEPTED],
        "ChatTextSegmentStarted"
        | "ChatTextPatch"
        | "ChatReasoningSegmentStarted"
        | "ChatReasoningPatch" => &[message::STREAMING],
        "ChatTextSegmentFinished" | "ChatReasoningSegmentFinished" => ending::ALL,
        "ChatMessageEntity" => message::ALL,
        "ChatToolCallStarted"
        | "ChatToolArgumentsPatch"
        | "ChatToolCallRequested"
        | "ChatToolExecutionStarted"
        | "ChatToolCallFinished"
        | "ToolCallEntity" => tool_call::ALL,
        "FrontendToolCallRequested" => &[tool_call::PENDING],
        "ChatToolResultReady" | "ToolResultEntity" | "FrontendToolResultReceived" => {
            tool_result::ALL
        }
        "ChatRunFinished" => &[ending::FINISHED],
        "ChatRunStopped" => &[ending::STOPPED],
        "ChatRunFailed" => &[ending::FAILED],
        _ => &[],
    }
}

/// The `source` that a payload with reasoning can have, as for [`roles`].
pub(crate) fn sources(payload: &str) -> &'static [&'static str] {
    match payload {
        "ChatReasoningSegmentStarted" => &[SOURCE_AT_START],
        "ChatReasoningPatch" | "ChatReasoningSegmentFinished" => &[SOURCE],
        _ => &[],
    }
}

/// The `segmentType` of a message, by its role; empty for a message that is no segment.
pub(crate) fn segment_type(role: &str) -> &'static str {
    match role {
        role::ASSISTANT => SEGMENT_TEXT,
        role::THINKING => SEGMENT_REASONING,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::{code, command_code, kind, tool_call};
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// Adds to `found` every place in `folder` where one of `words` is written as a literal in code
    /// that is not a test.
    fn literals(folder: &Path, words: &[String], found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                if !path.ends_with("tests") {
                    literals(&path, words, found);
                }
                continue;
            }
            if path.extension().is_none_or(|end| end != "rs") || path.ends_with("tests.rs") {
                continue;
            }
            let text = fs::read_to_string(&path).expect("a text");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let hits = words.iter().filter(|word| code.contains(*word));
            found.extend(hits.map(|word| format!("{}: {word}", path.display())));
        }
    }

    /// The constants that mean nothing else anywhere in the program.
    #[test]
    fn a_constant_of_the_wire_is_written_once() {
        let lists = [code::ALL, kind::ALL, &[tool_call::STREAMING_ARGS]].concat();
        let words: Vec<_> = lists.iter().map(|word| format!("\"{word}\"")).collect();
        let mut found = Vec::new();
        literals(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &words, &mut found);
        found.retain(|hit| !hit.contains("protocol/constants.rs"));
        assert_eq!(found, [""; 0], "take the constant from protocol::constants");
    }

    #[test]
    fn the_table_of_errors_has_each_code() {
        let document = include_str!("../../docs/protocol.md");
        let (_, errors) = document.split_once("\n## Errors\n").expect("a section");
        let (errors, _) = errors.split_once("\n## ").expect("another section");
        let rows = errors.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
        let shown: BTreeSet<_> = rows.map(|(name, _)| name).collect();
        let all = code::ALL.iter().chain(command_code::ALL).copied();
        // Only other servers send it.
        assert_eq!(shown, all.filter(|name| *name != code::SNAPSHOT_FAILED).collect());
    }
}
