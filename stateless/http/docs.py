"""Serves the description of the HTTP interface: for people `/docs`, for programs `/openapi.json`,
for language models `/docs.md` and `/llms.txt`.

`/docs` is one page without scripts, which loads nothing from other sites.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from html import escape

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from winnow.stateless.http.call import HttpOperation
from winnow.stateless.http.examples import curl_command
from winnow.stateless.http.markdown_docs import llms_text, reference
from winnow.stateless.http.openapi import ABOUT, Schema, openapi

_POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"
_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-top: 1px solid; padding-top: 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .9rem; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid; border-radius: .25rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; }
tr + tr { border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
"""


def docs_routes(
    calls: Sequence[HttpOperation], version: str, *, serves_agents: bool = False
) -> list[Route]:
    """Returns the routes of the descriptions, which are created at the first request.

    `serves_agents`: whether `/mcp` is served.
    """
    made: dict[str, Schema] = {}

    async def described() -> Schema:
        if not made:
            made.update(await asyncio.to_thread(openapi, calls, version))
        return made

    async def program(_request: Request) -> Response:
        return Response(json.dumps(await described()), media_type="application/json")

    async def people(request: Request) -> Response:
        page = _page(await described(), calls, _base_url(request))
        headers = {"content-security-policy": _POLICY}
        return Response(page, headers=headers, media_type="text/html")

    async def markdown(request: Request) -> Response:
        text = reference(await described(), calls, _base_url(request))
        return Response(text, media_type="text/markdown")

    async def llms(request: Request) -> Response:
        return Response(
            llms_text(calls, _base_url(request), serves_agents), media_type="text/markdown"
        )

    async def style(_request: Request) -> Response:
        return Response(_STYLE, media_type="text/css")

    return [
        Route("/openapi.json", program),
        Route("/docs", people),
        Route("/docs/style.css", style),
        Route("/docs.md", markdown),
        Route("/llms.txt", llms),
    ]


def _base_url(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _page(described: Schema, calls: Sequence[HttpOperation], base: str) -> str:
    parts = [part for call in calls for part in _operation_html(call, base)]
    schemas = described["components"]["schemas"]
    parts += [part for name, schema in schemas.items() for part in _schema_html(name, schema)]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Winnow over HTTP</title>'
        '<meta name="viewport" content="width=device-width">'
        '<link rel="stylesheet" href="/docs/style.css"><main><h1>Winnow over HTTP</h1>'
        f'<p>{escape(ABOUT)}</p><p>For programs: <a href="/openapi.json">/openapi.json</a>, '
        '<a href="/llms.txt">/llms.txt</a></p>'
        f"{''.join(parts)}</main></html>"
    )


def _operation_html(call: HttpOperation, base: str) -> Iterator[str]:
    yield f'<h2 id="{call.name}">{call.verb} {escape(call.path)}</h2><p>{escape(call.about)}</p>'
    request, response = (each.DESCRIPTOR.name or "" for each in (call.request, call.response))
    yield f"<pre>{escape(curl_command(call, base))}</pre>"
    yield f"<p>Request: {_schema_link(request)}. Reply: {_schema_link(response)}.</p>"


def _schema_html(name: str, schema: Schema) -> Iterator[str]:
    yield f'<h2 id="{name}">{name}</h2><p>{_description_html(schema)}</p>'
    if fields := schema.get("properties"):
        rows = (
            f"<tr><th><code>{field}</code><td>{_type_html(of)}<td>{_description_html(of)}"
            for field, of in fields.items()
        )
        yield f"<table>{''.join(rows)}</table>"


def _type_html(schema: Schema) -> str:
    """Returns the type of a field as HTML, with a link if the type is a schema."""
    if "$ref" in schema:
        return _schema_link(schema["$ref"].rpartition("/")[2])
    if schema["type"] == "array":
        return f"list of {_type_html(schema['items'])}"
    if isinstance(schema["type"], list):
        return " or ".join(map(escape, schema["type"]))
    return escape(schema["format"] if "format" in schema else schema["type"])


def _schema_link(name: str) -> str:
    return f'<a href="#{name}">{name}</a>'


def _description_html(schema: Schema) -> str:
    return escape(schema.get("description", "")).replace("\n", "<br>")
