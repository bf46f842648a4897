"""Changes of the catalog while an index is copied into another one and replaced by it. Pure.

At any moment one index takes the writes: the source, or the copy that replaced it. In between, the
source is held: neither takes writes.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from winnow.domain.catalog import Alias, Catalog, CatalogIndex
from winnow.domain.index_copy import NO_LOGS, CopyLogs, IndexCopy, IndexWrites
from winnow.errors import IdentityError, NotFoundError, UnavailableError, invalid_field


def index_writes(catalog: Catalog, name: str) -> IndexWrites:
    """Returns what the nodes of an index do with writes."""
    own = catalog.copies.get(name)
    held = max((copy.held for copy in _of_source(catalog, name).values()), default=0)
    return IndexWrites(
        closed_since=own.run if own is not None else held,
        source=own.source if own is not None else "",
        copied={copy: each.positions for copy, each in _of_source(catalog, name).items()},
    )


def with_copy(catalog: Catalog, name: str, index: CatalogIndex, source: str) -> Catalog:
    """Returns the next version, with a new empty index that is a copy of `source`.

    Raises InvalidRequestError if the name is taken, or the source is a copy itself.
    """
    check_may_copy(catalog, source)
    holders = {node for names in index.holders.values() for node in names}
    added = catalog.with_index(name, index, {node: catalog.nodes[node] for node in holders})
    copy = IndexCopy(source=source, run=added.version)
    return replace(added, copies={**added.copies, name: copy})


def with_run(catalog: Catalog, name: str) -> Catalog:
    """Returns the next version, in which a new run copies.

    Raises NotFoundError without a copy, and InvalidRequestError if its source is a copy itself.
    """
    copy = copy_of(catalog, name)
    check_may_copy(catalog, copy.source)
    return _with(catalog, name, replace(copy, run=catalog.version + 1, held=0))


def with_progress(
    catalog: Catalog,
    name: str,
    run: int,
    positions: Mapping[int, int],
    filled: Collection[int],
    logs: CopyLogs = NO_LOGS,
) -> Catalog:
    """Returns the next version with the progress of a run.

    Raises IdentityError if another run has begun, and NotFoundError if the copy was dropped.
    """
    copy = _check_run(catalog, name, run)
    progressed = replace(copy, positions=dict(positions), filled=tuple(sorted(filled)), logs=logs)
    return _with(catalog, name, progressed)


def with_hold(catalog: Catalog, name: str, run: int) -> Catalog:
    """Returns the next version, in which the source of a copy takes no writes.

    Raises IdentityError if another run has begun, and NotFoundError if the copy was dropped.
    """
    copy = _check_run(catalog, name, run)
    return _with(catalog, name, replace(copy, held=catalog.version + 1))


def without_hold(catalog: Catalog, source: str) -> Catalog:
    """Returns this version, or the next one in which `source` takes writes again.

    Runs that were about to replace it have ended.
    """
    held = {name: copy for name, copy in _of_source(catalog, source).items() if copy.held}
    if not held:
        return catalog
    version = catalog.version + 1
    ended = {name: replace(copy, held=0, run=version) for name, copy in held.items()}
    return replace(catalog, version=version, copies={**catalog.copies, **ended})


def with_replaced_source(
    catalog: Catalog,
    name: str,
    run: int,
    held: int,
    positions: Mapping[int, int],
    logs: CopyLogs = NO_LOGS,
) -> Catalog:
    """Returns the next version, in which a copy takes the writes and the aliases of its source.

    The source becomes a copy of the index that replaced it.

    Args:
        catalog: the current version.
        name: the copy, which has all writes of its source.
        run: the run that copied the last writes.
        held: the version since which the source has been held.
        positions: the last write of each shard of the copy.
        logs: the logs of both indexes.

    Raises IdentityError if another run has begun, UnavailableError if the source was not held all
    the time, and NotFoundError if the copy was dropped.

    """
    copy = _check_run(catalog, name, run)
    if copy.held != held:
        raise UnavailableError(f"{copy.source} takes writes again: run this command again")
    version = catalog.version + 1
    back = IndexCopy(
        source=name,
        run=version,
        positions=dict(positions),
        filled=tuple(sorted(positions)),
        was_replaced=True,
        logs=CopyLogs(source=logs.own, own=logs.source),
    )
    others = {each: kept for each, kept in catalog.copies.items() if each != name}
    switched = {alias: Alias(name, version) for alias in catalog.aliases_of(copy.source)}
    return replace(
        catalog,
        version=version,
        aliases={**catalog.aliases, **switched},
        copies={**others, copy.source: back},
    )


def copy_of(catalog: Catalog, name: str) -> IndexCopy:
    """Returns the copy with this name; raises NotFoundError if the index is none, or dropped."""
    if name not in catalog.copies or catalog.indexes[name].is_dropped:
        raise NotFoundError(f"{name} is not a copy of another index")
    return catalog.copies[name]


def check_may_copy(catalog: Catalog, source: str) -> None:
    """Raises InvalidRequestError if an index gets no writes by itself, because it is a copy."""
    if source in catalog.copies:
        own = catalog.copies[source].source
        raise invalid_field(
            "name", f"{source} is a copy of {own}, and gets no writes by itself: name {own} instead"
        )


def _check_run(catalog: Catalog, name: str, run: int) -> IndexCopy:
    copy = catalog.copies.get(name)
    if copy is None or copy.run != run:
        raise IdentityError(f"another process has begun to copy {name}, or replaced it")
    if catalog.indexes[name].is_dropped:
        raise NotFoundError(f"{name} was dropped")
    return copy


def _of_source(catalog: Catalog, source: str) -> dict[str, IndexCopy]:
    """Returns the copies of an index that were not dropped."""
    return {
        name: copy
        for name, copy in catalog.copies.items()
        if copy.source == source and not catalog.indexes[name].is_dropped
    }


def _with(catalog: Catalog, name: str, copy: IndexCopy) -> Catalog:
    return replace(catalog, version=catalog.version + 1, copies={**catalog.copies, name: copy})
