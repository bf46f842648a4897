"""What `winnow indexes rebuild` and `winnow indexes alias` do, without reading options or printing.

A command may be killed at any moment. Run again, it goes on.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from winnow.bundle import Bundle
from winnow.catalog import CatalogFile
from winnow.content_node.copying.index_nodes import IndexNodes
from winnow.content_node.copying.new_copy import (
    begun_copy,
    check_may_begin,
    check_same_copy,
    create_copy,
    next_name,
)
from winnow.content_node.copying.replacing import IndexCopier
from winnow.domain.catalog import Catalog
from winnow.domain.copying import without_hold
from winnow.faultpoints import reach
from winnow.security.peers import PLAIN_TEXT, PeerChannels


async def begin_copy(
    file: CatalogFile,
    name: str,
    bundle: Bundle,
    *,
    snapshot: str,
    new: str = "",
    shards: int | None = None,
    peers: PeerChannels = PLAIN_TEXT,
    say: Callable[[str], None] = lambda _: None,
) -> str:
    """Adds an empty copy of an index to the catalog, unless an earlier command has begun it.

    Args:
        file: the catalog.
        name: name or alias of the index.
        bundle: the bundle of the copy.
        snapshot: directory or URL for the snapshot from which the nodes begin.
        new: name of the copy; empty for that of the copy begun earlier, or the next number.
        shards: number of shards; None for those that the index was built with.
        peers: opens channels to the nodes.
        say: prints why a node of the index is waited for.

    Returns the name of the copy. Raises RefusedChangeError if an argument does not fit the catalog,
    NotFoundError without the index, NotWritableError as `IndexNodes.shards`, and as `create_copy`.

    """
    stored = await asyncio.to_thread(file.read) or Catalog()
    with file.naming_refusals():
        source = stored.resolve(name).name
        target = new or begun_copy(stored, source) or next_name(stored, source)
        if target in stored.copies:
            check_same_copy(stored, target, source, bundle, shards=shards)
            return target
        known = stored.without_expired(time.time())
        await asyncio.to_thread(check_may_begin, known, target, source, snapshot)
    own = stored.indexes[source]
    nodes = IndexNodes(source, own, stored.nodes, copy=target, peers=peers)
    tenants = await nodes.has_tenants(say)
    built = shards or own.shards

    def create() -> None:
        create_copy(file, target, source, bundle, snapshot=snapshot, shards=built, tenants=tenants)

    await asyncio.to_thread(create)
    reach("copy.created")
    return target


@dataclass(frozen=True, slots=True)
class PointedAlias:
    """An alias that a command has pointed to an index."""

    catalog: Catalog
    """The catalog then."""
    before: str = ""
    """Name of the index that the alias stood for before; empty for a new alias."""
    held: float | None = None
    """Seconds in which no writes were taken; None if the index did not replace its source."""


async def point_alias(
    file: CatalogFile, name: str, index: str, open_copier: Callable[[Catalog], IndexCopier]
) -> PointedAlias:
    """Points an alias to an index. If that is a copy of the present one, it first gets all writes.

    `open_copier` returns what copies the last writes to `index`, by the present catalog. Raises as
    `IndexCopier.replace_source`, and as `Catalog.with_alias`.
    """
    stored = await asyncio.to_thread(file.read) or Catalog()
    before = stored.without_expired(time.time())
    present = before.aliases.get(name)
    if present is not None and _replaces(before, index, present.index):
        held = await open_copier(before).replace_source()
        changed = await asyncio.to_thread(file.read) or before
        return PointedAlias(changed, present.index, held)
    changed = await asyncio.to_thread(
        change_catalog, file, lambda catalog: _pointed(catalog, name, index)
    )
    return PointedAlias(changed, present.index if present is not None else "")


def change_catalog(file: CatalogFile, change: Callable[[Catalog], Catalog]) -> Catalog:
    """Changes the catalog; forgets the indexes whose grace time has ended. Blocks."""
    now = time.time()
    return file.change(lambda stored: change((stored or Catalog()).without_expired(now)))


def _replaces(catalog: Catalog, index: str, present: str) -> bool:
    """Whether an index is a copy of the present one, so that its last writes must be copied."""
    copy = catalog.copies.get(index)
    return copy is not None and copy.source == present and not catalog.indexes[index].is_dropped


def _pointed(catalog: Catalog, alias: str, index: str) -> Catalog:
    """Points an alias to an index, which takes writes again if an interrupted switch held it."""
    return without_hold(catalog.with_alias(alias, index), index)
