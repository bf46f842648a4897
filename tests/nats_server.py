"""A NATS server with JetStream, for tests that need a real one."""

import shutil
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path

import needs
import pytest
from tenacious import LONG, until

from winnow.cli.local.ports import free_ports

PROGRAM = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")
needs_nats = pytest.mark.skipif(
    PROGRAM is None or find_spec("nats") is None,
    reason=needs.NATS,
)


class NatsServer:
    """A server on a free port; a restart keeps the port."""

    def __init__(self, directory: Path, *options: str) -> None:
        self._directory, self._options = directory, options
        (self._port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._port}"

    def start(self) -> "NatsServer":
        assert PROGRAM is not None
        ports = self._directory / "ports"
        shutil.rmtree(ports, ignore_errors=True)
        ports.mkdir(parents=True)
        command = [PROGRAM, "-js", "-sd", str(self._directory / "store"), "-a", "127.0.0.1"]
        command += ["-p", str(self._port), "--ports_file_dir", str(ports), *self._options]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until(lambda: bool(list(ports.glob("*.ports"))) or self._ended())
        assert not self._ended(), (self._directory / "log").read_text()
        return self

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(LONG)
            self._process = None

    def pause(self) -> None:
        """Stops the process by SIGSTOP; connections stay open, but get no replies."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        threads = Path(f"/proc/{self._process.pid}/task")
        until(lambda: all(_stopped(each) for each in threads.iterdir()))

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(LONG)

    def _ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None


def _stopped(thread: Path) -> bool:
    state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"
