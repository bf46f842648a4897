"""A store of every format that was ever written can still be read and served."""

from pathlib import Path

import numpy as np
import pytest
from small_heads import FINGERPRINT, WIDTH

from winnow.domain.prediction import SequencePrediction, TokenPrediction
from winnow.heads.head import open_head
from winnow.heads.manifest import FORMAT
from winnow.heads.store import HeadRecord, open_store

GOLDEN = Path(__file__).parents[2] / "golden"
STATES = np.ones((3, WIDTH), np.float32)


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
def test_a_golden_store_is_served(number: int) -> None:
    store = open_store(GOLDEN / f"heads-format-{number}")
    encoder = store.encoder()
    assert encoder is not None
    assert (encoder.fingerprint, encoder.width) == (FINGERPRINT, WIDTH)
    assert store.ids() == ["intent", "names"]
    assert store.read_record("intent") == HeadRecord(version=2, previous=1)
    assert store.read_record("names") == HeadRecord(version=1, pinned=True, moved_to="german")
    intent, names = (open_head(store.fetch(head, 1)).predict(STATES) for head in store.ids())
    assert isinstance(intent, SequencePrediction)
    assert (intent.labels[0].label, intent.out_of_scope) == ("weather", False)
    assert isinstance(names, TokenPrediction)
    assert [(span.label, span.first, span.last) for span in names.spans] == [("person", 0, 1)]
