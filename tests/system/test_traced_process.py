"""A tracing process, with a collector that accepts its spans and with one that hangs."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import needs
import pytest
from tenacious import LONG
from traced import Traced

from winnow.cli.local.ports import free_ports

pytest.importorskip("opentelemetry.proto", reason=needs.OTEL)

from collector import Collector, collecting

from winnow.bundle import Bundle
from winnow.domain.encoder import StatesFormat
from winnow.text.routed import RoutedTextEncoder

pytestmark = pytest.mark.bundle


@contextmanager
def encoder_node(collector: Collector) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    command = ["encoder", "--listen", address, "--drain-linger", "0", "--trace-to", collector.url]
    process = subprocess.Popen([sys.executable, "-m", "winnow", *command])
    try:
        yield address, process
    finally:
        process.kill()
        process.wait()


async def encode_once(address: str, bundle: Bundle) -> Traced:
    """Encodes a text in a traced call; returns the spans of the call."""
    traced = Traced()
    fingerprint = bundle.manifest.states_fingerprint
    encoder = RoutedTextEncoder(fingerprint, StatesFormat.NONE, timeout=LONG, startup_timeout=LONG)
    encoder.update([address])
    await encoder.warm_up(1)
    with traced.begin():
        await encoder.encode((1_000, 1_001))
    await encoder.close_nodes()
    return traced


@pytest.mark.parametrize("hangs", [False, True], ids=["takes", "hangs"])
def test_spans_are_sent_before_a_process_ends_within_a_time_limit(
    bundle: Bundle, hangs: bool
) -> None:
    with collecting(hangs) as collector, encoder_node(collector) as (address, process):
        traced = asyncio.run(encode_once(address, bundle))
        if hangs:  # the process ends while the collector hangs, and not before
            assert collector.asked.wait(LONG)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONG) == 0
        assert collector.asked.is_set()
        if hangs:
            return
        part, whole = collector.spans
        assert (whole.name, part.name) == ("winnow.v1.EncoderService/Encode", "encode")
        asked = traced.one("ask encoder")
        assert whole.trace_id == asked.trace.id.to_bytes(16, "big")
        assert whole.parent_span_id == asked.id.to_bytes(8, "big")
        assert collector.resources[0]["service.name"] == "winnow-encoder"
