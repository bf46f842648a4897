"""The routes of the web page, for any Starlette application.

The page runs only its own scripts and styles and loads nothing from other sites. No site can frame
it. Trusted Types keep replies from becoming markup: the page shows them as text.
"""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from winnow.stateless.page.assets import Asset, assets

_ALLOWED = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}
POLICY = "; ".join(f"{directive} {sources}" for directive, sources in _ALLOWED.items())
_HEADERS = {
    "cache-control": "no-cache",  # browsers revalidate: a newer server has a newer page
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_INDEX = "index.html"


def page_routes() -> list[Route]:
    """Returns the routes of `/`, and of the page's files under `/page/`."""
    files = assets()
    index = files.pop(_INDEX)
    others = [_route(f"/page/{name}", asset) for name, asset in files.items()]
    return [_route("/", index), *others]


def route_to_docs() -> Route:
    """Returns a route of `/` for a server that answers no questions: it leads to `/docs`."""

    async def send(_request: Request) -> Response:
        return RedirectResponse("docs")  # relative, since a proxy may serve it below a path

    return Route("/", send)


def _route(path: str, asset: Asset) -> Route:
    tag = asset.tag
    headers = {**_HEADERS, "content-type": asset.media_type, "etag": tag}

    async def send(request: Request) -> Response:
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(asset.content, headers=headers)

    return Route(path, send)
