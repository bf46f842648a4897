"""Files that are reread when they change.

If a read fails, for example for lack of a file descriptor, the next refresh repeats it.
"""

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

from winnow.errors import WinnowError

Content = TypeVar("Content")

FileStamp = tuple[int, int, int, int]
"""Inode, modification time, status change time and size; times in nanoseconds.

chmod changes only the status change time.
"""


def stamp(path: Path) -> FileStamp | None:
    """Returns the stamp of a file, which differs after a change; None if the file cannot be read.

    Follows links.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


class WatchedFiles(Generic[Content]):
    """The last valid content of files that are read together. Thread-safe."""

    def __init__(
        self,
        paths: Iterable[Path],
        read: Callable[[], Content],
        on_failure: Callable[[WinnowError], None] = lambda _error: None,
    ) -> None:
        """Reads the files; raises WinnowError if they are invalid.

        Args:
            paths: the files, which are read together.
            read: reads the files; raises a WinnowError if they are invalid.
            on_failure: called with the error of a failed refresh. Equal errors in a row are
                reported once.

        """
        self._paths, self._read, self._on_failure = tuple(paths), read, on_failure
        self._lock = threading.Lock()
        self._last_failure = ""
        self._read_stamps = self._stamps()
        self.content = read()
        self.version = 0
        """Number of changes of `content`."""
        self.current_at = time.time()
        """When the files were last seen to hold `content`, in seconds since 1970."""

    def refresh(self) -> bool:
        """Reads the files again if they have changed, and returns whether the content is new.

        Blocks. Keeps the old content until the next refresh if the files are invalid, or change
        while they are read.
        """
        with self._lock:
            stamps = self._stamps()
            if stamps == self._read_stamps and None not in stamps:
                self._mark_current()
                return False
            try:
                content = self._read()
            except WinnowError as error:
                self._report_failure(error)
                return False
            if self._stamps() != stamps:
                return False
            self._read_stamps = stamps
            return self._set_content(content)

    def _set_content(self, content: Content) -> bool:
        self._mark_current()
        if content == self.content:
            return False
        self.content, self.version = content, self.version + 1
        return True

    def _mark_current(self) -> None:
        self._last_failure, self.current_at = "", time.time()

    def _report_failure(self, error: WinnowError) -> None:
        if str(error) != self._last_failure:
            self._last_failure = str(error)
            self._on_failure(error)

    def _stamps(self) -> tuple[FileStamp | None, ...]:
        return tuple(map(stamp, self._paths))
