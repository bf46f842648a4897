"""One merge of a shard, as a process.

    python -m content_node.merging BASE SHARD UPTO [BUNDLE [FILE]]

A node starts it (`child_process`) and reads its result (`protocol`). FILE is the descriptor of an
open file with token vectors of unmerged passages (`handed_tokens`).
"""

from functools import partial
from pathlib import Path

from winnow.content_node.merging.handed_tokens import HandedTokens
from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.process import run_for_parent
from winnow.content_node.merging.protocol import Merged
from winnow.content_node.merging.states import carry_states
from winnow.errors import ArtefactError


def run(arguments: list[str]) -> Merged:
    """Merges the base and the log of a shard. Raises as `merge`."""
    base, shard, upto, *more = arguments
    if not more:
        return merge(Path(base), Path(shard), int(upto))
    bundle, *descriptor = more
    handed = _open_handed(int(descriptor[0])) if descriptor else None
    carry = partial(carry_states, Path(bundle), Path(shard), handed=handed)
    return merge(Path(base), Path(shard), int(upto), carry)


def _open_handed(descriptor: int) -> HandedTokens | None:
    """Opens the token vectors that the node handed over; None if their file is damaged."""
    try:
        return HandedTokens(descriptor)
    except ArtefactError:
        return None  # the merge computes them


if __name__ == "__main__":
    run_for_parent(run)
