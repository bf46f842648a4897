"""Files that are read again when they change.

A change is remembered only after the files were read well. A failed read, such as one without a
free descriptor, is repeated at the next refresh.
"""

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

from winnow.errors import WinnowError

Content = TypeVar("Content")

Stamp = tuple[int, int, int, int]
"""Inode, times of the last change of content and of metadata in nanoseconds, and size.

A chmod changes only the time of the metadata.
"""


def stamp(path: Path) -> Stamp | None:
    """The stamp of the file at `path`, behind links; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


class WatchedFiles(Generic[Content]):
    """The last content of some files that could be used. Threads may share it."""

    def __init__(
        self,
        paths: Iterable[Path],
        read: Callable[[], Content],
        failed: Callable[[WinnowError], None] = lambda _error: None,
    ) -> None:
        """Reads the files.

        Args:
            paths: the files, which are read together.
            read: reads the files; raises a WinnowError if they cannot be used.
            failed: called with the error of a repeated read, once for equal errors in a row.

        Raises WinnowError if the files cannot be used.

        """
        self._paths, self._read, self._failed = tuple(paths), read, failed
        self._lock = threading.Lock()
        self._last_failure = ""
        self._seen = self._stamps()
        self.content = read()
        self.version = 0
        """Grows whenever `content` changes."""
        self.current_at = time.time()
        """When the files last held `content`, in seconds since 1970."""

    def refresh(self) -> bool:
        """Reads the files again if they have changed, and returns whether the content is new.

        Blocks. Files that cannot be used, or are replaced while they are read, leave the content
        unchanged until the next refresh.
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
        self.content, self.version = content, self.version + 1
        return True

    def _note_current(self) -> None:
        self._last_failure, self.current_at = "", time.time()

    def _tell(self, error: WinnowError) -> None:
        if str(error) != self._last_failure:
            self._last_failure = str(error)
            self._failed(error)

    def _stamps(self) -> tuple[Stamp | None, ...]:
        return tuple(map(stamp, self._paths))
