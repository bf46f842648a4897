"""Names of enum values in JSON: `RETRIEVER_HYBRID`, and for those who write by hand `hybrid`."""

from functools import cache
from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor


def short_names(choice: EnumDescriptor) -> list[str]:
    """The values of an enum without its prefix, such as HYBRID; without the first, 'not set'."""
    first, *others = [value.name for value in choice.values]
    prefix = first.removesuffix("UNSPECIFIED")
    return [name.removeprefix(prefix) for name in others]


def with_full_names(message: Any, value: Any) -> Any:
    """JSON of a message with the full name of every enum value; what is wrong stays as it is.

    Args:
        message: descriptor of what the JSON is to become.
        value: its JSON, as `json` reads it; not changed.

    """
    if not isinstance(value, dict) or not (fields := _leading_to_choices(message)):
        return value
    return {
        name: _field(fields[name], each) if name in fields else each for name, each in value.items()
    }


def _field(field: FieldDescriptor, value: Any) -> Any:
    # a list in a list is wrong: what looked into it would go as deep as its caller likes
    return (
        [_full(field, each) for each in value] if isinstance(value, list) else _full(field, value)
    )


def _full(field: FieldDescriptor, value: Any) -> Any:
    if field.enum_type is not None and isinstance(value, str):
        return _names(field.enum_type).get(value.upper(), value)
    return value if field.message_type is None else with_full_names(field.message_type, value)


@cache
def _names(choice: EnumDescriptor) -> dict[str, str]:
    """Full names, by full and by short names."""
    full = [value.name for value in choice.values]
    return dict(zip([*full, *short_names(choice)], [*full, *full[1:]], strict=True))


@cache
def _leading_to_choices(message: Any) -> dict[str, FieldDescriptor]:
    """Fields that are enums, or hold some, by both their names; maps have none."""
    found = [field for field in message.fields if _choices(field, {message.full_name})]
    return {name: field for field in found for name in (field.name, field.json_name)}


def _choices(field: FieldDescriptor, above: set[str]) -> bool:
    """Whether a field is an enum or holds one; messages that hold themselves end the search."""
    inner = field.message_type
    if inner is None or inner.full_name in above or inner.GetOptions().map_entry:
        return field.enum_type is not None
    return any(_choices(each, above | {inner.full_name}) for each in inner.fields)
