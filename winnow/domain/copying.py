"""Changes of the catalog while an index is copied into another one and replaced by it. Pure.

At any moment one index takes the writes: the source, or the copy that replaced it. In between, the
source is held: neither takes writes.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from winnow.domain.catalog import Alias, Catalog, CatalogIndex
from winnow.domain.index_copy import IndexCopy, IndexWrites
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
    if source in catalog.copies:
        raise invalid_field("name", f"{source} is a copy of {catalog.copies[source].source}")
    holders = {node for names in index.holders.values() for node in names}
    added = catalog.with_index(name, index, {node: catalog.nodes[node] for node in holders})
    copy = IndexCopy(source=source, run=added.version)
    return replace(added, copies={**added.copies, name: copy})


def with_run(catalog: Catalog, name: str) -> Catalog:
    """Returns the next version, in which a new run copies. Raises NotFoundError without a copy."""
    copy = copy_of(catalog, name)
    return _with(catalog, name, replace(copy, run=catalog.version + 1, held=0))


def with_progress(
    catalog: Catalog, name: str, run: int, positions: Mapping[int, int], filled: Collection[int]
) -> Catalog:
    """Returns the next version with the progress of a run. Raises IdentityError if another run
    has begun.
    """
    copy = _check_run(catalog, name, run)
    progressed = replace(copy, positions=dict(positions), filled=tuple(sorted(filled)))
    return _with(catalog, name, progressed)


def with_hold(catalog: Catalog, name: str, run: int) -> Catalog:
    """Returns the next version, in which the source of a copy takes no writes.

    Raises IdentityError if another run has begun.
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
    catalog: Catalog, name: str, run: int, held: int, positions: Mapping[int, int]
) -> Catalog:
    """Returns the next version, in which a copy takes the writes and the aliases of its source.

    The source becomes a copy of the index that replaced it.

    Args:
        catalog: the current version.
        name: the copy, which has all writes of its source.
        run: the run that copied the last writes.
        held: the version since which the source has been held.
        positions: the last write of each shard of the copy.

    Raises IdentityError if another run has begun, or the source was not held all the time.

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


def _check_run(catalog: Catalog, name: str, run: int) -> IndexCopy:
    copy = catalog.copies.get(name)
    if copy is None or copy.run != run:
        raise IdentityError(f"another process has begun to copy {name}, or replaced it")
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
