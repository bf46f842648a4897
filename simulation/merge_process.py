"""Stand-ins for the child processes of merges and splits: the same, as one piece of work."""

from importlib import import_module
from pathlib import Path

from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.protocol import Merged
from winnow.errors import WinnowError


class SimulatedMerge:
    """Takes the place of `winnow.content_node.merging.child_process.MergeChild`."""

    def __init__(self, *, base: Path, shard: Path, upto: int, **_: object) -> None:
        self._base, self._shard, self._upto = base, shard, upto

    def run(self) -> Merged:
        return merge(self._base, self._shard, self._upto)

    def stop(self) -> None:
        """Does nothing: the merge has ended, or its process was killed."""


class SimulatedWriting:
    """Takes the place of `winnow.content_node.merging.child_process.WritingChild`."""

    def __init__(self, package: str, *arguments: str) -> None:
        self._package, self._arguments = package, list(arguments)

    def run(self) -> Merged:
        module = import_module(f"{self._package}.__main__")
        try:
            result: Merged = module.run(self._arguments)
        except WinnowError as error:  # a process only returns the reason
            raise WinnowError(str(error)) from error
        return result

    def stop(self) -> None:
        """Does nothing: the work has ended, or its process was killed."""
