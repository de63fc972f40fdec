"""What the generated messages are made of: views of JSON objects."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, TypeVar

JsonObject = dict[str, Any]
E = TypeVar("E", bound=Enum)
M = TypeVar("M", bound="Message")

TYPE_URL = "type.googleapis.com/"
_classes: dict[str, type[Message]] = {}


class Message:
    """A message of the protocol, as a view of its JSON object: nothing is copied, and nothing is lost.

    `raw` is the object, with the fields that this version of the library does not know. For an event, `frame` is the
    whole line that it came in; `ordinal` and `request_id` are of that line.
    """

    __slots__ = ("raw", "frame")
    TYPE: ClassVar[str] = ""

    raw: JsonObject
    frame: JsonObject | None

    def __init__(self, raw: JsonObject | None = None, frame: JsonObject | None = None) -> None:
        self.raw = {} if raw is None else raw
        self.frame = frame

    def __init_subclass__(cls) -> None:
        if cls.TYPE:
            _classes[TYPE_URL + cls.TYPE] = cls

    @property
    def ordinal(self) -> int:
        """Number of the event; 0 for what is no event."""
        event = (self.frame or {}).get("uiEvent")
        return int(event.get("ordinal", 0)) if event else 0

    @property
    def request_id(self) -> str:
        """Request whose event this is; empty for an event of the session."""
        return str((self.frame or {}).get("requestId", ""))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Message) and other.raw == self.raw

    __hash__ = None  # type: ignore[assignment]

    @staticmethod
    def _enum(kind: type[E], value: Any) -> E | str:
        if value is None:
            return next(iter(kind))
        return kind.__members__.get(value, value)

    @staticmethod
    def _message(kind: type[M], value: Any) -> M | None:
        return None if value is None else kind(value)

    @staticmethod
    def _optional_int(value: Any) -> int | None:
        return None if value is None else int(value)


class Unknown(Message):
    """A payload of a type that this version of the library does not know; `raw` has all of it."""

    __slots__ = ()

    @property
    def type(self) -> str:
        """Full name of the type, as `example.v1.Message`."""
        return str(self.raw.get("@type", "")).rpartition("/")[2]


def payload_of(raw: JsonObject | None, frame: JsonObject | None = None) -> Message | Unknown | None:
    """The typed view of a `google.protobuf.Any`."""
    if raw is None:
        return None
    return _classes.get(raw.get("@type", ""), Unknown)(raw, frame)
