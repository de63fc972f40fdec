//! Values of the protocol's string fields, where the contract fixes them.

/// Error codes of the contract, and our own.
pub(crate) const CODES: [&str; 17] = [
    "invalid_request_json",
    "line_too_long",
    "unsupported_version",
    "unknown_request",
    "session_mismatch",
    "session_busy",
    "empty_prompt",
    "no_active_request",
    "shutting_down",
    "engine_init_failed",
    "run_failed",
    "store_failed",
    "snapshot_failed",
    "stdin_read_failed",
    "interrupted",
    "internal",
    // Ours: a command file requires JSON, and the answer is something else.
    INVALID_ANSWER,
];

/// The code of an answer without the required JSON, though its run has finished.
pub(super) const INVALID_ANSWER: &str = "invalid_answer";

/// Error classes of a run.
pub(super) const CLASSES: [&str; 11] = [
    "auth",
    "rate_limited",
    "context_overflow",
    "timeout",
    "network",
    "provider",
    "malformed_stream",
    "tool",
    "config",
    "aborted",
    "internal",
];

/// Statuses of a `done`.
pub(crate) const DONE_STATUSES: [&str; 4] = ["ok", "stopped", "failed", "shutdown"];

/// Kinds of entities.
pub(crate) const MESSAGE: &str = "ChatMessage";
pub(crate) const TOOL_CALL: &str = "ChatToolCall";
pub(crate) const TOOL_RESULT: &str = "ChatToolResult";

/// Roles that a payload can have, by the name of its message; empty if the contract fixes none.
pub(crate) fn roles(payload: &str) -> &'static [&'static str] {
    match payload {
        "ChatUserMessageAccepted" => &["user"],
        "ChatTextSegmentStarted" | "ChatTextPatch" | "ChatTextSegmentFinished" => &["assistant"],
        "ChatReasoningSegmentStarted" | "ChatReasoningPatch" | "ChatReasoningSegmentFinished" => {
            &["thinking"]
        }
        "ChatMessageEntity" => &["user", "assistant", "thinking", "warning", "error"],
        _ => &[],
    }
}

/// Statuses that a payload can have, as for [`roles`].
pub(crate) fn statuses(payload: &str) -> &'static [&'static str] {
    match payload {
        "ChatUserMessageAccepted" => &["accepted"],
        "ChatTextSegmentStarted"
        | "ChatTextPatch"
        | "ChatReasoningSegmentStarted"
        | "ChatReasoningPatch" => &["streaming"],
        "ChatTextSegmentFinished" | "ChatReasoningSegmentFinished" => {
            &["finished", "stopped", "failed"]
        }
        "ChatMessageEntity" => &["accepted", "streaming", "finished", "stopped", "failed"],
        "ChatToolCallStarted"
        | "ChatToolArgumentsPatch"
        | "ChatToolCallRequested"
        | "ChatToolExecutionStarted"
        | "ChatToolCallFinished"
        | "ToolCallEntity" => &["pending", "streaming_args", "executing", "completed"],
        "ChatToolResultReady" | "ToolResultEntity" => &["success", "error"],
        "ChatRunFinished" => &["finished"],
        "ChatRunStopped" => &["stopped"],
        "ChatRunFailed" => &["failed"],
        _ => &[],
    }
}

/// Finish classes of a provider call.
pub(super) const FINISH_CLASSES: [&str; 7] =
    ["completed", "max_tokens", "tool_calls", "content_filter", CANCELLED, "failed", "other"];

/// The class of a cancelled call.
pub(super) const CANCELLED: &str = "cancelled";

/// Sources of reasoning, by the name of the message; as for [`roles`].
pub(super) fn sources(payload: &str) -> &'static [&'static str] {
    match payload {
        "ChatReasoningSegmentStarted" => &["provider"],
        "ChatReasoningPatch" | "ChatReasoningSegmentFinished" => &["thinking"],
        _ => &[],
    }
}

/// The `segmentType` of a message that is a segment, by its role.
pub(super) fn segment_type(role: &str) -> &'static str {
    match role {
        "assistant" => "text",
        "thinking" => "reasoning",
        _ => "",
    }
}
