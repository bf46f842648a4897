"""`winnow indexes rebuild` and `winnow indexes alias`: copy an index, and switch to the copy."""

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from winnow import signals
from winnow.bundle import Bundle, load_bundle
from winnow.catalog import CatalogFile
from winnow.cli.options import CatalogUrl
from winnow.cli.peers import with_peers
from winnow.content_node.copying.commands import begin_copy, change_catalog, point_alias
from winnow.content_node.copying.encoding import CopyEncoder
from winnow.content_node.copying.replacing import IndexCopier
from winnow.domain.catalog import Catalog
from winnow.domain.shard import MAX_SHARDS
from winnow.packaged import default_bundle
from winnow.security.peers import PLAIN_TEXT, PeerChannels
from winnow.settings.common import cores
from winnow.settings.values import parse_directory_or_url
from winnow.telemetry.progress import StageProgress

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
    target = signals.run(
        begin_copy(
            file,
            name,
            loaded,
            snapshot=snapshot,
            new=new,
            shards=shards,
            peers=peers,
            say=partial(typer.echo, err=True),
        )
    )
    with _open_copier(file, target, loaded, threads, peers) as copier:
        signals.run(copier.catch_up())
    stored = file.read() or Catalog()
    source = stored.copies[target].source if target in stored.copies else name
    typer.echo(f"{target} has the passages and writes of {source}")
    _advise_switch(next(iter(stored.aliases_of(source)), ""), target, source)


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
    if index is None:
        changed = change_catalog(file, lambda stored: stored.without_alias(name))
        typer.echo(f"catalog {changed.version}: alias {name} removed")
        return
    with contextlib.ExitStack() as stack:

        def open_copier(present: Catalog) -> IndexCopier:
            known = present.indexes[index].bundle
            loaded = load_bundle(bundle or (Path(known) if known else default_bundle()))
            return stack.enter_context(_open_copier(file, index, loaded, threads, peers))

        pointed = signals.run(point_alias(file, name, index, open_copier))
    changed = pointed.catalog
    if pointed.held is not None:
        switched = ", ".join(changed.aliases_of(index))
        typer.echo(f"catalog {changed.version}: alias {switched} -> {index}")
        typer.echo(f"writes were held back for {pointed.held:.1f} s")
    else:
        typer.echo(f"catalog {changed.version}: alias {name} -> {index}")
        if index in changed.copies:
            source = changed.copies[index].source
            typer.echo(f"{index} is a copy of {source}, and takes no writes of callers")
            _advise_switch(next(iter(changed.aliases_of(source)), ""), index, source)
    if pointed.before not in ("", index):
        typer.echo(f"to switch back: winnow indexes alias {name} {pointed.before}")


def _advise_switch(alias: str, copy: str, source: str) -> None:
    """Prints the commands by which a copy replaces its source, which must have an alias."""
    if not alias:
        alias = "ALIAS"
        typer.echo(f"{source} has no alias: winnow indexes alias {alias} {source}")
    typer.echo(f"to switch: winnow indexes alias {alias} {copy}")


@contextlib.contextmanager
def _open_copier(
    file: CatalogFile, name: str, bundle: Bundle, threads: int | None, peers: PeerChannels
) -> Iterator[IndexCopier]:
    """Opens what copies writes to the index `name`, and shows its progress."""
    with (
        contextlib.closing(CopyEncoder(bundle, threads or cores())) as encoder,
        StageProgress() as progress,
    ):
        yield IndexCopier(file, name, encoder=encoder, listener=progress, peers=peers)
