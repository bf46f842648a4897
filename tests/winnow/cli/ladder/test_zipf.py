"""Texts that repeat, and how many of them a cache must hold."""

from random import Random

import pytest

from winnow.cli.ladder import zipf


def test_the_second_text_comes_half_as_often_as_the_first() -> None:
    each = zipf.shares(10)
    assert each.sum() == pytest.approx(1)
    assert each[1] == pytest.approx(each[0] / 2)


@pytest.mark.parametrize("hits", [0.2, 0.4, 0.6])
@pytest.mark.parametrize("distinct", [1_000, 20_000])
def test_a_cache_of_the_computed_size_has_the_hit_rate(hits: float, distinct: int) -> None:
    each, chance = zipf.shares(distinct), Random(1)
    entries = zipf.entries_for(hits, each)
    kept = dict.fromkeys(zipf.cached_texts(entries, each, chance))
    assert len(kept) == entries
    found, looks = 0, 20_000
    for place in zipf.draw_texts(looks, each, chance):
        found += place in kept
        kept.pop(place, None)
        kept[place] = None
        if len(kept) > entries:
            del kept[next(iter(kept))]
    assert found / looks == pytest.approx(hits, abs=0.02)


def test_a_cache_for_all_hits_holds_all_texts() -> None:
    assert zipf.entries_for(1.0, zipf.shares(50)) == 50
