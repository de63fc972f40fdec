"""What a run came to, put together from its events."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from . import messages as m
from ._message import Message


@dataclass
class ToolCall:
    """A call that the model made. `input` is its JSON text; `result` is empty until it has returned."""

    id: str
    name: str
    input: str = ""
    result: str = ""
    status: str = ""


@dataclass
class Result:
    """What a run came to.

    `status` is `ok`, or `stopped` where it was cancelled; a run that fails raises its error. `text` is the answer: what
    the last call of the model said, and `values` were found in it. `texts` has what each call said. `usage` and `cost` are of this run.
    """

    status: str = ""
    text: str = ""
    texts: list[str] = field(default_factory=list)
    reasoning: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    value: Any = None
    values: list[Any] = field(default_factory=list)
    usage: m.TokenCounts | None = None
    cost: Decimal | None = None
    currency: str = ""
    finish_class: str = ""
    message_id: str = ""
    joined: bool = False

    @property
    def is_truncated(self) -> bool:
        """The answer was cut off, at a token limit or by a filter of the provider."""
        return self.finish_class in ("max_tokens", "content_filter")


class Summary:
    """Makes a `Result` of events. Patches are not among those it needs."""

    def __init__(self) -> None:
        self.result = Result()
        self._texts: dict[str, str] = {}
        self._calls: dict[str, ToolCall] = {}

    def apply(self, event: Message) -> None:
        apply = _APPLY.get(type(event))
        if apply:
            apply(self, event)

    def finish(self, status: str) -> Result:
        result = self.result
        result.status = status
        result.texts = list(self._texts.values())
        result.text = result.texts[-1] if result.texts else ""
        result.tool_calls = list(self._calls.values())
        return result

    def _text(self, event: m.TextSegmentFinished) -> None:
        call = event.correlation.provider_call_id if event.correlation else ""
        self._texts[call] = self._texts.get(call, "") + event.text

    def _reasoning(self, event: m.ReasoningSegmentFinished) -> None:
        self.result.reasoning += event.text

    def _call(self, event: m.ToolCallRequested) -> None:
        self._calls[event.tool_call_id] = ToolCall(event.tool_call_id, event.tool_name, event.input)

    def _tool_result(self, event: m.ToolResultReady) -> None:
        call = self._calls.setdefault(event.tool_call_id, ToolCall(event.tool_call_id, event.tool_name))
        call.result, call.status = event.result, event.status

    def _usage(self, event: m.UsageTotals) -> None:
        self.result.usage = event.run
        if event.run and event.run.cost:
            self.result.cost, self.result.currency = Decimal(event.run.cost), event.run.currency

    def _value(self, event: m.ObjectExtracted) -> None:
        # The text has all digits, and the order of members.
        self.result.values.append(json.loads(event.json))

    def _rejected(self, _: m.AnswerRejected) -> None:
        # What was found in it does not count.
        self.result.values.clear()

    def _call_started(self, _: m.ProviderCallStarted) -> None:
        # The answer is what the last call says.
        self.result.values.clear()

    def _call_ended(self, event: m.ProviderCallFinished) -> None:
        self.result.finish_class = event.finish_class

    def _accepted(self, event: m.UserMessageAccepted) -> None:
        self.result.message_id = self.result.message_id or event.message_id

    def _joined(self, event: m.SteeringAccepted) -> None:
        self.result.joined, self.result.message_id = True, event.message_id


_APPLY: dict[type[Message], Callable[[Summary, Any], None]] = {
    m.TextSegmentFinished: Summary._text,
    m.ReasoningSegmentFinished: Summary._reasoning,
    m.ToolCallRequested: Summary._call,
    m.ToolResultReady: Summary._tool_result,
    m.UsageTotals: Summary._usage,
    m.ObjectExtracted: Summary._value,
    m.AnswerRejected: Summary._rejected,
    m.ProviderCallStarted: Summary._call_started,
    m.ProviderCallFinished: Summary._call_ended,
    m.UserMessageAccepted: Summary._accepted,
    m.SteeringAccepted: Summary._joined,
}
