"""A process that is killed at any moment loses no acknowledged write.

A short run of `python -m bench crashes`, whose long one kills hundreds.
"""

import math
import random

import pytest

from bench.crashes.expected import Draft, ExpectedShard, MismatchError, match_stored_calls
from bench.crashes.run import Totals, run_crashes


@pytest.mark.timeout(900)
async def test_a_shard_that_is_killed_again_and_again_holds_what_was_acknowledged() -> None:
    seen: list[Totals] = []
    last = await run_crashes(6, math.inf, random.Random(20_150_727), seen.append, calls=8)
    assert last.kills.total() >= 6
    assert last.checks >= last.lives - last.kills.total()


def test_the_dictionary_knows_what_versions_mean() -> None:
    model = ExpectedShard()
    assert model.apply([("a", "one", None)]) == [("stored", 1)]
    assert model.apply([("a", "one", None), ("a", "two", 3)]) == [("unchanged", 1), ("stored", 2)]
    assert model.apply([("a", "old", 2), ("a", None, 2)]) == [("outdated", 2), ("outdated", 2)]
    assert model.apply([("a", None, 4), ("a", None, None)]) == [("stored", 3), ("unchanged", 3)]
    assert model.apply([("a", "late", 3), ("a", "new", 4)]) == [("outdated", 3), ("stored", 4)]
    assert model.texts == {"a": ("new", 4)}


def test_calls_that_were_not_acknowledged_are_there_from_the_first_on_or_not_at_all() -> None:
    model = ExpectedShard({"a": ("one", None)}, {}, 1)
    calls: list[list[Draft]] = [[("a", "two", None), ("b", "x", None)], [("a", None, None)]]
    for texts, sequence in (({"a": "one"}, 1), ({"a": "two", "b": "x"}, 3), ({"b": "x"}, 4)):
        found = match_stored_calls(model, calls, {"texts": texts, "sequence": sequence})
        assert {name: text for name, (text, _) in found.texts.items()} == texts
    for texts, sequence in (({"a": "two"}, 2), ({}, 1), ({"a": "one"}, 2), ({}, 2)):
        with pytest.raises(MismatchError, match="is at write"):
            match_stored_calls(model, calls, {"texts": texts, "sequence": sequence})
