"""Has the server of a front answer questions over a cluster."""

import time
from functools import partial

import structlog

from winnow.inference.fair_threads import FairThreads
from winnow.policy.kept import MIB
from winnow.policy.load import ReadLoad
from winnow.stateless.answer.admission import Admission
from winnow.stateless.answer.answer_cache import AnswerCache
from winnow.stateless.answer.answering import Answerer
from winnow.stateless.answer.calls import Limits
from winnow.stateless.answer.core import AnswerCore
from winnow.stateless.answer.packing import Packing
from winnow.stateless.answer.servicer import SERVICE, AnswerServicer
from winnow.stateless.answer.validation import Defaults
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.snapshot import ClusterSnapshot
from winnow.stateless.composing.cluster import OpenCluster, open_cluster
from winnow.stateless.composing.front import Front
from winnow.stateless.encoding import QuestionEncoder
from winnow.stateless.heads.questions import QuestionHeads
from winnow.stateless.http.answers import answer_calls
from winnow.stateless.metrics import AdmissionMetrics
from winnow.stateless.words.statistics import WordStatistics
from winnow.telemetry.metrics import CacheMetrics

_log = structlog.get_logger("stateless")


def serve_answers(
    front: Front, encoder: QuestionEncoder, heads: QuestionHeads | None
) -> OpenCluster:
    """Has the server answer, once the cluster is formed; `heads` are those of questions."""

    def serve(cluster: Cluster) -> None:
        _log.info("index found", shards=len(cluster.infos))
        core.serve(_answerer(front, encoder, cluster, opened.words.serve(cluster)))

    opened = open_cluster(front, serve)
    core = AnswerCore(
        _defaults(front, serves_heads=heads is not None),
        _admission(front, opened.known),
        front.metrics,
        opened.nodes.asked,
        _remembered(front, opened.known),
        heads,
        _packing(front),
    )
    front.work.answering, front.work.seconds_per_read = core, opened.known.seconds_per_read
    seconds = front.settings.default_deadline
    servicer = AnswerServicer(core, seconds)
    servicer.add_to(front.server.grpc)
    refusal, finished = partial(front.doors.refusal, SERVICE), front.boundary.part_finished
    front.calls.extend(answer_calls(core, seconds, refusal, finished))
    return opened


def _defaults(front: Front, serves_heads: bool) -> Defaults:
    settings = front.settings
    return Defaults(
        settings.passages_to_read,
        settings.answers,
        settings.read_scope,
        front.bundle.manifest.reader.max_answer_tokens,
        settings.max_loss,
        settings.retriever,
        partial_results=settings.partial_results,
        patience=settings.patience,
        serves_heads=serves_heads,
    )


def _admission(front: Front, known: ClusterSnapshot) -> Admission:
    """Who is let in; its door refuses who would not be, before messages are read."""
    settings, metrics = front.settings, AdmissionMetrics(front.registry)

    def pace() -> float | None:
        seconds = known.seconds_per_read()
        metrics.pace.set(seconds or 0.0)
        return seconds

    load = ReadLoad(settings.admission, time.monotonic, pace, known.others_reads)
    usual = settings.passages_to_read
    admission = Admission(load, settings.max_in_flight, metrics, usual=usual)
    front.doors.add(SERVICE, admission.refusal)
    front.work.questions = admission
    return admission


def _remembered(front: Front, known: ClusterSnapshot) -> AnswerCache | None:
    metrics = CacheMetrics(front.registry, "winnow_front_answer_cache", "answers")
    budget = front.settings.answer_cache_mb * MIB
    return AnswerCache(budget, known.edition, metrics) if budget else None


def _packing(front: Front) -> Packing:
    aside = FairThreads(1, "packing")
    front.stack.callback(aside.close)
    return Packing(aside)


def _answerer(
    front: Front, encoder: QuestionEncoder, cluster: Cluster, words: WordStatistics
) -> Answerer:
    settings, manifest = front.settings, front.bundle.manifest
    limits = Limits(
        settings.merge_reserve,
        settings.retrieve_share,
        settings.candidates,
        settings.read_ahead,
        settings.word_candidates,
    )
    return Answerer(
        encoder,
        cluster,
        manifest.score.no_answer_below,
        manifest.stopping_rule,
        limits,
        front.metrics,
        words.weigh,
        manifest.confidence,
    )
