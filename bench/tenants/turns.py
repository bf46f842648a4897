"""Takes turns between a shared shard and shards that have only one tenant."""

from collections.abc import Iterator, Mapping, Sequence

from winnow.content_node.shard.view import ShardView
from winnow.domain.question import EncodedQuestion


def take_turns(
    shared: ShardView, alone: Mapping[int, ShardView], asked: Sequence[tuple[int, EncodedQuestion]]
) -> Iterator[tuple[str, ShardView, EncodedQuestion]]:
    """Yields each question twice, with `shared` or `alone` and the view that it asks.

    Questions are given with the number of their tenant. Each question begins with another view than
    the one before, so that neither view always finds what the other one has warmed.
    """
    for turn, (number, question) in enumerate(asked):
        views = {"shared": shared, "alone": alone[number]}
        for name in list(views)[:: -1 if turn % 2 else 1]:
            yield name, views[name], question
