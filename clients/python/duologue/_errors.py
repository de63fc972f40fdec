"""What can go wrong, as types."""

from __future__ import annotations

import re
from typing import Any

_CLASSES = frozenset(
    "auth rate_limited context_overflow timeout network provider malformed_stream tool config aborted internal".split()
)
_RETRYABLE = frozenset(("timeout", "network"))
# The detail of a provider's failure after which the same prompt may succeed, as the exit status 75 of the program has it.
_PASSING = re.compile(r"provider: (?:status|code) (?:408|409|429|5(?!01|05)\d\d)(?!\d)")
# A detail of the class `rate_limited` that is about an account without credit: waiting does not help.
_OUT_OF_CREDIT = re.compile(
    r"\Arate_limited: (?:status|code) 402(?!\d)|insufficient_quota|billing_hard_limit_reached|billing_not_active"
    r"|exceeded_current_quota|credit balance is too low|insufficient[_ ]balance",
    re.IGNORECASE,
)
# What the detail of a failed run begins with.
_CLASS = re.compile(r"([a-z_]+):(?: |\Z)")
# By whose presence in a message a text counts as said: a message has a long text cut.
_SAID_CHARS = 100
_WAIT = re.compile(r"requests a wait of (\d+) s")


class DuologueError(Exception):
    """Base of all errors of this package."""


class NotInstalled(DuologueError):
    """There is no program `duologue` where it was looked for; trying again does not help."""


class ProtocolError(DuologueError):
    """The program does not speak the protocol, or has stopped doing so."""


class VersionError(ProtocolError):
    """The program is too old for this package."""


class TooLong(DuologueError):
    """A line is longer than a limit: of the server for a request, of the client for a frame."""


class Closed(DuologueError):
    """The client has not been started, or was closed."""


class ProcessEnded(DuologueError):
    """The process ended before it had answered; `Duologue.reconnect` goes on from the store.

    `status` is its exit status, negative for a signal; `stderr` the end of its standard error.
    """

    def __init__(self, message: str, status: int | None, stderr: str) -> None:
        super().__init__(message)
        self.status = status
        self.stderr = stderr

    def __reduce__(self) -> tuple[Any, ...]:
        # Otherwise a copy, and what another process unpickles, would be made of `args`, which has the message alone.
        return type(self), (str(self), self.status, self.stderr), self.__dict__


class RequestError(DuologueError):
    """The server refused a request, or its run failed.

    `code` is for programs. The text is for people: it is the server's `message`, and what its `detail` says besides.
    """

    def __init__(self, code: str, message: str, detail: str = "") -> None:
        super().__init__(_with_detail(message or code, detail))
        self.code = code
        self.message = message
        self.detail = detail

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.message, self.detail), self.__dict__


def _with_detail(message: str, detail: str) -> str:
    """The message, and in parentheses what it does not have of the detail.

    That is parts after a class, up to a rest that is said, or else all of it.
    """
    lower = message.lower()

    def is_said(text: str) -> bool:
        return text[:_SAID_CHARS].lower() in lower

    found = _CLASS.match(detail)
    rest = detail[found.end() if found else 0 :].strip()
    added: list[str] = []
    while not is_said(rest):
        part, _, more = rest.partition(": ") if found else (rest, "", "")
        if not is_said(part.strip()):
            added.append(part.strip())
        rest = more.strip()
    if found and added:
        added.insert(0, found[1])
    return f"{message} ({': '.join(added)})" if added else message


class Busy(RequestError):
    """A run is active, and the client was started with `on_busy="reject"`."""


class SessionMismatch(RequestError):
    """The request names another session than the process holds."""


class ProviderError(RequestError):
    """The model could not answer.

    `error_class` is the class of the failure, as `rate_limited`; `is_retryable` says whether the same prompt may succeed
    later; `retry_after` is the wait in seconds that the provider has asked for, where it is too long for the server's own
    retries.
    """

    def __init__(self, code: str, message: str, detail: str = "") -> None:
        super().__init__(code, message, detail)
        word = detail.partition(":")[0]
        self.error_class = word if word in _CLASSES else "internal"
        wait = _WAIT.search(message)
        self.retry_after = float(wait[1]) if wait else None
        self.is_retryable = _is_retryable(self.error_class, detail)


def _is_retryable(error_class: str, detail: str) -> bool:
    if error_class == "rate_limited":
        return not _OUT_OF_CREDIT.search(detail)
    return error_class in _RETRYABLE or bool(_PASSING.match(detail))


class ConfigError(ProviderError):
    """The command line, a file, a key or a model is wrong; trying again does not help."""


class ToolError(RequestError):
    """A list of tools, or a result, is not what the server can take; or a run ended because of its tools."""


class StoreError(RequestError):
    """The conversation can't be stored or read, or another process holds it (`session_locked`)."""


class AnswerError(RequestError):
    """The model has answered, but not with what was asked for; `text` is its answer.

    Where the answer has the schema, and its type refuses it, `__cause__` is what the type has raised.
    """

    text = ""


def inherited() -> DuologueError:
    """The error of a client in a fork of the program that has started it."""
    return DuologueError("The client was started in another process, of which this one is a fork: start one in this process.")


def error_of(code: str, message: str, detail: str) -> RequestError:
    """The error that an `error` frame stands for."""
    match code:
        case "session_busy":
            return Busy(code, message, detail)
        case "session_mismatch":
            return SessionMismatch(code, message, detail)
        case "store_failed" | "session_locked" | "snapshot_failed":
            return StoreError(code, message, detail)
        case "invalid_tools" | "unknown_tool_call":
            return ToolError(code, message, detail)
        case "invalid_answer":
            return AnswerError(code, message, detail)
        case "run_failed" if detail.startswith("tool:"):
            return ToolError(code, message, detail)
        case "engine_init_failed" | "run_failed" if detail.startswith("config:"):
            return ConfigError(code, message, detail)
        case "engine_init_failed" | "run_failed":
            return ProviderError(code, message, detail)
        case _:  # also the codes of later versions
            return RequestError(code, message, detail)
