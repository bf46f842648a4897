"""The named indexes of a front, which are chosen by the current version of the catalog."""

from dataclasses import replace

from winnow.domain.catalog import Catalog, ResolvedIndex
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
        self._asked_aliases: dict[str, ResolvedIndex] = {}
        """The index that last answered for each alias."""
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
        """Returns the index of a name; see `ChooseIndex`.

        An alias stands for its earlier index until this front has opened the new one, for example
        because its bundle is missing here.
        """
        resolved = self._resolve(name)
        if resolved.index.index_id not in self._parts:
            earlier = self._asked_aliases.get(name)
            if earlier is None or not self._is_served(earlier):
                raise _not_open(resolved)
            resolved = earlier
        elif resolved.name != name:
            self._asked_aliases[name] = resolved
        parts = self._parts[resolved.index.index_id]
        return ChosenIndex(parts, resolved.name, resolved.generation)

    def choose_fed(self, name: str) -> FedIndex:
        """Returns the index of writes; see `ChooseFed`. Writes never go to an earlier index."""
        resolved = self._resolve(name)
        parts = self._parts.get(resolved.index.index_id)
        if parts is None:
            raise _not_open(resolved)
        assert self.catalog is not None  # it has resolved the name
        copy, source = self.catalog.copies.get(resolved.name), ""
        # an alias of an index that was replaced is about to be switched here, too
        if copy is not None and (name == resolved.name or not copy.was_replaced):
            source = copy.source
        return replace(parts.writable, name=resolved.name, source=source)

    def _resolve(self, name: str) -> ResolvedIndex:
        if self.catalog is None:
            raise UnavailableError("the catalog of indexes has not been read yet: try again")
        return self.catalog.resolve(name)

    def _is_served(self, resolved: ResolvedIndex) -> bool:
        """Whether the catalog still has an index, and it is open here."""
        assert self.catalog is not None  # the index was chosen by it
        current = self.catalog.indexes.get(resolved.name)
        index_id = resolved.index.index_id
        if current is None or current.is_dropped or current.index_id != index_id:
            return False
        return index_id in self._parts

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


def _not_open(resolved: ResolvedIndex) -> UnavailableError:
    return UnavailableError(
        f"index {resolved.name} is not open yet: try again; if this persists, see the front's log"
    )
