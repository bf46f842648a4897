"""Computes the token vectors of new passages in the background, after they were written.

Until they are computed, questions that have many new passages among their candidates are ranked
without late interaction.
"""

import threading
from collections.abc import Callable
from pathlib import Path

import structlog

from winnow.content_node.late_interaction.scoring import LateScorer
from winnow.content_node.shard.view import ShardView
from winnow.errors import WinnowError

_log = structlog.get_logger("content_node")


class BackgroundTokens:
    """Computes missing token vectors of all shards of a process in one thread.

    The thread starts with the first view that has passages without stored token vectors.
    """

    def __init__(self, prepare_thread: Callable[[], None] = lambda: None) -> None:
        """`prepare_thread` is called in the thread first, for example to lower its priority."""
        self._prepare_thread = prepare_thread
        self._changed = threading.Condition()
        self._views: dict[Path, tuple[LateScorer, ShardView]] = {}
        """Newest views that were not handled yet, by directory of the shard."""
        self._handled: dict[Path, tuple[str, int]] = {}
        """Last generation of each shard, and the number of its first rows that were handled."""
        self._is_busy = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def update(self, scorer: LateScorer, view: ShardView) -> None:
        """Computes what the newest view of a shard lacks. Returns at once."""
        if not view.has_token_vectors or len(view.segments) == 1:
            return
        with self._changed:
            self._views[scorer.shard] = scorer, view
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="token vectors", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait_until_idle(self, timeout: float) -> bool:
        """Waits until nothing is left to compute; returns False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._views and not self._is_busy, timeout)

    def close(self) -> None:
        """Ends the thread after the passage that it computes."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        self._prepare_thread()
        while (work := self._next_work()) is not None:
            try:
                self._compute_missing_tokens(*work)
            except WinnowError:
                continue  # logged by the opener of the model, or by the check of files
            except Exception:  # noqa: BLE001 (nobody awaits this thread)
                _log.exception("token vectors cannot be computed")

    def _next_work(self) -> tuple[LateScorer, ShardView] | None:
        with self._changed:
            self._is_busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._views or self._closed)
            if self._closed:
                return None
            self._is_busy = True
            return self._views.pop(next(iter(self._views)))

    def _compute_missing_tokens(self, scorer: LateScorer, view: ShardView) -> None:
        generation, rows = self._handled.get(scorer.shard, ("", 0))
        first_row = rows if generation == view.generation else 0
        scorer.compute_missing(view, first_row, lambda: not self._closed)
        self._handled[scorer.shard] = view.generation, view.rows
