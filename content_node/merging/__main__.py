"""One merge of a shard, as a process: `python -m content_node.merging BASE SHARD UPTO [BUNDLE]`.

A node starts it (`child`) and reads its result (`protocol`). It runs at the lowest priority, since
answers come first. It ends when the node does.
"""

import os
import sys
from functools import partial
from pathlib import Path

from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.protocol import MergeFailed, MergeResult, format_result
from winnow.content_node.merging.states import carry_states
from winnow.errors import WinnowError
from winnow.parent import die_with_parent

NICENESS = 19
"""The highest niceness, since the reader is nice, too, and several shards may merge at once.

Three merges at niceness 10 take half a core from a reader at niceness 5.
"""


def main(arguments: list[str]) -> int:
    """Merges and prints the result; returns the exit code: 0, or 1 if the merge failed."""
    base, shard, upto, *bundle = arguments
    os.nice(NICENESS)
    result: MergeResult
    try:
        carry = [partial(carry_states, Path(each), Path(shard)) for each in bundle]
        result = merge(Path(base), Path(shard), int(upto), *carry)
    except WinnowError as error:
        result = MergeFailed(str(error))
    sys.stdout.write(format_result(result))
    sys.stdout.flush()
    return int(isinstance(result, MergeFailed))


if __name__ == "__main__":
    die_with_parent()
    sys.exit(main(sys.argv[1:]))
