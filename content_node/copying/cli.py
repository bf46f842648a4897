"""`winnow indexes rebuild` and `winnow indexes alias`: copy an index, and switch to the copy."""

import time
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from winnow import signals
from winnow.bundle import Bundle, load_bundle
from winnow.catalog import CatalogFile
from winnow.cli.options import CatalogUrl
from winnow.cli.peers import with_peers
from winnow.content_node.copying.encoding import CopyEncoder
from winnow.content_node.copying.index_nodes import IndexNodes
from winnow.content_node.copying.new_copy import (
    begun_copy,
    check_may_begin,
    check_same_copy,
    create_copy,
    next_name,
)
from winnow.content_node.copying.replacing import IndexCopier
from winnow.deadline import Deadline
from winnow.domain.catalog import Catalog
from winnow.domain.copying import without_hold
from winnow.domain.shard import MAX_SHARDS
from winnow.faultpoints import reach
from winnow.packaged import default_bundle
from winnow.security.peers import PLAIN_TEXT, PeerChannels
from winnow.settings.common import cores
from winnow.settings.values import parse_directory_or_url
from winnow.telemetry.progress import StageProgress

_NODE_SECONDS = 30.0
"""Seconds in which the nodes of an index open it. It may have just been created."""
Result = TypeVar("Result")
_Threads = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="Threads that encode passages.", show_default="all cores"),
]


@with_peers
def rebuild(
    name: Annotated[str, typer.Argument(help="An index, or an alias of it.")],
    catalog: CatalogUrl,
    bundle: Annotated[
        Path, typer.Option(help="Directory of the new bundle, on all nodes and here.")
    ],
    snapshot: Annotated[
        str,
        typer.Option(
            parser=parse_directory_or_url,
            metavar="URL",
            help="Directory or URL for the snapshot from which the nodes begin the new index.",
        ),
    ],
    new: Annotated[
        str,
        typer.Option(
            "--as", metavar="NAME", help="Name of the new index.", show_default="the next number"
        ),
    ] = "",
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_SHARDS,
            help="Number of shards of the new index.",
            show_default="as many as the index was built with",
        ),
    ] = None,
    threads: _Threads = None,
    peers: PeerChannels = PLAIN_TEXT,
) -> None:
    """Copy an index into a new one with another bundle, while it is served and written to.

    Example: winnow indexes rebuild docs --bundle /bundles/b --snapshot s3://bucket/docs-2
    --indexes s3://bucket/indexes.json

    The new index is empty at first, on the same nodes. The command encodes the passages, and then
    the later writes. It ends once only the newest writes are missing. Ctrl-C is safe: run the same
    command again to resume. `winnow indexes alias` then copies the newest writes and switches.
    """
    file, loaded = CatalogFile(catalog), load_bundle(bundle)
    stored = file.read() or Catalog()
    source = stored.resolve(name).name
    target = new or begun_copy(stored, source) or next_name(stored, source)
    if target not in stored.copies:
        check_may_begin(stored.without_expired(time.time()), target, source, snapshot)
        own = stored.indexes[source]
        nodes = IndexNodes(source, own, stored.nodes, copy=target, peers=peers)
        create_copy(
            file,
            target,
            source,
            loaded,
            snapshot=snapshot,
            shards=shards or own.shards,
            tenants=signals.run(nodes.has_tenants(Deadline.after(_NODE_SECONDS))),
        )
        reach("copy.created")
    else:
        check_same_copy(stored, target, source, loaded, shards=shards)
    _run(file, target, loaded, threads, lambda copier: copier.catch_up(), peers)
    typer.echo(f"{target} has the passages and writes of {source}")
    aliases = (file.read() or stored).aliases_of(source)
    _advise_switch(aliases[0] if aliases else "", target, source)


@with_peers
def alias(
    name: Annotated[str, typer.Argument(help="The alias; `default` is for requests without one.")],
    index: Annotated[
        str | None,
        typer.Argument(help="Name of the index.", show_default="none, with --remove"),
    ] = None,
    *,
    catalog: CatalogUrl,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the alias.")] = False,
    bundle: Annotated[
        Path | None,
        typer.Option(
            help="If the index is a copy: directory of its bundle on this machine.",
            show_default="as in the catalog",
        ),
    ] = None,
    threads: _Threads = None,
    peers: PeerChannels = PLAIN_TEXT,
) -> None:
    """Point an alias to an index. All front nodes switch to it within a few seconds.

    Example: winnow indexes alias docs docs-2 --indexes s3://bucket/indexes.json

    Every request is wholly of one index. The command prints how to switch back. If the index is a
    copy of the present one (`winnow indexes rebuild`), its last writes are copied first. Meanwhile
    front nodes hold writes back. All aliases of the present index switch.
    """
    if remove == (index is not None):
        problem = "give an index, or --remove"
        raise typer.BadParameter(problem, param_hint="INDEX")
    file = CatalogFile(catalog)
    before = (file.read() or Catalog()).without_expired(time.time())
    if index is None:
        changed = _change(file, lambda stored: stored.without_alias(name))
        typer.echo(f"catalog {changed.version}: alias {name} removed")
        return
    present = before.aliases.get(name)
    if present is not None and _replaces(before, index, present.index):
        known = before.indexes[index].bundle
        loaded = load_bundle(bundle or (Path(known) if known else default_bundle()))
        held = _run(file, index, loaded, threads, lambda each: each.replace_source(), peers)
        changed = file.read() or before
        switched = ", ".join(before.aliases_of(present.index))
        typer.echo(f"catalog {changed.version}: alias {switched} -> {index}")
        typer.echo(f"writes were held back for {held:.1f} s")
    else:
        changed = _change(file, lambda stored: _pointed(stored, name, index))
        typer.echo(f"catalog {changed.version}: alias {name} -> {index}")
        if index in changed.copies:
            source = changed.copies[index].source
            typer.echo(f"{index} is a copy of {source}, and takes no writes of callers")
            _advise_switch(next(iter(changed.aliases_of(source)), ""), index, source)
    if present is not None and present.index != index:
        typer.echo(f"to switch back: winnow indexes alias {name} {present.index}")


def _advise_switch(alias: str, copy: str, source: str) -> None:
    """Prints the commands by which a copy replaces its source, which must have an alias."""
    if not alias:
        alias = "ALIAS"
        typer.echo(f"{source} has no alias: winnow indexes alias {alias} {source}")
    typer.echo(f"to switch: winnow indexes alias {alias} {copy}")


def _replaces(catalog: Catalog, index: str, present: str) -> bool:
    """Whether an index is a copy of the present one, so that its last writes must be copied."""
    copy = catalog.copies.get(index)
    return copy is not None and copy.source == present and not catalog.indexes[index].is_dropped


def _pointed(catalog: Catalog, alias: str, index: str) -> Catalog:
    """Points an alias to an index, which takes writes again if an interrupted switch held it."""
    return without_hold(catalog.with_alias(alias, index), index)


def _change(file: CatalogFile, change: Callable[[Catalog], Catalog]) -> Catalog:
    """Changes the catalog; forgets the indexes whose grace time has ended."""
    now = time.time()
    return file.change(lambda stored: change((stored or Catalog()).without_expired(now)))


def _run(
    file: CatalogFile,
    name: str,
    bundle: Bundle,
    threads: int | None,
    work: Callable[[IndexCopier], Coroutine[Any, Any, Result]],
    peers: PeerChannels,
) -> Result:
    """Runs work of a copier, and shows its progress."""
    with closing(CopyEncoder(bundle, threads or cores())) as encoder, StageProgress() as progress:
        copier = IndexCopier(file, name, encoder=encoder, listener=progress, peers=peers)
        return signals.run(work(copier))
