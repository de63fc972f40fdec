"""JSON Schema from Python types, and values of those types from JSON."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, Union

JsonObject = dict[str, Any]
_SIMPLE = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def schema_of(kind: Any) -> JsonObject:
    """The JSON Schema of a type: a pydantic model, a dataclass, a TypedDict, an enum, or what is made of these.

    A dict is a schema already.
    """
    if isinstance(kind, dict):
        return kind
    if hasattr(kind, "model_json_schema"):
        return dict(kind.model_json_schema())
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    if kind is Any or kind is inspect.Parameter.empty:
        return {}
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        notes = [note for note in args[1:] if isinstance(note, str)]
        return schema_of(args[0]) | ({"description": notes[0]} if notes else {})
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(arg) for arg in args]}
    if kind in (list, set, tuple) or origin in (list, set) or (origin is tuple and args[1:] == (...,)):
        return {"type": "array"} | ({"items": schema_of(args[0])} if args else {})
    if kind is dict or origin is dict:
        return {"type": "object"} | ({"additionalProperties": schema_of(args[1])} if args else {})
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    if dataclasses.is_dataclass(kind):
        return _object(_hints(kind), {f.name for f in dataclasses.fields(kind) if _is_required(f)})
    if typing.is_typeddict(kind):
        return _object(_hints(kind), set(kind.__required_keys__))
    raise TypeError(f"{kind!r} has no JSON Schema; use a pydantic model, a dataclass, a TypedDict, or a schema")


def value_of(kind: Any, value: Any) -> Any:
    """The value of a type that `value`, as JSON has it, stands for. The server has checked it against the schema."""
    if isinstance(kind, dict) or kind is Any or value is None:
        return value
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return value_of(args[0], value)
    if origin in (Union, types.UnionType):
        return _one_of(args, value)
    if origin in (list, set, tuple):
        return origin(value_of(args[0], item) for item in value)
    if origin is dict:
        return {key: value_of(args[1], item) for key, item in value.items()}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        build: Any = kind
        return build(**{key: value_of(hints[key], item) for key, item in value.items() if key in hints})
    if kind is float:
        return float(value)
    if kind is int:
        return int(value)
    return value


def named_function(function: Callable[..., Any]) -> Any:
    """What a `functools.partial` calls in the end; any other function is that itself."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def schema_of_parameters(function: Callable[..., Any]) -> JsonObject:
    """The JSON Schema of the arguments of a function. What a `functools.partial` has given is none of them."""
    hints = _hints_of_parameters(function)
    given = _given_by_name(function)
    parameters = inspect.signature(function).parameters.values()
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in given]
    return _object(
        {p.name: hints.get(p.name, Any) for p in named},
        {p.name for p in named if p.default is p.empty},
    )


def arguments_of(function: Callable[..., Any], arguments: JsonObject) -> JsonObject:
    """`arguments` as the types that the function names."""
    for name in _given_by_name(function):
        if name in arguments:
            # The program has decided it, and not the model.
            raise TypeError(f"got an unexpected argument {name!r}")
    hints = _hints_of_parameters(function)
    return {name: value_of(hints.get(name, Any), value) for name, value in arguments.items()}


def _hints_of_parameters(function: Callable[..., Any]) -> dict[str, Any]:
    named = named_function(function)
    # What is no function, but can be called, has its hints there.
    return typing.get_type_hints(named if inspect.isroutine(named) else named.__call__, include_extras=True)


def _given_by_name(function: Callable[..., Any]) -> set[str]:
    given: set[str] = set()
    while isinstance(function, functools.partial):
        given |= function.keywords.keys()
        function = function.func
    return given


def _object(properties: dict[str, Any], required: set[str]) -> JsonObject:
    return {
        "type": "object",
        "properties": {name: schema_of(kind) for name, kind in properties.items()},
        "required": [name for name in properties if name in required],
        "additionalProperties": False,
    }


def _hints(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {name: hint for name, hint in hints.items() if typing.get_origin(hint) is not typing.ClassVar}


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    if type(value) in kinds:
        return value
    for kind in kinds:
        try:
            return value_of(kind, value)
        except (TypeError, ValueError):
            continue
    return value
