"""Conversions by name: fields and choices that plain values and messages have in common."""

from collections.abc import Iterable
from dataclasses import fields
from enum import Enum
from typing import Any, TypeVar

from google.protobuf.message import Message

Value = TypeVar("Value")
Choice = TypeVar("Choice", bound=Enum)


def value_of_message(kind: type[Value], message: Message, /, **others: Any) -> Value:
    """A dataclass of type `kind`: `others`, and the fields of `message` with the same names.

    A field that the message does not have set, where it can tell, is None.
    """
    names = (each.name for each in fields(kind) if each.name not in others)  # type: ignore[arg-type]
    return kind(**{name: optional(message, name) for name in names}, **others)


def optional(message: Message, name: str) -> Any:
    """A field of a message; None if the message can tell that the field is not set."""
    if message.DESCRIPTOR.fields_by_name[name].has_presence and not message.HasField(name):
        return None
    return getattr(message, name)


def same_fields(value: Any, leave_out: Iterable[str] = ()) -> dict[str, Any]:
    """The fields of a dataclass by their names, as arguments for the message that has them too."""
    names = (each.name for each in fields(value) if each.name not in leave_out)
    return {name: getattr(value, name) for name in names}


def milliseconds(seconds: Any, *names: str) -> dict[str, float]:
    """Fields in seconds as arguments of a message in milliseconds: `read` becomes `read_ms`."""
    return {f"{name}_ms": getattr(seconds, name) * 1e3 for name in names}


def numbers_of(kind: type[Choice], message_enum: Any, prefix: str) -> dict[Choice, Any]:
    """The number of each choice in a message: that of the name with `prefix`."""
    return {each: message_enum.Value(prefix + each.name) for each in kind}


def choices_of(numbers: dict[Choice, Any]) -> dict[int, Choice]:
    """The inverse of `numbers_of`."""
    return {number: choice for choice, number in numbers.items()}
