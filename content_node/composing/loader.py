"""Loads a served shard, and opens what searches and merges it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO

import structlog
from prometheus_client import CollectorRegistry

from winnow.content_node.admission import AdmittedSearcher
from winnow.content_node.archiving.files import restore_shard
from winnow.content_node.archiving.stub import read_stub
from winnow.content_node.composing.parts import NodeParts
from winnow.content_node.late_interaction.scoring import LateRanking, LateScorer
from winnow.content_node.late_interaction.sent_tokens import SentTokens
from winnow.content_node.live.custody import Custody, Role
from winnow.content_node.live.half_log import resume_following
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.merging.child_process import MergeChild
from winnow.content_node.merging.handed_tokens import write_tokens
from winnow.content_node.merging.merger import Merger
from winnow.content_node.merging.newest import open_newest
from winnow.content_node.merging.policy import MergePolicy
from winnow.content_node.merging.tidying import remove_obsolete
from winnow.content_node.metrics import MergeMetrics, WriteMetrics
from winnow.content_node.pull_shard import LoggedProgress, pull_shard
from winnow.content_node.searcher import LocalSearcher
from winnow.content_node.shard import StoredSegment, open_shard
from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.shard.view import ShardView
from winnow.content_node.startup_checks import shard_advice
from winnow.errors import ArtefactError
from winnow.heap import trim_heap
from winnow.inference.niceness import lower_priority

_log = structlog.get_logger("content_node")


class ShardLoader:
    """Loads a shard in a thread, and opens its searcher and its merger."""

    def __init__(
        self,
        directory: Path,
        parts: NodeParts,
        registry: CollectorRegistry,
        *,
        check: Callable[[ShardManifest, Path], None],
        closed_since: Callable[[], int],
        pull: str = "",
    ) -> None:
        """Loads nothing yet.

        Args:
            directory: the shard.
            parts: the objects that all shards of the process share.
            registry: gets the metrics of writes and merges.
            check: raises ArtefactError if the node may not serve the shard; runs in any thread.
            closed_since: returns the version of the catalog since which the shard refuses the
                writes of front nodes; 0 if it takes them.
            pull: URL of snapshots from which a missing shard is restored; empty for none.

        """
        self._directory, self._parts, self._pull = directory, parts, pull
        self._check, self._closed_since = check, closed_since
        self._write_metrics, self._merge_metrics = WriteMetrics(registry), MergeMetrics(registry)
        self._late: LateRanking | None = None
        """The ranking of the loaded shard by late interaction; None if there is none."""

    def load(self, *, at_start: bool = True) -> tuple[LiveShard, AdmittedSearcher]:
        """Restores an archived or missing shard, and loads it. Blocks for seconds to minutes.

        `at_start`: whether an archived shard is restored because the node starts, and not for a
        call. Then two lines of the log say so: one before, because a restore takes long and changes
        the directory even if the shard is only read, and one after.

        Raises ArtefactError, IdentityError or UnavailableError if that fails.
        """
        url = self._parts.settings.archive_url
        if at_start and (archived := read_stub(self._directory)) is not None:
            # without fields: `winnow ask --index` shows only the text of a warning
            _log.warning(f"restoring archived shard {self._directory} from {archived.url}")
        stub = restore_shard(self._directory, url, LoggedProgress())
        if stub is not None and at_start:
            _log.info(
                "archived shard restored at the start",
                directory=str(self._directory),
                url=stub.url,
                snapshot=stub.snapshot,
                sequence=stub.sequence,
            )
        if self._pull:
            lower_priority(self._parts.settings.reader_nice)
            pull_shard(self._pull, self._directory)
        return self._parts.loading.run(self._open)

    def open_merger(self, live: LiveShard) -> Merger[StoredSegment]:
        """Returns what merges the writes of the loaded shard."""
        settings, bundle = self._parts.settings, self._parts.bundle.directory
        # at normal priority: hnswlib holds the GIL while it loads a graph, and a thread of low
        # priority would block the event loop for longer
        return Merger(
            shard=live,
            policy=MergePolicy(settings.merge_after, settings.max_unmerged),
            new_merge=lambda base, upto: MergeChild(
                base=base,
                shard=self._directory,
                upto=upto,
                bundle=bundle,
                write_tokens=self._token_writer(live.view),
            ),
            open_base=self._open_segment,
            remove_obsolete=partial(remove_obsolete, self._directory),
            metrics=self._merge_metrics,
            one_at_a_time=self._parts.merge_lock,
        )

    def release(self) -> None:
        """Drops everything of a shard that was loaded. It can be loaded again."""
        late, self._late = self._late, None
        self._forget(late)

    def discard(self, live: LiveShard) -> None:
        """Releases a shard that was loaded and is not served."""
        live.abandon()
        self.release()

    def _forget(self, late: LateRanking | None) -> None:
        if late is not None:
            self._parts.passage_tokens.background.remove(late.scorer)
        self._write_metrics.observe_waiting(lambda: 0, 0)

    def _open(self) -> tuple[LiveShard, AdmittedSearcher]:
        """Opens the shard; runs in a thread that loads shards."""
        parts, settings = self._parts, self._parts.settings
        # other nodes of this machine may be serving while this one starts
        lower_priority(settings.reader_nice)
        if settings.feed and parts.peer_nodes is not None:
            resume_following(self._directory)
        late = self._late_ranking()
        live = open_live(
            self._directory,
            self._open_base,
            partial(WriteLimits.of, settings, parts.reader.tokenizer.vocabulary),
            self._write_metrics,
            feeding=settings.feed,
        )
        try:
            self._check(live.base.manifest, self._directory)
            self._check_custody(live.custody)
            searcher = self._searcher(live, late)
        except BaseException:
            live.abandon()
            self._forget(late)
            raise
        self._late = late
        return live, searcher

    def _check_custody(self, custody: Custody) -> None:
        """Raises ArtefactError for a shard that moves or splits, unless there is an assignment."""
        if custody.takes_writes or self._parts.peer_nodes is not None:
            return
        if not custody.node:
            raise ArtefactError(
                f"{self._directory} is a shard that is being split, or a half of one: start this "
                "node with --assignment"
            )
        unfinished = "is the copy of an unfinished move"
        reason = "was handed over" if custody.role is Role.FORMER_OWNER else unfinished
        raise ArtefactError(
            f"{self._directory} {reason}, and node {custody.node} takes the writes: serve the "
            "shard there, or start this node with --assignment"
        )

    def _searcher(self, live: LiveShard, late: LateRanking | None) -> AdmittedSearcher:
        parts, shard = self._parts, live.base
        searcher = LocalSearcher(
            live.view,
            parts.reader.open_warm(),
            parts.bundle,
            parts.pool,
            pace=parts.pace,
            metrics=parts.metrics,
            journaled=bool(parts.settings.journal),
            custody=lambda: live.custody,
            closed_since=self._closed_since,
            on_drop=partial(self._forget_generation, live, late),
            admit=parts.load.admit_retrieval,
            late=late,
        )
        self._serve_views(live, searcher, late)
        for advice in shard_advice(shard, self._directory, parts.bundle):
            _log.warning(advice, shard=shard.manifest.shard)
        _log.info(
            "shard loaded",
            shard=shard.manifest.shard,
            shards=shard.manifest.shards,
            passages=live.view.passages,
            sequence=live.view.sequence,
            bundle=parts.bundle.manifest.name,
        )
        trim_heap()  # memory freed by loading
        return AdmittedSearcher(searcher, parts.load)

    def _serve_views(
        self, live: LiveShard, searcher: LocalSearcher, late: LateRanking | None
    ) -> None:
        """Serves every new view, and computes the token vectors of its new passages."""
        background = self._parts.passage_tokens.background

        def serve(view: ShardView) -> None:
            searcher.set_view(view)
            if late is not None:
                background.update(late.scorer, view)

        live.on_new_view(serve)
        if late is not None:
            live.on_stored(SentTokens(self._parts.bundle.manifest, late.scorer).keep)
            background.update(late.scorer, live.view)

    def _forget_generation(self, live: LiveShard, late: LateRanking | None) -> None:
        """Frees memory after a generation was dropped."""
        if late is not None and late is self._late:  # else the shard was closed meanwhile
            self._parts.passage_tokens.background.forget_merged(late.scorer, live.view)
        self._parts.trimmer.schedule_trim()

    def _late_ranking(self) -> LateRanking | None:
        """Returns the ranking by late interaction; None if the bundle has none."""
        entry = self._parts.bundle.manifest.late_interaction
        if entry is None:
            return None
        model = self._parts.passage_tokens
        scorer = LateScorer(model, model.computed)
        return LateRanking(words=entry.words, tokens=entry.tokens, scorer=scorer)

    def _token_writer(self, view: ShardView) -> Callable[[IO[bytes]], None] | None:
        """Returns what writes the token vectors of unmerged passages for a merge; None if the shard
        uses none.
        """
        if self._late is None or not view.has_token_vectors:
            return None
        scorer, fingerprint = (
            self._late.scorer,
            self._parts.bundle.manifest.token_vectors_fingerprint,
        )
        return lambda file: write_tokens(file, fingerprint, scorer.computed_tokens(view))

    def _open_base(self, trimmed: int) -> StoredSegment:
        feeding = self._parts.settings.feed
        return open_newest(self._directory, trimmed, self._open_segment, feeding=feeding)

    def _open_segment(self, directory: Path) -> StoredSegment:
        settings, manifest = self._parts.settings, self._parts.bundle.manifest
        exact, exact_up_to = settings.exact, settings.exact_up_to
        return open_shard(
            directory,
            settings.ef,
            exact,
            exact_up_to,
            lower_layers_fingerprint=manifest.lower_layers_fingerprint,
            token_vectors_fingerprint=manifest.token_vectors_fingerprint,
        )
