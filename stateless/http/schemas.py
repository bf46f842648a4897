"""JSON schemas of messages, by protobuf's JSON mapping and with the comments of the protos."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from winnow.stateless.http.choices import short_names

Schema = dict[str, Any]
_KINDS: Mapping[int, Schema] = {
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
    FieldDescriptor.TYPE_DOUBLE: {"type": "number", "format": "double"},
    FieldDescriptor.TYPE_FLOAT: {"type": "number", "format": "float"},
    FieldDescriptor.TYPE_INT32: {"type": "integer", "format": "int32"},
    FieldDescriptor.TYPE_INT64: {"type": "string", "format": "int64"},
    FieldDescriptor.TYPE_STRING: {"type": "string"},
    FieldDescriptor.TYPE_UINT32: {"type": "integer", "format": "int64", "minimum": 0},
    FieldDescriptor.TYPE_UINT64: {"type": "string", "format": "uint64"},
}
"""Numbers of 64 bits are strings: not every reader of JSON has so many digits."""
_OBJECT = "google.protobuf.Struct"


class Schemas:
    """The schemas of messages and of all that they hold, by their names."""

    def __init__(self, comments: Mapping[str, str]) -> None:
        """`comments`: by full names, as `proto/comments.py` writes them."""
        self._comments = comments
        self.found: dict[str, Schema] = {}

    def add(self, kind: type[Message]) -> Schema:
        """A reference to the schema of a message."""
        return self._message(kind.DESCRIPTOR)

    def _message(self, message: Any) -> Schema:
        if message.full_name == _OBJECT:
            return {"type": "object", "additionalProperties": True}
        name = _name(message)
        if name not in self.found:
            self.found[name] = {}  # a message may hold itself
            fields = {field.json_name: self._field(field) for field in message.fields}
            self.found[name] = self._told(message.full_name, type="object", properties=fields)
        return {"$ref": f"#/components/schemas/{name}"}

    def _field(self, field: FieldDescriptor) -> Schema:
        schema = self._value(field)
        if field.is_repeated and "additionalProperties" not in schema:
            schema = {"type": "array", "items": schema}
        return self._told(field.full_name, **schema)

    def _value(self, field: FieldDescriptor) -> Schema:
        message = field.message_type
        if message is not None and message.GetOptions().map_entry:
            values = self._value(message.fields_by_name["value"])
            return {"type": "object", "additionalProperties": values}
        if message is not None:
            return self._message(message)
        if field.enum_type is not None:
            return self._choice(field.enum_type)
        return dict(_KINDS[field.type])

    def _choice(self, choice: EnumDescriptor) -> Schema:
        name = _name(choice)
        if name not in self.found:
            told = self._told(choice.full_name, type="string")
            short = f"Requests may have short names, in any case: {', '.join(short_names(choice))}."
            values = map(self._line(choice), choice.values)
            lines = [told.get("description", ""), *values, short]
            told["description"] = "\n".join(filter(None, lines))
            self.found[name] = {**told, "enum": [value.name for value in choice.values]}
        return {"$ref": f"#/components/schemas/{name}"}

    def _line(self, choice: EnumDescriptor) -> Any:
        def line(value: Any) -> str:
            comment = self._comments.get(f"{choice.full_name}.{value.name}", "")
            return comment and f"- {value.name}: {comment}"

        return line

    def _told(self, name: str, **schema: Any) -> Schema:
        comment = self._comments.get(name)
        return {**schema, "description": comment} if comment else schema


def _name(what: Descriptor | EnumDescriptor) -> str:
    """Without the package: `ShardCoverage.Status`."""
    return what.full_name.removeprefix("winnow.v1.")
