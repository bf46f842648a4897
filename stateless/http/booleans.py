"""Refuses true and false where a number or a choice belongs: the library takes them for 1 and 0."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from winnow.errors import Violation

_FRACTIONS = {FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE}
_TRUTHS = {FieldDescriptor.CPPTYPE_BOOL, FieldDescriptor.CPPTYPE_STRING}
"""What may be a boolean; and what the library refuses by itself."""
_WELL_KNOWN = "google.protobuf."
"""Messages with a form of their own in JSON, such as objects with any values."""


def misplaced_boolean(kind: type[Message], value: Any) -> Violation | None:
    """A field of a request, as `json` reads it, that is true or false and must not be."""
    return next(_misplaced(kind.DESCRIPTOR, value, ""), None)


def _misplaced(kind: Any, value: Any, path: str) -> Iterator[Violation]:
    """All such fields of a message; `path` leads to it, and ends with a dot if it is not empty."""
    if not isinstance(value, dict):
        return  # the library says what is wrong
    fields = _fields(kind)
    for name in fields.keys() & value.keys():
        field, found = fields[name], value[name]
        several = field.is_repeated and isinstance(found, list)
        for number, each in enumerate(found if several else [found]):
            place = f"{path}{name}[{number}]" if several else f"{path}{name}"
            if field.message_type is not None:
                yield from _misplaced(field.message_type, each, f"{place}.")
            elif isinstance(each, bool):
                yield Violation(place, f"{str(each).lower()} {_wrong(field)}")


@cache
def _fields(kind: Any) -> dict[str, FieldDescriptor]:
    """The fields that may hold a boolean in the wrong place, by both of their names."""
    if kind.full_name.startswith(_WELL_KNOWN) or kind.GetOptions().map_entry:
        return {}
    fields = (field for field in kind.fields if field.cpp_type not in _TRUTHS)
    return {name: field for field in fields for name in (field.name, field.json_name)}


def _wrong(field: FieldDescriptor) -> str:
    if field.enum_type is not None:
        return "is no choice: give its name in quotes"
    return "is no number" if field.cpp_type in _FRACTIONS else "is no whole number"
