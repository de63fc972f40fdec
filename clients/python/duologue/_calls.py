"""Calls of tools and questions to the program, while their run waits for them."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from . import messages as m
from ._errors import DuologueError, RequestError, ToolError, TooLong
from ._message import JsonObject, Message
from ._tools import Approve, Tool, decide, failed

Send = Callable[[JsonObject], Awaitable[Any]]


class Calls:
    """The work that runs of the conversation wait for. `send` sends a request and waits for its `done`."""

    def __init__(self, send: Send, approve: Approve | None, approve_timeout: float) -> None:
        self._send = send
        self._approve = approve
        self._approve_timeout = approve_timeout
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def see(self, event: Message, tools: dict[str, Tool], context: contextvars.Context) -> None:
        """Begins work in the context, or ends it, as the event says."""
        if isinstance(event, m.FrontendToolCallRequested):
            context.run(self._begin, event.tool_call_id, self._run(event, tools.get(event.tool_name)))
        elif isinstance(event, m.ToolApprovalRequested):
            context.run(self._begin, event.tool_call_id + ":approval", self._decide(event))
        elif isinstance(event, m.ToolResultReady):
            # The run does not wait for the call any more, whatever becomes of it here.
            self._end(event.tool_call_id)
        elif isinstance(event, m.ToolApprovalResolved):
            self._end(event.tool_call_id + ":approval")

    def end_all(self) -> None:
        """Nobody waits for anything any more."""
        for name in list(self._tasks):
            self._end(name)

    def _begin(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[name] = task
        task.add_done_callback(lambda task: self._tasks.pop(name, None) if self._tasks.get(name) is task else None)

    def _end(self, name: str) -> None:
        if task := self._tasks.pop(name, None):
            task.cancel()

    async def _run(self, event: m.FrontendToolCallRequested, tool: Tool | None) -> None:
        result = await tool.call(event.input or {}) if tool else failed(f"There is no tool {event.tool_name}.")
        with contextlib.suppress(DuologueError):  # The call does not wait any more.
            try:
                await self._give(event.tool_call_id, result)
            except DuologueError as error:
                if (reason := _reason(error)) is None:
                    raise
                # The model has to know, and the run would wait.
                await self._give(event.tool_call_id, failed(reason))

    async def _give(self, call: str, result: JsonObject) -> None:
        await self._send({"toolResult": {"toolCallId": call, **result}})

    async def _decide(self, event: m.ToolApprovalRequested) -> None:
        decision = await decide(self._approve, event, self._approve_timeout)
        with contextlib.suppress(DuologueError):  # The call does not wait any more.
            await self._send({"approve": {"toolCallId": event.tool_call_id, **decision}})


def _reason(error: DuologueError) -> str | None:
    """Why the server does not have a result; None if the call does not wait any more."""
    if isinstance(error, TooLong):
        return str(error)
    if not isinstance(error, RequestError) or isinstance(error, ToolError):
        return None
    return f"The server does not take the result: {error}"
