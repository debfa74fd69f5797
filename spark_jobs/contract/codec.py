"""Strict JSON for frozen dataclasses: nothing is guessed, nothing unknown is accepted.

Supported field types: ``str``, ``int``, ``float``, ``bool``, ``Literal`` of strings, ``X | None``,
``tuple[X, ...]``, ``Mapping[str, X]``, ``Any`` (any JSON data), dataclasses, and unions of
dataclasses that carry their JSON tag in a class variable ``kind``. Fields that take no part in
comparison are left out. An error names the JSON path
(``$.statement.cases[1].action``).
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from spark_jobs.contract.checks import not_among, unknown_field
from spark_jobs.errors import ErrorCode, JobError, RequestError

T = TypeVar("T")


def encode(value: Any) -> Any:
    """``value`` as plain JSON data; dataclass fields in declaration order, ``kind`` first."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        document: dict[str, Any] = {}
        if kind := kind_of(type(value)):
            document["kind"] = kind
        for field in document_fields(type(value)):
            document[field.name] = encode(getattr(value, field.name))
        return document
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return value


def decode(cls: type[T], document: Any, path: str = "$") -> T:
    """``document`` as an instance of the dataclass ``cls``.

    Raises:
        RequestError: REQUEST_INVALID with the JSON path of the first field that does not fit, from
            ``path`` on.
    """
    return typing.cast("T", _decode(cls, document, path))


def invalid(path: str, problem: str, remedy: str = "") -> RequestError:
    """The error for a document that does not fit at ``path``."""
    return RequestError(ErrorCode.REQUEST_INVALID, problem, remedy, (path,) if path else ())


def _within(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@functools.cache
def field_types(cls: type) -> dict[str, Any]:
    """The resolved annotations of a dataclass's fields, in declaration order."""
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in document_fields(cls)}


def document_fields(cls: type) -> list[dataclasses.Field[Any]]:
    """The fields of a dataclass that its JSON has: those that take part in comparison."""
    return [field for field in dataclasses.fields(cls) if field.compare]


def kind_of(cls: type) -> str | None:
    """The JSON tag of a member of a union; None for other dataclasses."""
    return getattr(cls, "kind", None) if "kind" not in field_types(cls) else None


def _decode(annotation: Any, value: Any, path: str) -> Any:
    if isinstance(value, _RepeatedKey):
        raise invalid(_within(path, value.key), "occurs more than once")
    if annotation is Any:
        return _decode_any(value, path)
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return _decode_union(get_args(annotation), value, path)
    if origin is Literal:
        if value not in get_args(annotation) or not isinstance(value, str):
            raise not_among(path, value, get_args(annotation))
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise invalid(path, f"expected an array, found {_name(value)}")
        item = get_args(annotation)[0]
        return tuple(_decode(item, each, f"{path}[{i}]") for i, each in enumerate(value))
    if origin is Mapping:
        return _decode_mapping(get_args(annotation)[1], value, path)
    if dataclasses.is_dataclass(annotation):
        return _decode_dataclass(typing.cast("type", annotation), value, path)
    return _decode_scalar(annotation, value, path)


def _decode_any(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return _decode_mapping(Any, value, path)
    if isinstance(value, list):
        return [_decode(Any, each, f"{path}[{i}]") for i, each in enumerate(value)]
    if isinstance(value, str):
        _require_text(value, path)
    return value


def _decode_scalar(annotation: Any, value: Any, path: str) -> Any:
    if annotation is float and type(value) is int:
        value = float(value) if abs(value) < _FLOAT_LIMIT else math.inf
    if type(value) is not annotation:
        raise invalid(path, f"expected {_JSON_NAMES[annotation]}, found {_name(value)}")
    if annotation is float and not math.isfinite(value):
        raise invalid(path, "the number is too large")
    if annotation is str:
        _require_text(value, path)
    return value


def _require_text(value: str, path: str) -> None:
    # JSON can contain half of a surrogate pair, which neither a file nor a log can hold.
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise invalid(path, f"{value!r} is not Unicode text")


def _decode_union(members: tuple[Any, ...], value: Any, path: str) -> Any:
    if type(None) in members:
        if value is None:
            return None
        members = tuple(member for member in members if member is not type(None))
    if len(members) == 1:
        return _decode(members[0], value, path)
    if not isinstance(value, dict):
        raise invalid(path, f"expected an object, found {_name(value)}")
    kinds = {kind_of(member): member for member in members}
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise not_among(_within(path, "kind"), kind, sorted(str(each) for each in kinds))
    return _decode_dataclass(kinds[kind], value, path)


def _decode_mapping(item: Any, value: Any, path: str) -> Any:
    if not isinstance(value, dict):
        raise invalid(path, f"expected an object, found {_name(value)}")
    for key in value:
        _require_text(key, path)
    return {key: _decode(item, each, _within(path, key)) for key, each in value.items()}


def _decode_dataclass(cls: type, value: Any, path: str) -> Any:
    if not isinstance(value, dict):
        raise invalid(path, f"expected an object, found {_name(value)}")
    annotations = field_types(cls)
    known = set(annotations)
    kind = kind_of(cls)
    if kind is not None:
        known.add("kind")
        if value.get("kind") != kind:
            raise invalid(_within(path, "kind"), f"{value.get('kind')!r} is not {kind!r}")
    for key in value:
        if key not in known:
            raise unknown_field(_within(path, key), key, sorted(known))
    arguments = {
        name: _decode(annotation, value[name], _within(path, name))
        for name, annotation in annotations.items()
        if name in value
    }
    for field in document_fields(cls):
        if field.name not in arguments and is_required(field):
            raise invalid(_within(path, field.name), "missing")
    try:
        return cls(**arguments)
    except JobError as error:
        raise (error.within(path) if path else error) from None


def is_required(field: dataclasses.Field[Any]) -> bool:
    """True for a field without a default."""
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


_FLOAT_LIMIT = 2**1023

_JSON_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "a boolean"}


def _name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    return _JSON_NAMES.get(type(value), type(value).__name__)


def load_versioned(text: str, version: int) -> Any:
    """The JSON document in ``text``, whose ``version`` field must be ``version``.

    Raises:
        RequestError: REQUEST_INVALID if it is not a JSON object with unique keys,
            REQUEST_VERSION_UNKNOWN if it was written for another version.
    """
    try:
        document = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise invalid("$", f"not a JSON document: {error}") from None
    if isinstance(document, _RepeatedKey):
        raise invalid(f"$.{document.key}", "occurs more than once")
    if not isinstance(document, dict):
        raise invalid("$", f"expected an object, found {_name(document)}")
    if "version" not in document:
        raise invalid("$.version", "missing")
    document_version = document["version"]
    if type(document_version) is int and document_version != version:
        raise RequestError(
            ErrorCode.REQUEST_VERSION_UNKNOWN,
            f"$.version: {document_version} is not known here, only {version}",
            "Use the same release of airflow-provider-merge on both sides.",
        )
    return document


@dataclasses.dataclass(frozen=True, slots=True)
class _RepeatedKey:
    """A placeholder for an object with a repeated key, until ``_decode`` knows its path."""

    key: str


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _RepeatedKey:
    document: dict[str, Any] = {}
    for key, value in pairs:
        if key in document:
            return _RepeatedKey(key)
        document[key] = value
    return document


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")
