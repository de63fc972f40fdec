"""JSON Schema from Python types, and values of those types from JSON."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import itertools
import re
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, Union

JsonObject = dict[str, Any]
_SIMPLE = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_FITTING: dict[Any, Any] = {
    str: str, bool: bool, float: (int, float), type(None): type(None), list: list, set: list, tuple: list, dict: dict
}


def schema_of(kind: Any) -> JsonObject:
    """The JSON Schema of a type: a pydantic model, a dataclass, a TypedDict, an enum, or what is made of these.

    A dict is a schema already. A type that is a part of itself is in `$defs`.
    """
    if isinstance(kind, dict):
        return kind
    schemas = _Schemas()
    return schemas.whole(schemas.of(kind))


class _Schemas:
    """The schemas of a type and of what it has. What is referred to is at the root of the whole."""

    def __init__(self) -> None:
        self._definitions: JsonObject = {}
        self._models: dict[Any, JsonObject] = {}
        self._names: dict[Any, str] = {}
        # Whose schemas are being made.
        self._open: set[Any] = set()

    def whole(self, schema: JsonObject) -> JsonObject:
        """The schema with its definitions."""
        if not self._definitions:
            return schema
        if schema.keys() == {"$ref"}:
            # Without a reference: not every provider takes one at the root.
            schema = self._definitions[schema["$ref"].rpartition("/")[2]]
        return {**schema, "$defs": self._definitions}

    def of(self, kind: Any) -> JsonObject:
        """The schema of a type, or a reference to it."""
        if isinstance(kind, dict):
            return kind
        if hasattr(kind, "model_json_schema"):
            return dict(self._of_model(kind))
        if kind in _SIMPLE:
            return {"type": _SIMPLE[kind]}
        if kind is Any or kind is inspect.Parameter.empty:
            return {}
        origin, args = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            notes = [note for note in args[1:] if isinstance(note, str)]
            return self.of(args[0]) | ({"description": notes[0]} if notes else {})
        if origin is Literal:
            return {"enum": list(args)}
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.of(arg) for arg in args]}
        if kind in (list, set, tuple) or origin in (list, set) or (origin is tuple and args[1:] == (...,)):
            return {"type": "array"} | ({"items": self.of(args[0])} if args else {})
        if kind is dict or origin is dict:
            return {"type": "object"} | ({"additionalProperties": self.of(args[1])} if args else {})
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return {"enum": [member.value for member in kind]}
        if _has_fields(kind):
            return self._of_fields(kind)
        raise TypeError(f"{kind!r} has no JSON Schema; use a pydantic model, a dataclass, a TypedDict, or a schema")

    def of_object(self, properties: dict[str, Any], required: set[str]) -> JsonObject:
        """The schema of an object with these members."""
        return {
            "type": "object",
            "properties": {name: self.of(kind) for name, kind in properties.items()},
            "required": [name for name in properties if name in required],
            "additionalProperties": False,
        }

    def _of_fields(self, kind: Any) -> JsonObject:
        """That of a dataclass or a TypedDict, which may be a part of itself."""
        if kind in self._open and kind not in self._names:
            name = self._names[kind] = self._free_name(re.sub(r"\W", "_", kind.__name__))
            self._definitions[name] = {}
        if kind in self._names:
            return self._reference(kind)
        self._open.add(kind)
        schema = self.of_object(_hints(kind), _required(kind))
        self._open.discard(kind)
        if kind not in self._names:
            return schema
        self._definitions[self._names[kind]] = schema
        return self._reference(kind)

    def _of_model(self, kind: Any) -> JsonObject:
        """That of a pydantic model, whose definitions go to the root."""
        if kind not in self._models:
            suffix, at = "", 1
            while True:
                schema = dict(kind.model_json_schema(ref_template=f"#/$defs/{{model}}{suffix}"))
                own = {name + suffix: value for name, value in schema.pop("$defs", {}).items()}
                # Two models may have parts of one name.
                if all(self._definitions.get(name, value) == value for name, value in own.items()):
                    break
                at += 1
                suffix = f"_{at}"
            self._definitions |= own
            self._models[kind] = schema
        return self._models[kind]

    def _reference(self, kind: Any) -> JsonObject:
        return {"$ref": "#/$defs/" + self._names[kind]}

    def _free_name(self, name: str) -> str:
        numbered = (f"{name}_{at}" for at in itertools.count(2))
        return next(free for free in itertools.chain([name], numbered) if free not in self._definitions)


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
    if _has_fields(kind):
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
    schemas = _Schemas()
    schema = schemas.of_object(
        {p.name: hints.get(p.name, Any) for p in named},
        {p.name for p in named if p.default is p.empty},
    )
    return schemas.whole(schema)


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


def _has_fields(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind) or typing.is_typeddict(kind)


def _hints(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {name: _bare(hint) for name, hint in hints.items() if typing.get_origin(hint) is not typing.ClassVar}


def _bare(hint: Any) -> Any:
    """The type of a member of a TypedDict, without what says that it may be left out."""
    while getattr(typing.get_origin(hint), "_name", None) in ("Required", "NotRequired", "ReadOnly"):
        hint = typing.get_args(hint)[0]
    return hint


def _required(kind: Any) -> set[str]:
    if dataclasses.is_dataclass(kind):
        return {field.name for field in dataclasses.fields(kind) if _is_required(field)}
    return set(kind.__required_keys__)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    """The value of the first kind that `value` fits. The arguments of a tool may fit none, and be more or less than one."""
    if type(value) in (int, float) and type(value) in kinds:
        return value  # And not the one that it can be made.
    fitting = [kind for kind in kinds if _fits(kind, value)] or [kind for kind in kinds if _is_of_shape(kind, value)]
    refusals = []
    for kind in fitting:
        try:
            return value_of(kind, value)
        except (TypeError, ValueError) as refusal:
            refusals.append(refusal)
    if refusals:
        raise refusals[0]
    return value


def _is_of_shape(kind: Any, value: Any) -> bool:
    """Whether both are an object, a list, or neither."""
    if typing.get_origin(kind) is typing.Annotated:
        return _is_of_shape(typing.get_args(kind)[0], value)
    outer = typing.get_origin(kind) or kind
    is_model = hasattr(kind, "model_validate")
    if isinstance(value, dict):
        return is_model or outer is dict or _has_fields(kind)
    if isinstance(value, list):
        return is_model or outer in (list, set, tuple)
    return not (outer in (list, set, tuple, dict) or _has_fields(kind))


def _fits(kind: Any, value: Any) -> bool:
    """Whether `value`, as JSON has it, has the schema of a type."""
    if isinstance(kind, dict) or kind is Any:
        return True
    if hasattr(kind, "model_validate"):
        return _fits_model(kind, value)
    if kind in _FITTING:
        return isinstance(value, _FITTING[kind]) and (kind is bool or not isinstance(value, bool))
    if kind is int:
        # JSON has one kind of numbers, and 1.0 is a whole one.
        return type(value) is int or isinstance(value, float) and value.is_integer()
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _fits(args[0], value)
    if origin in (Union, types.UnionType):
        return any(_fits(arg, value) for arg in args)
    if origin is Literal or (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        values = args if origin is Literal else [member.value for member in kind]
        return any(item == value and isinstance(item, bool) == isinstance(value, bool) for item in values)
    if origin in (list, set, tuple):
        return isinstance(value, list) and all(_fits(args[0], item) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(args[1], item) for item in value.values())
    return _has_fields(kind) and _fits_fields(_hints(kind), _required(kind), value)


def _fits_fields(hints: dict[str, Any], required: set[str], value: Any) -> bool:
    if not isinstance(value, dict) or not required <= value.keys() <= hints.keys():
        return False
    return all(_fits(hints[name], item) for name, item in value.items())


def _fits_model(model: Any, value: Any) -> bool:
    fields = getattr(model, "model_fields", None)
    if fields and isinstance(value, dict):
        # A model leaves out what it does not know, so that it would take the values of others.
        names = {name for key, field in fields.items() for name in (key, field.alias, field.validation_alias)}
        if not value.keys() <= names:
            return False
    try:
        model.model_validate(value)
    except ValueError:
        return False
    return True
