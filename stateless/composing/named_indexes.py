"""Composes the indexes of a front that follows a catalog."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from winnow.bundle import Bundle, load_bundle
from winnow.catalog import CatalogFile
from winnow.domain.catalog import CatalogIndex
from winnow.rpc.channel import open_channel
from winnow.stateless.composing.answers import ConversionThreads, open_index
from winnow.stateless.composing.encoders import Encoders, OpenEncoder
from winnow.stateless.composing.feed import FeedParts, open_feed
from winnow.stateless.composing.front import Front, FrontPart
from winnow.stateless.composing.nodes import RemoteNodes
from winnow.stateless.composing.shared_values import SharedValues
from winnow.stateless.encoding import QuestionEncoder
from winnow.stateless.heads.questions import QuestionHeads
from winnow.stateless.indexes.catalog_choice import CatalogChoice
from winnow.stateless.indexes.following import CatalogFollower, OpenedIndex
from winnow.stateless.metrics import FrontMetrics
from winnow.stateless.replicas.polls_remote import RemotePolls
from winnow.stateless.status.work import FrontWork
from winnow.telemetry.labelled import LabelledRegistries
from winnow.text.language import LanguageCheck
from winnow.uncancelled import run_uncancelled

HeadsOf = Callable[[QuestionEncoder], QuestionHeads | None]
"""Returns what applies heads to the questions of an encoder; None if the front serves no heads."""


class SharedEncoders:
    """The bundles and encoders of all indexes. Indexes whose bundles encode alike share them.

    An encoder is closed with the last of its indexes, except the one of the front's bundle.
    """

    def __init__(self, front: Front, encoders: Encoders, default: OpenEncoder) -> None:
        """`default` is the encoder of the front's bundle."""
        self._front, self._encoders = front, encoders
        self._bundles = SharedValues[str, Bundle]()
        self._bundles.keep("", front.bundle)
        self._opened = SharedValues[tuple[str, ...], OpenEncoder]()
        self._opened.keep(_encoding_of(front.bundle), default)

    async def bundle(self, directory: str, index: contextlib.AsyncExitStack) -> Bundle:
        """Returns the bundle in a directory; an empty one stands for the bundle of the front.

        `index` is closed with the index that uses it. Raises ArtefactError if the bundle is missing
        or damaged.
        """

        async def load(_: contextlib.AsyncExitStack) -> Bundle:
            return await asyncio.to_thread(load_bundle, Path(directory))

        return await self._bundles.use(directory, load, index)

    async def questions(self, bundle: Bundle, index: contextlib.AsyncExitStack) -> QuestionEncoder:
        """Returns the encoder of questions of a bundle, warmed up.

        `index` is closed with the index that uses it.
        """

        async def open_warm(stack: contextlib.AsyncExitStack) -> OpenEncoder:
            # in a thread, since questions to other indexes are answered meanwhile
            opening = asyncio.to_thread(self._encoders.open, bundle, stack=stack)
            opened = await run_uncancelled(opening)
            await self._encoder_of(bundle, opened).warm_up()
            return opened

        opened = await self._opened.use(_encoding_of(bundle), open_warm, index)
        return self._encoder_of(bundle, opened)

    def _encoder_of(self, bundle: Bundle, opened: OpenEncoder) -> QuestionEncoder:
        return QuestionEncoder(
            bundle,
            opened.tokenizer,
            opened.encoder,
            languages=LanguageCheck(bundle.manifest.languages),
            refuse_unread=self._front.settings.refuse_unread_languages,
        )


def _encoding_of(bundle: Bundle) -> tuple[str, ...]:
    """Identifies everything that an encoder of questions returns."""
    manifest = bundle.manifest
    return (
        manifest.states_fingerprint,
        manifest.encoding_fingerprint,
        manifest.token_vectors_fingerprint,
    )


class NamedIndexes:
    """The indexes of the catalog of a front."""

    def __init__(
        self,
        front: Front,
        encoders: SharedEncoders,
        heads_of: HeadsOf,
        *,
        threads: ConversionThreads,
        feed: FeedParts | None,
    ) -> None:
        """Opens no index yet; see `part`.

        `heads_of` is called for indexes with the encoder of the front's bundle. `feed` is shared by
        the indexes that take writes; None if the front takes none.
        """
        self._front, self._encoders, self._heads_of = front, encoders, heads_of
        self._threads, self._feed = threads, feed
        self._polls = RemotePolls(partial(open_channel, peers=front.access.peers))
        self.choice = CatalogChoice()
        follower = CatalogFollower(
            CatalogFile(front.settings.indexes),
            self._open,
            self.choice,
            form_timeout=front.settings.form_timeout,
            clock=time.monotonic,
        )
        self.part = FrontPart(follower.wait_until_read, {"indexes": follower.run})
        """Follows the catalog."""
        front.work.answering = front.work.questions = self.choice

    async def _open(self, name: str, index: CatalogIndex) -> OpenedIndex:
        """Opens an index; raises ArtefactError if its bundle cannot be used."""
        stack = contextlib.AsyncExitStack()
        try:
            bundle = await self._encoders.bundle(index.bundle, stack)
            front = self._front_of(name, bundle, stack)
            encoder = await self._encoders.questions(bundle, stack)
            source = RemoteNodes(front, index.index_id, self._polls)
            opened = open_index(front, source, encoder, self._heads(encoder, bundle), self._threads)
            parts, cluster = opened.parts, opened.cluster
            if self._feed is not None:
                feed = await open_feed(front, source, cluster, parts, self._feed)
                parts = replace(parts, feed=feed)
        except BaseException:
            await stack.aclose()
            raise
        return OpenedIndex(
            parts=parts,
            tasks=cluster.part.tasks,
            wait_until_serving=cluster.part.prepare,
            close=stack.aclose,
            rename=partial(self._labelled.rename, front.registry),
        )

    def _front_of(self, name: str, bundle: Bundle, stack: contextlib.AsyncExitStack) -> Front:
        """Returns the front with the bundle and the metrics of an index, which `stack` closes."""
        self._labelled.drop(name)  # metrics of a dropped index with the same name
        registry = self._labelled.of(name)
        stack.callback(self._labelled.remove, registry)
        return replace(
            self._front,
            bundle=bundle,
            registry=registry,
            metrics=FrontMetrics(registry),
            stack=stack,
            work=FrontWork(),
        )

    @property
    def _labelled(self) -> LabelledRegistries:
        assert self._front.by_index is not None  # the settings name a catalog
        return self._front.by_index

    def _heads(self, encoder: QuestionEncoder, bundle: Bundle) -> QuestionHeads | None:
        default = self._front.bundle.manifest.states_fingerprint
        return self._heads_of(encoder) if bundle.manifest.states_fingerprint == default else None
