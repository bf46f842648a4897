"""One merge of a shard, as a process: `python -m content_node.merging BASE SHARD UPTO [BUNDLE]`.

Started by a node (`child`), which reads what it says (`said`). Everything that a node answers goes
first: this process is nice. It ends when the node does.
"""

import os
import sys
from functools import partial
from pathlib import Path

from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.protocol import MergeFailed, MergeStage, Said, to_line
from winnow.content_node.merging.states import carry_states
from winnow.errors import WinnowError
from winnow.parent import die_with_parent

_NICE = 19
"""The least that a process can ask for: reading gives way, too, and shards merge at the same time.
Three merges at 10 beside a reader at 5 take half of a core from it.
"""


def main(arguments: list[str]) -> int:
    """Merges; exits 0, or 1 where it says why it failed."""
    base, shard, upto, *bundle = arguments
    os.nice(_NICE)
    try:
        merged = merge(
            Path(base),
            Path(shard),
            int(upto),
            lambda name: _say(MergeStage(name)),
            *(partial(carry_states, Path(each), Path(shard)) for each in bundle),
        )
    except WinnowError as error:
        _say(MergeFailed(str(error)))
        return 1
    _say(merged)
    return 0


def _say(said: Said) -> None:
    sys.stdout.write(to_line(said))
    sys.stdout.flush()


if __name__ == "__main__":
    die_with_parent()
    sys.exit(main(sys.argv[1:]))
