"""A node keeps the token vectors that a front sent with a passage, if they are those of its bundle."""

from dataclasses import replace

import numpy as np
import pytest
from fake_token_vectors import FakePassageTokens, OpenModel
from live_writes import logged

from winnow.bundle import Bundle
from winnow.content_node.late_interaction.computed_tokens import ComputedTokens
from winnow.content_node.late_interaction.scoring import LateScorer
from winnow.content_node.late_interaction.sent_tokens import SentTokens

pytestmark = pytest.mark.bundle
TOKENS = 7
"""Tokens of the passage: two of the title, two of the text, and three special ones."""


@pytest.mark.parametrize(
    ("rows", "is_own", "is_kept"),
    [(TOKENS, True, True), (TOKENS, False, False), (TOKENS - 1, True, False), (0, True, False)],
)
def test_only_whole_token_vectors_of_the_bundle_are_kept(
    bundle: Bundle, rows: int, is_own: bool, is_kept: bool
) -> None:
    late = bundle.manifest.late_interaction
    assert late is not None
    computed = ComputedTokens()
    scorer = LateScorer(OpenModel(FakePassageTokens()), computed)
    fingerprint = bundle.manifest.token_vectors_fingerprint if is_own else "another"
    levels = np.arange(rows * late.values, dtype=np.int16).astype(np.int8)
    write = logged(5, "a")
    assert write.put is not None
    sent = replace(write.put, token_levels=levels.tobytes(), token_vectors_fingerprint=fingerprint)
    SentTokens(bundle.manifest, scorer).keep([replace(write, put=sent), logged(6, "b", None)])
    kept = computed.get((scorer, "a", 5))
    if is_kept:
        assert kept is not None
        assert kept.tolist() == levels.reshape(TOKENS, late.values).tolist()
    else:
        assert kept is None
