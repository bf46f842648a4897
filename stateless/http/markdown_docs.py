"""Describes the HTTP interface as plain Markdown, for language models: `/docs.md` and `/llms.txt`.

`/llms.txt` is a short index of what a site offers to models (https://llmstxt.org).
"""

import re
from collections.abc import Iterator, Sequence

from winnow.stateless.http.call import HttpOperation
from winnow.stateless.http.examples import curl_command
from winnow.stateless.http.openapi import ABOUT, Schema


def reference(described: Schema, calls: Sequence[HttpOperation], base: str) -> str:
    """Returns the reference of all calls and messages. `base` is the URL of the front."""
    parts = ["# Winnow over HTTP", ABOUT]
    for call in calls:
        parts += [f"## {call.verb} {call.path}", call.about, f"    {curl_command(call, base)}"]
        request, reply = (each.DESCRIPTOR.name for each in (call.request, call.response))
        parts.append(f"Request: {request}. Reply: {reply}.")
    for name, schema in described["components"]["schemas"].items():
        parts += [f"## {name}", *_schema(schema)]
    return "\n\n".join(parts) + "\n"


def _schema(schema: Schema) -> Iterator[str]:
    if about := schema.get("description"):
        yield about
    fields = [
        f"- `{name}` ({_kind(of)}){_about(of)}" for name, of in schema.get("properties", {}).items()
    ]
    if fields:
        yield "\n".join(fields)


def _about(schema: Schema) -> str:
    about = re.sub(r"\s*\n\s*", " ", schema.get("description", ""))
    return f": {about}" if about else ""


def _kind(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if schema["type"] == "array":
        return f"list of {_kind(schema['items'])}"
    return " or ".join([schema["type"]] if isinstance(schema["type"], str) else schema["type"])


def llms_text(calls: Sequence[HttpOperation], base: str, serves_agents: bool) -> str:
    """Returns the index for language models. `base` is the URL of the front."""
    lines = [
        "# Winnow",
        "",
        "> Answers questions asked in plain language with the exact words of indexed passages,",
        "> with citations, confidence, and the part of the index that was searched.",
        "",
        "## Interfaces",
        "",
        f"- [Reference]({base}/docs.md): every call and message, in Markdown",
        f"- [OpenAPI]({base}/openapi.json): the same for generators of clients",
    ]
    if serves_agents:
        lines.append(f"- [MCP]({base}/mcp): tools for agents, by the Model Context Protocol")
    lines += ["", "## Calls", ""]
    lines += [f"- {call.verb} {call.path}: {call.about.partition('. ')[0]}" for call in calls]
    return "\n".join(lines) + "\n"
