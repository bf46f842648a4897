"""Adds an empty index to the catalog, as a copy of another one; or finds the copy begun earlier."""

import time
from pathlib import Path

from winnow.bundle import Bundle
from winnow.catalog import CatalogFile
from winnow.content_node.snapshots.empty import empty_snapshot
from winnow.content_node.snapshots.stored_snapshots import open_snapshots, read_snapshots
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.domain.copying import check_may_copy, with_copy
from winnow.errors import invalid_field
from winnow.policy.spreading import spread
from winnow.quoting import many, shown


def begun_copy(catalog: Catalog, source: str) -> str:
    """Returns the copy of an index that an earlier command began; empty if there is none."""
    return next(
        (
            name
            for name, copy in catalog.copies.items()
            if (copy.source, copy.was_replaced) == (source, False)
            and not catalog.indexes[name].is_dropped
        ),
        "",
    )


def next_name(catalog: Catalog, source: str) -> str:
    """Returns a free name: that of the source with the next number."""
    base, _, number = source.rpartition("-")
    base, first = (base, int(number) + 1) if base and number.isdecimal() else (source, 2)
    taken = catalog.indexes.keys() | catalog.aliases.keys()
    return next(
        each for n in range(first, first + len(taken) + 1) if (each := f"{base}-{n}") not in taken
    )


def check_same_copy(
    catalog: Catalog, name: str, source: str, bundle: Bundle, *, shards: int | None
) -> None:
    """Raises InvalidRequestError unless an earlier command began the same copy.

    `shards`: number of shards; None for any.
    """
    if catalog.copies[name].source != source:
        raise invalid_field(
            "--as",
            f"{name} is a copy of {catalog.copies[name].source}: choose another name by --as",
        )
    begun = catalog.indexes[name].bundle
    if begun != str(bundle.directory.resolve()):
        raise invalid_field(
            "--bundle",
            f"copy {name} was begun with bundle {begun}: give that, or drop {name} to begin again",
        )
    if shards not in (None, catalog.indexes[name].shards):
        built = many(catalog.indexes[name].shards, "shard")
        raise invalid_field("--shards", f"copy {name} was begun with {built}: omit --shards")


def check_may_begin(catalog: Catalog, name: str, source: str, snapshot: str) -> None:
    """Raises InvalidRequestError if no copy can be begun.

    The name is taken, the source is a copy itself, or `snapshot` has the snapshot of another index.
    """
    catalog.check_free(name)
    check_may_copy(catalog, source)
    newest = next(iter(read_snapshots(open_snapshots(snapshot))), None)
    known = catalog.deleted_ids | {each.index_id for each in catalog.indexes.values()}
    if newest is not None and newest.index_id in known:
        raise invalid_field(
            "--snapshot",
            f"{shown(snapshot)} has the snapshot of another index: give another --snapshot",
        )


def create_copy(
    file: CatalogFile,
    name: str,
    source: str,
    bundle: Bundle,
    *,
    snapshot: str,
    shards: int,
    tenants: bool,
) -> None:
    """Adds an empty index to the catalog, on the nodes of its source. Call `check_may_begin` first.

    It has as many replicas as its source.

    Args:
        file: the catalog.
        name: name of the new index.
        source: name of the index that it is a copy of.
        bundle: the bundle of the new index.
        snapshot: directory or URL for the snapshot from which nodes begin.
        shards: number of shards.
        tenants: whether the source has tenants.

    Raises InvalidRequestError if the name is taken, or the source is a copy itself, and as
    `empty_snapshot`.

    """
    taken = empty_snapshot(snapshot, bundle, shards, tenants=tenants)

    def create(before: Catalog | None) -> Catalog:
        catalog = (before or Catalog()).without_expired(time.time())
        holders = catalog.indexes[source].holders.values()
        index = CatalogIndex(
            index_id=taken.index_id,
            shards=taken.shards,
            bundle=str(bundle.directory.resolve()),
            snapshots=snapshot if "://" in snapshot else str(Path(snapshot).resolve()),
            holders=spread(
                range(taken.shards),
                {node for names in holders for node in names},
                max(map(len, holders)),
            ),
        )
        return with_copy(catalog, name, index, source)

    file.change(create)
