"""Makes random HTTP requests as bytes, most of them invalid."""

import json
import math
from collections.abc import Iterator
from random import Random
from typing import Any

from bench.hostile.payloads import MARK, with_flipped_bit

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


def random_request(rng: Random) -> bytes:
    """Returns a request, sometimes truncated, with a flipped bit, or followed by a second one."""
    data = _well_framed(rng)
    choice = rng.randrange(12)
    if choice == 0:
        return data[: rng.randrange(len(data) + 1)]
    if choice == 1:
        return with_flipped_bit(data, rng)
    return data + _well_framed(rng) if choice == 2 else data


def long_body(kind: int) -> Iterator[bytes]:
    """Yields the pieces of a request with a long body; `kind % 4` selects one of four kinds."""
    chunked = "transfer-encoding: chunked\r\n"
    if kind % 4 == 0:
        yield _request_head("/v1/answers", chunked)
        for _ in range(100):
            yield b"1\r\n \r\n" * 2_000
    elif kind % 4 == 1:
        yield _request_head(f"/{MARK}", chunked)
        for _ in range(100):
            yield b"4000\r\n" + bytes(0x4000) + b"\r\n"
    else:
        value: Any = [{}] * 100_000
        if kind % 4 == 3:
            value = [{"readScope": ' has no field named "' * 15_000}]
        body = json.dumps({"requests": value}).encode()
        yield _request_head("/v1/answers", f"content-length: {len(body)}\r\n") + body


def _request_head(path: str, more_headers: str) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"connection: close\r\n{more_headers}\r\n"
    ).encode()


def _well_framed(rng: Random) -> bytes:
    body = _random_body(rng)
    lines = [
        f"{rng.choice(_METHODS)} {rng.choice(_PATHS)} HTTP/1.1",
        f"host: {rng.choice(_HOSTS)}",
        f"content-type: {rng.choice(_TYPES)}",
    ]
    for name, values in _EXTRAS:
        if rng.random() < 0.15:
            lines.append(f"{name}: {rng.choice(values)}")
    if rng.random() < 0.2:
        lines.append("transfer-encoding: chunked")
        size = rng.choice((b"%x" % len(body), b"%x" % (len(body) + 1), b"-1", b"f" * 40))
        body = size + b"\r\n" + body + b"\r\n0\r\n\r\n"
    else:
        lines.append(f"content-length: {len(body) + rng.choice((0,) * 9 + (1, -1, 10**12))}")
    return "\r\n".join((*lines, "", "")).encode() + body


def _random_body(rng: Random) -> bytes:
    choice = rng.randrange(10)
    if choice == 0:
        return rng.randbytes(50)
    if choice == 1:
        return b'{"question":' + b'{"a":' * 900 + b"1" + b"}" * 901
    if choice == 3:
        return b'{"answers":' + b"9" * 5_000 + b"}"
    question: dict[str, Any] = {"question": rng.choice(("who wrote it?", "", MARK)), "fresh": True}
    question["passagesToRead"] = 1
    for name in rng.sample(_FIELDS, rng.randrange(3)):
        question[name] = rng.choice(_VALUES)
    batch = {"requests": [question] * rng.choice((1, 2, 101))}
    return json.dumps(batch if choice == 2 else question).encode()
