"""Reads metrics of other processes over HTTP, and their memory and processor time from `/proc`
(Linux).
"""

import asyncio
import os
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

_TIMEOUT = 5.0


def metric_sum(exposition: str, name: str, **labels: str) -> float:
    """Returns the sum of the series of a metric that have these labels, from a metrics page."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(exposition)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


async def fetch_metrics(address: str) -> str:
    """Fetches the metrics page of HOST:PORT; raises OSError if the address is unreachable."""

    def read_page() -> str:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=_TIMEOUT) as response:
            return str(response.read().decode())

    return await asyncio.to_thread(read_page)


def resident_bytes(pids: Iterable[int]) -> int:
    """Returns the resident memory of all these processes, in bytes."""
    return sum(resident for resident, _ in map(_resident_and_mapped, pids))


def anonymous_bytes(pids: Iterable[int]) -> int:
    """Returns the resident memory without mapped files, in bytes.

    Mapped files are left out, because the kernel loads and drops their pages at any time.
    """
    return sum(resident - mapped for resident, mapped in map(_resident_and_mapped, pids))


def open_descriptors(pids: Iterable[int]) -> int:
    """Returns the number of open file descriptors of all these processes."""
    return sum(1 for pid in pids for _ in Path(f"/proc/{pid}/fd").iterdir())


def _resident_and_mapped(pid: int) -> tuple[int, int]:
    """Returns the resident bytes of a process, and how many of them are in mapped files."""
    _, resident, mapped, *_ = map(int, Path(f"/proc/{pid}/statm").read_text().split())
    page = os.sysconf("SC_PAGE_SIZE")
    return resident * page, mapped * page
