"""Makes files unreadable for a while."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch


@contextmanager
def without_descriptors() -> Iterator[None]:
    """Makes opening any file fail, as in a process without free file descriptors."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with patch.object(Path, "open", refuse):
        yield
