"""Tools: functions of the program that the model may call."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from ._outcome import Late, in_thread, outcome, text_of
from ._schema import JsonObject, arguments_of, json_of, named_function, schema_of_parameters

F = TypeVar("F", bound=Callable[..., Any])
TOOL_S = 60.0


@dataclass(frozen=True)
class Tool:
    """A function that the model may call.

    `parameters` is the JSON Schema of its arguments. `timeout` is its longest time in seconds; None: the server's.
    """

    function: Callable[..., Any]
    name: str
    description: str
    parameters: JsonObject
    timeout: float | None = TOOL_S

    def descriptor(self) -> JsonObject:
        """The tool as `declareTools` has it."""
        return {"name": self.name, "description": self.description, "inputSchema": self.parameters}

    async def call(self, arguments: JsonObject) -> JsonObject:
        """The members of a `toolResult`. What goes wrong is a result too, and the model reads it.

        That is so for all that the function raises, its own CancelledError and SystemExit among it.
        """
        value, error = await outcome(self.timeout, self._run, arguments)
        if isinstance(error, Late):
            return failed(f"The tool took longer than {self.timeout:g} s.")
        if error is not None:
            return failed(f"{type(error).__name__}: {text_of(error)}")
        try:
            # Through text: what JSON does not have is an error here, and not when the line is written.
            plain = json.loads(json.dumps(value, allow_nan=False, default=json_of))
        except Exception as refusal:  # A value may raise anything when it becomes JSON.
            return failed(f"The result is no JSON: {text_of(refusal)}")
        return {"status": "success", "result": plain if isinstance(plain, dict) else {"result": plain}}

    async def _run(self, arguments: JsonObject) -> Any:
        typed = arguments_of(self.function, arguments)
        if inspect.iscoroutinefunction(self.function):
            return await self.function(**typed)
        value = await in_thread(self.function, **typed)
        return await value if inspect.isawaitable(value) else value


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(*, name: str | None = None, description: str | None = None, timeout: float | None = TOOL_S) -> Callable[[F], F]: ...
def tool(
    function: Any = None, /, *, name: str | None = None, description: str | None = None, timeout: float | None = TOOL_S
) -> Any:
    """Makes a function a tool: `@tool`, or `@tool(timeout=5)`. Its type hints are the schema, its docstring the description.

    Without the decorator a function is a tool with these defaults.
    """

    def decorate(function: F) -> F:
        function.__duologue_tool__ = _new(function, name, description, timeout)  # type: ignore[attr-defined]
        return function

    return decorate if function is None else decorate(function)


def tool_of(item: Any) -> Tool:
    """A `Tool`, or the one that a function, a method, or a `functools.partial` of one is."""
    if isinstance(item, Tool):
        return item
    named = named_function(item)
    known: Tool | None = getattr(named, "__duologue_tool__", None)
    if known is None:
        return _new(item, None, None, TOOL_S)
    if item is named and not inspect.ismethod(item):
        return known
    # The decorator has seen the function alone, and not what it is bound to.
    return _new(item, known.name, known.description, known.timeout)


def _new(function: Callable[..., Any], name: str | None, description: str | None, timeout: float | None) -> Tool:
    named = named_function(function)
    return Tool(
        function,
        name or str(getattr(named, "__name__", type(named).__name__)),
        description or inspect.getdoc(named) or "",
        schema_of_parameters(function),
        timeout,
    )


Approve = Callable[[Any], "bool | str | Awaitable[bool | str]"]


async def decide(approve: Approve | None, request: Any, timeout: float) -> JsonObject:
    """The members of an `approve`. Nobody to ask, no answer in time, and an error are a no."""
    if approve is None:
        return {"decision": "DENY", "reason": "This program approves no tool calls."}
    answer, error = await outcome(timeout, _ask, approve, request)
    if isinstance(error, Late):
        return {"decision": "DENY", "reason": f"Nobody decided within {timeout:g} s."}
    if error is not None:
        return {"decision": "DENY", "reason": f"The program could not decide: {type(error).__name__}."}
    if answer is True:
        return {"decision": "ALLOW_ONCE"}
    if answer == "ALLOW_SESSION":
        return {"decision": "ALLOW_SESSION"}
    reason = answer if isinstance(answer, str) and answer else "It was denied."
    return {"decision": "DENY", "reason": _text(reason)}


async def _ask(approve: Approve, request: Any) -> bool | str:
    if inspect.iscoroutinefunction(approve):
        return await approve(request)
    # In a thread: it may wait for a person.
    answer = await in_thread(approve, request)
    return await answer if inspect.isawaitable(answer) else answer


def failed(error: str) -> JsonObject:
    """The members of the `toolResult` of a call that has gone wrong."""
    return {"status": "error", "error": _text(error)}


def _text(text: str) -> str:
    """The text as UTF-8 can have it: Python's may have lone surrogates, as for the names of some files."""
    return text.encode(errors="backslashreplace").decode()
