"""The passage core: searches, lists, looks up and counts passages for users.

The core knows neither gRPC nor HTTP. Both convert the request, call a method and convert the
result.
"""

import asyncio
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from winnow import caller
from winnow.caller import Lease
from winnow.deadline import Deadline
from winnow.domain.listing import (
    MAX_LOOKUP_IDS,
    MAX_PAGE_BYTES,
    MAX_PAGE_PASSAGES,
    CountRequest,
    DocumentListing,
    FoundPassages,
    PassageListing,
    PassageLookup,
    Seen,
    ShardRequest,
    TenantListing,
    content_bytes,
)
from winnow.domain.partition import Partition
from winnow.domain.passage import Passage
from winnow.domain.passage_request import (
    DocumentBatch,
    PageRequest,
    PassageCountRequest,
    PassageResults,
    PassagesById,
    PassageSearchRequest,
    PassageSearchResult,
    PassagesRequest,
    TenantResults,
    TenantsRequest,
    UsageRequest,
)
from winnow.domain.question import AnswerRequest, ReadScope, WaitPolicy
from winnow.domain.quota import StorageUse, TenantUsage
from winnow.domain.tenant import stored_id
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError, OverloadedError, UnavailableError
from winnow.passage_source import PassageSource
from winnow.stateless.answer.admission import Admission
from winnow.stateless.answer.calls import limited_wait
from winnow.stateless.answer.fields import fields_of_cluster
from winnow.stateless.answer.scatter import scatter
from winnow.stateless.answer.validation import (
    QuestionDefaults,
    current_positions,
    position_violations,
    validate,
)
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.current import CurrentPart
from winnow.stateless.heads.validation import raise_if_any
from winnow.stateless.passages.page_token import last_of_token, token_after
from winnow.stateless.passages.pages import (
    limit_of_shard,
    merge_documents,
    merge_passages,
    merge_tenants,
)
from winnow.stateless.passages.searching import PassageSearch
from winnow.stateless.passages.validation import check_ids, checked_filter, checked_page_size
from winnow.stateless.policy.waiting import AdaptiveTimeout

DEFAULT_PASSAGES = 10
"""Number of passages that a search returns if the caller sets none."""
_PASSAGE, _DOCUMENT, _TENANT = "p", "d", "t"
"""Kinds of page tokens."""
_SHORTEST_WAIT, _LONGEST_WAIT = 0.05, 1.0
"""Seconds that an export waits before it tries or checks again."""
Sleep = Callable[[float], Awaitable[None]]
Send = Callable[[PassageSource, int, Deadline], Coroutine[Any, Any, Seen]]
"""Calls the passages of a shard: `send(source, after_sequence, deadline)`."""


@dataclass(frozen=True, slots=True)
class PassageIndex:
    """A cluster, and the search of its passages."""

    cluster: Cluster
    search: PassageSearch

    @property
    def partition(self) -> Partition:
        """The split of the index into shards."""
        return self.cluster.partition


class PassageCalls(Protocol):
    """What answers calls for passages: the core of one index, or the cores of several.

    `PassageCore` describes the methods.
    """

    async def search(
        self, request: PassageSearchRequest, deadline: Deadline, client: str = ""
    ) -> PassageSearchResult: ...

    async def look_up(
        self, request: PassagesRequest, deadline: Deadline, client: str = ""
    ) -> PassagesById: ...

    async def page(
        self, request: PageRequest, deadline: Deadline, client: str = ""
    ) -> PassageResults: ...

    def export(
        self, request: PageRequest, new_deadline: Callable[[], Deadline], client: str = ""
    ) -> AsyncGenerator[PassageResults, None]: ...

    async def count(
        self, request: PassageCountRequest, deadline: Deadline, client: str = ""
    ) -> int: ...

    async def documents(
        self, request: PageRequest, deadline: Deadline, client: str = ""
    ) -> DocumentBatch: ...

    async def tenants(
        self, request: TenantsRequest, deadline: Deadline, client: str = ""
    ) -> TenantResults: ...

    async def usage(
        self, request: UsageRequest, deadline: Deadline, client: str = ""
    ) -> StorageUse: ...


class PassageCore:
    """Answers calls for passages. Before the cluster is complete it refuses them.

    Every method takes the deadline of the caller, and the key of the caller for fair sharing, and
    raises:

        InvalidRequestError: the request breaks a rule; the error names every invalid field.
        DeadlineExceededError: a shard was late.
        OverloadedError: the front or a shard is overloaded; the error says when to try again.
        UnavailableError: a shard cannot be reached, or its node is of an older version.
    """

    def __init__(
        self,
        defaults: QuestionDefaults,
        admission: Admission,
        on_call: Callable[[], None] = lambda: None,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`defaults` are those of questions. `on_call` is called for every call. `sleep` makes an
        export wait.
        """
        self._defaults = replace(
            defaults,
            passages_to_read=DEFAULT_PASSAGES,
            read_scope=ReadScope.GLOBAL,
            min_confidence=None,
        )
        self._admission, self._on_call, self._sleep = admission, on_call, sleep
        self._current = CurrentPart[PassageIndex]()

    def set_index(self, index: PassageIndex) -> None:
        """Makes all later calls use `index`."""
        self._current.set(index)

    async def search(
        self, request: PassageSearchRequest, deadline: Deadline, client: str = ""
    ) -> PassageSearchResult:
        """Returns the passages that are most likely to answer a question.

        Shards that fail are left out, unless the request forbids partial results.
        """
        fields = None
        if request.where and not request.after and not request.tenant:
            fields = fields_of_cluster(self._current.get().cluster)
        asked = AnswerRequest(
            question=request.question,
            passages_to_read=request.passages,
            read_scope=ReadScope.GLOBAL,
            retriever=request.retriever,
            partial_results=request.partial_results,
            where=request.where,
            after=request.after,
            tenant=request.tenant,
        )
        try:
            question = validate(asked, self._defaults, fields)
        except InvalidRequestError as error:
            raise _with_own_names(error) from error
        index = await self._current.knowing(question.after, deadline)
        question = replace(question, after=current_positions(question.after, index.partition))
        with self._enter(deadline, client):
            return await index.search.search(question, request.fields, deadline, client)

    async def look_up(
        self, request: PassagesRequest, deadline: Deadline, client: str = ""
    ) -> PassagesById:
        """Returns passages by their ids."""
        check_ids(request.ids)
        cluster, after = await self._cluster(request.after, deadline)
        ids = tuple(dict.fromkeys(request.ids))
        by_shard: dict[int, list[str]] = {}
        for each in ids:
            shard = cluster.partition.shard_of(stored_id(request.tenant, each))
            by_shard.setdefault(shard, []).append(each)

        def send(shard: int) -> Send[FoundPassages]:
            lookup = PassageLookup(
                ids=by_shard[shard], fields=request.fields, client=client, tenant=request.tenant
            )
            return lambda source, after_sequence, call_deadline: _look_up_all(
                source, replace(lookup, after=after_sequence), call_deadline
            )

        with self._enter(deadline, client):
            sends = {shard: send(shard) for shard in by_shard}
            found = await _gather(cluster, sends, after, deadline)
        return _in_order(ids, by_shard, found)

    async def page(
        self, request: PageRequest, deadline: Deadline, client: str = ""
    ) -> PassageResults:
        """Returns a page of passages, in the order of their ids."""
        size = checked_page_size(request.page_size)
        after_id = last_of_token(_PASSAGE, request.page_token)
        cluster, after = await self._cluster(request.after, deadline)
        shards = len(cluster.searchers_of_tenant(request.tenant))
        listing = PassageListing(
            limit=limit_of_shard(size, shards),
            where=self._filter(request, cluster),
            after_id=after_id,
            fields=request.fields,
            client=client,
            tenant=request.tenant,
        )
        pages = await self._fetch_all(cluster, listing, after, deadline)
        passages, complete = merge_passages(list(pages.values()), size)
        token = "" if complete else token_after(_PASSAGE, passages[-1].id)
        return PassageResults(passages=passages, next_page_token=token)

    async def export(
        self, request: PageRequest, new_deadline: Callable[[], Deadline], client: str = ""
    ) -> AsyncGenerator[PassageResults, None]:
        """Yields all pages. Each page has its own deadline, and is admitted separately.

        A page that is refused for overload is tried again until its deadline. For the rate limit of
        the caller's key a page counts as a call. The export ends if the key is revoked.
        """
        request = replace(request, page_size=MAX_PAGE_PASSAGES)
        with caller.open_lease() as lease:
            if lease.end_error is not None:
                raise lease.end_error
            while True:
                page = await self._page_with_room(request, new_deadline(), client)
                yield page
                if not page.next_page_token:
                    return
                request = replace(request, page_token=page.next_page_token)
                await self._await_rate(lease)

    async def _page_with_room(
        self, request: PageRequest, deadline: Deadline, client: str
    ) -> PassageResults:
        while True:
            try:
                return await self.page(request, deadline, client)
            except OverloadedError as error:
                if error.retry_after >= deadline.left():
                    raise
                wait = max(error.retry_after, _SHORTEST_WAIT)
            await self._sleep(wait)

    async def _await_rate(self, lease: Lease) -> None:
        """Waits until the rate limit of the caller's key allows another call."""
        while lease.end_error is None and (pause := lease.pause()):
            await self._sleep(min(pause, _LONGEST_WAIT))
        if lease.end_error is not None:
            raise lease.end_error

    async def count(
        self, request: PassageCountRequest, deadline: Deadline, client: str = ""
    ) -> int:
        """Counts the passages that match a filter."""
        cluster, after = await self._cluster(request.after, deadline)
        wanted = CountRequest(
            where=self._filter(request, cluster), client=client, tenant=request.tenant
        )
        counts = await self._fetch_all(cluster, wanted, after, deadline)
        return sum(each.passages for each in counts.values())

    async def documents(
        self, request: PageRequest, deadline: Deadline, client: str = ""
    ) -> DocumentBatch:
        """Returns a page of documents, in the order of their names."""
        size = checked_page_size(request.page_size)
        last = last_of_token(_DOCUMENT, request.page_token)
        cluster, after = await self._cluster(request.after, deadline)
        # the passages of a document are on several shards, so each shard may have every document
        listing = DocumentListing(
            limit=size,
            where=self._filter(request, cluster),
            after_document=last,
            client=client,
            tenant=request.tenant,
        )
        pages = await self._fetch_all(cluster, listing, after, deadline)
        documents, complete = merge_documents(list(pages.values()), size)
        token = "" if complete else token_after(_DOCUMENT, documents[-1].name)
        return DocumentBatch(documents=documents, next_page_token=token)

    async def tenants(
        self, request: TenantsRequest, deadline: Deadline, client: str = ""
    ) -> TenantResults:
        """Returns a page of tenants, in the order of their names."""
        size = checked_page_size(request.page_size)
        last = last_of_token(_TENANT, request.page_token)
        cluster, after = await self._cluster((), deadline)
        shards = len(cluster.shard_infos)
        listing = TenantListing(
            limit=limit_of_shard(size, shards), after_tenant=last, client=client
        )
        pages = await self._fetch_all(cluster, listing, after, deadline)
        tenants, complete = merge_tenants(list(pages.values()), size)
        token = "" if complete else token_after(_TENANT, tenants[-1].name)
        return TenantResults(tenants=tenants, next_page_token=token)

    async def usage(
        self, request: UsageRequest, deadline: Deadline, client: str = ""
    ) -> StorageUse:
        """Returns what a tenant stores, without its quota, which this core does not know."""
        cluster, after = await self._cluster(request.after, deadline)
        wanted = CountRequest(with_bytes=True, client=client, tenant=request.tenant)
        counts = (await self._fetch_all(cluster, wanted, after, deadline)).values()
        sizes = [each.content_bytes for each in counts if each.content_bytes is not None]
        if len(sizes) < len(counts):
            raise UnavailableError("a node is of an older version: update all nodes")
        return StorageUse(TenantUsage(sum(each.passages for each in counts), sum(sizes)))

    async def _fetch_all(
        self,
        cluster: Cluster,
        request: ShardRequest[Seen],
        after: Sequence[Position],
        deadline: Deadline,
    ) -> dict[int, Seen]:
        """Sends a request to every shard, or to those of its tenant; returns their results."""
        with self._enter(deadline, request.client):
            sends = dict.fromkeys(cluster.searchers_of_tenant(request.tenant), _send(request))
            return await _gather(cluster, sends, after, deadline)

    @contextmanager
    def _enter(self, deadline: Deadline, client: str) -> Iterator[None]:
        """Admits a call within the context, with the work of one passage to read."""
        self._on_call()
        deadline.check("the shards were called")
        with self._admission.enter_call(deadline.left(), client):
            yield

    async def _cluster(
        self, after: Sequence[Position], deadline: Deadline
    ) -> tuple[Cluster, tuple[Position, ...]]:
        """Returns the cluster, and the positions in the logs of its shards."""
        raise_if_any(list(position_violations(after)))
        index = await self._current.knowing(after, deadline)
        return index.cluster, current_positions(after, index.partition)

    def _filter(self, request: PageRequest | PassageCountRequest, cluster: Cluster) -> str:
        # a write that the caller names may add a field, and the fields are those of all tenants
        is_unchecked = request.after or request.tenant
        return checked_filter(request.where, None if is_unchecked else fields_of_cluster(cluster))


def _send(request: ShardRequest[Seen]) -> Send[Seen]:
    """Returns a call that sends the same request to each shard."""
    return lambda source, after_sequence, deadline: source.fetch(
        replace(request, after=after_sequence), deadline
    )


async def _gather(
    cluster: Cluster,
    sends: Mapping[int, Send[Seen]],
    after: Sequence[Position],
    deadline: Deadline,
) -> dict[int, Seen]:
    """Calls shards, and returns the result of each. Fails if a shard fails."""
    deadline = deadline.before_reply()
    required = cluster.required_writes(after)
    unknown = cluster.shards_with_unknown_write(after)
    calls = {
        shard: send(
            cluster.searchers[shard].passages,
            required.get(shard, 0),
            limited_wait(deadline) if shard in unknown else deadline,
        )
        for shard, send in sends.items()
    }
    timeout = AdaptiveTimeout(WaitPolicy(), len(calls), deadline)
    gathered = await scatter(calls, timeout, allows_partial=False)
    for shard, result in gathered.results.items():
        cluster.record_answer(shard, result.sequence, result.log_id)
    return gathered.results


async def _look_up_all(
    source: PassageSource, lookup: PassageLookup, deadline: Deadline
) -> FoundPassages:
    """Looks up the ids of a shard in several calls, until a reply would be too large."""
    passages: list[Passage] = []
    looked_up = size = 0
    while True:
        ids = lookup.ids[looked_up : looked_up + MAX_LOOKUP_IDS]
        found = await source.fetch(replace(lookup, ids=ids), deadline)
        passages += found.passages
        looked_up += found.looked_up
        size += sum(map(content_bytes, found.passages))
        if looked_up >= len(lookup.ids) or size >= MAX_PAGE_BYTES:
            return replace(found, passages=tuple(passages), looked_up=looked_up)


def _in_order(
    ids: Sequence[str], by_shard: dict[int, list[str]], found: dict[int, FoundPassages]
) -> PassagesById:
    """Returns the passages in the order of `ids`, as many as fit into a reply."""
    passages = {each.id: each for own in found.values() for each in own.passages}
    looked_up = {each for shard, own in found.items() for each in by_shard[shard][: own.looked_up]}
    fitting: list[Passage] = []
    missing: list[str] = []
    size = 0
    for number, each in enumerate(ids):
        if each not in looked_up or size >= MAX_PAGE_BYTES:
            return PassagesById(
                passages=tuple(fitting),
                missing_ids=tuple(missing),
                remaining_ids=tuple(ids[number:]),
            )
        if each in passages:
            fitting.append(passages[each])
            size += content_bytes(passages[each])
        else:
            missing.append(each)
    return PassagesById(passages=tuple(fitting), missing_ids=tuple(missing))


def _with_own_names(error: InvalidRequestError) -> InvalidRequestError:
    """Renames the fields of a question to those of a search."""
    return InvalidRequestError(
        *(
            replace(each, field="passages") if each.field == "passages_to_read" else each
            for each in error.violations
        )
    )
