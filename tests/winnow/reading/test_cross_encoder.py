"""The made-up input that runtimes of a reader are compared at."""

import pytest
from fake_split_reader import ENTRY, SPECIAL

from winnow.reading.cross_encoder import typical_inputs


@pytest.mark.parametrize(("most", "tokens"), [(512, 160), (128, 128), (5, 5)])
def test_a_usual_read_is_no_longer_than_the_reader_takes(most: int, tokens: int) -> None:
    inputs = typical_inputs(SPECIAL, ENTRY.model_copy(update={"max_tokens": most}))
    assert {values.shape for values in inputs.values()} == {(1, tokens)}
    assert set(inputs["input_ids"][0]) == {SPECIAL.cls}, "an id that every vocabulary has"


def test_segments_come_from_the_bundle() -> None:
    inputs = typical_inputs(SPECIAL, ENTRY.model_copy(update={"token_types": (0, 0)}))
    assert not inputs["token_type_ids"].any()
    inputs = typical_inputs(SPECIAL, ENTRY)
    assert sorted(set(inputs["token_type_ids"][0])) == [0, 1]
