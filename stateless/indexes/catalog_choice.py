"""The named indexes of a front, which are chosen by the current version of the catalog."""

from dataclasses import replace

from winnow.domain.catalog import Catalog
from winnow.errors import UnavailableError, WinnowError
from winnow.stateless.feed.fed_index import FedIndex
from winnow.stateless.indexes.front_index import ChosenIndex, FrontIndex


class CatalogChoice:
    """Chooses an open index by its name or alias, and sums up the work of all indexes.

    Each request resolves its name once, in one version of the catalog. So a switch of an alias is
    atomic at every front.
    """

    def __init__(self) -> None:
        self.catalog: Catalog | None = None
        """The current version; None before the first one was read."""
        self._parts: dict[str, FrontIndex] = {}
        """The open indexes by id."""
        self._closed_answered = self._closed_refused = 0
        """Numbers of questions that closed indexes have answered and refused."""

    def add(self, index_id: str, parts: FrontIndex) -> None:
        """Adds an open index."""
        self._parts[index_id] = parts

    def remove(self, index_id: str) -> None:
        """Removes an index. Running requests still use it."""
        parts = self._parts.pop(index_id)
        self._closed_answered += parts.answers.answered_questions
        self._closed_refused += parts.admission.refused_questions

    def choose(self, name: str) -> ChosenIndex:
        """Returns the index of a name; see `ChooseIndex`."""
        if self.catalog is None:
            raise UnavailableError("the catalog of indexes has not been read yet: try again")
        resolved = self.catalog.resolve(name)
        parts = self._parts.get(resolved.index.index_id)
        if parts is None:
            raise UnavailableError(
                f"index {resolved.name} is not open yet: try again; if this persists, see the "
                "front's log"
            )
        return ChosenIndex(parts, resolved.name, resolved.generation)

    def choose_fed(self, name: str) -> FedIndex:
        """Returns the index of writes; see `ChooseFed`."""
        chosen = self.choose(name)
        return replace(chosen.parts.writable, name=chosen.name or "")

    def refusal(self, client: str) -> WinnowError | None:
        """Refuses a call before its message is read, if the front has a single index.

        With several, the index of the call is not known yet.
        """
        if len(self._parts) != 1:
            return None
        (only,) = self._parts.values()
        return only.admission.refusal(client)

    @property
    def ready(self) -> bool:
        """Whether the front answers questions of an index."""
        return any(each.answers.ready for each in self._parts.values())

    @property
    def answered_questions(self) -> int:
        """Number of questions answered since the start."""
        open_indexes = (each.answers.answered_questions for each in self._parts.values())
        return self._closed_answered + sum(open_indexes)

    @property
    def refused_questions(self) -> int:
        """Number of questions refused since the start."""
        open_indexes = (each.admission.refused_questions for each in self._parts.values())
        return self._closed_refused + sum(open_indexes)

    @property
    def in_flight(self) -> int:
        """Number of questions in flight."""
        return sum(each.admission.in_flight for each in self._parts.values())

    @property
    def reads_in_flight(self) -> int:
        """Number of passages that the questions in flight may read."""
        return sum(each.admission.reads_in_flight for each in self._parts.values())
