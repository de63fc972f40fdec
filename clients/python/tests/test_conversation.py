"""Conversations with the real program."""

import asyncio
import contextlib
import contextvars
import dataclasses
import datetime
import decimal
import enum
import functools
import json
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
import typing
import unittest
import uuid
import warnings
from collections.abc import Sequence
from typing import Literal, Union
from unittest import mock

import duologue
from duologue import Duologue, TextPatch, messages
from tests.support import (
    BINARY,
    CLOCK,
    DIFFICULT,
    ROOT,
    WAIT_S,
    WITHOUT_PROVIDER,
    difficult,
    pid_of,
    real,
    script,
    unreachable,
)

CALLS = [
    {"text": "Let me look.", "tools": [{"name": "get_time", "arguments": {"city": "Berlin"}}]},
    {"text": "It is noon."},
]


def notice_and_done(request_id):
    """What a server may write at once: an event that belongs to no request, and the end of a request."""
    payload = {"@type": "type.googleapis.com/example.mood.v9.MoodChanged"}
    frames = [{"uiEvent": {"ordinal": "1", "payload": payload}}, {"requestId": request_id, "done": {"status": "ok"}}]
    return b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)


class Conversation(unittest.IsolatedAsyncioTestCase):
    async def test_a_run_has_a_result(self):
        async with real("--echo-reasoning") as chat:
            result = await chat.run("hello")
        self.assertEqual((result.status, result.text), ("ok", "Turn 1. You said: hello"))
        self.assertEqual(result.reasoning, "This is turn 1. I repeat what I was told.")
        self.assertEqual((result.finish_class, result.usage.uncounted_calls), ("completed", 1))

    async def test_a_stream_has_typed_events_and_ends_at_its_done(self):
        async with real() as chat:
            stream = chat.stream("hello")
            events = [event async for event in stream]
            texts = [event.text for event in events if isinstance(event, TextPatch)]
            self.assertEqual("".join(texts), "Turn 1. You said: hello")
            self.assertIsInstance(events[0], messages.UserMessageAccepted)
            self.assertIsInstance(events[-1], messages.RunFinished)
            self.assertEqual([event.ordinal for event in events][:3], [1, 2, 3])
            self.assertEqual({event.request_id for event in events}, {stream.request_id})
            self.assertEqual(stream.result.text, "Turn 1. You said: hello")

    async def test_events_of_the_environment_are_not_filtered(self):
        with mock.patch.dict(os.environ, DUOLOGUE_EVENTS="ChatRun*", DUOLOGUE_PATCH_MODE="snapshot"):
            async with real("--echo-delay-ms=1") as chat:
                texts = [event.text async for event in chat.stream("hello") if isinstance(event, TextPatch)]
        self.assertEqual("".join(texts), "Turn 1. You said: hello")

    async def test_text_with_half_a_character_is_sent(self):
        def get():
            return {"caf\udce9": "\ud83d"}

        calls = [{"tools": [{"name": "get", "arguments": {}}]}, {"text": "I see."}]
        with script(*calls) as option:
            async with real(option, tools=[get]) as chat:
                call = (await asyncio.wait_for(chat.run("x"), WAIT_S)).tool_calls[0]
        self.assertEqual((call.status, call.result), ("success", '{"caf\ufffd":"\ufffd"}'))
        async with real() as chat:
            # Two halves are one.
            result = await chat.run("hello \ud83d \ud83d\ude00")
        self.assertEqual(result.text, "Turn 1. You said: hello \ufffd \U0001f600")

    async def test_requests_in_flight_get_their_own_frames(self):
        async with real("--echo-delay-ms=1", on_busy="queue") as chat:
            texts, snapshot = [], None
            first = chat.stream("one")
            async for event in first:
                if snapshot is None and isinstance(event, TextPatch):
                    second = asyncio.create_task(chat.run("two"))
                    snapshot = await chat.snapshot()
                if isinstance(event, TextPatch):
                    texts.append(event.text)
            self.assertEqual("".join(texts), "Turn 1. You said: one")
            self.assertEqual(snapshot.entities[0].payload.text, "one")
            self.assertEqual((await second).text.splitlines()[0], "Turn 2. You said: two")

    async def test_leaving_a_stream_stops_its_run_and_the_next_prompt_works(self):
        async with real("--echo-delay-ms=20") as chat:
            stream = chat.stream("one " * 1000)
            async for event in stream:
                if isinstance(event, TextPatch):
                    break
            result = await chat.run("two")
            self.assertEqual(result.text.splitlines()[0], "Turn 2. You said: two")
            statuses = [entity.payload.status for entity in await chat.history()]
            self.assertEqual(statuses, ["accepted", "stopped", "accepted", "finished"])

    async def test_a_cancelled_task_stops_its_run(self):
        async with real("--echo-delay-ms=60000") as chat:
            task = asyncio.create_task(chat.run("one"))
            while chat.ordinal < 3:
                await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            # The next prompt is not refused; it is one that takes too long.
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(chat.run("two"), 0.05)

    async def test_a_cancel_is_a_status_and_no_error(self):
        async with real("--echo-delay-ms=60000", on_busy="queue") as chat:
            first, second = chat.stream("one"), chat.stream("two")
            waiting = asyncio.create_task(second._finish())
            async for event in first:
                if isinstance(event, messages.ProviderCallStarted):
                    await second.cancel()
                    self.assertEqual((await waiting).status, "stopped")
                    await first.cancel()
            self.assertEqual(first.result.status, "stopped")
            self.assertFalse(await chat.cancel())

    async def test_steering_joins_the_run(self):
        steering = []

        async def get_time(city):
            steering.append(asyncio.create_task(stream.steer("And in Oz?")))
            await chat.snapshot()  # The server has read the prompt before it answers this.
            return "12:00"

        with script(*CALLS) as option:
            async with real(option, tools=[get_time]) as chat:
                stream = chat.stream("What time is it?")
                await stream
                self.assertTrue((await steering[0]).joined)
                prompts = [e.payload.text for e in await chat.history() if getattr(e.payload, "role", "") == "user"]
                self.assertEqual(prompts, ["What time is it?", "And in Oz?"])

    async def test_a_failed_run_raises_after_its_events(self):
        async with unreachable() as chat:
            events = []
            with self.assertRaises(duologue.ProviderError) as caught:
                async for event in chat.stream("hello"):
                    events.append(event)
        self.assertIsInstance(events[-1], messages.RunFailed)
        self.assertEqual((caught.exception.error_class, caught.exception.is_retryable), ("network", True))


class Tools(unittest.IsolatedAsyncioTestCase):
    async def test_tools_are_functions(self):
        @duologue.tool(description="The local time in a city.")
        async def get_time(city: str, unit: Literal["h", "min"] = "h") -> str:
            return {"Berlin": "12:00"}[city]

        with script(*CALLS) as option:
            async with real(option, tools=[get_time]) as chat:
                result = await chat.run("What time is it?")
        self.assertEqual(result.tool_calls[0].result, '{"result":"12:00"}')
        self.assertEqual((result.text, result.texts), ("It is noon.", ["Let me look.", "It is noon."]))
        schema = get_time.__duologue_tool__.parameters
        self.assertEqual(schema["properties"], {"city": {"type": "string"}, "unit": {"enum": ["h", "min"]}})
        self.assertEqual(schema["required"], ["city"])

    async def test_a_tool_that_raises_or_takes_too_long_is_a_result(self):
        def broken(city):
            raise KeyError(city)

        @duologue.tool(timeout=0.01)
        async def slow(city):
            await asyncio.sleep(3600)

        def unreadable(city):
            return {"value": object()}

        class WithoutText(Exception):
            def __str__(self):
                return self.args[0]["detail"]

        class WithoutItems(dict):
            def items(self):
                raise WithoutText("x")

        def wordless(city):
            raise WithoutText("x")

        def empty(city):
            return WithoutItems(a=1)

        expected = {
            "broken": "KeyError: 'x'",
            "slow": "The tool took longer than 0.01 s.",
            "wordless": "WithoutText: (it can't be shown as text)",
            "empty": "The result is no JSON: (it can't be shown as text)",
        }
        names = [*expected, "unreadable"]
        calls = {"tools": [{"name": name, "arguments": {"city": "x"}} for name in names]}
        with script(calls, {"text": "I see."}) as option:
            async with real(option, tools=[broken, slow, wordless, empty, unreadable]) as chat:
                result = await asyncio.wait_for(chat.run("x"), WAIT_S)
        results = {call.name: call for call in result.tool_calls}
        self.assertEqual({call.status for call in result.tool_calls}, {"error"})
        for name, text in expected.items():
            self.assertEqual(results[name].result, text)
        self.assertIn("The result is no JSON", results["unreadable"].result)

    async def result_of(self, function):
        """What the model reads of a call of the tool."""
        calls = {"tools": [{"name": duologue._tools.tool_of(function).name, "arguments": {}}]}
        with script(calls, {"text": "I see."}) as option:
            async with real(option, tools=[function]) as chat:
                call = (await asyncio.wait_for(chat.run("x"), WAIT_S)).tool_calls[0]
        return call.status, call.result

    async def test_what_a_tool_gives_is_what_its_json_is(self):
        class Names(dict):
            pass

        at = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.timezone.utc)
        values = [
            ([1], '{"result":[1]}'),
            (None, '{"result":null}'),
            ((1, "a"), '{"result":[1,"a"]}'),
            (Names(a=1), '{"a":1}'),
            (Cat("Tom"), '{"name":"Tom"}'),
            ([Cat("Tom"), {"cat": Cat("Tim")}], '{"result":[{"name":"Tom"},{"cat":{"name":"Tim"}}]}'),
            (Color.RED, '{"result":"red"}'),
            ({Color.RED}, '{"result":["red"]}'),
            (at, '{"result":"2026-01-02T03:04:00+00:00"}'),
            (at.date(), '{"result":"2026-01-02"}'),
            (decimal.Decimal("1.50"), '{"result":"1.50"}'),
            (uuid.UUID(int=7), '{"result":"00000000-0000-0000-0000-000000000007"}'),
            (pathlib.Path("/a"), '{"result":"/a"}'),
        ]
        with contextlib.suppress(ImportError):
            from pydantic import create_model

            model = create_model("Model", at=(datetime.date, ...))
            values.append((model(at=at.date()), '{"at":"2026-01-02"}'))
        for value, expected in values:

            @duologue.tool(name="get")
            def get():
                return value

            self.assertEqual(await self.result_of(get), ("success", expected))

    async def test_what_a_tool_raises_of_all_kinds_is_a_result(self):
        errors = {
            "RuntimeError: coroutine raised StopIteration": StopIteration(),
            "TimeoutError: of its own": TimeoutError("of its own"),
            "CancelledError: of its own": asyncio.CancelledError("of its own"),
            "OSError: caf\\udce9": OSError("caf\udce9"),
            "SystemExit: 2": SystemExit(2),
        }
        for text, error in errors.items():

            @duologue.tool(name="in_thread", timeout=None)
            def in_thread():
                raise error

            @duologue.tool(name="in_loop", timeout=None)
            async def in_loop():
                raise error

            for function in (in_thread, in_loop):
                with self.subTest(text, function=function):
                    self.assertEqual(await self.result_of(function), ("error", text))

    async def test_what_a_server_can_not_read_is_a_result_that_says_so(self):
        nested = 0
        for _ in range(200):
            nested = [nested]
        values = {
            "is no JSON": [float("nan"), float("inf"), {("a", "b"): 1}],
            "The server does not take the result": [nested, 10**400],
        }
        for reason, items in values.items():
            for value in items:

                @duologue.tool(name="get")
                def get():
                    return value

                with self.subTest(type(value)):
                    status, text = await self.result_of(get)
                    self.assertEqual(status, "error")
                    self.assertIn(reason, text)

    async def test_a_tool_ends_with_its_run(self):
        ended = asyncio.Event()

        @duologue.tool
        async def get_time(city):
            try:
                await asyncio.sleep(3600)
            finally:
                ended.set()

        with script(*CALLS) as option:
            async with real(option, tools=[get_time]) as chat:
                stream = chat.stream("x")
                async for event in stream:
                    if isinstance(event, messages.FrontendToolCallRequested):
                        await stream.cancel()
                await asyncio.wait_for(ended.wait(), WAIT_S)
                self.assertEqual(stream.result.status, "stopped")

    async def test_methods_and_partials_are_tools(self):
        class Clock:
            def __init__(self, time):
                self.time = time

            def plain(self, city: str) -> str:
                """Tells the time."""
                return f"{self.time} in {city}"

            @duologue.tool(name="named", description="Another.", timeout=7)
            def decorated(self, city: str) -> str:
                return f"{self.time} in {city}"

            async def __call__(self, city: str) -> str:
                return f"{self.time} in {city}"

        def get_time(time, city: str, unit: str = "h") -> str:
            """Tells it too."""
            return f"{time} in {city}"

        clock = Clock("12:00")
        functions = [
            clock.plain, clock.decorated, Clock("12:00").decorated, clock,
            functools.partial(get_time, "12:00", unit="min"), functools.partial(clock.decorated),
        ]
        tools = [duologue._tools.tool_of(function) for function in functions]
        self.assertEqual([t.name for t in tools], ["plain", "named", "named", "Clock", "get_time", "named"])
        self.assertEqual([t.description for t in tools[:2] + tools[4:]], ["Tells the time.", "Another.", "Tells it too.", "Another."])
        self.assertEqual([t.timeout for t in tools], [60.0, 7, 7, 60.0, 60.0, 7])
        for tool in tools:
            self.assertEqual(tool.parameters["properties"], {"city": {"type": "string"}}, tool.name)
            result = await tool.call({"city": "Berlin"})
            self.assertEqual(result, {"status": "success", "result": {"result": "12:00 in Berlin"}})
        # What the program has given is not for the model.
        self.assertEqual((await tools[4].call({"city": "Berlin", "unit": "s"}))["status"], "error")
        self.assertFalse(hasattr(get_time, "__duologue_tool__"))

    async def test_a_tool_has_the_context_of_its_prompt(self):
        user = contextvars.ContextVar("user", default="nobody")

        async def in_loop(city):
            return user.get()

        def in_thread(city):
            return user.get()

        def approve(request):
            return f"{user.get()} says no."

        names = ("in_loop", "in_thread", "get_time")
        calls = {"tools": [{"name": name, "arguments": {"city": "x"}} for name in names]}
        with script(calls, {"text": "I see."}) as option:
            async with real(option, "--mcp", CLOCK, tools=[in_loop, in_thread], approve=approve) as chat:
                token = user.set("Ada")
                stream = chat.stream("x")
                events = aiter(stream)
                await anext(events)
                user.reset(token)
                async for _ in events:
                    pass
        results = {call.name: call.result for call in stream.result.tool_calls}
        self.assertEqual([results[name] for name in names[:2]], ['{"result":"Ada"}'] * 2)
        self.assertIn("Ada says no.", results["get_time"])

    async def test_tools_can_be_replaced(self):
        def get_time(city):
            return "12:00"

        with script(*CALLS) as option:
            async with real(option) as chat:
                await chat.set_tools([get_time])
                self.assertEqual((await chat.run("x")).tool_calls[0].status, "success")

    async def test_tools_of_an_earlier_program_are_offered_no_more(self):
        def delete_file(path: str) -> str:
            return "deleted"

        with tempfile.TemporaryDirectory() as folder:
            place = {"store": folder + "/chat.db", "session": "ada"}
            async with real(tools=[delete_file], **place) as chat:
                await chat.run("x")
            # What the session has when a process begins, and then what it has without tools, which are taken back.
            for lists in ([["delete_file"], []], [[]]):
                notices = []
                async with real(on_notice=notices.append, **place) as chat:
                    await chat.run("x")
                self.assertEqual([[tool.name for tool in notice.tools] for notice in notices], lists)

    async def test_a_reconnect_and_a_fork_have_the_tools_that_were_set(self):
        def earlier():
            return "no"

        def later():
            return "yes"

        calls = [{"tools": [{"name": "later", "arguments": {}}]}, {"text": "I see."}]
        with tempfile.TemporaryDirectory() as folder, script(*calls) as option:
            async with real(option, tools=[earlier], store=folder + "/chat.db", session="ada") as chat:
                await chat.set_tools([later])
                await chat.run("x")
                async with await chat.fork() as copy:
                    self.assertEqual((await copy.run("x")).tool_calls[0].result, '{"result":"yes"}')
                os.kill(pid_of(chat), signal.SIGKILL)
                with self.assertRaises(duologue.ProcessEnded):
                    await chat.run("lost")
                await chat.reconnect()
                self.assertEqual((await chat.run("x")).tool_calls[0].result, '{"result":"yes"}')

    async def decide(self, approve, **options):
        with script(*CALLS) as option:
            async with real(option, "--mcp", CLOCK, approve=approve, **options) as chat:
                return (await chat.run("x")).tool_calls[0]

    async def test_what_belongs_to_no_request_is_a_notice(self):
        notices = []
        async with real("--mcp", CLOCK, on_notice=notices.append) as chat:
            await chat.run("x")
        states = [notice.state for notice in notices if isinstance(notice, messages.ToolServerChanged)]
        self.assertIn(messages.ToolServerState.READY, states)

    async def test_what_on_notice_raises_is_for_the_loop_and_the_conversation_goes_on(self):
        reported, raised = [], [ValueError("1"), KeyError("2"), AttributeError("3")]

        def on_notice(_):
            raise raised[len(reported)]

        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
        async with difficult("normal", on_notice=on_notice) as chat:
            for _ in raised:
                request = chat._connection.new({})
                chat._connection._requests[request.id] = request
                chat._connection._on_bytes(notice_and_done(request.id))
                await asyncio.wait_for(request.finished(), WAIT_S)
            self.assertEqual((await chat.run("x")).status, "ok")
        self.assertEqual(reported, raised)

    async def test_approvals_are_a_callback(self):
        seen = []

        async def approve(request):
            seen.append((request.tool_name, request.input))
            return True

        self.assertEqual((await self.decide(approve)).status, "success")
        self.assertEqual(seen, [("get_time", '{"city":"Berlin"}')])
        self.assertIn("Not now.", (await self.decide(lambda _: "Not now.")).result)

    async def test_without_a_decision_calls_are_denied(self):
        def broken(_):
            raise ValueError("a secret")

        async def slow(_):
            await asyncio.sleep(3600)

        def ending(_):
            raise SystemExit(2)

        async def cancelled(_):
            raise asyncio.CancelledError

        self.assertIn("approves no tool calls", (await self.decide(None)).result)
        for approve in (ending, cancelled):
            self.assertIn("could not decide", (await asyncio.wait_for(self.decide(approve), WAIT_S)).result)
        self.assertIn("caf\\udce9", (await asyncio.wait_for(self.decide(lambda _: "caf\udce9"), WAIT_S)).result)
        call = await self.decide(broken)
        self.assertIn("could not decide", call.result)
        self.assertNotIn("secret", call.result)
        self.assertIn("Nobody decided within", (await self.decide(slow, approve_timeout=0.01)).result)


@dataclasses.dataclass
class Place:
    name: str
    kind: Literal["city", "town"]
    twins: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Node:
    name: str
    children: "list[Node]"


@dataclasses.dataclass
class Cat:
    name: str


@dataclasses.dataclass
class Dog:
    name: str
    breed: str = "unknown"
    tricks: list[str] = dataclasses.field(default_factory=list)


class Color(enum.Enum):
    RED = "red"


T = typing.TypeVar("T")
UserId = typing.NewType("UserId", int)


class Point(typing.NamedTuple):
    x: int
    y: int = 0


@dataclasses.dataclass
class Page(typing.Generic[T]):
    items: list[T]
    next: typing.Optional["Page[T]"] = None


@dataclasses.dataclass
class Options:
    x: int
    seed: dataclasses.InitVar[int] = 0
    _: dataclasses.KW_ONLY
    y: str = "a"
    sum: int = dataclasses.field(init=False)

    def __post_init__(self, seed):
        self.sum = self.x + seed


class Structured(unittest.IsolatedAsyncioTestCase):
    async def ask(self, text, answer):
        with script({"text": text}) as option:
            async with real(option) as chat:
                return await chat.run("Where?", answer=answer)

    async def test_an_answer_is_a_value_of_a_type(self):
        place = {"name": "Köln", "kind": "city", "twins": ["Cork"]}
        text = '{"name": "Köln", "kind": "city", "twins": ["Cork"]}'
        self.assertEqual((await self.ask(text, Place)).value, Place(**place))
        self.assertEqual((await self.ask("[1, 2]", list[int])).value, [1, 2])
        schema = {"type": "object", "required": ["name"]}
        self.assertEqual((await self.ask(text, schema)).value, place)

    async def test_an_answer_may_be_a_pydantic_model(self):
        try:
            from pydantic import BaseModel, ValidationError, field_validator
        except ImportError:
            self.skipTest("pydantic is not installed")

        class City(BaseModel):
            name: str

            @field_validator("name")
            def is_known(cls, name):
                assert name == "Köln"
                return name

        self.assertEqual((await self.ask('{"name": "Köln"}', City)).value, City(name="Köln"))
        with self.assertRaises(duologue.AnswerError) as caught:
            await self.ask('{"name": "Oz"}', City)
        self.assertIsInstance(caught.exception.__cause__, ValidationError)

    async def test_an_answer_may_be_made_of_pydantic_models(self):
        try:
            from pydantic import BaseModel
        except ImportError:
            self.skipTest("pydantic is not installed")

        def other():
            class Leg(BaseModel):
                km: int

            class Trip(BaseModel):
                legs: list[Leg]

            return Trip

        class Leg(BaseModel):
            to: str

        class Trip(BaseModel):
            legs: list[Leg]

        Hike = other()
        text = '[{"legs": [{"to": "Cork"}]}]'
        self.assertEqual((await self.ask(text, list[Trip])).value, [Trip(legs=[Leg(to="Cork")])])

        def book(trip: Trip, hike: Hike, trips: list[Trip]) -> str:
            return f"{trip.legs[0].to} {hike.legs[0].km} {trips}"

        arguments = {"trip": {"legs": [{"to": "Cork"}]}, "hike": {"legs": [{"km": 3}]}, "trips": []}
        schema = duologue._tools.tool_of(book).parameters
        # Each reference is one from the root, and two types of one name are two.
        self.assertEqual(set(schema["$defs"]), {"Leg", "Leg_2"})
        self.assertEqual(schema["properties"]["hike"]["properties"]["legs"]["items"], {"$ref": "#/$defs/Leg_2"})
        self.assertNotIn("$defs", json.dumps(schema["properties"]).replace("#/$defs/", ""))
        with script({"tools": [{"name": "book", "arguments": arguments}]}, {"text": "Booked."}) as option:
            async with real(option, tools=[book]) as chat:
                self.assertEqual((await chat.run("x")).tool_calls[0].result, '{"result":"Cork 3 []"}')

    async def test_a_type_that_is_a_part_of_itself_has_a_schema(self):
        text = '{"name": "root", "children": [{"name": "leaf", "children": []}]}'
        self.assertEqual((await self.ask(text, Node)).value, Node("root", [Node("leaf", [])]))
        self.assertEqual((await self.ask(f"[{text}]", list[Node])).value, [Node("root", [Node("leaf", [])])])

    def test_types_of_the_standard_library_are_types_of_answers_and_arguments(self):
        from duologue._schema import schema_of, value_of

        at = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.timezone.utc)
        table = [
            (datetime.datetime, "2026-01-02T03:04:00Z", at),
            (datetime.date, "2026-01-02", at.date()),
            (datetime.time, "03:04:00", at.time()),
            (uuid.UUID, str(uuid.UUID(int=7)), uuid.UUID(int=7)),
            (decimal.Decimal, "1.50", decimal.Decimal("1.50")),
            (pathlib.Path, "/a", pathlib.Path("/a")),
            (Union[datetime.date, int, str], "2026-01-02", at.date()),
            (Union[str, datetime.date, None], "2026-01-02", "2026-01-02"),
            (Union[datetime.date, str], "soon", "soon"),
            (Sequence[Color], ["red"], [Color.RED]),
            (typing.Mapping[str, Color], {"a": "red"}, {"a": Color.RED}),
            (frozenset[Color], ["red"], frozenset([Color.RED])),
            (tuple[int, Color], [1, "red"], (1, Color.RED)),
            (tuple[Color, ...], ["red"], (Color.RED,)),
            (Union[tuple[int, str], tuple[str, int]], ["a", 1], ("a", 1)),
            (typing.List, [1], [1]),
            (typing.Dict, {"a": 1}, {"a": 1}),
            (dict[int, str], {"1": "a"}, {1: "a"}),
            (dict[Color, int], {"red": 1}, {Color.RED: 1}),
            (dict[datetime.date, bool], {"2026-01-02": True}, {at.date(): True}),
            (dict[str, int], {"1": 1}, {"1": 1}),
            (Literal[Color.RED, "a"], "red", Color.RED),
            (UserId, 7, 7),
            (Point, {"x": 1}, Point(1)),
            (Page[Color], {"items": ["red"], "next": None}, Page([Color.RED])),
            (Page[Page[int]], {"items": [{"items": [1]}]}, Page([Page([1])])),
            (Options, {"x": 1, "seed": 3, "y": "b"}, Options(1, 3, y="b")),
        ]
        for kind, value, expected in table:
            with self.subTest(kind):
                json.dumps(schema_of(kind))
                found = value_of(kind, value)
                self.assertEqual((type(found), found), (type(expected), expected))
        endings = (("Z", 0), ("z", 0), (".5Z", 500_000), (".1234567Z", 123_456), (".25+00:00", 250_000))
        for ending, microsecond in endings:
            exact = at.replace(microsecond=microsecond)
            for kind, value, expected in (
                (datetime.datetime, "2026-01-02T03:04:00", exact), (datetime.time, "03:04:00", exact.timetz()),
            ):
                for one in (kind, Union[kind, None]):
                    with self.subTest(one, ending=ending):
                        self.assertEqual(value_of(one, value + ending), expected)
        self.assertEqual(schema_of(datetime.datetime), {"type": "string", "format": "date-time"})
        self.assertEqual(schema_of(Literal[Color.RED, 1]), {"enum": ["red", 1]})
        pair = {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2}
        self.assertEqual(schema_of(tuple[int, str]), pair)
        self.assertEqual(schema_of(Point)["required"], ["x"])
        # What `__init__` does not take is not asked of the model.
        options = schema_of(Options)
        self.assertEqual((list(options["properties"]), options["required"]), (["x", "seed", "y"], ["x"]))
        for kind, value in ((decimal.Decimal, "much"), (datetime.date, "soon"), (uuid.UUID, "x"), (tuple[int, str], [1])):
            with self.assertRaises(ValueError):
                value_of(kind, value)

    @unittest.skipIf(sys.version_info < (3, 12), "this Python has no statement `type`")
    def test_a_type_that_has_a_name_is_what_it_names(self):
        from duologue._schema import schema_of, value_of

        names = {"Color": Color}
        exec("type Colors = list[Color]\ntype Tree = dict[str, Tree]\ntype Pair[T] = tuple[T, T]", names)
        self.assertEqual(value_of(names["Colors"], ["red"]), [Color.RED])
        self.assertEqual(value_of(names["Pair"][Color], ["red", "red"]), (Color.RED, Color.RED))
        self.assertEqual(value_of(names["Tree"], {"a": {"b": {}}}), {"a": {"b": {}}})
        tree = {"type": "object", "additionalProperties": {"$ref": "#/$defs/Tree"}}
        self.assertEqual(schema_of(names["Tree"]), {**tree, "$defs": {"Tree": tree}})

    async def test_a_tool_has_arguments_of_types_of_the_standard_library(self):
        def remind(at: datetime.datetime, days: Sequence[datetime.date] = ()) -> str:
            return f"{at.year} {[day.year for day in days]}"

        arguments = {"at": "2026-01-02T03:04:00Z", "days": ["2027-01-01"]}
        with script({"tools": [{"name": "remind", "arguments": arguments}]}, {"text": "Done."}) as option:
            async with real(option, tools=[remind]) as chat:
                self.assertEqual((await chat.run("x")).tool_calls[0].result, '{"result":"2026 [2027]"}')

    def test_the_value_of_a_union_is_of_the_type_that_it_fits(self):
        from duologue._schema import value_of

        rex, tom = {"name": "Rex", "breed": "Lab"}, {"name": "Tom"}
        table = [
            ((Cat, Dog), rex, Dog("Rex", "Lab")),
            ((None, Dog), rex, Dog("Rex", "Lab")),
            ((str, Dog), rex, Dog("Rex", "Lab")),
            ((str, list[Dog]), [rex], [Dog("Rex", "Lab")]),
            ((list[Cat], list[Dog]), [rex], [Dog("Rex", "Lab")]),
            ((dict[str, int], Dog), {"a": 1}, {"a": 1}),
            ((dict[str, Cat], Dog), {"a": tom}, {"a": Cat("Tom")}),
            ((str, list[str]), "text", "text"),
            ((int, str), "1", "1"),
            ((int, str), 1, 1),
            ((int, bool), True, True),
            ((Color, int), "red", Color.RED),
            ((Literal[1], bool), True, True),
            ((Dog, None), None, None),
        ]
        for kinds, value, expected in table:
            for order in (kinds, kinds[::-1]):
                with self.subTest(order, value=value):
                    found = value_of(Union[order], value)
                    self.assertEqual((type(found), found), (type(expected), expected))
        for order, value in (((float, int), 1), ((int, float), 1)):
            self.assertIs(type(value_of(Union[order], value)), int)
        # Where it fits both, the first has it; the arguments of a tool may fit neither.
        self.assertEqual(value_of(Union[Cat, Dog], tom), Cat("Tom"))
        self.assertEqual(value_of(Union[Dog, Cat], tom), Dog("Tom"))
        self.assertEqual(value_of(Union[None, Cat], rex), Cat("Rex"))
        with self.assertRaises(TypeError):
            value_of(Union[None, Cat], {"breed": "Lab"})

    def test_the_value_of_a_union_of_pydantic_models_is_of_the_one_that_it_fits(self):
        try:
            from pydantic import BaseModel, create_model
        except ImportError:
            self.skipTest("pydantic is not installed")
        from duologue._schema import value_of

        Small, Large = create_model("Small", name=(str, ...)), create_model("Large", name=(str, ...), breed=(str, ...))
        for kinds in ((Small, Large), (Large, Small)):
            self.assertIs(type(value_of(Union[kinds], {"name": "Rex", "breed": "Lab"})), Large)
            self.assertIs(type(value_of(Union[kinds], {"name": "Tom"})), Small)
        self.assertTrue(issubclass(Small, BaseModel))

    async def test_an_answer_that_its_type_refuses_is_an_error_with_its_text(self):
        @dataclasses.dataclass
        class City:
            name: str

            def __post_init__(self):
                raise refusal

        text = '{"name": "Köln"}'
        for refusal in (ValueError("It is no city."), KeyError("Köln")):
            with self.assertRaises(duologue.AnswerError) as caught:
                await self.ask(text, City)
            error = caught.exception
            self.assertEqual((error.code, error.text, error.__cause__), ("invalid_answer", text, refusal))
            self.assertIn(str(refusal), str(error))

    async def test_another_answer_is_an_error(self):
        with self.assertRaises(duologue.AnswerError) as caught:
            await self.ask('{"name": 3}', Place)
        self.assertEqual(caught.exception.text, '{"name": 3}')


class Sessions(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = {"store": folder.name + "/chat.db", "session": "ada"}

    async def test_a_session_goes_on(self):
        async with real(**self.place) as chat:
            await chat.run("one")
            seen = chat.ordinal
        async with real(**self.place) as chat:
            self.assertEqual((chat.session_id, chat.ordinal), ("ada", seen))
            self.assertEqual(len(chat.initial.entities), 2)
            self.assertEqual((await chat.run("two")).text.splitlines()[0], "Turn 2. You said: two")
            changed = await chat.snapshot(since=seen)
            self.assertEqual([entity.payload.role for entity in changed.entities], ["user", "assistant"])
            self.assertEqual(len((await chat.snapshot(limit=1)).entities), 1)
            self.assertEqual(len(await chat.history()), 4)

    async def test_the_end_of_a_conversation_is_edited(self):
        async with real() as chat:
            first = await chat.run("one")
            await chat.run("two")
            self.assertEqual((await chat.regenerate()).text.splitlines()[0], "Turn 2. You said: two")
            async for event in chat.replace(first.message_id, "three"):
                pass
            texts = [entity.payload.text for entity in await chat.history()]
            self.assertEqual(texts, ["three", "Turn 1. You said: three"])
            await chat.drop_last_turn()
            self.assertEqual(await chat.history(), [])

    async def test_a_compaction_is_stopped_like_a_run(self):
        notices = []

        def compactions():
            return [type(notice).__name__ for notice in notices if "Compact" in type(notice).__name__]

        async with real("--echo-delay-ms=20", on_notice=notices.append) as chat:
            await chat.run("one")
            await chat.run("two")
            stream = chat.compact(keep_turns=1)
            async for event in stream:
                if isinstance(event, messages.CompactionStarted):
                    await stream.cancel()
            self.assertEqual((stream.result.status, compactions()), ("stopped", []))
            async for event in chat.compact(keep_turns=1):
                break
            self.assertEqual((await chat.run("three")).status, "ok")
            task = asyncio.create_task(chat.request(compact={"keepTurns": 1}))
            while "CompactionStarted" not in compactions():
                await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual((await chat.run("four")).status, "ok")

    async def test_events_of_other_requests_are_notices(self):
        notices = []
        async with real(on_notice=notices.append) as chat:
            await chat.run("one")
            await chat.run("two")
            self.assertEqual((await chat.compact("Keep names.", keep_turns=1)).status, "ok")
            await chat.switch_model(engine="echo")
            await chat.drop_last_turn()
            await chat.snapshot()
        kinds = ["CompactionStarted", "UsageTotals", "Compacted", "ModelSwitched", "TurnDropped"]
        self.assertEqual([type(notice).__name__ for notice in notices], kinds)

    async def test_a_session_is_copied(self):
        async with real(**self.place) as chat:
            await chat.run("one")
            await chat.run("two")
            async with await chat.fork(turns=1) as copy:
                self.assertNotEqual(copy.session_id, "ada")
                self.assertEqual(len(copy.initial.entities), 2)
            self.assertEqual(len(await chat.history()), 4)

    async def test_history_comes_in_pages(self):
        from duologue import _client

        self.addCleanup(setattr, _client, "PAGE_ENTITIES", _client.PAGE_ENTITIES)
        _client.PAGE_ENTITIES = 3
        async with real() as chat:
            for number in range(4):
                await chat.run(f"prompt {number}")
            history = await chat.history()
        self.assertEqual([entity.payload.text for entity in history][::2], [f"prompt {n}" for n in range(4)])

    async def test_a_history_in_pages_is_that_of_a_snapshot(self):
        from duologue import _client

        self.addCleanup(setattr, _client, "PAGE_ENTITIES", _client.PAGE_ENTITIES)
        _client.PAGE_ENTITIES = 2
        async with real() as chat:
            for number in range(4):
                await chat.run(f"prompt {number}")
                if number > 1:
                    await chat.compact(keep_turns=1)
            snapshot = [entity.id for entity in (await chat.snapshot()).entities]
            self.assertEqual([entity.id for entity in await chat.history()], snapshot)
        self.assertEqual([name.partition("-")[0] for name in snapshot], ["chat"] * 8 + ["compaction"] * 2)

    async def test_a_store_that_fails_is_a_notice(self):
        notices = []
        async with real(**self.place, on_notice=notices.append) as chat:
            await chat.run("one")
            os.remove(self.place["store"])
            self.assertEqual((await chat.run("two")).status, "ok")
            # The error comes before the answer to a later request.
            await chat.snapshot()
            self.assertEqual(chat.store_error.code, "store_failed")
            self.assertIn(chat.store_error, notices)

    async def test_models_and_settings(self):
        async with real() as chat:
            await chat.switch_model(engine="echo")
            self.assertEqual((await chat.run("x", settings={"temperature": 0.5})).status, "ok")
            with self.assertRaises(duologue.RequestError) as caught:
                await chat.run("x", settings={"nonsense": 1})
            self.assertEqual(caught.exception.code, "invalid_settings")

    async def test_the_text_of_an_error_has_its_reason(self):
        async with real() as chat:
            with self.assertRaises(duologue.RequestError) as caught:
                await chat.run("x", settings={"temprature": 1})
            error = caught.exception
            self.assertIn('(there is no setting "temprature"; the settings are ', str(error))
            self.assertEqual(str(error), f"{error.message} ({error.detail})")
            with self.assertRaisesRegex(duologue.RequestError, r'\(there is no profile "nope"; there are: '):
                await chat.switch_model(profile="nope")
        for case in json.loads((ROOT / "clients/error_texts.json").read_text(encoding="utf-8")):
            error = duologue.RequestError("run_failed", case["message"], case["detail"])
            self.assertEqual(str(error), case["text"])

    def test_an_account_without_credit_is_not_retryable(self):
        for case in json.loads((ROOT / "clients/retryable_errors.json").read_text(encoding="utf-8")):
            error = duologue.ProviderError("run_failed", "x", case["detail"])
            self.assertIs(error.is_retryable, case["isRetryable"], case["detail"])

    async def test_an_echo_nobody_asked_for_is_a_warning(self):
        unchosen = {"binary": WITHOUT_PROVIDER, "env": {"DUOLOGUE_BIN": BINARY}}
        raised = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
        for action in ("always", "error"):
            with (
                self.subTest(action),
                mock.patch.object(duologue._connection, "_has_warned", False),
                tempfile.TemporaryDirectory() as folder,
                warnings.catch_warnings(record=True) as warned,
            ):
                warnings.simplefilter(action, UserWarning)
                async with Duologue(**unchosen, store=folder + "/chat.db", session="ada") as chat:
                    self.assertEqual((await chat.run("x")).text, "Turn 1. You said: x")
                    os.kill(pid_of(chat), signal.SIGKILL)
                    with self.assertRaises(duologue.ProcessEnded):
                        await chat.run("lost")
                    await chat.reconnect()
                for engine in (None, "echo"):
                    async with Duologue(**unchosen, engine=engine) as chat:
                        await chat.run("x")
                await asyncio.sleep(0)  # A warning is given by the loop.
                self.assertEqual((len(warned), raised), (1, []))
                self.assertIn("the built-in echo engine of duologue answers", str(warned[0].message))
        with self.assertRaisesRegex(duologue.ConfigError, "no provider is configured"):
            await Duologue(**unchosen, args=["--require-provider"]).start()

    async def test_resources_of_tool_servers_go_with_a_prompt(self):
        async with difficult("repeat") as chat:
            request = json.loads((await chat.run("x", resources=[("docs", "file:///a.md")])).text)
        self.assertEqual(request["submit"], {"prompt": "x", "resources": [{"server": "docs", "uri": "file:///a.md"}]})

    async def test_attachments(self):
        async with real() as chat:
            result = await chat.run("What?", attachments=[ROOT / "examples/squares.png"])
            self.assertIn("squares.png (image/png, 8x8, 82 bytes)", result.text)
            again = await chat.replace(
                result.message_id,
                "And this?",
                attachments=[{"url": str(ROOT / "examples/clock.py"), "filename": "clock.txt"}],
                removed_attachment_ids=["attachment-1"],
            )
        self.assertIn("Attached: clock.txt", again.text)
        self.assertNotIn("squares.png", again.text)


    async def test_an_attachments_path_is_the_programs_own(self):
        with tempfile.TemporaryDirectory() as own, tempfile.TemporaryDirectory() as other:
            for folder, text in ((own, "own"), (other, "the other's")):
                (pathlib.Path(folder) / "a b.txt").write_text(text)
            before = os.getcwd()
            async with real(cwd=other) as chat:
                try:
                    os.chdir(own)
                    for attachments in ("a b.txt", ["a b.txt"], [pathlib.Path("a b.txt")], [{"url": "a b.txt", "filename": "c"}]):
                        text = (await chat.run("What?", attachments=attachments)).text
                        self.assertIn(f"{len('own')} bytes", text.splitlines()[1], attachments)
                finally:
                    os.chdir(before)

    def test_addresses_of_attachments_stay_as_they_are(self):
        from duologue._client import _sent_along

        urls = ["https://a/b.png", "DATA:text/plain,x", "file:///a", "gopher://a", " "]
        self.assertEqual([item["url"] for item in _sent_along(urls, ())["attachments"]], urls)
        own = os.getcwd()
        for path in ("a:b.txt", "c", pathlib.Path("https:/a")):
            self.assertEqual(_sent_along(path, ())["attachments"], [{"url": os.path.join(own, path)}])


class Sync(unittest.TestCase):
    def test_the_same_without_await(self):
        from duologue.sync import Duologue

        with Duologue(binary=BINARY, engine="echo", args=["--echo-delay-ms=5"]) as chat:
            self.assertEqual(chat.run("one").text, "Turn 1. You said: one")
            stream = chat.stream("two")
            texts = [event.text for event in stream if isinstance(event, TextPatch)]
            self.assertEqual("".join(texts), stream.result.text)
            for event in chat.stream("three " * 100):
                break
            with self.assertRaises(TimeoutError):
                chat.run("four " * 1000, timeout=0.05)
            chat.drop_last_turn()
            chat.drop_last_turn()
            self.assertEqual(len(chat.history()), 4)
            self.assertEqual(chat.regenerate().wait().status, "ok")

    def test_a_copy_without_await_has_the_program_and_the_folder(self):
        from duologue.sync import Duologue

        self.addCleanup(os.chdir, os.getcwd())
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(BINARY, folder + "/program")
            os.chdir(folder)
            with Duologue(binary="./program", engine="echo", store="chat.db", session="ada") as chat:
                chat.run("one")
                os.chdir("/")
                with chat.fork() as copy:
                    self.assertEqual(len(copy.history()), 2)

    def test_what_on_notice_raises_is_for_the_hook_of_threads_and_the_conversation_goes_on(self):
        from duologue.sync import Duologue

        reported, raised = [], [KeyError("1"), SystemExit("2")]

        def on_notice(_):
            raise raised[min(len(reported), 1)]

        self.addCleanup(setattr, threading, "excepthook", threading.excepthook)
        threading.excepthook = lambda report: reported.append((report.exc_value, report.thread.name))
        with Duologue(binary=DIFFICULT, env={"DIFFICULT": "normal"}, on_notice=on_notice) as chat:
            for _ in raised:
                chat._loop.call_soon_threadsafe(chat._chat._connection._on_bytes, notice_and_done("nobody"))
                self.assertEqual(chat.run("x", timeout=WAIT_S).status, "ok")
        self.assertEqual(reported, [(error, "duologue-notices") for error in raised])

    def test_on_notice_may_use_the_client(self):
        from duologue.sync import Duologue

        seen = []

        def on_notice(notice):
            seen.append((type(notice).__name__, len(chat.snapshot().entities)))

        with Duologue(binary=DIFFICULT, env={"DIFFICULT": "notices"}, on_notice=on_notice) as chat:
            self.assertEqual(chat.run("x", timeout=WAIT_S).status, "ok")
            self.assertEqual(chat.run("x", timeout=WAIT_S).status, "ok")
            chat._notices.end(WAIT_S)
        self.assertEqual(seen, [("ToolServerChanged", 1), ("StoreError", 1)] * 2)

    def test_a_coroutine_that_would_wait_for_its_own_thread_gets_an_error(self):
        from duologue.sync import Duologue

        async def get_time(city):
            for act in (chat.snapshot, chat.close, chat.stream("y").wait):
                with self.assertRaisesRegex(duologue.DuologueError, "own thread"):
                    act()
            return "12:00"

        with script(*CALLS) as option:
            with Duologue(binary=BINARY, engine="echo", args=[option], tools=[get_time]) as chat:
                self.assertEqual(chat.run("x", timeout=WAIT_S).tool_calls[0].status, "success")

    def test_a_stream_that_is_awaited_without_await_does_not_wait_for_one_that_is_not_read(self):
        from duologue.sync import Duologue

        with Duologue(binary=DIFFICULT, env={"DIFFICULT": "long-first:2000"}, on_busy="queue") as chat:
            first = iter(chat.stream("x"))
            next(first)
            while not chat._chat._connection.is_paused:
                time.sleep(0.001)
            self.assertEqual([event.text for event in chat.stream("y") if isinstance(event, TextPatch)], ["Hello, ", "wörld!"])
            self.assertEqual(sum(isinstance(event, TextPatch) for event in first), 2000)

    def test_a_tool_that_ends_the_program_is_a_result(self):
        from duologue.sync import Duologue

        async def get_time(city):
            raise SystemExit(2)

        with script(*CALLS) as option:
            with Duologue(binary=BINARY, engine="echo", args=[option], tools=[get_time]) as chat:
                self.assertEqual(chat.run("x", timeout=WAIT_S).tool_calls[0].result, "SystemExit: 2")

    def test_a_failed_run_raises(self):
        from duologue.sync import Duologue

        options = ["--model=m", "--base-url=http://127.0.0.1:9", "--retries=0"]
        with Duologue(binary=BINARY, engine="openai", args=options) as chat:
            with self.assertRaises(duologue.ProviderError):
                chat.run("x")
            with self.assertRaises(duologue.ProviderError):
                list(chat.stream("x"))
