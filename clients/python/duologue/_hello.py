"""The first frame of a process, which says what it is."""

from __future__ import annotations

from . import messages as m
from ._errors import ProtocolError, VersionError
from ._message import JsonObject

PROTOCOL = "pinocchio.chatapp.rpc.v1"
SERVER_VERSION_MIN = (0, 1, 0)
REQUEST_BYTES_MAX = 10 * 1024 * 1024


def check_hello(frame: JsonObject) -> m.HelloFrame:
    """The `hello` of a server that this package works with."""
    raw = frame.get("hello")
    if raw is None or raw.get("protocol") != PROTOCOL:
        begun = f"speaks {raw.get('protocol')}" if raw else "does not begin with `hello`"
        raise ProtocolError(f"The process {begun}; this package needs {PROTOCOL}.")
    hello = m.HelloFrame(raw)
    version = _capability(hello, "server-version")
    if _numbers(version) < SERVER_VERSION_MIN:
        least = ".".join(map(str, SERVER_VERSION_MIN))
        raise VersionError(f"duologue {version or '(unknown)'} is too old: this package needs {least} or later.")
    return hello


def request_bytes_max(hello: m.HelloFrame | None) -> int:
    """The longest request that the server takes."""
    text = _capability(hello, "max-request-bytes") if hello else ""
    return int(text) if text.isdecimal() else REQUEST_BYTES_MAX


def _capability(hello: m.HelloFrame, name: str) -> str:
    return next((word.partition("=")[2] for word in hello.capabilities if word.startswith(name + "=")), "")


def _numbers(version: str) -> tuple[int, ...]:
    numbers = version.partition("-")[0].partition("+")[0].split(".")
    return tuple(int(number) for number in numbers) if all(number.isdecimal() for number in numbers) else ()
