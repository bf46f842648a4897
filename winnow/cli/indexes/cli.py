"""`winnow indexes`: lists, renames, drops and restores the named indexes of a cluster."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer

from winnow.catalog import CatalogFile
from winnow.cli.options import CatalogUrl
from winnow.cli.output import AsJson, console, print_json, table
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.domain.copying import index_writes

app = typer.Typer(no_args_is_help=True)
_SECONDS_PER_HOUR = 3_600
_MAX_GRACE = 87_600.0
"""Longest grace time in hours: ten years."""
_Name = Annotated[str, typer.Argument(help="Name of the index.")]


@app.callback()
def indexes() -> None:
    """Create, list, rebuild, drop and restore the named indexes of a cluster, and switch aliases.

    The commands change the catalog, a small file that all nodes follow.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedIndex:
    """An index of the catalog: a row of `winnow indexes list`."""

    name: str
    aliases: list[str]
    index_id: str
    shards: int
    nodes: list[str]
    """Names of the nodes that hold shards."""
    bundle: str
    """Directory of the bundle; empty for the bundle of each process."""
    deleted_at: str | None
    """When the dropped index is deleted; None if it is not dropped."""
    copy_of: str | None
    """Name of the index that takes the writes; None if the index is not a copy."""
    is_held: bool
    """Whether writes wait, because an alias is being switched."""

    @property
    def state(self) -> str:
        """The state in words."""
        if self.deleted_at:
            return f"dropped, deleted at {self.deleted_at}"
        if self.copy_of:
            return f"served, copy of {self.copy_of}"
        return "served, writes wait for the switch of an alias" if self.is_held else "served"


@app.command("list")
def list_(catalog: CatalogUrl, as_json: AsJson = False) -> None:
    """List the named indexes, their aliases and their nodes.

    Example: winnow indexes list --indexes s3://bucket/indexes.json

    With --json, each index is an object with the keys name, aliases, index_id, shards, nodes,
    bundle, deleted_at (null unless the index is dropped), copy_of (null unless it is a copy) and
    is_held.
    """
    stored = CatalogFile(catalog).read() or Catalog()
    rows = [_row(stored, name, index) for name, index in sorted(stored.indexes.items())]
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("no indexes: the first `winnow indexes create` writes the catalog")
        return
    shown = table(
        ["index", "aliases", "shards", "nodes", "bundle", "state"],
        words={"index", "aliases", "nodes", "bundle", "state"},
    )
    for row in rows:
        lists = ", ".join(row.aliases), str(row.shards), ", ".join(row.nodes)
        shown.add_row(row.name, *lists, row.bundle, row.state)
    console().print(shown)


@app.command()
def drop(
    name: _Name,
    catalog: CatalogUrl,
    grace: Annotated[
        float, typer.Option(help="Hours until the nodes delete the files of the index.")
    ] = 24.0,
) -> None:
    """Drop an index. No request finds it any more, and its files are deleted after a grace time.

    Example: winnow indexes drop docs-1 --indexes s3://bucket/indexes.json

    `winnow indexes restore` undoes it within the grace time. Snapshots are not deleted.
    """
    if not 0 <= grace <= _MAX_GRACE:  # NaN too
        problem = f"{grace:g} is not between 0 and {_MAX_GRACE:g} hours"
        raise typer.BadParameter(problem, param_hint="--grace")
    delete_at = time.time() + grace * _SECONDS_PER_HOUR
    changed = _change(CatalogFile(catalog), lambda stored: stored.with_dropped(name, delete_at))
    end = (
        f"nodes delete it at {_time(delete_at)}; until then: winnow indexes restore {name}"
        if grace
        else "nodes delete it now"
    )
    typer.echo(f"catalog {changed.version}: index {name} dropped; {end}")


@app.command()
def restore(name: _Name, catalog: CatalogUrl) -> None:
    """Serve a dropped index again, within its grace time.

    Example: winnow indexes restore docs-1 --indexes s3://bucket/indexes.json
    """
    changed = CatalogFile(catalog).change(
        lambda stored: (stored or Catalog()).with_restored(name, time.time())
    )
    typer.echo(f"catalog {changed.version}: index {name} is served again")


@app.command()
def rename(
    name: _Name,
    new: Annotated[str, typer.Argument(help="The new name.")],
    catalog: CatalogUrl,
) -> None:
    """Rename an index. Its old name becomes an alias of it, so that requests by it go on.

    Example: winnow indexes rename docs docs-1 --indexes s3://bucket/indexes.json

    So an index that callers use by its name can be rebuilt, or replaced by another one.
    """
    changed = _change(CatalogFile(catalog), lambda stored: stored.with_renamed(name, new))
    typer.echo(f"catalog {changed.version}: index {name} is now {new}, and {name} an alias of it")


def _change(file: CatalogFile, change: Callable[[Catalog], Catalog]) -> Catalog:
    """Changes the catalog; forgets the indexes whose grace time has ended."""
    now = time.time()
    return file.change(lambda stored: change((stored or Catalog()).without_expired(now)))


def _row(catalog: Catalog, name: str, index: CatalogIndex) -> ListedIndex:
    nodes = sorted({node for names in index.holders.values() for node in names})
    writes = index_writes(catalog, name)
    return ListedIndex(
        name=name,
        aliases=catalog.aliases_of(name),
        index_id=index.index_id,
        shards=index.shards,
        nodes=nodes,
        bundle=index.bundle,
        deleted_at=None if index.delete_at is None else _time(index.delete_at),
        copy_of=writes.source or None,
        is_held=bool(writes.closed_since) and not writes.source,
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
