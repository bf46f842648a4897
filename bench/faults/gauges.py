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
    pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return sum(pages) * os.sysconf("SC_PAGE_SIZE")
