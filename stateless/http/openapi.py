"""The description of the interface for programs (OpenAPI 3.1), made of its calls."""

import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from winnow.rpc import client_key, request_id
from winnow.stateless.http.call import HttpOperation
from winnow.stateless.http.patience import TIMEOUT
from winnow.stateless.http.problems import MEDIA_TYPE
from winnow.stateless.http.schemas import Schema, Schemas
from winnow.v1 import http_pb2

ABOUT = (
    "Names of fields are lowerCamelCase in replies; requests may also have those of the protos, "
    "such as passages_to_read, and short names of choices in any case, such as hybrid for "
    "RETRIEVER_HYBRID. Numbers of 64 bits are strings. An error is a Problem, with the "
    "fields that break a rule and the id of the request. A client that closes its connection gives "
    "its request up."
)
_HEADERS = {
    TIMEOUT: "Seconds that the request may take, such as 0.5.",
    client_key.KEY: "A name of the caller, for sharing fairly; 1 to 64 of A-Z, a-z, 0-9, ._:@-",
    request_id.KEY: "A name of the request for logs; 1 to 64 of A-Z, a-z, 0-9, ._-",
}


def openapi(calls: Iterable[HttpOperation], version: str) -> Schema:
    """The description of some calls; reads the comments of the protos from their file."""
    comments = json.loads(files("winnow.v1").joinpath("comments.json").read_text("utf-8"))
    schemas = Schemas(comments)
    problem = _content(MEDIA_TYPE, schemas.add(http_pb2.Problem), "An error.")
    paths: dict[str, Schema] = {}
    for call in calls:
        told = _operation(call, schemas, problem)
        paths.setdefault(call.path, {})[call.verb.lower()] = told
    return {
        "openapi": "3.1.0",
        "info": {"title": "Winnow", "version": version, "description": ABOUT},
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.found.items()))},
    }


def _operation(call: HttpOperation, schemas: Schemas, problem: Schema) -> Schema:
    reply = schemas.add(call.response)
    told: Schema = {
        "operationId": call.name,
        "summary": call.about.partition(". ")[0].rstrip("."),
        "description": call.about,
        "parameters": [_header(name, about) for name, about in _HEADERS.items()],
        "responses": {"200": _content("application/json", reply, "The reply."), "default": problem},
    }
    request = schemas.add(call.request)
    if call.verb == "GET":
        fields = schemas.found[call.request.DESCRIPTOR.name]["properties"]
        told["parameters"] += [_parameter(name, schema) for name, schema in fields.items()]
    else:
        body = _content("application/json", request, f"At most {call.largest} bytes.")
        told["requestBody"] = {**body, "required": True}
    return told


def _header(name: str, about: str) -> Schema:
    return {"name": name, "in": "header", "description": about, "schema": {"type": "string"}}


def _parameter(name: str, schema: Schema) -> Schema:
    about = {"description": schema["description"]} if "description" in schema else {}
    kind = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": "query", **about, "schema": kind}


def _content(media_type: str, schema: Any, about: str) -> Schema:
    return {"description": about, "content": {media_type: {"schema": schema}}}
