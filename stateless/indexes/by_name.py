"""The cores of all indexes of a front, which choose the index of each request by its name.

They have the methods of the cores of one index, so that gRPC and HTTP use either.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

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
)
from winnow.domain.question import AnswerRequest
from winnow.stateless.answer.validation import check_index_of_positions
from winnow.stateless.indexes.front_index import ChooseIndex
from winnow.stateless.passages.core import PassageCore

_PassageRequest = PassageSearchRequest | PassagesRequest | PageRequest | PassageCountRequest


class IndexedAnswers:
    """Answers questions from the index that each names."""

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
        answered = await chosen.parts.answers.answer(request, deadline, client)
        if chosen.name is None:
            return answered
        return replace(answered, index=chosen.name, generation=chosen.generation)


class IndexedPassages:
    """Answers calls for passages of the index that each names; see `PassageCore`."""

    def __init__(self, choose: ChooseIndex) -> None:
        self._choose = choose

    async def search(
        self, request: PassageSearchRequest, deadline: Deadline, client: str = ""
    ) -> PassageSearchResult:
        """Returns the passages that are most likely to answer a question."""
        core = self._core_of(request)
        return await core.search(request, deadline, client)

    async def look_up(
        self, request: PassagesRequest, deadline: Deadline, client: str = ""
    ) -> PassagesById:
        """Returns passages by their ids."""
        core = self._core_of(request)
        return await core.look_up(request, deadline, client)

    async def page(
        self, request: PageRequest, deadline: Deadline, client: str = ""
    ) -> PassageResults:
        """Returns a page of passages."""
        return await self._core_of(request).page(request, deadline, client)

    def export(
        self, request: PageRequest, new_deadline: Callable[[], Deadline], client: str = ""
    ) -> AsyncIterator[PassageResults]:
        """Yields all pages, from the index that was chosen for the first one."""
        core = self._core_of(request)
        return core.export(request, new_deadline, client)

    async def count(
        self, request: PassageCountRequest, deadline: Deadline, client: str = ""
    ) -> int:
        """Counts the passages that match a filter."""
        return await self._core_of(request).count(request, deadline, client)

    async def documents(
        self, request: PageRequest, deadline: Deadline, client: str = ""
    ) -> DocumentBatch:
        """Returns a page of documents."""
        core = self._core_of(request)
        return await core.documents(request, deadline, client)

    def _core_of(self, request: _PassageRequest) -> PassageCore:
        chosen = self._choose(request.index)
        check_index_of_positions(request.after, chosen.name or "")
        return chosen.parts.passages
