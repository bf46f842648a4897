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
_TEXT_PATHS = ("/v1/read", "/v1/rerank", "/v2/rerank", "/v1/highlight", "/mcp")
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
_TEXT_FIELDS = (
    *("question", "query", "texts", "passages", "documents", "text", "title", "answers", "top_n"),
    *("maxAnswerTokens", "minConfidence", "sentences", "return_documents", "model", MARK),
)
_TEXTS: tuple[Any, ...] = (
    *("", " ", "\0\x1b[2J\x7f", "\u202e\u0301\U0001f3bb", MARK, f"{MARK} " * 300, "x" * 5_000),
    *({"text": MARK}, {"text": 1}, {"title": MARK, "text": ""}, {}, None, 7, [MARK], math.nan),
)
_MCP_METHODS = (
    *("tools/call",) * 6,
    *("initialize", "tools/list", "resources/list", "resources/read", "ping", "prompts/list"),
    *("notifications/initialized", "completion/complete", MARK, ""),
)
_TOOLS = ("read",) * 6 + ("ask", "search", "fetch", MARK, "", None)
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
    ("accept", ("application/json, text/event-stream", "text/event-stream", MARK)),
    ("origin", ("http://localhost", "http://evil.example", "null")),
    ("mcp-protocol-version", ("2025-06-18", "1999-01-01", MARK)),
    ("mcp-session-id", (MARK,)),
)


def random_request(rng: Random, *, texts: bool = False) -> bytes:
    """Returns a request, sometimes truncated, with a flipped bit, or followed by a second one.

    With `texts`, it has texts to read, or is a message of an agent; otherwise it has questions.
    """
    data = _well_framed(rng, texts)
    choice = rng.randrange(12)
    if choice == 0:
        return data[: rng.randrange(len(data) + 1)]
    if choice == 1:
        return with_flipped_bit(data, rng)
    return data + _well_framed(rng, texts) if choice == 2 else data


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


def _well_framed(rng: Random, texts: bool) -> bytes:
    path = rng.choice(_TEXT_PATHS if texts else _PATHS)
    body = _random_body(rng, path if texts else "")
    lines = [
        f"{rng.choice(_METHODS)} {path} HTTP/1.1",
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


def _random_body(rng: Random, text_path: str) -> bytes:
    choice = rng.randrange(10)
    if choice == 0:
        return rng.randbytes(50)
    if choice == 1:
        return b'{"question":' + b'{"a":' * 900 + b"1" + b"}" * 901
    if choice == 3:
        return b'{"answers":' + b"9" * 5_000 + b"}"
    if text_path:
        message: Any = (
            _agent_message(rng) if text_path == "/mcp" else _texts_message(rng, text_path)
        )
        return json.dumps([message] * 3 if choice == 2 else message).encode()
    question: dict[str, Any] = {"question": rng.choice(("who wrote it?", "", MARK)), "fresh": True}
    question["passagesToRead"] = 1
    for name in rng.sample(_FIELDS, rng.randrange(3)):
        question[name] = rng.choice(_VALUES)
    batch = {"requests": [question] * rng.choice((1, 2, 101))}
    return json.dumps(batch if choice == 2 else question).encode()


def _texts_message(rng: Random, path: str) -> dict[str, Any]:
    """Returns the fields of a call to a path that reads texts; a part of them is changed."""
    valid = [each for each in _TEXTS if isinstance(each, str)]
    several = rng.choices(valid, k=rng.choice((1, 2, 10)))
    message: dict[str, Any] = {"question": "who wrote it?", "texts": several}
    if path.endswith("rerank"):
        message = {"query": "who wrote it?", "documents": several}
    elif path.endswith("highlight"):
        message = {"question": "who wrote it?", "text": rng.choice(valid)}
    for name in rng.sample(_TEXT_FIELDS, rng.choice((0, 0, 1, 2))):
        message[name] = rng.choice((*_VALUES, *_TEXTS, rng.choices(_TEXTS, k=5), several * 101))
    for name in rng.sample(sorted(message), rng.choice((0, 0, 0, 1))):
        del message[name]
    return message


def _agent_message(rng: Random) -> dict[str, Any]:
    """Returns a message of the Model Context Protocol, with arguments of any kind."""
    arguments: Any = rng.choice((*[_texts_message(rng, "")] * 4, [], None))
    tool = {"name": rng.choice(_TOOLS), "arguments": arguments}
    uri = {"uri": rng.choice((f"winnow://documents/{MARK}", "winnow://", "file:///etc/passwd", ""))}
    message = {
        "jsonrpc": "2.0",
        "id": rng.choice((1, 2, 3, MARK, None, 1.5, [])),
        "method": rng.choice(_MCP_METHODS),
        "params": rng.choice((*[tool] * 6, uri, {}, rng.choice(_VALUES))),
    }
    for name in rng.sample(sorted(message), rng.choice((0, 0, 0, 1))):
        del message[name]
    return message
