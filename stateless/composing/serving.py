"""Opens all parts of a front, and serves them."""

from collections.abc import Sequence
from dataclasses import dataclass

from winnow.stateless.composing.answers import serve_answers
from winnow.stateless.composing.cluster import OpenCluster
from winnow.stateless.composing.encoder_groups import open_encoder_groups, serve_heads
from winnow.stateless.composing.encoders import Encoders
from winnow.stateless.composing.feed import open_feed, serve_feed
from winnow.stateless.composing.front import Front, FrontPart, serve_parts
from winnow.stateless.composing.http import serve_http
from winnow.stateless.composing.nodes import NodeSource
from winnow.stateless.composing.passages import OpenPassages
from winnow.stateless.composing.reading import ReaderOfShards, open_reading
from winnow.stateless.composing.shard_services import open_served_cluster, serve_shards
from winnow.stateless.composing.status import serve_status
from winnow.stateless.encoding import QuestionEncoder
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.heads.encoder_groups import EncoderGroups
from winnow.stateless.heads.questions import QuestionHeads
from winnow.text.language import LanguageCheck


@dataclass(frozen=True, slots=True)
class OpenParts:
    """The parts that every front has, with or without ports."""

    parts: Sequence[FrontPart]
    cluster: OpenCluster | None
    """The cluster; None for a front without an index."""
    passages: OpenPassages | None
    """Lists the passages of the cluster; None without a cluster."""


async def open_front_parts(
    front: Front,
    source: NodeSource | None,
    further: Sequence[FrontPart] = (),
    reader: ReaderOfShards | None = None,
) -> OpenParts:
    """Opens the parts that answer, predict and read texts.

    Args:
        front: front without parts.
        source: source of the content nodes; None for a front without an index.
        further: other parts of the process, which are prepared first.
        reader: the reader of the shards of this process, which also reads texts; None if the
            process has no shards.

    """
    reading = [open_reading(front, reader)] if front.settings.reader_threads else []
    if not front.settings.encodes:
        serve_status(front, None, EncoderGroups())
        return OpenParts([*further, *reading], None, None)
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
    parts = [*further, FrontPart(questions.warm_up, encoders.tasks), heads_part, *reading]
    cluster = passages = None
    if source is not None:
        heads = QuestionHeads(predictor, groups.default, questions) if groups.all() else None
        cluster, passages = serve_answers(front, source, questions, heads)
        parts.append(cluster.part)
    serve_status(front, cluster, groups)
    return OpenParts(parts, cluster, passages)


async def serve_front(
    front: Front,
    source: NodeSource | None,
    further: Sequence[FrontPart] = (),
    reader: ReaderOfShards | None = None,
) -> None:
    """Opens all parts of a front, and serves on the ports of its settings until SIGTERM or SIGINT.

    The arguments are those of `open_front_parts`.
    """
    opened = await open_front_parts(front, source, further, reader)
    parts = list(opened.parts)
    settings = front.settings
    forwards_writes = settings.feed_listen or settings.shards_listen
    if forwards_writes and source is not None and opened.cluster is not None:
        metrics = FeedMetrics(front.registry)
        if settings.feed_listen and opened.passages is not None:
            feed = await open_feed(front, source, opened.cluster, metrics, opened.passages.core)
            parts.append(serve_feed(front, feed, opened.passages.servicer))
        if settings.shards_listen:
            served = open_served_cluster(front, source, opened.cluster, metrics)
            parts.append(serve_shards(front, served))
    if settings.http_listen:
        parts.append(serve_http(front))
    await serve_parts(front, parts)
