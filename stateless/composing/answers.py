"""Composes the parts that answer from an index: cluster, admission, cache and cores."""

import time
from dataclasses import dataclass
from functools import partial
from typing import Self

import structlog

from winnow.domain.question import EncodedQuestion
from winnow.inference.fair_threads import FairThreads
from winnow.policy.byte_bounded_lru import MIB
from winnow.policy.load import ReadLoad
from winnow.settings.errors import SettingsError
from winnow.stateless.answer.admission import Admission
from winnow.stateless.answer.answer_cache import AnswerCache
from winnow.stateless.answer.answering import Answerer
from winnow.stateless.answer.calls import SearchLimits
from winnow.stateless.answer.core import AnswerCore
from winnow.stateless.answer.servicer import SERVICE, AnswerServicer, pack
from winnow.stateless.answer.validation import QuestionDefaults
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.snapshot import ClusterSnapshot
from winnow.stateless.cluster.status import ClusterReporter
from winnow.stateless.composing.cluster import OpenCluster, open_cluster
from winnow.stateless.composing.front import Front
from winnow.stateless.composing.nodes import NodeSource
from winnow.stateless.early_rejection import Refusal
from winnow.stateless.encoding import QuestionEncoder, Weigh
from winnow.stateless.heads.questions import QuestionHeads
from winnow.stateless.http.answers import answer_operations
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.stored_passages import passage_operations
from winnow.stateless.indexes.by_name import IndexedAnswers, IndexedPassages
from winnow.stateless.indexes.front_index import ChooseIndex, FrontIndex
from winnow.stateless.metrics import AdmissionMetrics
from winnow.stateless.passages.core import PassageCore, PassageIndex
from winnow.stateless.passages.searching import PassageSearch
from winnow.stateless.passages.servicer import SERVICE as PASSAGE_SERVICE
from winnow.stateless.passages.servicer import PassageMessages, PassageServicer
from winnow.stateless.tenants.tenancy import Tenancy
from winnow.stateless.words.statistics import WordStatistics
from winnow.telemetry.metrics import CacheMetrics
from winnow.v1 import passage_pb2_grpc

_log = structlog.get_logger("stateless")


@dataclass(frozen=True, slots=True)
class ConversionThreads:
    """Threads that convert results of all indexes, one each. The front closes them."""

    packing: FairThreads
    """Serialises answers with long metadata."""
    passages: FairThreads
    """Highlights and converts passages."""

    @classmethod
    def open(cls, front: Front) -> Self:
        """Starts the threads."""
        threads = cls(FairThreads(1, "packing"), FairThreads(1, "passages"))
        front.stack.callback(threads.packing.close)
        front.stack.callback(threads.passages.close)
        return threads


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """The parts of a front that answer from one index."""

    cluster: OpenCluster
    parts: FrontIndex


def open_index(
    front: Front,
    source: NodeSource,
    encoder: QuestionEncoder,
    heads: QuestionHeads | None,
    threads: ConversionThreads,
) -> OpenIndex:
    """Opens the parts that answer from one index, which serve once its cluster has been built.

    `heads` applies heads to questions; None if the front serves no heads.
    """

    def set_cluster(cluster: Cluster) -> None:
        _log.info("index found", index_id=cluster.index_id, shards=len(cluster.shard_infos))
        weigh = _weighing(front, cluster, opened.words.statistics_of(cluster))
        answers.set_answerer(_answerer(front, encoder, cluster, weigh))
        search = PassageSearch(
            encoder, cluster, limits=_search_limits(front), threads=threads.passages, weigh=weigh
        )
        passages.set_index(PassageIndex(cluster, search))

    opened = open_cluster(front, source, set_cluster)
    defaults = _defaults(front, serves_heads=heads is not None)
    admission = _open_admission(front, opened.snapshot)
    answers = AnswerCore(
        defaults,
        admission,
        front.metrics,
        on_question=opened.nodes.record_request,
        cache=_open_cache(front, opened.snapshot),
        heads=heads,
        pack=partial(pack, threads.packing),
    )
    passages = PassageCore(defaults, admission, opened.nodes.record_request)
    front.work.answering, front.work.questions = answers, admission
    front.work.seconds_per_read = opened.snapshot.seconds_per_read
    reporter = ClusterReporter(opened.builder, opened.nodes)
    parts = FrontIndex(
        answers=answers,
        passages=passages,
        admission=admission,
        reporter=reporter,
        tenancy=Tenancy(lambda: opened.builder.cluster, front.access.quotas),
    )
    return OpenIndex(opened, parts)


def serve_answers(
    front: Front, choose: ChooseIndex, refusal: Refusal, threads: ConversionThreads
) -> PassageServicer:
    """Adds the services of answers and passages of all indexes; returns that of passages.

    `choose` returns the index of a name. `refusal` refuses calls before their messages are read.
    """
    for service in (SERVICE, PASSAGE_SERVICE):
        front.rejection.add(service, refusal)
    limits = OperationLimits(front.settings.default_deadline, refusal)
    answers = IndexedAnswers(choose)
    AnswerServicer(answers, limits.default_deadline).add_to(front.services)
    operations = answer_operations(answers, limits, front.interceptor.record_part)
    front.http_operations.extend(operations)
    messages = PassageMessages(IndexedPassages(choose), threads.passages)
    servicer = PassageServicer(messages, limits.default_deadline)
    passage_pb2_grpc.add_PassageServiceServicer_to_server(servicer, front.services)
    front.http_operations.extend(passage_operations(messages, limits))
    return servicer


def _defaults(front: Front, serves_heads: bool) -> QuestionDefaults:
    settings, has_confidence = front.settings, front.bundle.manifest.confidence is not None
    if settings.min_confidence is not None and not has_confidence:
        raise SettingsError(
            f"--min-confidence needs a calibrated confidence, which bundle "
            f"{front.bundle.manifest.name} lacks: leave it out, or calibrate the bundle"
        )
    return QuestionDefaults(
        passages_to_read=settings.passages_to_read,
        answers=settings.answers,
        read_scope=settings.read_scope,
        max_answer_tokens=front.bundle.manifest.reader.max_answer_tokens,
        max_loss=settings.max_loss,
        retriever=settings.retriever,
        partial_results=settings.partial_results,
        patience=settings.patience,
        serves_heads=serves_heads,
        answer_size=settings.answer_size,
        min_confidence=settings.min_confidence,
        has_confidence=has_confidence,
    )


def _open_admission(front: Front, snapshot: ClusterSnapshot) -> Admission:
    """Opens the admission of questions."""
    settings, metrics = front.settings, AdmissionMetrics(front.registry)

    def pace() -> float | None:
        seconds = snapshot.seconds_per_read()
        metrics.pace.set(seconds or 0.0)
        return seconds

    load = ReadLoad(settings.admission, time.monotonic, pace, snapshot.others_reads)
    return Admission(load, settings.max_in_flight, metrics, typical_reads=settings.passages_to_read)


def _open_cache(front: Front, snapshot: ClusterSnapshot) -> AnswerCache | None:
    metrics = CacheMetrics(front.registry, "winnow_front_answer_cache", "answers")
    budget = front.settings.answer_cache_mb * MIB
    return AnswerCache(budget, snapshot.index_version, metrics) if budget else None


def _weighing(front: Front, cluster: Cluster, words: WordStatistics) -> Weigh:
    """Returns a function that adapts a question to the index: its rarities and token vectors.

    The rarities of a tenant's question are those of the tenant's passages, which its shard counts.
    """
    fingerprint = front.bundle.manifest.token_vectors_fingerprint

    def weigh(question: EncodedQuestion) -> EncodedQuestion:
        usable = cluster.with_usable_tokens(question, fingerprint)
        return usable if usable.tenant else words.weigh(usable)

    return weigh


def _answerer(front: Front, encoder: QuestionEncoder, cluster: Cluster, weigh: Weigh) -> Answerer:
    manifest = front.bundle.manifest
    return Answerer(
        encoder,
        cluster,
        calibration_for=manifest.answer_calibration,
        rule_for=manifest.stopping_rule,
        limits=_search_limits(front),
        metrics=front.metrics,
        weigh=weigh,
        has_late_interaction=manifest.late_interaction is not None,
    )


def _search_limits(front: Front) -> SearchLimits:
    settings = front.settings
    return SearchLimits(
        merge_reserve=settings.merge_reserve,
        retrieve_share=settings.retrieve_share,
        candidates=settings.candidates,
        read_ahead=settings.read_ahead,
        word_candidates=settings.word_candidates,
    )
