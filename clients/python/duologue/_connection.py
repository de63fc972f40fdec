"""The process, its one reader, and the requests that wait for their answers."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import json
import os
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from . import messages as m
from ._calls import Calls
from ._errors import (
    Closed,
    DuologueError,
    ProcessEnded,
    ProtocolError,
    RequestError,
    StoreError,
    TooLong,
    error_of,
    inherited,
)
from ._hello import check_hello, request_bytes_max
from ._lines import Lines, Overlong
from ._message import JsonObject, Message, payload_of
from ._process import Process
from ._requests import PAUSE_BYTES, QUEUE_BYTES_MAX, Request
from ._settings import Settings

# Of later servers: each is asked for by itself, and may be unknown.
NEWER_EXTENSIONS = ("tool-progress",)
# What the program writes to standard error where nobody has chosen what answers.
ECHO = "the built-in echo engine answers"
# The warning of that came: of one process it is enough, however many clients this has.
_has_warned = False
_decode = json.JSONDecoder().raw_decode


class Connection:
    """A process and the requests in flight. It is started again after its end with the same settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.process: Process | None = None
        self.failure: DuologueError | None = Closed(
            "The client has not been started: use `async with`, or `start`."
        )
        self.hello: m.HelloFrame | None = None
        self.initial: m.SnapshotFrame | None = None
        self.store_error: StoreError | None = None
        self.session_id = ""
        self.shown: dict[str, m.TextPatch | m.ReasoningPatch] = {}
        self.is_paused = False
        self._numbers = itertools.count(1)
        self._last_event: Message | None = None
        self._last_ordinal = 0
        self._requests: dict[str, Request] = {}
        # Runs that are to stop, and have not yet.
        self._stopping: set[Request] = set()
        self._shown_by: Request | None = None
        self._is_closing = False
        self._begun: asyncio.Future[None] | None = None
        self._calls = self._new_calls()
        # The session has tools of an earlier program.
        self._has_earlier_tools = False
        self.is_inherited = False
        # Calls of close, so that a restart that was under way starts no process after one.
        self.closes = 0
        _connections.add(self)

    async def start(self) -> None:
        """Starts the process, and checks what it is."""
        if self.process:
            raise DuologueError("The client is started already.")
        self.settings.settle()
        command = [self.settings.program, "rpc", *self.settings.args]
        self._loop = asyncio.get_running_loop()
        self._lines = Lines(self.settings.line_bytes_max)
        self._requests = {}
        self._stopping = set()
        self._fed: Request | None = None
        self._calls = self._new_calls()
        self._ending: asyncio.Task[None] | None = None
        self.is_paused = self._is_closing = self._has_earlier_tools = self.is_inherited = False
        self.failure = None
        self._fatal: RequestError | None = None
        self.hello = None
        self.session_id = ""
        self._begun = self._loop.create_future()
        try:
            pipes = (self._on_bytes, self._on_end, self._on_stderr)
            self.process = Process(command, self.settings.env, self.settings.cwd, *pipes)
            await asyncio.wait_for(self._begin(), self.settings.start_timeout)
        except (TimeoutError, asyncio.TimeoutError):
            tail = await self._abort()
            raise ProtocolError(f"{command[0]} did not begin within {self.settings.start_timeout:g} s.{tail}") from None
        except BaseException:
            await self._abort()
            raise

    def _new_calls(self) -> Calls:
        return Calls(lambda body: self.request(**body), self.settings.approve, self.settings.approve_timeout)

    async def close(self) -> None:
        """Stops what runs, and ends the process."""
        self.closes += 1
        process = self.process
        if not process:
            return
        self._is_closing = True
        self._pause(False)
        self._calls.end_all()
        try:
            await self._say_goodbye(process)
            await process.end(self.settings.close_timeout)
        except BaseException:
            # Nobody waits for a close that was interrupted, but others may wait for their answers.
            process.kill()
            raise
        finally:
            if self.process is process:
                self.process = None
                self._fail(Closed("The client was closed."))

    async def _say_goodbye(self, process: Process) -> None:
        if self.failure is None:
            self._write({"requestId": self._id(), "cancel": {"waiting": True}})
            self._write({"requestId": self._id(), "cancel": {}})
            self._write({"requestId": self._id(), "shutdown": {}})
            with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                await asyncio.wait_for(process.drained(), self.settings.close_timeout)

    def end_now(self, failure: Closed) -> None:
        """Nobody gets an answer any more; the process may be there yet."""
        self.closes += 1
        self._is_closing = True
        self._fail(failure)

    async def restart(self, closes: int) -> None:
        """Starts the process again after its end, unless `close` was called since there were so many calls of it."""
        if self.process:
            await self.process.end(self.settings.close_timeout)
        if self.closes != closes:
            raise Closed("The client was closed.")
        self.process = None
        await self.start()

    @property
    def ordinal(self) -> int:
        """Ordinal of the last event that was received."""
        return max(self._last_ordinal, self._last_event.ordinal if self._last_event else 0)

    @property
    def stderr(self) -> str:
        """The end of what the process wrote to standard error."""
        return self.process.stderr if self.process else ""

    # Sending

    def _id(self) -> str:
        return f"py-{next(self._numbers)}"

    def new(self, body: JsonObject) -> Request:
        return Request(self._id(), body)

    async def send(self, request: Request) -> None:
        self._check_loop()
        if request.is_run and not self.settings.is_queueing:
            await self._settle(request)
        if request.status or request.is_sent:
            return  # It was stopped before it was sent; or two wait for the first event of one stream.
        if self.failure:
            raise self.failure
        line = _line({"requestId": request.id, **request.body})
        limit = request_bytes_max(self.hello)
        if len(line) > limit:
            raise TooLong(f"The request has {len(line)} bytes, and the server takes {limit}.")
        assert self.process
        self._requests[request.id] = request
        request.is_sent = True
        request.context = contextvars.copy_context()
        self.flow()
        self.process.write(line + b"\n")
        await self.process.drained()

    def _check_loop(self) -> None:
        """Refuses to work for a loop that does not read what the process writes: the answer would never come."""
        if self.failure is None and asyncio.get_running_loop() is not self._loop:
            raise DuologueError(
                "The client belongs to another event loop, which alone reads its answers: start one in this loop, or "
                "use `duologue.sync.Duologue`, which has a loop of its own."
            )

    async def _settle(self, request: Request) -> None:
        """Waits for the end of runs that are to stop: a prompt before that would be refused."""
        if not self._stopping:
            return
        # A task, which may be cancelled without anybody looking at it, as `gather` may not.
        waits = [asyncio.ensure_future(work) for work in (_all_finished(self._stopping), request.finished())]
        try:
            await asyncio.wait(waits, timeout=self.settings.cancel_timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _write(self, body: JsonObject) -> None:
        if self.process:
            self.process.write(json.dumps(body).encode() + b"\n")

    def abandon(self, request: Request) -> None:
        """Nobody waits for the run any more."""
        request.drop_events()
        if self._marks_stopping(request):
            self._write({"requestId": self._id(), "cancel": {"targetRequestId": request.id}})
        self.flow()

    async def stop(self, request: Request) -> None:
        """Stops a run; one that has not been sent is not sent."""
        if self._marks_stopping(request):
            await self._cancel({"targetRequestId": request.id})

    async def cancel(self) -> bool:
        """Stops the active run; False if there is none."""
        self._stopping.update(request for request in self._requests.values() if request.is_run)
        return await self._cancel({})

    def _marks_stopping(self, request: Request) -> bool:
        """Has the next prompt wait for the end of a run that the server has to stop; False if it has none to stop."""
        if not request.is_sent:
            request.done("stopped")
        if request.status or self.failure:
            return False
        self._stopping.add(request)
        return True

    async def request(self, **body: JsonObject) -> Request:
        """Sends a request, and returns it when it has its `done`."""
        request = self.new(body)
        try:
            await self.send(request)
            await request.finished()
        except BaseException:
            if request.is_run:
                self.abandon(request)
            raise
        if request.error:
            raise request.error
        return request

    async def _cancel(self, body: JsonObject) -> bool:
        try:
            await self.request(cancel=body)
        except RequestError as error:
            if error.code == "no_active_request":
                return False
            raise
        return True

    def in_loop(self, act: Callable[[], None]) -> None:
        """Calls `act` in the loop of the client, from any thread; not at all if the loop is closed."""
        loop = getattr(self, "_loop", None)
        if loop is None or loop.is_closed() or self.is_inherited:
            return
        try:
            is_here = asyncio.get_running_loop() is loop
        except RuntimeError:
            is_here = False
        if is_here:
            act()
        else:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(act)

    # Receiving

    def _on_bytes(self, chunk: bytes) -> None:
        if self._is_closing and not self._requests:
            return
        self._feed(chunk)
        if self._fed:
            self._fed.wake()
            self._fed = None

    def _on_stderr(self) -> None:
        if not _has_warned and ECHO in self.stderr and not self._loop.is_closed():
            # By the loop, as a program may have warnings raised.
            self._loop.call_soon(_warn_of_echo)

    def _feed(self, chunk: bytes) -> None:
        for line in self._lines.feed(chunk):
            if isinstance(line, Overlong):
                self._overlong(line)
                continue
            try:
                text = line.decode()
                frame, end = _decode(text)
                if end != len(text):
                    raise ValueError("text after the frame")
                self._frame(frame, len(line))
            except (ValueError, TypeError, AttributeError, RecursionError):
                excerpt = line[:200].decode(errors="replace")
                self._break(ProtocolError(f"The process wrote a line that is no frame: {excerpt!r}.{_tail(self.process)}"))
                return

    def _frame(self, frame: JsonObject, size: int) -> None:
        if self.hello is None:
            self._greet(frame)
            return
        request = self._requests.get(frame.get("requestId", ""))
        event = frame.get("uiEvent")
        if event is not None:
            message = payload_of(event.get("payload") or {}, frame)
            self._event(request, message, size)  # type: ignore[arg-type]
        elif request:
            self._answer(request, frame)
        elif "requestId" not in frame:
            self._of_session(frame)

    def _event(self, request: Request | None, event: Message, size: int) -> None:
        self._last_event = event
        kind = type(event)
        if kind is m.TextPatch or kind is m.ReasoningPatch:
            if request and request.is_streamed:
                self.shown[event.raw.get("messageId", "")] = event  # type: ignore[assignment]
                self._shown_by = request
        elif kind in _OF_CALLS:
            self._calls.see(event, self.settings.tools, request.context if request else contextvars.copy_context())
        elif isinstance(event, m.StoreDegraded):
            self._store_degraded(event)
        elif isinstance(event, m.FrontendToolManifestUpdated) and not event.request_id:
            self._has_earlier_tools = bool(event.tools)
        if request is None:
            if not event.request_id:
                self._notice(event)
            return
        request.event(event, size)
        if request is not self._fed:
            if self._fed:
                self._fed.wake()
            self._fed = request
        if request.put_bytes - request.taken_bytes > PAUSE_BYTES:
            self._crowd(request)
        if not request.is_prompt and not request.is_streamed:
            # Nobody else would get it.
            self._notice(event)

    def _answer(self, request: Request, frame: JsonObject) -> None:
        if (done := frame.get("done")) is not None:
            del self._requests[request.id]
            self._stopping.discard(request)
            if request is self._shown_by:  # And not a prompt that was refused meanwhile.
                self.shown.clear()
            request.done(done.get("status", ""))
            self.flow()
        elif (error := frame.get("error")) is not None:
            request.fail(error.get("code", ""), error.get("message", ""), error.get("detail", ""))
            self._terminal(error)
        elif (snapshot := frame.get("snapshot")) is not None:
            request.snapshot = m.SnapshotFrame(snapshot)

    def _of_session(self, frame: JsonObject) -> None:
        if (snapshot := frame.get("snapshot")) is not None:
            self.initial = m.SnapshotFrame(snapshot)
            self._last_ordinal = max(self._last_ordinal, self.initial.snapshot_ordinal)
            self.session_id = frame.get("sessionId", "")
        elif (error := frame.get("error")) is not None:
            failure = error_of(error.get("code", ""), error.get("message", ""), error.get("detail", ""))
            self._terminal(error)
            if isinstance(failure, StoreError):
                self.store_error = failure
            self._notice(failure)

    def _terminal(self, error: JsonObject) -> None:
        if error.get("terminal"):
            self._fatal = error_of(error.get("code", ""), error.get("message", ""), error.get("detail", ""))

    def _greet(self, frame: JsonObject) -> None:
        try:
            self.hello = check_hello(frame)
        except ProtocolError as error:
            self._break(type(error)(f"{error}{_tail(self.process)}"))
            return
        self.session_id = frame.get("sessionId", "")
        if self._begun and not self._begun.done():
            self._begun.set_result(None)

    async def _begin(self) -> None:
        assert self._begun
        await self._begun
        # The first answers: until then a wrong command line, or a store that can't be opened, would not be noticed.
        try:
            for name in NEWER_EXTENSIONS:
                await self._enable_if_known(name)
            # Without tools of its own it takes back those of an earlier program: nobody would run them.
            if self.settings.tools or self._has_earlier_tools:
                await self.request(declareTools={"tools": [tool.descriptor() for tool in self.settings.tools.values()]})
        except ProcessEnded as ended:
            # What it was that ended it says more.
            raise self._fatal or ended from None

    async def _enable_if_known(self, name: str) -> None:
        try:
            await self.request(enable={"extensions": [name]})
        except RequestError as error:
            if error.code != "unknown_extension":
                raise

    def _on_end(self) -> None:
        if self.process:
            self._ending = self._loop.create_task(self._ended(self.process))

    async def _ended(self, process: Process) -> None:
        # The client may have been closed, and started again with another process, since the end was noticed.
        if process is not self.process or self._is_closing:
            return
        await process.end(self.settings.close_timeout)
        if process is not self.process:
            return
        status = process.status
        how = f"was killed by signal {-status}" if status is not None and status < 0 else f"ended with status {status}"
        cause = f": {self._fatal}" if self._fatal else "."
        self._fail(ProcessEnded(f"duologue {how}{cause}{_tail(process)}", status, process.stderr))

    def _break(self, failure: DuologueError) -> None:
        """What the process writes can't be read any more."""
        self._fail(failure)
        self._is_closing = True
        if self.process:
            self._ending = self._loop.create_task(self.process.end(0))

    def _fail(self, failure: DuologueError) -> None:
        if self.failure is None or isinstance(failure, Closed):
            self.failure = failure
        self._calls.end_all()
        requests, self._requests = self._requests, {}
        self._stopping.clear()
        for request in requests.values():
            request.end(self.failure)
        if self._begun and not self._begun.done():
            self._begun.set_exception(self.failure)
            self._begun.exception()

    async def _abort(self) -> str:
        """Ends a process that has not begun; returns what it wrote to standard error, as errors show it."""
        process, self.process = self.process, None
        self._is_closing = True
        # Others may have sent prompts since the attempt began.
        self._fail(self.failure or Closed("The client could not be started."))
        if process:
            try:
                await process.end(0)
            except BaseException:
                process.kill()
                raise
        return _tail(process)

    def inherit(self) -> None:
        """This is a fork of the program: the process is that of the other, and its loop does not run here."""
        if self._begun is None:
            return  # It has not been started, and may be here.
        self.is_inherited = True
        process, self.process = self.process, None
        if process:
            process.let_go()
        failure = self.failure = inherited() if process or self.failure is None else self.failure
        requests, self._requests = self._requests, {}
        self._stopping.clear()
        for request in requests.values():
            # Nobody else is here to be woken.
            request.error, request.status = failure, "failed"

    def _overlong(self, line: Overlong) -> None:
        error = TooLong(f"The server wrote a line of more than {self.settings.line_bytes_max} bytes.")
        hit = [r for name, r in self._requests.items() if line.request_id in (name, None)]
        for request in hit:
            request.error = request.error or error
            if request.is_run:
                self.abandon(request)

    def _crowd(self, request: Request) -> None:
        if request.waiting_bytes > QUEUE_BYTES_MAX:
            request.error = TooLong(f"More than {QUEUE_BYTES_MAX} bytes of events wait to be read.")
            self.abandon(request)
        self.flow()

    def flow(self) -> None:
        """Reads on, unless a stream is behind and nobody waits for anything, be it for the end of the client or of a run."""
        requests = self._requests.values()
        is_behind = any(r.waiting_bytes > PAUSE_BYTES for r in requests)
        is_ending = self._is_closing or bool(self._stopping)
        self._pause(is_behind and not is_ending and not any(r.is_awaited for r in requests))

    @property
    def has_several(self) -> bool:
        """More than one request is in flight, so that a wait for one may be for the end of a pause."""
        return len(self._requests) > 1

    def _pause(self, is_paused: bool) -> None:
        self.is_paused = is_paused
        if self.process:
            self.process.pause(is_paused)

    def _store_degraded(self, event: m.StoreDegraded) -> None:
        # The ordinals from there on are given out again.
        if event.first_missing_ordinal:
            self._last_ordinal, self._last_event = event.first_missing_ordinal - 1, None

    def _notice(self, notice: Message | DuologueError) -> None:
        if self.settings.on_notice:
            # By the loop: what it raises gets to the loop's exception handler, and not into the reading of frames.
            self._loop.call_soon(self.settings.on_notice, notice)


def _warn_of_echo() -> None:
    global _has_warned
    if _has_warned:
        return
    _has_warned = True
    try:
        warnings.warn(
            "no provider is configured, so the built-in echo engine of duologue answers with what it was asked: run "
            '`duologue profiles init`, or set the key of a provider; args=["--require-provider"] makes this an error, and '
            'engine="echo" has no warning',
            stacklevel=1,
        )
    except UserWarning as warning:
        # A program that has warnings raised, as by `-W error`, could not catch it here.
        warnings.showwarning(warning, UserWarning, __file__, 0)


def _line(body: JsonObject) -> bytes:
    """A request as its line, without the line feed. Half a character, as in a text that was cut, becomes U+FFFD."""
    try:
        # The server could not say whose it was if it had NaN, which is no JSON.
        text = json.dumps(body, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DuologueError(f"The request was not sent, as it is no JSON: {error}") from error
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


async def _all_finished(requests: Iterable[Request]) -> None:
    for request in list(requests):
        await request.finished()


def _tail(process: Process | None) -> str:
    """The end of what a process wrote to standard error, as errors show it."""
    tail = process.stderr.strip() if process else ""
    return f" It wrote to standard error: {tail[-2000:]}" if tail else ""


_OF_CALLS = (m.FrontendToolCallRequested, m.ToolApprovalRequested, m.ToolApprovalResolved, m.ToolResultReady)
_connections: weakref.WeakSet[Connection] = weakref.WeakSet()


def _after_fork() -> None:
    for connection in list(_connections):
        connection.inherit()


# A fork that held the pipes would keep the process running after the end of the program.
os.register_at_fork(after_in_child=_after_fork)
