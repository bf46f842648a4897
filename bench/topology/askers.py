"""What clients on several hosts see, by phase."""

import asyncio
import contextlib
import json
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path

from bench.faults.rows import Row
from bench.topology.network import Host


class Askers:
    """Rows of all clients, under the phase in which their questions ended."""

    def __init__(self) -> None:
        self.phase = ""
        self.rows: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
        """By phase, and by the name of the client's host."""

    @contextlib.asynccontextmanager
    async def asking(
        self, host: Host, target: str, questions: Path, rate: float, environment: dict[str, str]
    ) -> AsyncIterator[None]:
        """Has a client on `host` ask until left."""
        words = [sys.executable, "-m", "bench.topology.asker", target, str(questions), f"{rate:g}"]
        client = await asyncio.create_subprocess_exec(
            *host.command(words), stdout=asyncio.subprocess.PIPE, env=environment
        )
        reading = asyncio.create_task(self._read(host.name, client))
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                client.kill()
            await client.wait()
            await reading

    async def _read(self, name: str, client: asyncio.subprocess.Process) -> None:
        assert client.stdout is not None
        async for line in client.stdout:
            self.rows[self.phase][name].append(Row(**json.loads(line)))
