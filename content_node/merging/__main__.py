"""One merge of a shard, as a process: `python -m content_node.merging BASE SHARD UPTO [BUNDLE]`.

A node starts it (`child`) and reads its result (`protocol`).
"""

from functools import partial
from pathlib import Path

from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.process import run_for_parent
from winnow.content_node.merging.protocol import Merged
from winnow.content_node.merging.states import carry_states


def run(arguments: list[str]) -> Merged:
    """Merges the base and the log of a shard. Raises as `merge`."""
    base, shard, upto, *bundle = arguments
    carry = [partial(carry_states, Path(each), Path(shard)) for each in bundle]
    return merge(Path(base), Path(shard), int(upto), *carry)


if __name__ == "__main__":
    run_for_parent(run)
