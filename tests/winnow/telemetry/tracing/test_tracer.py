"""Which calls are traced."""

import pytest
from traced import Traced

from winnow.telemetry.tracing.span import NO_SPAN
from winnow.telemetry.tracing.traceparent import trace_headers
from winnow.telemetry.tracing.tracer import NO_TRACER

ASKED = trace_headers(7, 5)
NOT_RECORDED = [("traceparent", ASKED[0][1][:-2] + "00")]


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_what_a_caller_records_is_traced_as_a_part_of_that(share: float) -> None:
    traced = Traced(share)
    with traced.tracer.begin("Answer", ASKED) as call:
        assert call.outgoing_metadata != ASKED
        assert call.outgoing_metadata[0][1].startswith(f"00-{7:032x}-")
    assert (traced[0].trace.id, traced[0].parent) == (7, 5)


def test_what_a_caller_does_not_record_is_not_traced() -> None:
    assert Traced(share=1.0).tracer.begin("Answer", NOT_RECORDED) is NO_SPAN


@pytest.mark.parametrize(
    ("share", "least", "most"), [(0.0, 0, 0), (0.3, 200, 400), (1.0, 1000, 1000)]
)
def test_of_calls_without_a_trace_a_share_is_traced(share: float, least: int, most: int) -> None:
    tracer = Traced(share).tracer
    assert least <= sum(bool(tracer.begin("Answer", ())) for _ in range(1000)) <= most


def test_a_trace_that_is_not_valid_is_none() -> None:
    traced = Traced()
    with traced.tracer.begin("Answer", [("traceparent", "00-nonsense")]):
        pass
    assert traced[0].parent == 0


def test_looks_are_not_traced() -> None:
    """Nodes are asked twice a second which shard they have."""
    tracer = Traced().tracer
    assert tracer.may_trace("Answer")
    assert not tracer.may_trace("GetShardInfo")
    assert not tracer.may_trace("ListHeads")


def test_who_traces_nothing_begins_nothing() -> None:
    assert not NO_TRACER.may_trace("Answer")
    assert NO_TRACER.begin("Answer", ASKED) is NO_SPAN
