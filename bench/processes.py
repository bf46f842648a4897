"""Metrics and memory of other processes, read over HTTP and from `/proc` (Linux)."""

import asyncio
import os
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

_TIMEOUT = 5.0


def metric_sum(exposition: str, name: str, **labels: str) -> float:
    """Returns the sum of a metric's series with these labels in a page of metrics."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(exposition)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


async def fetch_metrics(address: str) -> str:
    """Fetches the page of metrics at HOST:PORT; raises OSError if the address is unreachable."""

    def read_page() -> str:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=_TIMEOUT) as response:
            return str(response.read().decode())

    return await asyncio.to_thread(read_page)


def resident_bytes(pids: Iterable[int]) -> int:
    """Returns the resident memory of all these processes, in bytes."""
    return sum(resident for resident, _ in map(_resident_and_mapped, pids))


def anonymous_bytes(pids: Iterable[int]) -> int:
    """Returns the resident memory without mapped files, in bytes.

    Pages of mapped files come and go with reads.
    """
    return sum(resident - mapped for resident, mapped in map(_resident_and_mapped, pids))


def open_descriptors(pids: Iterable[int]) -> int:
    """Returns the number of open file descriptors of all these processes."""
    return sum(1 for pid in pids for _ in Path(f"/proc/{pid}/fd").iterdir())


def _resident_and_mapped(pid: int) -> tuple[int, int]:
    """Returns the resident bytes of a process, and the part of them in mapped files."""
    _, resident, mapped, *_ = map(int, Path(f"/proc/{pid}/statm").read_text().split())
    page = os.sysconf("SC_PAGE_SIZE")
    return resident * page, mapped * page
