"""Finds the passages of one cluster for a question: the retrieval of an answer, without reading."""

from collections.abc import Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from winnow.deadline import Deadline
from winnow.domain.answered import Timings
from winnow.domain.listing import FoundPassages, PassageLookup, SelectedFields
from winnow.domain.passage import Hit, Passage
from winnow.domain.passage_request import PassageSearchResult, RankedPassage
from winnow.domain.question import Question, Retriever
from winnow.inference.fair_threads import FairThreads
from winnow.stateless.answer.calls import SearchLimits, ShardCalls
from winnow.stateless.answer.choose import Ranked, best_overall, by_shard
from winnow.stateless.answer.merge import coverage_of
from winnow.stateless.answer.recording import CallRecorder
from winnow.stateless.answer.scatter import scatter
from winnow.stateless.answer.search_result import SearchResult
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.encoding import QuestionEncoder, Weigh
from winnow.stateless.passages.highlighting import highlights
from winnow.stateless.policy.waiting import AdaptiveTimeout
from winnow.stateless.words.parts import weigh_by_parts
from winnow.telemetry.tracing.span import span


class PassageSearch:
    """Searches one cluster. Passages come from their nodes by id, after they were chosen."""

    def __init__(
        self,
        encoder: QuestionEncoder,
        cluster: Cluster,
        *,
        limits: SearchLimits,
        threads: FairThreads,
        weigh: Weigh = lambda question: question,
    ) -> None:
        """`limits` and `weigh` are those of `Answerer`. `threads` look for highlights."""
        self._encoder, self._cluster, self._limits = encoder, cluster, limits
        self._threads, self._weigh = threads, weigh

    async def search(
        self, question: Question, fields: SelectedFields, deadline: Deadline, client: str
    ) -> PassageSearchResult:
        """Returns the best passages of the shards that replied in time. Raises as `Answerer`."""
        tokens = self._encoder.tokenise(question.text)
        encoded, _ = await self._encoder.encode(tokens, Timings(), client)
        deadline.check("the shards were called")
        cluster = self._cluster
        searchers = cluster.searchers_of_tenant(question.tenant)
        required_writes = cluster.required_writes(question.after)
        weighed = await weigh_by_parts(
            self._weigh(replace(encoded, tenant=question.tenant)),
            searchers,
            required_writes,
            deadline,
        )
        calls = ShardCalls(
            searchers,
            question,
            weighed,
            deadline.earlier(min(self._limits.merge_reserve, deadline.left() / 10)),
            limits=self._limits,
            required_writes=required_writes,
            last_known_write=cluster.reached_sequence,
            unknown_writes=cluster.shards_with_unknown_write(question.after),
            recorder=CallRecorder(),
            joint=None if question.tenant else cluster.joint,  # joint calls are for all shards
        )
        result = SearchResult(allows_partial=calls.allows_partial)
        with span("retrieve"):
            gathered = await calls.retrieve_all()
        result.add_retrievals(gathered)
        for shard, sequence in result.sequences.items():
            cluster.record_answer(shard, sequence, result.log_ids.get(shard, ""))
        ranked = best_overall(gathered.results, calls.depth)
        passages = await self._load(calls, ranked, fields, result)
        infos = {shard: cluster.shard_infos[shard] for shard in searchers}
        coverage = coverage_of(infos, result, question.tenant)
        rank = partial(_ranked_passages, question, ranked, passages)
        return PassageSearchResult(
            passages=await self._threads.run(client, rank),
            coverage=coverage,
            question_truncated=tokens.truncated,
        )

    async def _load(
        self, calls: ShardCalls, ranked: Ranked, fields: SelectedFields, result: SearchResult
    ) -> dict[str, Passage]:
        """Returns the chosen passages by id, without those that were deleted meanwhile.

        Adds the failures of shards to `result`.
        """
        chosen = by_shard(ranked)
        with span("load passages", {"winnow.passages": len(ranked)}):
            loads = {
                shard: self._load_from(calls, shard, own, fields) for shard, own in chosen.items()
            }
            timeout = AdaptiveTimeout(calls.question.patience, len(loads), calls.deadline)
            gathered = await scatter(loads, timeout, calls.allows_partial)
        result.failures |= gathered.failures
        return {each.id: each for own in gathered.results.values() for each in own.passages}

    def _load_from(
        self, calls: ShardCalls, shard: int, hits: Sequence[Hit], fields: SelectedFields
    ) -> Coroutine[Any, Any, FoundPassages]:
        lookup = PassageLookup(
            ids=[hit.passage_id for hit in hits],
            fields=fields,
            # a replica with these writes has the passages, or later writes that deleted them
            after=max(hit.sequence for hit in hits),
            client=calls.encoded.client,
            tenant=calls.question.tenant,
        )
        return calls.searchers[shard].passages.fetch(lookup, calls.deadline)


def _ranked_passages(
    question: Question, ranked: Ranked, passages: dict[str, Passage]
) -> tuple[RankedPassage, ...]:
    by_words = question.retriever is Retriever.SPARSE
    return tuple(
        RankedPassage(
            passage=passage,
            hit=hit,
            shard=shard,
            score=hit.words if by_words else -hit.hybrid_distance,
            highlights=highlights(question.text, passage.text),
        )
        for shard, hit in ranked
        if (passage := passages.get(hit.passage_id)) is not None
    )
