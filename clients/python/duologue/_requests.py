"""Requests that have been sent, until their `done`."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable

from . import messages as m
from ._errors import DuologueError, error_of
from ._message import JsonObject, Message
from ._result import Summary

PAUSE_BYTES = 8 * 1024 * 1024
QUEUE_BYTES_MAX = 256 * 1024 * 1024


class Request:
    """A request in flight. The client's reader fills it; what waits for it may be dropped at any time."""

    def __init__(self, request_id: str, body: JsonObject, *, is_streamed: bool = False) -> None:
        self.id = request_id
        self.body = body
        # It has the model answer, and its result is made of its events.
        edit = body.get("edit", {})
        self.is_prompt = "submit" in body or "regenerate" in edit or "replace" in edit
        self.is_streamed = is_streamed
        self.is_sent = False
        # Of whoever sends it: tools and approvals of the run have it.
        self.context = contextvars.copy_context()
        self.status = ""
        self.error: DuologueError | None = None
        self.snapshot: m.SnapshotFrame | None = None
        self.summary = Summary()
        self.events: deque[tuple[Message, int]] = deque()
        # Two counters, each with one writer: the reader of events may be another thread.
        self.put_bytes = self.taken_bytes = 0
        self.on_wake: Callable[[], None] | None = None
        # Of a reader in another thread.
        self.is_awaited_elsewhere = False
        self._waiters: set[asyncio.Future[None]] = set()

    @property
    def is_run(self) -> bool:
        """It starts a run, or waits for one. A compaction is stopped like a run."""
        submit, compact = self.body.get("submit"), self.body.get("compact")
        is_compaction = compact is not None and not compact.get("decline")
        return "edit" in self.body or is_compaction or (submit is not None and "targetRequestId" not in submit)

    def event(self, event: Message, size: int) -> None:
        """Takes an event; the client wakes what waits when it has read all that has come."""
        self.summary.apply(event)
        if self.is_streamed:
            self.events.append((event, size))
            self.put_bytes += size

    def fail(self, code: str, message: str, detail: str) -> None:
        # The first error is the cause of those that follow.
        self.error = self.error or error_of(code, message, detail)

    @property
    def is_awaited(self) -> bool:
        """Somebody waits for its answer, or for the next of its events."""
        if not self.is_streamed:
            return True
        return not self.events and (bool(self._waiters) or self.is_awaited_elsewhere)

    def done(self, status: str) -> None:
        if not self.status:
            self.status = status or "failed"
            self.wake()

    def end(self, error: DuologueError) -> None:
        """The request gets no `done` any more."""
        if not self.status:
            self.error = self.error or error
        self.done("failed")

    def drop_events(self) -> None:
        self.is_streamed = False
        self.events.clear()
        self.taken_bytes = self.put_bytes

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the lines of the events that nobody has taken yet."""
        return self.put_bytes - self.taken_bytes

    def take_all(self) -> list[Message]:
        """All events that have come."""
        taken = [self.events.popleft() for _ in range(len(self.events))]
        self.taken_bytes += sum(size for _, size in taken)
        return [event for event, _ in taken]

    def wake(self) -> None:
        if self.on_wake:
            self.on_wake()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def changed(self, on_wait: Callable[[], None] | None = None) -> None:
        """Waits for an event or the end; calls `on_wait` when it has begun to."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            if on_wait:
                on_wait()
            await waiter
        finally:
            self._waiters.discard(waiter)

    async def finished(self) -> None:
        """Waits for the end."""
        while not self.status:
            await self.changed()
