"""Which passages of which shard are read. Pure."""

from collections.abc import Mapping, Sequence

from winnow.domain.passage import Hit


def nearest_overall(hits: Mapping[int, Sequence[Hit]], most: int) -> dict[int, list[Hit]]:
    """The `most` nearest hits of all shards, by shard, nearest first.

    Ties are settled by passage id, so that the choice does not depend on how the index is cut.
    Shards with none are left out.
    """
    every = [(hit, shard) for shard, found in hits.items() for hit in found]
    every.sort(key=lambda pair: (pair[0].distance, pair[0].passage_id))
    chosen: dict[int, list[Hit]] = {}
    for hit, shard in every[:most]:
        chosen.setdefault(shard, []).append(hit)
    return chosen
