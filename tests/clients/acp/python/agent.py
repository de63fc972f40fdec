"""A `duologue acp` process behind the official SDK, with what its client has seen."""

import asyncio
import inspect
from contextlib import AsyncExitStack
from signal import SIGKILL

import acp
from acp.connection import StreamDirection
from acp.schema import ClientCapabilities, FileSystemCapabilities


class Agent:
    """The client side of one process: an asynchronous context, whose end is the end of the input."""

    def __init__(self, binary, folder, args, reads_files=False, environment=None):
        self.command = [binary, "acp", *args]
        # The SDK passes only some variables on.
        self.environment = {"HOME": folder, "XDG_DATA_HOME": f"{folder}/data", **(environment or {})}
        self.folder, self.reads_files = folder, reads_files
        self.updates, self.questions, self.reads, self.withdrawn = [], [], [], 0
        self.decide = lambda question: "allow_once"
        self.buffer = None
        self._changed = asyncio.Condition()

    async def __aenter__(self):
        self._open = AsyncExitStack()
        spawned = acp.spawn_agent_process(
            self, *self.command, env=self.environment, cwd=self.folder, transport_kwargs={"stderr": None}, observers=[self._saw]
        )
        self.connection, self.process = await self._open.enter_async_context(spawned)
        files = FileSystemCapabilities(read_text_file=self.reads_files)
        capabilities = ClientCapabilities(fs=files)
        self.initialized = await self.connection.initialize(protocol_version=1, client_capabilities=capabilities)
        assert self.initialized.protocol_version == 1
        return self

    async def __aexit__(self, *error):
        status = await self.end()
        assert error[0] or status in (0, -SIGKILL), f"exit status {status}"

    async def end(self):
        """Ends the input; gives the exit status, which is not 0 if the SDK had to end the process."""
        await self._open.aclose()
        return self.process.returncode

    # What the process asks and says.

    async def session_update(self, session_id, update, **_):
        await self._note(self.updates, (session_id, update))

    async def request_permission(self, session_id, tool_call, options, **_):
        await self._note(self.questions, (tool_call, options))
        decision = self.decide(tool_call)
        decision = await decision if inspect.isawaitable(decision) else decision
        return {"outcome": {"outcome": "selected", "optionId": decision} if decision else {"outcome": "cancelled"}}

    async def read_text_file(self, session_id, path, **_):
        await self._note(self.reads, path)
        return {"content": self.buffer(path)}

    async def ext_notification(self, method, params):
        raise AssertionError(f"no such notification was announced: {method}")

    async def _saw(self, event):
        """The SDK has no handler for a request that is withdrawn."""
        if event.direction is StreamDirection.INCOMING and "method" in event.message:
            async with self._changed:
                self.withdrawn += event.message["method"] == "$/cancel_request"
                self._changed.notify_all()

    async def _note(self, items, item):
        async with self._changed:
            items.append(item)
            self._changed.notify_all()

    async def until(self, found):
        """Waits for something that the process says."""
        async with self._changed:
            await self._changed.wait_for(found)

    # What the client asks.

    async def open(self, cwd, servers=()):
        return (await self.connection.new_session(cwd=cwd, mcp_servers=list(servers))).session_id

    async def prompt(self, session_id, prompt):
        blocks = [acp.text_block(prompt)] if isinstance(prompt, str) else prompt
        return (await self.connection.prompt(session_id=session_id, prompt=blocks)).stop_reason

    async def ask(self, session_id, prompt):
        """Gives the text of the answer."""
        before = len(self.updates)
        assert await self.prompt(session_id, prompt) == "end_turn"
        return self.text(session_id, start=before)

    async def cancelled(self, session_id, prompt, when):
        """Sends a prompt and cancels it at some moment."""
        asked = asyncio.ensure_future(self.prompt(session_id, prompt))
        await asyncio.sleep(0)
        await self.until(when)
        await self.connection.cancel(session_id=session_id)
        assert await asked == "cancelled"

    async def request(self, method, params):
        """A request of which the SDK has no function, or whose parameters are wrong."""
        return await self.connection._conn.send_request(method, params)

    async def notify(self, method, params):
        await self.connection._conn.send_notification(method, params)

    # What the client has seen.

    def of(self, session_id, kind, start=0):
        return [it for owner, it in self.updates[start:] if owner == session_id and it.session_update == kind]

    def text(self, session_id, kind="agent_message_chunk", start=0):
        return "".join(it.content.text for it in self.of(session_id, kind, start))

    def calls(self, session_id, start=0):
        """The states of each tool call, in their order."""
        ids = [it.tool_call_id for it in self.of(session_id, "tool_call", start)]
        return [self.states(session_id, id) for id in ids]

    def states(self, session_id, tool_call_id):
        both = [it for owner, it in self.updates if owner == session_id and it.session_update in ("tool_call", "tool_call_update")]
        return [it.status for it in both if it.tool_call_id == tool_call_id and it.status]

    def results(self, session_id):
        done = [it for it in self.of(session_id, "tool_call_update") if it.status == "completed"]
        return [it.content[0].content.text for it in done]


def current(options, id):
    return next(it.current_value for it in options if it.id == id)


async def fails(awaitable, code):
    try:
        result = await awaitable
    except acp.RequestError as error:
        assert error.code == code, f"{error.code}: {error}"
        return error
    raise AssertionError(f"no error: {result}")


def is_gone(pid):
    """Whether a process has ended, also if nobody has asked for its status yet."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return " Z " in file.read()
    except FileNotFoundError:
        return True
