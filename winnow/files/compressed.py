"""Opens plain, gzip and zstandard files in the same way."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import zstandard

from winnow.errors import ArtefactError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK_BYTES = 16 * 1024
"""Number of compressed bytes to read at once."""


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file, and decompresses it if its name ends in `.gz` or `.zst`.

    Raises ArtefactError if the file cannot be opened, or turns out to be damaged or truncated.
    """
    try:
        with path.open("rb") as raw, _decompressed(raw, path.suffix) as stream:
            yield stream
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise ArtefactError(f"cannot read {path}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Returns the message without the error number and the path."""
    return getattr(error, "strerror", None) or str(error)


def _decompressed(raw: IO[bytes], suffix: str) -> IO[bytes]:
    if suffix == ".gz":
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw))
    if suffix == ".zst":
        return cast(IO[bytes], io.BufferedReader(_ZstdFrames(raw)))
    return raw


class _ZstdFrames(io.RawIOBase):
    """A reader of consecutive zstandard frames that detects truncation.

    The library's own reader treats a truncated frame as complete.
    """

    def __init__(self, raw: IO[bytes]) -> None:
        super().__init__()
        self._raw = raw
        # long-distance matching, as in `zstd --long`, needs more than the default window
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=2**31)
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._packed = b""
        self._plain = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer).cast("B")
        while not self._plain:
            self._packed = self._packed or self._raw.read(_CHUNK_BYTES)
            if not self._packed:
                if self._frame is not None:
                    raise EOFError("the file ends in the middle of a frame")
                return 0
            self._unpack()
        count = min(len(view), len(self._plain))
        view[:count], self._plain = self._plain[:count], self._plain[count:]
        return count

    def _unpack(self) -> None:
        frame = self._frame or self._decompressor.decompressobj()
        self._plain = memoryview(frame.decompress(self._packed))
        self._packed = frame.unused_data
        self._frame = None if frame.eof else frame
