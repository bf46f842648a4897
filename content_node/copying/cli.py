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
from winnow.content_node.copying.encoding import CopyEncoder
from winnow.content_node.copying.replacing import IndexCopier
from winnow.content_node.snapshots.empty import empty_snapshot
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.domain.copying import check_may_copy, with_copy, without_hold
from winnow.domain.shard import MAX_SHARDS
from winnow.errors import InvalidRequestError, invalid_field
from winnow.faultpoints import reach
from winnow.packaged import default_bundle
from winnow.policy.spreading import spread
from winnow.quoting import many, shown
from winnow.security.certificates import Certificates, TlsFiles
from winnow.security.peers import PLAIN_TEXT, PeerChannels
from winnow.settings.common import cores
from winnow.settings.values import parse_directory_or_url
from winnow.telemetry.progress import StageProgress

Result = TypeVar("Result")
_Catalog = Annotated[
    str,
    typer.Option(
        "--indexes",
        envvar="WINNOW_INDEXES",
        help="File or URL of the catalog: the --indexes of the front nodes and content nodes.",
    ),
]
_Threads = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="Threads that encode passages.", show_default="all cores"),
]
_PeerCa = Annotated[
    Path | None,
    typer.Option(
        help="PEM file of the authorities that must have signed the nodes' certificates.",
        show_default="plain text",
    ),
]
_PeerCert = Annotated[
    Path | None,
    typer.Option(
        help="PEM file of the certificate with which nodes are called.", show_default="none"
    ),
]
_PeerKey = Annotated[
    Path | None,
    typer.Option(help="PEM file of the private key of --peer-cert.", show_default="none"),
]
_PeerName = Annotated[
    str, typer.Option(help="Name that the certificates of nodes must have.", show_default="host")
]


def rebuild(
    name: Annotated[str, typer.Argument(help="An index, or an alias of it.")],
    catalog: _Catalog,
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
    peer_ca: _PeerCa = None,
    peer_cert: _PeerCert = None,
    peer_key: _PeerKey = None,
    peer_name: _PeerName = "",
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
    target = new or _begun_copy(stored, source) or _next_name(stored, source)
    if target not in stored.copies:
        count = shards or stored.indexes[source].shards
        _create_copy(file, target, source, loaded, snapshot=snapshot, shards=count)
        reach("copy.created")
    else:
        _check_same_copy(stored, target, source, loaded)
        if shards not in (None, stored.indexes[target].shards):
            begun = many(stored.indexes[target].shards, "shard")
            raise invalid_field("--shards", f"{target} was begun with {begun}: omit --shards")
    peers = _peers(peer_ca, peer_cert, peer_key, peer_name)
    _run(file, target, loaded, threads, lambda copier: copier.catch_up(), peers)
    typer.echo(
        f"{target} has the passages and writes of {source}; to switch: winnow indexes alias "
        f"{next(iter(stored.aliases_of(source)), 'ALIAS')} {target}"
    )


def alias(
    name: Annotated[str, typer.Argument(help="The alias; `default` is for requests without one.")],
    index: Annotated[
        str | None,
        typer.Argument(help="Name of the index.", show_default="none, with --remove"),
    ] = None,
    *,
    catalog: _Catalog,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the alias.")] = False,
    bundle: Annotated[
        Path | None,
        typer.Option(
            help="If the index is a copy: directory of its bundle on this machine.",
            show_default="as in the catalog",
        ),
    ] = None,
    threads: _Threads = None,
    peer_ca: _PeerCa = None,
    peer_cert: _PeerCert = None,
    peer_key: _PeerKey = None,
    peer_name: _PeerName = "",
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
        peers = _peers(peer_ca, peer_cert, peer_key, peer_name)
        held = _run(file, index, loaded, threads, lambda each: each.replace_source(), peers)
        changed = file.read() or before
        switched = ", ".join(before.aliases_of(present.index))
        typer.echo(f"catalog {changed.version}: alias {switched} -> {index}")
        typer.echo(f"writes were held back for {held:.1f} s")
    else:
        changed = _change(file, lambda stored: _pointed(stored, name, index))
        typer.echo(f"catalog {changed.version}: alias {name} -> {index}")
    if present is not None and present.index != index:
        typer.echo(f"to switch back: winnow indexes alias {name} {present.index}")


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


def _begun_copy(catalog: Catalog, source: str) -> str:
    """Returns the copy that an earlier command began; empty if there is none."""
    return next(
        (
            name
            for name, copy in catalog.copies.items()
            if (copy.source, copy.was_replaced) == (source, False)
            and not catalog.indexes[name].is_dropped
        ),
        "",
    )


def _next_name(catalog: Catalog, source: str) -> str:
    """Returns a free name: that of the source with the next number."""
    base, _, number = source.rpartition("-")
    base, first = (base, int(number) + 1) if base and number.isdecimal() else (source, 2)
    taken = catalog.indexes.keys() | catalog.aliases.keys()
    return next(
        each for n in range(first, first + len(taken) + 1) if (each := f"{base}-{n}") not in taken
    )


def _create_copy(
    file: CatalogFile, name: str, source: str, bundle: Bundle, *, snapshot: str, shards: int
) -> None:
    """Adds an empty index to the catalog, on the nodes of its source."""
    before = (file.read() or Catalog()).without_expired(time.time())
    before.check_free(name)
    check_may_copy(before, source)
    taken = empty_snapshot(snapshot, bundle, shards)

    if taken.index_id in before.deleted_ids | {each.index_id for each in before.indexes.values()}:
        raise invalid_field(
            "--snapshot",
            f"{shown(snapshot)} has the snapshot of another index: give another directory or URL",
        )

    def create(catalog: Catalog) -> Catalog:
        nodes = {node for names in catalog.indexes[source].holders.values() for node in names}
        index = CatalogIndex(
            index_id=taken.index_id,
            shards=taken.shards,
            bundle=str(bundle.directory.resolve()),
            snapshots=snapshot if "://" in snapshot else str(Path(snapshot).resolve()),
            holders=spread(range(taken.shards), nodes),
        )
        return with_copy(catalog, name, index, source)

    _change(file, create)


def _check_same_copy(catalog: Catalog, name: str, source: str, bundle: Bundle) -> None:
    """Raises InvalidRequestError unless an earlier command began the same copy."""
    if catalog.copies[name].source != source:
        raise invalid_field("--as", f"{name} is a copy of {catalog.copies[name].source}")
    begun = catalog.indexes[name].bundle
    if begun != str(bundle.directory.resolve()):
        raise invalid_field(
            "--bundle", f"{name} was begun with {begun}: give that, or drop {name} to begin again"
        )


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


def _peers(ca: Path | None, cert: Path | None, key: Path | None, name: str) -> PeerChannels:
    if ca is None:
        if cert is not None or key is not None or name:
            raise InvalidRequestError(*invalid_field("--peer-ca", "is missing").violations)
        return PLAIN_TEXT
    return PeerChannels(Certificates(TlsFiles(cert=cert, key=key, ca=ca)), name)
