"""Files that are read again when they change.

A change is remembered only once the files were read well. A read that failed, such as one without a
free descriptor, is tried again at the next look.
"""

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

from winnow.errors import WinnowError

Content = TypeVar("Content")

Stamp = tuple[int, int, int, int]
"""Differs when the file does: inode, moments of the last change of its content and of what else is
kept about it (a chmod changes only the latter), both in nanoseconds, and its bytes."""


def stamp(path: Path) -> Stamp | None:
    """Of the file that is there now, also behind links; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


class WatchedFiles(Generic[Content]):
    """What some files held when they could last be read. Threads may share it."""

    def __init__(
        self,
        paths: Iterable[Path],
        read: Callable[[], Content],
        failed: Callable[[WinnowError], None] = lambda _error: None,
    ) -> None:
        """Reads the files.

        Args:
            paths: the files; all of them are read together.
            read: reads them; raises a WinnowError if they cannot be used.
            failed: told why the files cannot be read again, once for each reason in a row.

        Raises WinnowError if the files cannot be used.

        """
        self._paths, self._read, self._failed = tuple(paths), read, failed
        self._lock = threading.Lock()
        self._told = ""
        self._seen = self._stamps()
        self.content = read()
        self.edition = 0
        """Grows whenever `content` changes."""
        self.current_at = time.time()
        """When `content` was last found to be what the files hold, in seconds since 1970."""

    def look(self) -> bool:
        """Reads the files again if they are others than those that were read. Blocks.

        Returns whether the content is a new one. Files that cannot be used, or are replaced while
        they are read, leave the content as it was until the next look.
        """
        with self._lock:
            now = self._stamps()
            if now == self._seen and None not in now:
                self._note_current()
                return False
            try:
                content = self._read()
            except WinnowError as error:
                self._tell(error)
                return False
            if self._stamps() != now:
                return False
            self._seen = now
            return self._take(content)

    def _take(self, content: Content) -> bool:
        self._note_current()
        if content == self.content:
            return False
        self.content, self.edition = content, self.edition + 1
        return True

    def _note_current(self) -> None:
        self._told, self.current_at = "", time.time()

    def _tell(self, error: WinnowError) -> None:
        if str(error) != self._told:
            self._told = str(error)
            self._failed(error)

    def _stamps(self) -> tuple[Stamp | None, ...]:
        return tuple(map(stamp, self._paths))
