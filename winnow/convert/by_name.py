"""Converts between dataclasses and messages by matching the names of fields and enum values."""

from collections.abc import Iterable
from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

Value = TypeVar("Value")
EnumType = TypeVar("EnumType", bound=Enum)


def value_of_message(kind: type[Value], message: Message, /, **other_fields: Any) -> Value:
    """Creates a dataclass of type `kind` from `other_fields` and the fields of `message`.

    Fields are matched by name. An unset field becomes None if protobuf tracks its presence, and the
    default of its type otherwise.
    """
    for name, has_presence in _fields(kind, message.DESCRIPTOR):  # type: ignore[arg-type]
        if name not in other_fields:
            is_set = not has_presence or message.HasField(name)
            other_fields[name] = getattr(message, name) if is_set else None
    return kind(**other_fields)


@cache
def _fields(kind: type[Any], descriptor: Descriptor) -> tuple[tuple[str, bool], ...]:
    """Returns each field name of a dataclass, and whether protobuf tracks the field's presence."""
    in_message = descriptor.fields_by_name
    return tuple(
        (item.name, item.name in in_message and in_message[item.name].has_presence)
        for item in fields(kind)
    )


def optional(message: Message, name: str) -> Any:
    """Returns a field of a message; None if it is unset and protobuf tracks its presence."""
    if message.DESCRIPTOR.fields_by_name[name].has_presence and not message.HasField(name):
        return None
    return getattr(message, name)


def same_fields(value: Any, excluded: Iterable[str] = ()) -> dict[str, Any]:
    """Returns the fields of a dataclass as keyword arguments for a message.

    The message must have fields of the same names. `excluded` fields are left out.
    """
    names = (item.name for item in fields(value) if item.name not in excluded)
    return {name: getattr(value, name) for name in names}


def milliseconds(seconds: Any, *names: str) -> dict[str, float]:
    """Converts fields in seconds to keyword arguments in milliseconds, such as `read_ms`."""
    return {f"{name}_ms": getattr(seconds, name) * 1e3 for name in names}


def numbers_of(kind: type[EnumType], message_enum: Any, prefix: str) -> dict[EnumType, Any]:
    """Maps an enum to the numbers of a protobuf enum, whose names have `prefix`."""
    return {item: message_enum.Value(prefix + item.name) for item in kind}


def choices_of(numbers: dict[EnumType, Any]) -> dict[int, EnumType]:
    """Inverts the result of `numbers_of`."""
    return {number: choice for choice, number in numbers.items()}
