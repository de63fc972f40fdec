"""The client, as a program uses it."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from . import messages as m
from ._connection import Connection
from ._errors import Closed, DuologueError, StoreError
from ._message import JsonObject, Message
from ._process import not_run
from ._requests import Request
from ._result import Result
from ._schema import schema_of, value_of
from ._settings import Settings
from ._stream import Stream
from ._tools import Approve, Tool, tool_of

EXTENSIONS = (
    "approvals,client-tools,edit,history,retries,settings,steer,store,structured,switch-model,targeted-cancel,"
    "timing,tool-servers,usage"
)
LINE_BYTES_MAX = 256 * 1024 * 1024
PAGE_ENTITIES = 500
# Kinds of entities that come after the others of a page, and don't count for its limit.
APART = frozenset(("Compaction", "ToolApproval"))
FORK_S = 60.0
Attachment = Union[str, "os.PathLike[str]", JsonObject]
Attachments = Union[Attachment, Sequence[Attachment]]
# What the server takes for a URL, and not for a path with a colon.
_URL = re.compile(r"(?:https?|data|file):|[a-z0-9+.-]+://", re.IGNORECASE)


@dataclass(frozen=True)
class Change:
    """An entity that is new or different after `reconnect`. `text` is the part of its text that no stream has shown."""

    entity: m.SnapshotEntity
    text: str


@dataclass(frozen=True)
class Seen:
    """What the program had of the conversation when its process ended: an ordinal, and the last patch of each text."""

    ordinal: int
    shown: dict[str, m.TextPatch | m.ReasoningPatch]

    def unseen(self, entity: m.SnapshotEntity) -> str:
        """The part of an entity's text that was not shown."""
        payload = entity.payload
        text = payload.text if isinstance(payload, m.MessageEntity) else ""
        patch = self.shown.get(entity.id)
        if patch is None:
            return text
        # A lean patch has no mode then.
        pieces = ("", m.StreamPatchMode.CHAT_STREAM_PATCH_MODE_UNSPECIFIED, m.StreamPatchMode.CHAT_STREAM_PATCH_MODE_APPEND)
        is_piece = patch.mode in pieces
        shown = (patch.offset if is_piece else 0) + len(patch.text.encode())
        return text.encode()[shown:].decode(errors="replace")


class Duologue:
    """A conversation with a model, held by a process of its own. Use it with `async with`, in one event loop.

    - `binary`: the program; otherwise `DUOLOGUE_BIN`, the package's own, or the one on the `PATH`.
    - `store`, `session`: where the conversation is stored, otherwise where `DUOLOGUE_STORE` says, and its name; the same
      names go on with it.
    - `engine`, `model`, `profile`, `system`: what answers, and how. `args` are further options of `duologue rpc`. Where no
      provider is configured the built-in engine answers, and a warning (`warnings`) says so; `args=["--require-provider"]`
      makes that a `ConfigError`.
    - `tools`: functions that the model may call. `approve`: decides about calls of tool servers, with True, False, the
      reason for a no, or "ALLOW_SESSION"; without it they are denied. `approve_timeout` is its longest time.
    - `on_notice`: gets events of the session that belong to no request, or to one that has no result and is no stream,
      as `ModelSwitched`, and errors of its store. What it raises goes to the exception handler of the loop, and the
      conversation goes on.
    - `on_busy`: "reject" makes a prompt during a run the error `Busy`; with "queue" it waits for its turn.
    - `env` adds variables to those of this program, of which `DUOLOGUE_EVENTS` and `DUOLOGUE_PATCH_MODE` are left out;
      `cwd` is the folder of the process, by default that which this program has at the first start, also for a process
      that is started later.
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
        self._session = session
        self._seen: Seen | None = None
        # Gets what has changed, or None if the attempt fails.
        self._reconnecting: asyncio.Future[list[Change] | None] | None = None
        named = {"engine": engine, "model": model, "profile": profile, "system": system, "store": store, "session": session}
        options = [f"--{name}={os.fspath(value)}" for name, value in named.items() if value is not None]
        always = [f"--on-busy={on_busy}", "--final-snapshot=none", "--approval=ask", f"--extensions={EXTENSIONS}"]
        self._connection = Connection(
            Settings(
                binary=binary,
                args=[*always, *options, *args],
                named_store=store,
                env=dict(env or {}),
                cwd=cwd,
                tools={tool.name: tool for tool in map(tool_of, tools)},
                approve=approve,
                approve_timeout=approve_timeout,
                on_notice=on_notice,
                is_queueing=on_busy == "queue",
                start_timeout=start_timeout,
                close_timeout=close_timeout,
                cancel_timeout=cancel_timeout,
                line_bytes_max=line_bytes_max,
            )
        )

    # Life

    async def start(self) -> Duologue:
        """Starts the process, and checks what it is."""
        await self._connection.start()
        self._seen = None
        return self

    async def close(self) -> None:
        """Stops what runs, and ends the process: shutdown, then SIGTERM, then SIGKILL. Nothing is left running."""
        await self._connection.close()

    async def reconnect(self) -> list[Change]:
        """Starts the process again after its end, and goes on with the stored session.

        Returns what has changed since the last event that this client had: entities that are new or different, with the
        part of their text that no stream has shown. Requests that were in flight are not sent again. If it fails, the next
        attempt gives the same; with a `close` meanwhile it fails as `Closed`. One that is called while another is under
        way waits for that, and returns the same; if that fails, it is the next attempt.
        """
        if self._connection.settings.store is None or self._session is None:
            raise DuologueError("Only a conversation with a store and `session` can go on in another process.")
        closes = self._connection.closes
        while self._reconnecting:
            # Others wait for it as well.
            if (changes := await asyncio.shield(self._reconnecting)) is not None:
                return list(changes)
        attempt = self._reconnecting = asyncio.get_running_loop().create_future()
        changes = None
        try:
            changes = await self._go_on(closes)
            return changes
        finally:
            self._reconnecting = None
            attempt.set_result(changes)

    async def _go_on(self, closes: int) -> list[Change]:
        """Starts another process, unless there were more calls of `close`; returns what has changed."""
        connection = self._connection
        if connection.failure is None and self._seen is None:
            raise DuologueError("The process runs.")
        # The other process begins with a snapshot that has a later ordinal, and may end before it has said what changed.
        seen = self._seen = self._seen or Seen(self.ordinal, dict(connection.shown))
        if connection.failure is not None:
            await connection.restart(closes)
        changed = await self.snapshot(since=seen.ordinal)
        self._seen = None
        connection.shown.clear()
        return [Change(entity, seen.unseen(entity)) for entity in changed.entities]

    async def __aenter__(self) -> Duologue:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # State

    @property
    def hello(self) -> m.HelloFrame:
        """What the process said of itself."""
        if self._connection.hello is None:
            raise self._connection.failure or Closed("The process has said nothing yet.")
        return self._connection.hello

    @property
    def initial(self) -> m.SnapshotFrame | None:
        """The conversation that the process began with, in a stored session."""
        return self._connection.initial

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self._connection.session_id

    @property
    def ordinal(self) -> int:
        """Ordinal of the last event that was received."""
        return self._connection.ordinal

    @property
    def store_error(self) -> StoreError | None:
        """What the store of this conversation has last complained of."""
        return self._connection.store_error

    @property
    def stderr(self) -> str:
        """The end of what the process wrote to standard error, warnings among it."""
        return self._connection.stderr

    # Prompts

    async def run(
        self,
        prompt: str,
        *,
        attachments: Attachments = (),
        resources: Sequence[tuple[str, str]] = (),
        settings: JsonObject | None = None,
        answer: Any = None,
    ) -> Result:
        """Asks the model, and returns what the run came to. Cancelling the task stops the run.

        `attachments` are paths, URLs, or objects like `ChatAttachment`, or one of these; `resources` are those of tool
        servers, as pairs of server and URI; `settings` are for this turn alone, as `model` or `temperature`. With
        `answer`, a type or a JSON Schema, `Result.value` is a value of it.
        """
        return await self.stream(prompt, attachments=attachments, resources=resources, settings=settings, answer=answer)

    def stream(
        self,
        prompt: str,
        *,
        attachments: Attachments = (),
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
        return self._stream({"submit": submit}, convert)

    async def cancel(self) -> bool:
        """Stops the active run, whoever has started it; False if there is none."""
        return await self._connection.cancel()

    async def request(self, **body: JsonObject) -> Request:
        """Sends any request, as `request(enable={"extensions": ["timing"]})`, and returns it when it has its `done`."""
        return await self._connection.request(**body)

    # The conversation

    async def snapshot(self, *, since: int = 0, limit: int = 0, before: int = 0) -> m.SnapshotFrame:
        """The conversation, or what changed after the event `since`, or the last `limit` entities before one."""
        body = {"sinceOrdinal": str(since), "limit": limit, "beforeOrdinal": str(before)}
        request = await self.request(snapshot=body)
        return request.snapshot or m.SnapshotFrame()

    async def history(self) -> list[m.SnapshotEntity]:
        """All messages, tool calls and results, oldest first, and then compactions and calls that wait for approval.

        They are asked for in pages.
        """
        entities: list[m.SnapshotEntity] = []
        apart: list[m.SnapshotEntity] = []
        known: set[tuple[str, str]] = set()
        before = 0
        while True:
            page = (await self.snapshot(limit=PAGE_ENTITIES, before=before)).entities
            counted = [entity for entity in page if entity.kind not in APART]
            entities = counted + entities
            # Several pages may have one of these.
            added = [entity for entity in page if entity.kind in APART and (entity.kind, entity.id) not in known]
            known.update((entity.kind, entity.id) for entity in added)
            apart = added + apart
            if len(counted) < PAGE_ENTITIES or not counted[0].created_ordinal:
                return entities + apart
            before = counted[0].created_ordinal

    async def drop_last_turn(self) -> None:
        """Drops the last prompt and its answer."""
        await self.request(edit={"dropLastTurn": {}})

    def regenerate(self) -> Stream:
        """Drops the last answer, and asks its prompt again.

        The answer is text: the type that the prompt was asked with is not asked for again, nor its settings. For these,
        `drop_last_turn` and `run`.
        """
        return self._stream({"edit": {"regenerate": {}}})

    def replace(
        self,
        message_id: str,
        prompt: str,
        *,
        attachments: Attachments = (),
        resources: Sequence[tuple[str, str]] = (),
        removed_attachment_ids: Sequence[str] = (),
    ) -> Stream:
        """Drops the turn that the prompt `message_id` began and all after it, and asks another prompt in its place.

        The attachments of the earlier prompt stay, but for those that are removed. The answer is text, as that of
        `regenerate` is.
        """
        replace: JsonObject = {"messageId": message_id, "prompt": prompt, **_sent_along(attachments, resources)}
        if removed_attachment_ids:
            replace["removedAttachmentIds"] = list(removed_attachment_ids)
        return self._stream({"edit": {"replace": replace}})

    def compact(self, instructions: str = "", *, keep_turns: int = 0) -> Stream:
        """Has the model sent a summary in place of the earlier turns; `history` stays as it is.

        `instructions` say what the summary should keep; the last `keep_turns` are sent as they are, by default as many
        as have room. It is stopped like a run, and has no text: await it for its status, or iterate for `Compacted` and
        what else it says, which `on_notice` gets otherwise.
        """
        return self._stream({"compact": {"instructions": instructions, "keepTurns": keep_turns}})

    async def fork(self, turns: int | None = None) -> Duologue:
        """A client, not started, of a copy of this stored conversation, or of its first turns."""
        settings = self._connection.settings
        if settings.store is None or not self.session_id:
            raise DuologueError("Only a conversation with a store can be copied.")
        command = [settings.program, "sessions", "fork", "--store", settings.store]
        command += ["--turns", str(turns)] if turns else []
        try:
            ended = await asyncio.to_thread(
                subprocess.run,
                [*command, "--", self.session_id],
                capture_output=True,
                text=True,
                env={**os.environ, **settings.env},
                cwd=settings.cwd,
                stdin=subprocess.DEVNULL,
                timeout=FORK_S,
            )
        except OSError as error:
            raise not_run(settings.program, settings.cwd, error) from error
        except subprocess.TimeoutExpired:
            raise StoreError("store_failed", f"the copy took longer than {FORK_S:g} s") from None
        if ended.returncode:
            raise StoreError("store_failed", ended.stderr.strip())
        return Duologue(**{**self._options, **self._kept(), "session": ended.stdout.strip()})

    def _kept(self) -> dict[str, Any]:
        """The options of a copy that are others than those of the beginning."""
        settings = self._connection.settings
        return {"binary": settings.program or settings.binary, "cwd": settings.cwd, "tools": list(settings.tools.values())}

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
        self._connection.settings.tools = known

    def _stream(self, body: JsonObject, convert: Callable[[Any], Any] | None = None) -> Stream:
        return Stream(self._connection, self._connection.new(body), convert)


def _sent_along(attachments: Attachments, resources: Sequence[tuple[str, str]]) -> JsonObject:
    """The members of what goes with a prompt."""
    members: JsonObject = {}
    if isinstance(attachments, (str, os.PathLike, dict)):
        attachments = [attachments]
    if attachments:
        members["attachments"] = [_attachment(item) for item in attachments]
    if resources:
        members["resources"] = [{"server": server, "uri": uri} for server, uri in resources]
    return members


def _attachment(item: Attachment) -> JsonObject:
    """An attachment whose path is one from the folder of this program, which the process may have left or never had."""
    if isinstance(item, dict):
        url = item.get("url")
        return {**item, **_attachment(url)} if isinstance(url, (str, os.PathLike)) else item
    path = os.fspath(item)
    is_address = isinstance(item, str) and (_URL.match(item) or not item.strip())
    return {"url": path if is_address else os.path.abspath(path)}
