"""Writes a half of a shard to a directory, as a process.

    python -m content_node.splitting BASE SHARD HALF DIRECTORY following|fixed BUNDLE

A node starts it and reads its result, as it does for a merge: `content_node.merging`.
"""

import os
import sys
from functools import partial
from pathlib import Path

from winnow.content_node.merging.__main__ import NICENESS
from winnow.content_node.merging.protocol import (
    Merged,
    MergeFailed,
    MergeResult,
    format_result,
)
from winnow.content_node.merging.states import carry_states
from winnow.content_node.splitting.halving import write_half
from winnow.errors import WinnowError
from winnow.parent import die_with_parent


def main(arguments: list[str]) -> int:
    """Writes the half and prints the result; returns the exit code: 0, or 1 if it failed."""
    base, shard, half, directory, mode, bundle = arguments
    os.nice(NICENESS)
    result: MergeResult
    try:
        written, without_states = write_half(
            Path(base),
            Path(shard),
            int(half),
            Path(directory),
            following=mode == "following",
            carry=partial(carry_states, Path(bundle), Path(shard)),
        )
        result = Merged(
            directory=directory,
            sequence=written.sequence,
            passages=written.passages,
            rows=written.rows,
            without_states=without_states,
        )
    except WinnowError as error:
        result = MergeFailed(str(error))
    sys.stdout.write(format_result(result))
    sys.stdout.flush()
    return int(isinstance(result, MergeFailed))


if __name__ == "__main__":
    die_with_parent()
    sys.exit(main(sys.argv[1:]))
