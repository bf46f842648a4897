"""Answers one admitted question: encodes it, searches the shards, merges and counts coverage."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from winnow.deadline import Deadline
from winnow.domain.answered import Answer, Answered, Timings
from winnow.domain.calibration import AnswerCalibration
from winnow.domain.coverage import ShardStatus
from winnow.domain.partition import Partition
from winnow.domain.question import EncodedQuestion, Question
from winnow.domain.reading import Reading
from winnow.domain.stopping import StoppingRule
from winnow.errors import WinnowError
from winnow.stateless.answer.admission import AdmittedQuestion
from winnow.stateless.answer.calls import SearchLimits, ShardCalls
from winnow.stateless.answer.failures import failed_shards
from winnow.stateless.answer.fields import fields_of_cluster
from winnow.stateless.answer.merge import coverage_of, merge
from winnow.stateless.answer.recording import CallRecorder
from winnow.stateless.answer.search import search
from winnow.stateless.answer.sizing import with_size
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.encoding import QuestionEncoder, TokenisedQuestion, Weigh
from winnow.stateless.metrics import FRONT_STAGES, FrontMetrics
from winnow.stateless.words.parts import weigh_by_parts
from winnow.telemetry.tracing.span import current, span


class Answerer:
    """Answers questions over one cluster."""

    def __init__(
        self,
        encoder: QuestionEncoder,
        cluster: Cluster,
        *,
        calibration_for: Callable[[bool], AnswerCalibration],
        rule_for: Callable[[float, bool], StoppingRule | None],
        limits: SearchLimits,
        metrics: FrontMetrics,
        weigh: Weigh = lambda question: question,
        has_late_interaction: bool = False,
    ) -> None:
        """Creates an answerer; calls no shard yet.

        Args:
            encoder: encodes questions.
            cluster: the shards.
            calibration_for: returns how answers are judged, with or without late interaction.
            rule_for: returns the rule of early stopping for a `max_loss`, with or without late
                interaction, or None to read all passages.
            limits: limits of the time for shards and of the passages that they rank.
            metrics: metrics of questions.
            weigh: adds the rarity of the question's words, if the index took writes, and leaves out
                its token vectors, if the index has none.
            has_late_interaction: whether the bundle has late interaction, so that encoders of this
                version return token vectors.

        """
        self._encoder, self._cluster, self._metrics = encoder, cluster, metrics
        self._weigh, self._has_late_interaction = weigh, has_late_interaction
        self._calibration_for, self._rule_for, self._limits = calibration_for, rule_for, limits

    def count_shards(self, question: Question) -> int:
        """Number of shards that a question searches, with or without a replica."""
        return len(self._cluster.searchers_of_tenant(question.tenant))

    def required_writes(self) -> Mapping[int, int]:
        """Number of the write of each shard that an answer must include now."""
        return self._cluster.required_sequences()

    @property
    def partition(self) -> Partition:
        """The split of the index into shards."""
        return self._cluster.partition

    @property
    def fields(self) -> Collection[str] | None:
        """The metadata fields of all shards, which filters may name.

        None if a field may be unknown: a write that no node has reported yet may add one.
        """
        return fields_of_cluster(self._cluster)

    def tokenise(self, question: Question) -> TokenisedQuestion:
        """Tokenises a question; raises InvalidRequestError if it has no word."""
        return self._encoder.tokenise(question.text)

    async def answer(
        self, admitted: AdmittedQuestion, tokens: TokenisedQuestion, deadline: Deadline
    ) -> Answered:
        """Returns the best answers of the shards that replied in time.

        The errors mean that every shard failed, or that one failed and partial results are
        forbidden.

        Raises:
            DeadlineExceededError: the failed shards were late.
            OverloadedError: the failed shards were overloaded or late.
            UnavailableError: the shards failed for other or several reasons.

        """
        recorder = CallRecorder(tokens.seconds)
        question, timings = admitted.question, Timings()
        encoded, _ = await self._encoder.encode(tokens, timings, admitted.client)
        deadline.check("the shards were called")
        # the reserve takes at most a tenth of a short deadline
        reserve = min(self._limits.merge_reserve, deadline.left() / 10)
        searchers = self._cluster.searchers_of_tenant(question.tenant)
        required_writes = self._cluster.required_writes(question.after)
        weighed = await weigh_by_parts(
            self._weigh(replace(encoded, tenant=question.tenant)),
            searchers,
            required_writes,
            deadline,
        )
        calls = ShardCalls(
            searchers,
            question,
            replace(weighed, max_answer_tokens=question.max_answer_tokens),
            deadline.earlier(reserve),
            limits=self._limits,
            required_writes=required_writes,
            last_known_write=self._cluster.reached_sequence,
            unknown_writes=self._cluster.shards_with_unknown_write(question.after),
            recorder=recorder,
            # joint calls are for all shards
            joint=None if question.tenant else self._cluster.joint,
        )
        try:
            result = await search(calls, partial(self._rule_for, question.max_loss), timings)
            timings.merge_start = recorder.elapsed()
            self._count_late_interaction(calls, encoded, result.lost_late_interaction)
            for shard, sequence in result.sequences.items():
                self._cluster.record_answer(shard, sequence, result.log_ids.get(shard, ""))
            infos = self._cluster.shard_infos
            coverage = coverage_of(
                {shard: infos[shard] for shard in searchers}, result, question.tenant
            )
        except WinnowError as error:
            for shard, status in failed_shards(error):
                self._metrics.shard_failures.labels(str(shard), status.value).inc()
            raise
        with span("merge"):
            answers = tuple(
                with_size(answer, question, self._calibration_of(answer.reading))
                for answer in merge(result.readings, question.answers, self._span_confidence)
            )
        timings.calls = recorder.calls()
        timings.total = recorder.elapsed()
        timings.merge = timings.total - timings.merge_start
        answered = Answered(
            answers=answers,
            has_answer=bool(answers) and self._accepts(answers[0]),
            coverage=coverage,
            timings=timings,
            passages_asked=admitted.requested_reads,
            passages_granted=admitted.granted_reads,
            passages_read=result.total_reads,
            passages_needed=result.needed_reads,
            read_scope=question.read_scope,
            question_truncated=tokens.truncated,
            unread_language=tokens.unread_language,
            max_loss=question.max_loss if result.rule else 0.0,
            lost_late_interaction=result.lost_late_interaction or self._lacks_tokens(encoded),
        )
        self._observe(answered)
        return answered

    def _lacks_tokens(self, encoded: EncodedQuestion) -> bool:
        """Whether the encoder returned no token vectors, although all passages have some.

        It is an encoder server of an older version, beside which newer ones may run.
        """
        if not self._has_late_interaction or encoded.tokens is not None:
            return False
        return bool(self._cluster.token_vectors)

    def _count_late_interaction(
        self, calls: ShardCalls, encoded: EncodedQuestion, lost: bool
    ) -> None:
        """Counts a question that was ranked without late interaction, by the reason."""
        if not self._has_late_interaction or not calls.depth.candidates:
            return
        if self._lacks_tokens(encoded):
            reason = "encoder"
        elif calls.encoded.tokens is None:
            reason = "index"
        elif lost:
            reason = "candidates"
        else:
            return
        self._metrics.without_late_interaction.labels(reason).inc()

    def _accepts(self, best: Answer) -> bool:
        threshold = self._calibration_of(best.reading).threshold
        return threshold.accepts(best.reading.score, best.confidence)

    def _span_confidence(self, reading: Reading) -> float | None:
        return self._calibration_of(reading).span_confidence(reading)

    def _calibration_of(self, reading: Reading) -> AnswerCalibration:
        return self._calibration_for(reading.late_interaction)

    def _observe(self, answered: Answered) -> None:
        metrics, timings, coverage = self._metrics, answered.timings, answered.coverage
        step, exemplar = current(), current().exemplar
        step.set("winnow.passages_read", answered.passages_read)
        step.set("winnow.passages_needed", answered.passages_needed)
        step.set("winnow.complete", coverage.complete)
        for stage in FRONT_STAGES:
            metrics.stage.labels(stage).observe(getattr(timings, stage), exemplar)
        metrics.shard.observe(timings.shards, exemplar)
        for part in coverage.shards:
            if part.status is not ShardStatus.SEARCHED:
                metrics.shard_failures.labels(str(part.shard), part.status.value).inc()
        metrics.passages_read.observe(answered.passages_read)
        metrics.passages_needed.observe(answered.passages_needed)
        # the coverage of an empty index is complete
        share = 1.0 if coverage.complete else coverage.searched / max(coverage.known, 1)
        metrics.coverage.observe(share)
