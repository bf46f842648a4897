"""The headers by which a trace goes from one process to the next."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winnow.telemetry.tracing.traceparent import TraceCaller, parse_caller, trace_headers

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
IDS = int(TRACE, 16), int(SPAN, 16)


def sent(value: str) -> list[tuple[str, str]]:
    return [("user-agent", "x"), ("traceparent", value)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (f"00-{TRACE}-{SPAN}-01", TraceCaller(*IDS, sampled=True)),
        (f"00-{TRACE}-{SPAN}-00", TraceCaller(*IDS, sampled=False)),
        (f"00-{TRACE}-{SPAN}-03", TraceCaller(*IDS, sampled=True)),
        (f"cc-{TRACE}-{SPAN}-01-of-later-versions", TraceCaller(*IDS, sampled=True)),
        (f"cc-{TRACE}-{SPAN}-01", TraceCaller(*IDS, sampled=True)),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"cc-{TRACE}-{SPAN}-01.more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{TRACE}-{SPAN}-1", None),
        (f"00-{TRACE}-{SPAN}-01\n", None),
        (f"00-{TRACE}{SPAN}-01", None),
        ("", None),
    ],
)
def test_a_trace_is_read_as_the_standard_has_it(value: str, expected: TraceCaller | None) -> None:
    assert parse_caller(sent(value)) == expected


def test_without_headers_there_is_no_trace() -> None:
    assert parse_caller(None) is None
    assert parse_caller(()) is None


def test_two_traces_are_none() -> None:
    assert parse_caller(sent(f"00-{TRACE}-{SPAN}-01") * 2) is None


def test_the_headers_of_an_asgi_request_are_bytes() -> None:
    headers = [(b"traceparent", f"00-{TRACE}-{SPAN}-01".encode()), (b"tracestate", b"a=1")]
    assert parse_caller(headers) == TraceCaller(*IDS, sampled=True, state="a=1")


def test_the_state_of_other_systems_is_handed_on_as_it_came() -> None:
    came = [*sent(f"00-{TRACE}-{SPAN}-01"), ("tracestate", "a=1,b=2"), ("tracestate", "c=3")]
    caller = parse_caller(came)
    assert caller is not None
    assert caller.state == "a=1,b=2,c=3"
    assert dict(trace_headers(*IDS, caller.state))["tracestate"] == "a=1,b=2,c=3"


@pytest.mark.parametrize("state", ["a=\n", "a=ü", "a=" + "x" * 511, ""])
def test_a_state_that_cannot_be_sent_is_dropped_and_the_trace_is_not(state: str) -> None:
    caller = parse_caller([*sent(f"00-{TRACE}-{SPAN}-01"), ("tracestate", state)])
    assert caller == TraceCaller(*IDS, sampled=True)


@given(st.integers(1, (1 << 128) - 1), st.integers(1, (1 << 64) - 1))
def test_what_is_written_is_read_as_it_was(trace: int, span: int) -> None:
    assert parse_caller(trace_headers(trace, span)) == TraceCaller(trace, span, sampled=True)


NAMES = st.sampled_from(["traceparent", b"traceparent", "tracestate"])
TEXTS = st.text() | st.binary() | st.from_regex(r"[0-9a-f-]{50,60}")


@settings(max_examples=50)
@given(st.lists(st.tuples(NAMES, TEXTS), max_size=3))
def test_any_header_is_a_trace_or_none(
    headers: list[tuple[str | bytes, str | bytes]],
) -> None:
    caller = parse_caller(headers)
    assert caller is None or (caller.trace_id and caller.span_id)
