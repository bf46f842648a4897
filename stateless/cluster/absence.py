"""Why shards have no replica, as far as nodes said so. Pure."""

from collections.abc import Collection, Iterable

from stateless.cluster.membership import View
from stateless.cluster.node import Node
from winnow.errors import NotLoadedError, UnavailableError, WinnowError


def absence(shard: int, nodes: Collection[Node], view: View) -> WinnowError:
    """What a question is told of a shard that has no replica.

    Nodes that never said which shard they serve are named only where no other one is missing:
    otherwise nobody knows whose they are.
    """
    own = [node for node in _silent(nodes, view) if node.info and node.info.shard == shard]
    if not own and view.missing() == [shard]:
        own = [node for node in _silent(nodes, view) if node.info is None]
    refused = [
        f"{node.address}: {view.refused[node.address]}"
        for node in nodes
        if node.address in view.refused and node.info and node.info.shard == shard
    ]
    said = "; ".join([*_errors(own), *refused]) or "none was found"
    if any(isinstance(node.error, NotLoadedError) for node in own):
        return NotLoadedError(f"shard {shard} is not loaded: {said}")
    return UnavailableError(f"no replica of shard {shard} is there: {said}")


def reasons(nodes: Collection[Node], view: View) -> list[str]:
    """What is said of all nodes that are not there or not taken, once of each."""
    refused = [f"{address}: {reason}" for address, reason in view.refused.items()]
    return [*_errors(_silent(nodes, view)), *refused]


def _silent(nodes: Collection[Node], view: View) -> list[Node]:
    return [node for node in nodes if node.error is not None and node.address not in view.refused]


def _errors(nodes: Iterable[Node]) -> list[str]:
    return [str(node.error) for node in nodes]
