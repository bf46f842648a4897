"""The cores of all indexes of a front, which choose the index and the tenant of each request.

They have the methods of the cores of one index, so that gRPC and HTTP use either.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TypeVar

from winnow.deadline import Deadline
from winnow.domain.answered import Answered
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
from winnow.domain.question import AnswerRequest
from winnow.domain.quota import StorageUse
from winnow.errors import invalid_field
from winnow.stateless.answer.validation import check_index_of_positions
from winnow.stateless.indexes.front_index import ChooseIndex
from winnow.stateless.passages.core import PassageCore
from winnow.stateless.tenants.tenancy import TenantScope

_PassageRequest = TypeVar(
    "_PassageRequest",
    PassageSearchRequest,
    PassagesRequest,
    PageRequest,
    PassageCountRequest,
    UsageRequest,
)


class IndexedAnswers:
    """Answers questions from the index that each names, and for the tenant of its caller."""

    def __init__(self, choose: ChooseIndex) -> None:
        self._choose = choose

    async def answer(
        self, request: AnswerRequest, deadline: Deadline, client: str = ""
    ) -> Answered:
        """Answers a request, as `AnswerCore.answer` does. The result names the index.

        The index is chosen once, so an answer is wholly of one index.
        """
        chosen = self._choose(request.index)
        check_index_of_positions(request.after, chosen.name or "")
        scope = chosen.parts.tenancy.scope_of(request.tenant)
        scope.limits.admit_question()
        if scope.tenant:
            request = replace(request, tenant=scope.tenant, after=scope.open(request.after))
        with scope.errors():
            answered = await chosen.parts.answers.answer(request, deadline, client)
        if scope.tenant:
            answered = replace(answered, coverage=scope.visible(answered.coverage))
        if chosen.name is None:
            return answered
        return replace(answered, index=chosen.name, generation=chosen.generation)


class IndexedPassages:
    """Answers calls for passages of the index that each names; see `PassageCore`.

    A caller gets only passages of its tenant.
    """

    def __init__(self, choose: ChooseIndex) -> None:
        self._choose = choose

    async def search(
        self, request: PassageSearchRequest, deadline: Deadline, client: str = ""
    ) -> PassageSearchResult:
        """Returns the passages that are most likely to answer a question."""
        core, scope, request = self._resolve(request)
        with scope.errors():
            result = await core.search(request, deadline, client)
        return replace(result, coverage=scope.visible(result.coverage))

    async def look_up(
        self, request: PassagesRequest, deadline: Deadline, client: str = ""
    ) -> PassagesById:
        """Returns passages by their ids."""
        core, scope, request = self._resolve(request)
        with scope.errors():
            return await core.look_up(request, deadline, client)

    async def page(
        self, request: PageRequest, deadline: Deadline, client: str = ""
    ) -> PassageResults:
        """Returns a page of passages."""
        core, scope, request = self._resolve(request)
        with scope.errors():
            return await core.page(request, deadline, client)

    def export(
        self, request: PageRequest, new_deadline: Callable[[], Deadline], client: str = ""
    ) -> AsyncGenerator[PassageResults, None]:
        """Yields all pages, from the index that was chosen for the first one."""
        core, scope, request = self._resolve(request)
        pages = core.export(request, new_deadline, client)
        return _with_own_errors(pages, scope) if scope.tenant else pages

    async def count(
        self, request: PassageCountRequest, deadline: Deadline, client: str = ""
    ) -> int:
        """Counts the passages that match a filter."""
        core, scope, request = self._resolve(request)
        with scope.errors():
            return await core.count(request, deadline, client)

    async def documents(
        self, request: PageRequest, deadline: Deadline, client: str = ""
    ) -> DocumentBatch:
        """Returns a page of documents."""
        core, scope, request = self._resolve(request)
        with scope.errors():
            return await core.documents(request, deadline, client)

    async def tenants(
        self, request: TenantsRequest, deadline: Deadline, client: str = ""
    ) -> TenantResults:
        """Returns a page of tenants. Raises PermissionDeniedError unless the caller is an
        administrator.
        """
        parts = self._choose(request.index).parts
        parts.tenancy.check_administrator()
        return await parts.passages.tenants(request, deadline, client)

    async def usage(
        self, request: UsageRequest, deadline: Deadline, client: str = ""
    ) -> StorageUse:
        """Returns what a tenant stores, and how much it may store.

        Raises InvalidRequestError if the index has no tenants.
        """
        core, scope, request = self._resolve(request)
        if not scope.tenant:
            raise invalid_field("index", "has no tenants")
        with scope.errors():
            use = await core.usage(request, deadline, client)
        quota = scope.limits.quota.storage
        return use if quota is None else replace(use, quota=quota)

    def _resolve(
        self, request: _PassageRequest
    ) -> tuple[PassageCore, TenantScope, _PassageRequest]:
        """Returns the core and the tenant of a request, and the request for the core."""
        chosen = self._choose(request.index)
        check_index_of_positions(request.after, chosen.name or "")
        scope = chosen.parts.tenancy.scope_of(request.tenant)
        scope.limits.admit_question()
        if scope.tenant:
            request = replace(request, tenant=scope.tenant, after=scope.open(request.after))
        return chosen.parts.passages, scope, request


async def _with_own_errors(
    pages: AsyncGenerator[PassageResults, None], scope: TenantScope
) -> AsyncGenerator[PassageResults, None]:
    """Yields pages, each as one question; rewords the errors that end them."""
    async with aclosing(pages):
        with scope.errors():
            async for page in pages:
                yield page
                if page.next_page_token:
                    await scope.limits.wait_for_question()
