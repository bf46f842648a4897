"""Handles values in the JSON of requests for which protobuf's parser surprises callers.

Enum values may have short names, such as `hybrid` for `RETRIEVER_HYBRID`. A boolean in place of a
number or an enum value is refused, while protobuf would convert it to 1 or 0. A text in place of an
object is refused, while protobuf would look for the names of fields in it. A name with the
character NUL is refused, while protobuf would take only what precedes it. Errors name fields as
replies do.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from winnow.errors import InvalidRequestError, Violation
from winnow.quoting import quoted, shortened


def short_names(choice: EnumDescriptor) -> list[str]:
    """Returns the names of an enum's values without their prefix, such as HYBRID.

    The first value, which means "not set", is left out.
    """
    first, *others = [value.name for value in choice.values]
    prefix = first.removesuffix("UNSPECIFIED")
    return [name.removeprefix(prefix) for name in others]


def no_choice(choice: EnumDescriptor, value: str) -> str:
    """Describes a value that is no name of an enum's values."""
    return f"{quoted(value)} is none of {', '.join(short_names(choice))}"


def with_full_names(message: Any, value: Any) -> Any:
    """Returns the JSON of a message with the full name of every enum value.

    `message` is the descriptor of the message, and `value` is its parsed JSON, which is not
    changed. Wrong values are left for protobuf's parser to refuse.
    """
    if not isinstance(value, dict) or not (fields := _enum_fields(message)):
        return value
    return {
        name: _with_full_enum_names_in(fields[name], each) if name in fields else each
        for name, each in value.items()
    }


def _with_full_enum_names_in(field: FieldDescriptor, value: Any) -> Any:
    # does not descend into a list in a list, which is wrong and may be arbitrarily deep
    return (
        [_with_full_enum_names(field, each) for each in value]
        if isinstance(value, list)
        else _with_full_enum_names(field, value)
    )


def _with_full_enum_names(field: FieldDescriptor, value: Any) -> Any:
    if field.enum_type is not None and isinstance(value, str):
        return _enum_value_names(field.enum_type).get(value.upper(), value)
    return value if field.message_type is None else with_full_names(field.message_type, value)


@cache
def _enum_value_names(choice: EnumDescriptor) -> dict[str, str]:
    """Returns the full names of an enum's values, by full names and by short names."""
    full = [value.name for value in choice.values]
    return dict(zip([*full, *short_names(choice)], [*full, *full[1:]], strict=True))


@cache
def _enum_fields(message: Any) -> dict[str, FieldDescriptor]:
    """Returns the fields that are or contain enums, by proto and JSON names; never maps."""
    fields = [field for field in message.fields if _has_enum(field, {message.full_name})]
    return {name: field for field in fields for name in (field.name, field.json_name)}


def _has_enum(field: FieldDescriptor, above: set[str]) -> bool:
    """Whether a field is or contains an enum. A recursive message is searched once."""
    inner = field.message_type
    if inner is None or inner.full_name in above or inner.GetOptions().map_entry:
        return field.enum_type is not None
    return any(_has_enum(each, above | {inner.full_name}) for each in inner.fields)


_NO_NAME = re.compile("[\0\ud800-\udfff]")
"""Characters for which protobuf's parser finds another name, or fails with a misleading error."""
_FLOAT_TYPES = {FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE}
_SAFE_TYPES = {FieldDescriptor.CPPTYPE_BOOL, FieldDescriptor.CPPTYPE_STRING}
"""Types that allow a boolean, or for which protobuf's parser refuses all wrong values."""
_WELL_KNOWN = "google.protobuf."
"""Prefix of messages that have a special form in JSON."""
_ANY_VALUE = f"{_WELL_KNOWN}Value"


def misplaced_value(kind: type[Message], value: Any) -> Violation | None:
    """Returns a violation if a request has a value of another type than its field.

    Only of types that protobuf's parser converts, or reports in a misleading way.
    """
    return next(_misplaced_values(kind.DESCRIPTOR, value, ""), None)


def _misplaced_values(kind: Any, value: Any, path: str) -> Iterator[Violation]:
    """Yields the violations of a message's fields.

    `path` is the path of the message in the request, which ends with a dot unless it is empty.
    """
    if not isinstance(value, dict):
        return  # reported elsewhere
    for name in filter(_NO_NAME.search, value):
        problem = f"{quoted(name)} is not a field of this request"
        yield Violation(f"{path}{shortened(name)}", problem)
    fields = _checked_fields(kind)
    for name in fields.keys() & value.keys():
        field, found = fields[name], value[name]
        several = field.is_repeated and isinstance(found, list)
        for number, each in enumerate(found if several else [found]):
            place = f"{path}{name}[{number}]" if several else f"{path}{name}"
            if field.message_type is None:
                if isinstance(each, bool):
                    yield Violation(place, f"{str(each).lower()} {_type_error_of(field)}")
                elif field.enum_type is not None and _is_misread(each):
                    is_name = isinstance(each, str)
                    problem = no_choice(field.enum_type, each) if is_name else _type_error_of(field)
                    yield Violation(place, problem)
            elif not field.is_repeated or several:
                yield from _misplaced_in_message(field.message_type, each, place)
            elif each is None and field.message_type.full_name == _ANY_VALUE:
                yield Violation(place, "is null: send a list")  # null is no list of such values


def _misplaced_in_message(kind: Any, value: Any, place: str) -> Iterator[Violation]:
    """Yields the violations of one message."""
    if _has_own_form(kind):
        return
    if value is not None and not isinstance(value, dict):
        yield Violation(place, "is not an object: put its fields in { }")
    yield from _misplaced_values(kind, value, f"{place}.")


def _has_own_form(kind: Any) -> bool:
    """Whether messages of this kind are not objects with their fields in JSON."""
    return bool(kind.full_name.startswith(_WELL_KNOWN) or kind.GetOptions().map_entry)


@cache
def _checked_fields(kind: Any) -> dict[str, FieldDescriptor]:
    """Returns the fields in which a value may be misplaced, by proto names and JSON names."""
    fields = (field for field in kind.fields if field.cpp_type not in _SAFE_TYPES)
    return {name: field for field in fields for name in (field.name, field.json_name)}


def _type_error_of(field: FieldDescriptor) -> str:
    if field.enum_type is not None:
        return "is not an enum value: give its name in quotes"
    return "is not a number" if field.cpp_type in _FLOAT_TYPES else "is not a whole number"


def _is_misread(value: Any) -> bool:
    """Whether protobuf's parser would take another enum value for this one, or fail."""
    if isinstance(value, str):
        return bool(_NO_NAME.search(value))
    if isinstance(value, float):
        return not value.is_integer()
    return isinstance(value, (list, dict))


@contextmanager
def json_names_in_errors(kind: type[Message]) -> Iterator[None]:
    """Renames the fields in an InvalidRequestError of a request as they are named in JSON."""
    try:
        yield
    except InvalidRequestError as error:
        violations = (
            replace(each, field=_json_path(kind.DESCRIPTOR, each.field))
            for each in error.violations
        )
        raise InvalidRequestError(*violations).with_public(error.public) from error


def _json_path(kind: Any, path: str) -> str:
    """Converts a path of proto names, such as `requests[0].max_loss`, to JSON names.

    Other names, such as those of headers and metadata, are not changed.
    """
    parts = []
    for part in path.split("."):
        name, bracket, number = part.partition("[")
        fields = kind.fields if kind is not None else ()
        field = next((each for each in fields if name in (each.name, each.json_name)), None)
        parts.append(part if field is None else f"{field.json_name}{bracket}{number}")
        kind = None if field is None else field.message_type
    return ".".join(parts)
