"""What functions of the program come to, whatever they raise."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

Outcome = tuple[Any, "BaseException | None"]
"""What a function has returned, or raised."""


class Late(Exception):
    """The function took too long."""


async def outcome(seconds: float | None, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Outcome:
    """What a function of the program comes to; `Late` after so many seconds.

    It has a task of its own: a CancelledError that is raised here means that nobody waits any more, and one that the
    function raises is its outcome.
    """
    task = asyncio.ensure_future(_caught(function, *arguments))
    try:
        await asyncio.wait([task], timeout=seconds)
        return await task if task.done() else (None, Late())
    finally:
        task.cancel()


async def in_thread(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Calls a function in a thread."""

    def call() -> Outcome:
        # What it raises comes as a value: a future that gets StopIteration never ends.
        try:
            return function(*arguments, **named), None
        except BaseException as error:
            return None, error

    value, error = await asyncio.to_thread(call)
    if error is not None:
        raise error
    return value


async def _caught(function: Callable[..., Awaitable[Any]], *arguments: Any) -> Outcome:
    try:
        return await function(*arguments), None
    except (Exception, asyncio.CancelledError, SystemExit) as error:
        # SystemExit in a task would end the loop. KeyboardInterrupt is for the program alone.
        return None, error
