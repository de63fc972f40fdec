"""The client: owns the process and the reader of its frames."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import messages as m
from ._errors import (
    Closed,
    DuologueError,
    ProcessEnded,
    ProtocolError,
    RequestError,
    StoreError,
    TooLong,
    VersionError,
    error_of,
)
from ._lines import Lines, Overlong
from ._message import JsonObject, Message, Unknown, payload_of
from ._process import Process, find_binary
from ._requests import PAUSE_BYTES, QUEUE_BYTES_MAX, Request
from ._result import Result
from ._schema import schema_of, value_of
from ._stream import Stream
from ._tools import Approve, Tool, decide, tool_of

PROTOCOL = "pinocchio.chatapp.rpc.v1"
SERVER_VERSION_MIN = (0, 1, 0)
EXTENSIONS = (
    "approvals,client-tools,edit,history,retries,settings,steer,store,structured,switch-model,targeted-cancel,"
    "timing,tool-servers,usage"
)
# Of later servers: each is asked for by itself, and may be unknown.
NEWER_EXTENSIONS = ("tool-progress",)
LINE_BYTES_MAX = 256 * 1024 * 1024
REQUEST_BYTES_MAX = 10 * 1024 * 1024
PAGE_ENTITIES = 500
_decode = json.JSONDecoder().raw_decode
FORK_S = 60.0


@dataclass(frozen=True)
class Change:
    """An entity that is new or different after `reconnect`. `text` is the part of its text that was not shown before."""

    entity: m.SnapshotEntity
    text: str


class Duologue:
    """A conversation with a model, held by a process of its own. Use it with `async with`, in one event loop.

    - `binary`: the program; otherwise `DUOLOGUE_BIN`, the package's own, or the one on the `PATH`.
    - `store`, `session`: where the conversation is stored, and its name; the same names go on with it.
    - `engine`, `model`, `profile`, `system`: what answers, and how. `args` are further options of `duologue rpc`.
    - `tools`: functions that the model may call. `approve`: decides about calls of tool servers, with True, False, the
      reason for a no, or "ALLOW_SESSION"; without it they are denied. `approve_timeout` is its longest time.
    - `on_notice`: gets events of the session that belong to no request, and errors of its store.
    - `on_busy`: "reject" makes a prompt during a run the error `Busy`; with "queue" it waits for its turn.
    - `env` adds variables to those of this program; `cwd` is the folder of the process.
    - `start_timeout`, `close_timeout`, `cancel_timeout`: seconds. `line_bytes_max`: longest frame.
    """

    def __init__(
        self,
        *,
        binary: str | os.PathLike[str] | None = None,
        store: str | os.PathLike[str] | None = None,
        session: str | None = None,
        engine: str | None = None,
        model: str | None = None,
        profile: str | None = None,
        system: str | None = None,
        args: Sequence[str] = (),
        tools: Sequence[Callable[..., Any] | Tool] = (),
        approve: Approve | None = None,
        approve_timeout: float = 3600.0,
        on_notice: Callable[[Message | DuologueError], None] | None = None,
        on_busy: str = "reject",
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        start_timeout: float = 30.0,
        close_timeout: float = 5.0,
        cancel_timeout: float = 10.0,
        line_bytes_max: int = LINE_BYTES_MAX,
    ) -> None:
        self._options = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self._binary = binary
        self._store = store
        self._session = session
        named = {"engine": engine, "model": model, "profile": profile, "system": system, "store": store, "session": session}
        self._args = [
            f"--on-busy={on_busy}",
            "--final-snapshot=none",
            "--approval=ask",
            f"--extensions={EXTENSIONS}",
            *(f"--{name}={os.fspath(value)}" for name, value in named.items() if value is not None),
            *args,
        ]
        self._tools = {tool.name: tool for tool in map(tool_of, tools)}
        self._approve = approve
        self._approve_timeout = approve_timeout
        self._on_notice = on_notice
        self._is_queueing = on_busy == "queue"
        self._env = dict(env or {})
        self._cwd = cwd
        self._start_timeout = start_timeout
        self._close_timeout = close_timeout
        self._cancel_timeout = cancel_timeout
        self._line_bytes_max = line_bytes_max
        self._numbers = itertools.count(1)
        self._last_event: Message | None = None
        self._last_ordinal = 0
        self._shown: dict[str, m.TextPatch | m.ReasoningPatch] = {}
        self._process: Process | None = None
        self._failure: DuologueError | None = Closed("The client has not been started: use `async with`, or `start`.")
        #: What the store of this conversation has last complained of.
        self.store_error: StoreError | None = None
        #: The conversation that the process began with, in a stored session.
        self.initial: m.SnapshotFrame | None = None

    # Life

    async def start(self) -> Duologue:
        """Starts the process, and checks what it is."""
        if self._process:
            raise DuologueError("The client is started already.")
        self._loop = asyncio.get_running_loop()
        self._lines = Lines(self._line_bytes_max)
        self._requests: dict[str, Request] = {}
        self._abandoned: set[str] = set()
        self._fed: Request | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_paused = self._is_closing = False
        self._failure = None
        self._fatal: RequestError | None = None
        self._hello: m.HelloFrame | None = None
        self._session_id = ""
        self._begun = self._loop.create_future()
        command = [find_binary(self._binary), "rpc", *self._args]
        self._process = Process(command, self._env, self._cwd, self._on_bytes, self._on_end)
        try:
            await asyncio.wait_for(self._begin(), self._start_timeout)
        except (TimeoutError, asyncio.TimeoutError):
            await self._abort()
            raise ProtocolError(f"{command[0]} did not begin within {self._start_timeout:g} s.{self._tail()}") from None
        except BaseException:
            await self._abort()
            raise
        return self

    async def close(self) -> None:
        """Stops what runs, and ends the process: shutdown, then SIGTERM, then SIGKILL. Nothing is left running."""
        process = self._process
        if not process:
            return
        self._is_closing = True
        self._pause(False)
        for task in self._tasks.values():
            task.cancel()
        if self._failure is None:
            self._write({"requestId": self._id(), "cancel": {"waiting": True}})
            self._write({"requestId": self._id(), "cancel": {}})
            self._write({"requestId": self._id(), "shutdown": {}})
            with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                await asyncio.wait_for(process.drained(), self._close_timeout)
        await process.end(self._close_timeout)
        self._process = None
        self._fail(Closed("The client was closed."))

    async def reconnect(self) -> list[Change]:
        """Starts the process again after its end, and goes on with the stored session.

        Returns what has changed since the last event that this client had: entities that are new or different, with the
        part of their text that was not shown. Requests that were in flight are not sent again.
        """
        if self._store is None or self._session is None:
            raise DuologueError("Only a conversation with `store` and `session` can go on in another process.")
        if self._failure is None:
            raise DuologueError("The process runs.")
        seen = self.ordinal
        if self._process:
            await self._process.end(self._close_timeout)
            self._process = None
        await self.start()
        changed = await self.snapshot(since=seen)
        changes = [Change(entity, self._unseen(entity)) for entity in changed.entities]
        self._shown.clear()
        return changes

    async def __aenter__(self) -> Duologue:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # State

    @property
    def hello(self) -> m.HelloFrame:
        """What the process said of itself."""
        if self._hello is None:
            raise self._failure or Closed("The process has said nothing yet.")
        return self._hello

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self._session_id

    @property
    def ordinal(self) -> int:
        """Ordinal of the last event that was received."""
        return max(self._last_ordinal, self._last_event.ordinal if self._last_event else 0)

    @property
    def stderr(self) -> str:
        """The end of what the process wrote to standard error, warnings among it."""
        return self._process.stderr if self._process else ""

    # Prompts

    async def run(
        self,
        prompt: str,
        *,
        attachments: Sequence[str | os.PathLike[str] | JsonObject] = (),
        resources: Sequence[tuple[str, str]] = (),
        settings: JsonObject | None = None,
        answer: Any = None,
    ) -> Result:
        """Asks the model, and returns what the run came to. Cancelling the task stops the run.

        `attachments` are paths, URLs, or objects like `ChatAttachment`; `resources` are those of tool servers, as pairs of
        server and URI; `settings` are for this turn alone, as `model` or `temperature`. With `answer`, a type or a JSON
        Schema, `Result.value` is a value of it.
        """
        return await self.stream(prompt, attachments=attachments, resources=resources, settings=settings, answer=answer)

    def stream(
        self,
        prompt: str,
        *,
        attachments: Sequence[str | os.PathLike[str] | JsonObject] = (),
        resources: Sequence[tuple[str, str]] = (),
        settings: JsonObject | None = None,
        answer: Any = None,
    ) -> Stream:
        """Like `run`, as the events come: `async for event in chat.stream(prompt)`."""
        submit: JsonObject = {"prompt": prompt, **_sent_along(attachments, resources)}
        if settings:
            submit["settings"] = settings
        if answer is not None:
            submit["responseSchema"] = schema_of(answer)
        convert = None if answer is None else lambda value: value_of(answer, value)
        return Stream(self, self._new({"submit": submit}), convert)

    async def cancel(self) -> bool:
        """Stops the active run, whoever has started it; False if there is none."""
        return await self._cancel({})

    async def request(self, **body: JsonObject) -> Request:
        """Sends any request, as `request(enable={"extensions": ["timing"]})`, and returns it when it has its `done`."""
        request = self._new(body)
        await self._send(request)
        await request.finished()
        if request.error:
            raise request.error
        return request

    # The conversation

    async def snapshot(self, *, since: int = 0, limit: int = 0, before: int = 0) -> m.SnapshotFrame:
        """The conversation, or what changed after the event `since`, or the last `limit` entities before one."""
        body = {"sinceOrdinal": str(since), "limit": limit, "beforeOrdinal": str(before)}
        request = await self.request(snapshot=body)
        return request.snapshot or m.SnapshotFrame()

    async def history(self) -> list[m.SnapshotEntity]:
        """All messages, tool calls and results, oldest first. They are asked for in pages."""
        entities: list[m.SnapshotEntity] = []
        before = 0
        while True:
            page = (await self.snapshot(limit=PAGE_ENTITIES, before=before)).entities
            entities = page + entities
            if len(page) < PAGE_ENTITIES or not page[0].created_ordinal:
                return entities
            before = page[0].created_ordinal

    async def drop_last_turn(self) -> None:
        """Drops the last prompt and its answer."""
        await self.request(edit={"dropLastTurn": {}})

    def regenerate(self) -> Stream:
        """Drops the last answer, and asks its prompt again."""
        return Stream(self, self._new({"edit": {"regenerate": {}}}), None)

    def replace(
        self,
        message_id: str,
        prompt: str,
        *,
        attachments: Sequence[str | os.PathLike[str] | JsonObject] = (),
        resources: Sequence[tuple[str, str]] = (),
        removed_attachment_ids: Sequence[str] = (),
    ) -> Stream:
        """Drops the turn that the prompt `message_id` began and all after it, and asks another prompt in its place.

        The attachments of the earlier prompt stay, but for those that are removed.
        """
        replace: JsonObject = {"messageId": message_id, "prompt": prompt, **_sent_along(attachments, resources)}
        if removed_attachment_ids:
            replace["removedAttachmentIds"] = list(removed_attachment_ids)
        return Stream(self, self._new({"edit": {"replace": replace}}), None)

    async def fork(self, turns: int | None = None) -> Duologue:
        """A client, not started, of a copy of this stored conversation, or of its first turns."""
        if self._store is None or not self.session_id:
            raise DuologueError("Only a conversation with `store` can be copied.")
        command = [find_binary(self._binary), "sessions", "fork", "--store", os.fspath(self._store)]
        command += ["--turns", str(turns)] if turns else []
        ended = await asyncio.to_thread(
            subprocess.run,
            [*command, "--", self.session_id],
            capture_output=True,
            text=True,
            env={**os.environ, **self._env},
            cwd=self._cwd,
            stdin=subprocess.DEVNULL,
            timeout=FORK_S,
        )
        if ended.returncode:
            raise StoreError("store_failed", ended.stderr.strip())
        return Duologue(**{**self._options, "session": ended.stdout.strip()})

    async def switch_model(
        self, *, model: str = "", profile: str = "", engine: str = "", settings: JsonObject | None = None
    ) -> None:
        """Chooses what answers from the next prompt on."""
        body: JsonObject = {"model": model, "profile": profile, "engine": engine}
        await self.request(switchModel=body | ({"settings": settings} if settings else {}))

    async def set_tools(self, tools: Sequence[Callable[..., Any] | Tool]) -> None:
        """Replaces the tools, from the next call of the model on."""
        known = {tool.name: tool for tool in map(tool_of, tools)}
        await self.request(declareTools={"tools": [tool.descriptor() for tool in known.values()]})
        self._tools = known

    # Sending

    def _id(self) -> str:
        return f"py-{next(self._numbers)}"

    def _new(self, body: JsonObject) -> Request:
        return Request(self._id(), body)

    async def _send(self, request: Request) -> None:
        if self._is_run(request) and not self._is_queueing:
            await self._settle()
        if self._failure:
            raise self._failure
        line = json.dumps({"requestId": request.id, **request.body}, ensure_ascii=False).encode()
        limit = self._capability("max-request-bytes", REQUEST_BYTES_MAX)
        if len(line) > limit:
            raise TooLong(f"The request has {len(line)} bytes, and the server takes {limit}.")
        assert self._process
        self._requests[request.id] = request
        request.is_sent = True
        self._flow()
        self._process.write(line + b"\n")
        await self._process.drained()

    @staticmethod
    def _is_run(request: Request) -> bool:
        submit = request.body.get("submit")
        return "edit" in request.body or (submit is not None and "targetRequestId" not in submit)

    async def _settle(self) -> None:
        """Waits for the end of runs that nobody waits for any more: a prompt before that would be refused."""
        deadline = self._loop.time() + self._cancel_timeout if self._abandoned else 0
        for request in [self._requests[name] for name in self._abandoned if name in self._requests]:
            with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                await asyncio.wait_for(request.finished(), max(0, deadline - self._loop.time()))

    def _write(self, body: JsonObject) -> None:
        if self._process:
            self._process.write(json.dumps(body).encode() + b"\n")

    def _abandon(self, request: Request) -> None:
        """Nobody waits for the run any more."""
        request.drop_events()
        if request.is_sent and not request.status and not self._failure:
            self._abandoned.add(request.id)
            self._write({"requestId": self._id(), "cancel": {"targetRequestId": request.id}})
        self._flow()

    async def _cancel(self, body: JsonObject) -> bool:
        try:
            await self.request(cancel=body)
        except RequestError as error:
            if error.code == "no_active_request":
                return False
            raise
        return True

    def _in_loop(self, act: Callable[[], None]) -> None:
        """Calls `act` in the loop of the client, from any thread; not at all if the loop is closed."""
        loop = getattr(self, "_loop", None)
        if loop is None or loop.is_closed():
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
                self._break(ProtocolError(f"The process wrote a line that is no frame: {excerpt!r}.{self._tail()}"))
                return

    def _frame(self, frame: JsonObject, size: int) -> None:
        if self._hello is None:
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
            self._shown[event.raw.get("messageId", "")] = event  # type: ignore[assignment]
        elif kind in _ACTIONS:
            _ACTIONS[kind](self, event)
        if request:
            request.event(event, size)
            if request is not self._fed:
                if self._fed:
                    self._fed.wake()
                self._fed = request
            if request.put_bytes - request.taken_bytes > PAUSE_BYTES:
                self._crowd(request)
        elif not event.request_id:
            self._notice(event)

    def _answer(self, request: Request, frame: JsonObject) -> None:
        if (done := frame.get("done")) is not None:
            del self._requests[request.id]
            self._abandoned.discard(request.id)
            if self._is_run(request):
                self._shown.clear()
            request.done(done.get("status", ""))
            self._flow()
        elif (error := frame.get("error")) is not None:
            request.fail(error.get("code", ""), error.get("message", ""), error.get("detail", ""))
            self._terminal(error)
        elif (snapshot := frame.get("snapshot")) is not None:
            request.snapshot = m.SnapshotFrame(snapshot)

    def _of_session(self, frame: JsonObject) -> None:
        if (snapshot := frame.get("snapshot")) is not None:
            self.initial = m.SnapshotFrame(snapshot)
            self._last_ordinal = max(self._last_ordinal, self.initial.snapshot_ordinal)
            self._session_id = frame.get("sessionId", "")
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
        hello = frame.get("hello")
        if hello is None or hello.get("protocol") != PROTOCOL:
            begun = f"speaks {hello.get('protocol')}" if hello else "does not begin with `hello`"
            self._break(ProtocolError(f"The process {begun}; this package needs {PROTOCOL}.{self._tail()}"))
            return
        self._hello = m.HelloFrame(hello)
        self._session_id = frame.get("sessionId", "")
        version = self._text_capability("server-version")
        if _numbers(version) < SERVER_VERSION_MIN:
            least = ".".join(map(str, SERVER_VERSION_MIN))
            self._break(VersionError(f"duologue {version or '(unknown)'} is too old: this package needs {least} or later."))
        elif not self._begun.done():
            self._begun.set_result(None)

    async def _begin(self) -> None:
        await self._begun
        # The first answers: until then a wrong command line, or a store that can't be opened, would not be noticed.
        try:
            for name in NEWER_EXTENSIONS:
                await self._enable_if_known(name)
            if self._tools:
                await self.request(declareTools={"tools": [tool.descriptor() for tool in self._tools.values()]})
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
        task = self._loop.create_task(self._ended())
        self._tasks["end"] = task

    async def _ended(self) -> None:
        process = self._process
        if not process or self._is_closing:
            return
        await process.end(self._close_timeout)
        status = process.status
        how = f"was killed by signal {-status}" if status is not None and status < 0 else f"ended with status {status}"
        cause = f": {self._fatal}" if self._fatal else "."
        self._fail(ProcessEnded(f"duologue {how}{cause}{self._tail()}", status, process.stderr))

    def _break(self, failure: DuologueError) -> None:
        """What the process writes can't be read any more."""
        self._fail(failure)
        self._is_closing = True
        if self._process:
            self._tasks["end"] = self._loop.create_task(self._process.end(0))

    def _fail(self, failure: DuologueError) -> None:
        if self._failure is None or isinstance(failure, Closed):
            self._failure = failure
        for name, task in self._tasks.items():
            if name != "end":
                task.cancel()
        requests, self._requests = self._requests, {}
        self._abandoned.clear()
        for request in requests.values():
            request.end(self._failure)
        if not self._begun.done():
            self._begun.set_exception(self._failure)
            self._begun.exception()

    async def _abort(self) -> None:
        if self._process:
            process, self._process = self._process, None
            self._is_closing = True
            await process.end(0)
        self._failure = self._failure or Closed("The client could not be started.")

    def _overlong(self, line: Overlong) -> None:
        error = TooLong(f"The server wrote a line of more than {self._line_bytes_max} bytes.")
        hit = [r for name, r in self._requests.items() if line.request_id in (name, None)]
        for request in hit:
            request.error = request.error or error
            if self._is_run(request):
                self._abandon(request)

    def _crowd(self, request: Request) -> None:
        if request.waiting_bytes > QUEUE_BYTES_MAX:
            request.error = TooLong(f"More than {QUEUE_BYTES_MAX} bytes of events wait to be read.")
            self._abandon(request)
        self._flow()

    def _flow(self) -> None:
        """Reads on, unless a stream is behind and nobody waits for anything else."""
        requests = self._requests.values()
        self._pause(any(r.waiting_bytes > PAUSE_BYTES for r in requests) and all(r.is_streamed for r in requests))

    def _pause(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        if self._process:
            self._process.pause(is_paused)

    # Tools and approvals

    def _tool_requested(self, event: m.FrontendToolCallRequested) -> None:
        self._spawn(event.tool_call_id, self._run_tool(event))

    async def _run_tool(self, event: m.FrontendToolCallRequested) -> None:
        tool = self._tools.get(event.tool_name)
        if tool:
            result = await tool.call(event.input or {})
        else:
            result = {"status": "error", "error": f"There is no tool {event.tool_name}."}
        try:
            line = {"toolCallId": event.tool_call_id, **result}
            json.dumps(line)
        except (TypeError, ValueError) as error:
            line = {"toolCallId": event.tool_call_id, "status": "error", "error": f"The result is no JSON: {error}"}
        await self._tell({"toolResult": line})

    def _approval_requested(self, event: m.ToolApprovalRequested) -> None:
        self._spawn(event.tool_call_id + ":approval", self._decide(event))

    async def _decide(self, event: m.ToolApprovalRequested) -> None:
        decision = await decide(self._approve, event, self._approve_timeout)
        await self._tell({"approve": {"toolCallId": event.tool_call_id, **decision}})

    async def _tell(self, body: JsonObject) -> None:
        try:
            await self.request(**body)
        except TooLong as error:
            # The model has to know, and the run would wait.
            result = {"toolCallId": body["toolResult"]["toolCallId"], "status": "error", "error": str(error)}
            await self._tell({"toolResult": result})
        except DuologueError:
            pass  # The call does not wait any more.

    def _tool_over(self, event: m.ToolResultReady) -> None:
        """The run does not wait for the call any more, whatever becomes of it here."""
        if task := self._tasks.pop(event.tool_call_id, None):
            task.cancel()

    def _approval_over(self, event: m.ToolApprovalResolved) -> None:
        if task := self._tasks.pop(event.tool_call_id + ":approval", None):
            task.cancel()

    def _spawn(self, name: str, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks[name] = task
        task.add_done_callback(lambda task: self._tasks.pop(name, None) if self._tasks.get(name) is task else None)

    def _store_degraded(self, event: m.StoreDegraded) -> None:
        # The ordinals from there on are given out again.
        if event.first_missing_ordinal:
            self._last_ordinal, self._last_event = event.first_missing_ordinal - 1, None

    # Small things

    def _notice(self, notice: Message | DuologueError) -> None:
        if self._on_notice:
            self._on_notice(notice)

    def _unseen(self, entity: m.SnapshotEntity) -> str:
        payload = entity.payload
        text = payload.text if isinstance(payload, m.MessageEntity) else ""
        patch = self._shown.get(entity.id)
        if patch is None:
            return text
        is_piece = patch.mode == m.StreamPatchMode.CHAT_STREAM_PATCH_MODE_APPEND
        shown = (patch.offset if is_piece else 0) + len(patch.text.encode())
        return text.encode()[shown:].decode(errors="replace")

    def _tail(self) -> str:
        tail = self.stderr.strip()
        return f" It wrote to standard error: {tail[-2000:]}" if tail else ""

    def _text_capability(self, name: str) -> str:
        words = self._hello.capabilities if self._hello else []
        return next((word.partition("=")[2] for word in words if word.startswith(name + "=")), "")

    def _capability(self, name: str, default: int) -> int:
        text = self._text_capability(name)
        return int(text) if text.isdecimal() else default


_ACTIONS: dict[type[Message], Callable[[Duologue, Any], None]] = {
    m.FrontendToolCallRequested: Duologue._tool_requested,
    m.ToolApprovalRequested: Duologue._approval_requested,
    m.ToolApprovalResolved: Duologue._approval_over,
    m.ToolResultReady: Duologue._tool_over,
    m.StoreDegraded: Duologue._store_degraded,
}


def _sent_along(
    attachments: Sequence[str | os.PathLike[str] | JsonObject], resources: Sequence[tuple[str, str]]
) -> JsonObject:
    """The members of what goes with a prompt."""
    members: JsonObject = {}
    if attachments:
        members["attachments"] = [item if isinstance(item, dict) else {"url": os.fspath(item)} for item in attachments]
    if resources:
        members["resources"] = [{"server": server, "uri": uri} for server, uri in resources]
    return members


def _numbers(version: str) -> tuple[int, ...]:
    numbers = version.partition("-")[0].partition("+")[0].split(".")
    return tuple(int(number) for number in numbers) if all(number.isdecimal() for number in numbers) else ()
