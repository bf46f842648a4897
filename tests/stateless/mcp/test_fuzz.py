"""Random messages to `/mcp`: none gets an internal error."""

import asyncio
import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from http_front import HttpFront
from structlog.testing import capture_logs

_REQUESTS, _AT_ONCE = 400, 16
_ODD: tuple[Any, ...] = (
    *(None, True, -1, 1e308, "", "\ud800", "\x00", "a" * 5_000, 10**400, [], [[]], {}, {"a": {}}),
    *("tools/call", "initialize", "resources/read", "subscriptions/listen", "ask", "fetch"),
    *("winnow://documents/%FF?start=1", "winnow://passages/%00", "2026-07-28", "2025-11-25"),
)
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
_METHODS = (
    *("initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/read"),
    *("resources/templates/list", "server/discover", "subscriptions/listen", "prompts/list"),
    *("logging/setLevel", "completion/complete", "notifications/cancelled", "tasks/get"),
)


def message(chance: Random) -> Any:
    """Returns a message that is nearly right."""
    arguments = {chance.choice(("question", "query", "id", "filter", "limit")): "Who?"}
    params: dict[str, Any] = {
        "name": chance.choice(("ask", "search", "fetch", "read", "none")),
        "arguments": arguments,
        "uri": "winnow://documents/a",
        "cursor": "x",
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
        "_meta": dict(_META) if chance.random() < 0.5 else {"progressToken": 1},
    }
    made: Any = {"jsonrpc": "2.0", "id": 1, "method": chance.choice(_METHODS), "params": params}
    meta = params["_meta"]
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        place = chance.choice((made, params, arguments, meta))
        place[chance.choice(sorted(place))] = chance.choice(_ODD)
    return [made, made] if chance.random() < 0.03 else made


def body(chance: Random) -> bytes:
    data = json.dumps(message(chance)).encode()
    if chance.random() < 0.2:
        at = chance.randrange(len(data))
        data = data[:at] + chance.choice((b"", b"\xff", b"[" * 3_000, b"}")) + data[at + 1 :]
    return data


def headers(chance: Random) -> dict[str, str]:
    made = {"content-type": "application/json", "accept": "application/json"}
    if chance.random() < 0.3:
        made["accept"] = "application/json, text/event-stream"
    if chance.random() < 0.6:
        versions = ("2026-07-28", "2026-07-28", "2025-11-25", "2024-11-05", "x")
        made["mcp-protocol-version"] = chance.choice(versions)
    if chance.random() < 0.7:
        made["mcp-method"] = chance.choice(_METHODS)
        made["mcp-name"] = chance.choice(("ask", "search", "=?base64?x?="))
    return made


@pytest.mark.parametrize("seed", [1, 2])
async def test_nonsense_gets_no_internal_error(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    chance, front, places = Random(seed), HttpFront(), asyncio.Semaphore(_AT_ONCE)
    requests = [(body(chance), headers(chance)) for _ in range(_REQUESTS)]
    with capture_logs() as logged:
        async with front.serving() as client:

            async def send(data: bytes, own: dict[str, str]) -> int:
                async with places:
                    return (await client.post("/mcp", content=data, headers=own)).status_code

            outcomes = Counter(await asyncio.gather(*(send(*each) for each in requests)))
    assert outcomes[200] > 20
    assert outcomes[400] > 50
    assert not [status for status in outcomes if status >= 500], outcomes
    assert not [line for line in logged if line["log_level"] == "error"]
    assert not [each for each in caplog.records if each.levelname == "ERROR"]
