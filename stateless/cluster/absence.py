"""Why a shard has no replica, by the errors of the nodes. Pure."""

from collections.abc import Collection, Iterable

from stateless.cluster.membership import View
from stateless.cluster.node import Node
from winnow.errors import NotLoadedError, UnavailableError, WinnowError


def absence(shard: int, nodes: Collection[Node], view: View) -> WinnowError:
    """The error of a question to a shard that has no replica.

    A node that never said which shard it serves is named only if no other shard is missing: if one
    is, the node may belong to either.
    """
    own = [node for node in _failing(nodes, view) if node.info and node.info.shard == shard]
    if not own and view.missing() == [shard]:
        own = [node for node in _failing(nodes, view) if node.info is None]
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
    """Why nodes are left out, one reason for each."""
    refused = [f"{address}: {reason}" for address, reason in view.refused.items()]
    return [*_errors(_failing(nodes, view)), *refused]


def _failing(nodes: Collection[Node], view: View) -> list[Node]:
    return [node for node in nodes if node.error is not None and node.address not in view.refused]


def _errors(nodes: Iterable[Node]) -> list[str]:
    return [str(node.error) for node in nodes]
