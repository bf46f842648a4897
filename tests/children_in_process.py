"""Merges and splits shards of nodes in this process instead of in child processes.

A child takes a second of processor time to start. It has the highest niceness, so that a machine
with other work leaves it next to no time. Tests of the children start `MergeChild` themselves.
"""

import traceback
from collections.abc import Sequence
from importlib import import_module

import pytest

from winnow.content_node.composing import loader
from winnow.content_node.merging.child_process import MergeChild, WritingChild
from winnow.content_node.merging.protocol import MergeFailed, MergeResult, format_result
from winnow.content_node.splitting import make_half
from winnow.errors import WinnowError


class ChildInProcess(WritingChild):
    """Runs the package of a child; it cannot be stopped once it runs."""

    def _run_process(self) -> tuple[int, Sequence[str]]:
        if self._stopped.is_set():
            return -9, ()
        result: MergeResult
        try:
            result = import_module(f"{self._package}.__main__").run(list(self._arguments))
        except WinnowError as error:
            result = MergeFailed(str(error))
        except Exception:  # noqa: BLE001 (the interpreter would print it)
            return 1, traceback.format_exc().splitlines()
        return int(isinstance(result, MergeFailed)), format_result(result).splitlines()


class MergeInProcess(ChildInProcess, MergeChild):
    """Runs one merge."""


def run_children(patch: pytest.MonkeyPatch) -> None:
    """Runs the children of nodes of this process in this process from now on."""
    patch.setattr(loader, "MergeChild", MergeInProcess)
    patch.setattr(make_half, "WritingChild", ChildInProcess)
