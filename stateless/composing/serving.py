"""Opens all parts of a front, and serves them."""

from collections.abc import Sequence
from dataclasses import dataclass

from winnow.stateless.composing.answers import (
    ConversionThreads,
    OpenIndex,
    open_index,
    serve_answers,
)
from winnow.stateless.composing.encoder_groups import open_encoder_groups, serve_heads
from winnow.stateless.composing.encoders import Encoders
from winnow.stateless.composing.feed import FeedParts, open_feed, serve_feed
from winnow.stateless.composing.front import Front, FrontPart, serve_parts
from winnow.stateless.composing.http import serve_http
from winnow.stateless.composing.named_indexes import NamedIndexes, SharedEncoders
from winnow.stateless.composing.nodes import NodeSource
from winnow.stateless.composing.reading import ReaderOfShards, open_reading
from winnow.stateless.composing.shard_services import open_served_cluster, serve_shards
from winnow.stateless.composing.status import serve_status
from winnow.stateless.encoding import QuestionEncoder
from winnow.stateless.feed.fed_index import ChooseFed, only_fed
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.heads.encoder_groups import EncoderGroups
from winnow.stateless.heads.questions import QuestionHeads
from winnow.stateless.indexes.front_index import only_index
from winnow.stateless.passages.servicer import PassageServicer
from winnow.text.language import LanguageCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenParts:
    """The parts that every front has, with or without ports."""

    parts: Sequence[FrontPart]
    index: OpenIndex | None = None
    """The index of a front without a catalog; None for other fronts."""
    named: NamedIndexes | None = None
    """The indexes of the catalog; None for other fronts."""
    passages: PassageServicer | None = None
    """Lists the passages of all indexes; None for a front without an index."""


async def open_front_parts(
    front: Front,
    source: NodeSource | None,
    further: Sequence[FrontPart] = (),
    reader: ReaderOfShards | None = None,
    *,
    feed: FeedParts | None = None,
) -> OpenParts:
    """Opens the parts that answer, predict and read texts.

    Args:
        front: front without parts.
        source: source of the content nodes; None for a front without an index.
        further: other parts of the process, which are prepared first.
        reader: the reader of the shards of this process, which also reads texts; None if the
            process has no shards.
        feed: parts of the feeding of named indexes; None if they take no writes.

    """
    reading = [open_reading(front, reader)] if front.settings.reader_threads else []
    if not front.settings.encodes:
        serve_status(front, None, EncoderGroups())
        return OpenParts(parts=[*further, *reading])
    encoders = Encoders(front)
    default = encoders.open(front.bundle, front.settings.encoder_address)
    questions = QuestionEncoder(
        front.bundle,
        default.tokenizer,
        default.encoder,
        languages=LanguageCheck(front.bundle.manifest.languages),
        refuse_unread=front.settings.refuse_unread_languages,
    )
    groups, heads_part = await open_encoder_groups(front, encoders, default)
    predictor = serve_heads(front, groups)

    def heads_of(encoder: QuestionEncoder) -> QuestionHeads | None:
        return QuestionHeads(predictor, groups.default, encoder) if groups.all() else None

    parts = [*further, FrontPart(questions.warm_up, encoders.tasks), heads_part, *reading]
    if source is None:
        serve_status(front, None, groups)
        return OpenParts(parts=parts)
    threads = ConversionThreads.open(front)
    if front.settings.indexes:
        shared = SharedEncoders(front, encoders, default)
        named = NamedIndexes(front, shared, heads_of, threads=threads, feed=feed)
        choice = named.choice
        servicer = serve_answers(front, choice.choose, choice.refusal, threads)
        serve_status(front, choice.choose, groups)
        return OpenParts(parts=[*parts, named.part], named=named, passages=servicer)
    index = open_index(front, source, questions, heads_of(questions), threads)
    choose = only_index(index.parts)
    servicer = serve_answers(front, choose, index.parts.admission.refusal, threads)
    serve_status(front, choose, groups)
    return OpenParts(parts=[*parts, index.cluster.part], index=index, passages=servicer)


async def serve_front(
    front: Front,
    source: NodeSource | None,
    further: Sequence[FrontPart] = (),
    reader: ReaderOfShards | None = None,
) -> None:
    """Opens all parts of a front, and serves on the ports of its settings until SIGTERM or SIGINT.

    The arguments are those of `open_front_parts`.
    """
    settings = front.settings
    forwards_writes = bool(settings.feed_listen or settings.shards_listen)
    metrics = FeedMetrics(front.registry) if forwards_writes and source is not None else None
    feed = FeedParts(front, metrics) if settings.feed_listen and metrics is not None else None
    opened = await open_front_parts(front, source, further, reader, feed=feed)
    parts = list(opened.parts)
    if feed is not None and opened.passages is not None:
        choose = await _choose_fed(front, source, opened, feed)
        parts.append(serve_feed(front, feed, choose, opened.passages))
    if settings.shards_listen and metrics is not None and opened.index is not None:
        assert source is not None  # it has the nodes of the index
        served = open_served_cluster(front, source, opened.index.cluster, metrics)
        parts.append(serve_shards(front, served))
    if settings.http_listen:
        parts.append(serve_http(front))
    await serve_parts(front, parts)


async def _choose_fed(
    front: Front, source: NodeSource | None, opened: OpenParts, feed: FeedParts
) -> ChooseFed:
    """Returns the choice of the index of writes."""
    if opened.named is not None:
        return opened.named.choice.choose_fed
    assert opened.index is not None  # the front has an index
    assert source is not None
    index = opened.index
    return only_fed(await open_feed(front, source, index.cluster, index.parts, feed))
