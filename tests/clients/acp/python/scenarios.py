"""The scenarios of ../README.md, driven by the official SDK for Python.

python scenarios.py DUOLOGUE REPOSITORY [NAME...]
"""

import asyncio
import inspect
import logging
import os
import re
import shutil
import sys
import tempfile
import traceback
from contextlib import AsyncExitStack
from datetime import datetime

import acp
from acp.schema import McpServerStdio
from agent import Agent, current, fails, is_gone

BINARY, REPOSITORY, *NAMED = sys.argv[1:]
FIXTURES = f"{REPOSITORY}/tests/clients/acp/fixtures"
ECHO = ["--engine", "echo"]
SLOW = [*ECHO, "--echo-delay-ms", "20"]
TOOLS = [*ECHO, "--echo-script", f"{REPOSITORY}/examples/tool_calls.jsonl", "--mcp", f"python3 {REPOSITORY}/examples/clock.py"]
LONG_PROMPT = "word " * 500
SECONDS_MAX = 60
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="


def script(name):
    return [*ECHO, "--echo-script", f"{FIXTURES}/{name}"]


def server(name, path=f"{FIXTURES}/server.py"):
    return McpServerStdio(name=name, command="python3", args=[path, name], env=[])


async def prompt(folder, start):
    agent = await start(ECHO)
    it = await agent.open(folder)
    assert await agent.ask(it, "hello") == "Turn 1. You said: hello"
    assert agent.of(it, "session_info_update")[0].title == "hello"
    assert (await agent.ask(it, "again")).startswith("Turn 2. You said: again")
    assert not agent.of(it, "user_message_chunk")
    ids = [chunk.message_id for chunk in agent.of(it, "agent_message_chunk")]
    assert all(ids) and len(set(ids)) == 2, ids


async def thought(folder, start):
    agent = await start([*ECHO, "--echo-reasoning"])
    it = await agent.open(folder)
    await agent.ask(it, "hello")
    assert "This is turn 1" in agent.text(it, "agent_thought_chunk")
    first, answer = (agent.of(it, kind)[0] for kind in ("agent_thought_chunk", "agent_message_chunk"))
    order = [update for _, update in agent.updates]
    assert order.index(first) < order.index(answer)
    assert first.message_id and first.message_id != answer.message_id


async def allowed(folder, start):
    agent = await start(TOOLS)
    it = await agent.open(folder)
    assert "It is noon in Berlin" in await agent.ask(it, "What time is it?")
    assert [call.raw_input["city"] for call, _ in agent.questions] == ["Berlin", "Oz"]
    call, options = agent.questions[0]
    assert call.title == 'get_time: {"city":"Berlin"}' and "Berlin" in call.content[0].content.text
    assert [option.kind for option in options] == ["allow_once", "allow_always", "reject_once", "reject_always"]
    assert agent.of(it, "tool_call")[0].tool_call_id == call.tool_call_id
    assert agent.calls(it) == [["pending", "in_progress", "completed"], ["pending", "in_progress", "failed"]]
    assert agent.results(it) == ["12:00"]


async def always(folder, start):
    agent = await start(TOOLS)
    for decision, state in (("allow_always", "completed"), ("reject_always", "failed")):
        it = await agent.open(folder)
        agent.decide = lambda _, decision=decision: decision
        await agent.ask(it, "What time is it?")
        asked, before = len(agent.questions), len(agent.updates)
        await agent.ask(it, "And now?")
        assert len(agent.questions) == asked, "no more questions"
        assert agent.calls(it, before)[0][-1] == state


async def refused(folder, start):
    agent = await start(TOOLS)
    it = await agent.open(folder)
    agent.decide = lambda _: "reject_once"
    assert "It is noon" in await agent.ask(it, "What time is it?")
    assert agent.calls(it) == [["pending", "failed"], ["pending", "failed"]]
    agent.decide = lambda _: "allow_once"
    await agent.ask(it, "And now?")
    assert len(agent.questions) == 4


async def dismissed(folder, start):
    agent = await start(TOOLS)
    it = await agent.open(folder)

    async def decide(call):
        """The first question is closed by the person, and the second one by the editor, as it is withdrawn."""
        if call.raw_input["city"] != "Berlin":
            await agent.until(lambda: agent.withdrawn == 1)

    agent.decide = decide
    assert await agent.prompt(it, "What time is it?") == "cancelled"
    assert [states[-1] for states in agent.calls(it)] == ["failed", "failed"]
    agent.decide = lambda _: "allow_once"
    assert "It is noon" in await agent.ask(it, "And now?")


async def client_servers(folder, start):
    configured = f"python3 {FIXTURES}/server.py configured_tool"
    agent = await start([*script("two_tools.jsonl"), "--mcp", configured, "--approval", "auto"])
    for servers, state in (([server("client_tool")], "completed"), ([], "failed")):
        it = await agent.open(folder, servers)
        assert "Done" in await agent.ask(it, "Call both.")
        ends = [(call.title, agent.states(it, call.tool_call_id)[-1]) for call in agent.of(it, "tool_call")]
        assert ends == [("configured_tool", "completed"), ("client_tool", state)], ends
    assert not agent.questions


async def cancel(folder, start):
    slow = await start(SLOW)
    it = await slow.open(folder)
    await slow.connection.cancel(session_id=it)
    await slow.cancelled(it, LONG_PROMPT, lambda: True)
    before = len(slow.updates)
    await slow.cancelled(it, LONG_PROMPT, lambda: len(slow.of(it, "agent_message_chunk", before)) > 2)
    said = slow.text(it)
    await slow.connection.cancel(session_id=it)
    assert "hello" in await slow.ask(it, "hello")
    assert slow.text(it).startswith(said) and len(said) < len(LONG_PROMPT)
    # While questions are open, which are withdrawn, and while a tool works.
    tools = await start(TOOLS)
    it = await tools.open(folder)
    tools.decide = lambda _: tools.until(lambda: tools.withdrawn == 2)
    await tools.cancelled(it, LONG_PROMPT, lambda: len(tools.questions) == 2)
    assert tools.withdrawn == 2
    waits = await start([*script("wait.jsonl"), "--approval", "auto"])
    it = await waits.open(folder, [server("wait")])
    await waits.cancelled(it, LONG_PROMPT, lambda: any(call.status == "in_progress" for call in waits.of(it, "tool_call_update")))
    assert waits.of(it, "tool_call_update")[-1].status == "failed"


async def waiting(folder, start):
    agent = await start(SLOW)
    it = await agent.open(folder)
    assert await asyncio.gather(*(agent.prompt(it, text) for text in ("one", "two", "three"))) == ["end_turn"] * 3
    order = r"Turn 1\. You said: one.*Turn 2\. You said: two.*Turn 3\. You said: three"
    assert re.match(order, agent.text(it), re.DOTALL), agent.text(it)
    both = [asyncio.ensure_future(agent.prompt(it, text)) for text in (LONG_PROMPT, "four")]
    await agent.until(lambda: "word" in agent.text(it))
    await agent.connection.cancel(session_id=it)
    assert await asyncio.gather(*both) == ["cancelled"] * 2
    assert "You said: five" in await agent.ask(it, "five")


async def killed(folder, start):
    first = await start(SLOW)
    it = await first.open(folder)
    live = await first.ask(it, "hello")
    id = first.of(it, "agent_message_chunk")[0].message_id
    lost = asyncio.ensure_future(first.prompt(it, LONG_PROMPT))
    await first.until(lambda: "word word" in first.text(it))
    first.process.kill()
    await asyncio.gather(lost, return_exceptions=True)
    second = await start(SLOW)
    loaded = await second.connection.load_session(cwd=folder, session_id=it)
    assert current(loaded.config_options, "mode") == "ask"
    assert second.text(it, "user_message_chunk") == f"hello{LONG_PROMPT}"
    assert second.of(it, "agent_message_chunk")[0].message_id == id
    assert second.text(it).startswith(f"{live}Turn 2. You said: "), second.text(it)
    assert (await second.ask(it, "go on")).startswith("Turn 3.")


async def resume(folder, start):
    first = await start(ECHO)
    it = await first.open(folder)
    await first.ask(it, "hello")
    assert await first.end() == 0
    second = await start(ECHO)
    resumed = await second.connection.resume_session(session_id=it, cwd=folder)
    assert current(resumed.config_options, "mode") == "ask"
    said = await second.ask(it, "go on")
    assert said.startswith("Turn 2.") and "hello" in said
    assert second.text(it) == said and not second.of(it, "user_message_chunk")


async def list_(folder, start):
    agent = await start(ECHO)
    here, there = f"{folder}/here", f"{folder}/there"
    os.mkdir(here)
    os.mkdir(there)
    ids = []
    for cwd, text in ((here, "first"), (there, "second"), (here, "third")):
        ids.append(await agent.open(cwd))
        await agent.ask(ids[-1], text)
    listed = await agent.connection.list_sessions()
    assert [it.session_id for it in listed.sessions] == ids[::-1]
    found = (await agent.connection.list_sessions(cwd=here)).sessions
    assert [(it.title, it.cwd) for it in found] == [("third", here), ("first", here)]
    assert all(datetime.strptime(it.updated_at[:19], "%Y-%m-%dT%H:%M:%S").year > 2020 for it in found)


async def delete(folder, start):
    agent = await start(ECHO)
    it = await agent.open(folder)
    await agent.ask(it, "hello")
    await agent.request("session/delete", {"sessionId": it})
    await agent.request("session/delete", {"sessionId": it})
    assert not (await agent.connection.list_sessions()).sessions
    await fails(agent.connection.load_session(cwd=folder, session_id=it), -32002)


async def close(folder, start):
    agent = await start(SLOW)
    it = await agent.open(folder)
    asked = asyncio.ensure_future(agent.prompt(it, LONG_PROMPT))
    await agent.until(lambda: "word" in agent.text(it))
    await agent.connection.close_session(session_id=it)
    assert await asked == "cancelled"
    await fails(agent.prompt(it, "hello"), -32002)
    await agent.connection.load_session(cwd=folder, session_id=it)
    assert (await agent.ask(it, "hello")).startswith("Turn 2.")


async def two_sessions(folder, start):
    agent = await start(SLOW)
    one, two = await agent.open(folder), await agent.open(folder)
    first = asyncio.ensure_future(agent.prompt(one, LONG_PROMPT))
    await asyncio.sleep(0)
    assert await agent.ask(two, "hello to the other") == "Turn 1. You said: hello to the other"
    assert agent.text(one) and not first.done(), "both answer at a time"
    await agent.connection.cancel(session_id=one)
    assert await first == "cancelled"
    assert (await agent.ask(two, "still there?")).startswith("Turn 2.")


async def two_folders(folder, start):
    agent = await start([*script("two_tools.jsonl"), "--approval", "auto"])
    for name in ("here", "there"):
        path = f"{folder}/{name}"
        os.mkdir(path)
        shutil.copy(f"{FIXTURES}/server.py", f"{path}/own.py")
        it = await agent.open(path, [server("client_tool", "own.py")])
        await agent.ask(it, "Where are you?")
        assert agent.results(it) == [f"client_tool in {path}"]


async def image(folder, start):
    agent = await start(ECHO)
    assert agent.initialized.agent_capabilities.prompt_capabilities.image
    it = await agent.open(folder)
    picture = acp.image_block(PNG, "image/png")
    assert "image/png, 1x1, 70 bytes" in await agent.ask(it, [acp.text_block("look"), picture])
    assert "image/png" in await agent.ask(it, [picture])


async def resource(folder, start):
    agent = await start(ECHO)
    assert agent.initialized.agent_capabilities.prompt_capabilities.embedded_context
    it = await agent.open(folder)
    text = acp.embedded_text_resource("file:///nowhere/a.txt", "some text", mime_type="text/plain")
    said = await agent.ask(it, [acp.text_block("Read "), acp.resource_block(text)])
    assert "Attached: a.txt (text/plain, 9 bytes)" in said, said
    blob = acp.embedded_blob_resource("file:///nowhere/b.png", PNG, mime_type="image/png")
    said = await agent.ask(it, [acp.text_block("Read "), acp.resource_block(blob)])
    assert "Attached: b.png (image/png, 1x1, 70 bytes)" in said, said


async def link(folder, start):
    path = f"{folder}/notes.txt"
    with open(path, "w") as file:
        file.write("on disk\n")
    links = [acp.resource_link_block(name, f"file://{folder}/{name}") for name in ("notes.txt", "lost.txt")]
    blocks = [acp.text_block("Read "), *links]
    plain = await start(ECHO)
    said = await plain.ask(await plain.open(folder), blocks)
    assert "notes.txt (text/plain, 8 bytes)" in said
    assert "lost.txt" in said and "Attached: lost.txt" not in said, said
    editor = await start(ECHO, reads_files=True)
    editor.buffer = lambda path: "not saved yet" if path.endswith("notes.txt") else ""
    assert "notes.txt (text/plain, 13 bytes)" in await editor.ask(await editor.open(folder), blocks)
    assert path in editor.reads
    # Not every editor encodes the URI.
    path = f"{folder}/C#/a b?.txt"
    os.mkdir(f"{folder}/C#")
    with open(path, "w") as file:
        file.write("sharp\n")
    blocks = [acp.resource_link_block("a b?.txt", f"file://{path}")]
    said = await plain.ask(await plain.open(folder), blocks)
    assert "a b?.txt (text/plain, 6 bytes)" in said, said
    editor.buffer = lambda asked: "not saved yet" if asked == path else ""
    said = await editor.ask(await editor.open(folder), blocks)
    assert "a b?.txt (text/plain, 13 bytes)" in said, said


async def errors(folder, start):
    agent = await start(ECHO)
    it = await agent.open(folder)
    error = await fails(agent.prompt("no such session", "hello"), -32002)
    assert "no such session" in error.data["details"]
    await fails(agent.connection.load_session(cwd=folder, session_id="nor this"), -32002)
    await fails(agent.request("session/prompt", {"sessionId": it}), -32602)
    await fails(agent.request("session/prompt", {"prompt": [{"type": "text", "text": "hello"}]}), -32602)
    await fails(agent.prompt(it, "  \n"), -32602)
    await fails(agent.open("relative"), -32602)
    await fails(agent.connection.set_config_option(session_id=it, config_id="mode", value="yolo"), -32602)
    await fails(agent.connection.set_session_mode(session_id=it, mode_id="yolo"), -32602)
    await fails(agent.request("session/no_such_method", {}), -32601)
    await fails(agent.connection.ext_method("vendor/method", {}), -32601)
    await agent.connection.ext_notification("vendor/notification", {})
    assert (await agent.ask(it, "hello")).startswith("Turn 1.")


async def provider(folder, start):
    key = "key-that-nobody-sees"
    nowhere = ["--engine", "openai", "--base-url", "http://127.0.0.1:1/v1", "--model", "any", "--retries", "0"]
    agent = await start(nowhere, environment={"DUOLOGUE_API_KEY": key})
    it = await agent.open(folder)
    for text in ("hello", "again"):
        error = await fails(agent.prompt(it, text), -32603)
        assert list(error.data) == ["details"] and key not in f"{error}{error.data}"
    keyless = await start(["--engine", "anthropic"])
    await fails(keyless.prompt(await keyless.open(folder), "hello"), -32603)


async def cancel_request(folder, start):
    agent = await start(SLOW)
    it = await agent.open(folder)
    # The SDK numbers requests from 0: initialize, session/new, and these.
    asked = [asyncio.ensure_future(agent.prompt(it, text)) for text in (LONG_PROMPT, LONG_PROMPT, "hello")]
    await agent.until(lambda: "word" in agent.text(it))
    for id in (3, 2):
        await agent.notify("$/cancel_request", {"requestId": id})
    ends = await asyncio.gather(*asked, return_exceptions=True)
    is_cancelled = [end == "cancelled" or getattr(end, "code", None) == -32800 for end in ends]
    assert is_cancelled == [True, True, False] and ends[2] == "end_turn", ends
    assert "You said: hello" in agent.text(it)


async def options(folder, start):
    agent = await start(TOOLS)
    it = await agent.open(folder)
    for id, value in (("thought_level", "high"), ("mode", "auto")):
        changed = await agent.connection.set_config_option(session_id=it, config_id=id, value=value)
        assert current(changed.config_options, id) == value
    await agent.ask(it, "What time is it?")
    assert not agent.questions and len(agent.results(it)) == 1
    await agent.connection.set_session_mode(session_id=it, mode_id="deny")
    await agent.ask(it, "And now?")
    assert len(agent.results(it)) == 1
    await agent.ask(await agent.open(folder), "And here?")
    assert len(agent.questions) == 2, "another session has its own mode"
    assert await agent.end() == 0
    later = await start(TOOLS)
    loaded = await later.connection.load_session(cwd=folder, session_id=it)
    assert [current(loaded.config_options, id) for id in ("thought_level", "mode")] == ["high", "deny"]


async def long(folder, start):
    answer = "".join(f'{n} "quoted" \\ \t \U0001f600\n' for n in range(20_000))
    with open(f"{folder}/answer.txt", "w", encoding="utf-8") as file:
        file.write(answer)
    agent = await start([*ECHO, "--echo-answer", f"{folder}/answer.txt"])
    it = await agent.open(folder)
    assert await agent.ask(it, "Tell me everything.") == answer, "all text arrives"
    await agent.connection.close_session(session_id=it)
    before = len(agent.updates)
    await agent.connection.load_session(cwd=folder, session_id=it)
    assert agent.text(it, start=before) == answer, "and again"


async def end(folder, start):
    agent = await start([*script("wait.jsonl"), "--approval", "auto"])
    it = await agent.open(folder, [server("wait")])
    asked = asyncio.ensure_future(agent.prompt(it, "Wait."))
    await agent.until(lambda: any(call.status == "in_progress" for call in agent.of(it, "tool_call_update")))
    # The SDK closes its side of the connection first, so that it does not read the answer to the prompt.
    assert await agent.end() == 0
    await asyncio.gather(asked, return_exceptions=True)
    with open(f"{folder}/servers.pid") as file:
        pids = file.read().split()
    assert len(pids) == 1 and is_gone(pids[0]), f"still there: {pids}"


SCENARIOS = [it for it in list(globals().values()) if inspect.iscoroutinefunction(it) and it is not fails]


async def run(play):
    with tempfile.TemporaryDirectory(prefix="acp-") as name:
        folder = os.path.realpath(name)
        async with AsyncExitStack() as agents:

            async def start(args, **settings):
                return await agents.enter_async_context(Agent(BINARY, folder, args, **settings))

            await asyncio.wait_for(play(folder, start), SECONDS_MAX)


def main():
    failed = False
    for play in SCENARIOS:
        name = play.__name__.strip("_").replace("_", "-")
        if NAMED and name not in NAMED:
            continue
        try:
            asyncio.run(run(play))
            print(f"ok {name}", flush=True)
        except Exception:
            failed = True
            print(f"FAILED {name}: {traceback.format_exc()}", flush=True)
    return failed


# The SDK logs each notification that it has no handler for, as $/cancel_request.
logging.disable(logging.CRITICAL)
sys.exit(main())
