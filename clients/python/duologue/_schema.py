"""JSON Schema from Python types, and values of those types from JSON."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import itertools
import json
import pathlib
import re
import types
import typing
import uuid
from collections import abc
from collections.abc import Callable
from typing import Any, Literal, Union

JsonObject = dict[str, Any]
_SIMPLE = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_FITTING: dict[Any, Any] = {str: str, bool: bool, float: (int, float), type(None): type(None)}
# What has values of each type of lists, and of objects.
_LISTS: dict[Any, Callable[[Any], Any]] = {
    list: list, set: set, frozenset: frozenset, tuple: tuple, abc.Sequence: list, abc.MutableSequence: list,
    abc.Collection: list, abc.Iterable: list, abc.Set: set, abc.MutableSet: set,
}
_DICTS = (dict, abc.Mapping, abc.MutableMapping)


class _Text(typing.NamedTuple):
    """A type whose values are texts in JSON: the `format` of its schema, and how a value is read and shown."""

    format: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str] = str


def _iso(text: str) -> str:
    # Python 3.10 does not know Z, and reads fractions of a second only with 3 or 6 digits.
    text = re.sub("[zZ]$", "+00:00", text)
    return re.sub(r"\.(\d+)", lambda fraction: "." + fraction[1][:6].ljust(6, "0"), text)


_TEXTS: dict[Any, _Text] = {
    # Before `date`, which a datetime is too.
    datetime.datetime: _Text(
        "date-time", lambda text: datetime.datetime.fromisoformat(_iso(text)), datetime.datetime.isoformat
    ),
    datetime.date: _Text("date", datetime.date.fromisoformat, datetime.date.isoformat),
    datetime.time: _Text("time", lambda text: datetime.time.fromisoformat(_iso(text)), datetime.time.isoformat),
    uuid.UUID: _Text("uuid", uuid.UUID),
    decimal.Decimal: _Text("", decimal.Decimal),
    pathlib.Path: _Text("", pathlib.Path),
    pathlib.PurePath: _Text("", pathlib.PurePath),
}


def schema_of(kind: Any) -> JsonObject:
    """The JSON Schema of a type: a pydantic model, a dataclass, a TypedDict, a NamedTuple, an enum, a date, or what is
    made of these.

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
        if kind in _TEXTS:
            return {"type": "string"} | ({"format": _TEXTS[kind].format} if _TEXTS[kind].format else {})
        if kind in (Any, object, inspect.Parameter.empty):
            return {}
        if _is_alias(kind):
            return self._once(kind, lambda: self.of(_aliased(kind)))
        origin, args = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            notes = [note for note in args[1:] if isinstance(note, str)]
            return self.of(args[0]) | ({"description": notes[0]} if notes else {})
        if origin is Literal:
            return {"enum": [_plain(arg) for arg in args]}
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.of(arg) for arg in args]}
        if origin is tuple and args and args[-1] is not ...:
            items = [self.of(arg) for arg in args]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if (origin or kind) in _LISTS:
            return {"type": "array"} | ({"items": self.of(args[0])} if args else {})
        if (origin or kind) in _DICTS:
            return {"type": "object"} | ({"additionalProperties": self.of(args[1])} if args else {})
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return {"enum": [member.value for member in kind]}
        if _has_fields(kind):
            return self._once(kind, lambda: self.of_object(_hints(kind), _required(kind)))
        raise TypeError(f"{kind!r} has no JSON Schema; use a pydantic model, a dataclass, a TypedDict, or a schema")

    def of_object(self, properties: dict[str, Any], required: set[str]) -> JsonObject:
        """The schema of an object with these members."""
        return {
            "type": "object",
            "properties": {name: self.of(kind) for name, kind in properties.items()},
            "required": [name for name in properties if name in required],
            "additionalProperties": False,
        }

    def _once(self, kind: Any, make: Callable[[], JsonObject]) -> JsonObject:
        """The schema of a type that may be a part of itself."""
        if kind in self._open and kind not in self._names:
            name = self._names[kind] = self._free_name(re.sub(r"\W", "_", kind.__name__))
            self._definitions[name] = {}
        if kind in self._names:
            return self._reference(kind)
        self._open.add(kind)
        schema = make()
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
    if kind in _TEXTS:
        return _text_of(kind, value)
    if _is_alias(kind):
        return value_of(_aliased(kind), value)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return value_of(args[0], value)
    if origin is Literal:
        return next((arg for arg in args if _is_same(_plain(arg), value)), value)
    if origin in (Union, types.UnionType):
        return _one_of(args, value)
    if (origin or kind) in _LISTS:
        return _LISTS[origin or kind](_items_of(args, value))
    if (origin or kind) in _DICTS:
        return {_key_of(args[0], key): value_of(args[1], item) for key, item in value.items()} if args else dict(value)
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


def _text_of(kind: Any, value: Any) -> Any:
    """The value of one of `_TEXTS`. The arguments of a tool may have a number in its place."""
    try:
        return _TEXTS[kind].parse(str(value))
    except ArithmeticError:
        raise ValueError(f"{value!r} is no {kind.__name__}") from None


def _items_of(args: tuple[Any, ...], items: Any) -> list[Any]:
    if len(args) > 1 and args[-1] is not ...:
        return [value_of(kind, item) for kind, item in zip(args, items, strict=True)]
    return [value_of(args[0], item) if args else item for item in items]


def _key_of(kind: Any, key: str) -> Any:
    """The name of a member as the type that it stands for: JSON has text alone there."""
    readings: list[Any] = [key]
    with contextlib.suppress(ValueError):
        readings.append(json.loads(key))
    return value_of(kind, next((reading for reading in readings if _fits(kind, reading)), key))


def json_of(value: Any) -> Any:
    """What JSON has for a value of a type, as `json.dumps` asks for it."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return list(value)
    for kind, text in _TEXTS.items():
        if isinstance(value, kind):
            return text.show(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


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


def _is_alias(kind: Any) -> bool:
    """Whether it is a name for another type: a `NewType`, one that `type` has made, or a type variable."""
    return any(hasattr(typing.get_origin(kind) or kind, name) for name in ("__supertype__", "__value__", "__bound__"))


def _aliased(kind: Any) -> Any:
    outer = typing.get_origin(kind) or kind
    if hasattr(outer, "__bound__"):
        return outer.__bound__ or Any
    if hasattr(outer, "__supertype__"):
        return outer.__supertype__
    return _filled_in(outer.__value__, dict(zip(outer.__type_params__, typing.get_args(kind))))


def _filled_in(hint: Any, given: dict[Any, Any]) -> Any:
    """A type with what its type variables stand for."""
    if isinstance(hint, typing.TypeVar):
        return given.get(hint, hint)
    variables = getattr(hint, "__parameters__", ()) if typing.get_origin(hint) else ()
    return hint[tuple(given.get(variable, variable) for variable in variables)] if given and variables else hint


def _has_fields(kind: Any) -> bool:
    outer = typing.get_origin(kind) or kind
    is_of_fields = dataclasses.is_dataclass(outer) or typing.is_typeddict(outer)
    return isinstance(outer, type) and (is_of_fields or _is_named_tuple(outer))


def _is_named_tuple(kind: Any) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_field_defaults")


def _hints(kind: Any) -> dict[str, Any]:
    """The types of what a value of the type is made from, by name."""
    outer = typing.get_origin(kind) or kind
    hints = typing.get_type_hints(outer, include_extras=True)
    if dataclasses.is_dataclass(outer):
        own = {field.name for field in dataclasses.fields(outer) if field.init}
        hints = {
            name: hint.type if isinstance(hint, dataclasses.InitVar) else hint
            for name, hint in hints.items()
            if name in own or isinstance(hint, dataclasses.InitVar)
        }
    given = dict(zip(getattr(outer, "__parameters__", ()), typing.get_args(kind)))
    return {name: _filled_in(_bare(hint), given) for name, hint in hints.items()}


def _bare(hint: Any) -> Any:
    """The type of a member of a TypedDict, without what says that it may be left out."""
    while getattr(typing.get_origin(hint), "_name", None) in ("Required", "NotRequired", "ReadOnly"):
        hint = typing.get_args(hint)[0]
    return hint


def _required(kind: Any) -> set[str]:
    outer = typing.get_origin(kind) or kind
    if dataclasses.is_dataclass(outer):
        # `fields` leaves out what is for `__post_init__` alone.
        fields = outer.__dataclass_fields__
        return {name for name in _hints(kind) if _is_required(fields[name])}
    if _is_named_tuple(outer):
        return _hints(kind).keys() - outer._field_defaults.keys()
    return set(outer.__required_keys__)


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
    if _is_alias(kind):
        return _is_of_shape(_aliased(kind), value)
    outer = typing.get_origin(kind) or kind
    is_model = hasattr(kind, "model_validate")
    if isinstance(value, dict):
        return is_model or outer in _DICTS or _has_fields(kind)
    if isinstance(value, list):
        return is_model or outer in _LISTS
    return not (outer in _LISTS or outer in _DICTS or _has_fields(kind))


def _plain(value: Any) -> Any:
    """A value of a `Literal`, or a member of an enum, as JSON has it."""
    return value.value if isinstance(value, enum.Enum) else value


def _is_same(plain: Any, value: Any) -> bool:
    """Whether both are one value; 1 and True are two."""
    return bool(plain == value) and isinstance(plain, bool) == isinstance(value, bool)


def _fits(kind: Any, value: Any) -> bool:
    """Whether `value`, as JSON has it, has the schema of a type."""
    if isinstance(kind, dict) or kind in (Any, object):
        return True
    if hasattr(kind, "model_validate"):
        return _fits_model(kind, value)
    if kind in _TEXTS:
        return isinstance(value, str) and _is_readable(kind, value)
    if _is_alias(kind):
        return _fits(_aliased(kind), value)
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
        return any(_is_same(_plain(item), value) for item in (args if origin is Literal else kind))
    if (origin or kind) in _LISTS:
        return isinstance(value, list) and _fits_items(args, value)
    if (origin or kind) in _DICTS:
        return isinstance(value, dict) and (not args or all(_fits(args[1], item) for item in value.values()))
    return _has_fields(kind) and _fits_fields(_hints(kind), _required(kind), value)


def _is_readable(kind: Any, text: str) -> bool:
    try:
        _text_of(kind, text)
    except ValueError:
        return False
    return True


def _fits_items(args: tuple[Any, ...], items: list[Any]) -> bool:
    if len(args) > 1 and args[-1] is not ...:
        return len(args) == len(items) and all(map(_fits, args, items))
    return not args or all(_fits(args[0], item) for item in items)


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
