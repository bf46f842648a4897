"""A lock at a URL: an object that only one writer can create.

A killed holder leaves its object behind. A waiting writer removes an object that has not changed
for some time, by its own clock. So the holder of a removed lock may still run: it must call `check`
before it writes, and a holder that is paused right after this check is not excluded.
"""

import contextlib
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from winnow.errors import UnavailableError

_ABANDONED_SECONDS = 15.0
"""Seconds after which an unchanged lock counts as abandoned. A holder has it for about a second."""
_POLL_SECONDS = 0.5
_SETTLE_SECONDS = 1.0
"""Seconds in which another writer may remove a lock that replaced an abandoned one."""
_MISSING_ERRORS = (FileNotFoundError, NotADirectoryError)


class RemoteLock:
    """The lock of one file of an fsspec file system. Methods block."""

    def __init__(
        self,
        system: Any,
        path: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`path` is the full path of the lock's object. `clock` returns monotonic seconds."""
        self._system, self._path, self._clock, self._sleep = system, path, clock, sleep
        self._token = uuid4().hex.encode()

    def check(self) -> None:
        """Raises UnavailableError if another writer has taken the lock."""
        if self._read() != self._token:
            raise UnavailableError("another writer took the lock: run this again")

    def acquire(self) -> None:
        """Waits until the lock is free, and takes it. If it fails, it leaves no lock behind."""
        try:
            self._acquire()
        except BaseException:
            with contextlib.suppress(Exception):
                self.release()
            raise

    def _acquire(self) -> None:
        seen, since = None, self._clock()
        while not self._create():
            if (found := self._read()) != seen:
                seen, since = found, self._clock()
            elif found is not None and self._clock() - since >= _ABANDONED_SECONDS:
                self._remove()
                if self._create():
                    self._sleep(_SETTLE_SECONDS)
                    if self._read() == self._token:
                        return
            self._sleep(_POLL_SECONDS)

    def _create(self) -> bool:
        """Creates the object; returns whether it is of this writer."""
        try:
            try:
                self._write_new()
            except FileNotFoundError:  # file systems with folders need the parent folder first
                self._system.makedirs(self._path.rpartition("/")[0], exist_ok=True)
                self._write_new()
        except OSError as error:
            # not every store reports an object that exists as FileExistsError
            found = self._read()
            if found is None and not isinstance(error, FileExistsError):
                raise
            return found == self._token  # an earlier request, whose reply was lost, created it
        return True

    def _write_new(self) -> None:
        self._system.pipe_file(self._path, self._token, mode="create")

    def release(self) -> None:
        """Gives the lock up, unless another writer has taken it."""
        if self._read() == self._token:
            self._remove()

    def _read(self) -> bytes | None:
        try:
            found: bytes = self._system.cat_file(self._path)
        except _MISSING_ERRORS:
            return None
        return found

    def _remove(self) -> None:
        try:
            self._system.rm_file(self._path)
        except _MISSING_ERRORS:
            return
