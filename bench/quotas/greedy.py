"""Asks questions for a greedy tenant in a separate process.

    python -m bench.quotas.greedy ADDRESS TOKEN PASSAGES

Each question reads PASSAGES passages. Each line of standard input is a rate in questions a second,
and holds until the next line. For each line, prints the outcomes of the questions since the line
before as JSON. The process has a low priority, as if it ran on another machine.
"""

import asyncio
import json
import os
import sys
from collections import Counter

from winnow.client import AsyncClient, Credentials
from winnow.errors import WinnowError
from winnow.parent import die_with_parent

_NICENESS = 10
_TIMEOUT = 10.0
_PAUSE = 0.05
"""Seconds between two looks at a rate of 0."""


class Greedy:
    """Asks at a rate, and does not wait for replies."""

    def __init__(self, client: AsyncClient, read: int) -> None:
        """`read`: number of passages to read for each question."""
        self._client, self._read = client, read
        self._tasks: set[asyncio.Task[None]] = set()
        self.rate = 0.0
        """Questions a second."""
        self.outcomes: Counter[str] = Counter()

    async def run(self) -> None:
        """Asks until it is cancelled."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            now = loop.time()
            if not self.rate or due < now - 1:
                due = now  # a pause leaves nothing to catch up with
            if self.rate and due <= now:
                self._start(self._ask())
                due += 1 / self.rate
            await asyncio.sleep(max(due - loop.time(), 0.0) if self.rate else _PAUSE)

    def _start(self, asking: "asyncio._CoroutineLike[None]") -> None:
        task = asyncio.create_task(asking)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self) -> None:
        try:
            await self._client.ask(
                "who signed the report?", passages_to_read=self._read, fresh=True, timeout=_TIMEOUT
            )
            self.outcomes["answered"] += 1
        except WinnowError as error:
            self.outcomes[type(error).__name__] += 1


async def _serve(address: str, token: str, read: str) -> None:
    async with AsyncClient(address, credentials=Credentials(token=token)) as client:
        greedy = Greedy(client, int(read))
        asking = asyncio.create_task(greedy.run())
        while line := await asyncio.to_thread(sys.stdin.readline):
            greedy.rate = float(line)
            print(json.dumps(greedy.outcomes), flush=True)
            greedy.outcomes.clear()
        asking.cancel()


def main() -> None:
    """Asks until standard input ends."""
    die_with_parent()
    os.nice(_NICENESS)
    asyncio.run(_serve(*sys.argv[1:]))


if __name__ == "__main__":
    main()
