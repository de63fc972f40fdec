"""Conversations with language models, held by the program duologue.

    async with Duologue(store="chat.db", session="ada") as chat:
        print((await chat.run("What is a duologue?")).text)
        async for event in chat.stream("Explain it to a child."):
            match event:
                case TextPatch(text=text):
                    print(text, end="")

`duologue.sync` has the same without `await`; `duologue.messages` has all events.
"""

from ._client import Change, Duologue
from ._errors import (
    AnswerError,
    Busy,
    Closed,
    ConfigError,
    DuologueError,
    NotInstalled,
    ProcessEnded,
    ProtocolError,
    ProviderError,
    RequestError,
    SessionMismatch,
    StoreError,
    ToolError,
    TooLong,
    VersionError,
)
from ._message import Message, Unknown
from ._result import Result, ToolCall
from ._stream import Events, Stream
from ._tools import Tool, tool
from .messages import (
    MessageEntity,
    ReasoningPatch,
    TextPatch,
    ToolApprovalRequested,
    ToolCallRequested,
    ToolResultReady,
)

__version__ = "0.1.0"

__all__ = [
    "AnswerError",
    "Busy",
    "Change",
    "Closed",
    "ConfigError",
    "Duologue",
    "DuologueError",
    "Events",
    "Message",
    "MessageEntity",
    "NotInstalled",
    "ProcessEnded",
    "ProtocolError",
    "ProviderError",
    "ReasoningPatch",
    "RequestError",
    "Result",
    "SessionMismatch",
    "StoreError",
    "Stream",
    "TextPatch",
    "Tool",
    "ToolApprovalRequested",
    "ToolCall",
    "ToolCallRequested",
    "ToolError",
    "ToolResultReady",
    "TooLong",
    "Unknown",
    "VersionError",
    "tool",
]
