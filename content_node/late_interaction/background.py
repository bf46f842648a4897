"""Computes the token vectors of new passages in the background, after they were written.

Until they are computed, questions that have many new passages among their candidates are ranked
without late interaction. When nothing is left to compute for a while, the models are closed.
"""

import itertools
import threading
import time
from collections.abc import Callable

import structlog

from winnow.content_node.late_interaction.scoring import LateScorer
from winnow.content_node.shard.view import ShardView
from winnow.errors import WinnowError

_log = structlog.get_logger("content_node")
_RETRY_SECONDS = 60.0
_IDLE_SECONDS = 300.0
"""Seconds without work after which models are closed, since each takes some 70 MB."""
_TURN_PASSAGES = 64
"""Passages that are computed for a shard while another one waits, in some 0.6 s."""


class BackgroundTokens:
    """Computes missing token vectors of all shards of a process in one thread, in turns.

    The thread starts with the first view that has passages without stored token vectors.
    """

    def __init__(
        self,
        prepare_thread: Callable[[], None] = lambda: None,
        retry_seconds: float = _RETRY_SECONDS,
        turn_passages: int = _TURN_PASSAGES,
        *,
        idle_seconds: float = _IDLE_SECONDS,
    ) -> None:
        """`prepare_thread` is called in the thread first, for example to lower its priority.

        After a failure, a shard is tried again with its next view, or after `retry_seconds`. If
        another shard waits, a turn ends after `turn_passages`. Models are closed after
        `idle_seconds` without work.
        """
        self._idle_seconds = idle_seconds
        self._used: set[LateScorer] = set()
        """Scorers whose models may be open."""
        self._idle_at = 0.0
        """Time at which these models are closed."""
        self._prepare_thread, self._retry_seconds = prepare_thread, retry_seconds
        self._turn_passages = turn_passages
        self._changed = threading.Condition()
        self._generations: dict[LateScorer, str] = {}
        """Newest generation of each shard."""
        self._views: dict[LateScorer, ShardView] = {}
        """Newest views that were not handled yet."""
        self._failed: dict[LateScorer, ShardView] = {}
        """Newest views that could not be handled, and are tried again at `_retry_at`."""
        self._retry_at = 0.0
        self._handled: dict[LateScorer, tuple[str, int]] = {}
        """Last generation of each shard, and the number of its first rows that were handled."""
        self._merged: set[LateScorer] = set()
        """Scorers whose next views have stored token vectors that are still cached."""
        self._is_busy = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def update(self, scorer: LateScorer, view: ShardView) -> None:
        """Computes what the newest view of a shard lacks. Returns at once."""
        with self._changed:
            self._generations[scorer] = view.generation
            # views before a merge keep its old files and its old graph in memory
            self._views.pop(scorer, None)
            self._failed.pop(scorer, None)
            has_work = len(view.segments) > 1 or scorer in self._merged
            if view.has_token_vectors and has_work and not self._closed:
                self._views[scorer] = view
                self._start_thread()
            self._changed.notify_all()

    def forget_merged(self, scorer: LateScorer, view: ShardView) -> None:
        """Removes what the base of the newest view has stored from the cache. Returns at once.

        To be called once no question uses an older base.
        """
        with self._changed:
            self._merged.add(scorer)
        self.update(scorer, view)

    def remove(self, scorer: LateScorer) -> None:
        """Computes nothing more for a shard, which is being closed, and forgets what was computed.

        Takes some milliseconds.
        """
        with self._changed:
            for by_shard in (self._generations, self._views, self._failed, self._handled):
                by_shard.pop(scorer, None)
            self._merged.discard(scorer)
            self._keep_model_of(scorer)
            self._changed.notify_all()
        scorer.close()

    def _keep_model_of(self, removed: LateScorer) -> None:
        """Lets another shard with the same model close it later. Without one, nothing refers to the
        model any more: that of a dropped index must not stay open while other shards have work.
        """
        if removed in self._used:
            self._used.remove(removed)
            others = (each for each in self._generations if each.model is removed.model)
            self._used.update(itertools.islice(others, 1))

    def wait_until_idle(self, timeout: float) -> bool:
        """Waits until nothing is left to compute; returns False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not (self._views or self._failed or self._is_busy), timeout
            )

    def close(self) -> None:
        """Ends the thread after the passage that it computes."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _start_thread(self) -> None:
        if self._thread is not None:
            return
        thread = threading.Thread(target=self._run, name="token vectors", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # a limit of the system; the next write tries again
            _log.error("token vectors cannot be computed", reason=str(error))
        else:
            self._thread = thread

    def _run(self) -> None:
        self._prepare_thread()
        while (work := self._next_work()) is not None:
            try:
                self._compute_missing_tokens(*work)
            except WinnowError:  # logged by the opener of the model, or by the check of files
                self._retry_later(*work)
            except Exception:  # noqa: BLE001 (nobody awaits this thread)
                _log.exception("token vectors cannot be computed")
                self._retry_later(*work)
            del work  # otherwise an old view stays in memory while none arrives

    def _next_work(self) -> tuple[LateScorer, ShardView] | None:
        """Waits for a view to handle; returns None once this is closed."""
        with self._changed:
            self._is_busy = False
            self._idle_at = time.monotonic() + self._idle_seconds
            self._changed.notify_all()
            while not self._views and not self._closed:
                self._wait_for_view()
            if self._closed:
                return None
            self._is_busy = True
            scorer = next(iter(self._views))
            self._used.add(scorer)
            return scorer, self._views.pop(scorer)

    def _wait_for_view(self) -> None:
        """Waits for a change, the next retry, or the time at which models are closed."""
        now = time.monotonic()
        if self._failed and self._retry_at <= now:
            self._views, self._failed = self._failed, {}
        elif self._used and self._idle_at <= now:
            for scorer in self._used:
                scorer.close_model()
            self._used.clear()
        else:
            times = [self._retry_at] if self._failed else []
            times += [self._idle_at] if self._used else []
            self._changed.wait(min(times) - now if times else None)

    def _compute_missing_tokens(self, scorer: LateScorer, view: ShardView) -> None:
        if scorer in self._merged:
            self._merged.discard(scorer)
            scorer.forget_stored(view)
        generation, rows = self._handled.get(scorer, ("", 0))
        first_row, left = rows if generation == view.generation else 0, self._turn_passages

        def may_continue() -> bool:
            nonlocal left
            left -= 1
            others = len(self._views) - (scorer in self._views)
            return self._is_current(scorer, view) and (left >= 0 or not others)

        finished = scorer.compute_missing(view, first_row, may_continue)
        with self._changed:
            if not self._is_current(scorer, view):
                return
            if finished:
                self._handled[scorer] = view.generation, view.rows
            else:
                self._views.setdefault(scorer, view)

    def _retry_later(self, scorer: LateScorer, view: ShardView) -> None:
        with self._changed:
            if self._is_current(scorer, view) and scorer not in self._views:
                self._failed[scorer] = view
                self._retry_at = time.monotonic() + self._retry_seconds

    def _is_current(self, scorer: LateScorer, view: ShardView) -> bool:
        """Whether the shard is open, and was not merged since this view."""
        return not self._closed and self._generations.get(scorer) == view.generation
