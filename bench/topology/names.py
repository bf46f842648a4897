"""The DNS server of the network: dnsmasq on a host of its own, told of every change at once."""

import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.topology.network import Host

_TTL = 5
"""Seconds that an answer counts, as in Kubernetes."""
_PATIENCE, _LOOK = 30.0, 0.02


class Names:
    """Names that stand for several addresses each; a context manager."""

    def __init__(self, host: Host, directory: Path) -> None:
        self._host = host
        self._file = directory / "hosts"
        self._log = directory / "dnsmasq.log"
        self._held: dict[str, set[str]] = defaultdict(set)
        self._server: subprocess.Popen[bytes] | None = None

    def put(self, name: str, address: str) -> None:
        """From now on the name stands for this address, too."""
        self._held[name].add(address)
        self._tell()

    def take(self, name: str, address: str) -> None:
        """From now on the name does not stand for this address."""
        self._held[name].discard(address)
        self._tell()

    def __enter__(self) -> Self:
        self._file.touch()
        options = [
            "--keep-in-foreground",
            "--conf-file=/dev/null",
            "--no-resolv",
            "--no-hosts",
            "--user=root",
            "--pid-file=",
            f"--local-ttl={_TTL}",
            f"--log-facility={self._log}",
            f"--addn-hosts={self._file}",
            f"--listen-address={self._host.address}",
            "--bind-interfaces",
            "--local=/cluster/",
        ]
        self._server = subprocess.Popen(self._host.command(["dnsmasq", *options]))
        self._await_start(self._server)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait()

    def _await_start(self, server: subprocess.Popen[bytes]) -> None:
        """Until then a change would end it: it has not yet said what the signal means.

        Raises:
            RuntimeError: it has ended, or has not started within the time.

        """
        until = time.monotonic() + _PATIENCE
        while not (self._log.exists() and "started" in self._log.read_text()):
            if server.poll() is not None or time.monotonic() > until:
                self.__exit__(None, None, None)
                raise RuntimeError(f"dnsmasq has not started: see {self._log}")
            time.sleep(_LOOK)

    def _tell(self) -> None:
        lines = [
            f"{address} {name}\n"
            for name, addresses in sorted(self._held.items())
            for address in sorted(addresses)
        ]
        self._file.write_text("".join(lines))
        if self._server is not None:
            self._server.send_signal(signal.SIGHUP)
