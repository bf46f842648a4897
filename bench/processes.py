"""Metrics and memory of running processes, read from outside (Linux)."""

import asyncio
import os
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

_TIMEOUT = 5.0


def total(exposition: str, name: str, **labels: str) -> float:
    """Adds up the series of a metric that have these labels; `exposition` is a page of metrics."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(exposition)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


async def fetch(address: str) -> str:
    """Fetches the page of metrics that HOST:PORT serves; raises OSError if it is unreachable."""

    def read() -> str:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=_TIMEOUT) as reply:
            return str(reply.read().decode())

    return await asyncio.to_thread(read)


def memory(pids: Iterable[int]) -> int:
    """Returns the bytes that processes hold in memory, added up."""
    return sum(resident for resident, _ in map(_resident_and_mapped, pids))


def anonymous_memory(pids: Iterable[int]) -> int:
    """Returns the bytes in memory without mapped files, which come and go with the reads."""
    return sum(resident - mapped for resident, mapped in map(_resident_and_mapped, pids))


def descriptors(pids: Iterable[int]) -> int:
    """Counts the open descriptors of processes."""
    return sum(1 for pid in pids for _ in Path(f"/proc/{pid}/fd").iterdir())


def _resident_and_mapped(pid: int) -> tuple[int, int]:
    """Bytes of a process in memory, and how many of these belong to mapped files."""
    _, resident, mapped, *_ = map(int, Path(f"/proc/{pid}/statm").read_text().split())
    page = os.sysconf("SC_PAGE_SIZE")
    return resident * page, mapped * page
