//! Words of the protocol, where the contract fixes them.

/// Codes of errors, as the contract lists them, and our own.
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
    // Ours: a command file asked for JSON, and the model gave something else.
    INVALID_ANSWER,
];

/// The code of an answer that is not what was asked for, though its run has finished.
pub(super) const INVALID_ANSWER: &str = "invalid_answer";

/// Classes of what went wrong in a run.
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

/// Roles that a payload can have, by the name of its message; none if the contract has none for it.
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

/// Words for why a provider call ended.
pub(super) const FINISH_CLASSES: [&str; 7] =
    ["completed", "max_tokens", "tool_calls", "content_filter", CANCELLED, "failed", "other"];

/// The class of a call that was cancelled.
pub(super) const CANCELLED: &str = "cancelled";

/// Where reasoning comes from, by the name of the message; as for [`roles`].
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
