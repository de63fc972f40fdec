"""The client without `await`, for scripts and threads.

    from duologue.sync import Duologue

    with Duologue() as chat:
        print(chat.run("What is a duologue?").text)
        for event in chat.stream("Explain it to a child."):
            ...

It has the methods of `duologue.Duologue`. Functions that are no coroutines, `on_notice` among them, run in threads of their
own, and may use the client; coroutines run in its thread, where its methods are an error. What `on_notice` raises goes to
`threading.excepthook`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from . import _client, _stream
from . import messages as m
from ._client import Change
from ._connection import Connection
from ._errors import Closed, DuologueError, StoreError, inherited
from ._message import JsonObject, Message
from ._requests import Request
from ._result import Result
from ._tools import Tool

T = TypeVar("T")
END_S = 5.0


class Duologue:
    """A conversation with a model. The arguments are those of `duologue.Duologue`."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._loop: asyncio.AbstractEventLoop | None = None
        # Nothing is begun in a loop that is about to end.
        self._lock = threading.Lock()
        self._notices: _Notices | None = None
        if options.get("on_notice"):
            self._notices = _Notices(options["on_notice"])
            options = {**options, "on_notice": self._notices.put}
        self._chat = _client.Duologue(**options)

    def start(self) -> Duologue:
        """Starts the process, and checks what it is."""
        if self._is_inherited:
            raise inherited()
        if self._loop:
            raise DuologueError("The client is started already.")
        self._chat._connection.is_inherited = False
        self._loop = asyncio.new_event_loop()
        work = (self._loop, self._chat._connection)
        self._thread = threading.Thread(target=_run, args=work, name="duologue", daemon=True)
        self._thread.start()
        try:
            self._wait(self._chat.start())
        except BaseException:
            self._stop()
            raise
        return self

    def close(self) -> None:
        """Stops what runs, and ends the process."""
        if self._is_inherited:
            return  # The process is that of another program.
        self._refuse_own_thread()
        if self._loop:
            try:
                self._wait(self._chat.close())
            finally:
                self._stop()

    def __enter__(self) -> Duologue:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        loop, notices = self._loop, self._notices
        if loop and loop.is_running() and not self._is_inherited:
            closing = asyncio.run_coroutine_threadsafe(self._chat.close(), loop)
            closing.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
            if notices:
                closing.add_done_callback(lambda _: notices.end(0))

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self._chat.session_id

    @property
    def ordinal(self) -> int:
        """Ordinal of the last event that was received."""
        return self._chat.ordinal

    @property
    def stderr(self) -> str:
        """The end of what the process wrote to standard error."""
        return self._chat.stderr

    @property
    def store_error(self) -> StoreError | None:
        """What the store of this conversation has last complained of."""
        return self._chat.store_error

    @property
    def hello(self) -> m.HelloFrame:
        """What the process said of itself."""
        return self._chat.hello

    @property
    def initial(self) -> m.SnapshotFrame | None:
        """The conversation that the process began with, in a stored session."""
        return self._chat.initial

    def run(self, prompt: str, *, timeout: float | None = None, **options: Any) -> Result:
        """Asks the model. After `timeout` seconds, and at Ctrl-C, the run is stopped, and TimeoutError or
        KeyboardInterrupt raised. The other options are those of `duologue.Duologue.run`."""
        return self._wait(self._chat.run(prompt, **options), timeout)

    def stream(self, prompt: str, **options: Any) -> Stream:
        """Like `run`, as the events come. Leaving the loop stops the run."""
        return Stream(self, self._chat.stream(prompt, **options))

    def regenerate(self) -> Stream:
        """Drops the last answer, and asks its prompt again."""
        return Stream(self, self._chat.regenerate())

    def replace(self, message_id: str, prompt: str, **options: Any) -> Stream:
        """Drops the turn that the prompt `message_id` began and all after it, and asks another prompt in its place. The
        options are those of `duologue.Duologue.replace`."""
        return Stream(self, self._chat.replace(message_id, prompt, **options))

    def drop_last_turn(self) -> None:
        """Drops the last prompt and its answer."""
        self._wait(self._chat.drop_last_turn())

    def compact(self, instructions: str = "", *, keep_turns: int = 0) -> Stream:
        """Has the model sent a summary in place of the earlier turns."""
        return Stream(self, self._chat.compact(instructions, keep_turns=keep_turns))

    def cancel(self) -> bool:
        """Stops the active run, from any thread; False if there is none."""
        return self._wait(self._chat.cancel())

    def request(self, **body: JsonObject) -> Request:
        """Sends any request, and returns it when it has its `done`."""
        return self._wait(self._chat.request(**body))

    def snapshot(self, *, since: int = 0, limit: int = 0, before: int = 0) -> m.SnapshotFrame:
        """The conversation, or a part of it."""
        return self._wait(self._chat.snapshot(since=since, limit=limit, before=before))

    def history(self) -> list[m.SnapshotEntity]:
        """All messages, tool calls and results, oldest first."""
        return self._wait(self._chat.history())

    def fork(self, turns: int | None = None) -> Duologue:
        """A client, not started, of a copy of this stored conversation, or of its first turns."""
        copy = self._wait(self._chat.fork(turns))
        return Duologue(**{**self._options, **copy._kept(), "session": copy._session})

    def switch_model(
        self, *, model: str = "", profile: str = "", engine: str = "", settings: JsonObject | None = None
    ) -> None:
        """Chooses what answers from the next prompt on."""
        self._wait(self._chat.switch_model(model=model, profile=profile, engine=engine, settings=settings))

    def set_tools(self, tools: list[Callable[..., Any] | Tool]) -> None:
        """Replaces the tools, from the next call of the model on."""
        self._wait(self._chat.set_tools(tools))

    def reconnect(self) -> list[Change]:
        """Starts the process again after its end, and goes on with the stored session."""
        return self._wait(self._chat.reconnect())

    def _wait(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        try:
            if self._is_inherited:
                raise inherited()
            self._refuse_own_thread()
            with self._lock:
                if self._loop is None:
                    raise Closed("The client has not been started, or was closed: use `with`, or `start`.")
                future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except DuologueError:
            work.close()
            raise
        try:
            return future.result(timeout)
        except concurrent.futures.CancelledError:
            raise _closed() from None
        except concurrent.futures.TimeoutError:
            # Python 3.10 has a type of its own for it.
            future.cancel()
            raise TimeoutError(f"No answer within {timeout} s.") from None
        except BaseException:
            future.cancel()
            raise

    @property
    def _is_inherited(self) -> bool:
        """This is a fork of the program, in which nobody runs the loop; another thread may have had the lock."""
        return self._loop is not None and self._chat._connection.is_inherited

    def _refuse_own_thread(self) -> None:
        if self._loop and threading.current_thread() is self._thread:
            raise DuologueError(
                "A coroutine has called the client without `await` in the client's own thread, where it would wait for "
                "itself: make it a function, or use `duologue.Duologue`."
            )

    def _stop(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
        if loop:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
        if self._notices:
            self._notices.end(END_S)


class _Notices:
    """Calls `on_notice` in a thread of its own, in order: it may wait for the client."""

    def __init__(self, on_notice: Callable[[Message | DuologueError], None]) -> None:
        self._on_notice = on_notice
        self._queue: queue.SimpleQueue[Message | DuologueError | None] | None = None

    def put(self, notice: Message | DuologueError) -> None:
        """Calls `on_notice` soon."""
        waiting = self._queue
        if waiting is None:
            waiting = self._queue = queue.SimpleQueue()
            work = (waiting, self._on_notice)
            self._thread = threading.Thread(target=_give, args=work, name="duologue-notices", daemon=True)
            self._thread.start()
        waiting.put(notice)

    def end(self, seconds: float) -> None:
        """Ends the thread when `on_notice` has had all; waits for that so long."""
        waiting, self._queue = self._queue, None
        if waiting:
            waiting.put(None)
            if seconds and threading.current_thread() is not self._thread:
                self._thread.join(seconds)


def _give(
    notices: queue.SimpleQueue[Message | DuologueError | None], on_notice: Callable[[Message | DuologueError], None]
) -> None:
    while (notice := notices.get()) is not None:
        try:
            on_notice(notice)
        except BaseException as error:
            _hook(error)


def _run(loop: asyncio.AbstractEventLoop, connection: Connection) -> None:
    loop.set_exception_handler(_report)
    while True:
        try:
            loop.run_forever()
            break
        except BaseException as error:
            # SystemExit of a callback ends the loop, but others wait for it.
            _hook(error)
    try:
        loop.run_until_complete(_end(connection))
    except BaseException as error:
        _hook(error)
    loop.close()


async def _end(connection: Connection) -> None:
    """Ends what is left when the loop ends. After a `close` that was interrupted others may wait yet."""
    connection.end_now(_closed())
    await asyncio.sleep(0)
    if process := connection.process:
        await process.end(0)
        connection.process = None
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest, timeout=END_S)


def _closed() -> Closed:
    return Closed("The client was closed.")


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handles what a callback has raised: the program can't have a handler in this loop."""
    error = context.get("exception")
    if error is None:
        loop.default_exception_handler(context)
    else:
        _hook(error)


def _hook(error: BaseException) -> None:
    threading.excepthook(threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread())))


class Stream:
    """A run: iterate over it for its events. `result` is there once the run has ended."""

    def __init__(self, chat: Duologue, stream: _stream.Stream) -> None:
        self._chat = chat
        self._stream = stream

    @property
    def request_id(self) -> str:
        """The id of the request."""
        return self._stream.request_id

    @property
    def result(self) -> Result:
        """What the run came to."""
        return self._stream.result

    def wait(self) -> Result:
        """Waits for the end of the run, without its events."""
        return self._chat._wait(self._whole())

    def cancel(self) -> None:
        """Stops this run, from any thread."""
        self._chat._wait(self._stream.cancel())

    def steer(self, prompt: str) -> Result:
        """Adds a prompt to this run."""
        return self._chat._wait(self._stream.steer(prompt))

    def __iter__(self) -> Iterator[Message]:
        # Events are handed over by the thread of the client without a step of its loop for each.
        events = self._stream.__aiter__()
        request, has_news = self._stream._request, threading.Event()
        request.on_wake = has_news.set
        try:
            connection = self._chat._chat._connection
            self._chat._wait(connection.send(request))
            while not request.status or request.events:
                has_news.clear()
                request.is_awaited_elsewhere = True
                if not request.events and not request.status:
                    if connection.has_several:
                        connection.in_loop(connection.flow)
                    has_news.wait()
                request.is_awaited_elsewhere = False
                yield from request.take_all()
                if connection.is_paused:
                    connection.in_loop(connection.flow)
            events.finish()
        finally:
            events.close()

    async def _whole(self) -> Result:
        return await self._stream
