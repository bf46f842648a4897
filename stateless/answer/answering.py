"""Answers one question that was let in: encode, search, merge, and say what was covered."""

from collections.abc import Callable, Collection

from winnow.deadline import Deadline
from winnow.domain.answered import Answered, Timings
from winnow.domain.confidence import Confidence
from winnow.domain.coverage import ShardStatus
from winnow.domain.question import EncodedQuestion, Question
from winnow.domain.stopping import StoppingRule
from winnow.errors import WinnowError
from winnow.stateless.answer.admission import Admitted
from winnow.stateless.answer.calls import Calls, Limits
from winnow.stateless.answer.failures import failed_shards
from winnow.stateless.answer.fields import fields_of_index
from winnow.stateless.answer.merge import cover, merge
from winnow.stateless.answer.recording import Recording
from winnow.stateless.answer.search import search
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.encoding import QuestionEncoder, TokenisedQuestion
from winnow.stateless.metrics import FRONT_STAGES, FrontMetrics
from winnow.telemetry.tracing.span import current, span


class Answerer:
    """Answers questions over one cluster."""

    def __init__(
        self,
        encoder: QuestionEncoder,
        cluster: Cluster,
        *,
        no_answer_below: float,
        rule_for: Callable[[float], StoppingRule | None],
        limits: Limits,
        metrics: FrontMetrics,
        weigh: Callable[[EncodedQuestion], EncodedQuestion] = lambda question: question,
        confidence: Confidence | None = None,
    ) -> None:
        """Asks nothing yet.

        Args:
            encoder: encodes questions.
            cluster: the shards.
            no_answer_below: score below which the best answer is not shown as one.
            rule_for: the rule that stops reading early for a `max_loss`; None reads all.
            limits: how long shards are waited for, and how many passages are looked at.
            metrics: count questions and what they took.
            weigh: adds how rare the question's words are, in an index that was written to.
            confidence: says how likely an answer is right.

        """
        self._encoder, self._cluster, self._metrics = encoder, cluster, metrics
        self._weigh, self._confidence = weigh, confidence
        self._no_answer_below, self._rule_for, self._limits = no_answer_below, rule_for, limits

    @property
    def shards(self) -> int:
        """Number of shards of the index, dead or alive."""
        return len(self._cluster.searchers)

    @property
    def fields(self) -> Collection[str] | None:
        """The fields that filters may name, of all shards. None if not all are known: a write that
        no node has reported yet may bring another one.
        """
        latest, infos = self._cluster.latest(), self._cluster.infos
        if any(latest[shard] > info.sequence for shard, info in infos.items()):
            return None
        return fields_of_index(infos.values())

    def tokenise(self, question: Question) -> TokenisedQuestion:
        """The question's tokens; raises InvalidRequestError if it has no word in it."""
        return self._encoder.tokenise(question.text)

    async def answer(
        self, admitted: Admitted, tokens: TokenisedQuestion, deadline: Deadline
    ) -> Answered:
        """The best answers of every shard that replied in time.

        Raises:
            DeadlineExceededError: nothing was read in time.
            OverloadedError: every shard was overloaded or late.
            UnavailableError: no shard could be reached.
            One of these, too, where one shard failed and partial results are forbidden.

        """
        recording = Recording(tokens.seconds)
        question, timings = admitted.question, Timings()
        encoded, _ = await self._encoder.encode(tokens, timings, admitted.client)
        deadline.check("the shards were asked")
        # a short deadline keeps most of its time: the reserve is at most a tenth of what is left
        reserve = min(self._limits.merge_reserve, deadline.left() / 10)
        calls = Calls(
            self._cluster.searchers,
            question,
            self._weigh(encoded),
            deadline.earlier(reserve),
            limits=self._limits,
            after=self._after(question),
            reached=self._cluster.reached,
            unheard=self._unheard(question),
            recording=recording,
        )
        try:
            rule = self._rule_for(question.max_loss)
            searched = await search(calls, rule, timings)
            timings.merge_start = recording.now()
            for shard, sequence in searched.sequences.items():
                self._cluster.answered(shard, sequence, searched.logs.get(shard, ""))
            coverage = cover(self._cluster.infos, searched)
        except WinnowError as error:
            for shard, status in failed_shards(error):
                self._metrics.shard_failures.labels(str(shard), status.value).inc()
            raise
        with span("merge"):
            answers = merge(searched.readings, question.answers, self._confidence)
        timings.calls = recording.calls()
        timings.total = recording.now()
        timings.merge = timings.total - timings.merge_start
        answered = Answered(
            answers=answers,
            has_answer=bool(answers) and answers[0].reading.score >= self._no_answer_below,
            coverage=coverage,
            timings=timings,
            passages_asked=admitted.requested_reads,
            passages_granted=admitted.granted_reads,
            passages_read=searched.read,
            passages_needed=searched.needed,
            read_scope=question.read_scope,
            question_truncated=tokens.truncated,
            max_loss=question.max_loss if rule else 0.0,
        )
        self._observe(answered)
        return answered

    def _after(self, question: Question) -> dict[int, int]:
        """The writes that shards must have: those that the question names, and all that were
        acknowledged here.
        """
        named = {place.shard: place.sequence for place in question.after}
        needed = {shard: self._cluster.needed(shard) for shard in self._cluster.searchers}
        return {n: max(sequence, named.get(n, 0)) for n, sequence in needed.items()}

    def _unheard(self, question: Question) -> frozenset[int]:
        """The shards of which the question names a write that nobody here has heard of."""
        latest = self._cluster.latest()
        unheard = (each.shard for each in question.after if each.sequence > latest[each.shard])
        return frozenset(unheard)

    def _observe(self, answered: Answered) -> None:
        metrics, timings, coverage = self._metrics, answered.timings, answered.coverage
        here, exemplar = current(), current().exemplar
        here.set("winnow.passages_read", answered.passages_read)
        here.set("winnow.passages_needed", answered.passages_needed)
        here.set("winnow.complete", coverage.complete)
        for stage in FRONT_STAGES:
            metrics.stage.labels(stage).observe(getattr(timings, stage), exemplar)
        for shard, spent in timings.shards.items():
            for stage in ("queue", "retrieve", "read"):
                metrics.shard.labels(str(shard), stage).observe(getattr(spent, stage), exemplar)
        for part in coverage.shards:
            if part.status is not ShardStatus.SEARCHED:
                metrics.shard_failures.labels(str(part.shard), part.status.value).inc()
        metrics.passages_read.observe(answered.passages_read)
        metrics.passages_needed.observe(answered.passages_needed)
        # an index from which everything was deleted can be searched, too
        share = 1.0 if coverage.complete else coverage.searched / max(coverage.known, 1)
        metrics.coverage.observe(share)
