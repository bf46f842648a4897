"""The trace of a caller, and the headers that tell another process about it. Pure.

The headers of https://www.w3.org/TR/trace-context/, in gRPC metadata and HTTP alike.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

KEY, STATE = "traceparent", "tracestate"
Sent = Iterable[tuple[str | bytes, str | bytes]] | None
"""Metadata of a call, or the headers of an ASGI request. Names are in lower case."""
_FIRST, _NEVER = "00", "ff"
"""Versions: later ones may say more after what the first one says."""
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1
_PRINTABLE = re.compile(r"[ -~]{1,512}")
"""The state that is passed on: as long as a caller may rely on."""


@dataclass(frozen=True, slots=True)
class TraceCaller:
    """The trace of a caller."""

    trace_id: int
    span_id: int
    sampled: bool
    """Whether the caller records its part, so that ours is recorded, too."""
    state: str = ""


def read(sent: Sent) -> TraceCaller | None:
    """The trace of the caller; None if it sent no valid one."""
    pairs = list(sent or ())
    named = list(_values(pairs, KEY))
    found = _FORM.fullmatch(named[0]) if len(named) == 1 else None
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == _NEVER or (version == _FIRST and more) or not int(trace, 16) or not int(span, 16):
        return None
    sampled = bool(int(flags, 16) & _SAMPLED)
    return TraceCaller(int(trace, 16), int(span, 16), sampled, _state(pairs))


def written(trace_id: int, span_id: int, state: str = "") -> tuple[tuple[str, str], ...]:
    """The headers for work that belongs to a trace and is recorded."""
    named = (KEY, f"{_FIRST}-{trace_id:032x}-{span_id:016x}-{_SAMPLED:02x}")
    return (named, (STATE, state)) if state else (named,)


def _state(pairs: Iterable[tuple[str | bytes, str | bytes]]) -> str:
    state = ",".join(_values(pairs, STATE))
    return state if _PRINTABLE.fullmatch(state) else ""


def _values(pairs: Iterable[tuple[str | bytes, str | bytes]], name: str) -> Iterator[str]:
    encoded = name.encode()
    for key, value in pairs:
        if key in (name, encoded):
            yield value if isinstance(value, str) else value.decode("latin-1")
