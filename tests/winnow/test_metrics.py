"""What Prometheus finds at the endpoint of a process."""

import contextlib
import itertools
import socket
import threading
import urllib.error
import urllib.request
from pathlib import Path

import needs
import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge
from structlog.testing import capture_logs
from tenacious import LONG, growing, until

from winnow.errors import UnavailableError
from winnow.packaged import installed_version
from winnow.rpc.service import serve_metrics
from winnow.telemetry.endpoint import MetricsEndpoint
from winnow.telemetry.metrics import FAST, SLOW, RpcMetrics, create_series

_LISTENING = "0A"


def scraped(registry: CollectorRegistry, host: str = "127.0.0.1") -> str:
    with capture_logs() as logged:
        serve_metrics(f"{host}:0", registry)
    with urllib.request.urlopen(
        f"http://{host}:{logged[0]['port']}/metrics", timeout=LONG
    ) as reply:
        return str(reply.read().decode())


def test_a_process_says_what_it_is_and_what_it_uses() -> None:
    page = scraped(CollectorRegistry())
    for series in (
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "process_start_time_seconds",
        "python_info{",
        "python_gc_collections_total{",
        "winnow_build_info{",
    ):
        assert f"\n{series}" in page
    assert f'version="{installed_version()}"' in page


def test_who_asks_for_openmetrics_gets_it() -> None:
    """Prometheus does; only that form leads from a histogram to traces."""
    registry = CollectorRegistry()
    RpcMetrics(registry).record_call("Answer", "OK", 0.01, {"trace_id": "07"})
    port = MetricsEndpoint(registry).start("127.0.0.1", 0)
    accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Accept": accept})
    with urllib.request.urlopen(asked, timeout=LONG) as reply:
        page = reply.read().decode()
    assert reply.headers["Content-Type"].startswith("application/openmetrics-text")
    assert '# {trace_id="07"} 0.01' in page
    assert page.endswith("# EOF\n")


def test_nothing_is_said_of_when_a_series_was_created() -> None:
    registry = CollectorRegistry()
    RpcMetrics(registry).record_call("Answer", "OK", 0.01)
    page = scraped(registry)
    assert "winnow_request_seconds_count{" in page
    assert "_created" not in page


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason=needs.IPV6)
def test_metrics_are_served_on_ipv6_too() -> None:
    assert "winnow_build_info" in scraped(CollectorRegistry(), "[::1]")


def test_who_connects_and_says_nothing_keeps_nobody_from_the_metrics() -> None:
    port = MetricsEndpoint(CollectorRegistry(), max_connections=50).start("127.0.0.1", 0)
    threads = threading.active_count()
    with contextlib.ExitStack() as idle:
        for _ in range(200):
            idle.enter_context(socket.create_connection(("127.0.0.1", port)))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LONG) as reply:
            assert reply.status == 200
        assert threading.active_count() <= threads  # those of other tests may end meanwhile


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.1\r\n", b"x" * 20_000])
def test_a_request_that_does_not_end_is_hung_up_on(sent: bytes) -> None:
    port = MetricsEndpoint(CollectorRegistry(), seconds=0.1).start("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", port), timeout=LONG) as idle:
        idle.sendall(sent)
        with contextlib.suppress(ConnectionResetError):
            assert idle.recv(1) == b""


def test_who_does_not_read_the_page_is_hung_up_on_also_where_the_page_is_large() -> None:
    for seconds in growing(3.0):
        if hung_up_on_after(seconds):
            break


def hung_up_on_after(seconds: float) -> bool:
    """Whether clients that do not read were still held when all were there; if so, no longer.

    On a slow machine the time of each may pass before that.
    """
    registry = CollectorRegistry()
    Gauge("large", "a" * 16_000_000, registry=registry)  # more than the kernel takes at once
    port = MetricsEndpoint(registry, seconds=seconds).start("127.0.0.1", 0)
    with contextlib.ExitStack() as deaf, contextlib.suppress(ConnectionError):
        for _ in range(3):
            client = deaf.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            if client.recv(4) != b"HTTP":
                return False
        if connections_held(port):
            until(lambda: not connections_held(port))
            return True
    return False


def connections_held(port: int) -> int:
    """Connections to a port of this machine that the process at that port has not closed."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    # of a socket that no process has any more the inode is 0
    held = [each for each in fields if each[3] != _LISTENING and each[9] != "0"]
    return sum(int(each[1].rpartition(":")[2], 16) == port for each in held)


def test_metrics_cannot_be_written_to() -> None:
    port = MetricsEndpoint(CollectorRegistry()).start("127.0.0.1", 0)
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", data=b"x", timeout=LONG)


def test_a_port_that_is_taken_is_named() -> None:
    with capture_logs() as logged:
        serve_metrics("127.0.0.1:0", CollectorRegistry())
    taken = f"127.0.0.1:{logged[0]['port']}"
    with pytest.raises(UnavailableError, match=f"cannot serve metrics on {taken}: .*in use"):
        serve_metrics(taken, CollectorRegistry())


@pytest.mark.parametrize("bounds", [FAST, SLOW])
def test_bounds_are_close_together_where_reads_and_questions_lie(bounds: tuple[float, ...]) -> None:
    assert len(bounds) <= 16
    close = [bound for bound in bounds if 0.004 <= bound <= 0.25]
    assert close[0] <= 0.005
    assert close[-1] >= 0.2
    assert all(high / low < 1.6 for low, high in itertools.pairwise(close))


def test_what_is_counted_begins_with_0_or_its_first_count_would_alert_nobody() -> None:
    registry = CollectorRegistry()
    made = Counter("made", "Things", ("where", "result"), registry=registry)
    create_series(made, "here", last_values=("good", "bad"))
    assert registry.get_sample_value("made_total", {"where": "here", "result": "bad"}) == 0
