"""Builds the OpenAPI 3.1 description of the HTTP interface, with JSON schemas of its messages."""

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from winnow.rpc import client_key, request_id
from winnow.stateless.http.call import LINES_TYPE, HttpOperation
from winnow.stateless.http.headers import TENANT_HEADER, TIMEOUT_HEADER
from winnow.stateless.http.json_fields import short_names
from winnow.stateless.http.problems import MEDIA_TYPE
from winnow.v1 import http_pb2

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
    FieldDescriptor.TYPE_UINT64: {"type": "string", "pattern": "^[0-9]+$"},
}
"""Schemas of scalar types. Numbers of 64 bits are strings, because some JSON parsers round them."""
_OBJECT = "google.protobuf.Struct"
_TEXT_OR_OBJECT = "google.protobuf.Value"
"""Only documents to rerank are of this type."""


class Schemas:
    """Collects the schemas of messages, and of the messages in their fields."""

    def __init__(self, comments: Mapping[str, str]) -> None:
        """`comments` of the protos, by full name, as `proto/comments.py` writes them."""
        self._comments = comments
        self.by_name: dict[str, Schema] = {}

    def add(self, kind: type[Message]) -> Schema:
        """Adds the schema of a message; returns a reference to it."""
        return self._message(kind.DESCRIPTOR)

    def _message(self, message: Any) -> Schema:
        if message.full_name == _OBJECT:
            return {"type": "object", "additionalProperties": True}
        if message.full_name == _TEXT_OR_OBJECT:
            return {"type": ["string", "object"]}
        name = _name(message)
        if name not in self.by_name:
            self.by_name[name] = {}  # a message may contain itself
            fields = {field.json_name: self._field(field) for field in message.fields}
            self.by_name[name] = self._with_comment(
                message.full_name, type="object", properties=fields
            )
        return {"$ref": f"#/components/schemas/{name}"}

    def _field(self, field: FieldDescriptor) -> Schema:
        schema = self._value(field)
        if field.is_repeated and "additionalProperties" not in schema:
            schema = {"type": "array", "items": schema}
        return self._with_comment(field.full_name, **schema)

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
        if name not in self.by_name:
            schema = self._with_comment(choice.full_name, type="string")
            short = f"Requests may have short names, in any case: {', '.join(short_names(choice))}."
            values = map(self._enum_value_line(choice), choice.values)
            lines = [schema.get("description", ""), *values, short]
            schema["description"] = "\n".join(filter(None, lines))
            self.by_name[name] = {**schema, "enum": [value.name for value in choice.values]}
        return {"$ref": f"#/components/schemas/{name}"}

    def _enum_value_line(self, choice: EnumDescriptor) -> Any:
        def line(value: Any) -> str:
            comment = self._comments.get(f"{choice.full_name}.{value.name}", "")
            return comment and f"- {value.name}: {comment}"

        return line

    def _with_comment(self, name: str, **schema: Any) -> Schema:
        comment = self._comments.get(name)
        return {**schema, "description": comment} if comment else schema


def _name(descriptor: Descriptor | EnumDescriptor) -> str:
    """Returns the full name without the package and without dots, such as `ShardCoverageStatus`.

    Some generators of clients take a dot for the separator of modules.
    """
    return descriptor.full_name.removeprefix("winnow.v1.").replace(".", "")


ABOUT = (
    "Field names are lowerCamelCase in replies. Requests may also use the names of the protos, "
    "such as passages_to_read, and short names of enum values in any case, such as hybrid for "
    "RETRIEVER_HYBRID. Numbers of 64 bits are strings. A front with several indexes serves "
    "/v1/indexes/NAME/answer for /v1/answer, and so on. An error is a Problem. It names the fields "
    "that break a rule and the id of the request. If a client closes its connection, its "
    "request is cancelled."
)
_HEADERS = {
    TENANT_HEADER: "Tenant of the request, in an index with tenants. A key of a tenant decides it.",
    TIMEOUT_HEADER: "Seconds that the request may take, such as 0.5.",
    client_key.KEY: "Name of the caller, for fair sharing: 1 to 64 of A-Z, a-z, 0-9, ._:@-",
    request_id.KEY: "Id of the request for logs: 1 to 64 of A-Z, a-z, 0-9, ._-",
}


def openapi(calls: Iterable[HttpOperation], version: str) -> Schema:
    """Describes operations. Reads the comments of the protos from a packaged file."""
    comments = json.loads(files("winnow.v1").joinpath("comments.json").read_text("utf-8"))
    schemas = Schemas(comments)
    problem = _content(MEDIA_TYPE, schemas.add(http_pb2.Problem), "An error.")
    paths: dict[str, Schema] = {}
    for call in calls:
        operation = _operation(call, schemas, problem)
        paths.setdefault(call.path, {})[call.verb.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Winnow", "version": version, "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.by_name.items())),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "Token of a key."}
            },
        },
        # a front without --keys needs none
        "security": [{}, {"key": []}],
    }


def _operation(call: HttpOperation, schemas: Schemas, problem: Schema) -> Schema:
    reply, media_type, about = schemas.add(call.response), "application/json", "The reply."
    if call.is_stream:
        about = f"JSON lines, each of which is a {call.response.DESCRIPTOR.name}."
        reply, media_type = {"type": "string", "contentMediaType": LINES_TYPE}, LINES_TYPE
    schema: Schema = {
        "operationId": call.name,
        "summary": call.about.partition(". ")[0].rstrip("."),
        "description": call.about,
        "parameters": [_header(name, about) for name, about in _HEADERS.items()],
        "responses": {"200": _content(media_type, reply, about), "default": problem},
    }
    request = schemas.add(call.request)
    if call.verb == "GET":
        message: Any = call.request.DESCRIPTOR
        properties = schemas.by_name[message.name]["properties"]
        # a query has no place for messages
        names = [each.json_name for each in message.fields if each.message_type is None]
        schema["parameters"] += [_parameter(name, properties[name]) for name in names]
    else:
        body = _content("application/json", request, f"At most {call.max_body_bytes} bytes.")
        schema["requestBody"] = {**body, "required": True}
    return schema


def _header(name: str, about: str) -> Schema:
    return {"name": name, "in": "header", "description": about, "schema": {"type": "string"}}


def _parameter(name: str, schema: Schema) -> Schema:
    about = {"description": schema["description"]} if "description" in schema else {}
    kind = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": "query", **about, "schema": kind}


def _content(media_type: str, schema: Any, about: str) -> Schema:
    return {"description": about, "content": {media_type: {"schema": schema}}}
