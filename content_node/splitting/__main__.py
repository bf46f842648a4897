"""Writes a half of a shard to a directory, as a process.

    python -m content_node.splitting BASE SHARD HALF DIRECTORY following|fixed BUNDLE

A node starts this process and reads its result, as for a merge: see `content_node.merging`.
"""

from functools import partial
from pathlib import Path

from winnow.content_node.merging.process import run_for_parent
from winnow.content_node.merging.protocol import Merged
from winnow.content_node.merging.states import carry_states
from winnow.content_node.splitting.write_half import write_half


def run(arguments: list[str]) -> Merged:
    """Writes the half. Raises the errors of `write_half`."""
    base, shard, half, directory, mode, bundle = arguments
    written, without_states = write_half(
        Path(base),
        Path(shard),
        int(half),
        Path(directory),
        following=mode == "following",
        carry=partial(carry_states, Path(bundle), Path(shard)),
    )
    return Merged(
        directory=directory,
        sequence=written.sequence,
        passages=written.passages,
        rows=written.rows,
        without_states=without_states,
    )


if __name__ == "__main__":
    run_for_parent(run)
