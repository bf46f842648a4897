"""What machines look at: whether the front is alive, whether it is ready, and its metrics."""

import asyncio
import json

from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from winnow.errors import WinnowError
from winnow.rpc import request_id
from winnow.stateless.http.call import Gate
from winnow.stateless.http.headers import find, text_of
from winnow.stateless.http.problems import response_of
from winnow.telemetry.endpoint import exposition


class Readiness:
    """Whether a front is starting, ready, or leaving."""

    def __init__(self) -> None:
        self._ready = self._was_ready = self._closed = False

    def say(self, ready: bool) -> None:
        """Changes whether it is ready, unless it was closed."""
        self._ready = ready and not self._closed
        self._was_ready |= self._ready

    def close(self) -> None:
        """Not ready, for ever."""
        self._ready, self._closed = False, True

    @property
    def ready(self) -> bool:
        """Whether it should be sent requests."""
        return self._ready

    @property
    def starting(self) -> bool:
        """Whether it was never ready: models may not be warm, or shards not be found."""
        return not self._was_ready

    @property
    def leaving(self) -> bool:
        """Whether callers should go elsewhere, though it still answers."""
        return self._closed or (self._was_ready and not self._ready)


def probes(readiness: Readiness, registry: CollectorRegistry, gate: Gate) -> list[Route]:
    """`/livez`, `/readyz` and `/metrics`; the last one needs the scope `admin`."""
    one = asyncio.Lock()

    async def live(_request: Request) -> Response:
        return _said(True, "alive")

    async def ready(_request: Request) -> Response:
        word = "starting" if readiness.starting else "leaving"
        return _said(readiness.ready, "ready" if readiness.ready else word)

    async def metrics(request: Request) -> Response:
        headers = text_of(request.scope["headers"])
        try:
            gate("admin", headers)
        except WinnowError as error:
            return response_of(error, request_id.current())
        async with one:  # several at a time would hold up questions
            kind, page = await asyncio.to_thread(exposition, registry, find(headers, "accept"))
        return Response(page, headers={"content-type": kind})

    return [Route("/livez", live), Route("/readyz", ready), Route("/metrics", metrics)]


def _said(well: bool, word: str) -> Response:
    return Response(
        json.dumps({"status": word}), 200 if well else 503, media_type="application/json"
    )
