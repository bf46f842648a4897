"""Files that cannot be read for a while."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch


@contextmanager
def without_descriptors() -> Iterator[None]:
    """As when a process has no descriptor left: files are there, and none can be opened."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with patch.object(Path, "open", refuse):
        yield
