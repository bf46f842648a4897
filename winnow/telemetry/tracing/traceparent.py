"""Parses and formats the headers that connect spans of different processes. Pure.

https://www.w3.org/TR/trace-context/ specifies them. They are used in gRPC metadata and HTTP
headers.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

KEY, STATE = "traceparent", "tracestate"
Headers = Iterable[tuple[str | bytes, str | bytes]] | None
"""gRPC metadata, or the headers of an ASGI request. Names are in lower case."""
_VERSION, _INVALID_VERSION = "00", "ff"
"""The version that is sent, and the only invalid version. Later versions may append fields."""
_PATTERN = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1
_PRINTABLE = re.compile(r"[ -~]{1,512}")
"""State that is passed on. The standard guarantees only this length."""


@dataclass(frozen=True, slots=True)
class TraceCaller:
    """The trace and the span of a caller."""

    trace_id: int
    span_id: int
    sampled: bool
    """Whether the caller records its spans. If so, this process records its own, too."""
    state: str = ""


def parse_caller(headers: Headers) -> TraceCaller | None:
    """Returns the trace of the caller; None without a valid header."""
    pairs = list(headers or ())
    parents = list(_header_values(pairs, KEY))
    match = _PATTERN.fullmatch(parents[0]) if len(parents) == 1 else None
    if match is None:
        return None
    version, trace, span, flags, extra = match.groups()
    if (
        version == _INVALID_VERSION
        or (version == _VERSION and extra)
        or not int(trace, 16)
        or not int(span, 16)
    ):
        return None
    sampled = bool(int(flags, 16) & _SAMPLED)
    return TraceCaller(int(trace, 16), int(span, 16), sampled, _state(pairs))


def trace_headers(trace_id: int, span_id: int, state: str = "") -> tuple[tuple[str, str], ...]:
    """Returns the headers for calls that are made within a recorded span."""
    parent = (KEY, f"{_VERSION}-{trace_id:032x}-{span_id:016x}-{_SAMPLED:02x}")
    return (parent, (STATE, state)) if state else (parent,)


def _state(pairs: Iterable[tuple[str | bytes, str | bytes]]) -> str:
    state = ",".join(_header_values(pairs, STATE))
    return state if _PRINTABLE.fullmatch(state) else ""


def _header_values(pairs: Iterable[tuple[str | bytes, str | bytes]], name: str) -> Iterator[str]:
    encoded = name.encode()
    for key, value in pairs:
        if key in (name, encoded):
            yield value if isinstance(value, str) else value.decode("latin-1")
