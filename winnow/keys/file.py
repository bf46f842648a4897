"""The file of keys: JSON with the hash of every token and never a token.

A front node reads it again when it changes. A damaged or missing file changes nothing: good keys
stay good, and no other key gets in.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from winnow.errors import WinnowError
from winnow.files.durable import write_durably
from winnow.files.watched import WatchedFiles
from winnow.keys.gate import Gate, Refused, nobody
from winnow.keys.key import Key, Scope
from winnow.policy.rates import Rate

_VERSION = 1
_LARGEST = 16 << 20
"""Bytes: some fifty thousand keys."""
_FIELDS = {"name", "sha256", "scopes", "rate", "burst", "created"}


class KeyFileError(WinnowError):
    """A file of keys cannot be read or written; says why."""


def read_keys(path: Path) -> tuple[Key, ...]:
    """All keys of a file, in its order.

    Raises KeyFileError if the file cannot be read, is no file of keys, or has an invalid key.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise KeyFileError(
            f"cannot read {path}: {error.strerror}; `winnow keys new` makes a file of keys"
        ) from error
    try:
        if len(data) > _LARGEST:
            raise ValueError(f"it has more than {_LARGEST >> 20} MiB")
        return _keys(json.loads(data))
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise KeyFileError(f"{path} is no file of keys: {error}") from error


def write_keys(path: Path, keys: Iterable[Key]) -> None:
    """Replaces the file at once. Raises KeyFileError if it cannot be written."""
    content = {"version": _VERSION, "keys": [_fields(key) for key in keys]}
    try:
        write_durably(path, (json.dumps(content, indent=2) + "\n").encode())
    except OSError as error:
        raise KeyFileError(f"cannot write {path}: {error.strerror}") from error


def _keys(content: Any) -> tuple[Key, ...]:
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        raise ValueError(f'expected an object with "version": {_VERSION}')
    listed = content.get("keys")
    if not isinstance(listed, list):
        raise TypeError('expected a list of "keys"')
    keys = tuple(map(_key, listed))
    called = Counter(key.name for key in keys) + Counter(key.id for key in keys)
    if twice := [name for name, times in called.items() if times > 1]:
        raise ValueError(f"two keys are called {twice[0]}")
    return keys


def _key(entry: Any) -> Key:
    if not isinstance(entry, dict) or entry.keys() - _FIELDS:
        raise ValueError(f"a key has the fields {', '.join(sorted(_FIELDS))} and no others")
    scopes = entry.get("scopes")
    if not isinstance(scopes, list):
        raise TypeError("the scopes of a key are a list")
    rate = None
    if entry.get("rate") is not None:
        per_second = float(entry["rate"])
        rate = Rate(per_second, float(entry.get("burst") or max(per_second, 1.0)))
    return Key(
        name=str(entry.get("name", "")),
        digest=str(entry.get("sha256", "")),
        scopes=frozenset(map(Scope, scopes)),
        rate=rate,
        created=str(entry.get("created", "")),
    )


def _fields(key: Key) -> Mapping[str, Any]:
    fields: dict[str, Any] = {
        "name": key.name,
        "sha256": key.digest,
        "scopes": sorted(scope.value for scope in key.scopes),
    }
    if key.rate is not None:
        fields |= {"rate": key.rate.per_second, "burst": key.rate.burst}
    return {**fields, "created": key.created}


_log = structlog.get_logger("winnow.keys")
EVERY = 1.0
"""Seconds between two checks of the file."""
KeyFile = WatchedFiles[tuple[Key, ...]]


def open_gate_of_file(path: Path, refused: Refused = nobody) -> tuple[Gate, KeyFile]:
    """Returns a gate with the keys of a file, and the watched file. Raises KeyFileError."""
    file = KeyFile([path], partial(read_keys, path), _stay)
    return Gate(file.content, refused=refused), file


async def follow_keys(file: KeyFile, gate: Gate, every: float = EVERY) -> None:
    """Keeps the gate up to date with the file, for ever."""
    while True:
        await asyncio.sleep(every)
        if await asyncio.to_thread(file.refresh):
            gate.update(file.content)
            _log.info("keys read again", keys=len(file.content))


def _stay(error: WinnowError) -> None:
    _log.error(
        "the file of keys could not be read again; the old keys stay in use", error=str(error)
    )
