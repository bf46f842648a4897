"""The detail of a 404 for a path that this front does not serve. Pure."""

from winnow.quoting import quoted

_FEED = "--feed-listen and --http-feed (or WINNOW_FRONT_HTTP_FEED=true)"
_HEADS = "--heads or --head-servers"
_PAGES = "HTTP pages, which --no-http-pages switches off"
_NEEDS = {
    "/v1/answer": "--shards",
    "/v1/answers": "--shards",
    "/v1/predict": _HEADS,
    "/v1/heads": _HEADS,
    "/v1/passages": _FEED,
    "/v1/passages:delete": _FEED,
    "/": _PAGES,
    "/docs": _PAGES,
    "/openapi.json": _PAGES,
}
"""What a front needs to serve each path."""


def absent(path: str) -> str:
    """Names the setting that serves the path, if there is one."""
    if needs := _NEEDS.get(path):
        return f"this front does not serve {quoted(path)}: it needs {needs}"
    return f"there is nothing at {quoted(path)} here: see /docs"
