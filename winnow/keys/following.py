"""The file of keys while a front serves: looked at again and again.

A file that is damaged, or gone, changes nothing: keys that were good stay so, and nobody else gets
in.
"""

import asyncio
from pathlib import Path

import structlog

from winnow.files.stamp import stamp
from winnow.keys.file import KeyFileError, read_keys
from winnow.keys.gate import Gate, Refused, nobody
from winnow.keys.key import Key

_log = structlog.get_logger("winnow.keys")
EVERY = 1.0
"""Seconds between two looks."""


class KeyFile:
    """A file of keys, and which state of it was read."""

    def __init__(self, path: Path) -> None:
        self._path, self._seen = path, stamp(path)

    def changed(self) -> tuple[Key, ...] | None:
        """The keys, if the file has changed since the last look; else None. Blocks."""
        now = stamp(self._path)
        if now == self._seen:
            return None
        self._seen = now
        try:
            return read_keys(self._path)
        except KeyFileError as error:
            _log.error("keys stay as they were", error=str(error))
            return None


def opened(path: Path, refused: Refused = nobody) -> tuple[Gate, KeyFile]:
    """A gate for the keys of a file, and whom it tells what it refuses. Raises KeyFileError."""
    file = KeyFile(path)
    return Gate(read_keys(path), refused=refused), file


async def follow(file: KeyFile, gate: Gate, every: float = EVERY) -> None:
    """Keeps the gate to what the file says, for ever."""
    while True:
        await asyncio.sleep(every)
        keys = await asyncio.to_thread(file.changed)
        if keys is not None:
            gate.update(keys)
            _log.info("keys read again", keys=len(keys))
