"""One text at the head servers of its heads, and at the second ones of those that do not answer.

Knows calls and time; does not know how a call is sent, nor which server is asked for what.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from winnow.deadline import Deadline
from winnow.domain.prediction import Applied
from winnow.errors import UnavailableError, WinnowError
from winnow.policy.head_servers import (
    HeadServerCall,
    HeadServers,
    call_worth_another_server,
    worth_another_server,
)

_FIRST_SHARE = 0.5
"""Share of the time left after which a server that is silent gets a rival."""

_Task = asyncio.Task[list[Applied]]


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """A call that was sent."""

    call: HeadServerCall
    task: _Task

    def result(self) -> tuple[list[Applied], set[str]]:
        """Once its task is done: what became of each head, and which of them another server may
        still apply.
        """
        try:
            applied = self.task.result()
        except WinnowError as error:
            applied = [Applied(head, 0, failure=error) for head in self.call.heads]
            return applied, set(self.call.heads) if call_worth_another_server(error) else set()
        return applied, {each.head for each in applied if worth_another_server(each.failure)}


class Asking:
    """What is found out of the heads of one text. Whoever makes one ends it."""

    def __init__(
        self, servers: HeadServers, send: Callable[[HeadServerCall], Sent], deadline: Deadline
    ) -> None:
        """`send` begins a call, and does not wait for it."""
        self._servers, self._send, self._deadline = servers, send, deadline
        self._sent: list[Sent] = []
        self._found: dict[str, Applied] = {}
        self._settled: set[str] = set()
        """Heads that were applied, or that no server can apply."""

    async def run(self, heads: Sequence[str]) -> list[Applied]:
        """Asks all servers at once; returns what became of each head, in the order of `heads`."""
        await asyncio.gather(*map(self._see_through, self._begin(heads)))
        nobody = UnavailableError("no head server is known")
        return [self._found.get(head) or Applied(head, 0, failure=nobody) for head in heads]

    def end(self) -> None:
        """Cancels every call that nobody waits for any more."""
        for sent in self._sent:
            sent.task.cancel()

    def _begin(self, heads: Sequence[str], tried: Mapping[str, str] | None = None) -> list[Sent]:
        begun = [self._send(call) for call in self._servers.begin(heads, tried or {})]
        self._sent += begun
        return begun

    async def _see_through(self, first: Sent) -> None:
        """Waits for a server; what it cannot do, or has not done yet, is asked of the next one.

        The first server may still answer; whoever is first counts.
        """
        running, heads = {first.task: first}, first.call.heads
        rivals = len(self._servers.known) > 1
        patience = max(self._deadline.left(), 0.0) * _FIRST_SHARE
        await self._next(running, patience if rivals else None)
        again = self._open(heads)
        if again and rivals and not self._deadline.expired():
            tried = dict.fromkeys(again, first.call.server)
            running |= {each.task: each for each in self._begin(again, tried)}
        while running and self._open(heads):
            await self._next(running, None)

    async def _next(self, running: dict[_Task, Sent], seconds: float | None) -> None:
        """Waits for a call that is running, and takes what it brings."""
        done, _ = await asyncio.wait(running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            applied, worth_more = running.pop(task).result()
            for each in applied:
                if each.head not in self._settled:
                    self._found[each.head] = each
            self._settled |= {each.head for each in applied} - worth_more

    def _open(self, heads: Sequence[str]) -> list[str]:
        return [head for head in heads if head not in self._settled]
