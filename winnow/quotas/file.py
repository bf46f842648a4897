"""The file of quotas: JSON with the limits of each tenant. Front nodes follow its changes."""

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from winnow.domain.quota import Quotas, TenantQuota
from winnow.errors import WinnowError
from winnow.files.durable import write_durably
from winnow.files.watched import WatchedFiles

_log = structlog.get_logger("winnow.quotas")
_VERSION = 1
_MAX_BYTES = 64 << 20
"""Maximum size of a file of quotas; enough for some hundred thousand tenants."""
_CHECK_INTERVAL = 1.0
"""Seconds between two checks of the file."""
_FIELDS = {"version", "default", "tenants"}
_COUNTS = ("passages", "bytes")
_RATES = ("questions_per_second", "writes_per_second")
QuotaFile = WatchedFiles[Quotas]


class QuotaFileError(WinnowError):
    """A file of quotas cannot be read or written. The message names the file and the reason."""


def read_quotas(path: Path) -> Quotas:
    """Reads a file of quotas.

    Raises QuotaFileError if the file cannot be read, is not a file of quotas, or has an invalid
    limit.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise QuotaFileError(
            f"cannot read {path}: {error.strerror}; `winnow quotas set` creates a file of quotas"
        ) from error
    try:
        if len(data) > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES >> 20} MiB")
        return _parse_quotas(json.loads(data))
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise QuotaFileError(f"{path} is not a file of quotas: {error}") from error


def write_quotas(path: Path, quotas: Quotas) -> None:
    """Replaces the file atomically. Raises QuotaFileError if it cannot be written."""
    tenants = {name: _to_json(each) for name, each in sorted(quotas.by_tenant.items())}
    content = {"version": _VERSION, "default": _to_json(quotas.default), "tenants": tenants}
    try:
        write_durably(path, (json.dumps(content, indent=2) + "\n").encode())
    except OSError as error:
        raise QuotaFileError(f"cannot write {path}: {error.strerror}") from error


def open_quota_file(path: Path) -> QuotaFile:
    """Opens a file of quotas whose changes can be followed; raises as `read_quotas`."""
    return QuotaFile([path], partial(read_quotas, path), _log_failed_reread)


async def watch_quota_file(file: QuotaFile, interval: float = _CHECK_INTERVAL) -> None:
    """Reads the file again whenever it changes. Runs until it is cancelled."""
    while True:
        await asyncio.sleep(interval)
        if await asyncio.to_thread(file.refresh):
            _log.info("quotas read again", tenants=len(file.content.by_tenant))


def _parse_quotas(content: Any) -> Quotas:
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        raise ValueError(f'expected an object with "version": {_VERSION}')
    if content.keys() - _FIELDS:
        raise ValueError(f"it may only have the fields {', '.join(sorted(_FIELDS))}")
    tenants = content.get("tenants", {})
    if not isinstance(tenants, dict):
        raise TypeError('"tenants" must be an object')
    return Quotas(
        default=_parse_quota(content.get("default", {}), "default"),
        by_tenant={name: _parse_quota(each, name) for name, each in tenants.items()},
    )


def _parse_quota(entry: Any, name: str) -> TenantQuota:
    if not isinstance(entry, dict) or entry.keys() - {*_COUNTS, *_RATES}:
        raise ValueError(
            f"the quota of {name} may only have the fields {', '.join((*_COUNTS, *_RATES))}"
        )
    for field, value in entry.items():
        if value is None:
            continue
        kinds = int if field in _COUNTS else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise TypeError(f"{field} of {name} is not a number, or not a whole one")
    return TenantQuota(**entry)


def _to_json(quota: TenantQuota) -> Mapping[str, float]:
    return {limit.value: value for limit, value in quota.limits().items()}


def _log_failed_reread(error: WinnowError) -> None:
    _log.error(
        "the file of quotas could not be read again; the old quotas stay in use", error=str(error)
    )
