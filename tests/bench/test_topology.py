"""The made-up network of `bench.topology`: hosts, cables, names; and what is counted of a phase."""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import needs
import pytest

from bench.faults.rows import Row
from bench.topology.figures import figures
from bench.topology.inside import enter
from bench.topology.names import Names
from bench.topology.network import Host, Network, made

RESOLVER = "10.77.0.2"
CUT_OFF = 0.5
"""Seconds after which nothing will come any more."""
T = TypeVar("T")


@pytest.fixture
def network() -> Iterator[Network]:
    if shutil.which("ip") is None or not _may_make_spaces():
        pytest.skip(needs.NETWORKS)
    with made(f"test{os.getpid()}", RESOLVER) as network:
        yield network


def _may_make_spaces() -> bool:
    probe = f"probe{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False).returncode:
        return False
    return subprocess.run(["ip", "netns", "del", probe], check=False).returncode == 0


def on(host: Host, do: Callable[[], T]) -> T:
    """Does something in the network of a host, in a thread that enters it."""

    def there() -> T:
        enter(host)
        return do()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(there).result()


def reached(here: Host, listener: socket.socket) -> bool:
    def connect() -> bool:
        try:
            socket.create_connection(listener.getsockname(), timeout=CUT_OFF).close()
        except OSError:
            return False
        return True

    return on(here, connect)


def reached_soon(here: Host, listener: socket.socket) -> bool:
    """A cable that was put back takes a moment, and the first packet may be lost in it."""
    return any(reached(here, listener) for _ in range(60))


def test_hosts_reach_each_other_until_a_cable_is_pulled_or_the_racks_are_cut_apart(
    network: Network,
) -> None:
    one, two, far = (
        network.add(name, rack) for name, rack in [("one", "a"), ("two", "a"), ("far", "b")]
    )
    with on(one, lambda: socket.create_server((one.address, 0))) as listener:
        assert reached_soon(two, listener)
        assert reached_soon(far, listener)
        network.join(False)
        assert reached_soon(two, listener)
        assert not reached(far, listener)
        network.join(True)
        assert reached_soon(far, listener)
        network.plug(one, in_=False)
        assert not reached(two, listener)


def test_nothing_of_it_is_left(network: Network) -> None:
    host = network.add("one", "a")
    assert Path(f"/run/netns/{host.space}").exists()
    network.remove()
    assert not Path(f"/run/netns/{host.space}").exists()
    assert not Path(f"/etc/netns/{host.space}").exists()


def test_a_name_stands_for_the_addresses_that_it_was_last_given(
    network: Network, tmp_path: Path
) -> None:
    if shutil.which("dnsmasq") is None:
        pytest.skip(needs.DNSMASQ)
    resolver, host = network.add("dns", "a", RESOLVER), network.add("one", "b")

    def addresses() -> set[str]:
        looked = subprocess.run(
            host.command(["getent", "ahostsv4", "nodes.cluster"]),
            stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        return {line.split()[0] for line in looked.stdout.splitlines()}

    def until(wanted: set[str]) -> None:
        assert any(addresses() == wanted for _ in range(30)), f"{addresses()}, not {wanted}"

    with Names(resolver, tmp_path) as names:
        names.put("nodes.cluster", "10.77.0.20")
        names.put("nodes.cluster", "10.77.0.21")
        until({"10.77.0.20", "10.77.0.21"})
        names.take("nodes.cluster", "10.77.0.20")
        until({"10.77.0.21"})


def test_figures_say_what_was_lost_and_for_how_long() -> None:
    good = [Row(at=float(second), seconds=0.05) for second in range(10)]
    bad = [
        Row(at=4.5, seconds=2.0, status="DEADLINE_EXCEEDED", complete=False),
        Row(at=6.5, seconds=0.1, complete=False),
    ]
    seen = figures([*good, *bad])
    assert (seen.questions, seen.failed, seen.partial) == (12, 1, 1)
    assert seen.statuses == "DEADLINE_EXCEEDED 1"
    assert seen.troubled == 2
    assert (seen.p50_ms, seen.slowest_ms) == (50, 2000)
    assert figures(good).troubled == 0
