"""The catalog: named indexes of a cluster, their aliases, and the nodes of their shards. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from winnow.domain.assignment import Assignment
from winnow.domain.index_copy import IndexCopy
from winnow.errors import NotFoundError, invalid_field

DEFAULT_INDEX = "default"
"""The name that stands for the index of requests without a name."""
_SHOWN = 64
"""Maximum number of characters of a name that an error shows."""
_MAX_NAME = 63
_RESTORE_MARGIN = 10.0
"""Seconds before the end of the grace time from which an index cannot be restored. Clocks of nodes
may be ahead, and a node may act on a version that it read before the restore.
"""
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_NAME_CHARACTERS = _LETTERS | set("_-")
_ID_CHARACTERS = _NAME_CHARACTERS | set("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogIndex:
    """An index of the catalog."""

    index_id: str
    """Id of the index, from its build. Unlike its name, it never stands for another index."""
    shards: int
    """Number of shards that the index was built with."""
    bundle: str = ""
    """Directory of the bundle; empty for the bundle of each process."""
    snapshots: str = ""
    """Directory or URL of snapshots, from which nodes restore shards that no node has."""
    holders: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Names of the nodes that should serve each shard, by shard number.

    It is empty if the settings of the nodes name their shards.
    """
    nodes: tuple[str, ...] = ()
    """Names of the nodes that may have shards of the index; empty for all nodes of the catalog."""
    since: int = 0
    """Version of the catalog that gave the index its name."""
    version: int = 0
    """Version of the catalog that last changed `holders`."""
    delete_at: float | None = None
    """When nodes delete a dropped index, in seconds since 1970; None if it is not dropped."""

    @property
    def is_dropped(self) -> bool:
        """Whether the index was dropped, so that no request finds it."""
        return self.delete_at is not None


@dataclass(frozen=True, slots=True)
class Alias:
    """A name that stands for an index."""

    index: str
    """Name of the index."""
    since: int
    """Version of the catalog that switched the alias to this index."""


@dataclass(frozen=True, slots=True)
class ResolvedIndex:
    """The index that a requested name stands for."""

    name: str
    """Name of the index; never an alias."""
    index: CatalogIndex
    generation: int
    """Version of the catalog since which the requested name stands for this index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All named indexes of a cluster. Front nodes and content nodes follow the current version."""

    version: int = 0
    """Grows by one with each change."""
    nodes: Mapping[str, str] = field(default_factory=dict)
    """Address of each node, by its name."""
    indexes: Mapping[str, CatalogIndex] = field(default_factory=dict)
    """The indexes by name, including dropped ones."""
    aliases: Mapping[str, Alias] = field(default_factory=dict)
    """The aliases by name."""
    deleted_ids: frozenset[str] = frozenset()
    """Ids of deleted indexes. Nodes delete what they still have of these."""

    copies: Mapping[str, IndexCopy] = field(default_factory=dict)
    """The indexes that are copies of other ones, by name; see `winnow.domain.copying`."""

    def __post_init__(self) -> None:
        """Raises InvalidRequestError for an invalid name, and for an alias of a missing index."""
        for name, index in self.indexes.items():
            check_name(name)
            if not (index.index_id and _ID_CHARACTERS.issuperset(index.index_id)):
                raise invalid_field(
                    f"indexes[{name}].index_id",
                    f"index {name} has {index.index_id!r} as its id: use letters, digits, _ and -",
                )
            if unknown := set(index.nodes) - self.nodes.keys():
                raise invalid_field(
                    f"indexes[{name}].nodes",
                    f"index {name} names node {min(unknown)}, which is not among the nodes",
                )
            if index.holders:
                _ = self._assignment(index)
        ids = [index.index_id for index in self.indexes.values()]
        if twice := next((each for each in ids if ids.count(each) > 1), ""):
            raise invalid_field("indexes", f"two indexes have the id {twice}")
        for name, alias in self.aliases.items():
            check_name(name)
            if name in self.indexes:
                raise invalid_field(
                    f"aliases[{name}]", f"an alias and an index have the name {name}"
                )
            if alias.index not in self.indexes:
                raise invalid_field(
                    f"aliases[{name}]",
                    f"alias {name} stands for index {alias.index}, which does not exist",
                )
        self._check_copies()

    def _check_copies(self) -> None:
        for name, copy in self.copies.items():
            if missing := {name, copy.source} - self.indexes.keys():
                raise invalid_field(
                    f"copies[{name}]",
                    f"{name} is a copy of {copy.source}, but there is no index {min(missing)}",
                )

    def resolve(self, name: str) -> ResolvedIndex:
        """Returns the index of a requested name; an empty name stands for `DEFAULT_INDEX`.

        Raises NotFoundError if there is none, or it was dropped.
        """
        wanted = name or DEFAULT_INDEX
        alias = self.aliases.get(wanted)
        own = alias.index if alias else wanted
        index = self.indexes.get(own)
        if index is None or index.is_dropped:
            if not name:
                raise NotFoundError(
                    f"the request names no index, and there is no index {DEFAULT_INDEX}: name one"
                )
            raise NotFoundError(f"there is no index {name[:_SHOWN]!r}")
        return ResolvedIndex(own, index, alias.since if alias else index.since)

    def assignment(self, name: str) -> Assignment | None:
        """Returns the assignment of an index; None if the settings of nodes name its shards."""
        index = self.indexes[name]
        return self._assignment(index) if index.holders else None

    def name_of(self, index_id: str) -> str:
        """Returns the name of an index by its id; empty if there is none."""
        return next((n for n, each in self.indexes.items() if each.index_id == index_id), "")

    def aliases_of(self, name: str) -> list[str]:
        """Returns the aliases of an index, sorted."""
        return sorted(alias for alias, each in self.aliases.items() if each.index == name)

    def with_index(
        self, name: str, index: CatalogIndex, nodes: Mapping[str, str] | None = None
    ) -> "Catalog":
        """Returns the next version, with a new index.

        `nodes` has the addresses of the nodes that may have shards of the index.

        Raises InvalidRequestError if the name is taken.
        """
        if any(each.index_id == index.index_id for each in self.indexes.values()):
            known = self.name_of(index.index_id)
            raise invalid_field(
                "name", f"the catalog has index {index.index_id} already: its name is {known}"
            )
        if index.index_id in self.deleted_ids:
            raise invalid_field(
                "name",
                f"index {index.index_id} was deleted, and a node may still have an old copy: build "
                "it again (`winnow index build --passages INDEX`), which gives it another id",
            )
        self.check_free(name)
        next_version = self.version + 1
        names = tuple(sorted(nodes or {}))
        added = replace(index, nodes=names, since=next_version, version=next_version)
        return self._changed(
            indexes={**self.indexes, name: added}, nodes={**self.nodes, **(nodes or {})}
        )

    def check_free(self, name: str) -> None:
        """Raises InvalidRequestError unless a new index can have this name."""
        check_name(name)
        if name in self.indexes or name in self.aliases:
            dropped = name in self.indexes and self.indexes[name].is_dropped
            hint = "restore it, or wait until it is deleted" if dropped else "choose another name"
            raise invalid_field("name", f"{name} is taken: {hint}")

    def with_holders(
        self, name: str, holders: Mapping[int, tuple[str, ...]], nodes: Mapping[str, str]
    ) -> "Catalog":
        """Returns the next version, in which other nodes hold the shards of an index.

        `nodes` has the addresses of the nodes that may have shards of the index.

        Raises InvalidRequestError if a shard would be split or moved while the index is copied.
        """
        self._check_may_move(name, holders)
        moved = replace(
            self._index(name),
            holders=holders,
            nodes=tuple(sorted(nodes)),
            version=self.version + 1,
        )
        return self._changed(indexes={**self.indexes, name: moved}, nodes={**self.nodes, **nodes})

    def with_alias(self, alias: str, index: str) -> "Catalog":
        """Returns the next version, in which an alias stands for an index; this one if it does.

        Raises InvalidRequestError if an index has the name of the alias, or a copy would replace
        its source, and NotFoundError if there is no such index.
        """
        if self._index(index).is_dropped:
            raise invalid_field("name", f"{index} was dropped: restore it first")
        if alias in self.indexes:
            raise invalid_field("alias", f"{alias} is the name of an index: choose another name")
        if alias in self.aliases and self.aliases[alias].index == index:
            return self
        before, copy = self.aliases.get(alias), self.copies.get(index)
        if before is not None and copy is not None and before.index not in self.copies:
            first = "" if before.index == copy.source else f": point {alias} to {copy.source} first"
            raise invalid_field(
                "name", f"{index} is a copy of {copy.source}, and may lack writes{first}"
            )
        switched = Alias(index, self.version + 1)
        return self._changed(aliases={**self.aliases, alias: switched})

    def without_alias(self, alias: str) -> "Catalog":
        """Returns the next version without an alias; raises NotFoundError if there is none."""
        if alias not in self.aliases:
            raise NotFoundError(f"there is no alias {alias}")
        kept = {name: each for name, each in self.aliases.items() if name != alias}
        return self._changed(aliases=kept)

    def with_renamed(self, name: str, new: str) -> "Catalog":
        """Returns the next version, in which an index has a new name. The old name is an alias.

        Raises InvalidRequestError if the new name is taken, or the index is dropped, is a copy or
        has one: nodes find what is copied by names.
        """
        index = self._index(name)
        if index.is_dropped:
            raise invalid_field("name", f"{name} was dropped: restore it first")
        if name in self.copies or any(each.source == name for each in self.copies.values()):
            raise invalid_field("name", f"{name} is a copy or has one: drop the copy first")
        self.check_free(new)
        version = self.version + 1
        others = {each: kept for each, kept in self.indexes.items() if each != name}
        aliases = {
            alias: replace(each, index=new) if each.index == name else each
            for alias, each in self.aliases.items()
        }
        return self._changed(
            indexes={**others, new: replace(index, since=version)},
            aliases={**aliases, name: Alias(new, index.since)},
        )

    def with_dropped(self, name: str, delete_at: float) -> "Catalog":
        """Returns the next version, in which an index is dropped, and deleted at `delete_at`.

        Raises InvalidRequestError if an alias stands for it, it has a copy, or it is dropped
        already.
        """
        index = self._index(name)
        if aliases := self.aliases_of(name):
            raise invalid_field(
                "name", f"the alias {aliases[0]} stands for {name}: switch or remove it first"
            )
        if index.is_dropped:
            raise invalid_field("name", f"{name} is dropped already")
        if copies := self._copies_of(name):
            raise invalid_field("name", f"{copies[0]} is a copy of {name}: drop the copy first")
        return self._changed(indexes={**self.indexes, name: replace(index, delete_at=delete_at)})

    def with_restored(self, name: str, now: float) -> "Catalog":
        """Returns the next version, in which a dropped index is served again.

        A copy is still a copy, unless its source was dropped. Runs that copied it before have
        ended, and its source takes writes.

        Raises InvalidRequestError if it was not dropped, or nodes may have begun to delete it.
        """
        index = self._index(name)
        if index.delete_at is None:
            raise invalid_field("name", f"{name} was not dropped")
        if index.delete_at <= now:
            raise invalid_field("name", f"the grace time of {name} has ended: it is deleted")
        if index.delete_at <= now + _RESTORE_MARGIN:
            raise invalid_field(
                "name", f"the grace time of {name} ends now: nodes may have begun to delete it"
            )
        restored = replace(index, delete_at=None, since=self.version + 1)
        copies, copy = dict(self.copies), self.copies.get(name)
        if copy is not None and self.indexes[copy.source].is_dropped:
            del copies[name]
        elif copy is not None:
            copies[name] = replace(copy, held=0, run=self.version + 1)
        return self._changed(indexes={**self.indexes, name: restored}, copies=copies)

    def without_expired(self, now: float) -> "Catalog":
        """Returns this version, or the next one without the indexes whose grace time has ended."""
        expired = {
            name: index
            for name, index in self.indexes.items()
            if index.delete_at is not None and index.delete_at <= now
        }
        if not expired:
            return self
        ids = {index.index_id for index in expired.values()}
        kept = {name: each for name, each in self.indexes.items() if name not in expired}
        copies = {
            name: copy
            for name, copy in self.copies.items()
            if not {name, copy.source} & set(expired)
        }
        return self._changed(indexes=kept, copies=copies, deleted_ids=self.deleted_ids | ids)

    def is_deleted(self, index_id: str, now: float) -> bool:
        """Whether nodes should delete what they have of an index."""
        return index_id in self.deleted_ids or any(
            index.delete_at is not None and index.delete_at <= now
            for index in self.indexes.values()
            if index.index_id == index_id
        )

    def _index(self, name: str) -> CatalogIndex:
        if (alias := self.aliases.get(name)) is not None:
            raise NotFoundError(f"{name} is an alias of {alias.index}: name the index")
        if name not in self.indexes:
            known = ", ".join(sorted(self.indexes))
            others = f"the indexes are {known}" if known else "the catalog has none yet"
            raise NotFoundError(f"there is no index {name[:_SHOWN]!r}: {others}")
        return self.indexes[name]

    def _copies_of(self, name: str) -> list[str]:
        """Returns the copies of an index that were not dropped, sorted."""
        return sorted(
            copy
            for copy, each in self.copies.items()
            if each.source == name and not self.indexes[copy].is_dropped
        )

    def _check_may_move(self, name: str, holders: Mapping[int, tuple[str, ...]]) -> None:
        own, copies = self.copies.get(name), self._copies_of(name)
        held = own if own is not None and own.held else None
        if held or any(self.copies[each].held for each in copies):
            raise invalid_field("name", f"an alias of {name} is being switched: try again")
        other = own.source if own is not None else copies[0] if copies else ""
        if other and holders.keys() != self._index(name).holders.keys():
            raise invalid_field(
                "name", f"{name} and {other} are copies: drop one of them before a shard is split"
            )

    def _assignment(self, index: CatalogIndex) -> Assignment:
        return Assignment(
            index_id=index.index_id,
            shards=index.shards,
            version=index.version,
            nodes={name: self.nodes[name] for name in index.nodes or self.nodes},
            holders=index.holders,
        )

    def _changed(self, **changes: object) -> "Catalog":
        return replace(self, version=self.version + 1, **changes)  # type: ignore[arg-type]


def check_name(name: str) -> None:
    """Raises InvalidRequestError unless this is a valid name of an index or an alias."""
    fits = 1 <= len(name) <= _MAX_NAME and name[0] in _LETTERS
    if not (fits and _NAME_CHARACTERS.issuperset(name)):
        raise invalid_field(
            "name",
            f"{name[:_SHOWN]!r} is no valid name: use 1 to {_MAX_NAME} characters (a-z, 0-9, _ and "
            "-), the first a letter or digit",
        )


def check_is_default(name: str) -> None:
    """Raises NotFoundError for any name but the default one, for a server of a single index."""
    if name not in ("", DEFAULT_INDEX):
        raise NotFoundError(
            f"there is no index {name[:_SHOWN]!r}: this front serves a single index, which needs "
            "no name"
        )
