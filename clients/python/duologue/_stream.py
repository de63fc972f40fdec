"""A run as its events come."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from ._errors import AnswerError, DuologueError
from ._message import Message
from ._outcome import text_of
from ._requests import Request
from ._result import Result

if TYPE_CHECKING:
    from ._connection import Connection


class Stream:
    """A run: iterate over it for its events, or await it for its `Result`. It is sent when that begins.

    The iteration ends with the run's `done`; a run that failed raises its error there. Leaving the iteration early, or
    cancelling the task, stops the run. `result` is there once the run has ended.
    """

    def __init__(self, connection: Connection, request: Request, convert: Callable[[Any], Any] | None) -> None:
        self._connection = connection
        self._request = request
        self._convert = convert
        self._has_begun = False
        self._result: Result | None = None

    @property
    def request_id(self) -> str:
        """The id of the request."""
        return self._request.id

    @property
    def result(self) -> Result:
        """What the run came to."""
        if self._result is None:
            raise DuologueError("The run has not ended: iterate to the end, or await the stream.")
        return self._result

    def __aiter__(self) -> Events:
        self._begin()
        self._request.is_streamed = True
        return Events(self)

    def __await__(self) -> Generator[Any, None, Result]:
        return self._finish().__await__()

    async def cancel(self) -> None:
        """Stops this run, or withdraws it if it waits. The iteration goes on to its end, with the status `stopped`."""
        await self._connection.stop(self._request)

    async def steer(self, prompt: str) -> Result:
        """Adds a prompt to this run, which joins it at its next boundary. `joined` is False if the run was over."""
        body = {"submit": {"prompt": prompt, "targetRequestId": self.request_id}}
        return await Stream(self._connection, self._connection.new(body), None)

    def _begin(self) -> None:
        if self._has_begun:
            raise DuologueError("A stream can be used once.")
        self._has_begun = True

    async def _finish(self) -> Result:
        self._begin()
        try:
            await self._connection.send(self._request)
            await self._request.finished()
        except BaseException:
            self._connection.abandon(self._request)
            raise
        return self._end()

    def _end(self) -> Result:
        request = self._request
        result = self._result = request.summary.finish(request.status)
        if request.error:
            if isinstance(request.error, AnswerError):
                request.error.text = result.text
            raise request.error
        if result.values:
            result.value = result.values[-1]
            if self._convert:
                result.value = self._typed(self._convert, result)
        return result

    def _typed(self, convert: Callable[[Any], Any], result: Result) -> Any:
        try:
            return convert(result.value)
        except Exception as cause:
            # The schema has not all that a type may ask of its values.
            error = AnswerError("invalid_answer", f"The answer is not what was asked for: {text_of(cause)}")
            error.text = result.text
            raise error from cause


class Events:
    """The iteration over a `Stream`. Without references it stops its run: a loop that is left drops it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._request = stream._request
        self._connection = stream._connection
        self._is_over = False

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Message:
        request = self._request
        if not request.events:
            await self._more()
        event, size = request.events.popleft()
        request.taken_bytes += size
        if self._connection.is_paused:
            self._connection.flow()
        return event

    async def _more(self) -> None:
        if self._is_over:
            raise StopAsyncIteration
        request = self._request
        try:
            if not request.is_sent:
                await self._connection.send(request)
            while not request.events and not request.status:
                await request.changed(self._connection.flow if self._connection.is_paused else None)
        except BaseException:
            self._leave()
            raise
        if not request.events:
            self.finish()
            raise StopAsyncIteration

    def finish(self) -> None:
        """The run has ended, and all its events were taken; raises its error if it failed."""
        self._is_over = True
        self._stream._end()

    def _leave(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._connection.abandon(self._request)

    def close(self) -> None:
        """Ends the iteration; a run that goes on is stopped."""
        if not self._is_over:
            self._connection.in_loop(self._leave)

    def __del__(self) -> None:
        self.close()
