"""The writes that an answer must know of. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from winnow.domain.write import Position
from winnow.errors import Violation
from winnow.stateless.heads.validation import refuse

_FIELD = "after"


def wrong_positions(after: Sequence[Position]) -> Iterator[Violation]:
    """What is wrong with them, whatever the index is."""
    for shard, times in sorted(Counter(place.shard for place in after).items()):
        if times > 1:
            yield Violation(_FIELD, f"names shard {shard} {times} times: name its last write")


def check_shards(after: Iterable[Position], shards: int) -> None:
    """Raises InvalidRequestError if one is of a shard that an index of so many does not have."""
    wrong = sorted(place.shard for place in after if place.shard >= shards)
    refuse([Violation(_FIELD, f"shard {shard} is not one of 0 to {shards - 1}") for shard in wrong])
