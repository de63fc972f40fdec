"""What functions of the program come to, whatever they raise."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Awaitable, Callable
from typing import Any

Outcome = tuple[Any, "BaseException | None"]
"""What a function has returned, or raised."""


class Late(Exception):
    """The function took too long."""


def text_of(error: BaseException) -> str:
    """What an exception says; that may be a function of the program too, and raise another."""
    try:
        return str(error)
    except Exception:
        return "(it can't be shown as text)"


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
    """Calls a function in a thread of its own: one that never returns takes none from others, and ends with the program."""
    loop = asyncio.get_running_loop()
    returned: asyncio.Future[Outcome] = loop.create_future()

    def give(outcome: Outcome) -> None:
        if not returned.done():
            returned.set_result(outcome)

    def call() -> None:
        # What it raises comes as a value: a future that gets StopIteration never ends.
        outcome: Outcome
        try:
            outcome = function(*arguments, **named), None
        except BaseException as error:
            outcome = None, error
        # Where the loop is closed nobody waits any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(give, outcome)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(call,), name="duologue-callback", daemon=True).start()
    value, error = await returned
    if error is not None:
        raise error
    return value


async def _caught(function: Callable[..., Awaitable[Any]], *arguments: Any) -> Outcome:
    try:
        return await function(*arguments), None
    except (Exception, asyncio.CancelledError, SystemExit) as error:
        # SystemExit in a task would end the loop. KeyboardInterrupt is for the program alone.
        return None, error
