"""Commits that fail, although they have reached the disk."""

import sqlite3
from typing import Any

from winnow.content_node.live.log import WriteLog


class Doubtful(sqlite3.Connection):
    """Says that its first commit failed, which is on the disk all the same: so may be what could
    not be synced.
    """

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        done = super().execute(sql, *values)
        if sql == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")
        return done


def doubt(log: WriteLog) -> None:
    """The next commit fails, and reaches the disk."""
    assert log._connection is not None
    log._connection.close()
    log._connection = sqlite3.connect(
        log.path, isolation_level=None, check_same_thread=False, factory=Doubtful
    )
