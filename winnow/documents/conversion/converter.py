"""Converts many files by several worker processes, in the order given."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from winnow.documents.conversion.protocol import ConversionLimits, Converted
from winnow.documents.conversion.worker import ConversionWorker
from winnow.documents.formats.registry import require_libraries
from winnow.settings.common import cores

_AHEAD = 4
"""Number of files for each worker that are converted before they are asked for."""


class DocumentConverter:
    """Converts files in worker processes; a context manager that ends them."""

    def __init__(
        self, *, workers: int | None = None, limits: ConversionLimits | None = None
    ) -> None:
        """Starts processes when files come. The default is a worker for each core.

        Raises WinnowError if a library of the extra `documents` is missing.
        """
        require_libraries()
        limits = limits or ConversionLimits()
        count = workers or cores()
        self._workers = [ConversionWorker(limits) for _ in range(count)]
        self._idle: SimpleQueue[ConversionWorker] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        # a thread waits for each worker; on Linux a worker ends with the thread that started it
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="conversion")

    def convert(self, paths: Iterable[Path]) -> Iterator[tuple[Path, Converted]]:
        """Yields each path with its document, or why there is none, in the order of the paths.

        Takes paths ahead of the results by a few for each worker. A file that fails does not
        stop the others.
        """
        pending: deque[tuple[Path, Future[Converted]]] = deque()
        try:
            for path in paths:
                pending.append((path, self._threads.submit(self._convert, path)))
                if len(pending) >= _AHEAD * len(self._workers):
                    yield _finished(pending)
            while pending:
                yield _finished(pending)
        finally:
            for _, future in pending:
                future.cancel()

    def close(self) -> None:
        """Ends all processes, also while files are converted."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.kill()
        self._threads.shutdown()
        for worker in self._workers:
            worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _convert(self, path: Path) -> Converted:
        worker = self._idle.get()
        try:
            return worker.convert(path)
        finally:
            self._idle.put(worker)


def _finished(pending: deque[tuple[Path, Future[Converted]]]) -> tuple[Path, Converted]:
    path, future = pending.popleft()
    return path, future.result()
