"""The assignment that a node follows: the last one of its index that could be read."""

from typing import Protocol

import structlog

from winnow.content_node.daemon_work import DaemonWork
from winnow.domain.assignment import Assignment
from winnow.errors import WinnowError

_log = structlog.get_logger("content_node")


class ReadsAssignment(Protocol):
    """A file that holds an assignment. `AssignmentFile` implements it."""

    def read(self) -> Assignment | None:
        """Reads the assignment; None if there is none. Raises a WinnowError if that fails."""


class FollowedAssignment:
    """Reads the assignment again and again, and keeps the last one that can be followed."""

    def __init__(self, file: ReadsAssignment, node: str) -> None:
        """Reads nothing yet. `node` is the name of this node."""
        self._file, self._node = file, node
        self.last: Assignment | None = None
        """The last assignment; None before the first."""
        self._ignored: Assignment | None = None
        """The last assignment that was ignored, because it is of another index."""
        self._fault = ""
        """Why the assignment cannot be read; empty if it can."""

    async def read(self) -> bool:
        """Reads the assignment; returns whether it changed.

        The last one stays if the file cannot be read, or is about another index.
        """
        try:
            assignment = await DaemonWork(self._file.read).result()
        except WinnowError as error:
            if str(error) != self._fault:
                _log.error("assignment cannot be read; the last one stays", reason=str(error))
            self._fault = str(error)
            return False
        self._fault = ""
        if assignment is None or assignment == self.last:
            return False
        if self.last is not None and assignment.index_id != self.last.index_id:
            if assignment != self._ignored:
                _log.error(
                    "assignment of another index ignored",
                    index=assignment.index_id,
                    served=self.last.index_id,
                )
            self._ignored = assignment
            return False
        _log.info(
            "assignment changed",
            version=assignment.version,
            shards=sorted(assignment.of_node(self._node)),
        )
        self.last = assignment
        return True
