"""Which passages are read under the global scope."""

import random

from hypothesis import given
from hypothesis import strategies as st

from stateless.choose import by_shard, nearest_overall
from winnow.domain.passage import Hit

hits = st.lists(
    st.builds(
        Hit, st.integers(0, 99), st.integers(0, 99).map(str), st.sampled_from([0.1, 0.5, 0.9])
    ),
    unique_by=lambda hit: hit.passage_id,
    max_size=20,
)


@given(hits, st.integers(1, 30), st.randoms(use_true_random=False))
def test_the_nearest_of_all_are_chosen_however_they_are_spread(
    found: list[Hit], most: int, chance: random.Random
) -> None:
    spread: dict[int, list[Hit]] = {}
    for hit in found:
        spread.setdefault(chance.randrange(4), []).append(hit)
    chosen = nearest_overall(spread, most)
    picked = {hit.passage_id for _, hit in chosen}
    wanted = sorted(found, key=lambda hit: (hit.distance, hit.passage_id))[:most]
    assert picked == {hit.passage_id for hit in wanted}
    own = by_shard(chosen)
    assert sum(map(len, own.values())) == len(chosen)
    assert all(some and set(some) <= set(spread[shard]) for shard, some in own.items())
