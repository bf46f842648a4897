"""The key file: JSON with the hash of each token, but without the tokens.

A front node rereads the file when it changes. If the file is damaged or missing, the old keys stay
in use.
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
from winnow.keys.gate import Gate, OnRefusal, ignore_refusal
from winnow.keys.key import Key, Scope
from winnow.policy.rates import Rate

_VERSION = 1
_MAX_BYTES = 16 << 20
"""Maximum size of a key file; enough for about fifty thousand keys."""
_FIELDS = {"name", "sha256", "scopes", "rate", "burst", "created", "tenant"}


class KeyFileError(WinnowError):
    """A key file cannot be read or written. The message names the file and the reason."""


def read_keys(path: Path) -> tuple[Key, ...]:
    """Reads all keys of a file, in file order.

    Raises KeyFileError if the file cannot be read, is not a key file, or has an invalid key.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise KeyFileError(
            f"cannot read {path}: {error.strerror}; `winnow keys new` creates a key file"
        ) from error
    try:
        if len(data) > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES >> 20} MiB")
        return _parse_keys(json.loads(data))
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise KeyFileError(f"{path} is not a key file: {error}") from error


def write_keys(path: Path, keys: Iterable[Key]) -> None:
    """Replaces the file atomically. Raises KeyFileError if it cannot be written."""
    content = {"version": _VERSION, "keys": [_to_json(key) for key in keys]}
    try:
        write_durably(path, (json.dumps(content, indent=2) + "\n").encode())
    except OSError as error:
        raise KeyFileError(f"cannot write {path}: {error.strerror}") from error


def _parse_keys(content: Any) -> tuple[Key, ...]:
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        raise ValueError(f'expected an object with "version": {_VERSION}')
    entries = content.get("keys")
    if not isinstance(entries, list):
        raise TypeError('"keys" must be a list')
    keys = tuple(map(_parse_key, entries))
    counts = Counter(key.name for key in keys) + Counter(key.id for key in keys)
    if duplicates := [name for name, count in counts.items() if count > 1]:
        raise ValueError(f"two keys have the name or id {duplicates[0]}")
    return keys


def _parse_key(entry: Any) -> Key:
    if not isinstance(entry, dict) or entry.keys() - _FIELDS:
        raise ValueError(f"a key may only have the fields {', '.join(sorted(_FIELDS))}")
    scopes = entry.get("scopes")
    if not isinstance(scopes, list):
        raise TypeError("the scopes of a key must be a list")
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
        tenant=str(entry.get("tenant", "")),
    )


def _to_json(key: Key) -> Mapping[str, Any]:
    fields: dict[str, Any] = {
        "name": key.name,
        "sha256": key.digest,
        "scopes": sorted(scope.value for scope in key.scopes),
    }
    if key.rate is not None:
        fields |= {"rate": key.rate.per_second, "burst": key.rate.burst}
    if key.tenant:
        fields["tenant"] = key.tenant
    return {**fields, "created": key.created}


_log = structlog.get_logger("winnow.keys")
_CHECK_INTERVAL = 1.0
"""Seconds between two checks of the key file."""
KeyFile = WatchedFiles[tuple[Key, ...]]


def load_gate(path: Path, on_refusal: OnRefusal = ignore_refusal) -> tuple[Gate, KeyFile]:
    """Returns a gate with the keys of a file, and the watched key file.

    Raises KeyFileError if the file cannot be used.
    """
    file = KeyFile([path], partial(read_keys, path), _log_failed_reread)
    return Gate(file.content, on_refusal=on_refusal), file


async def watch_key_file(file: KeyFile, gate: Gate, interval: float = _CHECK_INTERVAL) -> None:
    """Updates the gate whenever the key file changes. Runs until it is cancelled."""
    while True:
        await asyncio.sleep(interval)
        if await asyncio.to_thread(file.refresh):
            gate.update(file.content)
            _log.info("keys read again", keys=len(file.content))


def _log_failed_reread(error: WinnowError) -> None:
    _log.error(
        "the file of keys could not be read again; the old keys stay in use", error=str(error)
    )
