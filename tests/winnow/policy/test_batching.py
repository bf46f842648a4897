"""What goes into a run of the encoder."""

from hypothesis import given
from hypothesis import strategies as st

from winnow.policy.batching import BatchLimits, EncoderBatch

limits = st.builds(
    BatchLimits, st.integers(1, 16), st.integers(1, 200), st.floats(0, 1, allow_nan=False)
)
texts = st.lists(st.integers(1, 64), min_size=1, max_size=40)


def filled(bounds: BatchLimits, lengths: list[int]) -> list[int]:
    batch, taken = EncoderBatch(bounds), list[int]()
    for tokens in lengths:
        if not batch.has_room_for(tokens):
            break
        batch.add(tokens)
        taken.append(tokens)
    return taken


@given(limits, texts)
def test_a_run_keeps_its_bounds_unless_one_text_breaks_them_alone(
    bounds: BatchLimits, lengths: list[int]
) -> None:
    taken = filled(bounds, lengths)
    assert taken == lengths[: len(taken)]
    assert 1 <= len(taken) <= bounds.texts
    assert len(taken) == 1 or len(taken) * max(taken) <= bounds.tokens


@given(limits, texts)
def test_a_full_run_waits_for_nobody_and_no_run_for_longer_than_allowed(
    bounds: BatchLimits, lengths: list[int]
) -> None:
    batch = EncoderBatch(bounds)
    for tokens in filled(bounds, lengths):
        batch.add(tokens)
    assert 0 <= batch.remaining_wait(0.0) <= bounds.wait
    assert batch.remaining_wait(bounds.wait) == 0
    if not batch.has_room_for(1):
        assert batch.remaining_wait(0.0) == 0


def test_what_padding_costs_counts() -> None:
    batch = EncoderBatch(BatchLimits(texts=16, tokens=100))
    for _ in range(3):
        batch.add(10)
    assert batch.has_room_for(25)
    assert not batch.has_room_for(26)


def test_one_text_a_run_never_waits() -> None:
    batch = EncoderBatch(BatchLimits(texts=1))
    batch.add(5)
    assert batch.remaining_wait(0.0) == 0
