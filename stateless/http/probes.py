"""The routes of liveness, readiness and metrics."""

import asyncio
import json

from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from winnow.errors import WinnowError
from winnow.rpc import request_id
from winnow.stateless.http.call import Gate
from winnow.stateless.http.headers import header_value, text_of
from winnow.stateless.http.problems import response_of
from winnow.telemetry.endpoint import exposition


class Readiness:
    """Whether a front is starting, ready, or leaving."""

    def __init__(self) -> None:
        self._ready = self._was_ready = self._closed = False

    def set_ready(self, ready: bool) -> None:
        """Sets whether the front is ready. After `close` this does nothing."""
        self._ready = ready and not self._closed
        self._was_ready |= self._ready

    def close(self) -> None:
        """Makes the front not ready permanently."""
        self._ready, self._closed = False, True

    @property
    def ready(self) -> bool:
        """Whether callers should send requests to this front."""
        return self._ready

    @property
    def starting(self) -> bool:
        """Whether the front has not been ready yet: models may be cold, or shards missing."""
        return not self._was_ready

    @property
    def leaving(self) -> bool:
        """Whether callers should use another front, although this front still answers."""
        return self._closed or (self._was_ready and not self._ready)


def probe_routes(readiness: Readiness, registry: CollectorRegistry, gate: Gate) -> list[Route]:
    """Returns the routes `/livez`, `/readyz` and `/metrics`. `/metrics` needs the scope `admin`."""
    metrics_lock = asyncio.Lock()

    async def live(_request: Request) -> Response:
        return _status_response(True, "alive")

    async def ready(_request: Request) -> Response:
        word = "starting" if readiness.starting else "leaving"
        return _status_response(readiness.ready, "ready" if readiness.ready else word)

    async def metrics(request: Request) -> Response:
        headers = text_of(request.scope["headers"])
        try:
            gate("admin", headers)
        except WinnowError as error:
            return response_of(error, request_id.current())
        async with metrics_lock:  # concurrent expositions would delay questions
            accept = header_value(headers, "accept")
            kind, page = await asyncio.to_thread(exposition, registry, accept)
        return Response(page, headers={"content-type": kind})

    return [Route("/livez", live), Route("/readyz", ready), Route("/metrics", metrics)]


def _status_response(is_ok: bool, word: str) -> Response:
    return Response(
        json.dumps({"status": word}), 200 if is_ok else 503, media_type="application/json"
    )
