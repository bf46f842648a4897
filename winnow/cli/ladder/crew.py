"""Worker processes, all doing the same at the same time."""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from winnow.cli.ladder.worker import WorkerResult, WorkerRound, work
from winnow.errors import UnavailableError, WinnowError


class WorkerPool:
    """Workers that are there already."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._connections = connections

    def do(self, jobs: Sequence[WorkerRound]) -> list[WorkerResult]:
        """One job each; they begin once all are ready.

        Raises:
            UnavailableError: a worker ended.
            WinnowError: a model cannot be loaded.

        """
        for connection, job in zip(self._connections, jobs, strict=True):
            connection.send(job)
        for connection in self._connections:
            _received(connection)
        for connection in self._connections:
            connection.send(True)
        return [_received(connection) for connection in self._connections]


@contextmanager
def crew(workers: int, place: Path) -> Iterator[WorkerPool]:
    """Workers that find their models at `place`; leaves no process behind."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(workers)]
    processes = [
        context.Process(target=work, args=(theirs, place), daemon=True) for _, theirs in pipes
    ]
    try:
        for process, (_, theirs) in zip(processes, pipes, strict=True):
            process.start()
            theirs.close()  # or nobody would notice that the worker ends
        yield WorkerPool([ours for ours, _ in pipes])
    finally:
        for process, (ours, _) in zip(processes, pipes, strict=True):
            ours.close()
            if process.pid is not None:
                process.terminate()
                process.join()


def _received(connection: Connection) -> Any:
    try:
        received = connection.recv()
    except (EOFError, ConnectionError) as error:
        raise UnavailableError(
            "a worker ended: was its memory enough? Fewer workers need less"
        ) from error
    if isinstance(received, WinnowError):
        raise received
    return received
