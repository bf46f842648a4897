"""Looking at running processes from outside: their metrics and their memory."""

import asyncio
import os
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

_TIMEOUT = 5.0


def total(exposition: str, name: str, **labels: str) -> float:
    """The sum of a metric's series with these labels, out of what a process exposes."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(exposition)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


async def fetch(address: str) -> str:
    """What the process that serves metrics at HOST:PORT exposes; raises OSError if it does not."""

    def read() -> str:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=_TIMEOUT) as reply:
            return str(reply.read().decode())

    return await asyncio.to_thread(read)


async def totals(addresses: Iterable[str], name: str, **labels: str) -> float:
    """The same of several processes together."""
    pages = await asyncio.gather(*map(fetch, addresses))
    return sum(total(page, name, **labels) for page in pages)


def memory(pids: Iterable[int]) -> int:
    """Bytes that processes hold in memory, together (Linux)."""
    return sum(resident for resident, _ in map(_held, pids))


def own_memory(pids: Iterable[int]) -> int:
    """The same without files that are mapped: those come and go with what is read of an index."""
    return sum(resident - mapped for resident, mapped in map(_held, pids))


def descriptors(pids: Iterable[int]) -> int:
    """Open descriptors of processes, together (Linux)."""
    return sum(1 for pid in pids for _ in Path(f"/proc/{pid}/fd").iterdir())


def _held(pid: int) -> tuple[int, int]:
    """Bytes of a process in memory, and how many of those belong to mapped files."""
    _, resident, mapped, *_ = map(int, Path(f"/proc/{pid}/statm").read_text().split())
    page = os.sysconf("SC_PAGE_SIZE")
    return resident * page, mapped * page
