"""The ASGI application of a front: serves its operations, and errors for all other paths."""

from collections.abc import Iterable, Sequence
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from winnow.errors import NotFoundError, WinnowError
from winnow.packaged import extra
from winnow.quoting import quoted
from winnow.rpc import request_id
from winnow.stateless.http.call import HttpOperation
from winnow.stateless.http.endpoint import INDEX_PARAMETER, Endpoint, EndpointContext
from winnow.stateless.http.problems import HttpRefusedError, response_of

_FEED = "--feed-listen and --http-feed (or WINNOW_FRONT_HTTP_FEED=true)"
_HEADS = "--heads or --head-servers"
_AGENTS = f"--shards or --reader-threads, and the extra `mcp`: {extra('mcp')}"
_READER = "--reader-threads"
_SHARDS = "--shards; `winnow reader` has no index"
_PAGES = "HTTP pages, which --no-http-pages switches off"
_NEEDS = {
    "/v1/answer": _SHARDS,
    "/v1/answers": _SHARDS,
    "/v1/search": _SHARDS,
    "/v1/documents": _SHARDS,
    "/v1/passages:get": _SHARDS,
    "/v1/passages:count": _SHARDS,
    "/v1/predict": _HEADS,
    "/v1/heads": _HEADS,
    "/v1/read": _READER,
    "/v1/rerank": _READER,
    "/v2/rerank": _READER,
    "/v1/highlight": _READER,
    "/v1/passages": _SHARDS,
    "POST /v1/passages": _FEED,
    "/v1/passages:delete": _FEED,
    "/v1/passages:deleteWhere": _FEED,
    "/v1/passages:export": _SHARDS,
    "/v1/tenants": _SHARDS,
    "/v1/tenants:usage": _SHARDS,
    "/v1/tenants:delete": _FEED,
    "/v1/documents:convert": f"{_FEED}, and the extra `documents`",
    "/mcp": _AGENTS,
    "/": _PAGES,
    "/docs": _PAGES,
    "/docs.md": _PAGES,
    "/llms.txt": _PAGES,
    "/openapi.json": _PAGES,
}
"""The settings that a front needs to serve each path, or a method of a path."""
_WITHOUT_INDEX = frozenset(
    (
        "/v1/predict",
        "/v1/heads",
        "/v1/read",
        "/v1/rerank",
        "/v1/highlight",
        "/v1/documents:convert",
    )
)
"""Paths that do not exist for a named index."""


def not_found_detail(method: str, path: str) -> str:
    """Returns the detail of a 404, which names the setting that enables the path, if any."""
    base = _without_index(path)
    if path != base and base in _WITHOUT_INDEX:
        return f"unknown path {quoted(path)}: {base} is for no index"
    if needs := _NEEDS.get(f"{method} {base}") or _NEEDS.get(base):
        return f"this front does not serve {quoted(path)}: it needs {needs}"
    return f"unknown path {quoted(path)}: see /docs"


def _not_allowed_detail(method: str, path: str, allowed: str) -> str:
    """Returns the detail of a 405, which names the setting that enables the method, if any.

    Otherwise it names the methods that are allowed: `allowed` is the header of this name.
    """
    needs = _NEEDS.get(f"{method} {_without_index(path)}")
    problem = f"{quoted(method)} is not supported at {quoted(path)}"
    others = " or ".join(sorted(allowed.split(", ")))  # Starlette's order is random
    return f"{problem}: it needs {needs}" if needs else f"{problem}: use {others}"


def _without_index(path: str) -> str:
    """Returns the path that does the same without an index: the inverse of `with_index`."""
    start, _, named = path.partition("/v1/indexes/")
    index, slash, rest = named.partition("/")
    if start or not index or not slash:
        return path
    return f"/{rest}" if f"/{rest}" == "/mcp" else f"/v1/{rest}"


def application(
    calls: Iterable[HttpOperation], context: EndpointContext, extra_routes: Sequence[BaseRoute]
) -> ASGIApp:
    """Returns an application that serves operations at their paths, and `extra_routes`."""
    routes = [
        Route(path, endpoint, methods=[call.verb], name=call.name)
        for call in calls
        for endpoint in [Endpoint(call, context)]
        for path in _operation_paths(call)
    ]
    handlers = {HTTPException: _routing_error, Exception: _internal_error}
    app = Starlette(routes=[*routes, *extra_routes], exception_handlers=handlers)
    # no redirect from /livez/ to /livez: behind a proxy that ends TLS it would lead to http://
    app.router.redirect_slashes = False
    return app


def with_index(path: str) -> str:
    """Returns the path that does the same as `path` for an index that it names."""
    return f"/v1/indexes/{{{INDEX_PARAMETER}}}{path.removeprefix('/v1')}"


def _operation_paths(call: HttpOperation) -> list[str]:
    if INDEX_PARAMETER not in call.request.DESCRIPTOR.fields_by_name:
        return [call.path]
    return [call.path, with_index(call.path)]


async def _routing_error(request: Request, error: Exception) -> Response:
    """Returns the error of an unknown path, or of a method that the path does not support."""
    assert isinstance(error, HTTPException)
    status, path = HTTPStatus(error.status_code), request.url.path
    problem: WinnowError = HttpRefusedError(status, "request", error.detail)
    if status is HTTPStatus.NOT_FOUND:
        problem = NotFoundError(not_found_detail(request.method, path))
    elif status is HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = (error.headers or {}).get("Allow", "another method")
        detail = _not_allowed_detail(request.method, path, allowed)
        problem = HttpRefusedError(status, "method", detail)
    response = response_of(problem, request_id.current())
    response.headers.update(error.headers or {})
    return response


async def _internal_error(_request: Request, _error: Exception) -> Response:
    return response_of(WinnowError(), request_id.current())
