"""A NATS server that is the journal of a benchmark's cluster."""

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
from pathlib import Path

from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes

NAME = "journal"
"""Name of the process."""
_HOST = "127.0.0.1"
_OLDEST_SYNCING = (2, 10)
"""First version of nats-server that accepts `sync_interval: always`."""
_READY_SECONDS, _POLL_SECONDS = 60.0, 0.1


class JournalServer:
    """A NATS server with JetStream. A restart keeps its port and its streams."""

    def __init__(self, children: Processes, directory: Path) -> None:
        """Starts the server, which stores its streams below `directory`.

        The server syncs each entry before it acknowledges the entry, if its version can.

        Raises FileNotFoundError if nats-server is not installed.
        """
        program = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")
        if program is None:
            raise FileNotFoundError(
                "nats-server is not installed: install Debian's package nats-server"
            )
        (self._port,) = free_ports(1)
        self.url = f"nats://{_HOST}:{self._port}"
        self.is_syncing = _version_of(program) >= _OLDEST_SYNCING
        """Whether each entry is on disk before it is acknowledged."""
        stored: dict[str, object] = {"store_dir": str(directory / NAME)}
        if self.is_syncing:
            stored["sync_interval"] = "always"
        config = directory / f"{NAME}.conf"
        settings: dict[str, object] = {"listen": f"{_HOST}:{self._port}", "jetstream": stored}
        settings["log_file"] = str(directory / f"{NAME}.log")
        config.write_text(json.dumps(settings))
        children.start_program(NAME, [program, "-c", str(config)])

    async def wait_ready(self) -> None:
        """Waits until the server accepts connections."""
        async with asyncio.timeout(_READY_SECONDS):
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection(_HOST, self._port)
                    writer.close()
                    return
                await asyncio.sleep(_POLL_SECONDS)


def _version_of(program: str) -> tuple[int, ...]:
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"v(\d+)\.(\d+)", printed.stdout)
    return tuple(map(int, found.groups())) if found else (0, 0)
