"""The messages of the protocol, made from `proto/` by `clients/generate`: do not edit.

A message is a view of its JSON: `raw` has it all, also fields that are newer than this file.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from ._message import Message, Unknown, payload_of


class StreamPatchMode(str, Enum):
    """How a patch is to be applied."""

    CHAT_STREAM_PATCH_MODE_UNSPECIFIED = "CHAT_STREAM_PATCH_MODE_UNSPECIFIED"
    CHAT_STREAM_PATCH_MODE_APPEND = "CHAT_STREAM_PATCH_MODE_APPEND"
    CHAT_STREAM_PATCH_MODE_SNAPSHOT = "CHAT_STREAM_PATCH_MODE_SNAPSHOT"
    CHAT_STREAM_PATCH_MODE_REPLACE = "CHAT_STREAM_PATCH_MODE_REPLACE"


class WaitingFor(str, Enum):
    """What a run waits for."""

    WAITING_FOR_UNSPECIFIED = "WAITING_FOR_UNSPECIFIED"
    PROVIDER_CONNECTING = "PROVIDER_CONNECTING"
    PROVIDER_SILENT = "PROVIDER_SILENT"
    TOOL = "TOOL"
    APPROVAL = "APPROVAL"
    RETRY = "RETRY"
    STORE = "STORE"
    CLIENT_TOOL = "CLIENT_TOOL"
    TOOL_SERVERS = "TOOL_SERVERS"


class CompactionCause(str, Enum):
    """Why the conversation is compacted."""

    COMPACTION_CAUSE_UNSPECIFIED = "COMPACTION_CAUSE_UNSPECIFIED"
    LIMIT = "LIMIT"
    OVERFLOW = "OVERFLOW"
    REQUEST = "REQUEST"


class ApprovalDecision(str, Enum):
    """What the client decides about a tool call that waits for approval."""

    APPROVAL_DECISION_UNSPECIFIED = "APPROVAL_DECISION_UNSPECIFIED"
    ALLOW_ONCE = "ALLOW_ONCE"
    ALLOW_SESSION = "ALLOW_SESSION"
    DENY = "DENY"


class ToolServerState(str, Enum):
    """State of a tool server."""

    TOOL_SERVER_STATE_UNSPECIFIED = "TOOL_SERVER_STATE_UNSPECIFIED"
    STARTING = "STARTING"
    READY = "READY"
    UNAVAILABLE = "UNAVAILABLE"
    GONE = "GONE"


class ToolExecutionMode(str, Enum):
    """Who runs a tool."""

    TOOL_EXECUTION_MODE_UNSPECIFIED = "TOOL_EXECUTION_MODE_UNSPECIFIED"
    TOOL_EXECUTION_MODE_FRONTEND_AUTO = "TOOL_EXECUTION_MODE_FRONTEND_AUTO"
    TOOL_EXECUTION_MODE_FRONTEND_HUMAN = "TOOL_EXECUTION_MODE_FRONTEND_HUMAN"
    TOOL_EXECUTION_MODE_BACKEND = "TOOL_EXECUTION_MODE_BACKEND"


class Attachment(Message):
    """Something sent along with a prompt."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatAttachment"

    @property
    def attachment_id(self) -> str:
        """Id of the attachment, unique within its message."""
        return self.raw.get("attachmentId", "")

    @property
    def kind(self) -> str:
        """What it is: "image", "file" and so on."""
        return self.raw.get("kind", "")

    @property
    def media_type(self) -> str:
        """IANA media type, for example "image/png"."""
        return self.raw.get("mediaType", "")

    @property
    def url(self) -> str:
        """Where the content can be fetched from."""
        return self.raw.get("url", "")

    @property
    def size_bytes(self) -> int:
        """Size of the content in bytes."""
        return int(self.raw.get("sizeBytes", 0))

    @property
    def width(self) -> int:
        """Width in pixels, for pictures."""
        return int(self.raw.get("width", 0))

    @property
    def height(self) -> int:
        """Height in pixels, for pictures."""
        return int(self.raw.get("height", 0))

    @property
    def filename(self) -> str:
        """Name to show to a person."""
        return self.raw.get("filename", "")

    @property
    def detail(self) -> str:
        """Level of detail the model should look at it with, for example "low" or "high"."""
        return self.raw.get("detail", "")

    @property
    def metadata(self) -> dict[str, str]:
        """Anything else its producer wants to keep with it."""
        return dict(self.raw.get("metadata", {}))


class UsageInfo(Message):
    """Tokens of one provider call."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.UsageInfo"

    @property
    def input_tokens(self) -> int:
        """Tokens of the request, as the provider counts them."""
        return int(self.raw.get("inputTokens", 0))

    @property
    def output_tokens(self) -> int:
        """Tokens of the answer, as the provider counts them."""
        return int(self.raw.get("outputTokens", 0))

    @property
    def cached_tokens(self) -> int:
        """Input tokens that a provider cache answered."""
        return int(self.raw.get("cachedTokens", 0))

    @property
    def cache_creation_input_tokens(self) -> int:
        """Input tokens written to a provider cache."""
        return int(self.raw.get("cacheCreationInputTokens", 0))

    @property
    def cache_read_input_tokens(self) -> int:
        """Input tokens read from a provider cache."""
        return int(self.raw.get("cacheReadInputTokens", 0))


class CorrelationInfo(Message):
    """Ids an event belongs to; unset ones do not apply."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.CorrelationInfo"

    @property
    def session_id(self) -> str:
        """Session the event belongs to."""
        return self.raw.get("sessionId", "")

    @property
    def run_id(self) -> str:
        """Run (one submit, from accepted to its end) the event belongs to."""
        return self.raw.get("runId", "")

    @property
    def turn_id(self) -> str:
        """Turn of the conversation the run produces."""
        return self.raw.get("turnId", "")

    @property
    def provider_call_id(self) -> str:
        """Call to the model provider, one or more in a run."""
        return self.raw.get("providerCallId", "")

    @property
    def segment_id(self) -> str:
        """Stretch of text or reasoning within the run, for example "segment-1"."""
        return self.raw.get("segmentId", "")

    @property
    def tool_call_id(self) -> str:
        """Tool call the event is about."""
        return self.raw.get("toolCallId", "")


class RunStarted(Message):
    """A run began."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatRunStarted"

    @property
    def message_id(self) -> str:
        """Root message id of the run, `chat-msg-<uuid>`."""
        return self.raw.get("messageId", "")

    @property
    def prompt(self) -> str:
        """The prompt that started the run."""
        return self.raw.get("prompt", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class RunFinished(Message):
    """A run ended by itself."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatRunFinished"

    @property
    def message_id(self) -> str:
        """Root message id of the run, `chat-msg-<uuid>`."""
        return self.raw.get("messageId", "")

    @property
    def status(self) -> str:
        """"finished"."""
        return self.raw.get("status", "")

    @property
    def error(self) -> str:
        """That the answer was cut off, and why, for people; else empty."""
        return self.raw.get("error", "")

    @property
    def duration_ms(self) -> int | None:
        """How long it took, in milliseconds."""
        return self._optional_int(self.raw.get("durationMs"))

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class RunStopped(Message):
    """A run was stopped by a cancel, a signal or a vanished reader."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatRunStopped"

    @property
    def message_id(self) -> str:
        """Root message id of the run, `chat-msg-<uuid>`."""
        return self.raw.get("messageId", "")

    @property
    def status(self) -> str:
        """"stopped"."""
        return self.raw.get("status", "")

    @property
    def error(self) -> str:
        """Why the run was stopped, for people."""
        return self.raw.get("error", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class RunFailed(Message):
    """A run failed."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatRunFailed"

    @property
    def message_id(self) -> str:
        """Root message id of the run, `chat-msg-<uuid>`."""
        return self.raw.get("messageId", "")

    @property
    def status(self) -> str:
        """"failed"."""
        return self.raw.get("status", "")

    @property
    def error(self) -> str:
        """Why the run failed, for people."""
        return self.raw.get("error", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ProviderCallStarted(Message):
    """A call to the model provider began."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatProviderCallStarted"

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ProviderCallMetadataUpdated(Message):
    """The provider reported its token counts or why it stopped."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatProviderCallMetadataUpdated"

    @property
    def stop_reason(self) -> str:
        """Why the model stopped, in the provider's own words, for example "stop" or "length"."""
        return self.raw.get("stopReason", "")

    @property
    def usage(self) -> UsageInfo | None:
        """Tokens counted by the provider, if it reported them."""
        return self._message(UsageInfo, self.raw.get("usage"))

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ProviderCallFinished(Message):
    """A call to the model provider ended."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatProviderCallFinished"

    @property
    def stop_reason(self) -> str:
        """Why the model stopped, in the provider's own words, for example "stop" or "length"."""
        return self.raw.get("stopReason", "")

    @property
    def finish_class(self) -> str:
        """The same in words that do not depend on the provider: "completed", "max_tokens", "tool_calls",
        "content_filter", "cancelled", "failed" or "other".
        """
        return self.raw.get("finishClass", "")

    @property
    def usage(self) -> UsageInfo | None:
        """Tokens counted by the provider, if it reported them."""
        return self._message(UsageInfo, self.raw.get("usage"))

    @property
    def duration_ms(self) -> int | None:
        """How long it took, in milliseconds."""
        return self._optional_int(self.raw.get("durationMs"))

    @property
    def has_tool_calls(self) -> bool:
        """The answer contains at least one tool call."""
        return self.raw.get("hasToolCalls", False)

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class TextSegmentStarted(Message):
    """A stretch of answer text began."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatTextSegmentStarted"

    @property
    def message_id(self) -> str:
        """Id of the segment: the root message id followed by `:text:<segment>`."""
        return self.raw.get("messageId", "")

    @property
    def role(self) -> str:
        """"assistant"."""
        return self.raw.get("role", "")

    @property
    def prompt(self) -> str:
        """The prompt that started the run. A run of many segments leaves a long prompt out after the first."""
        return self.raw.get("prompt", "")

    @property
    def status(self) -> str:
        """"streaming"."""
        return self.raw.get("status", "")

    @property
    def streaming(self) -> bool:
        """More text may follow."""
        return self.raw.get("streaming", False)

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class TextPatch(Message):
    """Answer text to add to, or to put in place of, what the reader has."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatTextPatch"

    @property
    def message_id(self) -> str:
        """Id of the segment: the root message id followed by `:text:<segment>`."""
        return self.raw.get("messageId", "")

    @property
    def role(self) -> str:
        """"assistant"."""
        return self.raw.get("role", "")

    @property
    def stream_id(self) -> str:
        """Stream of patches this one belongs to; equals message_id for segments and tool_call_id for
        arguments.
        """
        return self.raw.get("streamId", "")

    @property
    def sequence(self) -> int:
        """Provider deltas so far in this segment, from 1; a patch that merges several carries the last
        one's number.
        """
        return int(self.raw.get("sequence", 0))

    @property
    def offset(self) -> int:
        """Where the text begins, in UTF-8 bytes from the start of the segment; a patch that merges
        several carries the first one's.
        """
        return int(self.raw.get("offset", 0))

    @property
    def text(self) -> str:
        """New text (APPEND) or all text so far (SNAPSHOT, REPLACE)."""
        return self.raw.get("text", "")

    @property
    def mode(self) -> StreamPatchMode | str:
        """How text is to be applied to what the reader already has."""
        return self._enum(StreamPatchMode, self.raw.get("mode"))

    @property
    def status(self) -> str:
        """"streaming"."""
        return self.raw.get("status", "")

    @property
    def final(self) -> bool:
        """Nothing follows in this stream."""
        return self.raw.get("final", False)

    @property
    def finish_reason(self) -> str:
        """Why the model stopped, in the provider's own words, when known."""
        return self.raw.get("finishReason", "")

    @property
    def prompt(self) -> str:
        """The prompt that started the run; left empty where another event of the run already carries it."""
        return self.raw.get("prompt", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class TextDelta(Message):
    """A bare piece of answer text; older producers write it, duologue writes ChatTextPatch."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatTextDelta"

    @property
    def message_id(self) -> str:
        """Id of the segment: the root message id followed by `:text:<segment>`."""
        return self.raw.get("messageId", "")

    @property
    def text(self) -> str:
        """New text (APPEND) or all text so far (SNAPSHOT, REPLACE)."""
        return self.raw.get("text", "")

    @property
    def mode(self) -> StreamPatchMode | str:
        """How text is to be applied to what the reader already has."""
        return self._enum(StreamPatchMode, self.raw.get("mode"))

    @property
    def final(self) -> bool:
        """Nothing follows in this stream."""
        return self.raw.get("final", False)


class TextSegmentFinished(Message):
    """A stretch of answer text ended; carries it whole."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatTextSegmentFinished"

    @property
    def message_id(self) -> str:
        """Id of the segment: the root message id followed by `:text:<segment>`."""
        return self.raw.get("messageId", "")

    @property
    def role(self) -> str:
        """"assistant"."""
        return self.raw.get("role", "")

    @property
    def prompt(self) -> str:
        """The prompt that started the run. A run of many segments leaves a long prompt out after the first."""
        return self.raw.get("prompt", "")

    @property
    def text(self) -> str:
        """The whole text."""
        return self.raw.get("text", "")

    @property
    def content(self) -> str:
        """Same as text."""
        return self.raw.get("content", "")

    @property
    def status(self) -> str:
        """"finished", "stopped" or "failed"."""
        return self.raw.get("status", "")

    @property
    def streaming(self) -> bool:
        """Always false: nothing more comes."""
        return self.raw.get("streaming", False)

    @property
    def final(self) -> bool:
        """Always true: the text is whole."""
        return self.raw.get("final", False)

    @property
    def finish_reason(self) -> str:
        """Why the model stopped, in the provider's own words, when known."""
        return self.raw.get("finishReason", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ReasoningDelta(Message):
    """A bare piece of reasoning; older producers write it, duologue writes ChatReasoningPatch."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatReasoningDelta"

    @property
    def message_id(self) -> str:
        """Id of the segment: the root message id followed by `:thinking:<segment>`."""
        return self.raw.get("messageId", "")

    @property
    def parent_message_id(self) -> str:
        """Root message id of the run it belongs to."""
        return self.raw.get("parentMessageId", "")

    @property
    def text(self) -> str:
        """New text (APPEND) or all text so far (SNAPSHOT, REPLACE)."""
        return self.raw.get("text", "")

    @property
    def mode(self) -> StreamPatchMode | str:
        """How text is to be applied to what the reader already has."""
        return self._enum(StreamPatchMode, self.raw.get("mode"))

    @property
    def final(self) -> bool:
        """Nothing follows in this stream."""
        return self.raw.get("final", False)


class ReasoningSegmentStarted(Message):
    """A stretch of reasoning began."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatReasoningSegmentStarted"

    @property
    def message_id(self) -> str:
        """Id of the segment: the root message id followed by `:thinking:<segment>`."""
        return self.raw.get("messageId", "")

    @property
    def parent_message_id(self) -> str:
        """Root message id of the run it belongs to."""
        return self.raw.get("parentMessageId", "")

    @property
    def role(self) -> str:
        """"thinking"."""
        return self.raw.get("role", "")

    @property
    def status(self) -> str:
        """"streaming"."""
        return self.raw.get("status", "")

    @property
    def streaming(self) -> bool:
        """More text may follow."""
        return self.raw.get("streaming", False)

    @property
    def source(self) -> str:
        """Where the reasoning comes from: "provider"."""
        return self.raw.get("source", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ReasoningPatch(Message):
    """Reasoning to add to, or to put in place of, what the reader has."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatReasoningPatch"

    @property
    def message_id(self) -> str:
        """Id of the segment: the root message id followed by `:thinking:<segment>`."""
        return self.raw.get("messageId", "")

    @property
    def parent_message_id(self) -> str:
        """Root message id of the run it belongs to."""
        return self.raw.get("parentMessageId", "")

    @property
    def role(self) -> str:
        """"thinking"."""
        return self.raw.get("role", "")

    @property
    def stream_id(self) -> str:
        """Stream of patches this one belongs to; equals message_id for segments and tool_call_id for
        arguments.
        """
        return self.raw.get("streamId", "")

    @property
    def sequence(self) -> int:
        """Provider deltas so far in this segment, from 1; a patch that merges several carries the last
        one's number.
        """
        return int(self.raw.get("sequence", 0))

    @property
    def offset(self) -> int:
        """Where the text begins, in UTF-8 bytes from the start of the segment; a patch that merges
        several carries the first one's.
        """
        return int(self.raw.get("offset", 0))

    @property
    def text(self) -> str:
        """New text (APPEND) or all text so far (SNAPSHOT, REPLACE)."""
        return self.raw.get("text", "")

    @property
    def mode(self) -> StreamPatchMode | str:
        """How text is to be applied to what the reader already has."""
        return self._enum(StreamPatchMode, self.raw.get("mode"))

    @property
    def status(self) -> str:
        """"streaming"."""
        return self.raw.get("status", "")

    @property
    def final(self) -> bool:
        """Nothing follows in this stream."""
        return self.raw.get("final", False)

    @property
    def source(self) -> str:
        """"thinking"."""
        return self.raw.get("source", "")

    @property
    def finish_reason(self) -> str:
        """Why the model stopped, in the provider's own words, when known."""
        return self.raw.get("finishReason", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ReasoningSegmentFinished(Message):
    """A stretch of reasoning ended; carries it whole."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatReasoningSegmentFinished"

    @property
    def message_id(self) -> str:
        """Id of the segment: the root message id followed by `:thinking:<segment>`."""
        return self.raw.get("messageId", "")

    @property
    def parent_message_id(self) -> str:
        """Root message id of the run it belongs to."""
        return self.raw.get("parentMessageId", "")

    @property
    def role(self) -> str:
        """"thinking"."""
        return self.raw.get("role", "")

    @property
    def text(self) -> str:
        """The whole text."""
        return self.raw.get("text", "")

    @property
    def content(self) -> str:
        """Same as text."""
        return self.raw.get("content", "")

    @property
    def status(self) -> str:
        """"finished", "stopped" or "failed"."""
        return self.raw.get("status", "")

    @property
    def streaming(self) -> bool:
        """Always false: nothing more comes."""
        return self.raw.get("streaming", False)

    @property
    def source(self) -> str:
        """"thinking"."""
        return self.raw.get("source", "")

    @property
    def finish_reason(self) -> str:
        """Why the model stopped, in the provider's own words, when known."""
        return self.raw.get("finishReason", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ToolCallStarted(Message):
    """The model began to name a tool call."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatToolCallStarted"

    @property
    def message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("messageId", "")

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call, as the model gave it."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool."""
        return self.raw.get("toolName", "")

    @property
    def input(self) -> str:
        """Arguments of the call, as JSON text; may be incomplete until the call is requested."""
        return self.raw.get("input", "")

    @property
    def executing(self) -> bool:
        """The tool is running."""
        return self.raw.get("executing", False)

    @property
    def status(self) -> str:
        """"pending"."""
        return self.raw.get("status", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ToolArgumentsDelta(Message):
    """A bare piece of arguments; older producers write it, duologue writes ChatToolArgumentsPatch."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatToolArgumentsDelta"

    @property
    def message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("messageId", "")

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call, as the model gave it."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool."""
        return self.raw.get("toolName", "")

    @property
    def arguments(self) -> str:
        """New argument text (APPEND) or all of it so far (SNAPSHOT, REPLACE)."""
        return self.raw.get("arguments", "")

    @property
    def mode(self) -> StreamPatchMode | str:
        """How text is to be applied to what the reader already has."""
        return self._enum(StreamPatchMode, self.raw.get("mode"))

    @property
    def final(self) -> bool:
        """Nothing follows in this stream."""
        return self.raw.get("final", False)


class ToolArgumentsPatch(Message):
    """Arguments of a tool call as the model writes them."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatToolArgumentsPatch"

    @property
    def message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("messageId", "")

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call, as the model gave it."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool."""
        return self.raw.get("toolName", "")

    @property
    def stream_id(self) -> str:
        """Stream of patches this one belongs to; equals message_id for segments and tool_call_id for
        arguments.
        """
        return self.raw.get("streamId", "")

    @property
    def sequence(self) -> int:
        """Provider deltas so far in this segment, from 1; a patch that merges several carries the last
        one's number.
        """
        return int(self.raw.get("sequence", 0))

    @property
    def offset(self) -> int:
        """Where the text begins, in UTF-8 bytes from the start of the segment; a patch that merges
        several carries the first one's.
        """
        return int(self.raw.get("offset", 0))

    @property
    def arguments(self) -> str:
        """New argument text (APPEND) or all of it so far (SNAPSHOT, REPLACE)."""
        return self.raw.get("arguments", "")

    @property
    def mode(self) -> StreamPatchMode | str:
        """How text is to be applied to what the reader already has."""
        return self._enum(StreamPatchMode, self.raw.get("mode"))

    @property
    def status(self) -> str:
        """"streaming_args"."""
        return self.raw.get("status", "")

    @property
    def final(self) -> bool:
        """Nothing follows in this stream."""
        return self.raw.get("final", False)

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ToolCallRequested(Message):
    """The arguments of a tool call are whole."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatToolCallRequested"

    @property
    def message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("messageId", "")

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call, as the model gave it."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool."""
        return self.raw.get("toolName", "")

    @property
    def input(self) -> str:
        """Arguments of the call, as JSON text; may be incomplete until the call is requested."""
        return self.raw.get("input", "")

    @property
    def executing(self) -> bool:
        """The tool is running."""
        return self.raw.get("executing", False)

    @property
    def status(self) -> str:
        """"pending"."""
        return self.raw.get("status", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ToolExecutionStarted(Message):
    """The tool began to run."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatToolExecutionStarted"

    @property
    def message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("messageId", "")

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call, as the model gave it."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool."""
        return self.raw.get("toolName", "")

    @property
    def input(self) -> str:
        """Arguments of the call, as JSON text; may be incomplete until the call is requested."""
        return self.raw.get("input", "")

    @property
    def executing(self) -> bool:
        """The tool is running."""
        return self.raw.get("executing", False)

    @property
    def status(self) -> str:
        """"executing"."""
        return self.raw.get("status", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ToolResultReady(Message):
    """The tool returned."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatToolResultReady"

    @property
    def message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("messageId", "")

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call, as the model gave it."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool."""
        return self.raw.get("toolName", "")

    @property
    def result(self) -> str:
        """What the tool returned, as text."""
        return self.raw.get("result", "")

    @property
    def status(self) -> str:
        """"success" or "error"."""
        return self.raw.get("status", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ToolCallFinished(Message):
    """Nothing more comes of the tool call."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatToolCallFinished"

    @property
    def message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("messageId", "")

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call, as the model gave it."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool."""
        return self.raw.get("toolName", "")

    @property
    def status(self) -> str:
        """"completed"."""
        return self.raw.get("status", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class UserMessageAccepted(Message):
    """A prompt was taken into the conversation."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatUserMessageAccepted"

    @property
    def message_id(self) -> str:
        """Id of the user message: the root message id followed by "-user"."""
        return self.raw.get("messageId", "")

    @property
    def role(self) -> str:
        """"user"."""
        return self.raw.get("role", "")

    @property
    def prompt(self) -> str:
        """The prompt as submitted."""
        return self.raw.get("prompt", "")

    @property
    def text(self) -> str:
        """Same as prompt."""
        return self.raw.get("text", "")

    @property
    def content(self) -> str:
        """Same as text."""
        return self.raw.get("content", "")

    @property
    def status(self) -> str:
        """"accepted"."""
        return self.raw.get("status", "")

    @property
    def attachments(self) -> list[Attachment]:
        """What was sent along with the prompt."""
        return [Attachment(item) for item in self.raw.get("attachments", ())]


class MessageEntity(Message):
    """A message of the timeline."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ChatMessageEntity"

    @property
    def message_id(self) -> str:
        """Id of the message; equals the id of its snapshot entity."""
        return self.raw.get("messageId", "")

    @property
    def role(self) -> str:
        """"user", "assistant", "thinking", "warning" or "error"."""
        return self.raw.get("role", "")

    @property
    def prompt(self) -> str:
        """The prompt: of the user's message, and of the answers to it. As in ChatTextSegmentFinished."""
        return self.raw.get("prompt", "")

    @property
    def text(self) -> str:
        """The whole text."""
        return self.raw.get("text", "")

    @property
    def content(self) -> str:
        """Same as text."""
        return self.raw.get("content", "")

    @property
    def status(self) -> str:
        """"accepted", "streaming", "finished", "stopped" or "failed"."""
        return self.raw.get("status", "")

    @property
    def streaming(self) -> bool:
        """More text may follow."""
        return self.raw.get("streaming", False)

    @property
    def error(self) -> str:
        """Why it failed, was stopped or was cut off; empty otherwise."""
        return self.raw.get("error", "")

    @property
    def parent_message_id(self) -> str:
        """Root message id of the run it belongs to; empty for prompts, and for errors, whose id is the root."""
        return self.raw.get("parentMessageId", "")

    @property
    def segment(self) -> int:
        """Number of the segment within its run, from 1; 0 for messages that are not segments."""
        return int(self.raw.get("segment", 0))

    @property
    def segment_type(self) -> str:
        """"text" or "reasoning"; empty for messages that are not segments."""
        return self.raw.get("segmentType", "")

    @property
    def final(self) -> bool:
        """The text will not change any more."""
        return self.raw.get("final", False)

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))

    @property
    def attachments(self) -> list[Attachment]:
        """What was sent along with the prompt."""
        return [Attachment(item) for item in self.raw.get("attachments", ())]


class ToolCallEntity(Message):
    """A tool call of the timeline."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ToolCallEntity"

    @property
    def message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("messageId", "")

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call, as the model gave it."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool."""
        return self.raw.get("toolName", "")

    @property
    def input(self) -> str:
        """Arguments of the call, as JSON text; may be incomplete until the call is requested."""
        return self.raw.get("input", "")

    @property
    def executing(self) -> bool:
        """The tool is running."""
        return self.raw.get("executing", False)

    @property
    def status(self) -> str:
        """"pending", "streaming_args", "executing" or "completed"."""
        return self.raw.get("status", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ToolResultEntity(Message):
    """A tool result of the timeline; its id is the tool call id followed by ":result"."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.v1.ToolResultEntity"

    @property
    def message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("messageId", "")

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call, as the model gave it."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool."""
        return self.raw.get("toolName", "")

    @property
    def result(self) -> str:
        """What the tool returned, as text."""
        return self.raw.get("result", "")

    @property
    def status(self) -> str:
        """"success" or "error"."""
        return self.raw.get("status", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call, segment and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ObjectExtracted(Message):
    """A value of the answer that is whole and fits the schema."""

    __slots__ = ()
    TYPE = "duologue.extract.v1.ObjectExtracted"

    @property
    def message_id(self) -> str:
        """Root message id of the run, `chat-msg-<uuid>`."""
        return self.raw.get("messageId", "")

    @property
    def index(self) -> int:
        """Number of the value in the answer, from 0."""
        return int(self.raw.get("index", 0))

    @property
    def line(self) -> int:
        """Line of the answer the value begins on, from 1."""
        return int(self.raw.get("line", 0))

    @property
    def type(self) -> str:
        """The value's own member "type", if it is an object that has a string there; else empty."""
        return self.raw.get("type", "")

    @property
    def object(self) -> Any:
        """The value. Its numbers are doubles: whole numbers above 2^53 lose digits here, and the order of
        members is lost; json keeps both. Unset if arrays and objects are more than 30 deep, because
        readers of protobuf have limits of their own.
        """
        return self.raw.get("object")

    @property
    def json(self) -> str:
        """The value's JSON text as the model wrote it; if it had several lines, with no white space
        between its tokens.
        """
        return self.raw.get("json", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call and segment."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class LineRejected(Message):
    """A line of the answer that is not a valid value. Other lines are not affected."""

    __slots__ = ()
    TYPE = "duologue.extract.v1.LineRejected"

    @property
    def message_id(self) -> str:
        """Root message id of the run, `chat-msg-<uuid>`."""
        return self.raw.get("messageId", "")

    @property
    def line(self) -> int:
        """Which line of the answer, from 1."""
        return int(self.raw.get("line", 0))

    @property
    def reason(self) -> str:
        """What is wrong with it, for people."""
        return self.raw.get("reason", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call and segment."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ExtractionFinished(Message):
    """The answer is over, and nothing more is found in it."""

    __slots__ = ()
    TYPE = "duologue.extract.v1.ExtractionFinished"

    @property
    def message_id(self) -> str:
        """Root message id of the run, `chat-msg-<uuid>`."""
        return self.raw.get("messageId", "")

    @property
    def objects(self) -> int:
        """How many values were found."""
        return int(self.raw.get("objects", 0))

    @property
    def rejected(self) -> int:
        """How many lines were rejected."""
        return int(self.raw.get("rejected", 0))

    @property
    def truncated(self) -> bool:
        """The answer was cut off, by a token limit, a stop or a failure: there may have been more."""
        return self.raw.get("truncated", False)

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call and segment."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class AnswerRejected(Message):
    """The answer does not match its schema, and the model is asked for another one in the same run. What was
    found in the rejected answer does not count.
    """

    __slots__ = ()
    TYPE = "duologue.extract.v1.AnswerRejected"

    @property
    def message_id(self) -> str:
        """Root message id of the run, `chat-msg-<uuid>`."""
        return self.raw.get("messageId", "")

    @property
    def reason(self) -> str:
        """What is wrong with the answer, for people."""
        return self.raw.get("reason", "")

    @property
    def repair(self) -> int:
        """Number of the repair in its run, from 1."""
        return int(self.raw.get("repair", 0))

    @property
    def repairs_max(self) -> int:
        """How many repairs there are at most."""
        return int(self.raw.get("repairsMax", 0))

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn and provider call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class RetryScheduled(Message):
    """A request to the provider failed, before any part of its answer was shown, and will be sent again
    (extension `retries`).
    """

    __slots__ = ()
    TYPE = "duologue.provider.v1.RetryScheduled"

    @property
    def attempt(self) -> int:
        """Number of the attempt that follows, from 2."""
        return int(self.raw.get("attempt", 0))

    @property
    def attempts_max(self) -> int:
        """How many attempts there are at most."""
        return int(self.raw.get("attemptsMax", 0))

    @property
    def wait_ms(self) -> int:
        """Milliseconds until then."""
        return int(self.raw.get("waitMs", 0))

    @property
    def error_class(self) -> str:
        """Class of the error, as in the detail of an error frame."""
        return self.raw.get("errorClass", "")

    @property
    def reason(self) -> str:
        """What happened, for people."""
        return self.raw.get("reason", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn and provider call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class RetryStarted(Message):
    """The request is sent again (extension `retries`)."""

    __slots__ = ()
    TYPE = "duologue.provider.v1.RetryStarted"

    @property
    def attempt(self) -> int:
        """Number of the attempt, from 2."""
        return int(self.raw.get("attempt", 0))

    @property
    def attempts_max(self) -> int:
        """How many attempts there are at most."""
        return int(self.raw.get("attemptsMax", 0))

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn and provider call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class AnswerTruncated(Message):
    """The answer of a provider call was cut off: by a token limit, or by the provider's filter (extension
    `retries`). Follows the end of the call.
    """

    __slots__ = ()
    TYPE = "duologue.provider.v1.AnswerTruncated"

    @property
    def message_id(self) -> str:
        """Message id of the run."""
        return self.raw.get("messageId", "")

    @property
    def stop_reason(self) -> str:
        """Why, in the provider's word."""
        return self.raw.get("stopReason", "")

    @property
    def finish_class(self) -> str:
        """The class of the reason: `max_tokens` or `content_filter`."""
        return self.raw.get("finishClass", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn and provider call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class CallTiming(Message):
    """How soon a provider call was answered (extension `timing`). Follows the end of the call. Times are
    counted from the request; of a request that was sent again, from the last time.
    """

    __slots__ = ()
    TYPE = "duologue.provider.v1.CallTiming"

    @property
    def first_byte_ms(self) -> int | None:
        """Milliseconds to the first byte of a successful response, which is its head. Absent if there was
        none, and for the built-in engine, which asks no provider.
        """
        return self._optional_int(self.raw.get("firstByteMs"))

    @property
    def first_token_ms(self) -> int | None:
        """Milliseconds to the first piece of text, of reasoning or of a tool call. Absent if there was none."""
        return self._optional_int(self.raw.get("firstTokenMs"))

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn and provider call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ModelSwitched(Message):
    """Another model answers from the next submit on (extension `switch-model`)."""

    __slots__ = ()
    TYPE = "duologue.provider.v1.ModelSwitched"

    @property
    def profile(self) -> str:
        """The profile; empty if none was named."""
        return self.raw.get("profile", "")

    @property
    def engine(self) -> str:
        """The engine."""
        return self.raw.get("engine", "")

    @property
    def model(self) -> str:
        """The model."""
        return self.raw.get("model", "")

    @property
    def host(self) -> str:
        """The provider's host."""
        return self.raw.get("host", "")


class SteeringAccepted(Message):
    """A submit with `target_request_id` has joined the run that it named (extension `steer`). Its `done`
    follows. A submit that came too late has no such event; it is a turn of its own.
    """

    __slots__ = ()
    TYPE = "duologue.session.v1.SteeringAccepted"

    @property
    def message_id(self) -> str:
        """Message id of the prompt in the conversation."""
        return self.raw.get("messageId", "")

    @property
    def target_request_id(self) -> str:
        """Request whose run the prompt has joined."""
        return self.raw.get("targetRequestId", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn and provider call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class TurnDropped(Message):
    """The end of the conversation was dropped (extension `edit`): one or more turns, always the last ones.
    The model is not sent them any more, and snapshots don't have them.
    """

    __slots__ = ()
    TYPE = "duologue.session.v1.TurnDropped"

    @property
    def prompt_message_id(self) -> str:
        """Message id of the prompt of the first turn that was dropped; empty if only the model's side of
        the conversation is stored.
        """
        return self.raw.get("promptMessageId", "")

    @property
    def message_ids(self) -> list[str]:
        """Ids of all messages that are gone, oldest first."""
        return list(self.raw.get("messageIds", ()))

    @property
    def tool_call_ids(self) -> list[str]:
        """Ids of the tool calls that are gone, with their results."""
        return list(self.raw.get("toolCallIds", ()))

    @property
    def turn_ids(self) -> list[str]:
        """Ids of the turns, as correlations have them, oldest first."""
        return list(self.raw.get("turnIds", ()))


class UsageTotals(Message):
    """Token counts, as far as the providers have reported them (extension `usage`). Follows the end of each
    provider call, so the last one of a run has the counts of the whole run.
    """

    __slots__ = ()
    TYPE = "duologue.session.v1.UsageTotals"

    @property
    def call(self) -> TokenCounts | None:
        """The provider call that has ended."""
        return self._message(TokenCounts, self.raw.get("call"))

    @property
    def run(self) -> TokenCounts | None:
        """The run so far."""
        return self._message(TokenCounts, self.raw.get("run"))

    @property
    def session(self) -> TokenCounts | None:
        """The session so far."""
        return self._message(TokenCounts, self.raw.get("session"))

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn and provider call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class TokenCounts(Message):
    """Counts of tokens, and what they cost."""

    __slots__ = ()
    TYPE = "duologue.session.v1.TokenCounts"

    @property
    def provider_calls(self) -> int:
        """Provider calls whose tokens are counted. Those that a provider has refused are among them: they
        used none.
        """
        return int(self.raw.get("providerCalls", 0))

    @property
    def input_tokens(self) -> int:
        """Tokens of requests."""
        return int(self.raw.get("inputTokens", 0))

    @property
    def output_tokens(self) -> int:
        """Tokens of answers, those of reasoning included."""
        return int(self.raw.get("outputTokens", 0))

    @property
    def cached_tokens(self) -> int:
        """Tokens of requests that were read from the provider's cache."""
        return int(self.raw.get("cachedTokens", 0))

    @property
    def cache_creation_tokens(self) -> int:
        """Tokens of requests that were written to the provider's cache."""
        return int(self.raw.get("cacheCreationTokens", 0))

    @property
    def reasoning_tokens(self) -> int:
        """Tokens of answers that were used for reasoning, where the provider reports them."""
        return int(self.raw.get("reasoningTokens", 0))

    @property
    def cost(self) -> str:
        """The cost of the counted calls as a decimal number; empty if there are none, or if the price of one
        of them is not known. With `uncounted_calls`, the cost of all calls is at least this.
        """
        return self.raw.get("cost", "")

    @property
    def currency(self) -> str:
        """The currency of the cost, as the price list names it."""
        return self.raw.get("currency", "")

    @property
    def uncounted_calls(self) -> int:
        """Provider calls that ended without token counts, as those that are cancelled do. What they used is
        in none of these numbers.
        """
        return int(self.raw.get("uncountedCalls", 0))


class TurnSummary(Message):
    """What answered in a turn, when, and what it took: in the export of a stored conversation, with the ordinal of
    the last event of the turn.
    """

    __slots__ = ()
    TYPE = "duologue.session.v1.TurnSummary"

    @property
    def engine(self) -> str:
        """The engine."""
        return self.raw.get("engine", "")

    @property
    def model(self) -> str:
        """The model; empty if the engine has none."""
        return self.raw.get("model", "")

    @property
    def started_at(self) -> str:
        """When the turn began, in RFC 3339 and UTC, as "2026-01-31T09:30:00Z"; empty if it is not stored."""
        return self.raw.get("startedAt", "")

    @property
    def duration_ms(self) -> int | None:
        """How long it took in milliseconds; of a turn that was stopped or failed, how long its provider calls took."""
        return self._optional_int(self.raw.get("durationMs"))

    @property
    def usage(self) -> TokenCounts | None:
        """What its provider calls used."""
        return self._message(TokenCounts, self.raw.get("usage"))

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run and turn."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class StoreDegraded(Message):
    """From here on the conversation is not stored, or a part of it was lost (extension `store`)."""

    __slots__ = ()
    TYPE = "duologue.session.v1.StoreDegraded"

    @property
    def reason(self) -> str:
        """What happened, and what it means."""
        return self.raw.get("reason", "")

    @property
    def first_missing_ordinal(self) -> int:
        """Ordinal of the first event that is not stored; 0 if what was lost is not known."""
        return int(self.raw.get("firstMissingOrdinal", 0))


class Heartbeat(Message):
    """A sign of life of a run of which nothing else was written for a while (extension `heartbeats`). It has the
    ordinal of the event before it, and is not stored.
    """

    __slots__ = ()
    TYPE = "duologue.session.v1.Heartbeat"

    @property
    def waiting_for(self) -> WaitingFor | str:
        """What the run waits for."""
        return self._enum(WaitingFor, self.raw.get("waitingFor"))

    @property
    def waited_ms(self) -> int:
        """How long it has waited for that, in milliseconds."""
        return int(self.raw.get("waitedMs", 0))

    @property
    def tool_call_ids(self) -> list[str]:
        """Ids of the tool calls that it waits for."""
        return list(self.raw.get("toolCallIds", ()))

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn and provider call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class CompactionProposed(Message):
    """The run waits for the client to decide whether the conversation is compacted (extension `compaction`): with
    `compact`.
    """

    __slots__ = ()
    TYPE = "duologue.session.v1.CompactionProposed"

    @property
    def cause(self) -> CompactionCause | str:
        """Why."""
        return self._enum(CompactionCause, self.raw.get("cause"))

    @property
    def tokens(self) -> int:
        """Tokens that the model would be sent, as far as they are known."""
        return int(self.raw.get("tokens", 0))

    @property
    def context_tokens(self) -> int:
        """Tokens of the most that the model can be sent; 0 if that is not known."""
        return int(self.raw.get("contextTokens", 0))

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run and turn."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class CompactionStarted(Message):
    """The conversation is being compacted (extension `compaction`). Compacted or CompactionFailed follows."""

    __slots__ = ()
    TYPE = "duologue.session.v1.CompactionStarted"

    @property
    def cause(self) -> CompactionCause | str:
        """Why."""
        return self._enum(CompactionCause, self.raw.get("cause"))

    @property
    def tokens(self) -> int:
        """Tokens that the model would be sent, as far as they are known."""
        return int(self.raw.get("tokens", 0))

    @property
    def context_tokens(self) -> int:
        """Tokens of the most that the model can be sent; 0 if that is not known."""
        return int(self.raw.get("contextTokens", 0))

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run and turn."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class Compacted(Message):
    """The conversation was compacted (extension `compaction`): what the model is sent from here on in place of
    earlier turns and results. People see the conversation as before. Also the payload of an entity.
    """

    __slots__ = ()
    TYPE = "duologue.session.v1.Compacted"

    @property
    def compaction_id(self) -> str:
        """Its id."""
        return self.raw.get("compactionId", "")

    @property
    def through_turn_id(self) -> str:
        """Id of the last turn that the summary stands for; empty if there is none, and results alone were left out."""
        return self.raw.get("throughTurnId", "")

    @property
    def summary(self) -> str:
        """The summary of everything up to that turn."""
        return self.raw.get("summary", "")

    @property
    def cleared_tool_call_ids(self) -> list[str]:
        """Ids of the tool calls whose results the model is sent a note for."""
        return list(self.raw.get("clearedToolCallIds", ()))

    @property
    def tokens_before(self) -> int:
        """Tokens that the model would have been sent before, as far as they are known."""
        return int(self.raw.get("tokensBefore", 0))

    @property
    def tokens_after(self) -> int:
        """Tokens that it would be sent now; an estimate."""
        return int(self.raw.get("tokensAfter", 0))

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run and turn."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class CompactionFailed(Message):
    """The conversation was not compacted, and is as it was (extension `compaction`)."""

    __slots__ = ()
    TYPE = "duologue.session.v1.CompactionFailed"

    @property
    def reason(self) -> str:
        """Why not, for people."""
        return self.raw.get("reason", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run and turn."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class BudgetNearlySpent(Message):
    """Most of the budget is spent (extension `usage`); once in a process."""

    __slots__ = ()
    TYPE = "duologue.session.v1.BudgetNearlySpent"

    @property
    def cost(self) -> str:
        """The cost so far, as a decimal number."""
        return self.raw.get("cost", "")

    @property
    def budget(self) -> str:
        """The budget, as a decimal number."""
        return self.raw.get("budget", "")

    @property
    def currency(self) -> str:
        """The currency of both."""
        return self.raw.get("currency", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn and provider call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ToolApprovalRequested(Message):
    """A tool call waits for the client's `approve` request."""

    __slots__ = ()
    TYPE = "duologue.tools.v1.ToolApprovalRequested"

    @property
    def message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("messageId", "")

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool, as the model knows it."""
        return self.raw.get("toolName", "")

    @property
    def server(self) -> str:
        """Name of the server that runs the tool."""
        return self.raw.get("server", "")

    @property
    def input(self) -> str:
        """Arguments of the call, as JSON text."""
        return self.raw.get("input", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ToolApprovalResolved(Message):
    """A tool call waits for approval no more."""

    __slots__ = ()
    TYPE = "duologue.tools.v1.ToolApprovalResolved"

    @property
    def message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("messageId", "")

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool, as the model knows it."""
        return self.raw.get("toolName", "")

    @property
    def decision(self) -> ApprovalDecision | str:
        """The decision. DENY if nobody decided before the time was up or the run ended."""
        return self._enum(ApprovalDecision, self.raw.get("decision"))

    @property
    def reason(self) -> str:
        """Why the call was denied; empty if it was allowed."""
        return self.raw.get("reason", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ToolCallProgressed(Message):
    """The server that runs a tool has reported how far the call is."""

    __slots__ = ()
    TYPE = "duologue.tools.v1.ToolCallProgressed"

    @property
    def message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("messageId", "")

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool, as the model knows it."""
        return self.raw.get("toolName", "")

    @property
    def progress(self) -> Any:
        """What is done: a number, in units of the server's own."""
        return self.raw.get("progress")

    @property
    def total(self) -> Any:
        """What there is to do, in the same units: a number, if the server knows it."""
        return self.raw.get("total")

    @property
    def message(self) -> str:
        """What is being done, in the server's words."""
        return self.raw.get("message", "")

    @property
    def correlation(self) -> CorrelationInfo | None:
        """Ids that tie the event to its session, run, turn, provider call and tool call."""
        return self._message(CorrelationInfo, self.raw.get("correlation"))


class ToolServerChanged(Message):
    """A tool server has changed its state or its tools."""

    __slots__ = ()
    TYPE = "duologue.tools.v1.ToolServerChanged"

    @property
    def server(self) -> str:
        """Name of the server."""
        return self.raw.get("server", "")

    @property
    def state(self) -> ToolServerState | str:
        """Its state."""
        return self._enum(ToolServerState, self.raw.get("state"))

    @property
    def reason(self) -> str:
        """Why it is unavailable or gone, for people; else empty."""
        return self.raw.get("reason", "")

    @property
    def tools(self) -> list[str]:
        """Names of its tools, as the model knows them."""
        return list(self.raw.get("tools", ()))


class FrontendToolDescriptor(Message):
    """A tool that the client runs, or lets a person answer."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.frontendtools.v1.FrontendToolDescriptor"

    @property
    def name(self) -> str:
        """Name of the tool, unique in the list."""
        return self.raw.get("name", "")

    @property
    def description(self) -> str:
        """What the tool does, for the model."""
        return self.raw.get("description", "")

    @property
    def input_schema(self) -> dict[str, Any] | None:
        """JSON Schema of the arguments."""
        return self.raw.get("inputSchema")

    @property
    def mode(self) -> ToolExecutionMode | str:
        """Who runs the tool."""
        return self._enum(ToolExecutionMode, self.raw.get("mode"))

    @property
    def available(self) -> bool:
        """The tool can be called now."""
        return self.raw.get("available", False)


class FrontendToolManifestCommand(Message):
    """The client announces its tools."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.frontendtools.v1.FrontendToolManifestCommand"

    @property
    def tools(self) -> list[FrontendToolDescriptor]:
        """All tools the client offers."""
        return [FrontendToolDescriptor(item) for item in self.raw.get("tools", ())]

    @property
    def revision(self) -> int:
        """Rises with every change of the list."""
        return int(self.raw.get("revision", 0))


class FrontendToolManifestUpdated(Message):
    """The list of tools changed."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.frontendtools.v1.FrontendToolManifestUpdated"

    @property
    def tools(self) -> list[FrontendToolDescriptor]:
        """All tools the client offers."""
        return [FrontendToolDescriptor(item) for item in self.raw.get("tools", ())]

    @property
    def revision(self) -> int:
        """Rises with every change of the list."""
        return int(self.raw.get("revision", 0))


class FrontendToolCallRequested(Message):
    """The model asks the client to run a tool."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.frontendtools.v1.FrontendToolCallRequested"

    @property
    def message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("messageId", "")

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call, as the model gave it."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool."""
        return self.raw.get("toolName", "")

    @property
    def input(self) -> dict[str, Any] | None:
        """Arguments of the call."""
        return self.raw.get("input")

    @property
    def mode(self) -> ToolExecutionMode | str:
        """Who runs the tool."""
        return self._enum(ToolExecutionMode, self.raw.get("mode"))

    @property
    def status(self) -> str:
        """"pending"."""
        return self.raw.get("status", "")


class FrontendToolResultCommand(Message):
    """The client reports the result of a tool."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.frontendtools.v1.FrontendToolResultCommand"

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call, as the model gave it."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool."""
        return self.raw.get("toolName", "")

    @property
    def result(self) -> dict[str, Any] | None:
        """What the tool returned."""
        return self.raw.get("result")

    @property
    def status(self) -> str:
        """"success" or "error"."""
        return self.raw.get("status", "")

    @property
    def error(self) -> str:
        """Why the call failed, for people; empty on success."""
        return self.raw.get("error", "")


class FrontendToolResultReceived(Message):
    """A tool result was taken into the run."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.frontendtools.v1.FrontendToolResultReceived"

    @property
    def message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("messageId", "")

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call, as the model gave it."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool."""
        return self.raw.get("toolName", "")

    @property
    def result(self) -> dict[str, Any] | None:
        """What the tool returned."""
        return self.raw.get("result")

    @property
    def status(self) -> str:
        """"success" or "error"."""
        return self.raw.get("status", "")

    @property
    def error(self) -> str:
        """Why the call failed, for people; empty on success."""
        return self.raw.get("error", "")


class FrontendToolCallEntity(Message):
    """A client-run tool call of the timeline."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.frontendtools.v1.FrontendToolCallEntity"

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call, as the model gave it."""
        return self.raw.get("toolCallId", "")

    @property
    def tool_name(self) -> str:
        """Name of the tool."""
        return self.raw.get("toolName", "")

    @property
    def parent_message_id(self) -> str:
        """Root message id of the run that made the call."""
        return self.raw.get("parentMessageId", "")

    @property
    def mode(self) -> ToolExecutionMode | str:
        """Who runs the tool."""
        return self._enum(ToolExecutionMode, self.raw.get("mode"))

    @property
    def status(self) -> str:
        """"pending", "executing" or "completed"."""
        return self.raw.get("status", "")

    @property
    def input(self) -> dict[str, Any] | None:
        """Arguments of the call."""
        return self.raw.get("input")

    @property
    def result(self) -> dict[str, Any] | None:
        """What the tool returned."""
        return self.raw.get("result")

    @property
    def error(self) -> str:
        """Why the call failed, for people; empty on success."""
        return self.raw.get("error", "")


class RpcLine(Message):
    """One line that the server writes."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.RpcLine"

    @property
    def version(self) -> int:
        """Version of the protocol: 1."""
        return int(self.raw.get("version", 0))

    @property
    def session_id(self) -> str:
        """Session the frame belongs to: the bound id, or the generated default until a request binds
        one.
        """
        return self.raw.get("sessionId", "")

    @property
    def request_id(self) -> str:
        """Request the frame answers; empty on hello and on frames that answer none."""
        return self.raw.get("requestId", "")

    @property
    def hello(self) -> HelloFrame | None:
        """First frame of a process."""
        return self._message(HelloFrame, self.raw.get("hello"))

    @property
    def snapshot(self) -> SnapshotFrame | None:
        """State of the conversation."""
        return self._message(SnapshotFrame, self.raw.get("snapshot"))

    @property
    def ui_event(self) -> UiEventFrame | None:
        """One step of a run, as a person would see it."""
        return self._message(UiEventFrame, self.raw.get("uiEvent"))

    @property
    def backend_event(self) -> BackendEventFrame | None:
        """One step of a run, as the runtime records it."""
        return self._message(BackendEventFrame, self.raw.get("backendEvent"))

    @property
    def error(self) -> ErrorFrame | None:
        """Something went wrong; not the end of the request: its done follows."""
        return self._message(ErrorFrame, self.raw.get("error"))

    @property
    def done(self) -> DoneFrame | None:
        """End of a request: its last frame."""
        return self._message(DoneFrame, self.raw.get("done"))


class RpcRequestLine(Message):
    """One line that the server reads."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.RpcRequestLine"

    @property
    def version(self) -> int:
        """Version of the protocol: absent, 0 or 1."""
        return int(self.raw.get("version", 0))

    @property
    def session_id(self) -> str:
        """Session the request is for; empty means the session of this process. The first valid request
        binds it.
        """
        return self.raw.get("sessionId", "")

    @property
    def request_id(self) -> str:
        """Name the client gives the request, echoed on every frame of it; one is generated when it is
        empty.
        """
        return self.raw.get("requestId", "")

    @property
    def submit(self) -> SubmitPromptRequest | None:
        """Start a run."""
        return self._message(SubmitPromptRequest, self.raw.get("submit"))

    @property
    def cancel(self) -> CancelRequest | None:
        """Stop the active run."""
        return self._message(CancelRequest, self.raw.get("cancel"))

    @property
    def snapshot(self) -> SnapshotRequest | None:
        """Ask for the state of the conversation."""
        return self._message(SnapshotRequest, self.raw.get("snapshot"))

    @property
    def shutdown(self) -> ShutdownRequest | None:
        """End the process once the active run has ended."""
        return self._message(ShutdownRequest, self.raw.get("shutdown"))

    @property
    def enable(self) -> EnableRequest | None:
        """Extension: turn extensions on."""
        return self._message(EnableRequest, self.raw.get("enable"))

    @property
    def declare_tools(self) -> FrontendToolManifestCommand | None:
        """Extension `client-tools`: the tools that the client runs; replaces the last list."""
        return self._message(FrontendToolManifestCommand, self.raw.get("declareTools"))

    @property
    def tool_result(self) -> FrontendToolResultCommand | None:
        """Extension `client-tools`: the result of a tool that the client ran."""
        return self._message(FrontendToolResultCommand, self.raw.get("toolResult"))

    @property
    def approve(self) -> ApproveRequest | None:
        """Extension `approvals`: the decision about a tool call that waits for it."""
        return self._message(ApproveRequest, self.raw.get("approve"))

    @property
    def switch_model(self) -> SwitchModelRequest | None:
        """Extension `switch-model`: the model that answers from the next submit on."""
        return self._message(SwitchModelRequest, self.raw.get("switchModel"))

    @property
    def edit(self) -> EditRequest | None:
        """Extension `edit`: drop the last turns of the conversation, or answer one of them anew."""
        return self._message(EditRequest, self.raw.get("edit"))

    @property
    def compact(self) -> CompactRequest | None:
        """Extension `compaction`: have the model sent a summary in place of the earlier turns."""
        return self._message(CompactRequest, self.raw.get("compact"))


class SubmitPromptRequest(Message):
    """Say something to the model."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.SubmitPromptRequest"

    @property
    def prompt(self) -> str:
        """The prompt, kept as written. Blank is refused with empty_prompt."""
        return self.raw.get("prompt", "")

    @property
    def target_request_id(self) -> str:
        """Extension `steer`: the request whose run the prompt joins at its next boundary. If that run is
        over by then, the prompt is a turn of its own.
        """
        return self.raw.get("targetRequestId", "")

    @property
    def attachments(self) -> list[Attachment]:
        """Extension `attachments`: images and files that go with the prompt. `url` is an address, a `data:`
        URL or the path of a file.
        """
        return [Attachment(item) for item in self.raw.get("attachments", ())]

    @property
    def settings(self) -> dict[str, Any] | None:
        """Extension `settings`: `model`, `profile`, `engine` and settings of the call, as `temperature`, for
        this turn alone.
        """
        return self.raw.get("settings")

    @property
    def response_schema(self) -> dict[str, Any] | None:
        """Extension `structured`: the JSON Schema that the answer must match."""
        return self.raw.get("responseSchema")

    @property
    def resources(self) -> list[ResourceReference]:
        """Extension `resources`: resources of tool servers, whose contents go with the prompt, after its
        attachments.
        """
        return [ResourceReference(item) for item in self.raw.get("resources", ())]


class ResourceReference(Message):
    """A resource of a tool server."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.ResourceReference"

    @property
    def server(self) -> str:
        """Name of the server."""
        return self.raw.get("server", "")

    @property
    def uri(self) -> str:
        """Address of the resource, which its server reads."""
        return self.raw.get("uri", "")


class SwitchModelRequest(Message):
    """Choose the model that answers from the next submit on. What is not named stays as it is."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.SwitchModelRequest"

    @property
    def profile(self) -> str:
        """The profile, with its engine, model and settings; empty: none."""
        return self.raw.get("profile", "")

    @property
    def engine(self) -> str:
        """The engine, with the settings that the environment has for it; empty: the profile's, or the
        current one.
        """
        return self.raw.get("engine", "")

    @property
    def model(self) -> str:
        """The model; empty: that of the profile or the engine."""
        return self.raw.get("model", "")

    @property
    def settings(self) -> dict[str, Any] | None:
        """Settings of the calls, as `temperature`."""
        return self.raw.get("settings")


class CancelRequest(Message):
    """Stop the active run."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.CancelRequest"

    @property
    def target_request_id(self) -> str:
        """Extension `targeted-cancel`: the request to stop, or to withdraw if it waits. Empty: the active
        run.
        """
        return self.raw.get("targetRequestId", "")

    @property
    def waiting(self) -> bool:
        """Extension `targeted-cancel`: withdraw every submit that waits. Without target_request_id the
        active run goes on.
        """
        return self.raw.get("waiting", False)


class EnableRequest(Message):
    """Turn extensions on, for the rest of the process."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.EnableRequest"

    @property
    def extensions(self) -> list[str]:
        """Names of the extensions. If one is unknown, none of them is turned on."""
        return list(self.raw.get("extensions", ()))

    @property
    def events(self) -> list[str]:
        """The events that are written from here on: names and patterns, in which `*` is any number of characters
        and `?` is one; after a `!`, those that are not written. Empty: those of before.
        """
        return list(self.raw.get("events", ()))


class CompactRequest(Message):
    """Have the model sent a summary in place of the earlier turns, or decide about that while a run waits for it."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.CompactRequest"

    @property
    def instructions(self) -> str:
        """What the summary should keep or leave out, for the model; may be empty."""
        return self.raw.get("instructions", "")

    @property
    def keep_turns(self) -> int:
        """How many of the last turns are sent as they are; 0 for as many as have room."""
        return int(self.raw.get("keepTurns", 0))

    @property
    def decline(self) -> bool:
        """Don't compact: the run that waits for a decision goes on without it."""
        return self.raw.get("decline", False)


class ApproveRequest(Message):
    """Decide about a tool call that waits for approval."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.ApproveRequest"

    @property
    def tool_call_id(self) -> str:
        """Id of the tool call."""
        return self.raw.get("toolCallId", "")

    @property
    def decision(self) -> ApprovalDecision | str:
        """The decision."""
        return self._enum(ApprovalDecision, self.raw.get("decision"))

    @property
    def reason(self) -> str:
        """Why the call is denied; the model reads it."""
        return self.raw.get("reason", "")


class EditRequest(Message):
    """Change the end of the conversation. What is dropped is not sent to the model again and is in no
    snapshot; a store keeps its events.
    """

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.EditRequest"

    @property
    def drop_last_turn(self) -> DropLastTurn | None:
        """Drop the last turn."""
        return self._message(DropLastTurn, self.raw.get("dropLastTurn"))

    @property
    def regenerate(self) -> Regenerate | None:
        """Drop the last turn and answer its prompt again, with the same attachments."""
        return self._message(Regenerate, self.raw.get("regenerate"))

    @property
    def replace(self) -> ReplacePrompt | None:
        """Drop a turn and all after it, and answer another prompt in its place."""
        return self._message(ReplacePrompt, self.raw.get("replace"))


class DropLastTurn(Message):
    """Drop the last turn."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.DropLastTurn"


class Regenerate(Message):
    """Answer the last prompt again."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.Regenerate"


class ReplacePrompt(Message):
    """Answer another prompt in the place of an earlier one. The attachments of the earlier one stay,
    except those that removed_attachment_ids names.
    """

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.ReplacePrompt"

    @property
    def message_id(self) -> str:
        """Message id of the prompt that is replaced. It is the first prompt of a turn: neither one that
        joined a run nor one from before the session.
        """
        return self.raw.get("messageId", "")

    @property
    def prompt(self) -> str:
        """The new prompt, kept as written. Blank without attachments is refused with empty_prompt."""
        return self.raw.get("prompt", "")

    @property
    def attachments(self) -> list[Attachment]:
        """Extension `attachments`: images and files that go with the new prompt, after those of the earlier
        one that stay.
        """
        return [Attachment(item) for item in self.raw.get("attachments", ())]

    @property
    def removed_attachment_ids(self) -> list[str]:
        """Ids of the attachments of the earlier prompt that do not go with the new one."""
        return list(self.raw.get("removedAttachmentIds", ()))

    @property
    def resources(self) -> list[ResourceReference]:
        """Extension `resources`: resources of tool servers, whose contents go with the new prompt."""
        return [ResourceReference(item) for item in self.raw.get("resources", ())]


class SnapshotRequest(Message):
    """Ask for the state of the conversation, or for a part of it."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.SnapshotRequest"

    @property
    def since_ordinal(self) -> int:
        """Extension `history`: only entities that were changed, or dropped, after this event; 0: all."""
        return int(self.raw.get("sinceOrdinal", 0))

    @property
    def limit(self) -> int:
        """Extension `history`: at most this many entities, those that were created last; 0: all."""
        return int(self.raw.get("limit", 0))

    @property
    def before_ordinal(self) -> int:
        """Extension `history`: only entities that were created before this event; 0: all."""
        return int(self.raw.get("beforeOrdinal", 0))


class ShutdownRequest(Message):
    """End the process once the active run has ended."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.ShutdownRequest"


class HelloFrame(Message):
    """First frame of a process: who answers and what it can do."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.HelloFrame"

    @property
    def protocol(self) -> str:
        """Name of the protocol: "pinocchio.chatapp.rpc.v1"."""
        return self.raw.get("protocol", "")

    @property
    def server(self) -> str:
        """Name of the server: "duologue"."""
        return self.raw.get("server", "")

    @property
    def capabilities(self) -> list[str]:
        """What the server does: plain words, then key=value strings."""
        return list(self.raw.get("capabilities", ()))


class SnapshotFrame(Message):
    """State of the conversation up to an ordinal."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.SnapshotFrame"

    @property
    def snapshot_ordinal(self) -> int:
        """Ordinal of the last event the snapshot includes; 0 before any."""
        return int(self.raw.get("snapshotOrdinal", 0))

    @property
    def entities(self) -> list[SnapshotEntity]:
        """The timeline, oldest first."""
        return [SnapshotEntity(item) for item in self.raw.get("entities", ())]


class SnapshotEntity(Message):
    """One entity of the timeline."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.SnapshotEntity"

    @property
    def kind(self) -> str:
        """Entity kind: "ChatMessage", "ChatToolCall" or "ChatToolResult"."""
        return self.raw.get("kind", "")

    @property
    def id(self) -> str:
        """Id of the entity, unique within its kind."""
        return self.raw.get("id", "")

    @property
    def created_ordinal(self) -> int:
        """Ordinal of the event that made it."""
        return int(self.raw.get("createdOrdinal", 0))

    @property
    def last_event_ordinal(self) -> int:
        """Ordinal of the last event that changed it."""
        return int(self.raw.get("lastEventOrdinal", 0))

    @property
    def tombstone(self) -> bool:
        """It was removed; readers drop their copy. It has no payload then."""
        return self.raw.get("tombstone", False)

    @property
    def payload(self) -> Message | Unknown | None:
        """The entity: ChatMessageEntity, ToolCallEntity or ToolResultEntity."""
        return payload_of(self.raw.get("payload"))


class UiEventFrame(Message):
    """One step of a run, as a person would see it."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.UiEventFrame"

    @property
    def ordinal(self) -> int:
        """Number of the backend event, from 1, strictly rising for the life of the session; events that
        come from one backend event share it.
        """
        return int(self.raw.get("ordinal", 0))

    @property
    def name(self) -> str:
        """Message name of the payload, for quick filters; the @type is the contract."""
        return self.raw.get("name", "")

    @property
    def payload(self) -> Message | Unknown | None:
        """The event; its message name equals name."""
        return payload_of(self.raw.get("payload"))


class BackendEventFrame(Message):
    """One step of a run, as the runtime records it."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.BackendEventFrame"

    @property
    def ordinal(self) -> int:
        """Number of the backend event, from 1, strictly rising for the life of the session; events that
        come from one backend event share it.
        """
        return int(self.raw.get("ordinal", 0))

    @property
    def name(self) -> str:
        """Message name of the payload, for quick filters; the @type is the contract."""
        return self.raw.get("name", "")

    @property
    def payload(self) -> Message | Unknown | None:
        """The event; its message name equals name."""
        return payload_of(self.raw.get("payload"))


class ErrorFrame(Message):
    """Something went wrong."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.ErrorFrame"

    @property
    def code(self) -> str:
        """What went wrong, as a word for programs, for example "session_busy"."""
        return self.raw.get("code", "")

    @property
    def message(self) -> str:
        """What went wrong, what it means and what to do, for people."""
        return self.raw.get("message", "")

    @property
    def detail(self) -> str:
        """More for a program or a bug report. For run_failed and engine_init_failed it begins with one
        class word and a colon, for example "rate_limited: ...". Never empty: the message where there is
        nothing more.
        """
        return self.raw.get("detail", "")

    @property
    def terminal(self) -> bool:
        """The process will not go on after this."""
        return self.raw.get("terminal", False)


class DoneFrame(Message):
    """The last frame of a request."""

    __slots__ = ()
    TYPE = "pinocchio.chatapp.rpc.v1.DoneFrame"

    @property
    def status(self) -> str:
        """"ok", "stopped", "failed" or "shutdown"."""
        return self.raw.get("status", "")
