"""Looking at what runs on a host of the made-up network, from this process."""

import asyncio
import ctypes
import http.client
import os
from concurrent.futures import ThreadPoolExecutor

from bench.faults.gauges import total
from bench.topology.network import Host

_METRICS = 9100
_TIMEOUT = 2.0


async def metric(host: Host, name: str, **labels: str) -> float:
    """A metric of the process on a host; raises OSError if nothing answers there."""
    loop = asyncio.get_running_loop()
    # a thread of its own each time: once it has entered a network it stays there
    with ThreadPoolExecutor(1) as thread:
        return total(await loop.run_in_executor(thread, _page, host), name, **labels)


def _page(host: Host) -> str:
    enter(host)
    connection = http.client.HTTPConnection("127.0.0.1", _METRICS, timeout=_TIMEOUT)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def enter(host: Host) -> None:
    """Moves this thread, and no other, into the network of a host."""
    network = os.open(f"/run/netns/{host.space}", os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(network, 0) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot enter the network of {host.name}: {os.strerror(number)}")
    finally:
        os.close(network)
