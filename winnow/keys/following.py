"""The file of keys while a front serves: looked at again and again.

A file that is damaged, or gone, changes nothing: keys that were good stay so, and nobody else gets
in.
"""

import asyncio
from functools import partial
from pathlib import Path

import structlog

from winnow.errors import WinnowError
from winnow.files.watched import WatchedFiles
from winnow.keys.file import read_keys
from winnow.keys.gate import Gate, Refused, nobody
from winnow.keys.key import Key

_log = structlog.get_logger("winnow.keys")
EVERY = 1.0
"""Seconds between two looks."""
KeyFile = WatchedFiles[tuple[Key, ...]]


def opened(path: Path, refused: Refused = nobody) -> tuple[Gate, KeyFile]:
    """A gate for the keys of a file, and whom it tells what it refuses. Raises KeyFileError."""
    file = KeyFile([path], partial(read_keys, path), _stay)
    return Gate(file.content, refused=refused), file


async def follow(file: KeyFile, gate: Gate, every: float = EVERY) -> None:
    """Keeps the gate to what the file says, for ever."""
    while True:
        await asyncio.sleep(every)
        if await asyncio.to_thread(file.look):
            gate.update(file.content)
            _log.info("keys read again", keys=len(file.content))


def _stay(error: WinnowError) -> None:
    _log.error("keys stay as they were", error=str(error))
