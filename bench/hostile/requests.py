"""Random HTTP requests as bytes, mostly invalid. Pure."""

import json
import math
from collections.abc import Iterator
from random import Random
from typing import Any

from bench.hostile.payloads import MARK

_PATHS = (
    *("/v1/answer", "/v1/answers") * 4,
    *("/v1/predict", "/v1/cluster", "/metrics", "/livez", "/docs", "/openapi.json", "/"),
    *(f"/{MARK}", "//", "/livez/", "/%00", "/v1/answer?a=%ff", "http://evil.example/livez", "*"),
)
_METHODS = ("POST",) * 12 + ("GET",) * 3 + ("HEAD", "OPTIONS", "DELETE", "FOO")
_HOSTS = ("localhost",) * 12 + ("127.0.0.1", "evil.example", "[", "", "a b")
_TYPES = ("application/json",) * 8 + ("text/plain", "application/json; charset=utf-16", MARK)
_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2**63, 10**300, 1e308, math.nan, -math.inf),
    *("", "NaN", "5_0", "\ud800", MARK * 50, [], {}, [[]] * 50, [{}] * 1_000),
    *(' has no field named "' * 1_000, "Failed to parse a field: " * 1_000),
)
_FIELDS = (
    *("passagesToRead", "answers", "readScope", "retriever", "maxAnswerTokens", "maxLoss"),
    *("partialResults", "minCoverage", "fresh", "filter", "heads", "after", "requests", MARK),
)
_EXTRAS = (
    ("x-winnow-timeout", ("0.5", "0", "nan", "1e9", "-1", "9" * 99)),
    ("x-winnow-client", (MARK, "é", "a" * 99)),
    ("x-request-id", (MARK, '"}', "a" * 99)),
    ("traceparent", (f"00-{'ab' * 16}-{'cd' * 8}-01", MARK)),
    ("authorization", ("Bearer " + MARK, "Basic YTph", "Bearer")),
    ("content-encoding", ("gzip", "identity")),
    ("expect", ("100-continue",)),
    ("upgrade", ("websocket", "h2c")),
    ("connection", ("keep-alive, upgrade",)),
)


def request(chance: Random) -> bytes:
    """Returns a request, sometimes followed by a second, cut short, or with a wrong bit."""
    data = _whole(chance)
    way = chance.randrange(12)
    if way == 0:
        return data[: chance.randrange(len(data) + 1)]
    if way == 1:
        at = chance.randrange(len(data))
        return data[:at] + bytes((data[at] ^ 1 << chance.randrange(8),)) + data[at + 1 :]
    return data + _whole(chance) if way == 2 else data


def long_body(number: int) -> Iterator[bytes]:
    """Yields the pieces of a request that is long or endless, of one of four kinds."""
    chunked = "transfer-encoding: chunked\r\n"
    if number % 4 == 0:
        yield _head("POST", "/v1/answers", chunked)
        for _ in range(100):
            yield b"1\r\n \r\n" * 2_000
    elif number % 4 == 1:
        yield _head("POST", f"/{MARK}", chunked)
        for _ in range(100):
            yield b"4000\r\n" + bytes(0x4000) + b"\r\n"
    else:
        value: Any = [{}] * 100_000
        if number % 4 == 3:
            value = [{"readScope": ' has no field named "' * 15_000}]
        body = json.dumps({"requests": value}).encode()
        yield _head("POST", "/v1/answers", f"content-length: {len(body)}\r\n") + body


def _head(method: str, path: str, further: str) -> bytes:
    return (
        f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"connection: close\r\n{further}\r\n"
    ).encode()


def _whole(chance: Random) -> bytes:
    body = _body(chance)
    lines = [
        f"{chance.choice(_METHODS)} {chance.choice(_PATHS)} HTTP/1.1",
        f"host: {chance.choice(_HOSTS)}",
        f"content-type: {chance.choice(_TYPES)}",
    ]
    for name, values in _EXTRAS:
        if chance.random() < 0.15:
            lines.append(f"{name}: {chance.choice(values)}")
    if chance.random() < 0.2:
        lines.append("transfer-encoding: chunked")
        size = chance.choice((b"%x" % len(body), b"%x" % (len(body) + 1), b"-1", b"f" * 40))
        body = size + b"\r\n" + body + b"\r\n0\r\n\r\n"
    else:
        lines.append(f"content-length: {len(body) + chance.choice((0,) * 9 + (1, -1, 10**12))}")
    return "\r\n".join((*lines, "", "")).encode() + body


def _body(chance: Random) -> bytes:
    way = chance.randrange(10)
    if way == 0:
        return chance.randbytes(50)
    if way == 1:
        return b'{"question":' + b'{"a":' * 900 + b"1" + b"}" * 901
    if way == 3:
        return b'{"answers":' + b"9" * 5_000 + b"}"
    asked: dict[str, Any] = {"question": chance.choice(("who wrote it?", "", MARK)), "fresh": True}
    asked["passagesToRead"] = 1
    for name in chance.sample(_FIELDS, chance.randrange(3)):
        asked[name] = chance.choice(_VALUES)
    several = {"requests": [asked] * chance.choice((1, 2, 101))}
    return json.dumps(several if way == 2 else asked).encode()
