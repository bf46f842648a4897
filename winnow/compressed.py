"""Opening plain, gzip and zstandard files alike."""

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import zstandard

from winnow.errors import ArtefactError


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The content of `path`, unpacked if its name ends in `.gz` or `.zst`.

    Raises:
        ArtefactError: it cannot be opened, or, while it is read, is damaged.

    """
    try:
        with path.open("rb") as raw, _unpacked(raw, path.suffix) as stream:
            yield stream
    except (OSError, EOFError, zstandard.ZstdError) as error:
        raise ArtefactError(f"cannot read {path}: {error}") from error


def _unpacked(raw: IO[bytes], suffix: str) -> IO[bytes]:
    if suffix == ".gz":
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw))
    if suffix == ".zst":
        # long-distance matching, as in `zstd --long`, needs more than the default window
        unpacker = zstandard.ZstdDecompressor(max_window_size=2**31)
        return cast(IO[bytes], io.BufferedReader(unpacker.stream_reader(raw)))
    return raw
