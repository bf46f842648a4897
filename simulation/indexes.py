"""The indexes of a simulation: a checker for each, and how the alias of clients was switched.

Without a catalog there is one index, whose name and id are empty.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from simulation.checking import Checker
from simulation.front import PASSAGES_TO_READ
from simulation.history import AppliedWrite, History, QuestionCall, WriteCall
from simulation.plan import ALIAS
from simulation.terminals import bundle_of
from winnow.bundle import Bundle
from winnow.domain.catalog import Catalog
from winnow.domain.partition import Partition

_SWITCH_SECONDS = 10.0
"""Seconds after a switch in which each front that no fault concerns has switched, too."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A version of the catalog in which the alias stands for another index."""

    index: str
    generation: int
    at: float
    positions: Mapping[int, int]
    """The last write of each shard of the index then."""


class Indexes:
    """All indexes of a simulation."""

    def __init__(
        self, history: History, bundle: Bundle, catalog: Catalog | None, shards: int
    ) -> None:
        """`catalog` is the first version; None without named indexes."""
        self._history, self._catalog = history, catalog
        self._ids: dict[str, str] = {}
        """The name of each index by its id."""
        self._checkers: dict[str, Checker] = {}
        self._switches: list[Switch] = []
        self._generations: dict[str, tuple[float, int]] = {}
        """By front, the greatest generation that was answered, and when that was known."""
        if catalog is None:
            self._ids[""] = ""
            self._checkers[""] = Checker(history, shards, bundle, PASSAGES_TO_READ)
        else:
            self._add_indexes(catalog)
            self._switches.append(self._switch(catalog, 0.0))

    @property
    def all(self) -> Mapping[str, Checker]:
        """The checkers of all indexes by name."""
        return self._checkers

    @property
    def present(self) -> Checker:
        """The checker of the index to which clients write."""
        return self._checkers[self._switches[-1].index if self._switches else ""]

    @property
    def was_switched(self) -> bool:
        """Whether an index was replaced."""
        return len(self._switches) > 1

    def of_id(self, index_id: str) -> Checker:
        """Returns the checker of an index by its id."""
        return self._checkers[self._ids[index_id]]

    def id_of(self, name: str) -> str:
        """Returns the id of an index by its name."""
        return next(index_id for index_id, each in self._ids.items() if each == name)

    def holders(self, name: str) -> Mapping[int, tuple[str, ...]]:
        """Returns the names of the nodes of each shard of a named index."""
        assert self._catalog is not None
        return self._catalog.indexes[name].holders

    def observe(self, catalog: Catalog, now: float) -> Iterator[str]:
        """Notes a version of the catalog; yields a violation if a copy takes over too early."""
        before = self._switches[-1]
        self._add_indexes(catalog)
        self._catalog = catalog
        switch = self._switch(catalog, now)
        if (switch.index, switch.generation) == (before.index, before.generation):
            return
        self._switches.append(switch)
        if switch.index != before.index:
            yield from self._differences(before.index, switch.index)

    def check_write(self, call: WriteCall) -> Iterator[str]:
        """Checks the result of a write when its client gets it."""
        index = call.position.index if call.position is not None else self.present.index
        if index not in self._checkers:
            yield f"a write was acknowledged by the unknown index {index!r}"
            return
        yield from self._checkers[index].check_write(call)

    def check_question(self, call: QuestionCall, *, is_calm: bool) -> Iterator[str]:
        """Checks an answer when its client gets it. `is_calm`: whether no fault concerns it."""
        answered = call.answered
        if answered is None:
            return
        if answered.index is not None:
            yield from self._check_index(call, answered.index, answered.generation, is_calm)
        name = answered.index or ""
        if name in self._checkers:
            yield from self._checkers[name].check_question(call)

    def required(self, name: str, is_calm: bool, now: float) -> dict[int, int]:
        """Returns the writes that an index had when the alias was switched to it.

        Each answer of the index has them, unless a fault concerns its replicas.
        """
        last = self._switches[-1] if self._switches else None
        if last is None or last.index != name or not is_calm or now < last.at + _SWITCH_SECONDS:
            return {}
        return dict(last.positions)

    def check_histories(self, partition: Partition) -> Iterator[str]:
        """Checks at the end that the writes of each id have one order that explains all results."""
        present = self.present
        earlier = [each for each in self._checkers.values() if each is not present]
        yield from present.check_histories(partition, sorted(earlier, key=attrgetter("index")))

    def _check_index(
        self, call: QuestionCall, index: str, generation: int | None, is_calm: bool
    ) -> Iterator[str]:
        """Checks for which index the alias stood in an answer."""
        found = next(
            (
                each
                for each in self._switches
                if (each.index, each.generation) == (index, generation)
            ),
            None,
        )
        if found is None:
            yield f"{call.text!r} was answered by {index}, generation {generation}, which never was"
            return
        since, greatest = self._generations.get(call.front, (0.0, 0))
        if found.generation < greatest and call.begun > since:
            yield f"{call.front} went back from generation {greatest} to {found.generation}"
        elif found.generation > greatest:
            self._generations[call.front] = call.ended, found.generation
        last = self._switches[-1]
        if is_calm and found is not last and call.begun > last.at + _SWITCH_SECONDS:
            yield f"{call.front} still answers by {index}, not by {last.index}"

    def _add_indexes(self, catalog: Catalog) -> None:
        for name, index in catalog.indexes.items():
            if name in self._checkers:
                continue
            is_first = not self._checkers
            history = self._history if is_first else History({}, *self._calls())
            self._ids[index.index_id] = name
            self._checkers[name] = Checker(
                history,
                index.shards,
                bundle_of(catalog, name),
                PASSAGES_TO_READ,
                index=name,
                is_copied=lambda write, name=name: self._is_copied(name, write),  # type: ignore[misc]
            )

    def _calls(self) -> tuple[list[WriteCall], list[QuestionCall]]:
        """Returns the calls of clients, which all histories share."""
        return self._history.writes, self._history.questions

    def _switch(self, catalog: Catalog, now: float) -> Switch:
        alias = catalog.aliases[ALIAS]
        return Switch(alias.index, alias.since, now, self._checkers[alias.index].last_writes())

    def _is_copied(self, name: str, write: AppliedWrite) -> bool | None:
        """Whether a write of a copy is one of its source; None if the index is no copy."""
        assert self._catalog is not None
        copy = self._catalog.copies.get(name)
        if copy is None:
            return None
        return self._checkers[copy.source].had(write)

    def _differences(self, source: str, copy: str) -> Iterator[str]:
        """Yields the passages that differ in a copy and the source that it has just replaced."""
        one, other = (self._checkers[each].passages() for each in (source, copy))
        for identifier in sorted(one.keys() | other.keys()):
            if one.get(identifier) != other.get(identifier):
                yield (
                    f"{copy} replaces {source} with {identifier} as {other.get(identifier)}, not "
                    f"{one.get(identifier)}"
                )
