"""A stand-in for the child process of a merge: the same merge, as one piece of work."""

from pathlib import Path

from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.protocol import Merged


class SimulatedMerge:
    """Takes the place of `winnow.content_node.merging.child_process.MergeChild`."""

    def __init__(self, *, base: Path, shard: Path, upto: int, bundle: Path | None = None) -> None:
        self._base, self._shard, self._upto = base, shard, upto

    def run(self) -> Merged:
        return merge(self._base, self._shard, self._upto)

    def stop(self) -> None:
        """Does nothing: the merge has ended, or its process was killed."""
