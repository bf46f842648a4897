"""Runs the work of a process that merges or splits a shard, and prints the result for the node."""

import os
import sys
from collections.abc import Callable

from winnow.content_node.merging.protocol import Merged, MergeFailed, MergeResult, format_result
from winnow.errors import WinnowError
from winnow.parent import die_with_parent

_NICENESS = 19
"""The highest niceness, because the reader has niceness 5 and several shards may merge at once.

Three merges at niceness 10 take half a core from a reader at niceness 5.
"""


def run_for_parent(work: Callable[[list[str]], Merged]) -> None:
    """Runs `work` with the arguments of the process, prints its result, and exits.

    The exit code is 0, or 1 if `work` raised a WinnowError. The process has the lowest priority,
    and ends when its parent ends.
    """
    die_with_parent()
    sys.exit(print_result(work, sys.argv[1:]))


def print_result(work: Callable[[list[str]], Merged], arguments: list[str]) -> int:
    """Runs `work` and prints its result; returns the exit code: 0, or 1 if it failed."""
    os.nice(_NICENESS)
    result: MergeResult
    try:
        result = work(arguments)
    except WinnowError as error:
        result = MergeFailed(str(error))
    sys.stdout.write(format_result(result))
    sys.stdout.flush()
    return int(isinstance(result, MergeFailed))
