"""What machines look at: whether the front lives, whether it is ready, and its metrics."""

import asyncio
import json

from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from winnow.errors import WinnowError
from winnow.rpc import request_id
from winnow.stateless.http.endpoint import Gate
from winnow.stateless.http.headers import find, text_of
from winnow.stateless.http.problems import response_of
from winnow.stateless.http.readiness import Readiness
from winnow.telemetry.endpoint import exposition


def probes(readiness: Readiness, registry: CollectorRegistry, gate: Gate) -> list[Route]:
    """`/livez`, `/readyz` and `/metrics`; the last one is for who may `admin`."""
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
