"""Corrects the JSON of requests where protobuf's parser surprises callers: enums and booleans.

Enum values may have short names, such as `hybrid` for `RETRIEVER_HYBRID`. A boolean is refused in
place of a number or an enum value; protobuf would take it for 1 or 0.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from winnow.errors import Violation


def short_names(choice: EnumDescriptor) -> list[str]:
    """Names of an enum's values without their prefix, such as HYBRID; the first, 'not set', is
    left out.
    """
    first, *others = [value.name for value in choice.values]
    prefix = first.removesuffix("UNSPECIFIED")
    return [name.removeprefix(prefix) for name in others]


def with_full_names(message: Any, value: Any) -> Any:
    """JSON of a message, with the full name of every enum value; wrong values stay as they are.

    `message` is the descriptor, `value` its JSON as `json` reads it, which is not changed.
    """
    if not isinstance(value, dict) or not (fields := _enum_fields(message)):
        return value
    return {
        name: _field(fields[name], each) if name in fields else each for name, each in value.items()
    }


def _field(field: FieldDescriptor, value: Any) -> Any:
    # a list in a list is wrong; looking into it would go as deep as a caller likes
    return (
        [_with_full_enum_names(field, each) for each in value]
        if isinstance(value, list)
        else _with_full_enum_names(field, value)
    )


def _with_full_enum_names(field: FieldDescriptor, value: Any) -> Any:
    if field.enum_type is not None and isinstance(value, str):
        return _names(field.enum_type).get(value.upper(), value)
    return value if field.message_type is None else with_full_names(field.message_type, value)


@cache
def _names(choice: EnumDescriptor) -> dict[str, str]:
    """Full names of an enum's values, by full and by short names."""
    full = [value.name for value in choice.values]
    return dict(zip([*full, *short_names(choice)], [*full, *full[1:]], strict=True))


@cache
def _enum_fields(message: Any) -> dict[str, FieldDescriptor]:
    """Fields that are enums or contain enums, by both of their names; maps contain none."""
    fields = [field for field in message.fields if _has_enum(field, {message.full_name})]
    return {name: field for field in fields for name in (field.name, field.json_name)}


def _has_enum(field: FieldDescriptor, above: set[str]) -> bool:
    """Whether a field is or contains an enum; a recursive message is searched once."""
    inner = field.message_type
    if inner is None or inner.full_name in above or inner.GetOptions().map_entry:
        return field.enum_type is not None
    return any(_has_enum(each, above | {inner.full_name}) for each in inner.fields)


_FLOAT_TYPES = {FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE}
_BOOLEAN_SAFE_TYPES = {FieldDescriptor.CPPTYPE_BOOL, FieldDescriptor.CPPTYPE_STRING}
"""Types that may be a boolean, or for which the library refuses one itself."""
_WELL_KNOWN = "google.protobuf."
"""Package of messages that have a special form in JSON."""


def misplaced_boolean(kind: type[Message], value: Any) -> Violation | None:
    """Returns a violation if a field of a request is a boolean but has another type."""
    return next(_misplaced_booleans(kind.DESCRIPTOR, value, ""), None)


def _misplaced_booleans(kind: Any, value: Any, path: str) -> Iterator[Violation]:
    """Violations of a message's fields; `path` leads to it, with a dot at its end if not empty."""
    if not isinstance(value, dict):
        return  # the library says what is wrong
    fields = _fields(kind)
    for name in fields.keys() & value.keys():
        field, found = fields[name], value[name]
        several = field.is_repeated and isinstance(found, list)
        for number, each in enumerate(found if several else [found]):
            place = f"{path}{name}[{number}]" if several else f"{path}{name}"
            if field.message_type is not None:
                yield from _misplaced_booleans(field.message_type, each, f"{place}.")
            elif isinstance(each, bool):
                yield Violation(place, f"{str(each).lower()} {_wrong(field)}")


@cache
def _fields(kind: Any) -> dict[str, FieldDescriptor]:
    """The fields that may hold a boolean in the wrong place, by both of their names."""
    if kind.full_name.startswith(_WELL_KNOWN) or kind.GetOptions().map_entry:
        return {}
    fields = (field for field in kind.fields if field.cpp_type not in _BOOLEAN_SAFE_TYPES)
    return {name: field for field in fields for name in (field.name, field.json_name)}


def _wrong(field: FieldDescriptor) -> str:
    if field.enum_type is not None:
        return "is not a choice: give its name in quotes"
    return "is not a number" if field.cpp_type in _FLOAT_TYPES else "is not a whole number"
